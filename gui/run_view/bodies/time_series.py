"""Time series of a simulation's figures with bounded memory."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Array

CAPACITY = 1200


class TimeSeries:
    """Rows of figures at increasing times. When it is full, every other row is dropped, so that the range stays.

    Parameters
    ----------
    columns : int
        Number of figures per row.
    """

    def __init__(self, columns: int) -> None:
        self._times = np.empty(CAPACITY)
        self._rows = np.empty((CAPACITY, columns))
        self._count = 0
        self._stride = self._skipped = 1

    @property
    def times(self) -> Array:
        """The times: float64, shape (rows,)."""
        return self._times[: self._count]

    @property
    def rows(self) -> Array:
        """The figures: float64, shape (rows, columns)."""
        return self._rows[: self._count]

    def clear(self) -> None:
        """Remove all rows."""
        self._count = 0
        self._stride = self._skipped = 1

    def add(self, time: float, figures: tuple[float, ...]) -> None:
        """Add a row; it replaces the last row if that has the same time or follows too closely."""
        if self._count and (time <= self._times[self._count - 1] or self._skipped < self._stride):
            row = self._count - 1
            self._skipped += time > self._times[row]
        else:
            if self._count == CAPACITY:
                half = CAPACITY // 2
                self._times[:half] = self._times[1::2].copy()
                self._rows[:half] = self._rows[1::2].copy()
                self._count = half
                self._stride *= 2
            row = self._count
            self._count += 1
            self._skipped = 1
        self._times[row] = time
        self._rows[row] = figures

    def find_nearest_row(self, time: float) -> int | None:
        """Return the index of the row nearest to a time, or None if there are no rows."""
        if not self._count:
            return None
        after = int(np.searchsorted(self.times, time))
        near = [row for row in (after - 1, after) if 0 <= row < self._count]
        return min(near, key=lambda row: abs(self._times[row] - time))
