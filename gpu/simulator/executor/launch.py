"""Launches on the lockstep executor: a grid is split into batches of blocks, which run one after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.base.schedules import ROUND_ROBIN
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.announcements import AnnouncementChooser
from gpu.simulator.executor.scheduling.choosers import Chooser, RoundRobinChooser
from gpu.simulator.executor.scheduling.directed import DirectedChooser
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder, create_order
from gpu.simulator.executor.scheduling.preemption import PreemptingChooser
from gpu.simulator.executor.scheduling.reordered_writes import ReorderingBuffer
from gpu.simulator.executor.scheduling.warp_scheduler import WarpScheduler
from gpu.simulator.executor.state.batch import Geometry
from gpu.simulator.executor.state.batches import (
    BATCH_LANES,
    compute_cluster_unit,
    decides_writes,
    find_reachable_functions,
    has_fences,
    has_strong_loop,
    has_strong_writes,
    has_sync_in_branches,
    has_wait_loop,
    split_clusters,
    split_grid,
    takes_turns,
    tests_flags,
    tests_values_in_loops,
    uses_async_proxy,
)
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.event_buffer import EventBuffer
from gpu.simulator.executor.state.faults import LaunchFaults
from gpu.simulator.executor.state.memory import AccessSite, FlatMemory
from gpu.simulator.executor.state.observer import Observer, Observers
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.executor.state.progress import ProgressMonitor, StarvationError
from gpu.simulator.executor.state.registers import Registers, StoreBuffer
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.state.time_limit import TimeLimit
from gpu.simulator.executor.textures import SimulatedTensorMap, Texture
from gpu.simulator.executor.values import PLAIN
from gpu.simulator.limits import LIMITS, RESIDENCY, RESIDENCY_ADVICE
from gpu.simulator.types import Pointer, Scalar, Struct, Type, leaves

Array = npt.NDArray[Any]
Argument = Array | Texture | SimulatedTensorMap | PointerValue | np.generic | None


_RESIDENT_LANES = {WARP: 1 << 14, 1: 1 << 10}
"""The most lanes that make progress together if blocks wait for later ones, by the lanes per part. In lockstep all
resident blocks do."""

_MAX_BUFFERED_LANES = 1 << 12
"""The most lanes of a batch that runs by warps or lanes while an observer's notifications are kept, in case it starves.
"""

_MAX_EXCESS_LANES, _EXCESS_SECONDS = 1 << 22, 10.0
"""The most lanes that run together, and their time, to find out whether blocks wait for blocks that are not resident.
"""


TRIAL_SCHEDULES = ("shuffle:1", "shuffle:3")
"""The schedules of trials, in which lanes that wait observe other values than in lockstep."""

BUFFERED = "buffered"
"""A trial in which warps advance in rotation and strong writes become visible late."""

ROTATION = "rotation"
"""A trial in which warps advance in rotation, so that each of them may have one of several locks."""

PREEMPTED = "preempt"
"""Trials in which warps are stopped before strong accesses, each with another seed of this kind of schedule."""

_PREEMPTED_BLOCKS, _MAX_PREEMPTED, _PREEMPTED_SECONDS = 4, 32, 1.2
"""The fewest blocks of these trials, if the grid has as many; their number, and their seconds of processor time; and
again for those of announcements, and for those in which strong writes also become visible late."""

_ANNOUNCED = "announced"
"""As many trials with preemption, in which a warp is stopped before it announces what it has read."""

_REORDERED_TRIALS = 4
"""The trials in which the writes at one place in the source become visible late."""

_PROBES, _PROBE_LANES = 4, 1 << 7
"""The trials that run even if none shows that several warps write a location, and their most lanes; larger kernels have
only one."""

_TRIAL_LANES, _TRIAL_ROUNDS, _TRIAL_SECONDS = (1 << 9, 1 << 12), 2000, 2.0
"""The most lanes of a trial, and of one that follows if they starve; loop iterations of a warp; seconds of processor
time."""


_TRIAL_ERRORS = (LaunchError, StarvationError, MemoryError)


def _refuse_child(child: ChildLaunch, depth: int) -> None:
    raise child.build_error("a trial runs no child launches.")


@dataclass
class _Attempt:
    """An order in which to run a number of blocks; if it can fail, it ends as soon as lanes starve.

    A probed attempt has run before, and what it did was undone.
    """

    order: ExecutionOrder
    blocks: int
    fairness: int
    can_fail: bool
    is_probed: bool = False


@dataclass
class _GridLaunch:
    """A grid to run: its extents in blocks and in threads, the arguments, dynamic shared memory, and launch depth."""

    grid: Sequence[int]
    block: Sequence[int]
    values: Sequence[Any]
    shared_bytes: int
    depth: int = 0
    _geometries: dict[int, Geometry] = field(default_factory=dict)

    def geometry(self, blocks: int) -> Geometry:
        """Return the geometry of a batch of blocks; the launch's batches share it."""
        if blocks not in self._geometries:
            self._geometries[blocks] = Geometry(self.block, blocks)
        return self._geometries[blocks]


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
    """A `__global__` function that is lowered to IR and can be launched."""

    def __init__(
        self,
        function: ir.Function,
        compiler: LockstepCompiler,
        variables: dict[str, PointerValue],
        shared_limit: _SharedMemoryLimit | None = None,
    ) -> None:
        self.name = function.name
        self._function = function
        self._compiler = compiler
        self._variables = variables
        self._shared_limit = shared_limit or _SharedMemoryLimit()
        self._syncs_grid = any(called.syncs_grid for called in find_reachable_functions(function))
        self._has_phases = any(called.has_phases for called in find_reachable_functions(function))
        self._may_wait = any(has_strong_loop(called.body) for called in find_reachable_functions(function))
        self._syncs_in_branches = any(map(has_sync_in_branches, find_reachable_functions(function)))
        self._needs_lanes = False
        # The fairness from which on no lanes have starved so far.
        self._fairness = 0
        # The launches so far that may need trials, by grid and block.
        self._trial_launches: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        self._has_wait_loops = any(has_wait_loop(called.body) for called in find_reachable_functions(function))

    @cached_property
    def _plain_compiler(self) -> LockstepCompiler:
        return self._compiler if self._compiler.values is PLAIN else LockstepCompiler()

    @cached_property
    def decides_writes(self) -> bool:
        """Whether the kernel tests values of strong reads and writes by strong accesses, as lock-free code does."""
        return decides_writes(find_reachable_functions(self._function))

    @cached_property
    def _uses_async_proxy(self) -> bool:
        return any(map(uses_async_proxy, find_reachable_functions(self._function)))

    @property
    def function(self) -> ir.Function:
        """The kernel's IR."""
        return self._function

    @property
    def variables(self) -> dict[str, tuple[str, Array]]:
        """The space ("constant" or "global") and the bytes of each variable of the module, by name."""
        memories = {name: address.memory for name, address in self._variables.items()}
        return {
            name: (memory.space, memory.data) for name, memory in memories.items() if isinstance(memory, FlatMemory)
        }

    @property
    def parameters(self) -> tuple[tuple[str, Type], ...]:
        """The name and type of each parameter."""
        return tuple(self._function.parameters)

    @property
    def shared_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each `__shared__` array of known size, by name."""
        arrays = (shared for function in find_reachable_functions(self._function) for shared in function.shared)
        return {shared.name: shared.shape for shared in arrays if shared.shape}

    @cached_property
    def static_shared_bytes(self) -> int:
        """The size of all `__shared__` arrays of known size."""
        functions = find_reachable_functions(self._function)
        return sum({shared.key: shared.size for function in functions for shared in function.shared}.values())

    def with_compiler(self, compiler: LockstepCompiler) -> SimulatedKernel:
        """Return the same kernel, compiled by another compiler."""
        return SimulatedKernel(self._function, compiler, self._variables, self._shared_limit)

    @property
    def has_separate_blocks(self) -> bool:
        """Whether a launch may run its blocks one after the other: it has no grid barriers and no clusters."""
        return not self._syncs_grid and prod(self._function.cluster or (1,)) == 1

    def with_cluster(self, cluster: tuple[int, int, int]) -> SimulatedKernel:
        """Return the same kernel with clusters of `cluster` blocks along x, y and z."""
        function = dataclasses.replace(self._function, cluster=cluster)
        return SimulatedKernel(function, self._compiler, self._variables, self._shared_limit)

    @property
    def dynamic_shared_limit(self) -> int:
        """The most dynamic shared memory of a block, in bytes."""
        return self._shared_limit.bytes - self.static_shared_bytes

    def set_dynamic_shared_limit(self, size: int) -> bool:
        """Allow at least `size` bytes of dynamic shared memory per block; return whether a block can have that much."""
        total = self.static_shared_bytes + size
        is_possible = size >= 0 and total <= LIMITS.optin_shared_bytes
        if is_possible:
            self._shared_limit.bytes = max(total, LIMITS.shared_bytes)
        return is_possible

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
        observers : sequence of Observer
            The observers to notify.
        trial_observer : Observer or None
            Observes trials of the first blocks in `TRIAL_SCHEDULES`, before the launch, if the kernel has
            fences, and lanes may wait for other lanes or test flags; and a trial with store buffers if it writes and
            tests flags. What the trials do is undone, and they run no child launches; these have trials of their own.
            Of the launches with one grid and block, only the first has all trials; the second, fourth, eighth ... have
            those in `TRIAL_SCHEDULES`.
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
        has_trials = options.get("schedule", ROUND_ROBIN) == ROUND_ROBIN and blocks is None
        self.check_launch(grid, block, shared_bytes)
        launch = _GridLaunch(grid, block, self._bind_arguments(arguments), shared_bytes)
        tree = self._create_tree(observers, options, trial_observer if has_trials else None)
        try:
            with np.errstate(all="ignore"):
                if trial_observer is not None and has_trials:
                    self._run_trials(launch, trial_observer)
                self._run(launch, tree, on_progress, blocks)
            if tree.first_fault is not None:
                raise tree.first_fault
        except LaunchError as error:
            self._fairness = 0  # lanes may have starved for another reason than an unfair order
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
        kernels, on_print = {id(self._function): self}, options.get("on_print")
        observer = Observers(observers) if observers else None
        # The values of a recording are those of its last step, so a recorded launch ends at its first fault.
        goes_on = observer is not None and observer.outlives_faults and self._compiler.values is PLAIN
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
            kernels[id(function)] = SimulatedKernel(function, self._compiler, self._variables)
        kernel = kernels[id(function)]
        try:
            kernel.check_launch(child.grid, child.block, child.shared_bytes)
        except LaunchError as error:
            raise child.build_error(error.message) from None
        launch = _GridLaunch(child.grid, child.block, child.arguments, child.shared_bytes, depth)
        if trial_observer is not None:
            kernel._run_trials(launch, trial_observer)  # noqa: SLF001
        if tree.observer is not None:
            tree.observer.child_begins(child)
        kernel._run(launch, tree)  # noqa: SLF001

    def _run(
        self,
        launch: _GridLaunch,
        tree: HostLaunch,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run a grid, or some blocks of it, and its child launches."""
        grid, block, depth, observer = launch.grid, launch.block, launch.depth, tree.observer
        count = grid[0] * grid[1] * grid[2]
        children: list[ChildLaunch] = []
        if observer is not None:
            observer.launch_begins(self.name, grid, block)
        order = tree.order
        grid_lanes = count * launch.geometry(1).lanes if self._syncs_grid else 0
        if self._has_phases and order.chooser is None and grid_lanes <= _RESIDENT_LANES[WARP]:
            # Warps that wait at an mbarrier need the other warps of the block to continue. A larger grid runs in
            # lockstep, which fails only if a warp waits before the others arrive.
            order = ExecutionOrder(RoundRobinChooser())
        if order.chooser is not None and grid_lanes > _RESIDENT_LANES[order.lanes_per_part]:
            raise self._build_grid_size_error(grid_lanes, _RESIDENT_LANES[order.lanes_per_part])
        lanes, selected = self._batch_lanes(order), range(count) if blocks is None else blocks
        cluster = self._function.cluster or (1, 1, 1)
        batches = (
            split_grid(grid, block, lanes, selected)
            if prod(cluster) == 1
            else split_clusters(grid, cluster, block, lanes, selected)
        )
        done = selected.start
        for first, planned in [(0, count)] if self._syncs_grid else batches:
            if first < done:
                continue  # ran with earlier blocks, which wait for it
            batch, together = self._run_blocks(launch, tree, order, range(first, selected.stop), planned)
            tree.finish_batch(batch)
            children += batch.pending_children
            done = first + together
            on_progress(done / count)
            if not depth:
                tree.time_limit.check_progress(self.name, done, count)
        if observer is not None:
            observer.launch_ends()
        if not depth:
            tree.time_limit.begin_children()
        tree.run_in_order(children, depth + 1)

    def _build_grid_size_error(self, lanes: int, most: int) -> LaunchError:
        """Return the error of a grid with barriers that has too many lanes to run by warps or lanes."""
        reason = "with mbarriers" if self._has_phases else "in such a schedule"
        return LaunchError(
            f"{self.name}: a grid of {lanes:,} threads with a barrier of the grid, which needs all of them at "
            f"once; {reason} the simulator runs no more than {most:,} at once.",
            advice="Launch fewer blocks." if self._has_phases else "Use the schedule round-robin.",
        )

    def _run_blocks(
        self, launch: _GridLaunch, tree: HostLaunch, order: ExecutionOrder, remaining: range, planned: int
    ) -> tuple[RunningBatch, int]:
        """Run the first of the remaining blocks: `planned`, or more if they wait for later ones.

        Returns the batch that ran to its end, and its number of blocks.
        """
        starved: tuple[RunningBatch, StarvationError] | None = None
        fewest, is_deadlock = 1, False
        for attempt in self._plan_attempts(order, launch, planned, len(remaining)):
            if attempt.can_fail and attempt.blocks < fewest:
                continue
            if starved is not None and not attempt.can_fail:
                self._check_residency(*starved, len(remaining), launch.values)
                self._check_capacity(*starved, len(remaining))
                is_deadlock = self._is_deadlock(*starved, len(remaining))
            batch = RunningBatch(
                launch.geometry(attempt.blocks), launch.grid, remaining.start, launch.shared_bytes, tree.observer,
                self._function.cluster or (1, 1, 1),
            )  # fmt: skip
            batch.uses_async_proxy = tree.observer is None or self._uses_async_proxy
            tree.attach_batch(batch, launch.depth)
            batch.is_deadlock = is_deadlock
            starvation = self._probe_attempt(batch, launch.values, attempt)
            if starvation is None:
                starvation = self._run_attempt(batch, launch.values, attempt, tree, tree.observer)
            if starvation is None:
                break
            starved = batch, starvation
            self._needs_lanes |= starvation.needs_lanes
            if starvation.needs_blocks and fewest == 1:
                fewest = min(attempt.blocks + 1, len(remaining))
            self._fairness = attempt.fairness + 1
        return batch, attempt.blocks

    def _probe_attempt(self, batch: RunningBatch, values: Sequence[Any], attempt: _Attempt) -> StarvationError | None:
        """Return where lanes starve in an attempt that cannot be undone, or only at a high cost; None if they do not.

        It is run without a recording and observers, and what it does is undone. Then the attempt can run to its end.

        Parameters
        ----------
        batch : RunningBatch
            The batch of the attempt, which is not changed.
        values : sequence
            The kernel's arguments.
        attempt : _Attempt
            The attempt; if no lanes starve, it can no longer fail.
        """
        is_large = attempt.order.chooser is not None and batch.geometry.lanes > _MAX_BUFFERED_LANES
        if not attempt.can_fail or (self._compiler.values is PLAIN and not is_large):
            return None
        cluster = self._function.cluster or (1, 1, 1)
        # The attempt must make the same choices, as long waits end in an order that only they lead to.
        order = deepcopy(attempt.order) if attempt.order.has_long_waits else attempt.order
        probe = RunningBatch(batch.geometry, batch.grid, batch.first, batch.shared_bytes, cluster=cluster)
        tree = HostLaunch(_refuse_child, lambda batch: None, None, None, order, _EXCESS_SECONDS)
        tree.attach_batch(probe, 0)
        try:
            self._run_and_undo(probe, values, order, watches_syncs=self._syncs_in_branches)
        except StarvationError as starvation:
            if starvation.position is not None or starvation.needs_lanes:
                return starvation
            # It writes too much to be undone further.
        except LaunchError as error:
            if self._needs_lanes and error.kind == "barrier":
                return StarvationError()  # a finding in lockstep: the mask of a `__syncwarp` is wrong
            # The attempt shows the error.
        except MemoryError:
            pass
        attempt.can_fail, attempt.is_probed = False, True
        return None

    @cached_property
    def _trial_orders(self) -> tuple[str, ...]:
        """The schedules of trials, also `BUFFERED`, `ROTATION`, `PREEMPTED`; none if the kernel needs no trials."""
        functions = find_reachable_functions(self._function)
        has_flags = tests_flags(functions)
        is_ordered = any(map(has_fences, functions)) and (has_flags or tests_values_in_loops(functions))
        may_buffer = has_flags and any(map(has_strong_writes, functions))
        preempted = (PREEMPTED,) if self.decides_writes else ()
        if not is_ordered:
            return (BUFFERED, *preempted) if may_buffer else preempted
        orders = (TRIAL_SCHEDULES[0], BUFFERED) if may_buffer else TRIAL_SCHEDULES
        return (*orders, *((ROTATION,) if any(map(takes_turns, functions)) else ()), *preempted)

    def _choose_trial_orders(self, launch: _GridLaunch) -> tuple[str, ...]:
        """Return the schedules of the trials of a launch: fewer of them if the kernel has run with its grid and block.

        Trials cost up to half of a launch, and those of equal launches rarely differ. Which flags a thread writes and
        reads, and which locks it takes, depends on the kernel more than on its data.
        """
        shape = (tuple(launch.grid), tuple(launch.block))
        self._trial_launches[shape] += 1
        count = self._trial_launches[shape]
        if count == 1:
            return self._trial_orders
        return tuple(order for order in self._trial_orders if order in TRIAL_SCHEDULES and count.bit_count() == 1)

    def _run_trials(self, launch: _GridLaunch, observer: Observer) -> None:
        """Run the first blocks in other orders, and undo what they do: more of them if they wait for later ones."""
        counts = self._count_trial_blocks(launch)
        if not counts:
            return
        history, trials = AccessHistory(), 0
        overtaken: set[AccessSite] = set()
        for schedule in self._choose_trial_orders(launch):
            if schedule == PREEMPTED:
                fewest = self._round_up_blocks(launch, _PREEMPTED_BLOCKS)
                block_counts = [min(fewest, *counts), *counts]
                kinds = (PREEMPTED, _ANNOUNCED, BUFFERED) if BUFFERED in self._trial_orders else (PREEMPTED, _ANNOUNCED)
                for kind in kinds:
                    if kind != _ANNOUNCED or history.announcements:
                        self._run_preempted_trials(launch, observer, block_counts, history, trials, kind)
                continue
            for count in counts:
                is_named = schedule in TRIAL_SCHEDULES
                order = create_order(schedule) if is_named else ExecutionOrder(RoundRobinChooser())
                assert order.chooser is not None
                if self.decides_writes:
                    history.begin_run()
                    order.chooser.history, trials = history, trials + 1
                starvation = self._run_trial(launch, observer, schedule, order, count, overtaken=overtaken)
                if starvation is None:
                    break
                if schedule == ROTATION and starvation.is_deadlock:
                    self._check_deadlock(launch, count, ExecutionOrder(RoundRobinChooser(), lanes_per_part=1))
        if overtaken:
            self._run_reordered_trials(launch, observer, counts[0], overtaken)

    def _count_trial_blocks(self, launch: _GridLaunch) -> list[int]:
        """Return the numbers of blocks of trials, the smallest first; none if the grid has a barrier and is too large.

        Clusters run as a whole, and so does a grid with a barrier.
        """
        total, lanes = prod(launch.grid), launch.geometry(1).lanes
        if self._syncs_grid:
            return [total] if total * lanes <= _TRIAL_LANES[-1] else []
        return sorted({min(total, self._round_up_blocks(launch, max(2, most // lanes))) for most in _TRIAL_LANES})

    def _round_up_blocks(self, launch: _GridLaunch, blocks: int) -> int:
        """Return the fewest blocks of whole clusters, at least `blocks`."""
        unit = compute_cluster_unit(launch.grid, self._function.cluster or (1, 1, 1))
        return -(-blocks // unit) * unit

    def _limit_trials(self) -> TimeLimit:
        """Return a limit: launches with many grids and blocks share the time, the nth of them has an nth of it."""
        return TimeLimit(_PREEMPTED_SECONDS / len(self._trial_launches))

    def _run_reordered_trials(
        self, launch: _GridLaunch, observer: Observer, blocks: int, overtaken: set[AccessSite]
    ) -> None:
        """Run the first blocks with late writes at each place of `overtaken`, until there is a finding."""
        limit = self._limit_trials()
        for late in sorted(overtaken, key=lambda site: (site.position.line_key, site.position.column)):
            for seed in range(_REORDERED_TRIALS):
                if observer.has_findings or limit.is_exceeded:
                    return
                chooser = PreemptingChooser(seed, has_late_writes=True) if seed else RoundRobinChooser()
                self._run_trial(launch, observer, BUFFERED, ExecutionOrder(chooser), blocks, late=late)

    def _run_preempted_trials(
        self,
        launch: _GridLaunch,
        observer: Observer,
        counts: Sequence[int],
        history: AccessHistory,
        probes: int,
        kind: str,
    ) -> None:
        """Run the first blocks many times, each time stopping warps before other strong accesses.

        They go on only if a trial, also one of another kind, shows that some location is written by several warps, and
        that a value read there is tested; or, if `kind` is `_ANNOUNCED`, that a warp announces what it has read. They
        also end with the first finding. `counts` are the numbers of blocks to try, the smallest first; `probes` is the
        number of other trials, and `history` has what they showed.
        """
        limit, remaining = self._limit_trials(), sorted(set(counts))
        for seed in range(_MAX_PREEMPTED):
            is_probe = probes < _PROBES and launch.geometry(remaining[0]).lanes <= _PROBE_LANES
            is_needed = not probes or history.has_decisions or is_probe or kind == _ANNOUNCED
            if observer.has_findings or limit.is_exceeded or not is_needed:
                return
            create_chooser = _select_chooser(kind, seed)
            known, order = history.copy(), ExecutionOrder(create_chooser(history=history))
            name = BUFFERED if kind == BUFFERED else PREEMPTED
            starvation = self._run_trial(launch, observer, name, order, remaining[0])
            if starvation is not None and starvation.is_deadlock and kind != BUFFERED:
                lanes = ExecutionOrder(create_chooser(history=known, lanes_per_part=1), lanes_per_part=1)
                self._check_deadlock(launch, remaining[0], lanes)
            elif starvation is not None and len(remaining) > 1:
                del remaining[0]
            probes += 1

    def _run_trial(
        self,
        launch: _GridLaunch,
        observer: Observer,
        name: str,
        order: ExecutionOrder,
        blocks: int,
        *,
        late: AccessSite | None = None,
        overtaken: set[AccessSite] | None = None,
    ) -> StarvationError | None:
        """Run the first blocks in an order, and undo what they do; return where they starve, if they do.

        Its `is_deadlock` also tells that no other block can end their wait. In a trial with store buffers, the writes
        at `late` become visible later than all others; without it, the writes that others may overtake are added to
        `overtaken`.
        """
        tree = HostLaunch(_refuse_child, lambda batch: None, observer, _TRIAL_ROUNDS, order, _TRIAL_SECONDS)
        batch = RunningBatch(
            launch.geometry(blocks), launch.grid, 0, launch.shared_bytes, observer, self._function.cluster or (1, 1, 1)
        )
        tree.attach_batch(batch, 0)
        batch.trial_order = name
        if name == BUFFERED:
            batch.registers = StoreBuffer(batch, observer) if late is None else ReorderingBuffer(batch, observer, late)
        observer.launch_begins(self.name, launch.grid, launch.block)
        observer.batch_begins(batch)
        starved = None
        try:
            self._run_and_undo(batch, launch.values, order)
        except StarvationError as starvation:
            starved = starvation
            starved.is_deadlock = self._is_deadlock(batch, starved, prod(launch.grid))
        except (LaunchError, MemoryError):
            pass  # the launch itself shows the error, if it is one in any schedule
        observer.launch_ends()
        if overtaken is not None and isinstance(batch.registers, StoreBuffer):
            overtaken |= batch.registers.find_overtaken()
        return starved

    def _check_deadlock(self, launch: _GridLaunch, blocks: int, order: ExecutionOrder) -> None:
        """Raise LaunchError if the lanes of the first blocks wait for each other for ever when they run in an order.

        In it each lane runs independently, so no lane waits only because its warp runs in lockstep.
        """
        geometry = launch.geometry(blocks)
        if geometry.lanes > _RESIDENT_LANES[1]:
            return
        tree = HostLaunch(_refuse_child, lambda batch: None, None, _TRIAL_ROUNDS, order, _TRIAL_SECONDS)
        batch = RunningBatch(geometry, launch.grid, 0, launch.shared_bytes, cluster=self._function.cluster or (1, 1, 1))
        tree.attach_batch(batch, 0)
        try:
            self._run_and_undo(batch, launch.values, order)
        except StarvationError as starvation:
            if not self._is_deadlock(batch, starvation, prod(launch.grid)):
                return
            raise batch.thread_error(
                starvation.lane,
                starvation.position,
                "this loop may not end: in another order of the threads {thread} waits in it, all others that have not "
                "ended wait too, and none can end the wait of another.",
                kind="endless",
                advice="If threads take several locks, let all of them take these in the same order. A thread that "
                "waits must not hold what another one needs to continue. One that announces that it waits must test "
                "once more, after a fence, what it waits for.",
            ) from None
        except (LaunchError, MemoryError):
            pass

    def _run_and_undo(
        self, batch: RunningBatch, values: Sequence[Any], order: ExecutionOrder, *, watches_syncs: bool = False
    ) -> None:
        """Run a batch and undo what it does.

        Raises
        ------
        LaunchError, StarvationError, MemoryError
            Not all of its lanes end.
        """
        monitor = batch.monitor = ProgressMonitor(must_undo=True, watches_syncs=watches_syncs)
        try:
            self._run_in_order(batch, values, order, self._plain_compiler)
        finally:
            monitor.undo()

    def _run_in_order(
        self, batch: RunningBatch, values: Sequence[Any], order: ExecutionOrder, compiler: LockstepCompiler
    ) -> None:
        def run(mask: LaneMask) -> LaneMask | None:
            return compiler.get_function(self._function).launch(batch, values, self._variables, mask)

        if order.chooser is None:
            run(batch.geometry.thread_mask)
        else:
            scheduler = batch.scheduler = WarpScheduler(batch, order.chooser, order.lanes_per_part)
            scheduler.run(run)

    def _check_residency(
        self, starved_batch: RunningBatch, starved: StarvationError, remaining: int, values: Sequence[Any]
    ) -> None:
        """Raise LaunchError if resident blocks wait for blocks that cannot start because the GPU is full.

        Parameters
        ----------
        starved_batch : RunningBatch
            A batch that starves.
        starved : StarvationError
            Where it does.
        remaining : int
            The number of blocks that have not ended.
        values : sequence
            The kernel's arguments.
        """
        grid, geometry, shared_bytes = starved_batch.grid, starved_batch.geometry, starved_batch.shared_bytes
        excess = RESIDENCY.describe_excess(grid, geometry.block, self.static_shared_bytes + shared_bytes)
        if not excess or starved.position is None:
            return
        lanes, verb = remaining * geometry.lanes_per_block, "waits in this loop for blocks that cannot start"
        orders = [ExecutionOrder()] if lanes <= _MAX_EXCESS_LANES else []
        if lanes <= _RESIDENT_LANES[WARP]:
            orders.append(ExecutionOrder(RoundRobinChooser()))
        for order in orders:
            batch = RunningBatch(
                Geometry(geometry.block, remaining), grid, starved_batch.first, shared_bytes,
                cluster=self._function.cluster or (1, 1, 1),
            )  # fmt: skip
            tree = HostLaunch(_refuse_child, lambda batch: None, None, None, order, _EXCESS_SECONDS)
            tree.attach_batch(batch, 0)
            with contextlib.suppress(*_TRIAL_ERRORS):
                self._run_and_undo(batch, values, order)
                break
        else:
            if orders:
                return
            verb = "waits in this loop, and other blocks cannot start"
        sentence = f"{{thread}} {verb}: {excess}."
        raise starved_batch.thread_error(
            starved.lane, starved.position, sentence, kind="residency", advice=RESIDENCY_ADVICE
        )

    def _is_deadlock(self, starved_batch: RunningBatch, starved: StarvationError, remaining: int) -> bool:
        """Return whether nothing can end the waits of the last batch that starves; parameters as `_check_capacity`."""
        geometry = starved_batch.geometry
        resident = RESIDENCY.count_resident_blocks(
            geometry.block, self.static_shared_bytes + starved_batch.shared_bytes
        )
        return starved.is_deadlock and geometry.blocks >= min(remaining, resident)

    def _check_capacity(self, starved_batch: RunningBatch, starved: StarvationError, remaining: int) -> None:
        """Raise LaunchError if blocks wait, and further resident ones exceed what the simulator runs at once.

        Parameters
        ----------
        starved_batch : RunningBatch
            The last batch that starves.
        starved : StarvationError
            Where it does.
        remaining : int
            The number of blocks that have not ended.
        """
        geometry = starved_batch.geometry
        resident = RESIDENCY.count_resident_blocks(
            geometry.block, self.static_shared_bytes + starved_batch.shared_bytes
        )
        most = max(1, _RESIDENT_LANES[1 if self._needs_lanes else WARP] // geometry.lanes_per_block)
        if most >= min(remaining, resident) or starved.position is None:
            return
        raise starved_batch.thread_error(
            starved.lane,
            starved.position,
            f"this loop did not end while {most:,} blocks ran: {{thread}} is still in it. It may wait for one of the "
            f"other {remaining - most:,} blocks, which the simulator does not run at once.",
            kind="",
            advice=f"Check the condition that ends the loop, with a grid of at most {most:,} blocks.",
        )

    def _plan_attempts(
        self, order: ExecutionOrder, launch: _GridLaunch, planned: int, remaining: int
    ) -> Iterator[_Attempt]:
        """Yield the orders in which to try blocks, each fairer than the one before; the last one is tried to the end.

        Parameters
        ----------
        order : ExecutionOrder
            The order of the launch.
        launch : _GridLaunch
        planned, remaining : int
            The number of blocks of the batch, and of all blocks that have not run.
        """
        can_retry = (self._may_wait or self._syncs_in_branches) and order.register_seed is None and not launch.depth
        if can_retry:
            lanes = launch.geometry(1).lanes
            unit = compute_cluster_unit(launch.grid, self._function.cluster or (1, 1, 1))
            resident = RESIDENCY.count_resident_blocks(launch.block, self.static_shared_bytes + launch.shared_bytes)
            most = resident * lanes if order.chooser is None else 0
            orders: list[tuple[ExecutionOrder, tuple[int, ...]]] = [(order, (BATCH_LANES, most))]
            if order.chooser is None:
                orders.append((ExecutionOrder(RoundRobinChooser()), (_RESIDENT_LANES[WARP],)))
            if order.lanes_per_part > 1:
                orders.append((ExecutionOrder(RoundRobinChooser(), lanes_per_part=1), (_RESIDENT_LANES[1],)))
            # Long waits need a monitor, which only an order has that can fail.
            fairness, least = 0, 0 if order.has_long_waits else self._fairness
            for tried, limits in orders:
                if (
                    self._syncs_grid
                    and tried.chooser is not None
                    and planned * lanes > _RESIDENT_LANES[tried.lanes_per_part]
                ):
                    continue
                tried_blocks = 0
                for limit in (planned * lanes, *limits):
                    blocks = min(remaining, max(planned, min(limit // lanes, resident) // unit * unit))
                    is_fair = fairness >= least and not (self._needs_lanes and tried.lanes_per_part > 1)
                    if blocks > tried_blocks and is_fair:
                        yield _Attempt(tried, blocks, fairness, can_fail=True)
                    tried_blocks, fairness = max(blocks, tried_blocks), fairness + 1
        yield _Attempt(order, planned, 0, can_fail=False)

    def _run_attempt(
        self, batch: RunningBatch, values: Sequence[Any], attempt: _Attempt, tree: HostLaunch, observer: Observer | None
    ) -> StarvationError | None:
        """Run a batch; return where its lanes starve, if they do: then what it has done is undone."""
        order, buffer = attempt.order, None
        if attempt.can_fail or (attempt.is_probed and order.has_long_waits):
            batch.monitor = ProgressMonitor(watches_syncs=self._syncs_in_branches)
            if observer is not None and attempt.can_fail:
                batch.observer = buffer = EventBuffer(observer, batch.monitor.stop)
        if batch.observer is not None:
            batch.observer.batch_begins(batch)
        starves = False
        try:
            if order.register_seed is not None:
                batch.registers = Registers(batch, batch.observer, order.register_seed)
            self._run_in_order(batch, values, order, self._compiler)
            if batch.registers is not None:
                batch.registers.flush_lanes(batch.geometry.thread_mask)
        except (StarvationError, LaunchError) as error:
            if isinstance(error, LaunchError) and not self._shows_wrong_mask(error, batch):
                raise
            if batch.monitor is None:  # a warp waits at an mbarrier, in lockstep
                raise self._build_grid_size_error(batch.geometry.lanes, _RESIDENT_LANES[WARP]) from None
            batch.monitor.undo()
            starves = True
            return error if isinstance(error, StarvationError) else StarvationError()
        finally:
            if not starves:
                if buffer is not None:
                    buffer.release()
                tree.write_output(batch)
        if batch.observer is not None:
            batch.observer.batch_ends(batch)
        return None

    def _shows_wrong_mask(self, error: LaunchError, batch: RunningBatch) -> bool:
        """Return whether lanes that were to meet at different `__syncwarp` calls do not: in lockstep, a finding."""
        return self._needs_lanes and error.kind == "barrier" and batch.monitor is not None and batch.monitor.is_active

    def _batch_lanes(self, order: ExecutionOrder) -> int:
        """Return the number of lanes per batch. Blocks that wait for earlier blocks run one per batch."""
        if order.chooser is not None:
            return order.batch_lanes
        # With cached values, a batch does not start again in a fairer order.
        waits = self._has_wait_loops or (order.register_seed is not None and self._may_wait)
        return 1 if waits or self._syncs_in_branches else BATCH_LANES

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
            self._bind_arguments(arguments)
        if obstacle := LIMITS.find_launch_violation(grid, block):
            raise LaunchError(f"{self.name}: {obstacle}")
        if self._function.cluster is not None and (
            obstacle := LIMITS.find_cluster_violation(grid, self._function.cluster)
        ):
            raise LaunchError(f"{self.name}: {obstacle}")
        excess = (
            RESIDENCY.describe_excess(grid, block, self.static_shared_bytes + shared_bytes) if self._syncs_grid else ""
        )
        if excess:
            raise LaunchError(
                f"{self.name}: a barrier of the grid needs all blocks at once, but {excess}.",
                advice=RESIDENCY_ADVICE,
                kind="residency",
            )
        static = self.static_shared_bytes
        if shared_bytes < 0:
            raise LaunchError(f"{self.name}: a block cannot have {shared_bytes} bytes of extern shared memory.")
        if static + shared_bytes > self._shared_limit.bytes:
            raise LaunchError(
                f"{self.name}: a block needs {static + shared_bytes} bytes of shared memory; "
                f"{self._shared_limit.bytes} are available."
            )

    def _bind_arguments(self, arguments: Sequence[Argument]) -> list[Any]:
        parameters = self._function.parameters
        if len(arguments) != len(parameters):
            raise LaunchError(f"{self.name} takes {len(parameters)} arguments, not {len(arguments)}.")
        values: list[Any] = []
        for (name, type), argument in zip(parameters, arguments, strict=True):
            if isinstance(argument, SimulatedTensorMap):
                argument = argument.encode_for_lockstep(name)
            if isinstance(type, Pointer) and isinstance(argument, np.ndarray):
                values.append(PointerValue(FlatMemory(name, "global", argument, element_bytes=type.element.size)))
            elif isinstance(type, Pointer) and isinstance(argument, Texture):
                values.append(PointerValue(argument.to_memory(name)))
            elif isinstance(type, Pointer) and isinstance(argument, PointerValue):
                values.append(argument)
            elif isinstance(type, Pointer) and argument is None:
                values.append(PointerValue(None))
            elif isinstance(type, Scalar) and isinstance(argument, np.generic) and argument.dtype == type.dtype:
                values.append(argument)
            elif isinstance(type, Struct) and isinstance(argument, np.void) and argument.nbytes == type.size:
                data = np.frombuffer(argument.tobytes(), np.uint8)
                values.append(tuple(_read_leaf(data, offset, leaf) for offset, leaf in leaves(type)))
            else:
                given = "an array" if isinstance(argument, np.ndarray) else getattr(argument, "dtype", argument)
                raise LaunchError(f"{self.name}: the argument {name} is {type}, not {given}.")
        return values


def _select_chooser(kind: str, seed: int) -> Callable[..., PreemptingChooser]:
    """Return the chooser of a trial of a kind: `PREEMPTED`, `_ANNOUNCED` or `BUFFERED`, without its history."""
    if kind == BUFFERED:
        return partial(PreemptingChooser, seed, has_late_writes=True)
    if kind == _ANNOUNCED:
        return partial(AnnouncementChooser, seed)
    return partial(DirectedChooser, seed - seed // 3) if seed % 3 else partial(PreemptingChooser, seed // 3)


def _print_batch(batch: RunningBatch, on_print: Callable[[str, str], None] | None) -> None:
    for lane, text in batch.printed_texts:
        _write_text(batch.describe(lane), text, on_print)
    batch.printed_texts.clear()


def _write_text(thread: str, text: str, on_print: Callable[[str, str], None] | None) -> None:
    if on_print is not None:
        on_print(thread, text)
    else:
        sys.stdout.write(text)


def _read_leaf(data: Array, offset: int, leaf: Scalar | Pointer) -> Any:
    if isinstance(leaf, Pointer):
        return to_pointer(data[offset : offset + leaf.size].view(np.int64)[0])
    return data[offset : offset + leaf.size].view(leaf.dtype)[0]
