"""What a kernel has written: the first elements of each array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.observe import Access, Observer

FIRST = 16
"""Elements of an array that are kept."""

_HEAD = FIRST * 64
"""Bytes at the beginning of which is known whether they were written: no type of which arrays are made is larger."""


@dataclass(frozen=True)
class WrittenArray:
    """An array that a kernel wrote to.

    Parameters
    ----------
    name : str
        The parameter's, or the variable's.
    dtype : str
        NumPy's name for the type of its elements.
    count : int
        How many it has.
    first : tuple
        The first `FIRST` of them; None is one without a value, and of a struct it is a tuple of its numbers.
    """

    name: str
    dtype: str
    count: int
    first: tuple[Any, ...]


class FirstWrites(Observer):
    """Sees to which arrays in global memory a launch writes, and which of their first bytes."""

    def __init__(self) -> None:
        self._heads: dict[str, npt.NDArray[np.bool_]] = {}
        self._memories: dict[str, FlatMemory] = {}

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if access.site.action == "read" or memory.space != "global" or not isinstance(memory, FlatMemory):
            return
        if memory.name not in self._heads:
            self._heads[memory.name] = np.zeros(_HEAD, np.bool_)
            self._memories[memory.name] = memory
        head = self._heads[memory.name]
        starts = access.elements * access.size
        starts = starts[starts < _HEAD]
        for place in range(access.size if starts.size else 0):
            head[starts[starts + place < _HEAD] + place] = True

    def arrays(
        self, dtypes: Mapping[str, np.dtype[Any]], uninitialized: frozenset[str] = frozenset()
    ) -> tuple[WrittenArray, ...]:
        """Return what was written, in the order of `dtypes`.

        Parameters
        ----------
        dtypes : mapping of str to dtype
            The type of the elements of each array that is of interest.
        uninitialized : frozenset of str
            Those whose elements had no values before.
        """
        return tuple(
            self._array(name, dtype, whole=name not in uninitialized)
            for name, dtype in dtypes.items()
            if name in self._memories
        )

    def _array(self, name: str, dtype: np.dtype[Any], *, whole: bool) -> WrittenArray:
        count = self._memories[name].data.size // dtype.itemsize
        shown = min(count, FIRST)
        part = self._memories[name].data[: shown * dtype.itemsize]
        base, shape = dtype.subdtype or (dtype, ())
        values = part.view(base).reshape(shown, *shape).tolist()
        known = self._heads[name][: shown * dtype.itemsize].reshape(shown, -1)
        first = tuple(value if whole or has.any() else None for value, has in zip(values, known, strict=True))
        return WrittenArray(name, f"{base} x {math.prod(shape)}" if shape else str(base), count, first)
