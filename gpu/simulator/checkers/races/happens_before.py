"""Happens-before order of accesses: by barriers, by `__syncwarp`, and by synchronization through memory.

Time is the number of the next event. An access is an event: event `e` happened before a barrier that was passed at
time `t` if `e < t`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.checkers.races.synchronization import Synchronization
from gpu.simulator.checkers.races.vector_clocks import AcquiredClock, ClockSnapshot, build_snapshot
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import PhaseChange
from gpu.simulator.ir import Scope

Array = npt.NDArray[Any]

_NEVER = np.iinfo(np.int64).max
# The number of the first event: a time of _FIRST includes no event.
_FIRST = 1


# The most `__syncwarp` calls by which lanes can be ahead of the others of their warp.
_MAX_PENDING_SYNCS = 32
_ALL_LANES = (1 << WARP) - 1


@dataclass(frozen=True)
class VectorClock:
    """The events that happen before the current point of a thread. Threads are numbered over the grid.

    Parameters
    ----------
    thread, time : int
        The thread and its current time.
    threads_per_block : int
        Threads per block.
    barrier : int
        The time of the last barrier of its block.
    warp : array of int64
        For each lane of its warp, the time up to which that lane's events are ordered before.
    acquired : AcquiredClock or None
        What it has acquired from other threads.
    """

    thread: int
    time: int
    threads_per_block: int
    barrier: int
    warp: Array
    acquired: AcquiredClock | None

    def includes(self, threads: Array, events: Array) -> Array:
        """Return whether events of some threads happen before."""
        in_block = threads // self.threads_per_block == self.thread // self.threads_per_block
        in_warp = threads // WARP == self.thread // WARP
        included: Array = in_block & (events < self.barrier)
        included |= in_warp & (events < self.warp[threads % WARP])
        included |= (threads == self.thread) & (events < self.time)
        if self.acquired is not None:
            included |= self.acquired.includes(threads, events, self.threads_per_block)
        return included

    def may_include(self, threads: Array, events: Array) -> Array:
        """Return whether events of some threads are earlier ones of the same block, which a barrier would order."""
        in_block: Array = threads // self.threads_per_block == self.thread // self.threads_per_block
        return in_block & (events < self.time)


class _PartialSync:
    """Lanes of a warp at a `__syncwarp` that wait for the other lanes of their mask, which come from another branch."""

    def __init__(self) -> None:
        self.arrived = 0
        self.lanes: list[int] = []
        self.clock = np.zeros(WARP, np.int64)

    def join(self, lanes: Array, clocks: Array) -> None:
        """Add lanes and merge their clocks."""
        self.arrived |= _lane_bits(lanes)
        self.lanes += lanes.tolist()
        self.clock = np.maximum(self.clock, clocks.max(axis=0))


class _ClusterTimes:
    """The arrival times of lanes at their cluster's barriers, and the number of barriers that each lane has passed."""

    def __init__(self, lanes: int) -> None:
        self.arrival_counts = np.zeros(lanes, np.int64)
        self.pass_counts = np.zeros(lanes, np.int64)
        # For the last three barriers: no lane is more than one ahead of another.
        self._times = np.full((3, lanes), _FIRST, np.int64)

    def arrive(self, times: int | Array, lanes: Array) -> None:
        """Record an arrival of lanes; their events before a time, one for all or one per lane, become ordered."""
        self.arrival_counts[lanes] += 1
        self._times[self.arrival_counts[lanes] % 3, lanes] = times

    def find_times(self, lane: int, others: Array) -> Array:
        """Return the times up to which events of `others` happen before the current point of a lane."""
        passed = self.pass_counts[lane]
        if passed == 0:
            return np.zeros(others.size, np.int64)
        times: Array = np.where(self.arrival_counts[others] < passed, _NEVER, self._times[passed % 3, others])
        return times

    def are_ordered_before(self, lanes: Array, others: Array, events: Array) -> Array:
        """Return whether events of `others` happen before the current point of `lanes`.

        A lane that did not arrive at a barrier that others passed has exited before it.
        """
        passed = self.pass_counts[lanes]
        before_arrival = events < self._times[passed % 3, others]
        ordered: Array = (passed > 0) & (before_arrival | (self.arrival_counts[others] < passed))
        return ordered


class HappensBefore:
    """The happens-before relation between earlier accesses and those of the running batch.

    Threads are numbered over the grid.
    """

    def __init__(self) -> None:
        self.synchronization = Synchronization()
        # The times of the last barriers of blocks, by the first block of their batch.
        self._barriers_of_batches: dict[int, Array] = {}

    def batch_begins(self, batch: BlockBatch) -> None:
        """Reset the state for blocks that have passed no barrier."""
        geometry = batch.geometry
        self._threads_per_block = geometry.lanes_per_block
        self.first_thread = batch.first * self._threads_per_block
        self._shape = (geometry.blocks, self._threads_per_block)
        self._barrier = self._barriers_of_batches[batch.first] = np.full(geometry.blocks, _FIRST, np.int64)
        self._warp_time = np.full(geometry.lanes, _FIRST, np.int64)
        self._warp_clocks: Array | None = None
        # Vector clocks by mbarriers: of each lane over the lanes of its cluster, and of the lanes that arrived in each
        # phase of an mbarrier.
        self._cluster_clocks: Array | None = None
        self._phases: dict[int, Array] = {}
        # The clocks of phases that lanes have passed by relaxed operations, by lane and phase.
        self._unfenced_passes: dict[int, dict[int, Array]] = {}
        # The cluster of each block, and the index of its first lane in a vector clock over the cluster.
        self._cluster_of_block = batch.cluster_of_block
        self._cluster_starts = batch.rank_of_block * self._threads_per_block
        self._lanes_per_cluster = batch.cluster_blocks * self._threads_per_block
        self._cluster_times = _ClusterTimes(geometry.lanes) if batch.cluster_blocks > 1 else None
        self._thread_bits = _warp_bits(geometry.thread_mask.bits)
        self.synchronization.batch_begins(batch, math.prod(batch.grid))
        self._waiting: dict[tuple[int, int], list[_PartialSync]] = {}
        # The time of each lane's last relaxed arrival at a cluster barrier or an mbarrier.
        self._relaxed_arrivals: dict[int, int] = {}
        self.has_barriers = False
        self.has_warp_times = False

    def barrier(self, time: int, mask: LaneMask) -> Array:
        """Record a barrier, and return for each block of the batch whether it passed, as bool."""
        passed: Array = np.any(mask.bits.reshape(self._shape), axis=1)
        self._barrier[passed] = time
        self._waiting.clear()
        self.has_barriers = True
        self.synchronization.join_blocks(passed)
        if self._cluster_times is not None:
            rows = self._cluster_times.pass_counts.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        if self._cluster_clocks is not None:
            clocks = self._cluster_clocks.reshape(*self._shape, self._lanes_per_cluster)
            clocks[passed] = clocks[passed].max(axis=1, keepdims=True)
        return passed

    def cluster_arrives(self, time: int, mask: LaneMask, *, is_relaxed: bool) -> None:
        """Record an arrival of lanes at their clusters' barriers; a relaxed one orders what a fence precedes."""
        self.has_warp_times = True
        if is_relaxed:
            self._relaxed_arrivals.update(dict.fromkeys(mask.lanes.tolist(), time))
        if self._cluster_times is not None:
            lanes = mask.lanes
            times = self.synchronization.find_fence_times(lanes, "cluster") if is_relaxed else time
            self._cluster_times.arrive(times, lanes)

    def cluster_passes(self, mask: LaneMask) -> None:
        """Record that lanes pass their clusters' barriers."""
        if self._cluster_times is not None:
            self._cluster_times.pass_counts[mask.lanes] = self._cluster_times.arrival_counts[mask.lanes]
            self.synchronization.join_cluster(mask.lanes)

    def find_relaxed_operation(self, lane: int, thread: int, event: int) -> Literal["arrival", "wait"] | None:
        """Return which operation at a barrier does not order an event of a thread before a lane, as it is relaxed."""
        if lane in self._unfenced_passes:
            return "wait"
        return "arrival" if self._relaxed_arrivals.get(thread - self.first_thread, 0) > event else None

    def warp_barrier(self, time: int, mask: LaneMask, member_mask: Any, exited_mask: LaneMask | None) -> None:
        """Record a `__syncwarp`.

        Lanes may arrive at one `__syncwarp` from several branches, which the simulator executes one after the other:
        what earlier lanes did before they arrived happens before what later lanes do after it.

        Parameters
        ----------
        time : int
            The current time.
        mask : LaneMask
            The lanes that call it.
        member_mask : int or array of int
            The mask argument, one for all lanes or one per lane.
        exited_mask : LaneMask or None
            The lanes that have exited; None if there are none.
        """
        self.has_warp_times = True
        lanes = mask.lanes
        warps = lanes // WARP
        masks = (
            member_mask[lanes].astype(np.int64) & _ALL_LANES
            if isinstance(member_mask, np.ndarray)
            else int(member_mask) & _ALL_LANES
        )
        groups = _warp_bits(mask.bits)[warps] & masks
        if self._warp_clocks is None and (groups == self._thread_bits[warps]).all():
            self._warp_time[lanes] = time
        else:
            self._synchronize(time, lanes, warps, groups)
            alive = self._thread_bits if exited_mask is None else self._thread_bits & ~_warp_bits(exited_mask.bits)
            expected = alive[warps] & masks
            incomplete = expected != groups
            if self._waiting or incomplete.any():
                self._match_partial(lanes, np.broadcast_to(masks, lanes.shape), expected, incomplete)
        if self._cluster_clocks is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            merged = np.zeros((group.max() + 1, self._lanes_per_cluster), np.int64)
            np.maximum.at(merged, group, self._cluster_clocks[lanes])
            self._cluster_clocks[lanes] = merged[group]
        self.synchronization.join_lanes(lanes, (warps << WARP) | groups)

    def _synchronize(self, time: int, lanes: Array, warps: Array, groups: Array) -> None:
        """Merge the vector clocks of the lanes of each group; a group is a part of a warp.

        From the first call on, each lane has a vector clock over the lanes of its warp.
        """
        if self._warp_clocks is None:
            # So far only full warps have synchronized.
            self._warp_clocks = np.repeat(self._warp_time.reshape(-1, WARP), WARP, axis=0)
        _, group = np.unique((warps << WARP) | groups, return_inverse=True)
        order = np.argsort(group, kind="stable")
        first = np.diff(group[order], prepend=-1).nonzero()[0]
        merged = np.maximum.reduceat(self._warp_clocks[lanes[order]], first, axis=0)
        merged[group, lanes % WARP] = time
        self._warp_clocks[lanes] = merged[group]

    def _match_partial(self, lanes: Array, masks: Array, expected: Array, incomplete: Array) -> None:
        """Synchronize lanes with lanes of their mask that arrived earlier; if some are still missing, add them.

        Parameters
        ----------
        lanes : array of int
            The lanes that arrive.
        masks, expected : array of int
            For each of them its mask argument, and the lanes of the mask that have not exited, as bits.
        incomplete : array of bool
            Whether some of the expected lanes do not arrive now.
        """
        assert self._warp_clocks is not None
        warps = lanes // WARP
        for warp, named in sorted(set(zip(warps.tolist(), masks.tolist(), strict=True))):
            selected = (warps == warp) & (masks == named)
            arriving = lanes[selected]
            waiting = self._waiting.get((warp, named), [])
            partial = next((each for each in waiting if not each.arrived & _lane_bits(arriving)), None)
            if partial is None:
                if not incomplete[selected].any():
                    continue
                partial = _PartialSync()
                waiting = self._waiting.setdefault((warp, named), [])
                waiting.append(partial)
                del waiting[:-_MAX_PENDING_SYNCS]
            clocks = self._warp_clocks[arriving]
            self._warp_clocks[partial.lanes] = np.maximum(self._warp_clocks[partial.lanes], clocks.max(axis=0))
            self._warp_clocks[arriving] = np.maximum(clocks, partial.clock)
            together = np.array([*partial.lanes, *arriving.tolist()])
            self.synchronization.join_lanes(together, np.zeros_like(together))
            partial.join(arriving, self._warp_clocks[arriving])
            if not int(expected[selected][0]) & ~partial.arrived:
                waiting.remove(partial)
                if not waiting:
                    del self._waiting[warp, named]

    def arrive_at_phase(self, time: int, change: PhaseChange) -> None:
        """Record an arrival of a lane in a phase of an mbarrier, and merge its clock into the phase's.

        If a copy of the lane arrives, the lane itself does not know that. A relaxed arrival makes known what the lane's
        last fence covers.
        """
        phase, lane, is_relaxed = change.phase, change.lane, change.is_relaxed
        if self._cluster_clocks is None:
            self._cluster_clocks = np.full((self._warp_time.size, self._lanes_per_cluster), _FIRST, np.int64)
        self.has_warp_times = True
        is_own = not (change.completes_copy or is_relaxed)
        if is_relaxed:
            self._relaxed_arrivals[lane] = time
        clock = self._cluster_clocks[lane] if is_own else self._cluster_clocks[lane].copy()
        base = self._cluster_starts[lane // self._threads_per_block]
        clock[base + lane % self._threads_per_block] = time
        first = lane // WARP * WARP
        warp = self._warp_time[first : first + WARP] if self._warp_clocks is None else self._warp_clocks[lane]
        start = base + first % self._threads_per_block
        clock[start : start + WARP] = np.maximum(clock[start : start + WARP], warp)
        if is_relaxed:
            np.minimum(clock, self.synchronization.find_fence_times(np.array([lane]), "block")[0], out=clock)
        if not is_relaxed or clock.any():
            self.synchronization.arrive_at_phase(phase, lane)
        previous = self._phases.get(phase)
        self._phases[phase] = clock.copy() if previous is None else np.maximum(previous, clock)

    def pass_phase(self, change: PhaseChange) -> None:
        """Record that a lane passes a phase of an mbarrier: it is ordered after all arrivals in it.

        If it passes by a relaxed operation, only after its next fence.
        """
        phase, lane = change.phase, change.lane
        if self._cluster_clocks is None or phase not in self._phases:
            return
        if change.is_relaxed:
            self._unfenced_passes.setdefault(lane, {})[phase] = self._phases[phase]
        else:
            np.maximum(self._cluster_clocks[lane], self._phases[phase], out=self._cluster_clocks[lane])
            self.synchronization.pass_phase(phase, lane)

    def _acquire_phases(self, lanes: Array) -> None:
        """Order lanes after the arrivals in phases that they have passed by relaxed operations."""
        for lane in [lane for lane in lanes.tolist() if lane in self._unfenced_passes]:
            assert self._cluster_clocks is not None
            for phase, clock in self._unfenced_passes.pop(lane).items():
                np.maximum(self._cluster_clocks[lane], clock, out=self._cluster_clocks[lane])
                self.synchronization.pass_phase(phase, lane)

    def fence(self, time: int, mask: LaneMask, scope: Scope, order: str = "") -> None:
        """Record a fence, with its order if it only acquires or only releases.

        It covers the thread's own accesses and all those that happen before it.
        """
        lanes = mask.lanes
        self.synchronization.has_fences = True
        if order != "release":
            self.synchronization.acquire(time, lanes, scope)
            if self._unfenced_passes:
                self._acquire_phases(lanes)
        if order == "acquire":
            return
        self.synchronization.fence(
            time,
            lanes,
            scope,
            self._barrier[lanes // self._threads_per_block],
            (self._warp_time if self._warp_clocks is None else self._warp_clocks)[lanes],
            self._find_cluster_times if self._knows_cluster else None,
        )

    def take_snapshot(self, lane: int, time: int) -> ClockSnapshot:
        """Return what a lane knows."""
        return build_snapshot(
            (self.first_thread + lane) // self._threads_per_block,
            int(self._barrier[lane // self._threads_per_block]),
            self.first_thread + lane,
            time,
            int(self._warp_time[lane]) if self._warp_clocks is None else self._warp_clocks[lane],
            self._find_cluster_times(lane) if self._knows_cluster else {},
            self.synchronization.find_acquired_clocks(lane),
        )

    @property
    def _knows_cluster(self) -> bool:
        """Whether lanes may know events of other lanes by cluster barriers or mbarriers."""
        return self._cluster_clocks is not None or self._cluster_times is not None

    def _find_cluster_times(self, lane: int) -> dict[int, int]:
        """Return the times up to which a lane knows events of threads of its cluster, by thread."""
        others = np.arange(self._warp_time.size)
        others = others[self._share_cluster(np.full(others.size, lane), others)]
        times = np.zeros(others.size, np.int64)
        if self._cluster_clocks is not None:
            places = self._cluster_starts[others // self._threads_per_block] + others % self._threads_per_block
            times = np.maximum(times, self._cluster_clocks[lane, places])
        if self._cluster_times is not None:
            times = np.maximum(times, self._cluster_times.find_times(lane, others))
        known = times > _FIRST
        return dict(zip((self.first_thread + others[known]).tolist(), times[known].tolist(), strict=True))

    def build_clock(self, lane: int, time: int) -> VectorClock:
        """Return the events that happen before the current point of a lane."""
        if self._warp_clocks is not None:
            warp = self._warp_clocks[lane].copy()
        else:
            first = lane // WARP * WARP
            warp = self._warp_time[first : first + WARP].copy()
        acquired, _ = self.synchronization.find_acquired_clocks(lane)
        barrier = int(self._barrier[lane // self._threads_per_block])
        return VectorClock(self.first_thread + lane, time, self._threads_per_block, barrier, warp, acquired)

    @property
    def has_mbarriers(self) -> bool:
        """Whether threads of the running batch have arrived at mbarriers."""
        return any(phase >= 0 for phase in self._phases)  # those of named barriers are negative

    def are_separated_by_barrier(self, thread: int, event: int, other: int, later_event: int) -> bool:
        """Return whether the last barrier of a block separates events of two of its threads."""
        block = thread // self._threads_per_block
        if block != other // self._threads_per_block:
            return False
        return any(
            event < int(times[block - first]) <= later_event
            for first, times in self._barriers_of_batches.items()
            if 0 <= block - first < times.size
        )

    def is_known(self, lane: int, thread: int, event: int) -> bool:
        """Return whether an event of a thread certainly happens before the current point of a lane.

        If False, it may still happen before, as `are_ordered_before` tells.
        """
        theirs, block = thread - self.first_thread, lane // self._threads_per_block
        if theirs // self._threads_per_block == block and event < self._barrier[block]:
            return True
        if self.has_warp_times and theirs // WARP == lane // WARP:
            times = self._warp_time if self._warp_clocks is None else self._warp_clocks[:, theirs % WARP]
            if event < times[lane]:
                return True
        if self._cluster_clocks is not None and self._knows_by_mbarrier(lane, theirs, event):
            return True
        return self.synchronization.is_known(lane, thread, event)

    def _knows_by_mbarrier(self, lane: int, other: int, event: int) -> bool:
        """Return whether mbarriers order an event of another lane of the cluster before the current point of a lane."""
        assert self._cluster_clocks is not None
        block, of_block = other // self._threads_per_block, self._cluster_of_block
        if not 0 <= block < of_block.size or of_block[block] != of_block[lane // self._threads_per_block]:
            return False
        return bool(event < self._cluster_clocks[lane, self._cluster_starts[block] + other % self._threads_per_block])

    def is_ordered_before(self, lane: int, thread: int, event: int) -> bool:
        """Return whether a weak access of a thread happens before a weak access of a lane at its current point.

        For one lane, this costs less than `are_ordered_before`.
        """
        if self.is_known(lane, thread, event):
            return True
        if self._cluster_times is None and not self.synchronization.has_critical_sections:
            return False
        one = (np.array([lane]), np.array([thread]), np.array([event]))
        return bool(self.are_ordered_before(*one, is_strong=False, are_strong=np.zeros(1, bool))[0])

    def are_ordered_in_block(self, lanes: Array, threads: Array, events: Array) -> Array:
        """Return whether a barrier or `__syncwarp` orders events of other threads before the current point of lanes."""
        block = lanes // self._threads_per_block
        theirs = threads - self.first_thread
        ordered: Array = (theirs // self._threads_per_block == block) & (events < self._barrier[block])
        if self.has_warp_times:
            neighbors = (theirs // WARP == lanes // WARP).nonzero()[0]
            mine, others = lanes[neighbors], theirs[neighbors]
            times = self._warp_time[mine] if self._warp_clocks is None else self._warp_clocks[mine, others % WARP]
            ordered[neighbors] |= events[neighbors] < times
        if (self._cluster_clocks is None and self._cluster_times is None) or ordered.all():
            return ordered
        if self._cluster_clocks is not None:
            inside = self._share_cluster(lanes, theirs).nonzero()[0]
            other = theirs[inside]
            times = self._cluster_clocks[
                lanes[inside], self._cluster_starts[other // self._threads_per_block] + other % self._threads_per_block
            ]
            ordered[inside] |= events[inside] < times
        if self._cluster_times is not None:
            inside = self._share_cluster(lanes, theirs).nonzero()[0]
            ordered[inside] |= self._cluster_times.are_ordered_before(lanes[inside], theirs[inside], events[inside])
        return ordered

    def _share_cluster(self, lanes: Array, other_lanes: Array) -> Array:
        """Return whether lanes of the batch and other threads, numbered as lanes of the batch, share a cluster."""
        blocks = other_lanes // self._threads_per_block
        inside = (blocks >= 0) & (blocks < self._cluster_of_block.size)
        shared: Array = inside & (
            self._cluster_of_block[np.where(inside, blocks, 0)]
            == self._cluster_of_block[lanes // self._threads_per_block]
        )
        return shared

    def are_ordered_before(
        self, lanes: Array, threads: Array, events: Array, *, is_strong: bool, are_strong: Array
    ) -> Array:
        """Return whether events of other threads happen before the current point of lanes.

        Parameters
        ----------
        lanes : array of int
            Lanes of the running batch.
        threads, events : array of int
            Thread and event of an earlier access, one for each lane.
        is_strong : bool
            Whether the current access is strong.
        are_strong : array of bool
            Whether the earlier accesses are strong.
        """
        ordered = self.are_ordered_in_block(lanes, threads, events)
        rest = (~ordered).nonzero()[0]
        if rest.size:
            ordered[rest] = self.synchronization.are_ordered_before(
                lanes[rest], threads[rest], events[rest], is_strong=is_strong, are_strong=are_strong[rest]
            )
        return ordered


def _lane_bits(lanes: Array) -> int:
    """Return lanes of one warp as a bit mask."""
    return sum(1 << lane for lane in (lanes % WARP).tolist())


def _warp_bits(bits: Array) -> Array:
    """Return the lanes of each warp as a bit mask."""
    words: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").ravel().astype(np.int64)
    return words
