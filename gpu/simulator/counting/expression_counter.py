"""Counts of what happens within expressions: branches of `&&`, `||` and `?:`, and exchanges between lanes."""

from __future__ import annotations

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.counting.traffic import Warps
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Observer, WarpSync


class ExpressionCounter(Observer):
    """Count branches and exchanges within expressions; `Counters` counts those of statements.

    The conditions of `&&`, `||` and `?:` are branches if they decide which lanes access memory or have effects. nvcc's
    code branches there like that of an `if`.
    """

    def __init__(self) -> None:
        self.branches = 0
        """Conditions that a warp tested."""
        self.divergent_branches = 0
        """Those for which its lanes differed."""
        self.exchanges = 0
        """Shuffles, votes, matches and reductions of warps."""

    def inner_branch(self, batch: BlockBatch, mask: LaneMask, true_mask: LaneMask | None) -> None:
        warps = Warps(mask)
        self.branches += warps.count
        if true_mask is not None and true_mask.count < mask.count:
            words = Warps(true_mask).words
            self.divergent_branches += int(np.count_nonzero((words != 0) & (words != warps.words)))

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        if sync.name != "__syncwarp":
            self.exchanges += Warps(sync.mask).count
