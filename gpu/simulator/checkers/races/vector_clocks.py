"""Vector clocks over all threads of a grid, compressed by block and by warp.

A clock is a set of events: those of each thread up to a time. Time is the number of the next event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class AcquiredClock:
    """The events that a thread knows through releases that it has acquired. Threads are numbered over the grid.

    Parameters
    ----------
    block_times : array of int64
        For each block of the grid, the time up to which the events of all its threads are included.
    warp_times, thread_times : mapping of int to int
        The times of warps and threads of which more is included.
    launches : mapping of int to AcquiredClock
        The events of other launches that are included, by the number of the launch in the launch tree.
    """

    block_times: Array
    warp_times: Mapping[int, int] = field(default_factory=dict)
    thread_times: Mapping[int, int] = field(default_factory=dict)
    launches: Mapping[int, AcquiredClock] = field(default_factory=dict)

    def includes(self, threads: Array, events: Array, threads_per_block: int) -> Array:
        """Return whether events of some threads are included."""
        included: Array = events < self.block_times[threads // threads_per_block]
        if self.warp_times or self.thread_times:
            for index in np.flatnonzero(~included).tolist():
                thread, event = int(threads[index]), int(events[index])
                included[index] = event < self.thread_times.get(thread, 0) or event < self.warp_times.get(
                    thread // WARP, 0
                )
        return included

    def knows(self, thread: int, event: int, threads_per_block: int) -> bool:
        """Return whether an event of a thread is included."""
        return bool(
            event < self.block_times[thread // threads_per_block]
            or event < self.thread_times.get(thread, 0)
            or event < self.warp_times.get(thread // WARP, 0)
        )


class ClockBuilder:
    """Collects events for a new clock, which starts with those of `base`."""

    def __init__(self, blocks: int, base: AcquiredClock | None = None) -> None:
        if base is None:
            self.block_times = np.zeros(blocks, np.int64)
            self.warp_times: dict[int, int] = {}
            self.thread_times: dict[int, int] = {}
            self.launches: Mapping[int, AcquiredClock] = {}
        else:
            self.block_times = base.block_times.copy()
            self.warp_times, self.thread_times = dict(base.warp_times), dict(base.thread_times)
            self.launches = base.launches
        self._added = {id(base)}

    def add_clock(self, clock: AcquiredClock | None) -> None:
        """Add the events of a clock."""
        if clock is None or id(clock) in self._added:
            return
        self._added.add(id(clock))
        np.maximum(self.block_times, clock.block_times, out=self.block_times)
        _raise_times(self.warp_times, clock.warp_times)
        _raise_times(self.thread_times, clock.thread_times)
        if clock.launches:
            self.launches = merge_launches((self.launches, clock.launches))

    def add_snapshot(self, snapshot: ClockSnapshot, *, weak: bool) -> None:
        """Add the events of a snapshot, with those that are known only to strong accesses if `weak`."""
        known = max(int(self.block_times[snapshot.block]), snapshot.block_time)
        self.block_times[snapshot.block] = known
        _raise_times(self.warp_times, snapshot.warp_times, known)
        _raise_times(self.thread_times, snapshot.thread_times, known)
        self.add_clock(snapshot.acquired)
        if weak:
            self.add_clock(snapshot.weakly_acquired)
        for other in snapshot.others:
            self.add_snapshot(other, weak=weak)

    def build(self) -> AcquiredClock:
        """Return the clock."""
        return AcquiredClock(self.block_times, self.warp_times, self.thread_times, self.launches)


@dataclass(frozen=True, eq=False)
class ClockSnapshot:
    """What a thread knows at a time: its own events and those that barriers, `__syncwarp` and acquires order before.

    Parameters
    ----------
    block, block_time : int
        Its block, and the time up to which the events of all threads of the block are included.
    warp_times, thread_times : mapping of int to int
        The times of warps and threads of which more is included.
    acquired, weakly_acquired : AcquiredClock or None
        What it has acquired, for all accesses and for strong accesses only.
    others : tuple of ClockSnapshot
        Snapshots that are included.
    """

    block: int
    block_time: int = 0
    warp_times: Mapping[int, int] = field(default_factory=dict)
    thread_times: Mapping[int, int] = field(default_factory=dict)
    acquired: AcquiredClock | None = None
    weakly_acquired: AcquiredClock | None = None
    others: tuple[ClockSnapshot, ...] = ()

    @property
    def is_weak(self) -> bool:
        """Whether it includes events that are known only to strong accesses."""
        return self.weakly_acquired is not None or any(other.is_weak for other in self.others)


def build_snapshot(
    block: int,
    block_time: int,
    thread: int,
    time: int,
    warp_times: int | Array,
    cluster_times: Mapping[int, int],
    clocks: tuple[AcquiredClock | None, AcquiredClock | None],
) -> ClockSnapshot:
    """Return what a thread knows.

    Parameters
    ----------
    block, block_time, thread, time : int
        The thread's block, the time of the block's last barrier, the thread, and the current time.
    warp_times : int or array of int64
        The time up to which the events of its warp are known, for all lanes or for each.
    cluster_times : mapping of int to int
        The times up to which events of threads of its cluster are known by cluster barriers and mbarriers.
    clocks : tuple of AcquiredClock or None
        What it has acquired, for all accesses and for strong accesses only.
    """
    thread_times = dict(cluster_times)
    warps: dict[int, int] = {}
    if isinstance(warp_times, int):
        warps[thread // WARP] = warp_times
    else:
        first = thread // WARP * WARP
        _raise_times(thread_times, {first + lane: known for lane, known in enumerate(warp_times.tolist())}, block_time)
    _raise_times(thread_times, {thread: time})
    return ClockSnapshot(block, block_time, warps, thread_times, *clocks)


def merge_clocks(clocks: Iterable[AcquiredClock | None]) -> AcquiredClock | None:
    """Return a clock with the events of several; None if there are none."""
    different = list({id(clock): clock for clock in clocks if clock is not None}.values())
    if len(different) < 2:
        return different[0] if different else None
    builder = ClockBuilder(different[0].block_times.size, different[0])
    for clock in different[1:]:
        builder.add_clock(clock)
    return builder.build()


def merge_launches(mappings: Iterable[Mapping[int, AcquiredClock]]) -> Mapping[int, AcquiredClock]:
    """Return the events of launches that any of several mappings include, by launch."""
    merged: dict[int, AcquiredClock] = {}
    for launches in mappings:
        for launch, clock in launches.items():
            merged[launch] = merge_clocks((merged.get(launch), clock)) or clock
    return merged


def _raise_times(times: dict[int, int], other: Mapping[int, int], known: int = 0) -> None:
    """Raise times to those of another mapping that are later than a known time."""
    for key, time in other.items():
        if time > known and time > times.get(key, 0):
            times[key] = time
