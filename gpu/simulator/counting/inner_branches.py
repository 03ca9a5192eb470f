"""Counts of branches within expressions: of `&&`, `||` and `?:`."""

from __future__ import annotations

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.counting.traffic import Warps
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Observer


class InnerBranchCounter(Observer):
    """Count the conditions of `&&`, `||` and `?:` that decide which lanes access memory or have effects.

    nvcc's code branches there like that of an `if`. `Counters` counts only statements.
    """

    def __init__(self) -> None:
        self.branches = 0
        """Conditions that a warp tested."""
        self.divergent_branches = 0
        """Those for which its lanes differed."""

    def inner_branch(self, batch: BlockBatch, mask: LaneMask, true_mask: LaneMask | None) -> None:
        warps = Warps(mask)
        self.branches += warps.count
        if true_mask is not None and true_mask.count < mask.count:
            words = Warps(true_mask).words
            self.divergent_branches += int(np.count_nonzero((words != 0) & (words != warps.words)))
