"""Barriers of blocks and of the grid, which all threads that have not exited must reach, and named barriers of blocks.

A named barrier, `bar.sync` or `bar.arrive`, is one of a block's 16: a number of threads completes it, whole warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask, union_masks
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.state.batch import Array, BlockBatch
from gpu.simulator.executor.state.call_frame import CallFrame
from gpu.simulator.executor.state.observer import IssuedStep, PhaseChange
from gpu.simulator.executor.state.running_batch import RunningBatch, WarpOperation

_NAMED_BARRIERS = 16
_NAMED_ADVICE = "Each barrier must be reached by as many threads as its thread count states, counted in whole warps."


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
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    if batch.scheduler is not None:
        return batch.scheduler.wait_at_barrier(exited, mask, position, votes)
    batch.begin(IssuedStep(position, "barrier", 0), mask)
    check_barrier(batch, batch.geometry.thread_mask.without(exited), mask, position)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
    return mask, votes


class ScheduledGridBarrier:
    """The grid's barrier, which warps or lanes reach one at a time. Threads that have returned are not waited for."""

    def __init__(self, batch: RunningBatch) -> None:
        self._batch = batch
        self._completed = 0
        self._arrived_lanes = np.zeros(batch.geometry.lanes, bool)
        self._exited_lanes = ~batch.geometry.thread_mask.bits

    def wait(self, exited: LaneMask | None, mask: LaneMask, position: SourcePosition) -> None:
        """Wait until all lanes that have not returned have arrived; those of `exited` have returned.

        Raises
        ------
        LaunchError
            Some lanes never arrive.
        """
        batch, number = self._batch, self._completed + 1
        scheduler = batch.scheduler
        assert scheduler is not None
        self._arrived_lanes |= mask.bits
        if exited is not None:
            self._exited_lanes |= exited.bits

        def is_complete() -> bool:
            if self._completed < number and not self._find_missing().any():
                self._complete(position)
            return self._completed >= number

        scheduler.wait_until(
            is_complete,
            lambda: _build_grid_barrier_error(batch, int(np.argmax(self._find_missing())), position),
        )

    def _complete(self, position: SourcePosition) -> None:
        batch, arrived = self._batch, LaneMask(self._arrived_lanes)
        self._completed += 1
        self._arrived_lanes = np.zeros(batch.geometry.lanes, bool)
        assert batch.scheduler is not None
        batch.scheduler.recheck_conditions()
        if batch.observer is not None:
            batch.observer.barrier(batch, position, arrived)
            batch.observer.launch_resumes(batch)

    def _find_missing(self) -> Array:
        """Return a bool mask of the lanes that have yet to arrive, or have reached the end of the kernel instead."""
        assert self._batch.scheduler is not None
        returned = self._batch.scheduler.returned_mask
        missing: Array = ~self._arrived_lanes & ~self._exited_lanes
        return missing if returned is None else missing & ~returned.bits


def pass_grid_barrier(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> None:
    """Pass the grid barrier, which all threads that have not exited must reach. The grid is one batch."""
    batch, exited = frame.batch, (frame.kernel or frame).returned_mask
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    if batch.scheduler is not None:
        if batch.grid_barrier is None:
            batch.grid_barrier = ScheduledGridBarrier(batch)
        barrier: ScheduledGridBarrier = batch.grid_barrier
        barrier.wait(exited, mask, position)
        return
    due = batch.geometry.thread_mask.without(exited)
    missing = due.without(mask) if due is not None else None
    if missing is not None:
        raise _build_grid_barrier_error(batch, int(missing.lanes[0]), position)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
        batch.observer.launch_resumes(batch)


def _build_grid_barrier_error(batch: BlockBatch, lane: int, position: SourcePosition) -> LaunchError:
    return batch.thread_error(
        lane,
        position,
        "Barrier error detected. Divergent thread(s) in grid: {thread} does not reach the grid barrier.",
        kind="barrier",
        advice="Move the barrier out of the branch, so that every thread of the grid reaches it.",
    )


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
    return batch.thread_error(
        lane,
        position,
        "Barrier error detected. Divergent thread(s) in block: __syncthreads() is not reached by {thread}.",
        kind="barrier",
        advice="Move the barrier out of the branch, so that every thread of the block reaches it.",
    )


@dataclass
class _NamedBarrier:
    """A named barrier of a block.

    Parameters
    ----------
    number : int
        The number by which observers know it: negative, as those of mbarriers count from 0.
    completed : int
        How often it has been completed.
    expected : int or None
        The thread count of the arrivals since then; None for all threads of the block.
    arrived : int
        The number of threads that have arrived since then, in whole warps.
    first_lane : int
        The lane that arrived first.
    """

    number: int
    completed: int = 0
    expected: int | None = None
    arrived: int = 0
    first_lane: int = 0


class NamedBarriers:
    """The named barriers of a batch."""

    def __init__(self, batch: RunningBatch) -> None:
        self._batch = batch
        self._barriers: dict[tuple[int, int], _NamedBarrier] = {}
        # For each warp, the last arrival that its lanes executed together, and what they wait for.
        self._arrivals: dict[int, tuple[WarpOperation, _NamedBarrier, int]] = {}

    def arrive(
        self, frame: CallFrame, mask: LaneMask, node: ir.NamedBarrier, number: int, count: int | None
    ) -> tuple[_NamedBarrier, int]:
        """Let a warp arrive, and return the barrier and how often it will have been completed by this arrival."""
        batch, position = self._batch, node.position
        assert batch.scheduler is not None
        name = f"bar.{node.part} {number}" + (f" at {position}" if node.aligned else "")
        operation = batch.scheduler.wait_for_lanes(name, mask, (1 << WARP) - 1, ())
        warp = int(mask.lanes[0]) // WARP
        if warp in self._arrivals and self._arrivals[warp][0] is operation:
            return self._arrivals[warp][1:]
        self._check_warp(frame, operation.mask, node)
        lanes = operation.mask.lanes.tolist()
        block = lanes[0] // batch.geometry.lanes_per_block
        key = (block, number)
        if key not in self._barriers:
            self._barriers[key] = _NamedBarrier(-1 - (block * _NAMED_BARRIERS + number))
        barrier = self._barriers[key]
        if not barrier.arrived:
            barrier.expected, barrier.first_lane = count, lanes[0]
        elif barrier.expected != count:
            raise self._error(
                lanes[0],
                f"arrives at barrier {number} with {_format_count(count)}, but {batch.describe(barrier.first_lane)} "
                f"arrived there with {_format_count(barrier.expected)}",
                position,
            )
        barrier.arrived += WARP
        if batch.observer is not None:
            for lane in lanes:
                batch.observer.phase(batch, PhaseChange(2 * barrier.number + barrier.completed % 2, lane, passes=False))
        self._arrivals[warp] = (operation, barrier, barrier.completed + 1)
        self._complete(barrier, block)
        return self._arrivals[warp][1:]

    def wait(self, mask: LaneMask, node: ir.NamedBarrier, number: int, barrier: _NamedBarrier, completed: int) -> None:
        """Let lanes wait until a barrier has been completed a number of times."""
        batch = self._batch
        assert batch.scheduler is not None
        block = int(mask.lanes[0]) // batch.geometry.lanes_per_block

        def is_complete() -> bool:
            self._complete(barrier, block)
            return barrier.completed >= completed

        batch.scheduler.wait_until(
            is_complete,
            lambda: self._error(
                int(mask.lanes[0]),
                f"waits in vain: barrier {number} waits for {_format_count(barrier.expected)}, and "
                f"{barrier.arrived} have arrived",
                node.position,
            ),
        )
        if batch.observer is not None:
            for lane in mask.lanes.tolist():
                phase = 2 * barrier.number + (completed - 1) % 2
                batch.observer.phase(batch, PhaseChange(phase, lane, passes=True))

    def check_operands(
        self, mask: LaneMask, number: Any, count: Any, position: SourcePosition
    ) -> tuple[int, int | None]:
        """Return the number of the barrier and its thread count, the same for all lanes of a warp."""
        lane = int(mask.lanes[0])
        values = [np.unique(np.asarray(each)[mask.lanes] if np.ndim(each) else each) for each in (number, count or 0)]
        if max(each.size for each in values) > 1:
            raise self._error(lane, "is in a warp in which the threads of a warp name different barriers", position)
        barrier, threads = int(values[0][0]), None if count is None else int(values[1][0])
        if barrier >= _NAMED_BARRIERS:
            raise self._error(
                lane, f"names barrier {barrier}; a block has barriers 0 to {_NAMED_BARRIERS - 1}", position
            )
        if threads is not None and (threads % WARP or not threads):
            raise self._error(lane, f"names {threads} threads, which is not a multiple of {WARP}", position)
        if threads is not None and threads > self._batch.geometry.lanes_per_block:
            own = self._batch.geometry.threads
            raise self._error(lane, f"names {threads} threads, but the block has {own}", position)
        return barrier, threads

    def _complete(self, barrier: _NamedBarrier, block: int) -> None:
        """Complete a barrier if enough threads have arrived."""
        expected = barrier.expected
        if expected is None:
            running = self._find_running_lanes(None).reshape(self._batch.geometry.blocks, -1, WARP)[block]
            expected = WARP * int(running.any(axis=1).sum())
        if barrier.arrived and barrier.arrived >= expected:
            barrier.completed += 1
            barrier.arrived = 0
            assert self._batch.scheduler is not None
            self._batch.scheduler.recheck_conditions()

    def _find_running_lanes(self, returned: LaneMask | None) -> Array:
        """Return the threads that have not exited, as bool."""
        assert self._batch.scheduler is not None
        exited = union_masks(returned, self._batch.scheduler.exited_mask)
        bits: Array = self._batch.geometry.thread_mask.bits
        return bits if exited is None else bits & ~exited.bits

    def _check_warp(self, frame: CallFrame, mask: LaneMask, node: ir.NamedBarrier) -> None:
        """Check that all threads of a warp that have not exited are active."""
        running = self._find_running_lanes((frame.kernel or frame).returned_mask)
        missing = np.flatnonzero(running & ~mask.bits & (np.arange(running.size) // WARP == mask.lanes[0] // WARP))
        if not missing.size:
            return
        if node.aligned:
            misuse = f"does not reach bar.{node.part}, which all threads of a warp must execute together"
            raise self._error(int(missing[0]), misuse, node.position)
        raise self._batch.thread_error(
            int(missing[0]),
            node.position,
            f"{{thread}} does not reach barrier.{node.part} with the other threads of its warp.",
            advice="The threads of a warp reach such a barrier separately only in schedules of lanes: use --schedule "
            "lanes:1.",
        )

    def _error(self, lane: int, misuse: str, position: SourcePosition) -> LaunchError:
        sentence = f"Barrier error detected: {{thread}} {misuse}."
        return self._batch.thread_error(lane, position, sentence, kind="barrier", advice=_NAMED_ADVICE)


def _format_count(count: int | None) -> str:
    return "all threads of the block" if count is None else f"{count} threads"


def pass_named_barrier(frame: CallFrame, mask: LaneMask, node: ir.NamedBarrier, number: Any, count: Any) -> None:
    """Arrive at a named barrier, and wait there unless the instruction only arrives.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that execute it, all of one warp.
    node : ir.NamedBarrier
        The instruction.
    number, count : int or array
        Its operands, one for all lanes or one per lane; None for no thread count.

    Raises
    ------
    LaunchError
        An operand is invalid, the thread counts of arrivals differ, threads of a warp are missing, or the barrier is
        never completed.
    """
    batch = frame.batch
    if batch.named_barriers is None:
        batch.named_barriers = NamedBarriers(batch)
    barriers: NamedBarriers = batch.named_barriers
    barrier_number, threads = barriers.check_operands(mask, number, count, node.position)
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    barrier, completed = barriers.arrive(frame, mask, node, barrier_number, threads)
    if node.part == "sync":
        barriers.wait(mask, node, barrier_number, barrier, completed)
