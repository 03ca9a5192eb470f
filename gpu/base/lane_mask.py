"""Masks of active lanes."""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class LaneMask:
    """The set of active lanes, which is not empty. Equal sets are often one object, so `is` detects equality fast."""

    __slots__ = ("_lanes", "bits", "count", "full")

    def __init__(self, bits: Array, count: int | None = None) -> None:
        self.bits = bits
        self.count = int(np.count_nonzero(bits)) if count is None else count
        self.full = self.count == bits.size
        self._lanes: Array | None = None

    @property
    def lanes(self) -> Array:
        """The numbers of the active lanes, ascending."""
        if self._lanes is None:
            self._lanes = self.bits.nonzero()[0]  # `np.flatnonzero` takes several times as long
        return self._lanes

    def split(self, condition: Any) -> tuple[Self | None, Self | None]:
        """Return the lanes where a condition (one bool, or one per lane) is true, and those where it is false."""
        if not isinstance(condition, np.ndarray):
            return (self, None) if condition else (None, self)
        true = condition if self.full else condition & self.bits
        count = int(np.count_nonzero(true))
        if count == self.count:
            return self, None
        if count == 0:
            return None, self
        return type(self)(true, count), type(self)(true ^ self.bits, self.count - count)

    def without(self, removed: LaneMask | None) -> Self | None:
        """Return the lanes that are not in `removed`, or None if there are none."""
        return self if removed is None else self.split(~removed.bits)[0]


_Mask = TypeVar("_Mask", bound=LaneMask)


def union_masks(first: _Mask | None, second: _Mask | None) -> _Mask | None:
    """Return the union of two disjoint masks."""
    if first is None or second is None:
        return first or second
    return type(first)(first.bits | second.bits, first.count + second.count)
