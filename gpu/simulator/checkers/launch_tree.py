"""Which launches of kernels by kernels run at the same time, and what earlier ones of them did to global memory.

A child sees what its thread knew to be done when it launched it. What its parent does later, what other blocks of the
parent do, and what children in other streams do, goes on at the same time; so it is until the parent waits for its
children. Launches of one block into one stream follow each other, and tail launches follow all else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.happens_before import VectorClock
from gpu.simulator.checkers.shadow import Shadow
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.child import FIRE_AND_FORGET, ChildLaunch

Array = npt.NDArray[Any]
Place = tuple[int, int]

# So many launches are remembered, beside those that a launch descends from: each is compared with every access.
_REMEMBERED = 128

_NOTHING = np.empty(0, np.int64)


@dataclass
class _Launch:
    """A launch of the tree; of the host's `seen` is None."""

    parent: int
    seen: VectorClock | None
    stream: tuple[int, int] | None
    is_tail: bool
    ended: float = math.inf


class ArrayRecords:
    """What a launch did to one array: the cells that have a record, ascending, and the records, of each slot."""

    def __init__(self, shadow: Shadow) -> None:
        self._cell = shadow.cell
        self._slots: dict[str, tuple[Array, Array]] = {}
        for slot, records in shadow.slots():
            cells = np.flatnonzero(records)
            if cells.size:
                self._slots[slot] = (cells, records[cells])
        ends = [(int(cells[0]), int(cells[-1]) + 1) for cells, _ in self._slots.values()]
        self._first = min((first for first, _ in ends), default=0) * shadow.cell
        self._end = max((end for _, end in ends), default=0) * shadow.cell

    def may_hold(self, cells: Array, cell: int) -> bool:
        """Whether any of some cells of `cell` bytes lies between the first and the last that have a record."""
        return bool(cells.min() * cell < self._end and (cells.max() + 1) * cell > self._first)

    def of(self, slot: str, cells: Array, cell: int) -> tuple[Array, Array]:
        """Return which of some cells of `cell` bytes have a record in a slot, and the records."""
        if slot not in self._slots:
            return _NOTHING, _NOTHING
        known, records = self._slots[slot]
        first = cells * cell // self._cell
        found = []
        for more in range(max(cell // self._cell, 1)):
            at = np.searchsorted(known, first + more)
            hit = np.flatnonzero(known[np.minimum(at, known.size - 1)] == first + more)
            found.append((hit, records[at[hit]]))
        return np.concatenate([hit for hit, _ in found]), np.concatenate([each for _, each in found])


@dataclass(frozen=True)
class LaunchAccesses:
    """What a launch, or a part of one, did. `data` keeps the arrays' addresses their own."""

    launch: int
    batch: BlockBatch
    arrays: dict[Place, ArrayRecords]
    data: tuple[Array, ...]


class LaunchTree:
    """A launch by the host, and all launches that follow from it, of which one runs."""

    def __init__(self) -> None:
        self.has_children = False
        self._launches = [_Launch(-1, None, None, is_tail=False)]
        self._current = 0
        self._of_batch: WeakKeyDictionary[BlockBatch, int] = WeakKeyDictionary()
        self._waiting: dict[ChildLaunch, _Launch] = {}
        self._pasts: list[LaunchAccesses] = []
        self._concurrent: list[tuple[LaunchAccesses, VectorClock | None]] | None = None

    def batch_begins(self, batch: BlockBatch) -> None:
        """Take note of blocks of the launch that runs."""
        self._of_batch[batch] = self._current

    def launched(self, child: ChildLaunch, seen: VectorClock) -> None:
        """Take note of a launch by a thread of the launch that runs."""
        self.has_children = True
        stream = None if child.stream == FIRE_AND_FORGET else (child.stream, seen.thread // seen.per_block)
        self._waiting[child] = _Launch(self._current, seen, stream, child.is_tail)

    def begins(self, child: ChildLaunch) -> None:
        """Take note that a child runs from here on."""
        self._launches.append(self._waiting.pop(child))
        self._turn_to(len(self._launches) - 1)

    def resumes(self, batch: BlockBatch, time: int) -> None:
        """Take note that the launch of a batch goes on, and that its children so far have ended."""
        self._turn_to(self._of_batch[batch])
        for launch in self._launches:
            if launch.parent == self._current:
                launch.ended = min(launch.ended, time)

    def keep(self, batch: BlockBatch, arrays: dict[Place, tuple[Array, Shadow]]) -> None:
        """Remember what the launch that runs has done to arrays."""
        records = {place: ArrayRecords(shadow) for place, (_, shadow) in arrays.items()}
        self._pasts.append(LaunchAccesses(self._current, batch, records, tuple(data for data, _ in arrays.values())))
        if len(self._pasts) > _REMEMBERED:
            above = set(self._path(self._current))
            oldest = next((n for n, past in enumerate(self._pasts) if past.launch not in above), 0)
            del self._pasts[oldest]

    def concurrent(self) -> list[tuple[LaunchAccesses, VectorClock | None]]:
        """Return what goes on at the same time as the launch that runs, and what of it that has seen, if anything."""
        if self._concurrent is None:
            found = ((past, self._relation(past.launch)) for past in self._pasts)
            self._concurrent = [(past, seen) for past, (is_over, seen) in found if not is_over]
        return self._concurrent

    def _turn_to(self, launch: int) -> None:
        self._current, self._concurrent = launch, None

    def _relation(self, earlier: int) -> tuple[bool, VectorClock | None]:
        """Return whether an earlier launch is over before the one that runs, and if not what that has seen of it."""
        own, theirs = self._path(self._current), self._path(earlier)
        if self._current in theirs:
            return True, None
        shared = next(launch for launch in own if launch in theirs)
        branch = self._launches[own[own.index(shared) - 1]]
        if branch.is_tail:
            return True, None
        assert branch.seen is not None
        if shared == earlier:
            return False, branch.seen
        other = self._launches[theirs[theirs.index(shared) - 1]]
        follows = branch.stream is not None and branch.stream == other.stream
        return follows or other.ended <= branch.seen.time, None

    def _path(self, launch: int) -> list[int]:
        """Return a launch and all that it descends from, the host's last."""
        path = [launch]
        while (parent := self._launches[path[-1]].parent) >= 0:
            path.append(parent)
        return path
