"""Long waits: each wait in a loop lasts longer than any number of iterations that the loop counts."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.state.running_batch import Conversions
from gpu.simulator.ir.waits import find_compared_constants, only_counts_iterations

_ALONE_STATEMENTS = 100
"""Statements that a part executes alone after it began to wait: the iterations below, and some after the loop."""

_COMPARED_ITERATIONS = 4
"""Iterations of a waiting loop that must change the same variable by the same amount."""

# Lanes per batch, by lanes per part: the time per statement of a part is proportional to the lanes of the batch.


class LongWaits:
    """Makes each wait longer than any number of iterations that a loop counts.

    A part that waits executes some statements alone, once in each loop. If the iterations change only one integer, by a
    constant amount, and it affects no access, the integer gets the value that it would have many iterations later.
    """

    def __init__(self) -> None:
        self.loops: set[SourcePosition] = set()
        """The loops that were prolonged."""
        self._waited: set[tuple[Hashable, SourcePosition]] = set()
        self._remaining_statements = 0
        self._snapshots: list[list[Any]] = []

    def begin_batch(self) -> None:
        """Forget the waits of another batch."""
        self._waited.clear()
        self.release()

    def release(self) -> None:
        """Let other parts run again."""
        self._remaining_statements = 0
        self._snapshots.clear()

    def keeps_running(self) -> bool:
        """Count a statement of the running part; return whether the part continues to run alone."""
        self._remaining_statements -= 1
        return self._remaining_statements > 0

    def prolong(self, part: Hashable, loop: ir.Loop, variables: list[Any], mask: LaneMask, values: Conversions) -> bool:
        """Note an iteration in which a part waited, and advance the variable that counts them, if there is one.

        Parameters
        ----------
        part : hashable
            The running part.
        variables : list
            The variables of the loop's function; changed in place.
        mask : LaneMask
            The lanes in the loop.
        values : Conversions
            The algebra of the variables' values.

        Returns
        -------
        bool
            Whether the part continues to run alone.
        """
        if self._remaining_statements <= 0:
            if (part, loop.position) in self._waited:
                return False
            self._waited.add((part, loop.position))
            self._remaining_statements = _ALONE_STATEMENTS
        self._snapshots.append([None if value is None else values.strip(value) for value in variables])
        if len(self._snapshots) > _COMPARED_ITERATIONS:
            slot = _find_counter(self._snapshots[-_COMPARED_ITERATIONS - 1 :], mask)
            if slot is not None and only_counts_iterations(loop, slot):
                self.loops.add(loop.position)
                before, value = (snapshot[slot] for snapshot in self._snapshots[-2:])
                first, last = (int(_get_lane(each, mask)) for each in (before, value))
                advanced = _advance(first, last, np.asarray(value).dtype, find_compared_constants(loop, slot))
                later = np.where(mask.bits, np.asarray(advanced, np.asarray(value).dtype), value)
                variables[slot] = values.convert(lambda _: later, variables[slot])
                self._snapshots.clear()
        return True


def _find_counter(snapshots: list[list[Any]], mask: LaneMask) -> int | None:
    """Return the slot of the only variable that changed, if it is an integer and changed by a constant amount."""
    changed = set()
    for before, after in pairwise(snapshots):
        for slot, (old, new) in enumerate(zip(before, after, strict=True)):
            if old is not new and not (_is_number(old) and _is_number(new) and _is_equal(old, new, mask)):
                changed.add(slot)
    if len(changed) != 1:
        return None
    (slot,) = changed
    values = [snapshot[slot] for snapshot in snapshots]
    if not all(_is_number(value) and value.dtype.kind in "iu" for value in values):
        return None
    lanes = [np.broadcast_to(value, mask.bits.shape)[mask.lanes].astype(np.int64) for value in values]
    steps = np.diff(np.array(lanes), axis=0)
    same = (steps == steps[0, 0]).all() and all((each == each[0]).all() for each in lanes)
    return slot if same and steps[0, 0] else None


def _is_number(value: Any) -> bool:
    return isinstance(value, np.generic | np.ndarray)


def _is_equal(old: Any, new: Any, mask: LaneMask) -> bool:
    return bool(np.all(np.broadcast_to(old == new, mask.bits.shape)[mask.lanes]))


def _get_lane(value: Any, mask: LaneMask) -> Any:
    return np.broadcast_to(value, mask.bits.shape)[mask.lanes[0]]


def _advance(before: int, value: int, dtype: np.dtype[Any], compared: set[int]) -> int:
    """Return a later value of a counter: just before one with which it is compared, or near the end of its range."""
    step = value - before
    steps = [(other - value) // step for other in compared]
    near = min((count for count in steps if count > _COMPARED_ITERATIONS), default=0)
    if near:
        return value + (near - 2) * step
    border = np.iinfo(dtype).max // 2 * (1 if step > 0 else -1)
    return value + max((border - value) // step, 0) * step
