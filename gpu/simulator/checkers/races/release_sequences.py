"""Release sequences: the releases at one location that a later read observes, and the events that they make known.

A release pattern is a fence followed by a strong write, or a write with release order. It synchronizes with an acquire
pattern that observes the write: a strong read followed by a fence, or a read with acquire order. Atomic operations
continue a sequence; any other write to the location ends it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from gpu.simulator.checkers.races.vector_clocks import AcquiredClock, ClockBuilder, ClockSnapshot, merge_clocks
from gpu.simulator.ir import Scope

SCOPE_LEVELS: dict[Scope, int] = {"block": 0, "cluster": 1, "device": 2, "system": 2}
"""Scopes as numbers. All threads of a launch are on one device, so the scopes of device and system are equal."""

RELEASE_ORDERS = ("release", "acq_rel")
DEVICE_LEVEL = SCOPE_LEVELS["device"]
_MAX_CLOCKS = 64
"""The most clocks that a group keeps: the lanes of two warps may have observed different numbers of releases."""

LEVELS = range(DEVICE_LEVEL + 1)


@dataclass(frozen=True)
class Reader:
    """A thread that observes a release: its block and cluster, and the level of the scope of its read and fence."""

    block: int
    cluster: int
    level: int


class ReleaseSequence:
    """The releases at a location since the last write that was not atomic, in order.

    Parameters
    ----------
    blocks : int
        The number of blocks of the grid.
    """

    def __init__(self, blocks: int) -> None:
        self.length = 0
        self.has_weak = self.has_narrow_write = False
        self._blocks = blocks
        # For each group of readers: the indices of the releases that reach it, and the events that they make known.
        self._releases: defaultdict[Hashable, tuple[list[int], list[ClockSnapshot]]] = defaultdict(lambda: ([], []))
        # The events that the first releases of a group make known, by ascending numbers of releases.
        self._clocks: dict[tuple[Hashable, bool], tuple[list[int], list[AcquiredClock]]] = {}

    def append(self, cluster: int, snapshots: tuple[ClockSnapshot | None, ...], *, is_narrow: bool) -> None:
        """Append a release.

        Parameters
        ----------
        cluster : int
            The cluster of the thread.
        snapshots : tuple of ClockSnapshot or None
            For each scope, the events that the release makes known to threads that its fence and its write include.
        is_narrow : bool
            Whether the scope of the write does not include all threads.
        """
        in_block, in_cluster, in_device = snapshots
        assert in_block is not None
        self._add(("block", in_block.block), in_block)
        if in_cluster is not None:
            self._add(("cluster", cluster), in_cluster)
        if in_device is not None:
            self._add("device", in_device)
        if in_block is not in_device:
            self._add(("narrow", in_block.block), in_block)
        self.has_weak |= any(each is not None and each.is_weak for each in snapshots)
        self.has_narrow_write |= is_narrow
        self.length += 1

    def append_events(self, clock: AcquiredClock) -> None:
        """Append releases of another launch, which make events known to all readers of device scope."""
        self._add("device", ClockSnapshot(0, acquired=clock))
        self.length += 1

    def _add(self, group: Hashable, snapshot: ClockSnapshot) -> None:
        indices, snapshots = self._releases[group]
        indices.append(self.length)
        snapshots.append(snapshot)

    def find_known_events(self, length: int, reader: Reader, *, weak: bool) -> AcquiredClock | None:
        """Return the events that the first `length` releases make known to a reader; None if there are none.

        With `weak`, this includes events that the releasing threads know for strong accesses only.
        """
        groups: list[Hashable] = [("block", reader.block)]
        if reader.level == DEVICE_LEVEL:
            groups = ["device", ("narrow", reader.block)]
        if reader.level > 0:
            groups.append(("cluster", reader.cluster))
        return merge_clocks(self._join(group, length, weak=weak and self.has_weak) for group in groups)

    def find_all_events(self, length: int) -> AcquiredClock | None:
        """Return the events that the first `length` releases make known in their own blocks; None if there are none."""
        groups = [group for group in self._releases if isinstance(group, tuple) and group[0] == "block"]
        return merge_clocks(self._join(group, length, weak=False) for group in groups)

    def _join(self, group: Hashable, length: int, *, weak: bool) -> AcquiredClock | None:
        if group not in self._releases:
            return None
        indices, snapshots = self._releases[group]
        count = len(indices) if length >= self.length else bisect_left(indices, length)
        if count == 0:
            return None
        counts, clocks = self._clocks.setdefault((group, weak), ([], []))
        index = bisect_right(counts, count)
        first, base = (counts[index - 1], clocks[index - 1]) if index else (0, None)
        if first == count:
            return base
        builder = ClockBuilder(self._blocks, base)
        for snapshot in snapshots[first:count]:
            builder.add_snapshot(snapshot, weak=weak)
        clock = builder.build()
        counts.insert(index, count)
        clocks.insert(index, clock)
        del counts[:-_MAX_CLOCKS], clocks[:-_MAX_CLOCKS]
        return clock
