"""Barriers of blocks and of the grid, which all threads that have not exited must reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.batch import Array, BlockBatch
from gpu.simulator.executor.state.call_frame import CallFrame
from gpu.simulator.executor.state.observer import IssuedStep


def pass_barrier(
    frame: CallFrame, mask: LaneMask, position: SourcePosition, votes: Any = False
) -> tuple[LaneMask, Any]:
    """Pass a block barrier, which all threads of an arriving block that have not exited must reach.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that arrive.
    position : SourcePosition
        The barrier's position.
    votes : scalar or array
        The votes of `__syncthreads_count` and similar functions, one for all lanes or one per lane.

    Returns
    -------
    mask : LaneMask
        The lanes that arrived, as whole blocks.
    votes : scalar or array
        Their votes, one for all lanes or one per lane.

    Raises
    ------
    LaunchError
        A thread of an arriving block does not reach the barrier.
    """
    batch, exited = frame.batch, (frame.kernel or frame).returned_mask
    if batch.scheduler is not None:
        return batch.scheduler.wait_at_barrier(exited, mask, position, votes)
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    batch.begin(IssuedStep(position, "barrier", 0), mask)
    check_barrier(batch, batch.geometry.thread_mask.without(exited), mask, position)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
    return mask, votes


def pass_grid_barrier(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> None:
    """Pass the grid barrier, which all threads that have not exited must reach. The grid is one batch."""
    batch = frame.batch
    if batch.scheduler is not None:
        raise LaunchError(
            f"{position}: a grid barrier runs only in the schedules round-robin and cached.",
            position=position,
        )
    due = batch.geometry.thread_mask.without((frame.kernel or frame).returned_mask)
    missing = due.without(mask) if due is not None else None
    if missing is not None:
        thread = batch.describe(int(missing.lanes[0]))
        raise LaunchError(
            f"{position}: Barrier error detected. Divergent thread(s) in grid: "
            f"{thread} does not reach the grid barrier.",
            position=position,
            advice="Move the barrier out of the branch, so that every thread of the grid reaches it.",
            kind="barrier",
            thread=thread,
        )
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
        batch.observer.launch_resumes(batch)


def check_barrier(batch: BlockBatch, expected_lanes: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
    """Check that all lanes of each block that reaches a barrier are active.

    Parameters
    ----------
    batch : BlockBatch
        The batch of the lanes.
    expected_lanes : LaneMask or None
        The lanes that have not exited; None if all have.
    mask : LaneMask
        The active lanes.
    position : SourcePosition
        The barrier's position.

    Raises
    ------
    LaunchError
        An expected lane is not active; the error names it.
    """
    if expected_lanes is None or mask.count == expected_lanes.count:
        return
    shape = (batch.geometry.blocks, batch.geometry.lanes_per_block)
    here, expected = mask.bits.reshape(shape), expected_lanes.bits.reshape(shape)
    missing: Array = (expected & ~here) & here.any(axis=1, keepdims=True)
    if missing.any():
        raise build_barrier_error(batch, int(np.flatnonzero(missing)[0]), position)


def build_barrier_error(batch: BlockBatch, lane: int, position: SourcePosition) -> LaunchError:
    """Return the error of a block barrier that a lane does not reach."""
    return LaunchError(
        f"{position}: Barrier error detected. Divergent thread(s) in block: __syncthreads() is not reached "
        f"by {batch.describe(lane)}.",
        position=position,
        advice="Move the barrier out of the branch, so that every thread of the block reaches it.",
        kind="barrier",
        thread=batch.describe(lane),
    )
