"""Atomics of one statement on one element, one after the other, as hardware does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.provenance.writes import Writes

MOST = 8
"""Turns that are told apart."""


@dataclass(frozen=True, eq=False)
class Turns:
    """How a launch's steps are told apart where threads queue for an element: a step for each place in the queue.

    A longer queue than `MOST` stays one step: its rows would fill the picture and say the same again and again.

    Parameters
    ----------
    first : int
        The launch's first step.
    lengths : array
        How many steps there are instead of each.
    """

    first: int
    lengths: Array

    @classmethod
    def of(cls, writes: Sequence[Writes], first: int, steps: int) -> Turns:
        """Return the turns of a launch's writes to its arrays; the launch has so many steps."""
        lengths = np.ones(steps, np.int64)
        for each in writes:
            rows = np.flatnonzero(each.is_atomic)
            np.maximum.at(lengths, each.step[rows] - first, _turns(each, rows) + 1)
        return cls(first, np.where(lengths > MOST, 1, lengths))

    @property
    def _starts(self) -> Array:
        found: Array = np.cumsum(self.lengths) - self.lengths
        return found

    @property
    def number(self) -> Array:
        """The place in its queue of each of the steps that there are now, from 0 on."""
        of = np.repeat(np.arange(self.lengths.size), self.lengths)
        found: Array = np.arange(of.size) - self._starts[of]
        return found

    def taken(self, writes: Writes) -> Writes:
        """Return writes with the steps that there are now: what follows from an atomic is seen when all have ended."""
        step = writes.step - self.first
        turn = self.lengths[step] - 1
        rows = np.flatnonzero(writes.is_atomic)
        turn[rows] = np.minimum(_turns(writes, rows), turn[rows])
        return replace(writes, step=self.first + self._starts[step] + turn)


def _turns(writes: Writes, rows: Array) -> Array:
    """Return how many of some writes came earlier to the same cell in the same step."""
    step, cell = writes.step[rows], writes.cell[rows]
    order = np.lexsort((np.arange(rows.size), writes.moment[rows], cell, step))
    same = (np.diff(step[order], prepend=-1) == 0) & (np.diff(cell[order], prepend=-1) == 0)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(rows.size)))
    turn = np.empty(rows.size, np.int64)
    turn[order] = np.arange(rows.size) - starts
    return turn
