"""Points in a kernel where the threads of a block wait for, or observe, each other."""

from __future__ import annotations

from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.walking import asked_once, walk
from gpu.simulator.executor.batches import reachable


def go_by_warps(kernel: ir.Function) -> bool:
    """Return whether warps may wait for each other at different points, so that each must run separately."""
    functions = reachable(kernel)
    return any(each.has_phases or each.syncs_cluster or each.cluster is not None for each in functions)


@asked_once
def exchanges(node: Any) -> bool:
    """Return whether threads wait for each other, or exchange values, within a node."""
    return any(
        isinstance(each, ir.Barrier | ir.Warp | ir.ClusterBarrier)
        or (isinstance(each, ir.BarrierPhase) and each.op == "test")
        or (isinstance(each, ir.Fence) and each.name == "__syncwarp")
        or (isinstance(each, ir.Call) and waits(each.function.body))
        for each in walk(node)
    )


def waits(node: Any) -> bool:
    """Return whether threads of a block observe each other within a node: by waiting, or through volatile memory.

    Code from before Volta synchronizes the lanes of a warp through volatile memory: each such access is a point that
    all threads reach together.
    """
    return exchanges(node) or sees(node)


@asked_once
def sees(node: Any) -> bool:
    """Return whether a node accesses volatile memory."""
    return any(isinstance(each, ir.Element) and each.volatile for each in walk(node))
