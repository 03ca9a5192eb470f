"""How a recording is kept small: tables of integers, and vectors that are often one number or a run of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.lanes import Mask

Array = npt.NDArray[Any]
Thing = TypeVar("Thing")

# The step of a vector that is kept as it is.
EXPLICIT = -(2**31)


def compact(value: Any, mask: Mask) -> Any:
    """Return the part of a value that the lanes of a mask have; one value for all stays one."""
    if not isinstance(value, np.ndarray) or mask.full:
        return value
    return value[mask.lanes]


class Growing:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._buffer = np.empty(0, dtype)
        self.size = 0

    def add(self, values: Array) -> int:
        """Append values and return where they start."""
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
    """Rows of int32."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._rows = array("i")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, *row: int) -> None:
        self._rows.extend(row)
        self._count += 1

    def set(self, row: int, column: str, value: int) -> None:
        """Change one number."""
        self._rows[row * len(self.columns) + self.columns.index(column)] = value

    def increase(self, row: int, column: str, by: int) -> None:
        """Add to one number."""
        self._rows[row * len(self.columns) + self.columns.index(column)] += by

    def array(self) -> Array:
        """Return the rows, shape (rows, columns)."""
        return np.array(self._rows, np.int32).reshape(-1, len(self.columns))


class Numbering(Generic[Thing]):
    """Numbers for things, from 0, in the order in which they first come."""

    def __init__(self) -> None:
        self.numbers: dict[Thing, int] = {}

    def of(self, thing: Thing) -> int:
        """Return a thing's number."""
        return self.numbers.setdefault(thing, len(self.numbers))

    @property
    def things(self) -> list[Thing]:
        """The things, by number."""
        return list(self.numbers)


class Integers:
    """Vectors of int32, one number a lane: kept as one number, as a first number and a step, or as they are."""

    def __init__(self) -> None:
        self.starts, self.steps = array("q"), array("i")
        self.pool = Growing(np.int32)

    def add(self, values: Any) -> int:
        """Keep a vector and return its number."""
        start, step = self._packed(values)
        self.starts.append(start)
        self.steps.append(step)
        return len(self.starts) - 1

    def _packed(self, values: Any) -> tuple[int, int]:
        if not isinstance(values, np.ndarray) or values.ndim == 0:
            return int(values), 0
        if values.size == 1:
            return int(values[0]), 0
        first, step = int(values[0]), int(values[1]) - int(values[0])
        if int(values[-1]) - first == step * (values.size - 1) and bool((values[1:] - values[:-1] == step).all()):
            return first, step
        return self.pool.add(values), EXPLICIT


class Values:
    """Vectors of any scalar type, one value a lane: kept as one value or as they are."""

    def __init__(self) -> None:
        self.starts, self.codes = array("q"), array("i")
        self.pool = Growing(np.uint8)
        self._dtypes = Numbering[str]()

    @property
    def dtypes(self) -> list[str]:
        """The names of the types, by code."""
        return self._dtypes.things

    def code(self, dtype: np.dtype[Any]) -> int:
        """Return the number of a type."""
        return self._dtypes.of(dtype.name)

    def add(self, values: Any) -> int:
        """Keep a vector and return its number."""
        values = np.asarray(values)
        several = values.size > 1
        # Bit patterns are compared, so that NaN and the two zeros stay what they are.
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(-1, values.dtype.itemsize)
        if several and bool((raw[0] == raw[-1]).all()) and bool((raw == raw[0]).all()):
            raw, several = raw[:1], False
        self.starts.append(self.pool.add(raw.reshape(-1)))
        self.codes.append(2 * self.code(values.dtype) + several)
        return len(self.starts) - 1


class Masks:
    """Sets of lanes, each kept once, as bits or as lane numbers, whichever is shorter."""

    def __init__(self) -> None:
        self.rows = Table(("start", "count", "lanes", "bits"))
        self.pool = Growing(np.uint8)
        self._known: dict[int, tuple[Mask, int]] = {}

    def forget(self) -> None:
        """Let go of the masks themselves, so that memory is free again."""
        self._known.clear()

    def add(self, mask: Mask) -> int:
        """Keep a mask and return its number."""
        known = self._known.get(id(mask))
        if known is not None:
            return known[1]
        if len(self._known) > 256:
            self.forget()
        as_bits = mask.bits.size < 32 * mask.count
        raw = np.packbits(mask.bits) if as_bits else mask.lanes.astype(np.int32).view(np.uint8)
        number = len(self.rows)
        self.rows.add(self.pool.add(raw), mask.count, mask.bits.size, as_bits)
        self._known[id(mask)] = (mask, number)
        return number
