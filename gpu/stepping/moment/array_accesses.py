"""The reads and writes of an event, by array, with their threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gpu.recording.trace import Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ArrayAccess:
    """The elements of an array that one event reads or writes.

    Parameters
    ----------
    array_number : int
        The array's number in the trace.
    is_write : bool
        Whether the access is a write or an atomic operation.
    elements, blocks, threads : int arrays
        One entry per lane: the element, the block in the grid, and the thread in the block.
    """

    array_number: int
    is_write: bool
    elements: Array
    blocks: Array
    threads: Array


def find_array_accesses(trace: Trace, event: int) -> list[ArrayAccess]:
    """Return the reads and writes of an event, by array; local memory is omitted."""
    if not 0 <= event < len(trace.events):
        return []
    accesses = []
    trace_event = trace.events[event]
    for access in trace_event.accesses:
        blocks, threads = trace.lanes.threads(trace_event.batch, access.lanes)
        for number in np.unique(access.arrays).tolist():
            if trace.arrays[number].space == "local":
                continue
            in_array = access.arrays == number
            accesses.append(
                ArrayAccess(
                    number, access.action != "read", access.elements[in_array], blocks[in_array], threads[in_array]
                )
            )
    return accesses
