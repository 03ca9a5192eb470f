"""Atomic operations of one statement on one element, split into turns, since hardware serializes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu.recording.packing import Array
from gpu.stepping.provenance.writes import Writes

MAX_TURNS = 8
"""The most turns that get a step of their own."""


@dataclass(frozen=True, eq=False)
class Turns:
    """The split of a launch's steps into turns: one step for each position in the queue for an element.

    A queue longer than `MAX_TURNS` stays one step, because its rows would fill the picture with repetitions.

    Parameters
    ----------
    first : int
        The launch's first step.
    lengths : array
        The number of turns of each original step.
    """

    first: int
    lengths: Array

    @classmethod
    def from_writes(cls, writes: Sequence[Writes], first: int, steps: int) -> Turns:
        """Return the turns of a launch's writes to its arrays.

        Parameters
        ----------
        writes : sequence of Writes
        first : int
            The launch's first step.
        steps : int
            The launch's number of steps.
        """
        lengths = np.ones(steps, np.int64)
        for array_writes in writes:
            rows = np.flatnonzero(array_writes.is_atomic)
            np.maximum.at(lengths, array_writes.step[rows] - first, _count_earlier_writes(array_writes, rows) + 1)
        return cls(first, np.where(lengths > MAX_TURNS, 1, lengths))

    @property
    def _starts(self) -> Array:
        starts: Array = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def turn_numbers(self) -> Array:
        """The turn of each of the new steps, from 0."""
        step = np.repeat(np.arange(self.lengths.size), self.lengths)
        turns: Array = np.arange(step.size) - self._starts[step]
        return turns

    def renumber_steps(self, writes: Writes) -> Writes:
        """Renumber the steps of writes; writes that follow an atomic operation come after its last turn."""
        step = writes.step - self.first
        turn = self.lengths[step] - 1
        rows = np.flatnonzero(writes.is_atomic)
        turn[rows] = np.minimum(_count_earlier_writes(writes, rows), turn[rows])
        return replace(writes, step=self.first + self._starts[step] + turn)


def _count_earlier_writes(writes: Writes, rows: Array) -> Array:
    """Return for each of the selected writes the number of earlier ones to the same cell in the same step."""
    step, cell = writes.step[rows], writes.cell[rows]
    order = np.lexsort((np.arange(rows.size), writes.moment[rows], cell, step))
    same = (np.diff(step[order], prepend=-1) == 0) & (np.diff(cell[order], prepend=-1) == 0)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(rows.size)))
    turn = np.empty(rows.size, np.int64)
    turn[order] = np.arange(rows.size) - starts
    return turn
