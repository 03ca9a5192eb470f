"""The full set of checkers for a checked launch."""

from __future__ import annotations

from collections.abc import Collection

from gpu.simulator.checkers.arithmetic import ArithmeticChecker
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.clusters import ClusterChecker
from gpu.simulator.checkers.memory.heap import HeapChecker, HeapRecords
from gpu.simulator.checkers.memory.lifetimes import LifetimeChecker
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.warp_masks import WarpMaskChecker
from gpu.simulator.checkers.warpgroups import WarpgroupChecker


def create_checkers(
    uninitialized: Collection[str] = (), heaps: HeapRecords | None = None, *, orders_volatile: bool = False
) -> tuple[Checker, ...]:
    """Return a checker of each kind for one launch.

    Parameters
    ----------
    uninitialized : collection of str
        The names of kernel parameters for arrays that start uninitialized.
    heaps : HeapRecords or None
        Allocations and frees of earlier launches; None if there were none.
    orders_volatile : bool
        As of `RaceChecker`.
    """
    return (
        RaceChecker(orders_volatile=orders_volatile),
        UninitializedChecker(uninitialized),
        HeapChecker(heaps),
        WarpMaskChecker(),
        LifetimeChecker(),
        ClusterChecker(),
        WarpgroupChecker(),
        ArithmeticChecker(),
    )
