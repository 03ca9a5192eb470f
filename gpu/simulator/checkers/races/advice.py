"""Advice on how to order two accesses that race."""

from __future__ import annotations

from typing import Literal

RaceScope = Literal[
    "instruction",
    "update",
    "claim",
    "copy",
    "running bulk",
    "bulk",
    "warp",
    "block",
    "cluster",
    "grid",
    "in place",
    "launching block",
    "launches",
]
"""The narrowest scope that contains two accesses: one instruction, or threads of one warp, block, cluster or grid, or
two launches; "update" if threads of a block read and write one element by one statement, "claim" if they read it first
and then write it by another one; "in place" if a line of a kernel reads what other blocks write in it; "launching
block" if the earlier access is one of the block that launches the later one's grid, before the launch; "copy" or
"running bulk" if one access is an asynchronous copy that is still running, the latter by an mbarrier; "bulk" if the
earlier one is a bulk copy to shared memory, which an mbarrier completes."""

_ADVICE: dict[RaceScope, str] = {
    "instruction": "The threads of one statement are unordered: use an atomic operation, or let one thread write",
    "update": "Several threads update this element by one statement, in which no barrier fits: use an atomic operation",
    "claim": "Several threads read this element and then write it, and a barrier leaves the order of their writes "
    "open: use one atomic operation for both, such as atomicCAS() or atomicMax(), or let one thread do it",
    "copy": "The asynchronous copy runs until its thread waits for it: add a wait between the two accesses, such as "
    "__pipeline_wait_prior(), or let an existing one leave fewer copies pending, and add a __syncthreads() after it if "
    "other threads access the data",
    "running bulk": "The bulk copy is still running: wait for a phase of its mbarrier that expects all its bytes "
    "(expect_tx), with all other copies that complete this phase",
    "bulk": "Only a thread that waits for the phase of the mbarrier knows that the bulk copy has ended: add a wait, "
    "such as mbarrier.try_wait, before the access, or a barrier after another thread's wait",
    "warp": "No barrier separates the two accesses: add a __syncwarp() between them",
    "block": "No barrier separates the two accesses: add a __syncthreads() between them",
    "cluster": "No barrier separates the two accesses: add a cluster.sync() between them",
    "grid": "The blocks of a launch are unordered: use {atomic}, or a second launch",
    "in place": "The blocks of a launch are unordered, and this line reads what others of them write: write the "
    "results to another array, use an atomic operation, or a second launch",
    "launching block": "A child launch follows what its thread has done before, and nothing orders the access of "
    "another thread of the block before the launch: add a __syncthreads() before it",
    "launches": "Concurrent launches are unordered: use {atomic}, start one launch after the other has ended, or let "
    "them share a flag or lock with a __threadfence() before its release and after its acquire",
}

RaceCause = Literal[
    "unfenced lock",
    "narrow lock fence",
    "unfenced read",
    "relaxed read",
    "narrow read",
    "narrow read fence",
    "unfenced write",
    "relaxed write",
    "unfenced ticket",
    "narrow write",
    "narrow write fence",
    "narrow access",
    "mixed sizes",
    "ignored flag",
    "late write",
    "early flag",
    "early release",
    "unordered flag write",
    "unordered flag read",
    "relaxed arrival",
    "relaxed wait",
]
"""Why synchronization through memory does not order two accesses."""

_CAUSES: dict[RaceCause, str] = {
    "unfenced lock": "No fence follows the atomic operation that takes the lock: add a {fence} before the first access "
    "to the data",
    "narrow lock fence": "The fence after the atomic operation that takes the lock is of {scope} scope, and another "
    "thread that takes the lock is in another {scope}: use a {fence}",
    "unfenced read": "No fence follows the read of the flag: add a {fence} between the read of the flag and the access "
    "to the data",
    "relaxed read": "The flag is read with relaxed order: read it with acquire order, or add a {fence} between the "
    "read of the flag and the access to the data",
    "narrow read": "The read of the flag is of {scope} scope, and the thread that wrote the flag is in another "
    "{scope}: use a read of device scope",
    "narrow read fence": "The fence after the read of the flag is of {scope} scope, and the thread that wrote the flag "
    "is in another {scope}: use a {fence}",
    "unfenced write": "The flag is written without a fence before it: add a {fence} between the {access} of the data "
    "and the write of the flag",
    "relaxed write": "The flag is written with relaxed order: write it with release order, or add a {fence} between "
    "the {access} of the data and the write of the flag",
    "unfenced ticket": "No fence precedes the atomic operation by which the other thread learns that the data is "
    "written: add a {fence} between the write of the data and the atomic operation",
    "narrow write": "The write of the flag is of {scope} scope, and the thread that reads the flag is in another "
    "{scope}: use a write of device scope",
    "narrow write fence": "The fence before the write of the flag is of {scope} scope, and the thread that reads the "
    "flag is in another {scope}: use a {fence}",
    "narrow access": "A strong access is of {scope} scope, and the other thread is in another {scope}: use one of "
    "device scope",
    "mixed sizes": "The accesses are of different sizes, so a thread may see a part of what the other one writes: "
    "access the data by one type on both sides",
    "ignored flag": "No branch tests the value of the flag, so the thread does not wait for it: test the value before "
    "the access to the data",
    "late write": "Other threads may see a thread's write of its flag only after the thread has read the other flag: "
    "add a {fence} between the write and the read, or make both accesses seq_cst",
    "early flag": "The flag that was read was written before these data: write the flag after the data and a {fence}. "
    "If it belongs to earlier data, wait until these have been read before overwriting them",
    "early release": "The flag that was read was written before the other thread read these data: write the flag after "
    "the last read of the data and a {fence}. If it belongs to other data, use another flag for these",
    "unordered flag write": "{other} writes the flag, or releases the lock, that was read, and no barrier orders the "
    "earlier access before: add a {barrier} between this access and the fence before that write",
    "unordered flag read": "{other} has read the flag, or taken the lock, that orders them, and no barrier orders the "
    "later access after: add a {barrier} between the fence after that read and this access",
    "relaxed arrival": "The earlier thread's arrival at the barrier is relaxed, which orders no earlier access: arrive "
    "with release order, or add a {fence} before the arrival",
    "relaxed wait": "The later thread's wait at the barrier is relaxed, which orders no later access: wait with "
    "acquire order, or add a {fence} after the wait",
}


def format_race_cause(
    cause: RaceCause, *, access: str, fence: str, scope: str, other: str = "", barrier: str = ""
) -> str:
    """Return a sentence that states why synchronization through memory does not order two accesses.

    Parameters
    ----------
    cause : RaceCause
        The cause.
    access : str
        The earlier access: "read", "write" or "atomic operation".
    fence : str
        A fence that both threads are in the scope of.
    scope : str
        The widest scope that does not contain both threads: "block" or "cluster".
    other : str
        The thread that writes or reads the flag, if it is a third one.
    barrier : str
        A barrier for this thread and the one whose access it does not order.
    """
    text = _CAUSES[cause].format(access=access, fence=f"{fence}()", scope=scope, other=other, barrier=barrier)
    return text[0].upper() + text[1:] + "."


def format_race_advice(
    scope: RaceScope,
    *,
    is_one_place: bool,
    has_atomic: bool,
    has_named_barriers: bool = False,
    has_mbarriers: bool = False,
    has_grid_barriers: bool = False,
) -> str:
    """Return a sentence that states why two accesses race, and how to order them.

    Parameters
    ----------
    scope : RaceScope
        The narrowest scope that contains both accesses.
    is_one_place : bool
        Whether one operator reads and writes, as in `bins[i]++`, where a barrier rarely fits.
    has_atomic : bool
        Whether one of them is already an atomic operation.
    has_named_barriers : bool
        Whether the kernel has named barriers, as its warps have different roles: then not all may reach one barrier.
    has_mbarriers : bool
        Whether threads arrive at mbarriers, as those of `cuda::barrier` and `cuda::pipeline`.
    has_grid_barriers : bool
        Whether all blocks have met at a barrier of the grid.
    """
    if has_grid_barriers and scope == "grid":
        return "No barrier of the grid separates the two accesses: add a grid.sync() between them."
    advice = _ADVICE[scope].format(atomic="atomic operations on both sides" if has_atomic else "an atomic operation")
    if has_named_barriers and scope == "block":
        advice += ", or a named barrier that the threads of both reach, if not all threads of the block do"
    if has_mbarriers and scope in ("block", "cluster"):
        advice += (
            ", or let the thread of the second access wait for a cuda::barrier, a stage of a pipeline or an mbarrier, "
            "at which the thread of the first access arrives after it"
        )
    if is_one_place and scope in ("warp", "block"):
        advice += ", or use an atomic operation"
    return f"{advice}."
