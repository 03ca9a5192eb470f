"""Advice on how to order two accesses that race."""

from __future__ import annotations

from typing import Literal

RaceScope = Literal["instruction", "copy", "warp", "block", "cluster", "grid", "launches"]
"""The narrowest scope that contains two accesses: one instruction, or threads of one warp, block, cluster or grid, or
two launches; "copy" if one access is an asynchronous copy that is still running."""

_ADVICE: dict[RaceScope, str] = {
    "instruction": "The threads of one statement are unordered: use an atomic operation, or let one thread write",
    "copy": "The asynchronous copy runs until its thread waits for it: add a wait between the two accesses, such as "
    "__pipeline_wait_prior(), and a __syncthreads() after it if other threads access the data",
    "warp": "No barrier separates the two accesses: add a __syncwarp() between them",
    "block": "No barrier separates the two accesses: add a __syncthreads() between them",
    "cluster": "No barrier separates the two accesses: add a cluster.sync() between them",
    "grid": "The blocks of a launch are unordered: use {atomic}, or a second launch",
    "launches": "Concurrent launches are unordered: use {atomic}, or start one launch after the other has ended",
}


def format_race_advice(scope: RaceScope, *, is_one_line: bool, has_atomic: bool) -> str:
    """Return a sentence that states why two accesses race, and how to order them.

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
