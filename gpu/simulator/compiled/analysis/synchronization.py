"""Points in a kernel where the threads of a block wait for, or observe, each other."""

from __future__ import annotations

from typing import Any

from gpu.simulator import ir
from gpu.simulator.ir.walking import cache_query, find_reachable_functions, walk


def needs_separate_warps(kernel: ir.Function) -> bool:
    """Return whether warps may wait for each other at different points, so that each must run separately."""
    functions = find_reachable_functions(kernel)
    return any(function.has_phases or function.syncs_cluster or function.cluster is not None for function in functions)


@cache_query
def has_exchange(node: Any) -> bool:
    """Return whether threads wait for each other, or exchange values, within a node."""
    return any(
        isinstance(each, ir.Barrier | ir.Warp | ir.ClusterBarrier)
        or (isinstance(each, ir.BarrierPhase) and each.op == "test")
        or (isinstance(each, ir.Fence) and each.name == "__syncwarp")
        or (isinstance(each, ir.Call) and has_synchronization(each.function.body))
        for each in walk(node)
    )


def has_synchronization(node: Any) -> bool:
    """Return whether threads of a block observe each other within a node: by waiting, or through volatile memory.

    Code from before Volta synchronizes the lanes of a warp through volatile memory: each such access is a point that
    all threads reach together.
    """
    return has_exchange(node) or accesses_volatile(node)


@cache_query
def accesses_volatile(node: Any) -> bool:
    """Return whether a node accesses volatile memory."""
    return any(isinstance(each, ir.Element) and each.volatile for each in walk(node))
