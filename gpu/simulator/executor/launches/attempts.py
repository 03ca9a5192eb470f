"""Attempts to run blocks: in lockstep first, and in ever fairer orders as long as lanes starve."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from gpu.base.errors import LaunchError
from gpu.base.warp import WARP
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.launches.grid_launch import GridLaunch, KernelCode
from gpu.simulator.executor.launches.residency import (
    EXCESS_SECONDS,
    StarvedBatch,
    build_grid_size_error,
    get_resident_lanes,
)
from gpu.simulator.executor.scheduling.choosers import RoundRobinChooser
from gpu.simulator.executor.scheduling.execution_order import ExecutionOrder
from gpu.simulator.executor.state.batches import BATCH_LANES
from gpu.simulator.executor.state.event_buffer import EventBuffer
from gpu.simulator.executor.state.progress import ProgressMonitor, StarvationError
from gpu.simulator.executor.state.registers import Registers
from gpu.simulator.executor.state.running_batch import RunningBatch

_MAX_BUFFERED_LANES = 1 << 12
"""The most lanes of a batch that runs by warps or lanes while an observer's notifications are kept, in case it starves.
"""


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


class BlockRunner:
    """Runs blocks of a kernel in the first order in which no lanes starve, and remembers orders in which they do."""

    def __init__(self, code: KernelCode) -> None:
        self._code, self._traits = code, code.traits
        self._needs_lanes = False
        # The fairness from which on no lanes have starved so far.
        self._fairness = 0

    def forget_fairness(self) -> None:
        """Try all orders again: lanes may have starved for another reason than an unfair order."""
        self._fairness = 0

    def choose_batch_lanes(self, order: ExecutionOrder) -> int:
        """Return the number of lanes per batch. Blocks that wait for earlier blocks run one per batch."""
        if order.chooser is not None:
            return order.batch_lanes
        # With cached values, a batch does not start again in a fairer order.
        waits = self._traits.has_wait_loops or (order.register_seed is not None and self._traits.may_wait)
        return 1 if waits or self._traits.syncs_in_branches else BATCH_LANES

    def run_blocks(
        self, launch: GridLaunch, tree: HostLaunch, order: ExecutionOrder, remaining: range, planned: int
    ) -> tuple[RunningBatch, int]:
        """Run the first of the remaining blocks: `planned`, or more if they wait for later ones.

        Returns
        -------
        tuple of RunningBatch and int
            The batch that ran to its end, and its number of blocks.
        """
        starved: StarvedBatch | None = None
        fewest, is_deadlock = 1, False
        for attempt in self._plan_attempts(order, launch, planned, len(remaining)):
            if attempt.can_fail and attempt.blocks < fewest:
                continue
            if starved is not None and not attempt.can_fail:
                starved.check_residency()
                starved.check_capacity(1 if self._needs_lanes else WARP)
                is_deadlock = starved.is_deadlock()
            batch = launch.create_batch(remaining.start, attempt.blocks, tree.observer)
            batch.uses_async_proxy = tree.observer is None or self._traits.uses_async_proxy
            tree.attach_batch(batch, launch.depth)
            batch.is_deadlock = is_deadlock
            starvation = self._probe_attempt(launch, batch, attempt)
            if starvation is None:
                starvation = self._run_attempt(launch, batch, attempt, tree)
            if starvation is None:
                break
            starved = StarvedBatch(launch, batch, starvation, len(remaining))
            self._needs_lanes |= starvation.needs_lanes
            if starvation.needs_blocks and fewest == 1:
                fewest = min(attempt.blocks + 1, len(remaining))
            self._fairness = attempt.fairness + 1
        return batch, attempt.blocks

    def _plan_attempts(
        self, order: ExecutionOrder, launch: GridLaunch, planned: int, remaining: int
    ) -> Iterator[_Attempt]:
        """Yield the orders in which to try blocks, each fairer than the one before; the last one is tried to the end.

        Parameters
        ----------
        order : ExecutionOrder
            The order of the launch.
        planned, remaining : int
            The number of blocks of the batch, and of all blocks that have not run.
        """
        can_wait = self._traits.may_wait or self._traits.syncs_in_branches
        if can_wait and order.register_seed is None and not launch.depth:
            lanes, unit, resident = launch.lanes_per_block, launch.cluster_unit, launch.resident_blocks
            # Long waits need a monitor, which only an order has that can fail.
            fairness, least = 0, 0 if order.has_long_waits else self._fairness
            for tried, limits in _list_fairer_orders(order, resident * lanes):
                most = get_resident_lanes(tried.lanes_per_part)
                if self._traits.syncs_grid and tried.chooser is not None and planned * lanes > most:
                    continue
                tried_blocks = 0
                for limit in (planned * lanes, *limits):
                    blocks = min(remaining, max(planned, min(limit // lanes, resident) // unit * unit))
                    is_fair = fairness >= least and not (self._needs_lanes and tried.lanes_per_part > 1)
                    if blocks > tried_blocks and is_fair:
                        yield _Attempt(tried, blocks, fairness, can_fail=True)
                    tried_blocks, fairness = max(blocks, tried_blocks), fairness + 1
        yield _Attempt(order, planned, 0, can_fail=False)

    def _probe_attempt(self, launch: GridLaunch, batch: RunningBatch, attempt: _Attempt) -> StarvationError | None:
        """Return where lanes starve in an attempt that cannot be undone, or only at a high cost; None if they do not.

        It is run without a recording and observers, and what it does is undone. Then the attempt can run to its end.

        Parameters
        ----------
        batch : RunningBatch
            The batch of the attempt, which is not changed.
        attempt : _Attempt
            The attempt; if no lanes starve, it can no longer fail.
        """
        is_large = attempt.order.chooser is not None and batch.geometry.lanes > _MAX_BUFFERED_LANES
        if not attempt.can_fail or (self._code.is_plain and not is_large):
            return None
        # The attempt must make the same choices, as long waits end in an order that only they lead to.
        order = deepcopy(attempt.order) if attempt.order.has_long_waits else attempt.order
        probe = launch.create_batch(batch.first, attempt.blocks)
        try:
            launch.run_and_undo(probe, order, EXCESS_SECONDS, watches_syncs=self._traits.syncs_in_branches)
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

    def _run_attempt(
        self, launch: GridLaunch, batch: RunningBatch, attempt: _Attempt, tree: HostLaunch
    ) -> StarvationError | None:
        """Run a batch; return where its lanes starve, if they do: then what it has done is undone."""
        order, buffer = attempt.order, None
        if attempt.can_fail or (attempt.is_probed and order.has_long_waits):
            batch.monitor = ProgressMonitor(watches_syncs=self._traits.syncs_in_branches)
            if tree.observer is not None and attempt.can_fail:
                batch.observer = buffer = EventBuffer(tree.observer, batch.monitor.stop)
        if batch.observer is not None:
            batch.observer.batch_begins(batch)
        starves = False
        try:
            if order.register_seed is not None:
                batch.registers = Registers(batch, batch.observer, order.register_seed)
            self._code.run_in_order(batch, launch.arguments, order, self._code.compiler)
            if batch.registers is not None:
                batch.registers.flush_lanes(batch.geometry.thread_mask)
        except (StarvationError, LaunchError) as error:
            if isinstance(error, LaunchError) and not self._shows_wrong_mask(error, batch):
                raise
            if batch.monitor is None:  # a warp waits at an mbarrier, in lockstep
                raise build_grid_size_error(launch, batch.geometry.lanes, WARP) from None
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


def _list_fairer_orders(order: ExecutionOrder, resident_lanes: int) -> list[tuple[ExecutionOrder, tuple[int, ...]]]:
    """Return an order and fairer ones, each with the numbers of lanes that run together in it."""
    is_lockstep = order.chooser is None
    orders: list[tuple[ExecutionOrder, tuple[int, ...]]] = [(order, (BATCH_LANES, resident_lanes * is_lockstep))]
    if is_lockstep:
        orders.append((ExecutionOrder(RoundRobinChooser()), (get_resident_lanes(WARP),)))
    if order.lanes_per_part > 1:
        orders.append((ExecutionOrder(RoundRobinChooser(), lanes_per_part=1), (get_resident_lanes(1),)))
    return orders
