"""The tree of child launches: which launches run concurrently, and their earlier accesses to global memory.

The parent thread's accesses, and all that it is ordered after, happen before the child launch. A child runs
concurrently with later accesses of its parent, with other blocks of its parent, and with children in other streams,
until the parent waits for its children. Launches by one block into one stream run one after the other; tail launches
run after all others. Concurrent launches synchronize through memory, as the threads of one launch do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.races.happens_before import VectorClock
from gpu.simulator.checkers.races.shadow import Shadow
from gpu.simulator.checkers.races.synchronization import Synchronization
from gpu.simulator.checkers.races.vector_clocks import AcquiredClock, merge_launches
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.child import FIRE_AND_FORGET, ChildLaunch

Array = npt.NDArray[Any]
ArrayKey = tuple[int, int]

# The most launches kept, not counting ancestors: every access is compared with each of them.
_MAX_PAST_LAUNCHES = 128

_NO_MATCHES = np.empty(0, np.int64)


@dataclass
class _Launch:
    """A launch in the tree; `clock` is None for the host's launch."""

    parent: int
    clock: VectorClock | None
    stream: tuple[int, int] | None
    is_tail: bool
    end_time: float = math.inf
    # The events of concurrent launches that any of its threads have acquired, by launch.
    acquired: Mapping[int, AcquiredClock] = field(default_factory=dict)


class ArrayRecords:
    """A launch's accesses to one array: for each slot, the cells with a record in ascending order, and the records."""

    def __init__(self, shadow: Shadow) -> None:
        self._cell_size = shadow.cell_size
        self._slots: dict[str, tuple[Array, Array]] = {}
        for slot, records in shadow.slots():
            cells = np.flatnonzero(records)
            if cells.size:
                self._slots[slot] = (cells, records[cells])
        ends = [(int(cells[0]), int(cells[-1]) + 1) for cells, _ in self._slots.values()]
        self._first = min((first for first, _ in ends), default=0) * shadow.cell_size
        self._end = max((end for _, end in ends), default=0) * shadow.cell_size

    def list_records(self, slot: str, cell_size: int) -> tuple[Array, Array]:
        """Return the cells of `cell_size` bytes that have a record in a slot, and the records."""
        cells, records = self._slots.get(slot, (_NO_MATCHES, _NO_MATCHES))
        parts = max(self._cell_size // cell_size, 1)
        first = cells * self._cell_size // cell_size
        return (first[:, None] + np.arange(parts)).ravel(), records.repeat(parts)

    def may_contain(self, cells: Array, cell_size: int) -> bool:
        """Return whether any of the cells of `cell_size` bytes lies between the first and last cell with a record."""
        return bool(cells.min() * cell_size < self._end and (cells.max() + 1) * cell_size > self._first)

    def find_records(self, slot: str, cells: Array, cell_size: int) -> tuple[Array, Array]:
        """Return the indices of those cells of `cell_size` bytes that have a record in a slot, and the records."""
        if slot not in self._slots:
            return _NO_MATCHES, _NO_MATCHES
        recorded, records = self._slots[slot]
        first = cells * cell_size // self._cell_size
        matches = []
        for offset in range(max(cell_size // self._cell_size, 1)):
            at = np.searchsorted(recorded, first + offset)
            hit = np.flatnonzero(recorded[np.minimum(at, recorded.size - 1)] == first + offset)
            matches.append((hit, records[at[hit]]))
        return np.concatenate([hit for hit, _ in matches]), np.concatenate([each for _, each in matches])


@dataclass(frozen=True)
class LaunchAccesses:
    """The accesses of a launch or of a part of one. `data` keeps the arrays alive so their addresses stay unique."""

    launch: int
    synchronization: Synchronization
    batch: BlockBatch
    arrays: dict[ArrayKey, ArrayRecords]
    data: tuple[Array, ...]


class LaunchTree:
    """A launch by the host and all its descendants; one of them is the running launch."""

    def __init__(self) -> None:
        self.has_children = False
        self._launches = [_Launch(-1, None, None, is_tail=False)]
        self._current = 0
        self._launch_of_batch: WeakKeyDictionary[BlockBatch, int] = WeakKeyDictionary()
        self._pending_children: dict[ChildLaunch, _Launch] = {}
        self._past_accesses: list[LaunchAccesses] = []
        self._concurrent: list[tuple[LaunchAccesses, VectorClock | None]] | None = None
        self._acquired: Mapping[int, AcquiredClock] | None = None

    def batch_begins(self, batch: BlockBatch) -> None:
        """Add a batch of blocks to the running launch."""
        self._launch_of_batch[batch] = self._current

    def add_child(self, child: ChildLaunch, clock: VectorClock) -> None:
        """Add a child launch by a thread of the running launch, which is ordered after all that `clock` includes."""
        self.has_children = True
        stream = None if child.stream == FIRE_AND_FORGET else (child.stream, clock.thread // clock.threads_per_block)
        self._pending_children[child] = _Launch(self._current, clock, stream, child.is_tail)

    def begin_child(self, child: ChildLaunch) -> None:
        """Make a child the running launch."""
        self._launches.append(self._pending_children.pop(child))
        self._set_current(len(self._launches) - 1)

    def resume_launch(self, batch: BlockBatch, time: int) -> None:
        """Make the launch of a batch the running one again; its children so far have ended."""
        self._set_current(self._launch_of_batch[batch])
        for launch in self._launches:
            if launch.parent == self._current:
                launch.end_time = min(launch.end_time, time)

    def store_accesses(
        self, batch: BlockBatch, arrays: dict[ArrayKey, tuple[Array, Shadow]], synchronization: Synchronization
    ) -> None:
        """Store the accesses of the running launch to arrays, and the synchronization of its threads."""
        records = {key: ArrayRecords(shadow) for key, (_, shadow) in arrays.items()}
        self._past_accesses.append(
            LaunchAccesses(self._current, synchronization, batch, records, tuple(data for data, _ in arrays.values()))
        )
        launch = self._launches[self._current]
        launch.acquired = merge_launches((launch.acquired, synchronization.find_all_launches()))
        if len(self._past_accesses) > _MAX_PAST_LAUNCHES:
            above = set(self._path(self._current))
            oldest = next((n for n, past in enumerate(self._past_accesses) if past.launch not in above), 0)
            del self._past_accesses[oldest]

    def find_concurrent_accesses(self) -> list[tuple[LaunchAccesses, VectorClock | None]]:
        """Return the accesses of concurrent launches, each with the clock of those ordered before the running launch.

        The clock is None if none of the accesses are ordered before it.
        """
        if self._concurrent is None:
            relations = ((past, self._find_order(past.launch, self._current)) for past in self._past_accesses)
            self._concurrent = [(past, seen) for past, (is_over, seen) in relations if not is_over]
        return self._concurrent

    def find_acquired_events(self) -> Mapping[int, AcquiredClock]:
        """Return the events of concurrent launches that happen before the running launch, by launch.

        The launching threads have acquired them, or threads of launches that have ended before.
        """
        if self._acquired is None:
            clocks = (self._launches[launch].clock for launch in self._path(self._current))
            acquired = [clock.acquired.launches for clock in clocks if clock is not None and clock.acquired is not None]
            for number, launch in enumerate(self._launches):
                if launch.acquired and number != self._current and self._find_order(number, self._current)[0]:
                    acquired.append(launch.acquired)
            self._acquired = merge_launches(acquired)
        return self._acquired

    def are_ordered(self, earlier: int, later: int, threads: Array, events: Array) -> Array:
        """Return whether events of a launch happen before all those of another launch."""
        if later < earlier:  # launches are numbered in the order in which they begin
            return np.zeros(threads.size, bool)
        is_over, seen = self._find_order(earlier, later)
        return np.full(threads.size, is_over) if seen is None else seen.includes(threads, events)

    def _set_current(self, launch: int) -> None:
        self._current, self._concurrent, self._acquired = launch, None, None

    def _find_order(self, earlier: int, later: int) -> tuple[bool, VectorClock | None]:
        """Return whether an earlier launch ends before a later one begins; if not, the clock of ordered events."""
        current_path, earlier_path = self._path(later), self._path(earlier)
        if later in earlier_path:
            return True, None
        shared = next(launch for launch in current_path if launch in earlier_path)
        branch = self._launches[current_path[current_path.index(shared) - 1]]
        if branch.is_tail:
            return True, None
        assert branch.clock is not None
        if shared == earlier:
            return False, branch.clock
        other = self._launches[earlier_path[earlier_path.index(shared) - 1]]
        follows = branch.stream is not None and branch.stream == other.stream
        return follows or other.end_time <= branch.clock.time, None

    def _path(self, launch: int) -> list[int]:
        """Return a launch and its ancestors, ending with the host's launch."""
        path = [launch]
        while (parent := self._launches[path[-1]].parent) >= 0:
            path.append(parent)
        return path
