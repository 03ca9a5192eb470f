"""Old values that threads read although they have read a later write, and whether they act on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.simulator.executor.state.observer import Access, StaleRead
from gpu.simulator.ir.value_uses import ValueUse


@dataclass(eq=False)
class _Candidate:
    """A read of an old value; `is_pending` until its own access is noted."""

    read: StaleRead
    is_pending: bool = True


class OldValues:
    """The old values that lanes have read, until they write, or discard them.

    A lane discards an old value if it reads the same place again, as in a loop that waits; if it reads that the place
    of the later write has changed, as in a loop that starts over; or if a compare-and-swap fails.
    """

    def __init__(self) -> None:
        self._candidates: dict[int, list[_Candidate]] = {}

    def __bool__(self) -> bool:
        return bool(self._candidates)

    def add(self, read: StaleRead) -> None:
        """Add a read, unless its value decides nothing, or a loop ends only by a new value.

        A loop may also end by an old value that it compares with an earlier one of the same place, as a sequence lock.
        """
        use = read.access.site.use
        if use != ValueUse.DATA and (use != ValueUse.WAIT or read.is_repeated):
            self._candidates.setdefault(read.lane, []).append(_Candidate(read))

    def follow(self, access: Access) -> Sequence[StaleRead]:
        """Note an access; return the reads of old values on which its lanes act now."""
        found: list[StaleRead] = []
        for lane in [lane for lane in self._candidates if access.mask.bits[lane]]:
            candidates = self._candidates[lane]
            if access.site.action == "read" or not _writes(access, lane):
                kept = [each for each in candidates if not self._discards(access, lane, each)]
            else:
                found += [each.read for each in candidates]
                kept = []
            if kept:
                self._candidates[lane] = kept
            else:
                del self._candidates[lane]
        return found

    def _discards(self, access: Access, lane: int, candidate: _Candidate) -> bool:
        read = candidate.read.access
        is_same = access.memory is read.memory and _element(access, lane) == _element(read, lane)
        if candidate.is_pending and is_same and access.site is read.site:
            candidate.is_pending = False
            return False
        return access.site.op == "cas" or is_same or _reads_change(access, lane, candidate.read)


def _reads_change(access: Access, lane: int, read: StaleRead) -> bool:
    """Return whether a lane reads that the place of the later write has changed since the lane has read it."""
    later = read.later
    if access.memory is not later.memory or _element(access, lane) != _element(later, read.writer):
        return False
    value = access.values if access.site.action == "read" else access.old
    return value is not None and bool(np.asarray(_select(value, lane)).tobytes() != read.known)


def _writes(access: Access, lane: int) -> bool:
    """Return whether a write or an atomic operation of a lane changes memory."""
    if access.site.op == "cas":
        return bool(_select(access.old, lane) == _select(access.compared, lane))
    return access.site.op != "add" or bool(_select(access.values, lane) != 0)


def _element(access: Access, lane: int) -> int:
    return int(_select(access.element, lane)) * access.size


def _select(values: Any, lane: int) -> Any:
    return values[lane] if isinstance(values, np.ndarray) else values
