"""What would order two accesses that race, in a sentence."""

from __future__ import annotations

from typing import Literal

Between = Literal["instruction", "copy", "warp", "block", "cluster", "grid", "launches"]
"""What two accesses have in common at most: one instruction, or threads of one warp, block, cluster, grid, or none of
these; or that one is a copy that goes on."""

_ORDERED_BY: dict[Between, str] = {
    "instruction": "Nothing orders threads in one instruction: an atomic would, or only one of them doing it",
    "copy": "The copy goes on until its thread waits for it: a wait between them would order the two, as "
    "__pipeline_wait_prior() is, and after it a __syncthreads() for other threads",
    "warp": "Nothing orders the two: a __syncwarp() between them would",
    "block": "Nothing orders the two: a __syncthreads() between them would",
    "cluster": "Nothing orders blocks of a cluster: a cluster.sync() between the two would",
    "grid": "Nothing orders blocks of a launch: {atomic}, or another launch, would",
    "launches": "Nothing orders launches that run at the same time: {atomic}, or launching one after the other has "
    "ended, would",
}


def what_would_order(between: Between, *, one_line: bool, one_atomic: bool) -> str:
    """Return that nothing orders two accesses, and what would.

    Parameters
    ----------
    between : {"instruction", "copy", "warp", "block", "cluster", "grid", "launches"}
        What they have in common.
    one_line : bool
        Whether both stand in one line, between whose parts a barrier hardly fits.
    one_atomic : bool
        Whether one of them is an atomic already.
    """
    said = _ORDERED_BY[between].format(atomic="atomics on both sides" if one_atomic else "an atomic")
    if one_line and between in ("warp", "block"):
        said += ", and an atomic needs none"
    return f"{said}."
