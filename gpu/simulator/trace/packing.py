"""Containers that grow while a launch is recorded: arrays, tables of integers, and numberings of objects."""

from __future__ import annotations

from array import array
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.masks import LaneMask

Array = npt.NDArray[Any]
Object = TypeVar("Object")


def select_active(value: Any, mask: LaneMask) -> Any:
    """Return the elements of a value for the lanes of a mask; a value shared by all lanes is returned unchanged."""
    if not isinstance(value, np.ndarray) or mask.full:
        return value
    return value[mask.lanes]


class GrowingArray:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._buffer = np.empty(0, dtype)
        self.size = 0

    def add(self, values: Array) -> int:
        """Append values and return the index of the first."""
        start, self.size = self.size, self.size + values.size
        if self.size > self._buffer.size:
            grown = np.empty(max(self.size, self._buffer.size * 3 // 2), self._buffer.dtype)
            grown[:start] = self._buffer[:start]
            self._buffer = grown
        self._buffer[start : self.size] = values
        return start

    def array(self) -> Array:
        """Return all values."""
        return self._buffer[: self.size]


class Table:
    """A growing table of int32.

    Parameters
    ----------
    dtype : numpy.dtype
        The columns, each of one or several numbers.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._width = dtype.itemsize // 4
        self._numbers = array("i")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, *row: int) -> None:
        self._numbers.extend(row)
        self._count += 1

    def get(self, row: int, column: str) -> int:
        """Return one number."""
        return self._numbers[self._place(row, column)]

    def set(self, row: int, column: str, value: int) -> None:
        """Change one number."""
        self._numbers[self._place(row, column)] = value

    def increase(self, row: int, column: str, amount: int) -> None:
        """Add to one number."""
        self._numbers[self._place(row, column)] += amount

    def _place(self, row: int, column: str) -> int:
        assert self._dtype.fields is not None
        return row * self._width + self._dtype.fields[column][1] // 4

    def array(self) -> Array:
        """Return the rows as a structured array."""
        return np.array(self._numbers, np.int32).view(self._dtype)


class Numbering(Generic[Object]):
    """Assigns numbers to objects, from 0, in the order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[Object, int] = {}

    def number_of(self, thing: Object) -> int:
        """Return the number of an object; assign one if it is new."""
        return self.numbers.setdefault(thing, len(self.numbers))

    @property
    def objects(self) -> tuple[Object, ...]:
        """The objects, by number."""
        return tuple(self.numbers)
