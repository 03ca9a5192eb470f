"""Trials: the first blocks of a launch run in other orders, and what they do is undone.

In lockstep, lanes that test flags or take locks observe few of the values that they may observe on a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial

from gpu.base.errors import LaunchError
from gpu.simulator.executor.launches.grid_launch import GridLaunch, KernelCode
from gpu.simulator.executor.launches.residency import StarvedBatch, get_resident_lanes
from gpu.simulator.executor.scheduling.access_history import AccessHistory
from gpu.simulator.executor.scheduling.announcements import AnnouncementChooser
from gpu.simulator.executor.scheduling.choosers import RoundRobinChooser
from gpu.simulator.executor.scheduling.directed import DirectedChooser
from gpu.simulator.executor.scheduling.early_reads import EarlyReadBuffer, RepeatedReadBuffer
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder, create_order
from gpu.simulator.executor.scheduling.preemption import FREQUENT_PREEMPTIONS, LATE_PREEMPTIONS, PreemptingChooser
from gpu.simulator.executor.scheduling.reordered_writes import ReorderingBuffer
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.executor.state.progress import StarvationError
from gpu.simulator.executor.state.registers import StoreBuffer
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.state.time_limit import TimeLimit

TRIAL_SCHEDULES = ("shuffle:1", "shuffle:3")
"""The schedules of trials, in which lanes that wait observe other values than in lockstep."""

BUFFERED = "buffered"
"""A trial in which warps advance in rotation and strong writes become visible late."""

ROTATION = "rotation"
"""A trial in which warps advance in rotation, so that each of them may have one of several locks."""

PREEMPTED = "preempt"
"""Trials in which warps are stopped before strong accesses, each with another seed of this kind of schedule."""

_PREEMPTED_BLOCKS, _MAX_PREEMPTED = 4, 32
"""The fewest blocks of these trials, if the grid has as many, and their number; and again for those of announcements,
for those in which strong writes also become visible late, and for those in which strong reads are executed early."""

_MIN_STATEMENTS, _MIN_SECONDS, _MAX_SECONDS = 20_000, 1.2, 5.0
"""Trials of a kind begin until they have taken this number of statements of warps, which is the same on every machine,
and these seconds of processor time, which add trials on a fast one; but never after the longer time."""

_ANNOUNCED = "announced"
"""As many trials with preemption, in which a warp is stopped before it announces what it has read."""

_REORDERED_TRIALS = 12
"""The trials in which the writes at one place in the source become visible late."""

_PROBES, _PROBE_LANES = 4, 1 << 7
"""The trials that run even if none shows that several warps write a location, and their most lanes; larger kernels have
only one."""

_TRIAL_LANES, _TRIAL_ROUNDS, _TRIAL_SECONDS = (1 << 9, 1 << 12), 2000, 2.0
"""The most lanes of a trial, and of one that follows if they starve; loop iterations of a warp; seconds of processor
time."""


class _Budget:
    """What the trials of a kind may take.

    Parameters
    ----------
    launches : int
        The launches that share it, or have used parts of it.
    """

    def __init__(self, launches: int) -> None:
        self._statements = _MIN_STATEMENTS // launches
        self._least, self._most = TimeLimit(_MIN_SECONDS / launches), TimeLimit(_MAX_SECONDS / launches)

    @property
    def is_spent(self) -> bool:
        """Return whether no other trial may begin."""
        return (self._statements <= 0 and self._least.is_exceeded) or self._most.is_exceeded

    def spend(self, batch: RunningBatch) -> None:
        """Subtract what a trial has taken."""
        if batch.scheduler is not None:
            self._statements -= batch.scheduler.statements


class TrialPlan:
    """The trials of a kernel's launches: which of them a launch has, and what they may take.

    Trials cost up to half of a launch, and those of equal launches rarely differ. Which flags a thread writes and
    reads, and which locks it takes, depends on the kernel more than on its data. So of the launches with one grid and
    block, only the first has all trials; the second, fourth, eighth ... have those in `TRIAL_SCHEDULES`.
    """

    def __init__(self, code: KernelCode) -> None:
        self._traits = code.traits
        # The launches so far that may need trials, by grid and block.
        self._launches: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """The schedules of trials, also `BUFFERED`, `ROTATION`, `PREEMPTED`; none if the kernel needs no trials."""
        traits = self._traits
        is_ordered = traits.has_fences and (traits.tests_flags or traits.tests_values_in_loops)
        may_buffer = traits.tests_flags and traits.has_strong_writes
        preempted = (PREEMPTED,) if traits.decides_writes else ()
        if not is_ordered:
            return (BUFFERED, *preempted) if may_buffer else preempted
        orders = (TRIAL_SCHEDULES[0], BUFFERED) if may_buffer else TRIAL_SCHEDULES
        return (*orders, *((ROTATION,) if traits.takes_turns else ()), *preempted)

    def choose_orders(self, launch: GridLaunch) -> tuple[str, ...]:
        """Return the schedules of the trials of a launch: fewer if the kernel has run with its grid and block."""
        shape = (tuple(launch.grid), tuple(launch.block))
        self._launches[shape] += 1
        count = self._launches[shape]
        if count == 1:
            return self.orders
        return tuple(order for order in self.orders if order in TRIAL_SCHEDULES and count.bit_count() == 1)

    def begin_budget(self) -> _Budget:
        """Return a budget: launches with many grids and blocks share it, the nth of them has an nth of it."""
        return _Budget(len(self._launches))


class LaunchTrials:
    """The trials of a launch.

    Parameters
    ----------
    launch : GridLaunch
    observer : Observer
        Observes the trials.
    plan : TrialPlan
    """

    def __init__(self, launch: GridLaunch, observer: Observer, plan: TrialPlan) -> None:
        self._launch, self._observer, self._plan = launch, observer, plan
        self._traits = launch.code.traits
        self._history = AccessHistory()
        # The trials so far whose accesses the history has.
        self._probes = 0
        # What trials with store buffers have shown: the writes that later ones may overtake, and whether threads read a
        # place again without a fence.
        self._overtaken: set[AccessSite] = set()
        self._repeats_reads = False

    def run(self) -> None:
        """Run the first blocks in other orders: more of them if they wait for later ones.

        Raises
        ------
        LaunchError
            In some order the lanes wait for each other for ever.
        """
        counts = self._count_blocks()
        if not counts:
            return
        for schedule in self._plan.choose_orders(self._launch):
            if schedule == PREEMPTED:
                self._run_preempted(counts)
            else:
                self._run_schedule(schedule, counts)
        if self._overtaken:
            self._run_reordered(counts[0])
        if self._repeats_reads:
            self._run_early_reads(counts[0])

    def _count_blocks(self) -> list[int]:
        """Return the numbers of blocks of trials, the smallest first; none if the grid has a barrier and is too large.

        Clusters run as a whole, and so does a grid with a barrier.
        """
        total, lanes = self._launch.blocks, self._launch.lanes_per_block
        if self._traits.syncs_grid:
            return [total] if total * lanes <= _TRIAL_LANES[-1] else []
        return sorted({min(total, self._round_up(max(2, most // lanes))) for most in _TRIAL_LANES})

    def _round_up(self, blocks: int) -> int:
        """Return the fewest blocks of whole clusters, at least `blocks`."""
        unit = self._launch.cluster_unit
        return -(-blocks // unit) * unit

    def _run_schedule(self, schedule: str, counts: Sequence[int]) -> None:
        """Run the first blocks in a schedule, with more blocks as long as they starve."""
        for count in counts:
            is_named = schedule in TRIAL_SCHEDULES
            order = create_order(schedule) if is_named else ExecutionOrder(RoundRobinChooser())
            assert order.chooser is not None
            if self._traits.decides_writes:
                self._history.begin_run()
                order.chooser.history = self._history
                self._probes += 1
            starvation, batch = self._run_trial(schedule, order, count)
            if isinstance(batch.registers, RepeatedReadBuffer):
                self._overtaken |= batch.registers.find_overtaken()
                self._repeats_reads |= batch.registers.repeats_reads
            if starvation is None:
                break
            if schedule == ROTATION and starvation.is_deadlock:
                self._check_deadlock(count, ExecutionOrder(RoundRobinChooser(), lanes_per_part=1))

    def _run_preempted(self, counts: Sequence[int]) -> None:
        """Run trials with preemption of each kind that can show something."""
        block_counts = sorted({min(self._round_up(_PREEMPTED_BLOCKS), *counts), *counts})
        self._run_preempted_kind(PREEMPTED, block_counts)
        if self._history.announcements:
            self._run_preempted_kind(_ANNOUNCED, block_counts)
        if BUFFERED in self._plan.orders:
            self._run_preempted_kind(BUFFERED, block_counts)

    def _run_preempted_kind(self, kind: str, counts: Sequence[int]) -> None:
        """Run the first blocks many times, each time stopping warps before other strong accesses.

        They go on only if a trial, also one of another kind, shows that some location is written by several warps, and
        that a value read there is tested; or, if `kind` is `_ANNOUNCED`, that a warp announces what it has read. They
        also end with the first finding. `counts` are the numbers of blocks to try, the smallest first.
        """
        budget, remaining, probes = self._plan.begin_budget(), list(counts), self._probes
        for seed in range(_MAX_PREEMPTED):
            is_probe = probes < _PROBES and self._launch.geometry(remaining[0]).lanes <= _PROBE_LANES
            is_needed = not probes or self._history.has_decisions or is_probe or kind == _ANNOUNCED
            if self._observer.has_findings or budget.is_spent or not is_needed:
                return
            create_chooser = _select_chooser(kind, seed)
            known, order = self._history.copy(), ExecutionOrder(create_chooser(history=self._history))
            starvation, batch = self._run_trial(BUFFERED if kind == BUFFERED else PREEMPTED, order, remaining[0])
            budget.spend(batch)
            if starvation is not None and starvation.is_deadlock and kind != BUFFERED:
                lanes = ExecutionOrder(create_chooser(history=known, lanes_per_part=1), lanes_per_part=1)
                self._check_deadlock(remaining[0], lanes)
            elif starvation is not None and len(remaining) > 1:
                del remaining[0]
            probes += 1

    def _run_reordered(self, blocks: int) -> None:
        """Run the first blocks with late writes at each place that others may overtake, until there is a finding."""
        budget = self._plan.begin_budget()
        for late in sorted(self._overtaken, key=lambda site: (site.position.line_key, site.position.column)):
            for seed in range(_REORDERED_TRIALS):
                if self._observer.has_findings or budget.is_spent:
                    return
                preemptions = FREQUENT_PREEMPTIONS if seed % 3 else LATE_PREEMPTIONS
                chooser = PreemptingChooser(seed, preemptions=preemptions) if seed else RoundRobinChooser()
                buffer = partial(ReorderingBuffer, late=late)
                budget.spend(self._run_trial(BUFFERED, ExecutionOrder(chooser), blocks, buffer)[1])

    def _run_early_reads(self, blocks: int) -> None:
        """Run the first blocks with reads that are executed early, until there is a finding."""
        budget = self._plan.begin_budget()
        for seed in range(_MAX_PREEMPTED):
            if self._observer.has_findings or budget.is_spent:
                return
            chooser = PreemptingChooser(seed, preemptions=FREQUENT_PREEMPTIONS)
            budget.spend(self._run_trial(BUFFERED, ExecutionOrder(chooser), blocks, EarlyReadBuffer)[1])

    def _run_trial(
        self,
        name: str,
        order: ExecutionOrder,
        blocks: int,
        create_buffer: Callable[[RunningBatch, Observer], StoreBuffer] = RepeatedReadBuffer,
    ) -> tuple[StarvationError | None, RunningBatch]:
        """Run the first blocks in an order, and undo what they do; return where they starve, if they do, and the batch.

        `is_deadlock` of the starvation also tells that no other block can end their wait. A trial with store buffers
        has those of `create_buffer`.
        """
        launch, observer = self._launch, self._observer
        batch = launch.create_batch(0, blocks, observer)
        batch.trial_order = name
        if name == BUFFERED:
            batch.registers = create_buffer(batch, observer)
        observer.launch_begins(launch.code.name, launch.grid, launch.block)
        observer.batch_begins(batch)
        starved = None
        try:
            launch.run_and_undo(batch, order, _TRIAL_SECONDS, _TRIAL_ROUNDS)
        except StarvationError as starvation:
            starved = starvation
            starved.is_deadlock = StarvedBatch(launch, batch, starved, launch.blocks).is_deadlock()
        except (LaunchError, MemoryError):
            pass  # the launch itself shows the error, if it is one in any schedule
        observer.launch_ends()
        return starved, batch

    def _check_deadlock(self, blocks: int, order: ExecutionOrder) -> None:
        """Raise LaunchError if the lanes of the first blocks wait for each other for ever when they run in an order.

        In it each lane runs independently, so no lane waits only because its warp runs in lockstep.
        """
        launch = self._launch
        if launch.geometry(blocks).lanes > get_resident_lanes(1):
            return
        batch = launch.create_batch(0, blocks)
        try:
            launch.run_and_undo(batch, order, _TRIAL_SECONDS, _TRIAL_ROUNDS)
        except StarvationError as starvation:
            if not StarvedBatch(launch, batch, starvation, launch.blocks).is_deadlock():
                return
            raise batch.thread_error(
                starvation.lane,
                starvation.position,
                "this loop may not end: in another order of the threads {thread} waits in it, all others that have not "
                "ended wait too, and none can end the wait of another.",
                kind="endless",
                advice="If threads take several locks, let all of them take these in the same order. A thread that "
                "waits must not hold what another one needs to continue. One that announces that it waits must test "
                "once more, after a fence, what it waits for. A barrier must reset its counter before it releases the "
                "threads.",
            ) from None
        except (LaunchError, MemoryError):
            pass


def _select_chooser(kind: str, seed: int) -> Callable[..., PreemptingChooser]:
    """Return the chooser of a trial of a kind: `PREEMPTED`, `_ANNOUNCED` or `BUFFERED`, without its history."""
    if kind == BUFFERED:
        return partial(PreemptingChooser, seed, preemptions=LATE_PREEMPTIONS)
    if kind == _ANNOUNCED:
        return partial(AnnouncementChooser, seed)
    return partial(DirectedChooser, seed - seed // 3) if seed % 3 else partial(PreemptingChooser, seed // 3)
