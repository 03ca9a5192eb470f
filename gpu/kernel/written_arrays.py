"""The first elements of each array that a kernel wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access, Observer

MAX_FIRST_ELEMENTS = 16
"""The number of elements kept per array."""

_HEAD_BYTES = MAX_FIRST_ELEMENTS * 64
"""Bytes at the beginning of each array where writes are tracked: `MAX_FIRST_ELEMENTS` elements of the largest type."""


@dataclass(frozen=True)
class WrittenArray:
    """An array that a kernel wrote to.

    Parameters
    ----------
    name : str
        The name of the parameter or variable.
    dtype : str
        The NumPy name of the element type.
    count : int
        The number of elements.
    first_elements : tuple
        The first `MAX_FIRST_ELEMENTS` elements; None for an unwritten one, and a tuple of numbers for a struct.
    """

    name: str
    dtype: str
    count: int
    first_elements: tuple[Any, ...]


class FirstWriteObserver(Observer):
    """Observe which arrays in global memory a launch writes, and which of their first bytes."""

    def __init__(self) -> None:
        self._heads: dict[str, npt.NDArray[np.bool_]] = {}
        self._memories: dict[str, FlatMemory] = {}

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if access.site.action == "read" or memory.space != "global" or not isinstance(memory, FlatMemory):
            return
        if memory.name not in self._heads:
            self._heads[memory.name] = np.zeros(_HEAD_BYTES, np.bool_)
            self._memories[memory.name] = memory
        head = self._heads[memory.name]
        starts = access.elements * access.size
        starts = starts[starts < _HEAD_BYTES]
        for byte in range(access.size if starts.size else 0):
            head[starts[starts + byte < _HEAD_BYTES] + byte] = True

    def written_arrays(
        self, dtypes: Mapping[str, np.dtype[Any]], uninitialized: frozenset[str] = frozenset()
    ) -> tuple[WrittenArray, ...]:
        """Return the written arrays, in the order of `dtypes`.

        Parameters
        ----------
        dtypes : mapping of str to dtype
            The element type of each array to report.
        uninitialized : frozenset of str
            The arrays without initial values.
        """
        return tuple(
            self._to_written_array(name, dtype, initialized=name not in uninitialized)
            for name, dtype in dtypes.items()
            if name in self._memories
        )

    def _to_written_array(self, name: str, dtype: np.dtype[Any], *, initialized: bool) -> WrittenArray:
        count = self._memories[name].data.size // dtype.itemsize
        length = min(count, MAX_FIRST_ELEMENTS)
        part = self._memories[name].data[: length * dtype.itemsize]
        base, shape = dtype.subdtype or (dtype, ())
        values = part.view(base).reshape(length, *shape).tolist()
        written = self._heads[name][: length * dtype.itemsize].reshape(length, -1)
        first = tuple(value if initialized or mask.any() else None for value, mask in zip(values, written, strict=True))
        return WrittenArray(name, f"{base} x {math.prod(shape)}" if shape else str(base), count, first)
