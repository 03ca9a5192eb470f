"""Grids to run: their batches, and the execution of a batch in an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder
from gpu.simulator.executor.scheduling.warp_scheduler import WarpScheduler
from gpu.simulator.executor.state.batch import Geometry
from gpu.simulator.executor.state.batches import compute_cluster_unit
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.progress import ProgressMonitor
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.values import PLAIN
from gpu.simulator.ir.kernel_traits import KernelTraits
from gpu.simulator.limits import RESIDENCY


class KernelCode:
    """A kernel with its compiler, and the module's variables.

    Parameters
    ----------
    variables : dict
        The address of each variable of the module, by name.
    """

    def __init__(self, function: ir.Function, compiler: LockstepCompiler, variables: dict[str, PointerValue]) -> None:
        self.function = function
        self.compiler = compiler
        self.variables = variables
        self.traits = KernelTraits(function)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.function.name

    @property
    def is_plain(self) -> bool:
        """Whether the compiler's values have nothing attached, so that a batch can be undone."""
        return self.compiler.values is PLAIN

    @cached_property
    def plain_compiler(self) -> LockstepCompiler:
        """A compiler whose values have nothing attached."""
        return self.compiler if self.is_plain else LockstepCompiler()

    def run_in_order(
        self, batch: RunningBatch, arguments: Sequence[Any], order: ExecutionOrder, compiler: LockstepCompiler
    ) -> None:
        """Run the blocks of a batch, compiled by a compiler."""

        def run(mask: LaneMask) -> LaneMask | None:
            return compiler.get_function(self.function).launch(batch, arguments, self.variables, mask)

        if order.chooser is None:
            run(batch.geometry.thread_mask)
        else:
            scheduler = batch.scheduler = WarpScheduler(batch, order.chooser, order.lanes_per_part)
            scheduler.run(run)


@dataclass
class GridLaunch:
    """A grid to run.

    Parameters
    ----------
    grid, block : sequence of int
        Blocks of the grid and threads of a block, along x, y and z.
    arguments : sequence
        The kernel's arguments, as values.
    shared_bytes : int
        Dynamic shared memory per block.
    depth : int
        The number of launches between the host and this one.
    """

    code: KernelCode
    grid: Sequence[int]
    block: Sequence[int]
    arguments: Sequence[Any]
    shared_bytes: int
    depth: int = 0
    _geometries: dict[int, Geometry] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.grid)

    @cached_property
    def lanes_per_block(self) -> int:
        """The number of lanes of a block."""
        return self.geometry(1).lanes

    @property
    def resident_blocks(self) -> int:
        """The number of blocks that a GPU runs at once."""
        return RESIDENCY.count_resident_blocks(self.block, self.code.traits.static_shared_bytes + self.shared_bytes)

    @cached_property
    def cluster_unit(self) -> int:
        """The smallest number of consecutive blocks that form whole clusters."""
        return compute_cluster_unit(self.grid, self.code.traits.cluster)

    def geometry(self, blocks: int) -> Geometry:
        """Return the geometry of a batch of blocks; the launch's batches share it."""
        if blocks not in self._geometries:
            self._geometries[blocks] = Geometry(self.block, blocks)
        return self._geometries[blocks]

    def create_batch(self, first: int, blocks: int, observer: Observer | None = None) -> RunningBatch:
        """Return a batch of blocks to run, from block `first` on, and the observer to notify."""
        cluster = self.code.traits.cluster
        return RunningBatch(self.geometry(blocks), self.grid, first, self.shared_bytes, observer, cluster)

    def run_and_undo(
        self,
        batch: RunningBatch,
        order: ExecutionOrder,
        max_seconds: float,
        max_rounds: int | None = None,
        *,
        watches_syncs: bool = False,
    ) -> None:
        """Run a batch without child launches and output, and undo what it does.

        Parameters
        ----------
        max_seconds : float
            The time limit in seconds of processor time.
        max_rounds : int or None
            The loop-iteration limit; None for the default.
        watches_syncs : bool
            As of `ProgressMonitor`.

        Raises
        ------
        LaunchError, StarvationError, MemoryError
            Not all of its lanes end.
        """
        tree = HostLaunch(_refuse_child, lambda batch: None, None, max_rounds, order, max_seconds)
        tree.attach_batch(batch, 0)
        monitor = batch.monitor = ProgressMonitor(must_undo=True, watches_syncs=watches_syncs)
        try:
            self.code.run_in_order(batch, self.arguments, order, self.code.plain_compiler)
        finally:
            monitor.undo()


def _refuse_child(child: ChildLaunch, depth: int) -> None:
    raise child.build_error("a trial runs no child launches.")
