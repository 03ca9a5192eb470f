"""Kernels that kernels launch: what a launch takes note of, and in which order children run.

A child runs when all blocks of its parent have finished, or when one of them calls `cudaDeviceSynchronize`; children
run one after the other in the order in which they were launched, those of one statement in the order of the threads,
each with all of its own children before the next one begins. Tail launches come last. A GPU may run them in many other
orders, and at once; this is one of those that streams allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor.address import Address

if TYPE_CHECKING:
    from gpu.simulator.executor.frame import Evaluator, Frame
    from gpu.simulator.executor.lanes import BlockBatch, Mask
    from gpu.simulator.executor.observe import Observer
    from gpu.simulator.executor.schedule import Chooser

MAXIMUM_LAUNCH_DEPTH = 24

# What a launch costs of the budget of rounds, so that a tree of launches without loops ends too.
ROUNDS_OF_A_LAUNCH = 10

# The streams cudaStreamTailLaunch and cudaStreamFireAndForget in the shim.
_TAIL_LAUNCH, FIRE_AND_FORGET = 3, 4


@dataclass(frozen=True, eq=False)
class Child:
    """A launch by one thread of a kernel.

    Parameters
    ----------
    function : ir.Function
        The kernel that is launched.
    grid, block : tuple of int
        Extents in x, y and z.
    shared_bytes : int
        The size of the extern __shared__ array.
    arguments : tuple
        Its arguments, each one value.
    stream : int
        The number of its stream.
    position : SourcePosition
        Where it is launched.
    batch, lane
        Who launched it.
    """

    function: ir.Function
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Any, ...]
    stream: int
    position: SourcePosition
    batch: BlockBatch
    lane: int

    @property
    def is_tail(self) -> bool:
        """Whether it runs after all other children."""
        return self.stream == _TAIL_LAUNCH

    def fails(self, message: str, advice: str = "", kind: str = "other") -> LaunchError:
        """Make the error of a launch that cannot be."""
        who = self.batch.describe(self.lane)
        return LaunchError(
            f"{self.position}: {who} launches a kernel that cannot run: {message}",
            position=self.position,
            advice=advice,
            kind=kind,
            thread=who,
        )


class Tree:
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
    chooser : Chooser or None
        What says which warp goes on; None where they run in lockstep.
    """

    def __init__(
        self,
        run: Callable[[Child, int], None],
        write: Callable[[BlockBatch], None],
        observer: Observer | None,
        max_rounds: int | None,
        chooser: Chooser | None = None,
    ) -> None:
        self._run = run
        self.write = write
        self.observer = observer
        self._max_rounds = max_rounds
        self.chooser = chooser
        self.rounds = 0

    def adopt(self, batch: BlockBatch, depth: int) -> None:
        """Let a batch belong to this tree."""
        batch.tree, batch.depth, batch.max_rounds = self, depth, self._max_rounds or batch.max_rounds
        if depth:
            batch.rounds = self.rounds

    def finish(self, batch: BlockBatch) -> None:
        """Take note of the rounds of a batch that has ended."""
        if batch.depth:
            self.rounds = batch.rounds

    def run(self, children: Sequence[Child], depth: int) -> None:
        """Run children, which are `depth` launches away from the host, in their order."""
        for child in sorted(children, key=lambda child: child.is_tail):
            if depth > MAXIMUM_LAUNCH_DEPTH:
                raise child.fails(
                    f"launches nest at most {MAXIMUM_LAUNCH_DEPTH} deep.",
                    "Count the depth in an argument, and go on without a launch where it is reached.",
                )
            self.rounds += ROUNDS_OF_A_LAUNCH
            if self.rounds > child.batch.max_rounds:
                raise child.fails(
                    f"launches and their loops have taken {child.batch.max_rounds} rounds already.",
                    "Check what ends the launches.",
                    "endless",
                )
            self._run(child, depth)


def wait_for_children(batch: BlockBatch) -> None:
    """Run what the threads of a batch have launched so far."""
    assert batch.tree is not None
    if batch.children:
        children, batch.children = batch.children, []
        batch.tree.write(batch)
        batch.tree.finish(batch)
        batch.tree.run(children, batch.depth + 1)
        if batch.depth:
            batch.rounds = batch.tree.rounds
        if batch.observer is not None:
            batch.observer.launch_resumes(batch)


def launch_lanes(
    frame: Frame,
    mask: Mask,
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
    for lane in map(int, mask.lanes):
        child = Child(
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


def _refuse_own_memory(child: Child, values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, tuple):
            _refuse_own_memory(child, value)
        elif isinstance(value, Address) and value.memory is not None and value.memory.space in ("local", "shared"):
            raise child.fails(
                f"it is given {value.memory.name}, which is in the parent's own __{value.memory.space}__ memory.",
                "Pass a pointer to global memory, or the value itself.",
            )


def _extents(value: Any, lane: int) -> tuple[int, ...]:
    return tuple(int(_of_lane(extent, lane)) for extent in value)


def _of_lane(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_of_lane(part, lane) for part in value)
    if isinstance(value, Address):
        return value.of_lane(lane)
    return value[lane] if isinstance(value, np.ndarray) else value
