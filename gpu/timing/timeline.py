"""Timelines of one multiprocessor's warps: when each issues, and why it waits. Plain data, produced by the model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class WarpState(IntEnum):
    """A warp's state in a cycle, numbered as in `multiprocessor.cu`; each waiting state is a kind of stall."""

    ISSUING = 0
    """Its scheduler issues one of its instructions."""
    ELIGIBLE = 1
    """It could issue, but its scheduler issues another warp's instruction."""
    DEPENDENCY = 2
    """It waits for an arithmetic result, or for the target of a jump."""
    MEMORY = 3
    """It waits for a load from global or local memory, or for the memory queue to accept a request."""
    SHARED = 4
    """It waits for a load from shared memory."""
    PIPE = 5
    """A pipe that the instruction needs, or the load/store unit's queue, is busy."""
    BARRIER = 6
    """It waits for the other warps of its block."""


SPAN = np.dtype([("begin", "f4"), ("end", "f4"), ("operation", "i4"), ("block", "u2"), ("warp", "u1"), ("state", "u1")])
"""An interval of cycles with one warp state: begin and end, the operation that is issued or waits, the index of the
block among the simulated ones, and the warp's slot on the multiprocessor."""


@dataclass(frozen=True)
class TimedOperation:
    """An instruction: its line in the kernel's file, from 1, or 0 if unknown, and its PTX text."""

    line: int
    text: str


@dataclass(frozen=True)
class WarpTimeline:
    """A run of the blocks with a given number of resident blocks.

    Parameters
    ----------
    resident : int
        The number of resident blocks.
    cycles : float
        Cycles until the last block has ended.
    state_cycles : tuple of float
        By WarpState, the cycles of all warps together, over the whole run.
    issued : int
        The operations that warps issued, over the whole run.
    first, last : int
        The range of its rows in the spans of all timelines, sorted by warp, then by time.
    recorded_until : float
        The cycle up to which spans were recorded; `cycles` if all were.
    """

    resident: int
    cycles: float
    state_cycles: tuple[float, ...]
    issued: int
    first: int
    last: int
    recorded_until: float

    def compute_issue_utilization(self, schedulers: int) -> float:
        """Return the issue slot utilization: the share of all schedulers' cycles in which one issues."""
        return self.state_cycles[WarpState.ISSUING] / (schedulers * self.cycles) if self.cycles else 0.0


def compute_rotation_period(warps_per_block: int, schedulers: int) -> int:
    """Return the number of warps after which the assignment of warps to schedulers is shifted by one.

    Warps are assigned to schedulers in turn, evenly. If each block began at the same scheduler, that scheduler would
    have the first warps of all blocks. For a tree reduction in blocks of 256 it would then issue more instructions, as
    Nsight Compute counts them, than there are cycles.
    """
    return math.lcm(warps_per_block, schedulers)


@dataclass(frozen=True, eq=False)
class LaunchTimelines:
    """A launch on one multiprocessor of a GPU, with 1, 2, 3 ... resident blocks.

    Parameters
    ----------
    gpu : str
        The GPU's name.
    kernel : str
    grid, block : tuple of int
    time_us : float
        The predicted time of the whole launch.
    source : str
        "sass" if the driver's assembler determined the registers, otherwise "ir".
    schedulers, warps_per_block : int
    blocks : int
        The number of blocks in each run, the same for any number of resident blocks.
    blocks_per_multiprocessor : int
        The number of the launch's blocks per multiprocessor.
    resident : int
        The number of resident blocks in the launch.
    limiting_resource : str
        The resource that prevents one more resident block, as in `Occupancy`.
    omission : str
        A description of omitted parts of the blocks; "" if they are complete.
    operations : tuple of TimedOperation
    timelines : tuple of WarpTimeline
        The first with one resident block, each with one more.
    spans : array of SPAN
        The spans of all timelines.
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
    blocks_per_multiprocessor: int
    resident: int
    limiting_resource: str
    omission: str
    operations: tuple[TimedOperation, ...]
    timelines: tuple[WarpTimeline, ...]
    spans: Array = field(repr=False)

    def find_schedulers(self, warps: Array) -> Array:
        """Return the scheduler that issues each of some warps, by their slots on the multiprocessor."""
        scheduler: Array = (
            warps + warps // compute_rotation_period(self.warps_per_block, self.schedulers)
        ) % self.schedulers
        return scheduler

    def find_spans(self, resident: int) -> Array:
        """Return the spans of the timeline with a number of resident blocks."""
        timeline = self.timelines[resident - 1]
        return self.spans[timeline.first : timeline.last]
