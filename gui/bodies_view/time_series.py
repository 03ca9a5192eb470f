"""What a simulation's figures were, from its beginning on, in a memory that does not grow."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Array

CAPACITY = 1200


class TimeSeries:
    """Rows of figures at rising times. When it is full every other row goes, so that the whole time stays.

    Parameters
    ----------
    columns : int
        Figures in a row.
    """

    def __init__(self, columns: int) -> None:
        self._times = np.empty(CAPACITY)
        self._rows = np.empty((CAPACITY, columns))
        self._count = 0
        self._stride = self._skipped = 1

    @property
    def times(self) -> Array:
        """Return the times: float64, shape (rows,)."""
        return self._times[: self._count]

    @property
    def rows(self) -> Array:
        """Return the figures: float64, shape (rows, columns)."""
        return self._rows[: self._count]

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0
        self._stride = self._skipped = 1

    def add(self, time: float, figures: tuple[float, ...]) -> None:
        """Take a row; one of the time of the last takes its place, and so does one that comes too soon after it."""
        if self._count and (time <= self._times[self._count - 1] or self._skipped < self._stride):
            at = self._count - 1
            self._skipped += time > self._times[at]
        else:
            if self._count == CAPACITY:
                kept = CAPACITY // 2
                self._times[:kept] = self._times[1::2].copy()
                self._rows[:kept] = self._rows[1::2].copy()
                self._count = kept
                self._stride *= 2
            at = self._count
            self._count += 1
            self._skipped = 1
        self._times[at] = time
        self._rows[at] = figures

    def at(self, time: float) -> int | None:
        """Return the row that is nearest to a time, or None where there is none."""
        if not self._count:
            return None
        after = int(np.searchsorted(self.times, time))
        near = [row for row in (after - 1, after) if 0 <= row < self._count]
        return min(near, key=lambda row: abs(self._times[row] - time))
