"""Tickets: atomic operations whose results decide a branch, such as which block is the last to add up partial sums.

They order nothing without fences. This records who has taken tickets, to name the missing fence.
"""

from __future__ import annotations

_MAX_COUNTERS = 4096
"""The most counters that are recorded."""

_Counter = tuple[int, int]
_Time = tuple[int, int]
"""An event and a thread: the threads of an instruction execute its atomic operations in order."""


class Tickets:
    """For each counter, the last ticket of each block of a launch."""

    def __init__(self) -> None:
        self._of_counter: dict[_Counter, dict[int, _Time]] = {}
        self._of_block: dict[int, dict[_Counter, _Time]] = {}

    def take(self, counter: _Counter, block: int, time: _Time) -> None:
        """Record that a thread of a block takes a ticket from a counter, a memory and a cell."""
        if counter in self._of_counter or len(self._of_counter) < _MAX_COUNTERS:
            self._of_counter.setdefault(counter, {})[block] = time
            self._of_block.setdefault(block, {})[counter] = time

    def follow(self, block: int, other: int, event: int) -> bool:
        """Return whether a block has taken a ticket after one that another block took after an event."""
        for counter, mine in self._of_block.get(block, {}).items():
            theirs = self._of_counter[counter].get(other)
            if block != other and theirs is not None and event < theirs[0] and theirs < mine:
                return True
        return False
