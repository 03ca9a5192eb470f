"""Quantities by which variants are compared: measured, recorded, modeled, counted or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.bench.device_records import DeviceRecord
from gpu.declaration.pattern import Integer, Parameter, Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.modeled_time import name_with_article, short_name
from gpu.messages.run_counts import QUANTITIES, Quantity
from gpu.timing.gpus import find_gpu
from gui.compare_view.sweep import Point


@dataclass(frozen=True)
class Comparison:
    """A quantity to compare variants by. Different quantities never share a plot, except modeled times (dotted).

    Parameters
    ----------
    name : str
        Text in the list.
    title : str
        Title above the curves.
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
    def is_rate(self) -> bool:
        """Whether this is work per second of a GPU."""
        return self.quantity is None and not self.simulated

    @property
    def is_gpu_time(self) -> bool:
        """Whether a real GPU took these times, so that modeled times may be drawn with them."""
        return self.is_rate and not self.modeled


MEASURED = Comparison("measured here", "Measured here", "Kernel time on this machine's GPU, by device events")
SIMULATED = Comparison(
    f"time {SIMULATION_TIME_LABEL}", "Time to simulate", "It does not predict a GPU's time", simulated=True
)
COUNT_COMPARISONS = tuple(
    Comparison(quantity.name, "Counted", quantity.meaning, quantity=quantity) for quantity in QUANTITIES
)


def list_comparisons(records: Iterable[DeviceRecord], *, simulated: bool, gpu: str) -> tuple[Comparison, ...]:
    """Return the quantities to compare by, the default first.

    Without a GPU the default is a recording from another GPU, so that a CPU's times are not mistaken for a GPU's. `gpu`
    is the key of the GPU that times are modeled for.
    """
    recorded = tuple(
        Comparison(f"{record.device}, {record.date}", "Recorded", f"Times {record.label}", recorded=record)
        for record in records
    )
    modeled = create_modeled_comparison(gpu)
    if not simulated:
        return (MEASURED, modeled, *recorded)
    return (*recorded, modeled, *COUNT_COMPARISONS, SIMULATED) if recorded else (*COUNT_COMPARISONS, modeled, SIMULATED)


def create_modeled_comparison(gpu: str) -> Comparison:
    """Return the comparison by times modeled for a GPU."""
    description = find_gpu(gpu)
    name = short_name(description.name)
    accuracy = "" if description.validated else ", never compared with measurements"
    meaning = f"Times that the timing model predicts for {name_with_article(description.name)}{accuracy}"
    return Comparison(f"modeled, {name}", "Modeled", meaning, modeled=gpu)


def list_recorded_points(recorded: DeviceRecord, pattern: Pattern) -> list[Point]:
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
        for run in recorded.verified_runs(pattern.name)
        if run.variant in names
    ]


def describe_setting_differences(recorded: DeviceRecord, pattern: Pattern, params: Mapping[str, Any]) -> str:
    """Return how the recorded settings differ from `params`, such as "Rows 4096, not 1024", or ""."""
    (first, *_) = recorded.verified_runs(pattern.name)
    recorded_params = pattern.check(first.params)
    return "; ".join(
        f"{parameter.label} {_describe_value(parameter, recorded_params)}, not {_describe_value(parameter, params)}"
        for parameter in pattern.parameters
        if parameter.role not in (Role.SIZE, Role.SOURCE)
        and parameter.applies(recorded_params)
        and parameter.applies(params)
        and not isinstance(recorded_params[parameter.name], np.ndarray)
        and recorded_params[parameter.name] != params[parameter.name]
    )


def _describe_value(parameter: Parameter, params: Mapping[str, Any]) -> str:
    """Format a parameter's value as the form shows it, such as "as many as fit"."""
    value = params[parameter.name]
    if isinstance(parameter, Integer) and parameter.minimum_label and value == parameter.minimum:
        return parameter.minimum_label
    return str(value)
