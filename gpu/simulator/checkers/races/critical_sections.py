"""Critical sections without an acquire fence: accesses that the release of a lock does not order in every execution.

Critical sections of one lock run in any order. A thread that takes a lock first needs no fence in that execution, but
it does in one where it takes the lock from another thread. So accesses between the compare-and-swap that takes a lock
and the next fence are treated as unordered.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.races.release_sequences import LEVELS

Array = npt.NDArray[Any]

_MAX_INTERVALS = 256
"""The most unfenced intervals kept per thread."""


@dataclass(frozen=True)
class _UnfencedInterval:
    """The times in a critical section before an acquire fence: its end for each scope of the fence."""

    begin: int
    ends: tuple[int, ...]
    by_exchange: bool


class CriticalSections:
    """The critical sections of a launch; for each lane, of the lock that it took last."""

    def __init__(self) -> None:
        self._intervals: defaultdict[int, list[_UnfencedInterval]] = defaultdict(list)
        self.is_any_open = False

    @property
    def has_intervals(self) -> bool:
        """Whether any accesses in critical sections were not fenced."""
        return bool(self._intervals)

    def batch_begins(self, lanes: int, first_thread: int) -> None:
        """Reset the state for new blocks."""
        self._first_thread = first_thread
        self._begin = np.zeros(lanes, np.int64)
        self._cell = np.zeros(lanes, np.int64)
        self._memory = np.zeros(lanes, np.int64)
        self._free_value = np.zeros(lanes, np.int64)
        self._by_exchange = np.zeros(lanes, bool)
        self._ends = np.zeros((len(LEVELS), lanes), np.int64)
        self._last_access = np.zeros(lanes, np.int64)
        self.is_any_open = False

    def take_lock(
        self, time: int, lanes: Array, memory: int, cells: Array, free_values: Array, *, by_exchange: bool
    ) -> None:
        """Record that lanes change a location from the values that may mean a free lock."""
        self.is_any_open = True
        self._begin[lanes] = time
        self._cell[lanes], self._memory[lanes] = cells, memory
        self._free_value[lanes] = free_values.astype(np.int64)
        self._by_exchange[lanes] = by_exchange
        self._ends[:, lanes] = 0

    def record_access(self, time: int, lanes: Array) -> None:
        """Record an access."""
        self._last_access[lanes] = time

    def fence(self, time: int, lanes: Array, level: int) -> None:
        """Record a fence."""
        for ends in self._ends[: level + 1]:
            unfenced = lanes[(self._begin[lanes] > 0) & (ends[lanes] == 0)]
            # Without an access since the lock was taken, the interval is empty.
            ends[unfenced] = np.where(self._last_access[unfenced] > self._begin[unfenced], time, self._begin[unfenced])

    def release_lock(self, time: int, lanes: Array, memory: int, cells: Array, values: Array) -> None:
        """Record strong writes: those that write the value of the free lock end a critical section."""
        ends_section = (
            (self._begin[lanes] > 0)
            & (self._begin[lanes] < time)
            & (self._memory[lanes] == memory)
            & (self._cell[lanes] == cells)
            & (self._free_value[lanes] == values.astype(np.int64))
        )
        for lane in lanes[ends_section].tolist():
            begin = int(self._begin[lane])
            ends = tuple(int(end) or time for end in self._ends[:, lane])
            self._begin[lane] = 0
            if max(ends) > begin and self._last_access[lane] > begin:
                intervals = self._intervals[self._first_thread + lane]
                intervals.append(_UnfencedInterval(begin, ends, bool(self._by_exchange[lane])))
                del intervals[:-_MAX_INTERVALS]

    def are_unfenced(self, threads: Array, events: Array, levels: Array, are_strong: Array) -> Array:
        """Return whether accesses are in a critical section before an acquire fence.

        Parameters
        ----------
        threads, events : array of int
            Thread and event of each access.
        levels : array of int
            The level of the narrowest scope with the thread and the one that is to be ordered after it.
        are_strong : array of bool
            Whether the accesses are strong. An exchange that takes a lock orders these without a fence.
        """
        unfenced: Array = np.zeros(threads.size, bool)
        for index, thread in enumerate(threads.tolist()):
            event = int(events[index])
            unfenced[index] = any(
                each.begin < event < each.ends[levels[index]] and not (each.by_exchange and are_strong[index])
                for each in self._intervals.get(thread, ())
            )
        return unfenced
