"""Happens-before order of accesses: by barriers, by `__syncwarp`, and by fences with atomics between blocks.

Time is the number of the next event. An access is an event: event `e` happened before a barrier that was passed at
time `t` if `e < t`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.executor.state.batch import BlockBatch

Array = npt.NDArray[Any]

_NEVER = np.iinfo(np.int64).max
# The number of the first event: a time of _FIRST includes no event.
_FIRST = 1


# The number of fences kept per group: a thread may publish several values one after the other, such as a block's sum
# and then its prefix sum.
_MAX_FENCES = 4

# The most `__syncwarp` calls by which lanes can be ahead of the others of their warp.
_MAX_PENDING_SYNCS = 32
_ALL_LANES = (1 << WARP) - 1


class _FenceHistory:
    """The times of fences by groups of threads, and up to which event each fence covers the group's accesses.

    A group is a thread, a warp or a block. The last few fences are kept, newest first.
    """

    def __init__(self, threads: int, size: int) -> None:
        self.group_size = size
        self._fence_times = np.zeros((_MAX_FENCES, threads // size), np.int64)
        self._event_limits = np.full_like(self._fence_times, _FIRST)

    def add(self, threads: Array, time: int, event_limits: Array) -> None:
        groups, inverse = np.unique(threads // self.group_size, return_inverse=True)
        latest = np.full(groups.size, _FIRST, np.int64)
        np.maximum.at(latest, inverse, event_limits)
        # A fence that covers no more events than an earlier one must not replace the earlier time.
        new = latest > self._event_limits[0, groups]
        groups = groups[new]
        for kept, newest in ((self._event_limits, latest[new]), (self._fence_times, time)):
            kept[1:, groups] = kept[:-1, groups]
            kept[0, groups] = newest

    def find_fence_time(self, threads: Array, events: Array) -> Array:
        """Return the time of the first fence that covers each event."""
        groups = threads // self.group_size
        times = np.full(groups.size, _NEVER)
        for fenced, upto in zip(self._fence_times, self._event_limits, strict=True):
            times = np.where(upto[groups] > events, fenced[groups], times)
        return times


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
    has_acquired : bool
        Whether it has read data published by another block; from then on all earlier events of other blocks count.
    """

    thread: int
    time: int
    threads_per_block: int
    barrier: int
    warp: Array
    has_acquired: bool

    def includes(self, threads: Array, events: Array) -> Array:
        """Return whether events of some threads happen before."""
        in_block = threads // self.threads_per_block == self.thread // self.threads_per_block
        in_warp = threads // WARP == self.thread // WARP
        included: Array = in_block & (events < self.barrier)
        included |= in_warp & (events < self.warp[threads % WARP])
        included |= (threads == self.thread) & (events < self.time)
        if self.has_acquired:
            included |= ~in_block & (events < self.time)
        return included


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

    def arrive(self, time: int, lanes: Array) -> None:
        """Record an arrival of lanes."""
        self.arrival_counts[lanes] += 1
        self._times[self.arrival_counts[lanes] % 3, lanes] = time

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
        self._fence_histories: list[_FenceHistory] = []
        # For each thread, the time of its first fence: its own, or that of a thread it has since synchronized with.
        self._fence_times: Array | None = None

    def batch_begins(self, batch: BlockBatch) -> None:
        """Reset the state for blocks that have passed no barrier."""
        geometry = batch.geometry
        self._threads_per_block = geometry.lanes_per_block
        self._thread_count = math.prod(batch.grid) * self._threads_per_block
        self.first_thread = batch.first * self._threads_per_block
        self._shape = (geometry.blocks, self._threads_per_block)
        self._barrier = np.full(geometry.blocks, _FIRST, np.int64)
        self._warp_time = np.full(geometry.lanes, _FIRST, np.int64)
        self._access_times = np.full(geometry.lanes, _FIRST, np.int64)
        self._warp_clocks: Array | None = None
        # Vector clocks by mbarriers: of each lane over the lanes of its cluster, and of the lanes that arrived in each
        # phase of an mbarrier.
        self._cluster_clocks: Array | None = None
        self._phases: dict[int, Array] = {}
        # The cluster of each block, and the index of its first lane in a vector clock over the cluster.
        self._cluster_of_block = batch.cluster_of_block
        self._cluster_starts = batch.rank_of_block * self._threads_per_block
        self._lanes_per_cluster = batch.cluster_blocks * self._threads_per_block
        self._cluster_times = _ClusterTimes(geometry.lanes) if batch.cluster_blocks > 1 else None
        self._thread_bits = _warp_bits(geometry.thread_mask.bits)
        self._acquire_times: Array | None = None
        self._waiting: dict[tuple[int, int], list[_PartialSync]] = {}
        self.has_barriers = False
        self.has_warp_times = False

    def barrier(self, time: int, mask: LaneMask) -> Array:
        """Record a barrier, and return for each block of the batch whether it passed, as bool."""
        passed: Array = np.any(mask.bits.reshape(self._shape), axis=1)
        self._barrier[passed] = time
        self._waiting.clear()
        self.has_barriers = True
        if self._acquire_times is not None:
            rows = self._acquire_times.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        if self._fence_times is not None:
            fence_times = self._fence_times[self.first_thread : self.first_thread + mask.bits.size].reshape(self._shape)
            met = passed & (fence_times < _NEVER).any(axis=1)
            fence_times[met] = np.minimum(fence_times[met], time)
        if self._cluster_times is not None:
            rows = self._cluster_times.pass_counts.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        if self._cluster_clocks is not None:
            clocks = self._cluster_clocks.reshape(*self._shape, self._lanes_per_cluster)
            clocks[passed] = clocks[passed].max(axis=1, keepdims=True)
        return passed

    def cluster_arrives(self, time: int, mask: LaneMask) -> None:
        """Record an arrival of lanes at their clusters' barriers."""
        self.has_warp_times = True
        if self._cluster_times is not None:
            self._cluster_times.arrive(time, mask.lanes)

    def cluster_passes(self, mask: LaneMask) -> None:
        """Record that lanes pass their clusters' barriers."""
        if self._cluster_times is not None:
            self._cluster_times.pass_counts[mask.lanes] = self._cluster_times.arrival_counts[mask.lanes]

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
        if self._fence_times is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            fence_times = self._fence_times[self.first_thread + lanes]
            fenced = np.zeros(lanes.size, bool)
            np.logical_or.at(fenced, group, fence_times < _NEVER)
            self._fence_times[self.first_thread + lanes] = np.where(
                fenced[group], np.minimum(fence_times, time), fence_times
            )
        if self._acquire_times is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            latest = np.zeros(lanes.size, np.int64)
            np.maximum.at(latest, group, self._acquire_times[lanes])
            self._acquire_times[lanes] = latest[group]

    def _synchronize(self, time: int, lanes: Array, warps: Array, groups: Array) -> None:
        """Merge the vector clocks of the lanes of each group; a group is a part of a warp.

        From the first call on, each lane has a vector clock over the lanes of its warp.
        """
        if self._warp_clocks is None:
            # So far only full warps have synchronized.
            self._warp_clocks = np.repeat(self._warp_time.reshape(-1, WARP), WARP, axis=0)
        _, group = np.unique((warps << WARP) | groups, return_inverse=True)
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
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
            partial.join(arriving, self._warp_clocks[arriving])
            if not int(expected[selected][0]) & ~partial.arrived:
                waiting.remove(partial)
                if not waiting:
                    del self._waiting[warp, named]

    def arrive_at_phase(self, time: int, phase: int, lane: int) -> None:
        """Record an arrival of a lane in a phase of an mbarrier, and merge its clock into the phase's."""
        if self._cluster_clocks is None:
            self._cluster_clocks = np.full((self._warp_time.size, self._lanes_per_cluster), _FIRST, np.int64)
        self.has_warp_times = True
        clock = self._cluster_clocks[lane]
        base = self._cluster_starts[lane // self._threads_per_block]
        clock[base + lane % self._threads_per_block] = time
        first = lane // WARP * WARP
        warp = self._warp_time[first : first + WARP] if self._warp_clocks is None else self._warp_clocks[lane]
        start = base + first % self._threads_per_block
        clock[start : start + WARP] = np.maximum(clock[start : start + WARP], warp)
        previous = self._phases.get(phase)
        self._phases[phase] = clock.copy() if previous is None else np.maximum(previous, clock)

    def pass_phase(self, phase: int, lane: int) -> None:
        """Record that a lane passes a phase of an mbarrier: it is ordered after all arrivals in it."""
        if self._cluster_clocks is not None and phase in self._phases:
            np.maximum(self._cluster_clocks[lane], self._phases[phase], out=self._cluster_clocks[lane])

    def fence(self, time: int, mask: LaneMask) -> None:
        """Record a fence of device scope.

        It covers the thread's own accesses and those that its last barriers order before it.
        """
        if not self._fence_histories:
            self._fence_histories = [
                _FenceHistory(self._thread_count, size) for size in (1, WARP, self._threads_per_block)
            ]
        if self._fence_times is None:
            self._fence_times = np.full(self._thread_count, _NEVER)
        lanes = mask.lanes
        threads = self.first_thread + lanes
        warp_time = self._warp_time[lanes]
        if self._warp_clocks is not None:
            others = self.first_thread + (lanes // WARP * WARP)[:, None] + np.arange(WARP)
            self._fence_histories[0].add(others.ravel(), time, self._warp_clocks[lanes].ravel())
            warp_time = np.full_like(warp_time, _FIRST)
        covered = (self._access_times[lanes], warp_time, self._barrier[lanes // self._threads_per_block])
        shows = np.maximum.reduce(covered) > _FIRST  # the fence of a thread that has done nothing yet shows nothing
        if self._warp_clocks is not None:
            shows |= (self._warp_clocks[lanes] > _FIRST).any(axis=1)
        self._fence_times[threads[shows]] = np.minimum(self._fence_times[threads[shows]], time)
        for release, upto in zip(self._fence_histories, covered, strict=True):
            release.add(threads, time, upto)

    def record_access(self, event: int, lanes: Array) -> None:
        """Record an access that later fences of the lanes cover."""
        self._access_times[lanes] = event + 1

    def acquire(self, event: int, lanes: Array) -> None:
        """Record an atomic operation on global memory: earlier fences of others happen before what follows it."""
        if self._fence_histories:
            if self._acquire_times is None:
                self._acquire_times = np.zeros(self._warp_time.size, np.int64)
            self._acquire_times[lanes] = event

    def build_clock(self, lane: int, time: int) -> VectorClock:
        """Return the events that happen before the current point of a lane."""
        if self._warp_clocks is not None:
            warp = self._warp_clocks[lane].copy()
        else:
            first = lane // WARP * WARP
            warp = self._warp_time[first : first + WARP].copy()
        acquired = self._acquire_times is not None and bool(self._acquire_times[lane])
        barrier = int(self._barrier[lane // self._threads_per_block])
        return VectorClock(self.first_thread + lane, time, self._threads_per_block, barrier, warp, acquired)

    def are_ordered_in_block(self, lanes: Array, threads: Array, events: Array) -> Array:
        """Return whether a barrier or `__syncwarp` orders events of other threads before the current point of lanes."""
        block = lanes // self._threads_per_block
        theirs = threads - self.first_thread
        ordered: Array = (theirs // self._threads_per_block == block) & (events < self._barrier[block])
        if self.has_warp_times:
            neighbors = np.flatnonzero(theirs // WARP == lanes // WARP)
            mine, others = lanes[neighbors], theirs[neighbors]
            times = self._warp_time[mine] if self._warp_clocks is None else self._warp_clocks[mine, others % WARP]
            ordered[neighbors] |= events[neighbors] < times
        if self._cluster_clocks is not None:
            inside = np.flatnonzero(self._share_cluster(lanes, theirs))
            other = theirs[inside]
            times = self._cluster_clocks[
                lanes[inside], self._cluster_starts[other // self._threads_per_block] + other % self._threads_per_block
            ]
            ordered[inside] |= events[inside] < times
        if self._cluster_times is not None:
            inside = np.flatnonzero(self._share_cluster(lanes, theirs))
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

    def are_ordered_before(self, lanes: Array, threads: Array, events: Array, *, atomic: bool) -> Array:
        """Return whether events of other threads happen before the current point of lanes.

        Parameters
        ----------
        lanes : array of int
            Lanes of the running batch.
        threads, events : array of int
            Thread and event of an earlier access, one for each lane.
        atomic : bool
            Whether the earlier accesses are atomic operations.
        """
        ordered = self.are_ordered_in_block(lanes, threads, events)
        if self._acquire_times is not None:
            is_remote = (threads - self.first_thread) // self._threads_per_block != lanes // self._threads_per_block
            ordered |= is_remote & (self._release_times(threads, events, atomic) <= self._acquire_times[lanes])
        return ordered

    def _release_times(self, threads: Array, events: Array, atomic: bool) -> Array:
        """Return the time from which an atomic operation of another block is ordered after each event."""
        times = [release.find_fence_time(threads, events) for release in self._fence_histories]
        if atomic and self._fence_times is not None:
            # In the pattern "write, fence, atomic" the other block reads the atomic operation itself.
            times.append(np.where(self._fence_times[threads] <= events, events, _NEVER))
        earliest: Array = np.minimum.reduce(times)
        return earliest


def _lane_bits(lanes: Array) -> int:
    """Return lanes of one warp as a bit mask."""
    return sum(1 << lane for lane in (lanes % WARP).tolist())


def _warp_bits(bits: Array) -> Array:
    """Return the lanes of each warp as a bit mask."""
    words: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").ravel().astype(np.int64)
    return words
