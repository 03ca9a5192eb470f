"""Barriers of blocks and of the grid, which all threads that have not ended must come to."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.batch import Array, BlockBatch
from gpu.simulator.executor.call_frame import CallFrame
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import IssuedStep


def pass_barrier(
    frame: CallFrame, mask: LaneMask, position: SourcePosition, votes: Any = False
) -> tuple[LaneMask, Any]:
    """Pass where all threads of each block that comes here, but for those that have ended, are here.

    Return those that arrived, whole blocks, and how they voted: one value for all, or one a lane.
    """
    batch, gone = frame.batch, (frame.kernel or frame).returned
    if batch.scheduler is not None:
        return batch.scheduler.wait(gone, mask, position, votes)
    if batch.registers is not None:
        batch.registers.settle(mask)
    batch.begin(IssuedStep(position, "barrier", 0), mask)
    check_barrier(batch, batch.geometry.everyone.without(gone), mask, position)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
    return mask, votes


def pass_grid_barrier(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> None:
    """Pass where all threads of the grid, which is one batch, but for those that have ended, are here."""
    batch = frame.batch
    if batch.scheduler is not None:
        raise LaunchError(
            f"{position}: a barrier of the whole grid runs in the schedules round-robin and cached only.",
            position=position,
        )
    due = batch.geometry.everyone.without((frame.kernel or frame).returned)
    missing = due.without(mask) if due is not None else None
    if missing is not None:
        who = batch.describe(int(missing.lanes[0]))
        raise LaunchError(
            f"{position}: Barrier error detected. Divergent thread(s) in grid: "
            f"{who} does not come to the barrier of the grid.",
            position=position,
            advice="Move the barrier out of the branch, so that every thread of the grid reaches it.",
            kind="barrier",
            thread=who,
        )
    if batch.registers is not None:
        batch.registers.settle(mask)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
        batch.observer.launch_resumes(batch)


def check_barrier(batch: BlockBatch, due: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
    """Make sure that of each block that comes to a barrier all lanes that are due are here."""
    if due is None or mask.count == due.count:
        return
    shape = (batch.geometry.blocks, batch.geometry.lanes_per_block)
    here, expected = mask.bits.reshape(shape), due.bits.reshape(shape)
    missing: Array = (expected & ~here) & here.any(axis=1, keepdims=True)
    if missing.any():
        raise barrier_error(batch, int(np.flatnonzero(missing)[0]), position)


def barrier_error(batch: BlockBatch, lane: int, position: SourcePosition) -> LaunchError:
    """Return the error of a barrier that a lane does not come to."""
    return LaunchError(
        f"{position}: Barrier error detected. Divergent thread(s) in block: __syncthreads() is not reached "
        f"by all threads of the block; {batch.describe(lane)} does not come.",
        position=position,
        advice="Move the barrier out of the branch, so that every thread of the block reaches it.",
        kind="barrier",
        thread=batch.describe(lane),
    )
