"""Sets of lanes: those that are active."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class LaneMask:
    """The active lanes, at least one. The same set is often the same object, and `is` then tells so at no cost."""

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
            self._lanes = np.flatnonzero(self.bits)
        return self._lanes

    def split(self, condition: Any) -> tuple[LaneMask | None, LaneMask | None]:
        """Return the lanes where the condition (one bool, or one a lane) holds, and those where it does not."""
        if not isinstance(condition, np.ndarray):
            return (self, None) if condition else (None, self)
        true = condition if self.full else condition & self.bits
        count = int(np.count_nonzero(true))
        if count == self.count:
            return self, None
        if count == 0:
            return None, self
        return LaneMask(true, count), LaneMask(true ^ self.bits, self.count - count)

    def without(self, gone: LaneMask | None) -> LaneMask | None:
        """Return the lanes that are not in `gone`."""
        return self if gone is None else self.split(~gone.bits)[0]


def union(first: LaneMask | None, second: LaneMask | None) -> LaneMask | None:
    """Return the lanes of two masks that share none."""
    if first is None or second is None:
        return first or second
    return LaneMask(first.bits | second.bits, first.count + second.count)
