"""Quantities by which variants are compared: measured, recorded, modeled, counted or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.bench.recorded import DeviceRecord
from gpu.declaration.pattern import Integer, Parameter, Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import TO_SIMULATE
from gpu.messages.counted import QUANTITIES, Quantity
from gpu.messages.modeled import short_name
from gpu.timing.gpus import find_gpu
from gui.compare_view.sweep import Point


@dataclass(frozen=True)
class ComparedBy:
    """A quantity to compare variants by. Different quantities never share a plot, except modeled times (dotted).

    Parameters
    ----------
    name : str
        Text in the list.
    title : str
        Title above the curves.
    meaning : str
    quantity : Quantity or None
        The counted quantity.
    recorded : DeviceRecord or None
        The recorded measurements.
    simulated : bool
        Whether this is the time that a CPU takes to simulate.
    modeled : str
        The key of the GPU that times are modeled for.
    """

    name: str
    title: str
    meaning: str = ""
    quantity: Quantity | None = None
    recorded: DeviceRecord | None = None
    simulated: bool = False
    modeled: str = ""

    @property
    def rates(self) -> bool:
        """Whether this is work per second of a GPU."""
        return self.quantity is None and not self.simulated

    @property
    def of_a_gpu(self) -> bool:
        """Whether a real GPU took these times, so that modeled times may be drawn with them."""
        return self.rates and not self.modeled


MEASURED = ComparedBy("measured here", "Measured here", "Kernel time on this machine's GPU, by device events")
SIMULATED = ComparedBy(f"time {TO_SIMULATE}", "Time to simulate", "It does not predict a GPU's time", simulated=True)
COUNTED = tuple(ComparedBy(each.name, "Counted", each.meaning, quantity=each) for each in QUANTITIES)


def comparisons(records: Iterable[DeviceRecord], *, simulated: bool, gpu: str) -> tuple[ComparedBy, ...]:
    """Return the quantities to compare by, the default first.

    Without a GPU the default is a recording from another GPU, so that a CPU's times are not mistaken for a GPU's. `gpu`
    is the key of the GPU that times are modeled for.
    """
    recorded = tuple(
        ComparedBy(f"{each.device}, {each.date}", "Recorded", each.words.capitalize(), recorded=each)
        for each in records
    )
    modeled = modeled_for(gpu)
    if not simulated:
        return (MEASURED, modeled, *recorded)
    return (*recorded, modeled, *COUNTED, SIMULATED) if recorded else (*COUNTED, modeled, SIMULATED)


def modeled_for(gpu: str) -> ComparedBy:
    """Return the comparison by times modeled for a GPU."""
    description = find_gpu(gpu)
    name = short_name(description.name)
    accuracy = "" if description.validated else ", never compared with measurements"
    return ComparedBy(
        f"modeled, {name}", "Modeled", f"Times that the timing model predicts for {name}{accuracy}", modeled=gpu
    )


def points_of(recorded: DeviceRecord, pattern: Pattern) -> list[Point]:
    """Return the recorded points of a pattern's variants."""
    names = {variant.name for variant in pattern.variants}
    return [
        Point(
            run.variant,
            run.size,
            run.size / run.median_ms * 1e3,
            run.least_bytes / run.median_ms * 1e3,
            run.rate,
            "cuda",
            recorded.device,
            run.median_ms,
        )
        for run in recorded.of(pattern.name)
        if run.variant in names
    ]


def other_settings(recorded: DeviceRecord, pattern: Pattern, params: Mapping[str, Any]) -> str:
    """Return how the recorded settings differ from `params`, such as "Rows 4096, not 1024", or ""."""
    (first, *_) = recorded.of(pattern.name)
    recorded_params = pattern.check(first.params)
    return "; ".join(
        f"{each.label} {_describe_value(each, recorded_params)}, not {_describe_value(each, params)}"
        for each in pattern.parameters
        if each.role not in (Role.SIZE, Role.SOURCE)
        and each.applies(recorded_params)
        and each.applies(params)
        and not isinstance(recorded_params[each.name], np.ndarray)
        and recorded_params[each.name] != params[each.name]
    )


def _describe_value(parameter: Parameter, params: Mapping[str, Any]) -> str:
    """Format a parameter's value as the form shows it, such as "as many as fit"."""
    value = params[parameter.name]
    if isinstance(parameter, Integer) and parameter.least and value == parameter.minimum:
        return parameter.least
    return str(value)
