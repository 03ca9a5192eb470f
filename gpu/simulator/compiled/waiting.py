"""Where the threads of a block see what others are doing."""

from __future__ import annotations

from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.walking import asked_once, walk
from gpu.simulator.executor.batches import reachable


def go_by_warps(kernel: ir.Function) -> bool:
    """Whether warps of a kernel wait for each other where they stand in different places, so that each goes its way."""
    functions = reachable(kernel)
    return any(each.has_phases or each.syncs_cluster or each.cluster is not None for each in functions)


@asked_once
def exchanges(node: Any) -> bool:
    """Whether threads wait for each other, or exchange values, somewhere inside."""
    return any(
        isinstance(each, ir.Barrier | ir.Warp | ir.ClusterBarrier)
        or (isinstance(each, ir.BarrierPhase) and each.op == "test")
        or (isinstance(each, ir.Fence) and each.name == "__syncwarp")
        or (isinstance(each, ir.Call) and waits(each.function.body))
        for each in walk(node)
    )


def waits(node: Any) -> bool:
    """Whether a thread sees what the others of its block are doing somewhere inside: by waiting, or by volatile memory.

    Code from before Volta lets the lanes of a warp meet in volatile memory, step by step: each such access is a point
    where all threads are.
    """
    return exchanges(node) or sees(node)


@asked_once
def sees(node: Any) -> bool:
    """Whether there is an access to volatile memory somewhere inside."""
    return any(isinstance(each, ir.Element) and each.volatile for each in walk(node))
