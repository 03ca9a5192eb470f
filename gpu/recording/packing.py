"""Compact storage of recorded data: growing arrays and tables, numberings of objects, and compressed vectors and masks.

Vectors that are constant or arithmetic sequences, and masks, are stored compactly. For integers, values and masks there
is a class that grows while a launch is recorded, and a packed class for reading.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.recording.tables import MASK

Array = npt.NDArray[Any]
Object = TypeVar("Object")

UNCOMPRESSED = -(2**31)
"""The step of a vector of integers that is stored uncompressed."""
_CACHED_MASKS = 512


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


@dataclass(frozen=True, eq=False)
class PackedIntegers:
    """Recorded vectors of integers.

    Parameters
    ----------
    starts : int64 array
        The first number of each vector; for an uncompressed one, its start in the pool.
    steps : int32 array
        The difference between consecutive numbers, or EXPLICIT for an uncompressed vector.
    pool : int32 array
        The numbers of uncompressed vectors.
    """

    starts: Array
    steps: Array
    pool: Array

    def vector(self, number: int, count: int) -> Array:
        """Return the first `count` numbers of a vector: int64."""
        start, step = int(self.starts[number]), int(self.steps[number])
        if step == UNCOMPRESSED:
            return self.pool[start : start + count].astype(np.int64)
        numbers: Array = start + step * np.arange(count)
        return numbers

    def vector_items(self, number: int, places: Array) -> Array:
        """Return the numbers at some indices of a vector: int64."""
        start, step = int(self.starts[number]), int(self.steps[number])
        items: Array = self.pool[start + places].astype(np.int64) if step == UNCOMPRESSED else start + step * places
        return items

    def gather_items(self, numbers: Array, places: Array) -> Array:
        """Return one number of each of some vectors, at an index for each: int64."""
        starts, steps = self.starts[numbers], self.steps[numbers]
        explicit = steps == UNCOMPRESSED
        items: Array = starts + steps * places
        items[explicit] = self.pool[(starts + places)[explicit]]
        return items


@dataclass(frozen=True, eq=False)
class PackedValues:
    """Recorded vectors of values.

    Parameters
    ----------
    starts : int64 array
        The start of each vector in the pool.
    codes : int32 array
        Twice the number of its type, plus one if it has a value for each lane rather than one for all.
    pool : uint8 array
        The bytes of the values.
    dtypes : tuple of numpy.dtype
        The types, by number.
    """

    starts: Array
    codes: Array
    pool: Array
    dtypes: tuple[np.dtype[Any], ...]

    def vector(self, number: int, count: int) -> Array:
        """Return the first `count` values of a vector."""
        start, code = int(self.starts[number]), int(self.codes[number])
        dtype = self.dtypes[code // 2]
        if code % 2:
            return self.pool[start : start + count * dtype.itemsize].view(dtype)
        return np.broadcast_to(self.pool[start : start + dtype.itemsize].view(dtype), count)

    def gather_bytes(self, numbers: Array, places: Array, width: int) -> Array:
        """Return the bytes of one value of each of some vectors, padded with zeros: uint8, shape (values, width)."""
        codes = self.codes[numbers]
        sizes = self.sizes[codes // 2]
        starts = self.starts[numbers] + np.where(codes % 2 == 1, places * sizes, 0)
        raw = np.zeros((numbers.size, width), np.uint8)
        for byte in range(int(sizes.max(initial=0))):
            has = np.flatnonzero(sizes > byte)
            raw[has, byte] = self.pool[starts[has] + byte]
        return raw

    @property
    def sizes(self) -> Array:
        """The size of a value of each type, in bytes."""
        return np.array([dtype.itemsize for dtype in self.dtypes] or [1])


@dataclass(frozen=True, eq=False)
class PackedMasks:
    """Recorded masks.

    Parameters
    ----------
    rows : array of MASK
        One row per mask.
    pool : uint8 array
        The bits or lane numbers of the masks.
    """

    rows: Array
    pool: Array
    _cache: dict[int, Array] = field(default_factory=dict, repr=False)

    def lanes(self, number: int) -> Array:
        """Return the lanes of a mask, ascending."""
        active = self._cache.get(number)
        if active is None:
            start, count, lanes, as_bits = self.rows[number].tolist()
            if as_bits:
                active = np.flatnonzero(np.unpackbits(self.pool[start:], count=lanes))
            else:
                active = self.pool[start : start + 4 * count].view(np.int32).astype(np.int64)
            if len(self._cache) > _CACHED_MASKS:
                self._cache.clear()
            self._cache[number] = active
        return active

    def expand(self, masks: Array) -> tuple[Array, Array, Array]:
        """Return for each lane of each mask: the index of the mask in `masks`, the lane's rank in it, and the lane."""
        distinct, inverse = np.unique(masks, return_inverse=True)
        if not distinct.size:
            return (np.empty(0, np.int64),) * 3
        lists = [self.lanes(mask) for mask in distinct.tolist()]
        sizes = np.array([each.size for each in lists])
        starts = np.cumsum(sizes) - sizes
        rank, owner = compute_ranks(sizes[inverse])
        return owner, rank, np.concatenate(lists)[starts[inverse[owner]] + rank]


def compute_ranks(counts: Array) -> tuple[Array, Array]:
    """Return the concatenation of 0 .. count - 1 for each count, and for each number the index of its count."""
    owner = np.repeat(np.arange(counts.size), counts)
    return np.arange(owner.size) - (np.cumsum(counts) - counts)[owner], owner


class IntegerVectors:
    """Vectors of int32, one number per lane: stored as a first number and a step, or uncompressed."""

    def __init__(self) -> None:
        self.starts, self.steps = array("q"), array("i")
        self.pool = GrowingArray(np.int32)

    def add(self, values: Any) -> int:
        """Add a vector and return its number."""
        start, step = self._first_and_step(values)
        self.starts.append(start)
        self.steps.append(step)
        return len(self.starts) - 1

    def pack(self) -> PackedIntegers:
        """Return all vectors."""
        return PackedIntegers(np.array(self.starts, np.int64), np.array(self.steps, np.int32), self.pool.array().copy())

    def _first_and_step(self, values: Any) -> tuple[int, int]:
        if not isinstance(values, np.ndarray) or values.ndim == 0:
            return int(values), 0
        if values.size == 1:
            return int(values[0]), 0
        first, step = int(values[0]), int(values[1]) - int(values[0])
        if int(values[-1]) - first == step * (values.size - 1) and bool((values[1:] - values[:-1] == step).all()):
            return first, step
        return self.pool.add(values), UNCOMPRESSED


class ValueVectors:
    """Vectors of any scalar type, one value per lane: stored as one value or uncompressed."""

    def __init__(self) -> None:
        self.starts, self.codes = array("q"), array("i")
        self.pool = GrowingArray(np.uint8)
        self._dtypes = Numbering[np.dtype[Any]]()

    def pack(self) -> PackedValues:
        """Return all vectors."""
        starts, codes = np.array(self.starts, np.int64), np.array(self.codes, np.int32)
        return PackedValues(starts, codes, self.pool.array().copy(), tuple(self._dtypes.objects))

    def type_number(self, dtype: np.dtype[Any]) -> int:
        """Return the number of a type."""
        return self._dtypes.number_of(dtype)

    def add(self, values: Any) -> int:
        """Add a vector and return its number."""
        values = np.asarray(values)
        several = values.size > 1
        # Bit patterns are compared, so that NaN and the two zeros are preserved.
        raw = np.ascontiguousarray(values).ravel().view(np.uint8).reshape(values.size, values.dtype.itemsize)
        if several and bool((raw[0] == raw[-1]).all()) and bool((raw == raw[0]).all()):
            raw, several = raw[:1], False
        self.starts.append(self.pool.add(raw.ravel()))
        self.codes.append(2 * self.type_number(values.dtype) + several)
        return len(self.starts) - 1


class MaskTable:
    """Masks, each stored as bits or as lane numbers, whichever is shorter."""

    def __init__(self) -> None:
        self.rows = Table(MASK)
        self.pool = GrowingArray(np.uint8)
        self._cache: dict[int, tuple[LaneMask, int]] = {}

    def clear_cache(self) -> None:
        """Clear the cache of mask objects, so that their memory is released."""
        self._cache.clear()

    def pack(self) -> PackedMasks:
        """Return all masks."""
        return PackedMasks(self.rows.array(), self.pool.array().copy())

    def add(self, mask: LaneMask) -> int:
        """Add a mask and return its number; a mask object is stored once."""
        cached = self._cache.get(id(mask))
        if cached is not None:
            return cached[1]
        if len(self._cache) > 256:
            self.clear_cache()
        as_bits = mask.bits.size < 32 * mask.count
        raw = np.packbits(mask.bits) if as_bits else mask.lanes.astype(np.int32).view(np.uint8)
        number = len(self.rows)
        self.rows.add(self.pool.add(raw), mask.count, mask.bits.size, as_bits)
        self._cache[id(mask)] = (mask, number)
        return number
