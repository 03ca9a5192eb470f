"""Advice on how to order two accesses that race."""

from __future__ import annotations

from typing import Literal

RaceScope = Literal["instruction", "copy", "warp", "block", "cluster", "grid", "launches"]
"""The narrowest scope that contains two accesses: one instruction, or threads of one warp, block, cluster or grid, or
two launches; "copy" if one access is an asynchronous copy that is still running."""

_ADVICE: dict[RaceScope, str] = {
    "instruction": "Nothing orders the threads of one statement: use an atomic operation, or let one thread write",
    "copy": "The asynchronous copy runs until its thread waits for it: add a wait between the two accesses, such as "
    "__pipeline_wait_prior(), and a __syncthreads() after it if other threads access the data",
    "warp": "Nothing orders the two accesses: add a __syncwarp() between them",
    "block": "Nothing orders the two accesses: add a __syncthreads() between them",
    "cluster": "Nothing orders the blocks of a cluster: add a cluster.sync() between the two accesses",
    "grid": "Nothing orders the blocks of a launch: use {atomic}, or a second launch",
    "launches": "Nothing orders launches that run at the same time: use {atomic}, or start one launch after the other "
    "has ended",
}


def format_race_advice(scope: RaceScope, *, is_one_line: bool, has_atomic: bool) -> str:
    """Return a sentence that states that nothing orders two accesses, and how to order them.

    Parameters
    ----------
    scope : {"instruction", "copy", "warp", "block", "cluster", "grid", "launches"}
        The narrowest scope that contains both accesses.
    is_one_line : bool
        Whether both accesses are in one source line, where a barrier between them rarely fits.
    has_atomic : bool
        Whether one of them is already an atomic operation.
    """
    advice = _ADVICE[scope].format(atomic="atomic operations on both sides" if has_atomic else "an atomic operation")
    if is_one_line and scope in ("warp", "block"):
        advice += ", or use an atomic operation"
    return f"{advice}."
