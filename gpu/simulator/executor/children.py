"""Kernels that kernels launch: what a launch takes note of, and in which order children run.

A child runs when all blocks of its parent have finished, or when one of them calls `cudaDeviceSynchronize`; children
run one after the other in the order in which they were launched, those of one statement in the order of the threads,
each with all of its own children before the next one begins. Tail launches come last. A GPU may run them in many other
orders, and at once; this is one of those that streams allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor.call_frame import CallFrame, Evaluator
from gpu.simulator.executor.child import ChildLaunch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import Observer
from gpu.simulator.executor.patience import Patience
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.printf import PrintBuffer
from gpu.simulator.executor.running import RunningBatch
from gpu.simulator.executor.schedule import Order

MAXIMUM_LAUNCH_DEPTH = 24

# About what a batch runs in ten minutes: nobody waits longer for a kernel that is not stuck.
MAXIMUM_ROUNDS = 10_000_000

# What a launch costs of the budget of rounds, so that a tree of launches without loops ends too.
ROUNDS_OF_A_LAUNCH = 10


class HostLaunch:
    """A launch by the host, with all that its kernels launch.

    Parameters
    ----------
    run : callable
        Runs a child, given how many launches it is away from the host.
    write : callable
        Writes what the threads of a batch have printed.
    observer : Observer or None
        What watches.
    max_rounds : int or None
        How often the loops of a batch of the host's launch may go round, and those of all children together; None for
        what a batch has by itself.
    order : Order
        The order in which warps and lanes run.
    max_seconds : float or None
        How long the blocks of a batch may compute; None for any time.
    """

    def __init__(
        self,
        run: Callable[[ChildLaunch, int], None],
        write: Callable[[RunningBatch], None],
        observer: Observer | None,
        max_rounds: int | None,
        order: Order,
        max_seconds: float | None = None,
    ) -> None:
        self._run = run
        self.write = write
        self.observer = observer
        self._max_rounds = max_rounds or MAXIMUM_ROUNDS
        self.order = order
        self.patience = Patience(max_seconds)
        self.print_buffer = PrintBuffer()
        self.rounds = 0

    def adopt(self, batch: RunningBatch, depth: int) -> None:
        """Let a batch belong to this tree."""
        batch.parent, batch.depth, batch.max_rounds = self, depth, self._max_rounds
        batch.patience, batch.print_buffer = self.patience, self.print_buffer
        if depth:
            batch.rounds = self.rounds
        else:
            self.patience.begin()

    def finish(self, batch: RunningBatch) -> None:
        """Take note of the rounds of a batch that has ended."""
        if batch.depth:
            self.rounds = batch.rounds

    def wait(self, batch: RunningBatch) -> None:
        """Run what the threads of a batch have launched so far."""
        if batch.children:
            children, batch.children = batch.children, []
            self.write(batch)
            self.finish(batch)
            self.run(children, batch.depth + 1)
            if batch.depth:
                batch.rounds = self.rounds
            if batch.observer is not None:
                batch.observer.launch_resumes(batch)

    def run(self, children: Sequence[ChildLaunch], depth: int) -> None:
        """Run children, which are `depth` launches away from the host, in their order."""
        for child in sorted(children, key=lambda child: child.is_tail):
            if depth > MAXIMUM_LAUNCH_DEPTH:
                raise child.fails(
                    f"launches nest at most {MAXIMUM_LAUNCH_DEPTH} deep.",
                    "Count the depth in an argument, and go on without a launch where it is reached.",
                )
            self.rounds += ROUNDS_OF_A_LAUNCH
            if self.rounds > self._max_rounds:
                raise child.fails(
                    f"launches and their loops have taken {self._max_rounds} rounds already.",
                    "Check what ends the launches.",
                    "endless",
                )
            if self.patience.is_over:
                raise child.fails(
                    "launches still go on when their time is up.", "Check what ends the launches.", "endless"
                )
            self._run(child, depth)


def launch_lanes(
    frame: CallFrame,
    mask: LaneMask,
    function: ir.Function,
    configuration: Sequence[Evaluator],
    arguments: Sequence[Evaluator],
    position: SourcePosition,
) -> None:
    """Take note of a launch by each lane of a mask; `configuration` is grid, block, shared bytes and stream."""
    batch = frame.batch
    grid, block, shared_bytes, stream = (evaluate(frame, mask) for evaluate in configuration)
    stream = stream.number()
    values = [evaluate(frame, mask) for evaluate in arguments]
    if batch.registers is not None:
        batch.registers.settle(mask)
    for lane in map(int, mask.lanes):
        child = ChildLaunch(
            function,
            _extents(grid, lane),
            _extents(block, lane),
            int(_of_lane(shared_bytes, lane)),
            tuple(_of_lane(value, lane) for value in values),
            int(_of_lane(stream, lane)),
            position,
            batch,
            lane,
        )
        _refuse_own_memory(child, child.arguments)
        batch.children.append(child)
        if batch.observer is not None:
            batch.observer.launched(batch, child)


def _refuse_own_memory(child: ChildLaunch, values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, tuple):
            _refuse_own_memory(child, value)
        elif isinstance(value, PointerValue) and value.memory is not None and value.memory.space in ("local", "shared"):
            raise child.fails(
                f"it is given {value.memory.name}, which is in the parent's own __{value.memory.space}__ memory.",
                "Pass a pointer to global memory, or the value itself.",
            )


def _extents(value: Any, lane: int) -> tuple[int, ...]:
    return tuple(int(_of_lane(extent, lane)) for extent in value)


def _of_lane(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_of_lane(part, lane) for part in value)
    if isinstance(value, PointerValue):
        return value.of_lane(lane)
    return value[lane] if isinstance(value, np.ndarray) else value
