"""Launches on the lockstep executor: a grid is split into batches of blocks, which run one after the other."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError
from gpu.base.schedules import ROUND_ROBIN
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.launches.arguments import Argument, bind_arguments
from gpu.simulator.executor.launches.attempts import BlockRunner
from gpu.simulator.executor.launches.grid_launch import GridLaunch, KernelCode
from gpu.simulator.executor.launches.residency import build_grid_size_error, get_resident_lanes
from gpu.simulator.executor.launches.trials import LaunchTrials, TrialPlan
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.scheduling.choosers import Chooser, RoundRobinChooser
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder, create_order
from gpu.simulator.executor.state.batches import split_clusters, split_grid
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.faults import LaunchFaults
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Observer, Observers
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.limits import LIMITS, RESIDENCY, RESIDENCY_ADVICE
from gpu.simulator.types import Type

Array = npt.NDArray[Any]


@dataclass
class _SharedMemoryLimit:
    """The most static and dynamic shared memory of a block, in bytes: of a kernel and all its variants."""

    bytes: int = LIMITS.shared_bytes


class LaunchOptions(TypedDict, total=False):
    """Options of a launch, recorded or not.

    Parameters
    ----------
    shared_bytes : int
        The size of the extern __shared__ array; 0 by default.
    on_print : callable or None
        Called with thread and text of each `printf`, block after block; None writes them to standard output.
    max_rounds : int or None
        The loop-iteration limit of a batch (or of a warp, in shuffled schedules), for all of its loops together;
        None for `gpu.simulator.executor.children.MAXIMUM_ROUNDS`. All child launches share one limit.
    max_seconds : float or None
        The time limit of a batch in seconds of processor time; that of the whole launch is
        `time_limit.LAUNCH_LIMIT_FACTOR` times as long. None for no limit.
    schedule : str or Chooser
        One of `gpu.base.schedules.NAMES`, "round-robin" by default, or a chooser of the next warp.
    blocks : range or None
        The blocks to run, by number; None for all. A grid with grid barriers runs in full.
    """

    shared_bytes: int
    on_print: Callable[[str, str], None] | None
    max_rounds: int | None
    max_seconds: float | None
    schedule: str | Chooser
    blocks: range | None


class SimulatedKernel:
    """A `__global__` function that is lowered to IR and can be launched.

    Attributes
    ----------
    traits : KernelTraits
        What the code shows about its shared memory, and how its threads synchronize.
    """

    def __init__(
        self,
        function: ir.Function,
        compiler: LockstepCompiler,
        variables: dict[str, PointerValue],
        shared_limit: _SharedMemoryLimit | None = None,
    ) -> None:
        self.name, self.function = function.name, function
        self._code = KernelCode(function, compiler, variables)
        self.traits = self._code.traits
        self._shared_limit = shared_limit or _SharedMemoryLimit()
        self._trial_plan = TrialPlan(self._code)
        self._block_runner = BlockRunner(self._code)

    @property
    def variables(self) -> dict[str, tuple[str, Array]]:
        """The space ("constant" or "global") and the bytes of each variable of the module, by name."""
        memories = {name: address.memory for name, address in self._code.variables.items()}
        return {
            name: (memory.space, memory.data) for name, memory in memories.items() if isinstance(memory, FlatMemory)
        }

    @property
    def parameters(self) -> tuple[tuple[str, Type], ...]:
        """The name and type of each parameter."""
        return tuple(self.function.parameters)

    def prepare_launch(self) -> None:
        """Compile the kernel, and choose the orders of its trials: what a first launch does."""
        self._code.compiler.get_function(self.function).compile(is_kernel=True)
        _ = self._trial_plan.orders, self.traits.uses_async_proxy

    def with_compiler(self, compiler: LockstepCompiler) -> SimulatedKernel:
        """Return the same kernel, compiled by another compiler."""
        return SimulatedKernel(self.function, compiler, self._code.variables, self._shared_limit)

    def with_cluster(self, cluster: tuple[int, int, int]) -> SimulatedKernel:
        """Return the same kernel with clusters of `cluster` blocks along x, y and z."""
        function = dataclasses.replace(self.function, cluster=cluster)
        return SimulatedKernel(function, self._code.compiler, self._code.variables, self._shared_limit)

    @property
    def dynamic_shared_limit(self) -> int:
        """The most dynamic shared memory of a block, in bytes."""
        return self._shared_limit.bytes - self.traits.static_shared_bytes

    def set_dynamic_shared_limit(self, size: int) -> bool:
        """Allow at least `size` bytes of dynamic shared memory per block; return whether a block can have that much."""
        total = self.traits.static_shared_bytes + size
        is_possible = size >= 0 and total <= LIMITS.optin_shared_bytes
        if is_possible:
            self._shared_limit.bytes = max(total, LIMITS.shared_bytes)
        return is_possible

    def check_launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        arguments: Sequence[Argument] | None = None,
    ) -> None:
        """Check a launch without running it.

        Parameters
        ----------
        grid, block : sequence of int
            Blocks of the grid and threads of a block, along x, y and z.
        shared_bytes : int
            The size of the extern `__shared__` array, in bytes.
        arguments : sequence or None
            The arguments, as for `launch`; None does not check them.

        Raises
        ------
        LaunchError
            The launch exceeds the limits of a GPU, or its arguments do not match the parameters.
        """
        if arguments is not None:
            bind_arguments(self.function, arguments)
        if obstacle := LIMITS.find_launch_violation(grid, block):
            raise LaunchError(f"{self.name}: {obstacle}")
        cluster = self.function.cluster
        if cluster is not None and (obstacle := LIMITS.find_cluster_violation(grid, cluster)):
            raise LaunchError(f"{self.name}: {obstacle}")
        static = self.traits.static_shared_bytes
        syncs_grid = self.traits.syncs_grid
        if syncs_grid and (excess := RESIDENCY.describe_excess(grid, block, static + shared_bytes)):
            raise LaunchError(
                f"{self.name}: a barrier of the grid needs all blocks at once, but {excess}.",
                advice=RESIDENCY_ADVICE,
                kind="residency",
            )
        if shared_bytes < 0:
            raise LaunchError(f"{self.name}: a block cannot have {shared_bytes} bytes of extern shared memory.")
        if static + shared_bytes > self._shared_limit.bytes:
            raise LaunchError(
                f"{self.name}: a block needs {static + shared_bytes} bytes of shared memory; "
                f"{self._shared_limit.bytes} are available."
            )

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        *,
        on_progress: Callable[[float], None] = lambda fraction: None,
        observers: Sequence[Observer] = (),
        trial_observer: Observer | None = None,
        **options: Unpack[LaunchOptions],
    ) -> None:
        """Run the kernel; `grid` is its size in blocks, `block` the size of a block in threads.

        Parameters
        ----------
        grid, block : sequence of int
            Extents in x, y and z.
        arguments : sequence
            For a pointer: the one-dimensional uint8 array that is its memory, a texture, a pointer, or None for null;
            for a scalar: a NumPy scalar; for a tensor map of 128 bytes: a SimulatedTensorMap.
        on_progress : callable
            Called with the finished fraction of the grid.
        trial_observer : Observer or None
            Observes the trials before the launch, if the kernel needs any (`launches.trials`); they run no child
            launches, which have trials of their own.
        **options
            As of LaunchOptions.

        Raises
        ------
        InputError
            The schedule is unknown.
        LaunchError
            The launch exceeds the limits of a GPU, or the kernel has an error; with its line, thread and block.
        """
        shared_bytes, blocks = options.get("shared_bytes", 0), options.get("blocks")
        if options.get("schedule", ROUND_ROBIN) != ROUND_ROBIN or blocks is not None:
            trial_observer = None
        self.check_launch(grid, block, shared_bytes)
        launch = GridLaunch(self._code, grid, block, bind_arguments(self.function, arguments), shared_bytes)
        tree = self._create_tree(observers, options, trial_observer)
        try:
            with np.errstate(all="ignore"):
                self._run_trials(launch, trial_observer)
                self._run(launch, tree, on_progress, blocks)
            if tree.first_fault is not None:
                raise tree.first_fault
        except LaunchError as error:
            self._block_runner.forget_fairness()
            # What fails after an invalid access may be its consequence.
            raise tree.first_fault or error from None
        except RecursionError:
            raise LaunchError(
                f"{self.name}: recursive calls within deeply nested expressions exceed the simulator's stack.",
                advice="Split the expressions into several statements.",
            ) from None
        finally:
            if complaint := tree.print_buffer.overflow_message:
                _write_text("", complaint, options.get("on_print"))

    def _create_tree(
        self, observers: Sequence[Observer], options: LaunchOptions, trial_observer: Observer | None
    ) -> HostLaunch:
        """Return the state of a launch by the host, which its child launches share."""
        kernels, on_print = {id(self.function): self}, options.get("on_print")
        observer = Observers(observers) if observers else None
        # The values of a recording are those of its last step, so a recorded launch ends at its first fault.
        goes_on = observer is not None and observer.outlives_faults and self._code.is_plain
        tree = HostLaunch(
            lambda child, depth: self._run_child(child, depth, tree, kernels, trial_observer),
            lambda batch: _print_batch(batch, on_print),
            observer,
            options.get("max_rounds"),
            create_order(options.get("schedule", ROUND_ROBIN)),
            options.get("max_seconds"),
            LaunchFaults(observer) if observer is not None and goes_on else None,
        )
        return tree

    def _run_child(
        self,
        child: ChildLaunch,
        depth: int,
        tree: HostLaunch,
        kernels: dict[int, SimulatedKernel],
        trial_observer: Observer | None,
    ) -> None:
        """Run a child launch; `kernels` has the kernels of the tree by the identity of their functions."""
        function = child.function
        if id(function) not in kernels:
            kernels[id(function)] = SimulatedKernel(function, self._code.compiler, self._code.variables)
        kernel = kernels[id(function)]
        try:
            kernel.check_launch(child.grid, child.block, child.shared_bytes)
        except LaunchError as error:
            raise child.build_error(error.message) from None
        code = kernel._code  # noqa: SLF001
        launch = GridLaunch(code, child.grid, child.block, child.arguments, child.shared_bytes, depth)
        kernel._run_trials(launch, trial_observer)  # noqa: SLF001
        if tree.observer is not None:
            tree.observer.child_begins(child)
        kernel._run(launch, tree)  # noqa: SLF001

    def _run_trials(self, launch: GridLaunch, observer: Observer | None) -> None:
        if observer is not None:
            LaunchTrials(launch, observer, self._trial_plan).run()

    def _run(
        self,
        launch: GridLaunch,
        tree: HostLaunch,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run a grid, or some blocks of it, and its child launches."""
        depth, observer, syncs_grid = launch.depth, tree.observer, self.traits.syncs_grid
        children: list[ChildLaunch] = []
        if observer is not None:
            observer.launch_begins(self.name, launch.grid, launch.block)
        order = self._choose_order(launch, tree.order)
        selected = range(launch.blocks) if blocks is None else blocks
        done = selected.start
        for first, planned in [(0, launch.blocks)] if syncs_grid else self._split(launch, order, selected):
            if first < done:
                continue  # ran with earlier blocks, which wait for it
            remaining = range(first, selected.stop)
            batch, together = self._block_runner.run_blocks(launch, tree, order, remaining, planned)
            tree.finish_batch(batch)
            children += batch.pending_children
            done = first + together
            on_progress(done / launch.blocks)
            if not depth:
                tree.time_limit.check_progress(self.name, done, launch.blocks)
        if observer is not None:
            observer.launch_ends()
        if not depth:
            tree.time_limit.begin_children()
        tree.run_in_order(children, depth + 1)

    def _choose_order(self, launch: GridLaunch, order: ExecutionOrder) -> ExecutionOrder:
        """Return the order of a launch: the tree's, or a rotation of warps if these wait for each other at mbarriers.

        Raises
        ------
        LaunchError
            A grid with barriers has too many lanes for the order.
        """
        traits = self.traits
        grid_lanes = launch.blocks * launch.lanes_per_block if traits.syncs_grid else 0
        if traits.has_phases and order.chooser is None and grid_lanes <= get_resident_lanes(WARP):
            # Warps that wait at an mbarrier need the other warps of the block to continue. A larger grid runs in
            # lockstep, which fails only if a warp waits before the others arrive.
            order = ExecutionOrder(RoundRobinChooser())
        if order.chooser is not None and grid_lanes > get_resident_lanes(order.lanes_per_part):
            raise build_grid_size_error(launch, grid_lanes, order.lanes_per_part)
        return order

    def _split(self, launch: GridLaunch, order: ExecutionOrder, blocks: range) -> Iterator[tuple[int, int]]:
        """Yield the first block of each batch, and the number of its blocks."""
        lanes = self._block_runner.choose_batch_lanes(order)
        if not self.traits.has_clusters:
            return split_grid(launch.grid, launch.block, lanes, blocks)
        return split_clusters(launch.grid, self.traits.cluster, launch.block, lanes, blocks)


def _print_batch(batch: RunningBatch, on_print: Callable[[str, str], None] | None) -> None:
    for lane, text in batch.printed_texts:
        _write_text(batch.describe(lane), text, on_print)
    batch.printed_texts.clear()


def _write_text(thread: str, text: str, on_print: Callable[[str, str], None] | None) -> None:
    if on_print is not None:
        on_print(thread, text)
    else:
        sys.stdout.write(text)
