"""When each warp of one multiprocessor issues, and what it waits for until then: plain data, as the model writes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class WarpState(IntEnum):
    """What a warp does in a cycle, numbered as in `multiprocessor.cu`."""

    ISSUING = 0
    """Its scheduler issues an instruction of it."""
    ELIGIBLE = 1
    """It could issue, and its scheduler issues another's."""
    DEPENDENCY = 2
    """It waits for a result of arithmetic, or for where a jump leads."""
    MEMORY = 3
    """It waits for what is loaded from global or local memory, or until that takes another request."""
    SHARED = 4
    """It waits for what is loaded from shared memory."""
    PIPE = 5
    """What the instruction needs, a pipe or the way to memory, is taken."""
    BARRIER = 6
    """It waits for the other warps of its block."""


SPAN = np.dtype([("begin", "f4"), ("end", "f4"), ("operation", "i4"), ("block", "u2"), ("warp", "u1"), ("state", "u1")])
"""A stretch of cycles in which a warp's state is one: from and to, the operation that it issues or wants to, which of
the blocks that were run it is of, and its place on the multiprocessor."""


@dataclass(frozen=True)
class TimedOperation:
    """An instruction: its line in the kernel's file, from 1, 0 where the compiler says none, and its PTX."""

    line: int
    text: str


@dataclass(frozen=True)
class WarpTimeline:
    """The same blocks, run with so many at once.

    Parameters
    ----------
    resident : int
        Blocks that the multiprocessor holds at once.
    cycles : float
        Until the last one has ended.
    cycles_in : tuple of float
        By WarpState: cycles of all warps together, over the whole run.
    issued : int
        Operations of warps, over the whole run.
    first, last : int
        Its rows among the spans of all: sorted by warp, then by time.
    until : float
        The cycle up to which spans were written down; `cycles` where all were.
    """

    resident: int
    cycles: float
    cycles_in: tuple[float, ...]
    issued: int
    first: int
    last: int
    until: float

    def issuing(self, schedulers: int) -> float:
        """Return the share of all schedulers' cycles in which one issues."""
        return self.cycles_in[WarpState.ISSUING] / (schedulers * self.cycles) if self.cycles else 0.0


def warps_of_round(warps_per_block: int, schedulers: int) -> int:
    """Return behind how many warps of whole blocks the next block begins at another scheduler.

    Warps go to schedulers in turn, and all have as many. Did each block begin at the same one, that would have the
    first warps of all: of a tree in blocks of 256 more to issue, as Nsight Compute counts, than there are cycles.
    """
    return math.lcm(warps_per_block, schedulers)


@dataclass(frozen=True, eq=False)
class LaunchTimelines:
    """A launch on one multiprocessor of a GPU, with 1, 2, 3 ... blocks at once.

    Parameters
    ----------
    gpu : str
        The GPU's name.
    kernel : str
    grid, block : tuple of int
    time_us : float
        What the whole launch would take.
    source : str
        "sass" where the driver's assembler said the registers, else "ir".
    schedulers, warps_per_block : int
    blocks : int
        That are run each time: always the same, whatever is resident.
    per_multiprocessor : int
        Blocks that a multiprocessor gets of the launch.
    resident : int
        Of those, how many at once.
    limited_by : str
        What ends first where one more is to be resident, as of an Occupancy.
    left_out : str
        What is left out of the blocks, in words; "" where they are whole.
    operations : tuple of TimedOperation
    timelines : tuple of WarpTimeline
        The first with one resident block, each with one more.
    spans : array of SPAN
        Of all timelines.
    """

    gpu: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    time_us: float
    source: str
    schedulers: int
    warps_per_block: int
    blocks: int
    per_multiprocessor: int
    resident: int
    limited_by: str
    left_out: str
    operations: tuple[TimedOperation, ...]
    timelines: tuple[WarpTimeline, ...]
    spans: Array = field(repr=False)

    def scheduler_of(self, warps: Array) -> Array:
        """Return which scheduler issues each of some warps, by their places on the multiprocessor."""
        scheduler: Array = (warps + warps // warps_of_round(self.warps_per_block, self.schedulers)) % self.schedulers
        return scheduler

    def spans_of(self, resident: int) -> Array:
        """Return the spans with so many blocks at once."""
        own = self.timelines[resident - 1]
        return self.spans[own.first : own.last]
