"""Synchronization through memory, as PTX's memory consistency model defines it: releases that acquires observe.

Source: PTX ISA, chapter "Memory Consistency Model" (release and acquire patterns, synchronizes-with, causality order).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.simulator.checkers.races.advice import RaceCause
from gpu.simulator.checkers.races.critical_sections import CriticalSections
from gpu.simulator.checkers.races.release_sequences import (
    DEVICE_LEVEL,
    LEVELS,
    RELEASE_ORDERS,
    SCOPE_LEVELS,
    Reader,
    ReleaseSequence,
)
from gpu.simulator.checkers.races.shadow import Shadow
from gpu.simulator.checkers.races.vector_clocks import (
    AcquiredClock,
    ClockSnapshot,
    build_snapshot,
    merge_clocks,
    merge_launches,
)
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.observer import Access
from gpu.simulator.ir import Scope
from gpu.simulator.ir.value_uses import ValueUse

Array = npt.NDArray[Any]

SEQUENCE = "release sequence"
"""The slot of shadow memory with the numbers of release sequences, from 1."""

_MAX_RELEASES = 1 << 14
"""The most threads whose last release is recorded."""


@dataclass(frozen=True)
class _Observation:
    """A read of a release sequence that no fence has followed yet.

    Parameters
    ----------
    length : int
        The number of releases that it observed.
    level : int
        The level of the read's scope.
    orders_strong : bool
        Whether it orders the thread's later strong accesses without a fence.
    time : int
        The event of the read.
    is_acquired : bool
        Whether a fence of its scope has followed.
    is_relaxed : bool
        Whether the source names relaxed order for the read.
    """

    length: int
    level: int
    orders_strong: bool
    time: int
    is_acquired: bool = False
    is_relaxed: bool = False


@dataclass(frozen=True)
class _Release:
    """A release by a thread: its sequence, the number of releases up to it, its event, and whether it is relaxed."""

    sequence: ReleaseSequence
    length: int
    time: int
    is_relaxed: bool


@dataclass
class _Knowledge:
    """What a thread, or all threads of a block, have acquired: for all accesses, and for strong accesses only."""

    acquired: AcquiredClock | None = None
    weakly_acquired: AcquiredClock | None = None
    observations: dict[ReleaseSequence, _Observation] = field(default_factory=dict)
    # The number of releases observed by reads whose values decide nothing.
    ignored: dict[ReleaseSequence, int] = field(default_factory=dict)

    def add_all(self, others: Iterable[_Knowledge]) -> None:
        """Add what others know."""
        others = list(others)
        self.acquired = merge_clocks([self.acquired, *(each.acquired for each in others)])
        self.weakly_acquired = merge_clocks([self.weakly_acquired, *(each.weakly_acquired for each in others)])
        for other in others:
            for sequence, observation in other.observations.items():
                known = self.observations.get(sequence)
                if known is None or known.length < observation.length:
                    self.observations[sequence] = observation
            self.ignored |= other.ignored

    def copy(self) -> _Knowledge:
        """Return a copy that can be changed."""
        return _Knowledge(self.acquired, self.weakly_acquired, dict(self.observations), dict(self.ignored))


class _Fences:
    """For each lane, what its last fence of at least a scope covers."""

    def __init__(self, lanes: int) -> None:
        self.times = np.zeros(lanes, np.int64)
        self.block_times = np.zeros(lanes, np.int64)
        self.warp_times = np.zeros(lanes, np.int64)
        self.warp_rows: Array | None = None
        self.cluster_times: dict[int, Mapping[int, int]] = {}
        self.clocks: dict[int, tuple[AcquiredClock | None, AcquiredClock | None]] = {}
        # What fences of other lanes cover, with which the lane has synchronized since, and the time of the last one.
        self.joined: dict[int, ClockSnapshot] = {}
        self.joined_times = np.zeros(lanes, np.int64)
        self.snapshots: dict[int, tuple[int, ClockSnapshot | None, ClockSnapshot]] = {}


class Synchronization:
    """Releases and acquires of a launch. Threads are numbered over the grid, lanes over the running batch."""

    def __init__(self) -> None:
        self._sequences: list[ReleaseSequence] = []
        self._sections = CriticalSections()
        self._of_lane: dict[int, _Knowledge] = {}
        self._of_block: dict[int, _Knowledge] = {}
        # The last release of each thread, to name causes.
        self._last_releases: dict[int, _Release] = {}
        # The events of other launches that threads of earlier batches have acquired, by launch.
        self._launches: Mapping[int, AcquiredClock] = {}
        self.has_fences = False
        """Whether the launch has executed fences, or accesses that acquire or release."""

    def batch_begins(self, batch: BlockBatch, blocks: int) -> None:
        """Reset the state for new blocks of a grid with a number of blocks."""
        geometry = batch.geometry
        self._blocks = blocks
        self._threads_per_block = geometry.lanes_per_block
        self._first_block = batch.first
        self._first_thread = batch.first * self._threads_per_block
        self._cluster_blocks = batch.cluster_blocks
        self._cluster_of_block = batch.first + (
            batch.cluster_of_block if batch.cluster_blocks > 1 else np.arange(geometry.blocks)
        )
        self._lane_count = geometry.lanes
        self._threads = np.arange(geometry.threads)
        self._padding = np.arange(geometry.threads, geometry.lanes_per_block)
        self._fences: tuple[_Fences, ...] = ()
        # The time of each lane's last fence that acquires, of any scope.
        self._acquire_times = np.zeros(geometry.lanes, np.int64)
        self._launches = self.find_all_launches()
        self._of_lane, self._of_block = {}, {}
        self._of_phase: dict[int, _Knowledge] = {}
        self._sections.batch_begins(geometry.lanes, self._first_thread)

    # Barriers

    def join_blocks(self, passed: Array) -> None:
        """Let all threads of some blocks know what each of them knows; `passed` has one bool per block."""
        for block, lanes in self._group_lanes(lambda lane: lane // self._threads_per_block).items():
            if passed[block]:
                knowledge = self._of_block.setdefault(block, _Knowledge())
                knowledge.add_all(self._of_lane.pop(lane) for lane in lanes)
        if self._fences:
            fences = self._fences[0]
            is_new = (fences.times > fences.joined_times).reshape(passed.size, -1).any(axis=1) & passed
            for block in np.flatnonzero(is_new).tolist():
                first = block * self._threads_per_block
                self._join_fences(first + self._threads, first + self._padding)

    def join_lanes(self, lanes: Array, groups: Array) -> None:
        """Let lanes of equal groups know what each of them knows."""
        is_new = False
        if self._fences:
            fences = self._fences[0]
            is_new = bool((fences.times[lanes] > fences.joined_times[lanes]).any())
        if not self._of_lane and not is_new:
            return
        members: dict[int, list[int]] = {}
        for lane, group in zip(lanes.tolist(), groups.tolist(), strict=True):
            members.setdefault(group, []).append(lane)
        for group in members.values():
            if is_new:
                self._join_fences(np.array(group), self._padding[:0])
            known = [self._of_lane[lane] for lane in group if lane in self._of_lane]
            if known:
                joined = _Knowledge()
                joined.add_all(known)
                self._of_lane.update((lane, joined.copy()) for lane in group)

    def join_cluster(self, lanes: Array) -> None:
        """Let lanes know what all lanes of their clusters know."""
        if not (self._of_lane or self._of_block):
            return
        for cluster in np.unique(self._cluster_of_block[lanes // self._threads_per_block]).tolist():
            blocks = np.flatnonzero(self._cluster_of_block == cluster).tolist()
            joined = _Knowledge()
            joined.add_all(self._of_block[block] for block in blocks if block in self._of_block)
            joined.add_all(each for lane, each in self._of_lane.items() if lane // self._threads_per_block in blocks)
            for block in blocks:
                self._of_block.setdefault(block, _Knowledge()).add_all([joined])

    def arrive_at_phase(self, phase: int, lane: int) -> None:
        """Let those that pass a phase of an mbarrier know what a lane knows."""
        known = self._find_knowledge(lane)
        if known:
            self._of_phase.setdefault(phase, _Knowledge()).add_all(known)

    def pass_phase(self, phase: int, lane: int) -> None:
        """Let a lane know what the lanes know that have arrived in a phase of an mbarrier."""
        if phase in self._of_phase:
            self._of_lane.setdefault(lane, _Knowledge()).add_all([self._of_phase[phase]])

    def _group_lanes(self, group: Callable[[int], int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for lane in self._of_lane:
            groups.setdefault(group(lane), []).append(lane)
        return groups

    def _find_knowledge(self, lane: int) -> list[_Knowledge]:
        of_block = self._of_block.get(lane // self._threads_per_block)
        return [each for each in (self._of_lane.get(lane), of_block) if each is not None]

    # Other launches

    def continue_sequences(
        self, shadow: Shadow, cells: Array, numbers: Array, other: Synchronization, launch: int
    ) -> None:
        """Continue release sequences of a launch that may run at the same time.

        Parameters
        ----------
        shadow : Shadow
            The shadow memory of an array that the running launch has not accessed yet.
        cells, numbers : array of int
            Cells, and the number of the sequence of each of them in the other launch.
        other : Synchronization
            The synchronization of the other launch.
        launch : int
            Its number.
        """
        reader = Reader(-1, -1, DEVICE_LEVEL)
        for number in np.unique(numbers).tolist():
            sequence = other._sequences[number - 1]
            known = sequence.find_known_events(sequence.length, reader, weak=False)
            if known is None:
                continue
            continued = ReleaseSequence(self._blocks)
            launches = {**known.launches, launch: known}
            continued.append_events(AcquiredClock(np.zeros(self._blocks, np.int64), launches=launches))
            self._sequences.append(continued)
            shadow.get_or_create(SEQUENCE)[cells[numbers == number]] = len(self._sequences)

    def find_launches(self, lane: int, *, is_strong: bool) -> Mapping[int, AcquiredClock]:
        """Return the events of other launches that a lane has acquired, by launch."""
        return merge_launches(
            clock.launches
            for known in self._find_knowledge(lane)
            for clock in self._iterate_clocks(known, lane, is_strong=is_strong)
        )

    def find_all_launches(self) -> Mapping[int, AcquiredClock]:
        """Return the events of other launches that any thread of the launch has acquired, by launch."""
        clocks = (each.acquired for each in (*self._of_lane.values(), *self._of_block.values()))
        return merge_launches((self._launches, *(clock.launches for clock in clocks if clock is not None)))

    def are_unfenced(self, threads: Array, events: Array, are_strong: Array) -> Array:
        """Return whether accesses are in critical sections without a fence, for threads of another launch."""
        return self._sections.are_unfenced(threads, events, np.full(threads.size, DEVICE_LEVEL), are_strong)

    # Fences

    def fence(
        self,
        time: int,
        lanes: Array,
        scope: Scope,
        block_times: Array,
        warp_times: Array,
        find_cluster_times: Callable[[int], Mapping[int, int]] | None,
    ) -> None:
        """Record a fence that releases.

        Parameters
        ----------
        time : int
            The current time.
        lanes : array of int
            The lanes that call it.
        scope : Scope
            Its scope.
        block_times : array of int64
            For each of them, the time of its block's last barrier.
        warp_times : array of int64
            The times up to which the events of its warp are known, for each lane: shape (lanes,) or (lanes, 32).
        find_cluster_times : callable or None
            Returns the times up to which a lane knows events of threads of its cluster; None without clusters.
        """
        level = SCOPE_LEVELS[scope]
        if not self._fences:
            self._fences = tuple(_Fences(self._lane_count) for _ in LEVELS)
        for fences in self._fences[: level + 1]:
            fences.times[lanes], fences.block_times[lanes] = time, block_times
            if warp_times.ndim == 1 and fences.warp_rows is None:
                fences.warp_times[lanes] = warp_times
            else:
                if fences.warp_rows is None:
                    fences.warp_rows = np.repeat(fences.warp_times[:, None], WARP, axis=1)
                fences.warp_rows[lanes] = warp_times.reshape(lanes.size, -1)
        if find_cluster_times is None and not (self._of_lane or self._of_block or self._fences[0].clocks):
            return
        for lane in lanes.tolist():
            known = self._find_knowledge(lane)
            clocks = (
                merge_clocks(each.acquired for each in known),
                merge_clocks(each.weakly_acquired for each in known),
            )
            times = find_cluster_times(lane) if find_cluster_times is not None else {}
            for fences in self._fences[: level + 1]:
                fences.clocks[lane], fences.cluster_times[lane] = clocks, times

    def find_fence_times(self, lanes: Array, scope: Scope) -> Array:
        """Return the time of the last fence of each lane with at least a scope; 0 if there was none."""
        times: Array = (
            self._fences[SCOPE_LEVELS[scope]].times[lanes] if self._fences else np.zeros(lanes.size, np.int64)
        )
        return times

    def _acquire_observations(self, lanes: Array, level: int) -> None:
        """Acquire what lanes have observed."""
        if not (self._of_lane or self._of_block):
            return
        for lane in lanes.tolist():
            for known in self._find_knowledge(lane):
                for sequence, observation in list(known.observations.items()):
                    if observation.is_acquired:
                        continue
                    own = self._of_lane.setdefault(lane, _Knowledge())
                    self._acquire(own, lane, sequence, observation, min(level, observation.level))
                    if own is known and level >= observation.level:
                        own.observations[sequence] = replace(observation, is_acquired=True)

    def acquire(self, time: int, lanes: Array, scope: Scope = "device") -> None:
        """Acquire what lanes have observed, as a fence of a scope does."""
        level = SCOPE_LEVELS[scope]
        self._acquire_observations(lanes, level)
        self._acquire_times[lanes] = time
        if self._sections.is_any_open:
            self._sections.fence(time, lanes, level)

    def _acquire(
        self, knowledge: _Knowledge, lane: int, sequence: ReleaseSequence, observation: _Observation, level: int
    ) -> None:
        """Add what an observation of a lane makes known with a fence of a level."""
        known = sequence.find_known_events(observation.length, self._reader(lane, level), weak=False)
        knowledge.acquired = merge_clocks((knowledge.acquired, known))
        if observation.orders_strong and (level < observation.level or sequence.has_weak):
            reader = self._reader(lane, observation.level)
            known = sequence.find_known_events(observation.length, reader, weak=True)
            knowledge.weakly_acquired = merge_clocks((knowledge.weakly_acquired, known))

    def _reader(self, lane: int, level: int) -> Reader:
        block = lane // self._threads_per_block
        return Reader(self._first_block + block, int(self._cluster_of_block[block]), level)

    # Strong accesses

    def record_write(self, shadow: Shadow, cells: Array) -> None:
        """Record a weak write: it ends the release sequences of its cells."""
        sequences = shadow.get(SEQUENCE)
        if sequences is not None:
            sequences[cells] = 0

    def record_access(self, time: int, lanes: Array) -> None:
        """Record that lanes access global or shared memory."""
        if self._sections.is_any_open:
            self._sections.record_access(time, lanes)

    def record_strong_access(
        self,
        batch: BlockBatch,
        access: Access,
        time: int,
        shadow: Shadow,
        take_snapshot: Callable[[int], ClockSnapshot],
    ) -> None:
        """Record a strong access: it may observe a release sequence, and continue or start one.

        Parameters
        ----------
        batch, access
            The access.
        time : int
            Its event.
        shadow : Shadow
            The shadow memory of the accessed array.
        take_snapshot : callable
            Returns what a lane knows now.
        """
        site = access.site
        sequences = shadow.get(SEQUENCE)
        writes = site.action != "read"
        self.has_fences |= site.order in RELEASE_ORDERS or site.acquires
        if sequences is None and not writes:
            return
        takes_locks = site.op in ("cas", "exch") and access.old is not None and site.use > ValueUse.DATA
        if not (self.has_fences or takes_locks or sequences is not None or site.order in RELEASE_ORDERS):
            return
        lanes, cells = shadow.all_cells(batch.geometry, access)
        written = None
        if site.action == "atomic" and site.op == "cas" and access.old is not None:
            written = _select_lanes(access.old, lanes) == _select_lanes(access.compared, lanes)
        if self._sections.is_any_open and writes:
            self._release_locks(access, time, lanes, cells, shadow, written)
        if takes_locks:
            self._take_locks(access, time, lanes, cells, shadow, written)
        self._follow_sequences(
            access, time, self._find_releases(site, lanes, written), (lanes, cells), shadow, take_snapshot
        )

    def _follow_sequences(
        self,
        access: Access,
        time: int,
        releases: Array,
        accessed: tuple[Array, Array],
        shadow: Shadow,
        take_snapshot: Callable[[int], ClockSnapshot],
    ) -> None:
        """Let lanes observe, continue and start release sequences at the cells that they access.

        `releases` has whether each lane's access is a release; `accessed` are the lanes and their cells.
        """
        site, (lanes, cells), sequences = access.site, accessed, shadow.get(SEQUENCE)
        if sequences is None:
            if not releases.any():
                return
            sequences = shadow.get_or_create(SEQUENCE)
        width = max(access.size // shadow.cell_size, 1)
        involved = sequences.take(cells) != 0
        if site.action == "write":
            for offset in range(width):
                sequences[cells + offset] = 0
            involved = releases
        elif releases.any():
            # A later lane may observe the release of an earlier one.
            involved |= releases
            if not involved.all():
                involved |= np.isin(cells, cells[releases])
        level = SCOPE_LEVELS[site.scope]
        # The lanes of an instruction execute its atomic operations in order.
        for index in np.flatnonzero(involved).tolist():
            lane, cell = int(lanes[index]), int(cells[index])
            number = int(sequences[cell])
            if number and site.action != "write" and access.used:
                self._observe(lane, self._sequences[number - 1], site, level, time)
            if not releases[index]:
                continue
            if not number:
                self._sequences.append(ReleaseSequence(self._blocks))
                number = len(self._sequences)
                sequences[cell : cell + width] = number
            snapshots = (
                self._release_now(take_snapshot(lane), level)
                if site.order in RELEASE_ORDERS
                else self._release_fenced(lane, level)
            )
            cluster = int(self._cluster_of_block[lane // self._threads_per_block])
            sequence = self._sequences[number - 1]
            sequence.append(cluster, snapshots, is_narrow=level < DEVICE_LEVEL)
            thread = self._first_thread + lane
            if thread in self._last_releases or len(self._last_releases) < _MAX_RELEASES:
                self._last_releases[thread] = _Release(sequence, sequence.length, time, site.has_relaxed_order)

    def _find_releases(self, site: AccessSite, lanes: Array, written: Array | None) -> Array:
        """Return whether strong accesses of lanes are releases; `written` are those that write, None for all."""
        releases: Array = np.zeros(lanes.size, bool)
        if site.action == "read":
            return releases
        if site.order in RELEASE_ORDERS:
            releases[:] = True
        elif self._fences:
            fences = self._fences[0]
            releases = (fences.times[lanes] > 0) | (fences.joined_times[lanes] > 0)
        return releases if written is None else releases & written

    def _observe(self, lane: int, sequence: ReleaseSequence, site: AccessSite, level: int, time: int) -> None:
        """Record that a lane reads a value of a release sequence."""
        knowledge = self._of_lane.get(lane)
        if knowledge is None:
            knowledge = self._of_lane[lane] = _Knowledge()
        if site.use == ValueUse.DATA:
            knowledge.ignored[sequence] = sequence.length
            return
        known = knowledge.observations.get(sequence)
        is_known = known is not None and known.length == sequence.length and known.level >= level
        if known is not None and is_known and (known.is_acquired or not site.acquires):
            return
        observation = _Observation(
            sequence.length, level, site.op != "cas", time, site.acquires, is_relaxed=site.has_relaxed_order
        )
        if site.acquires:
            self._acquire(knowledge, lane, sequence, observation, level)
        knowledge.observations[sequence] = observation

    def _release_now(self, snapshot: ClockSnapshot, level: int) -> tuple[ClockSnapshot | None, ...]:
        return tuple(snapshot if each <= level else None for each in LEVELS)

    def _release_fenced(self, lane: int, level: int) -> tuple[ClockSnapshot | None, ...]:
        """Return what a write of a lane releases to each scope, up to the level of the write's scope."""
        snapshots: list[ClockSnapshot | None] = []
        for each, fences in enumerate(self._fences):
            time, joined = int(fences.times[lane]), fences.joined.get(lane)
            if each > level or not (time or joined):
                snapshots.append(None)
                continue
            cached = fences.snapshots.get(lane)
            below = self._fences[each - 1].snapshots.get(lane) if each else None
            if cached is None or cached[:2] != (time, joined):
                if below is not None and below[:2] == (time, joined):
                    cached = below
                else:
                    own = self._build_snapshot(lane, fences) if time else None
                    combined = own or joined
                    if own is not None and joined is not None:
                        combined = replace(own, others=(joined,))
                    assert combined is not None
                    cached = (time, joined, combined)
                fences.snapshots[lane] = cached
            snapshots.append(cached[2])
        return tuple(snapshots)

    def _build_snapshot(self, lane: int, fences: _Fences) -> ClockSnapshot:
        """Return what the last fence of a lane covers."""
        return build_snapshot(
            self._first_block + lane // self._threads_per_block,
            int(fences.block_times[lane]),
            self._first_thread + lane,
            int(fences.times[lane]),
            int(fences.warp_times[lane]) if fences.warp_rows is None else fences.warp_rows[lane],
            fences.cluster_times.get(lane, {}),
            fences.clocks.get(lane, (None, None)),
        )

    def _join_fences(self, lanes: Array, missing: Array) -> None:
        """Let lanes of a block release what fences of any of them cover.

        The fence of a release pattern may be that of another thread, with which the writing thread has synchronized.

        Parameters
        ----------
        lanes : array of int
            The lanes.
        missing : array of int
            The lanes of the block that are no threads.
        """
        for level, fences in enumerate(self._fences):
            times = fences.times[lanes]
            fenced = lanes[times > fences.joined_times[lanes]]
            if not fenced.size:
                continue
            block = int(lanes[0]) // self._threads_per_block
            below = self._fences[level - 1].joined.get(int(lanes[0])) if level else None
            if below is not None and (self._fences[level - 1].times[lanes] == times).all():
                joined = below
            else:
                known = [self._build_snapshot(lane, fences) for lane in fenced.tolist()]
                previous = {id(each): each for lane in lanes.tolist() if (each := fences.joined.get(lane)) is not None}
                is_block = lanes.size + missing.size == self._threads_per_block
                # If all threads have fenced, one time describes the block.
                block_time = int(times.min()) if is_block else 0
                joined = ClockSnapshot(
                    self._first_block + block,
                    max(block_time, *(each.block_time for each in known)),
                    _merge_times(each.warp_times for each in known),
                    {
                        thread: time
                        for thread, time in _merge_times(each.thread_times for each in known).items()
                        if time > block_time
                    },
                    merge_clocks(each.acquired for each in known),
                    merge_clocks(each.weakly_acquired for each in known),
                    () if block_time else tuple(previous.values()),
                )
            fences.joined_times[lanes] = times.max()
            fences.joined.update(dict.fromkeys(lanes.tolist(), joined))

    def find_acquired_clocks(self, lane: int) -> tuple[AcquiredClock | None, AcquiredClock | None]:
        """Return what a lane has acquired for all accesses, and for strong accesses only."""
        known = self._find_knowledge(lane)
        return merge_clocks(each.acquired for each in known), merge_clocks(each.weakly_acquired for each in known)

    def _take_locks(
        self, access: Access, time: int, lanes: Array, cells: Array, shadow: Shadow, written: Array | None
    ) -> None:
        old = _select_lanes(access.old, lanes)
        taken = np.flatnonzero(old != _select_lanes(access.values, lanes) if written is None else written)
        if taken.size:
            by_exchange = access.site.op == "exch"
            self._sections.take_lock(time, lanes[taken], id(shadow), cells[taken], old[taken], by_exchange=by_exchange)
            if access.site.acquires:
                self._sections.fence(time, lanes[taken], SCOPE_LEVELS[access.site.scope])

    def _release_locks(
        self, access: Access, time: int, lanes: Array, cells: Array, shadow: Shadow, written: Array | None
    ) -> None:
        if isinstance(access.values, tuple) or access.site.op not in ("", "exch", "cas"):
            return
        chosen = slice(None) if written is None else written
        values = _select_lanes(access.values, lanes)[chosen]
        if values.dtype != object:
            self._sections.release_lock(time, lanes[chosen], id(shadow), cells[chosen], values)

    # Order

    def are_ordered_before(
        self, lanes: Array, threads: Array, events: Array, *, is_strong: bool, are_strong: Array
    ) -> Array:
        """Return whether lanes have acquired events of threads.

        Parameters
        ----------
        lanes : array of int
            Lanes of the running batch.
        threads, events : array of int
            Thread and event of an earlier access, one for each lane.
        is_strong : bool
            Whether the access to order is strong.
        are_strong : array of bool
            Whether the earlier accesses are strong.
        """
        ordered: Array = np.zeros(lanes.size, bool)
        if not (self._of_lane or self._of_block):
            return ordered
        blocks = lanes // self._threads_per_block
        for owners, knowledge in ((blocks, self._of_block), (lanes, self._of_lane)):
            for owner in sorted(set(owners.tolist())) if knowledge else ():
                if owner in knowledge:
                    indices = np.flatnonzero((owners == owner) & ~ordered)
                    lane = int(lanes[indices[0]]) if indices.size else 0
                    for clock in self._iterate_clocks(knowledge[owner], lane, is_strong=is_strong):
                        included = clock.includes(threads[indices], events[indices], self._threads_per_block)
                        ordered[indices[included]] = True
        if self._sections.has_intervals and ordered.any():
            indices = np.flatnonzero(ordered)
            levels = self.find_levels(lanes[indices], threads[indices])
            ordered[indices] &= ~self._sections.are_unfenced(
                threads[indices], events[indices], levels, are_strong[indices] & is_strong
            )
        return ordered

    @property
    def has_critical_sections(self) -> bool:
        """Whether an acquired event may be unordered, as it is in a critical section without a fence."""
        return self._sections.has_intervals

    def is_known(self, lane: int, thread: int, event: int) -> bool:
        """Return whether a lane has certainly acquired an event of a thread, for all accesses.

        Without critical sections, it has not if this is False.
        """
        if self.has_critical_sections:
            return False
        clocks = (known.acquired for known in self._find_knowledge(lane))
        return any(clock is not None and clock.knows(thread, event, self._threads_per_block) for clock in clocks)

    def find_cause(self, lane: int, thread: int, event: int) -> RaceCause | None:
        """Return why an event of a thread is not ordered before the current point of a lane; None if unknown."""
        one = (np.array([lane]), np.array([thread]), np.array([event]))
        level = int(self.find_levels(*one[:2])[0])
        known = self._find_knowledge(lane)
        strong = np.ones(1, bool)
        for each in known:
            for clock in self._iterate_clocks(each, lane, is_strong=True):
                is_included = clock.includes(*one[1:], self._threads_per_block)[0]
                levels, weak = np.array([level]), ~strong
                if is_included and self._sections.are_unfenced(*one[1:], levels, weak)[0]:
                    in_block = self._sections.are_unfenced(*one[1:], np.array([0]), weak)[0]
                    return "unfenced lock" if in_block else "narrow lock fence"
        for each in known:
            for sequence, observation in each.observations.items():
                cause = self._explain_observation(lane, sequence, observation, one[1:], level)
                if cause is not None:
                    return cause
            for sequence, length in each.ignored.items():
                if self._includes(
                    sequence.find_known_events(length, self._reader(lane, DEVICE_LEVEL), weak=False), one
                ):
                    return "ignored flag"
        release = self._last_releases.get(thread)
        if release is not None and release.time > event:
            observed = (each.observations.get(release.sequence) for each in known)
            if any(each is not None and each.length >= release.length for each in observed):
                return "relaxed write" if release.is_relaxed else "unfenced write"
        return None

    def find_flag_writer(self, lane: int, thread: int, event: int) -> int | None:
        """Return a thread of another thread's block of which a lane has acquired later events than one of the latter.

        It has released after the event, but not the event, as no barrier orders that before; None if there is none.
        """
        first = thread // self._threads_per_block * self._threads_per_block
        threads = first + self._threads[self._first_thread + lane != first + self._threads]
        for clock in (each.acquired for each in self._find_knowledge(lane)):
            if clock is not None:
                known = np.flatnonzero(clock.includes(threads, np.full(threads.size, event), self._threads_per_block))
                if known.size:
                    return int(threads[known[0]])
        return None

    def find_flag_reader(self, lane: int, thread: int, event: int) -> int | None:
        """Return a thread of a lane's block that has acquired an event that the lane itself has not; None if none."""
        block = lane // self._threads_per_block
        for other, knowledge in self._of_lane.items():
            clock = knowledge.acquired
            is_near = other != lane and other // self._threads_per_block == block
            if is_near and clock is not None and clock.knows(thread, event, self._threads_per_block):
                return self._first_thread + other
        return None

    def _explain_observation(
        self,
        lane: int,
        sequence: ReleaseSequence,
        observation: _Observation,
        access: tuple[Array, Array],
        level: int,
    ) -> RaceCause | None:
        """Return why an observation of a lane does not order an access before it."""
        reader = self._reader(lane, observation.level)
        one = (np.array([lane]), *access)
        if self._includes(sequence.find_known_events(observation.length, reader, weak=False), one):
            if self._has_fence_since(lane, observation):
                return "narrow read fence"
            if observation.is_relaxed:
                return "relaxed read"
            return "unfenced read" if observation.orders_strong else "unfenced lock"
        if self._includes(sequence.find_all_events(observation.length), one):
            if observation.level < level:
                return "narrow read"
            return "narrow write" if sequence.has_narrow_write else "narrow write fence"
        return None

    def _has_fence_since(self, lane: int, observation: _Observation) -> bool:
        """Return whether a fence has followed an observation, of any scope."""
        return int(self._acquire_times[lane]) > observation.time

    def _includes(self, clock: AcquiredClock | None, one: tuple[Array, Array, Array]) -> bool:
        return clock is not None and bool(clock.includes(one[1], one[2], self._threads_per_block)[0])

    def _iterate_clocks(self, knowledge: _Knowledge, lane: int, *, is_strong: bool) -> Iterable[AcquiredClock]:
        if knowledge.acquired is not None:
            yield knowledge.acquired
        if is_strong:
            if knowledge.weakly_acquired is not None:
                yield knowledge.weakly_acquired
            for sequence, observation in knowledge.observations.items():
                if observation.orders_strong and not observation.is_acquired:
                    reader = self._reader(lane, observation.level)
                    known = sequence.find_known_events(observation.length, reader, weak=True)
                    if known is not None:
                        yield known

    def find_levels(self, lanes: Array, threads: Array) -> Array:
        """Return the level of the narrowest scope that contains each lane and another thread."""
        blocks, others = lanes // self._threads_per_block, threads // self._threads_per_block - self._first_block
        levels = np.where(blocks == others, 0, DEVICE_LEVEL)
        if self._cluster_blocks > 1:
            inside = (others >= 0) & (others < self._cluster_of_block.size)
            same = inside & (self._cluster_of_block[np.where(inside, others, 0)] == self._cluster_of_block[blocks])
            levels = np.where(same, np.minimum(levels, 1), levels)
        return levels


def _merge_times(mappings: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the latest time of each key."""
    merged: dict[int, int] = {}
    for times in mappings:
        for key, time in times.items():
            merged[key] = max(time, merged.get(key, 0))
    return merged


def _select_lanes(values: Any, lanes: Array) -> Array:
    """Return a value of each lane."""
    return values[lanes] if isinstance(values, np.ndarray) else np.full(lanes.size, values)
