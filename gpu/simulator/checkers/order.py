"""What orders the accesses of two threads: barriers, `__syncwarp`, and a fence with an atomic between blocks.

Time is the number of the next event; an access is an event, so that an access of event `e` came before a barrier that
was passed at time `t` where `e < t`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.lanes import WARP, Gang, Mask

Array = npt.NDArray[Any]

_NEVER = np.iinfo(np.int64).max


class _Release:
    """When a fence made visible what a group of threads (one, a warp, a block) had done, and up to which time."""

    def __init__(self, threads: int, size: int) -> None:
        self.size = size
        self.fenced = np.zeros(-(-threads // size), np.int64)
        self.upto = np.zeros_like(self.fenced)

    def add(self, threads: Array, time: int, upto: Array) -> None:
        groups = threads // self.size
        before = self.upto[groups]
        np.maximum.at(self.upto, groups, upto)
        # A fence that shows no more than an earlier one must not make it later.
        self.fenced[groups[self.upto[groups] > before]] = time

    def time(self, threads: Array, events: Array) -> Array:
        groups = threads // self.size
        times: Array = np.where(self.upto[groups] > events, self.fenced[groups], _NEVER)
        return times


class Order:
    """Knows which earlier accesses are ordered before those of the gang that runs. Threads are counted over the grid.

    Parameters
    ----------
    threads : int
        Lanes of the whole grid.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._releases: list[_Release] = []

    def gang_begins(self, gang: Gang) -> None:
        """Start with blocks that have passed no barrier."""
        geometry = gang.geometry
        self._per_block = geometry.lanes_per_block
        self.first_thread = gang.first * self._per_block
        self._shape = (geometry.blocks, self._per_block)
        self._barrier = np.zeros(geometry.blocks, np.int64)
        self._warp_time = np.zeros(geometry.lanes, np.int64)
        self._acquired: Array | None = None
        self.has_barriers = False
        self.has_warp_times = False

    def barrier(self, time: int, mask: Mask) -> Array:
        """Take note of a barrier and return the blocks that passed it: bool, one a block of the gang."""
        passed: Array = np.any(mask.bits.reshape(self._shape), axis=1)
        self._barrier[passed] = time
        self.has_barriers = True
        if self._acquired is not None:
            rows = self._acquired.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        return passed

    def warp_barrier(self, time: int, mask: Mask) -> None:
        """Take note of a `__syncwarp`."""
        self._warp_time[mask.lanes] = time
        self.has_warp_times = True
        if self._acquired is not None:
            latest = np.where(mask.bits, self._acquired, 0).reshape(-1, WARP).max(axis=1)
            self._acquired[mask.lanes] = latest[mask.lanes // WARP]

    def fence(self, time: int, mask: Mask) -> None:
        """Take note of a fence for the whole device.

        It shows what the thread did itself, and what it saw at its last barriers.
        """
        if not self._releases:
            self._releases = [_Release(self._threads, size) for size in (1, WARP, self._per_block)]
        lanes = mask.lanes
        threads = self.first_thread + lanes
        known = (np.full(lanes.size, time), self._warp_time[lanes], self._barrier[lanes // self._per_block])
        for release, upto in zip(self._releases, known, strict=True):
            release.add(threads, time, upto)

    def acquire(self, event: int, lanes: Array) -> None:
        """Take note of an atomic on global memory: what others fenced before it is ordered before what follows."""
        if self._releases:
            if self._acquired is None:
                self._acquired = np.zeros(self._warp_time.size, np.int64)
            self._acquired[lanes] = event

    def in_block(self, lanes: Array, threads: Array, events: Array) -> Array:
        """Whether a barrier or `__syncwarp` is between events of other threads and what lanes do now."""
        block = lanes // self._per_block
        theirs = threads - self.first_thread
        ordered: Array = (theirs // self._per_block == block) & (events < self._barrier[block])
        if self.has_warp_times:
            neighbours = np.flatnonzero(theirs // WARP == lanes // WARP)
            both = np.minimum(self._warp_time[lanes[neighbours]], self._warp_time[theirs[neighbours]])
            ordered[neighbours] |= events[neighbours] < both
        return ordered

    def before(self, lanes: Array, threads: Array, events: Array, *, atomic: bool) -> Array:
        """Whether events of other threads, atomics or not, are ordered before what lanes do now."""
        ordered = self.in_block(lanes, threads, events)
        if self._acquired is not None:
            elsewhere = (threads - self.first_thread) // self._per_block != lanes // self._per_block
            ordered |= elsewhere & (self._released(threads, events, atomic) <= self._acquired[lanes])
        return ordered

    def _released(self, threads: Array, events: Array, atomic: bool) -> Array:
        """Return the time from which on an atomic of another block orders an event."""
        times = [release.time(threads, events) for release in self._releases]
        if atomic:
            # In the pattern "write, fence, atomic" the atomic itself is what the other block sees.
            fenced = [release.upto[threads // release.size] > 0 for release in self._releases]
            times.append(np.where(np.logical_or.reduce(fenced), events, _NEVER))
        earliest: Array = np.minimum.reduce(times)
        return earliest
