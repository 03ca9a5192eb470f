"""What orders the accesses of two threads: barriers, `__syncwarp`, and a fence with an atomic between blocks.

Time is the number of the next event; an access is an event, so that an access of event `e` came before a barrier that
was passed at time `t` where `e < t`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.warp import WARP

Array = npt.NDArray[Any]

_NEVER = np.iinfo(np.int64).max
# The number of the first event: whatever is known up to it is nothing.
_FIRST = 1


# A thread publishes a few things one after the other, such as a block's sum and then that of all blocks before it too.
_KEPT_FENCES = 4

# Lanes come to so many `__syncwarp` ahead of the others of their warp, at most.
_KEPT_MEETINGS = 32
_ALL = (1 << WARP) - 1


class _Release:
    """When a fence made visible what a group of threads (one, a warp, a block) had done, and up to which time.

    The last few are kept, newest first.
    """

    def __init__(self, threads: int, size: int) -> None:
        self.size = size
        self._fenced = np.zeros((_KEPT_FENCES, threads // size), np.int64)
        self._upto = np.full_like(self._fenced, _FIRST)

    def add(self, threads: Array, time: int, upto: Array) -> None:
        groups, inverse = np.unique(threads // self.size, return_inverse=True)
        latest = np.full(groups.size, _FIRST, np.int64)
        np.maximum.at(latest, inverse, upto)
        # A fence that shows no more than an earlier one must not make it later.
        new = latest > self._upto[0, groups]
        groups = groups[new]
        for kept, newest in ((self._upto, latest[new]), (self._fenced, time)):
            kept[1:, groups] = kept[:-1, groups]
            kept[0, groups] = newest

    def time(self, threads: Array, events: Array) -> Array:
        """Return when events became visible first."""
        groups = threads // self.size
        times = np.full(groups.size, _NEVER)
        for fenced, upto in zip(self._fenced, self._upto, strict=True):
            times = np.where(upto[groups] > events, fenced[groups], times)
        return times


@dataclass(frozen=True)
class VectorClock:
    """What a thread of a grid knew to be done at some time. Threads are counted over the grid.

    Parameters
    ----------
    thread, time : int
    per_block : int
        Lanes of a block.
    barrier : int
        When its block came to a barrier last.
    warp : array of int64
        Up to when it knows what each lane of its warp did.
    acquired : bool
        Whether it had read what another block published; what that was is not told.
    """

    thread: int
    time: int
    per_block: int
    barrier: int
    warp: Array
    acquired: bool

    def includes(self, threads: Array, events: Array) -> Array:
        """Whether events of some threads are among it."""
        in_block = threads // self.per_block == self.thread // self.per_block
        in_warp = threads // WARP == self.thread // WARP
        known: Array = in_block & (events < self.barrier)
        known |= in_warp & (events < self.warp[threads % WARP])
        known |= (threads == self.thread) & (events < self.time)
        if self.acquired:
            known |= ~in_block & (events < self.time)
        return known


class _Gathering:
    """Lanes of a warp at one `__syncwarp`, to which the others that they name come from another branch."""

    def __init__(self) -> None:
        self.here = 0
        self.lanes: list[int] = []
        self.known = np.zeros(WARP, np.int64)

    def join(self, lanes: Array, known: Array) -> None:
        """Let lanes come, with what they know."""
        self.here |= _bits(lanes)
        self.lanes += lanes.tolist()
        self.known = np.maximum(self.known, known.max(axis=0))


class _ClusterTimes:
    """When lanes arrived at the barriers of their clusters, and how many barriers each of them has passed."""

    def __init__(self, lanes: int) -> None:
        self.arrivals = np.zeros(lanes, np.int64)
        self.passed = np.zeros(lanes, np.int64)
        # Of three barriers one after the other: no lane is more than one ahead of another.
        self._times = np.full((3, lanes), _FIRST, np.int64)

    def arrive(self, time: int, lanes: Array) -> None:
        """Take note of lanes that arrive once more."""
        self.arrivals[lanes] += 1
        self._times[self.arrivals[lanes] % 3, lanes] = time

    def before(self, lanes: Array, others: Array, events: Array) -> Array:
        """Whether events of others are ordered before what lanes do now: a lane that did not arrive had ended."""
        passed = self.passed[lanes]
        came = events < self._times[passed % 3, others]
        ordered: Array = (passed > 0) & (came | (self.arrivals[others] < passed))
        return ordered


class HappensBefore:
    """Knows which earlier accesses are ordered before those of the batch that runs.

    Threads are counted over the grid.
    """

    def __init__(self) -> None:
        self._releases: list[_Release] = []
        # Of each thread, from when on it has a fence behind it: its own, or one of a thread that it has met since.
        self._fenced: Array | None = None

    def batch_begins(self, batch: BlockBatch) -> None:
        """Start with blocks that have passed no barrier."""
        geometry = batch.geometry
        self._per_block = geometry.lanes_per_block
        self._threads = math.prod(batch.grid) * self._per_block
        self.first_thread = batch.first * self._per_block
        self._shape = (geometry.blocks, self._per_block)
        self._barrier = np.full(geometry.blocks, _FIRST, np.int64)
        self._warp_time = np.full(geometry.lanes, _FIRST, np.int64)
        self._touched = np.full(geometry.lanes, _FIRST, np.int64)
        self._known: Array | None = None
        # Of each lane, up to when it knows what each lane of its block did by barriers in memory, and what lanes knew
        # that arrived in a phase of these.
        self._of_block: Array | None = None
        self._phases: dict[int, Array] = {}
        # The cluster of each block, and where in what is known of a cluster its lanes begin.
        self._cluster = batch.cluster_of_block
        self._start = batch.rank_of_block * self._per_block
        self._span = batch.cluster_blocks * self._per_block
        self._clusters = _ClusterTimes(geometry.lanes) if batch.cluster_blocks > 1 else None
        self._everyone = _words(geometry.everyone.bits)
        self._acquired: Array | None = None
        self._waiting: dict[tuple[int, int], list[_Gathering]] = {}
        self.has_barriers = False
        self.has_warp_times = False

    def barrier(self, time: int, mask: LaneMask) -> Array:
        """Take note of a barrier and return the blocks that passed it: bool, one a block of the batch."""
        passed: Array = np.any(mask.bits.reshape(self._shape), axis=1)
        self._barrier[passed] = time
        self._waiting.clear()
        self.has_barriers = True
        if self._acquired is not None:
            rows = self._acquired.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        if self._fenced is not None:
            own = self._fenced[self.first_thread : self.first_thread + mask.bits.size].reshape(self._shape)
            met = passed & (own < _NEVER).any(axis=1)
            own[met] = np.minimum(own[met], time)
        if self._clusters is not None:
            rows = self._clusters.passed.reshape(self._shape)
            rows[passed] = rows[passed].max(axis=1, keepdims=True)
        if self._of_block is not None:
            known = self._of_block.reshape(*self._shape, self._span)
            known[passed] = known[passed].max(axis=1, keepdims=True)
        return passed

    def cluster_arrives(self, time: int, mask: LaneMask) -> None:
        """Take note of lanes that arrive at the barrier of their clusters."""
        self.has_warp_times = True
        if self._clusters is not None:
            self._clusters.arrive(time, mask.lanes)

    def cluster_passes(self, mask: LaneMask) -> None:
        """Take note of lanes that know all others of their clusters to have arrived there."""
        if self._clusters is not None:
            self._clusters.passed[mask.lanes] = self._clusters.arrivals[mask.lanes]

    def warp_barrier(self, time: int, mask: LaneMask, named: Any, ended: LaneMask | None) -> None:
        """Take note of a `__syncwarp`; `named` are the lanes that it names, and `ended` those whose threads have.

        Lanes may come to one `__syncwarp` from several branches, which are executed one after the other here: those
        that come later know what the earlier ones did before they came.
        """
        self.has_warp_times = True
        lanes = mask.lanes
        warps = lanes // WARP
        names = named[lanes].astype(np.int64) & _ALL if isinstance(named, np.ndarray) else int(named) & _ALL
        groups = _words(mask.bits)[warps] & names
        if self._known is None and (groups == self._everyone[warps]).all():
            self._warp_time[lanes] = time
        else:
            self._meet(time, lanes, warps, groups)
            alive = self._everyone if ended is None else self._everyone & ~_words(ended.bits)
            due = alive[warps] & names
            apart = due != groups
            if self._waiting or apart.any():
                self._wait(lanes, np.broadcast_to(names, lanes.shape), due, apart)
        if self._of_block is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            met = np.zeros((group.max() + 1, self._span), np.int64)
            np.maximum.at(met, group, self._of_block[lanes])
            self._of_block[lanes] = met[group]
        if self._fenced is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            own = self._fenced[self.first_thread + lanes]
            fenced = np.zeros(lanes.size, bool)
            np.logical_or.at(fenced, group, own < _NEVER)
            self._fenced[self.first_thread + lanes] = np.where(fenced[group], np.minimum(own, time), own)
        if self._acquired is not None:
            _, group = np.unique((warps << WARP) | groups, return_inverse=True)
            latest = np.zeros(lanes.size, np.int64)
            np.maximum.at(latest, group, self._acquired[lanes])
            self._acquired[lanes] = latest[group]

    def _meet(self, time: int, lanes: Array, warps: Array, groups: Array) -> None:
        """Let the lanes of each group, which is a part of a warp, know what any of them knew.

        From here on each lane has a time for every lane of its warp: what that lane did before it is known.
        """
        if self._known is None:
            # Until now whole warps met.
            self._known = np.repeat(self._warp_time.reshape(-1, WARP), WARP, axis=0)
        _, group = np.unique((warps << WARP) | groups, return_inverse=True)
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
        met = np.maximum.reduceat(self._known[lanes[order]], first, axis=0)
        met[group, lanes % WARP] = time
        self._known[lanes] = met[group]

    def _wait(self, lanes: Array, names: Array, due: Array, apart: Array) -> None:
        """Let lanes come to others that wait for them, or wait themselves for those that are due."""
        assert self._known is not None
        warps = lanes // WARP
        for warp, named in sorted(set(zip(warps.tolist(), names.tolist(), strict=True))):
            which = (warps == warp) & (names == named)
            here = lanes[which]
            waiting = self._waiting.get((warp, named), [])
            meeting = next((each for each in waiting if not each.here & _bits(here)), None)
            if meeting is None:
                if not apart[which].any():
                    continue
                meeting = _Gathering()
                waiting = self._waiting.setdefault((warp, named), [])
                waiting.append(meeting)
                del waiting[:-_KEPT_MEETINGS]
            own = self._known[here]
            self._known[meeting.lanes] = np.maximum(self._known[meeting.lanes], own.max(axis=0))
            self._known[here] = np.maximum(own, meeting.known)
            meeting.join(here, self._known[here])
            if not int(due[which][0]) & ~meeting.here:
                waiting.remove(meeting)
                if not waiting:
                    del self._waiting[warp, named]

    def arrive(self, time: int, phase: int, lane: int) -> None:
        """Take note of a lane that arrives at a barrier in memory, in a phase of it; what it knows others may learn."""
        if self._of_block is None:
            self._of_block = np.full((self._warp_time.size, self._span), _FIRST, np.int64)
        self.has_warp_times = True
        own = self._of_block[lane]
        base = self._start[lane // self._per_block]
        own[base + lane % self._per_block] = time
        first = lane // WARP * WARP
        warp = self._warp_time[first : first + WARP] if self._known is None else self._known[lane]
        start = base + first % self._per_block
        own[start : start + WARP] = np.maximum(own[start : start + WARP], warp)
        known = self._phases.get(phase)
        self._phases[phase] = own.copy() if known is None else np.maximum(known, own)

    def pass_phase(self, phase: int, lane: int) -> None:
        """Take note of a lane that finds a phase over: it knows what all knew that arrived in it."""
        if self._of_block is not None and phase in self._phases:
            np.maximum(self._of_block[lane], self._phases[phase], out=self._of_block[lane])

    def fence(self, time: int, mask: LaneMask) -> None:
        """Take note of a fence for the whole device.

        It shows what the thread did itself, and what it saw at its last barriers.
        """
        if not self._releases:
            self._releases = [_Release(self._threads, size) for size in (1, WARP, self._per_block)]
        if self._fenced is None:
            self._fenced = np.full(self._threads, _NEVER)
        lanes = mask.lanes
        threads = self.first_thread + lanes
        warp_time = self._warp_time[lanes]
        if self._known is not None:
            others = self.first_thread + (lanes // WARP * WARP)[:, None] + np.arange(WARP)
            self._releases[0].add(others.ravel(), time, self._known[lanes].ravel())
            warp_time = np.full_like(warp_time, _FIRST)
        known = (self._touched[lanes], warp_time, self._barrier[lanes // self._per_block])
        shows = np.maximum.reduce(known) > _FIRST  # the fence of a thread that has done nothing yet shows nothing
        if self._known is not None:
            shows |= (self._known[lanes] > _FIRST).any(axis=1)
        self._fenced[threads[shows]] = np.minimum(self._fenced[threads[shows]], time)
        for release, upto in zip(self._releases, known, strict=True):
            release.add(threads, time, upto)

    def touch(self, event: int, lanes: Array) -> None:
        """Take note of an access that a fence has to show to others."""
        self._touched[lanes] = event + 1

    def acquire(self, event: int, lanes: Array) -> None:
        """Take note of an atomic on global memory: what others fenced before it is ordered before what follows."""
        if self._releases:
            if self._acquired is None:
                self._acquired = np.zeros(self._warp_time.size, np.int64)
            self._acquired[lanes] = event

    def seen_by(self, lane: int, time: int) -> VectorClock:
        """Return what a lane knows to be done."""
        if self._known is not None:
            warp = self._known[lane].copy()
        else:
            first = lane // WARP * WARP
            warp = self._warp_time[first : first + WARP].copy()
        acquired = self._acquired is not None and bool(self._acquired[lane])
        barrier = int(self._barrier[lane // self._per_block])
        return VectorClock(self.first_thread + lane, time, self._per_block, barrier, warp, acquired)

    def in_block(self, lanes: Array, threads: Array, events: Array) -> Array:
        """Whether a barrier or `__syncwarp` is between events of other threads and what lanes do now."""
        block = lanes // self._per_block
        theirs = threads - self.first_thread
        ordered: Array = (theirs // self._per_block == block) & (events < self._barrier[block])
        if self.has_warp_times:
            neighbors = np.flatnonzero(theirs // WARP == lanes // WARP)
            mine, others = lanes[neighbors], theirs[neighbors]
            met = self._warp_time[mine] if self._known is None else self._known[mine, others % WARP]
            ordered[neighbors] |= events[neighbors] < met
        if self._of_block is not None:
            inside = np.flatnonzero(self._share_cluster(lanes, theirs))
            other = theirs[inside]
            known = self._of_block[lanes[inside], self._start[other // self._per_block] + other % self._per_block]
            ordered[inside] |= events[inside] < known
        if self._clusters is not None:
            inside = np.flatnonzero(self._share_cluster(lanes, theirs))
            ordered[inside] |= self._clusters.before(lanes[inside], theirs[inside], events[inside])
        return ordered

    def _share_cluster(self, lanes: Array, theirs: Array) -> Array:
        """Whether lanes of the batch and other threads, counted as lanes of it, are of one cluster."""
        blocks = theirs // self._per_block
        inside = (blocks >= 0) & (blocks < self._cluster.size)
        found: Array = inside & (self._cluster[np.where(inside, blocks, 0)] == self._cluster[lanes // self._per_block])
        return found

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
        if atomic and self._fenced is not None:
            # In the pattern "write, fence, atomic" the atomic itself is what the other block sees.
            times.append(np.where(self._fenced[threads] <= events, events, _NEVER))
        earliest: Array = np.minimum.reduce(times)
        return earliest


def _bits(lanes: Array) -> int:
    """Return lanes of one warp as the bits of a number."""
    return sum(1 << lane for lane in (lanes % WARP).tolist())


def _words(bits: Array) -> Array:
    """Return the lanes of each warp as the bits of one number."""
    words: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").ravel().astype(np.int64)
    return words
