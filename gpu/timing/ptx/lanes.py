"""Sets of lanes of the sampled blocks; each block's threads fill complete warps."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP

Array = npt.NDArray[Any]


class SampleLanes:
    """A nonempty set of lanes.

    Parameters
    ----------
    bits : bool array
        One entry per lane of the sample.
    count : int
        The number of lanes in the set.
    """

    def __init__(self, bits: Array, count: int | None = None) -> None:
        self.bits = bits
        self.count = int(np.count_nonzero(bits)) if count is None else count

    @cached_property
    def numbers(self) -> Array:
        """The indices of the lanes, ascending."""
        return np.flatnonzero(self.bits)

    @cached_property
    def is_all(self) -> bool:
        return self.count == self.bits.size

    @cached_property
    def lanes_per_warp(self) -> Array:
        """The number of lanes in each warp of the sample: uint8."""
        counts: Array = self.bits.reshape(-1, WARP).sum(axis=1, dtype=np.uint8)
        return counts

    @cached_property
    def warps(self) -> Array:
        """The numbers of the warps that contain a lane of the set."""
        return np.flatnonzero(self.lanes_per_warp)

    @cached_property
    def rows(self) -> Array:
        """The bits of the warps that contain a lane of the set, one row per warp."""
        rows: Array = self.bits.reshape(-1, WARP)[self.warps]
        return rows

    @cached_property
    def has_complete_warps(self) -> bool:
        """Whether all lanes of each of these warps are in the set."""
        return bool(self.rows.all())

    def split(self, condition: Any) -> tuple[SampleLanes | None, SampleLanes | None]:
        """Split the set by a condition, one value for all lanes or one per lane, into true and false lanes."""
        if not isinstance(condition, np.ndarray) or not condition.ndim:
            return (self, None) if condition else (None, self)
        true = condition & self.bits
        count = int(np.count_nonzero(true))
        if count == self.count:
            return self, None
        if not count:
            return None, self
        return SampleLanes(true, count), SampleLanes(true ^ self.bits, self.count - count)


def merge_lanes(first: SampleLanes | None, second: SampleLanes | None) -> SampleLanes | None:
    """Return the union of two disjoint sets of lanes."""
    if first is None or second is None:
        return first or second
    return SampleLanes(first.bits | second.bits, first.count + second.count)
