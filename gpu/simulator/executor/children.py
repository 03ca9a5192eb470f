"""Execution of child launches, in one of the orders that CUDA allows.

Children run when all blocks of their parent have finished, or when one of them calls `cudaDeviceSynchronize`. They run
one after the other in launch order, those of one statement in thread order, and each child's descendants run before the
next child. Tail launches run last. A GPU may run children concurrently and in any order that streams allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder
from gpu.simulator.executor.state.call_frame import CallFrame, Evaluator
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.faults import BatchFaults, LaunchFaults
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.executor.state.pointers import PointerValue, select_lane
from gpu.simulator.executor.state.printf import PrintBuffer
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.state.time_limit import TimeLimit

MAXIMUM_LAUNCH_DEPTH = 24

# About as many loop iterations as a batch executes in ten minutes; a kernel that takes longer is most likely stuck.
MAXIMUM_ROUNDS = 10_000_000

# The loop iterations that a launch counts as, so that the limit also ends a tree of launches without loops.
ROUNDS_PER_LAUNCH = 10


class HostLaunch:
    """A launch by the host with all its descendants.

    Parameters
    ----------
    run : callable
        Runs a child launch; its second argument is the launch depth, 1 for a child of the host's launch.
    write : callable
        Writes the output of a batch's threads.
    observer : Observer or None
        The observer to notify.
    max_rounds : int or None
        The loop-iteration limit of a batch of the host's launch, and of all children together; None for the default.
    order : ExecutionOrder
        The schedule of warps and lanes.
    max_seconds : float or None
        The time limit of a batch in seconds of processor time; None for no limit.
    faults : LaunchFaults or None
        Keeps invalid accesses; None if the first one ends the launch.
    """

    def __init__(
        self,
        run: Callable[[ChildLaunch, int], None],
        write: Callable[[RunningBatch], None],
        observer: Observer | None,
        max_rounds: int | None,
        order: ExecutionOrder,
        max_seconds: float | None = None,
        faults: LaunchFaults | None = None,
    ) -> None:
        self._run = run
        self.write_output = write
        self.observer = observer
        self._max_rounds = max_rounds or MAXIMUM_ROUNDS
        self.order = order
        self.time_limit = TimeLimit(max_seconds)
        self.print_buffer = PrintBuffer()
        self.faults = faults
        self.rounds = 0

    @property
    def first_fault(self) -> LaunchError | None:
        """The first invalid access of a launch that continues after one."""
        return self.faults.first if self.faults is not None else None

    def attach_batch(self, batch: RunningBatch, depth: int) -> None:
        """Attach a batch to this launch tree: its limits, print buffer and depth."""
        batch.parent, batch.depth, batch.max_rounds = self, depth, self._max_rounds
        batch.time_limit, batch.print_buffer = self.time_limit, self.print_buffer
        batch.faults = BatchFaults(self.faults, batch.geometry.lanes) if self.faults is not None else None
        if depth:
            batch.rounds = self.rounds
        else:
            self.time_limit.begin_batch()

    def finish_batch(self, batch: RunningBatch) -> None:
        """Add the loop iterations of a finished batch to those of the children."""
        if batch.depth:
            self.rounds = batch.rounds

    def run_children(self, batch: RunningBatch) -> None:
        if batch.pending_children:
            children, batch.pending_children = batch.pending_children, []
            self.write_output(batch)
            self.finish_batch(batch)
            self.run_in_order(children, batch.depth + 1)
            if batch.depth:
                batch.rounds = self.rounds
            if batch.observer is not None:
                batch.observer.launch_resumes(batch)

    def run_in_order(self, children: Sequence[ChildLaunch], depth: int) -> None:
        """Run children of launch depth `depth` in order."""
        for child in sorted(children, key=lambda child: child.is_tail):
            if depth > MAXIMUM_LAUNCH_DEPTH:
                raise child.build_error(
                    f"launches can nest at most {MAXIMUM_LAUNCH_DEPTH} deep.",
                    "Pass the depth as an argument, and stop launching at the limit.",
                )
            self.rounds += ROUNDS_PER_LAUNCH
            if self.rounds > self._max_rounds:
                raise child.build_error(
                    f"launches and their loops have exceeded {self._max_rounds} iterations.",
                    "Check the condition that ends the launches.",
                    "unfinished",
                )
            if self.time_limit.is_exceeded:
                raise child.build_error(
                    "launches have exceeded the time limit.",
                    "Check the condition that ends the launches.",
                    "unfinished",
                )
            self._run(child, depth)


def add_child_launches(
    frame: CallFrame,
    mask: LaneMask,
    function: ir.Function,
    configuration: Sequence[Evaluator],
    arguments: Sequence[Evaluator],
    position: SourcePosition,
) -> None:
    """Add a child launch for each lane of a mask, to run later.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that launch.
    function : ir.Function
        The kernel to launch.
    configuration, arguments : sequence of Evaluator
        Grid, block, bytes of shared memory and stream; and the kernel's arguments.
    position : SourcePosition
        The position of the launch.
    """
    batch = frame.batch
    grid, block, shared_bytes, stream = (evaluate(frame, mask) for evaluate in configuration)
    stream = stream.number()
    values = [evaluate(frame, mask) for evaluate in arguments]
    if batch.registers is not None:
        batch.registers.flush_lanes(mask)
    for lane in map(int, mask.lanes):
        child = ChildLaunch(
            function,
            _read_dim3(grid, lane),
            _read_dim3(block, lane),
            int(select_lane(shared_bytes, lane)),
            tuple(select_lane(value, lane) for value in values),
            int(select_lane(stream, lane)),
            position,
            batch,
            lane,
        )
        _reject_parent_memory(child, child.arguments)
        batch.pending_children.append(child)
        if batch.observer is not None:
            batch.observer.child_launched(batch, child)


def _reject_parent_memory(child: ChildLaunch, values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, tuple):
            _reject_parent_memory(child, value)
        elif isinstance(value, PointerValue) and value.memory is not None and value.memory.space in ("local", "shared"):
            raise child.build_error(
                f"its argument points to {value.memory.name}, in the parent's __{value.memory.space}__ memory.",
                "Pass a pointer to global memory, or the value itself.",
            )


def _read_dim3(value: Any, lane: int) -> tuple[int, ...]:
    return tuple(int(select_lane(extent, lane)) for extent in value)
