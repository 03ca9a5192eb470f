"""What an event of a launch reads and writes, array by array, and by which threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gpu.simulator.trace.trace import Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Touched:
    """What one event does to an array: elements, and by which block and thread each."""

    number: int
    writes: bool
    elements: Array
    blocks: Array
    threads: Array


def touched(trace: Trace, event: int) -> list[Touched]:
    """Return what an event reads and writes, by array."""
    if not 0 <= event < len(trace.events):
        return []
    found = []
    each = trace.events[event]
    for access in each.accesses:
        blocks, threads = trace.lanes.threads(each.batch, access.lanes)
        for number in np.unique(access.arrays).tolist():
            if trace.arrays[number].space == "local":
                continue
            own = access.arrays == number
            found.append(Touched(number, access.action != "read", access.elements[own], blocks[own], threads[own]))
    return found
