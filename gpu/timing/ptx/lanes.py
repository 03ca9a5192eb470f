"""Sets of lanes of the sampled blocks; each block's threads fill complete warps."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP

Array = npt.NDArray[Any]


class SampleLanes(LaneMask):
    """A nonempty set of lanes, and its warps."""

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

    def is_in(self, others: LaneMask) -> bool:
        """Return whether all lanes of the set are in another one."""
        return not (self.bits & ~others.bits).any()

    def split(self, condition: Any) -> tuple[Self | None, Self | None]:
        """Return the lanes where a condition is true and where it is false; it may also be an array of no dimension."""
        return super().split(np.asarray(condition)[()])
