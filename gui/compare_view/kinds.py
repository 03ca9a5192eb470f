"""What variants can be compared by: what was measured, recorded, counted or simulated, each under its own title."""

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
    """One way to compare variants; figures of two ways are never drawn together, but what is modeled, dotted.

    Parameters
    ----------
    name : str
        What a list calls it.
    title : str
        What stands above the curves.
    meaning : str
    quantity : Quantity or None
        What is counted.
    recorded : DeviceRecord or None
        What was measured elsewhere.
    simulated : bool
        Whether it is the time that a CPU takes to simulate.
    modeled : str
        The key of the GPU that it is modeled for.
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
        """Whether it is work per second of a GPU."""
        return self.quantity is None and not self.simulated

    @property
    def of_a_gpu(self) -> bool:
        """Whether a real GPU took these times, beside which those may stand that are modeled."""
        return self.rates and not self.modeled


MEASURED = ComparedBy("measured here", "Measured here", "Kernel time on this machine's GPU, by device events")
SIMULATED = ComparedBy(f"time {TO_SIMULATE}", "Time to simulate", "It says nothing of a GPU", simulated=True)
COUNTED = tuple(ComparedBy(each.name, "Counted", each.meaning, quantity=each) for each in QUANTITIES)


def comparisons(records: Iterable[DeviceRecord], *, simulated: bool, gpu: str) -> tuple[ComparedBy, ...]:
    """Return the ways to compare variants, the one to begin with first.

    Where a CPU simulates that is what a GPU took elsewhere, so that nobody takes a CPU's times for it. `gpu` is the one
    that times are modeled for.
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
    """Return the comparison by what the timing model says of a GPU."""
    described = find_gpu(gpu)
    name = short_name(described.name)
    sure = "" if described.validated else ", which was never compared with a real one"
    return ComparedBy(f"modeled, {name}", "Modeled", f"What the timing model says of {name}{sure}", modeled=gpu)


def points_of(recorded: DeviceRecord, pattern: Pattern) -> list[Point]:
    """Return what was recorded of a pattern's variants."""
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
    """Return how what was recorded was set otherwise than `params`, such as "Rows 4096, not 1024"; "" where nothing."""
    (first, *_) = recorded.of(pattern.name)
    then = pattern.check(first.params)
    return "; ".join(
        f"{each.label} {_in_words(each, then)}, not {_in_words(each, params)}"
        for each in pattern.parameters
        if each.role not in (Role.SIZE, Role.SOURCE)
        and each.applies(then)
        and each.applies(params)
        and not isinstance(then[each.name], np.ndarray)
        and then[each.name] != params[each.name]
    )


def _in_words(parameter: Parameter, params: Mapping[str, Any]) -> str:
    """Return a parameter's value as a form shows it, such as "as many as fit"."""
    value = params[parameter.name]
    if isinstance(parameter, Integer) and parameter.least and value == parameter.minimum:
        return parameter.least
    return str(value)
