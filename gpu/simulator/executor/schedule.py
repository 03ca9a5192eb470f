"""Schedules: all lanes of a batch run in lockstep, or warps or single lanes run independently.

In the latter case each part (a warp or a lane) is a greenlet that executes the kernel with its own mask and frame.
Before each statement a seeded generator selects the part that runs next. So parts that wait for each other in loops all
make progress, and a seed determines the order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from greenlet import getcurrent, greenlet

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.schedules import Schedule
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.barriers import build_barrier_error, check_barrier
from gpu.simulator.executor.state.batch import Array
from gpu.simulator.executor.state.batches import find_compared_constants, only_counts_iterations
from gpu.simulator.executor.state.memory import LocalMemory
from gpu.simulator.executor.state.observer import IssuedStep, WarpSync
from gpu.simulator.executor.state.running_batch import Conversions, RunningBatch, WarpOperation

_MAX_CHOICES = 1000
"""The most choices of a part without those that wait for a phase: they may do something else that others wait for."""

_CHOICES_PER_WAITER = 4
"""The choices without parts that wait in loops, for each of them: about what one iteration of all of them takes."""

_ALONE_STATEMENTS = 100
"""Statements that a part executes alone after it began to wait: the iterations below, and some after the loop."""

_COMPARED_ITERATIONS = 4
"""Iterations of a waiting loop that must change the same variable by the same amount."""

# Lanes per batch, by lanes per part: the time per statement of a part is proportional to the lanes of the batch.
_INTERLEAVED_LANES = {WARP: 1 << 11, 1: 1 << 8}

# The probabilities that a lane continues with its next statement without a switch: a seed selects one.
_STAY_PROBABILITIES = (0.0, 0.5, 0.9)


class LongWaits:
    """Makes each wait longer than any number of iterations that a loop counts.

    A part that waits executes some statements alone, once in each loop. If the iterations change only one integer, by a
    constant amount, and it affects no access, the integer gets the value that it would have many iterations later.
    """

    def __init__(self) -> None:
        self.loops: set[SourcePosition] = set()
        """The loops that were prolonged."""
        self._waited: set[tuple[Hashable, SourcePosition]] = set()
        self._remaining_statements = 0
        self._snapshots: list[list[Any]] = []

    def begin_batch(self) -> None:
        """Forget the waits of another batch."""
        self._waited.clear()
        self.release()

    def release(self) -> None:
        """Let other parts run again."""
        self._remaining_statements = 0
        self._snapshots.clear()

    def keeps_running(self) -> bool:
        """Count a statement of the running part; return whether the part continues to run alone."""
        self._remaining_statements -= 1
        return self._remaining_statements > 0

    def prolong(self, part: Hashable, loop: ir.Loop, variables: list[Any], mask: LaneMask, values: Conversions) -> bool:
        """Note an iteration in which a part waited, and advance the variable that counts them, if there is one.

        Parameters
        ----------
        part : hashable
            The running part.
        loop : ir.Loop
        variables : list
            The variables of the loop's function; changed in place.
        mask : LaneMask
            The lanes in the loop.
        values : Conversions
            The algebra of the variables' values.

        Returns
        -------
        bool
            Whether the part continues to run alone.
        """
        if self._remaining_statements <= 0:
            if (part, loop.position) in self._waited:
                return False
            self._waited.add((part, loop.position))
            self._remaining_statements = _ALONE_STATEMENTS
        self._snapshots.append([None if value is None else values.strip(value) for value in variables])
        if len(self._snapshots) > _COMPARED_ITERATIONS:
            slot = _find_counter(self._snapshots[-_COMPARED_ITERATIONS - 1 :], mask)
            if slot is not None and only_counts_iterations(loop, slot):
                self.loops.add(loop.position)
                before, value = (snapshot[slot] for snapshot in self._snapshots[-2:])
                first, last = (int(_get_lane(each, mask)) for each in (before, value))
                advanced = _advance(first, last, np.asarray(value).dtype, find_compared_constants(loop, slot))
                later = np.where(mask.bits, np.asarray(advanced, np.asarray(value).dtype), value)
                variables[slot] = values.convert(lambda _: later, variables[slot])
                self._snapshots.clear()
        return True


class Chooser:
    """Selects the part that runs next.

    Attributes
    ----------
    long_waits : LongWaits or None
        Prolongs the waits of parts in loops; None if a wait ends as soon as the memory changes that it waits for.
    """

    long_waits: LongWaits | None = None

    def keeps_running(self) -> bool:
        """Return whether the running part continues without a call of `choose`."""
        return False

    def choose(self, count: int) -> int:
        """Return the index of the next part out of `count`, which are ordered by the time they became ready."""
        raise NotImplementedError


class RoundRobinChooser(Chooser):
    """Selects parts in rotation."""

    def __init__(self) -> None:
        self._last = 0

    def choose(self, count: int) -> int:
        self._last = (self._last + 1) % count
        return self._last


class ShuffledChooser(Chooser):
    """Selects parts at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


class DriftingChooser(ShuffledChooser):
    """Selects parts at random, and lets lanes run ahead of each other by a distance that depends on the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._stay_probability = self._generator.choice(_STAY_PROBABILITIES)

    def keeps_running(self) -> bool:
        return self._generator.random() < self._stay_probability


class LateChooser(ShuffledChooser):
    """Selects parts at random, and lets each wait in a loop last longer than any number of iterations."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.long_waits: LongWaits = LongWaits()
        self._seed = seed

    def __str__(self) -> str:
        """The schedule of the same parts without long waits."""
        return f"shuffle:{self._seed}"

    def keeps_running(self) -> bool:
        return self.long_waits.keeps_running()


@dataclass(frozen=True)
class ExecutionOrder:
    """The execution order of a launch.

    Parameters
    ----------
    chooser : Chooser or None
        Selects the next part; None if all lanes run in lockstep.
    lanes_per_part : int
        Lanes per part.
    register_seed : int or None
        The seed for caching values in registers; None for no caching.
    """

    chooser: Chooser | None = None
    lanes_per_part: int = WARP
    register_seed: int | None = None

    @property
    def has_long_waits(self) -> bool:
        """Whether waits in loops are prolonged."""
        return self.chooser is not None and self.chooser.long_waits is not None

    @property
    def batch_lanes(self) -> int:
        """The target number of lanes per batch; a batch has at least one block."""
        return _INTERLEAVED_LANES[self.lanes_per_part]


def create_order(schedule: str | Chooser) -> ExecutionOrder:
    """Return the execution order for a schedule.

    Parameters
    ----------
    schedule : str or Chooser
        One of `gpu.base.schedules.NAMES`, or a chooser of the next warp.

    Raises
    ------
    InputError
        The schedule is unknown.
    """
    if isinstance(schedule, Chooser):
        return ExecutionOrder(schedule)
    parsed = Schedule.parse(schedule)
    match parsed.kind.name:
        case "shuffle":
            return ExecutionOrder(ShuffledChooser(parsed.seed))
        case "lanes":
            return ExecutionOrder(DriftingChooser(parsed.seed), lanes_per_part=1)
        case "cached":
            return ExecutionOrder(register_seed=parsed.seed)
    return ExecutionOrder()


class _WarpPart:
    """A warp or a part of one, in which all lanes run together, and its progress."""

    def __init__(self, number: int, mask: LaneMask, block: _Block, rounds: int) -> None:
        self.number = number
        self.mask = mask
        self.block = block
        self.greenlet: Any = None
        self.rounds = rounds
        self.position = SourcePosition("", 0)
        self.declaration_counts: Counter[int] = Counter()


class _Block:
    """The parts of a block that have not ended, and the barrier at which some of them wait."""

    def __init__(self) -> None:
        self.parts: list[_WarpPart] = []
        self.barrier: _Barrier | None = None
        # Lanes that reached the end of the kernel without a return statement.
        self.finished_lanes: list[int] = []


class _Barrier:
    """A barrier at which parts of a block wait, with the lanes that arrived and their votes."""

    def __init__(self, position: SourcePosition, lanes: int, votes: Array) -> None:
        self.position = position
        self.waiting: list[_WarpPart] = []
        self.arrived_bits = np.zeros(lanes, bool)
        self.votes = np.zeros(lanes, votes.dtype)
        self.passed_mask: LaneMask | None = None


class _PendingSync:
    """A warp operation that waits for lanes of its mask: the expected and the arrived lanes, and their operands."""

    def __init__(self, position: SourcePosition, member_mask: Any, expected: Array) -> None:
        self.position = position
        self.member_mask = member_mask
        self.expected = expected
        self.waiting: list[_WarpPart] = []
        self.arrived_bits = np.zeros(expected.size, bool)
        self.operands: list[Array] = []
        self.result: WarpOperation | None = None

    def add_part(self, part: _WarpPart, mask: LaneMask, operands: Sequence[Any]) -> None:
        """Add lanes that wait, with their operands."""
        if not self.operands:
            self.operands = [np.zeros(self.arrived_bits.size, np.asarray(operand).dtype) for operand in operands]
        for stored, operand in zip(self.operands, operands, strict=True):
            stored[mask.lanes] = np.broadcast_to(operand, stored.shape)[mask.lanes]
        self.arrived_bits |= mask.bits
        self.waiting.append(part)


class WarpScheduler:
    """Runs the warps of a batch, or parts of them, one at a time.

    Parameters
    ----------
    batch : RunningBatch
        The batch to run.
    chooser : Chooser
        Selects the next part.
    lanes_per_part : int
        Lanes per part: those of a warp, or 1.
    """

    def __init__(self, batch: RunningBatch, chooser: Chooser, lanes_per_part: int = WARP) -> None:
        self._batch = batch
        self._chooser = chooser
        self._splits_warps = lanes_per_part < WARP
        self._current: _WarpPart | None = None
        self._ready: list[_WarpPart] = []
        # Parts that found the phase of an mbarrier incomplete, and the choices since they were last ready.
        self._phase_waiters: list[_WarpPart] = []
        self._choices = 0
        # Parts that have found a phase incomplete since an mbarrier last changed, and those of them in a loop that
        # repeats itself.
        self._failed_tests: set[int] = set()
        self._stuck_parts: set[int] = set()
        # Parts that probably wait in loops, and the choices since one of them last ran.
        self._loop_waiters: list[_WarpPart] = []
        self._choices_without_waiters = 0
        self._local_memories: WeakValueDictionary[tuple[int, int], LocalMemory] = WeakValueDictionary()
        self._blocked_parts: list[tuple[_WarpPart, Callable[[], bool], Callable[[], LaunchError]]] = []
        self._recheck = False
        if chooser.long_waits is not None:
            chooser.long_waits.begin_batch()
        self._pending_syncs: dict[tuple[int, str, int], _PendingSync] = {}
        self._running_lanes = batch.geometry.thread_mask.bits.copy()
        # Lanes that reached the end of the kernel without a return statement.
        self._finished_lanes = np.zeros(batch.geometry.lanes, bool)
        blocks = [_Block() for _ in range(batch.geometry.blocks)]
        masks = batch.geometry.single_lane_masks if self._splits_warps else batch.geometry.warps
        for number, mask in enumerate(masks):
            block = blocks[int(mask.lanes[0]) // batch.geometry.lanes_per_block]
            part = _WarpPart(number, mask, block, batch.rounds)
            block.parts.append(part)
            self._ready.append(part)

    def run(self, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        """Run a kernel in all parts, until all have ended.

        Parameters
        ----------
        kernel : callable
            Runs the kernel in the given lanes, and returns those that reach its end without a return statement.
        """
        everyone = list(self._ready)
        main = getcurrent()

        def start(part: _WarpPart) -> None:
            main.switch()
            self._run_part(part, kernel)

        for part in everyone:
            part.greenlet = greenlet(partial(start, part))
            # NumPy's error state is part of the context, and a greenlet starts with an empty context.
            part.greenlet.gr_context = copy_context()
            # Started here, not by another part: each greenlet adds the depth of the one that starts it to its own.
            part.greenlet.switch()
        try:
            while (
                self._ready or self._loop_waiters or self._phase_waiters or self._pending_syncs or self._blocked_parts
            ):
                self._resume(self._choose_next())
            self._batch.rounds = max(self._batch.rounds, *(part.rounds for part in everyone))
        finally:
            for part in everyone:
                if not part.greenlet.dead:
                    part.greenlet.throw()

    def pause(self, position: SourcePosition | None = None) -> None:
        if self._current is not None and position is not None:
            self._current.position = position
        if self._chooser.keeps_running():
            return
        self._resume_next()

    def wait_for_phase(self, position: SourcePosition) -> None:
        part = self._current
        if part is None:
            return
        self._failed_tests.add(part.number)
        self._wait(part, position, self._phase_waiters)

    def wait_in_loop(self, loop: ir.Loop, variables: list[Any], mask: LaneMask, values: Conversions) -> None:
        part, long_waits = self._current, self._chooser.long_waits
        if (
            part is not None
            and long_waits is not None
            and long_waits.prolong(part.number, loop, variables, mask, values)
        ):
            return
        if part is None or (len(self._ready) < 2 and not self._loop_waiters):
            return
        self._wait(part, loop.position, self._loop_waiters)

    def waits_for_ever(self) -> bool:
        assert self._current is not None
        if self._current.number in self._failed_tests:
            self._stuck_parts.add(self._current.number)
        return len(self._stuck_parts) >= self.running_parts + len(self._phase_waiters)

    def recheck_phases(self) -> None:
        self._failed_tests.clear()
        self._stuck_parts.clear()
        self._test_phases_again()

    def _test_phases_again(self) -> None:
        self._ready += self._phase_waiters
        self._phase_waiters.clear()
        self._choices = 0

    def yield_before_write(self) -> None:
        if self._splits_warps:
            self.pause()

    def wait_at_barrier(
        self, exited: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any
    ) -> tuple[LaneMask, Any]:
        self.pause()
        batch, part = self._batch, self._current
        assert part is not None
        if batch.observer is not None:
            batch.observer.step(batch, IssuedStep(position, "barrier", 0), mask)
        check_barrier(batch, part.mask.without(exited), mask, position)
        block = part.block
        if block.barrier is None:
            block.barrier = _Barrier(position, batch.geometry.lanes, np.asarray(votes))
        barrier = block.barrier
        if barrier.position != position:
            raise build_barrier_error(batch, int(mask.lanes[0]), barrier.position)
        barrier.arrived_bits |= mask.bits
        barrier.votes[mask.lanes] = np.broadcast_to(votes, barrier.votes.shape)[mask.lanes]
        barrier.waiting.append(part)
        self._ready.remove(part)
        self._release_if_complete(block)
        if barrier.passed_mask is None:
            self._resume(self._choose_next())
        assert barrier.passed_mask is not None
        return barrier.passed_mask, barrier.votes

    def wait_for_lanes(self, op: str, mask: LaneMask, member_mask: Any, operands: Sequence[Any]) -> WarpOperation:
        if not self._splits_warps:
            return WarpOperation(mask, member_mask, operands)
        part, geometry = self._current, self._batch.geometry
        assert part is not None
        lane = int(mask.lanes[0])
        members = member_mask[lane] if isinstance(member_mask, np.ndarray) else member_mask
        key = (lane // WARP, op, int(members))
        if key not in self._pending_syncs:
            bits = (int(members) >> (geometry.lane_numbers % WARP)) & 1 != 0
            expected = bits & (geometry.lane_numbers // WARP == lane // WARP)
            expected[lane] = True
            self._pending_syncs[key] = _PendingSync(part.position, members, expected)
        sync = self._pending_syncs[key]
        sync.add_part(part, mask, operands)
        self._ready.remove(part)
        self._complete_if_all_arrived(key)
        if sync.result is None:
            self._resume(self._choose_next())
        assert sync.result is not None
        return sync.result

    def wait_until(self, condition: Callable[[], bool], create_error: Callable[[], LaunchError]) -> None:
        """Run other parts until a condition is true; if none can run, raise the error of `create_error`."""
        if condition():
            return
        part = self._current
        assert part is not None
        self._ready.remove(part)
        self._blocked_parts.append((part, condition, create_error))
        self._resume(self._choose_next())

    def recheck_conditions(self) -> None:
        """Test the conditions of waiting parts again."""
        self._recheck = True

    @property
    def running_parts(self) -> int:
        """The number of parts that can run."""
        return len(self._ready) + len(self._loop_waiters)

    @property
    def exited_mask(self) -> LaneMask | None:
        """The lanes of the parts that have ended."""
        return self._batch.geometry.thread_mask.split(~self._running_lanes)[0]

    @property
    def returned_mask(self) -> LaneMask | None:
        """The lanes of the parts that have ended, without those that reached the end of the kernel."""
        exited = self.exited_mask
        return None if exited is None else exited.split(~self._finished_lanes)[0]

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        # Parts that execute a declaration equally often share one memory, so that an array is one for all threads.
        part = self._current
        assert part is not None
        key = (id(declaration), part.declaration_counts[id(declaration)])
        part.declaration_counts[id(declaration)] += 1
        memory = self._local_memories.get(key)
        if memory is None:
            lanes = self._batch.geometry.lanes
            memory = self._local_memories[key] = LocalMemory(name, size, lanes, zeroed=zeroed, punned=punned)
        return memory

    def _run_part(self, part: _WarpPart, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        through = kernel(part.mask)
        if through is not None:
            part.block.finished_lanes += through.lanes.tolist()
            self._finished_lanes |= through.bits
        if self._batch.registers is not None:
            self._batch.registers.flush_lanes(part.mask)
        part.block.parts.remove(part)
        self._ready.remove(part)
        self._running_lanes &= ~part.mask.bits
        self.recheck_conditions()
        self._release_if_complete(part.block)
        warp = int(part.mask.lanes[0]) // WARP
        for key in [key for key in self._pending_syncs if key[0] == warp]:
            self._complete_if_all_arrived(key)

    def _wait(self, part: _WarpPart, position: SourcePosition, waiters: list[_WarpPart]) -> None:
        """Move the current part to a list of waiting ones, and resume another."""
        part.position = position
        self._ready.remove(part)
        waiters.append(part)
        self._resume_next()

    def _resume_next(self) -> None:
        following = self._choose_next()
        if following is not self._current:
            self._resume(following)

    def _choose_next(self) -> _WarpPart:
        self._choices += 1
        self._choices_without_waiters += 1
        if self._loop_waiters and (
            not self._ready or self._choices_without_waiters >= _CHOICES_PER_WAITER * len(self._loop_waiters)
        ):
            self._ready += self._loop_waiters
            self._loop_waiters.clear()
            self._choices_without_waiters = 0
        if self._phase_waiters and (not self._ready or self._choices >= _MAX_CHOICES):
            self._test_phases_again()
        if self._recheck and self._blocked_parts:
            self._recheck = False
            for blocked in [blocked_part for blocked_part in self._blocked_parts if blocked_part[1]()]:
                self._blocked_parts.remove(blocked)
                self._ready.append(blocked[0])
        if not self._ready and self._blocked_parts:
            raise self._blocked_parts[0][2]()
        if not self._ready:
            raise self._missing_lane_error()
        return self._ready[self._chooser.choose(len(self._ready))]

    def _resume(self, part: _WarpPart) -> None:
        batch = self._batch
        if self._current is not None:
            self._current.rounds = batch.rounds
        if self._chooser.long_waits is not None:
            self._chooser.long_waits.release()
        self._current, batch.rounds = part, part.rounds
        if batch.monitor is not None:
            batch.monitor.part = part.number
        if batch.observer is not None:
            batch.observer.switch(batch, part.number)
        part.greenlet.switch()

    def _release_if_complete(self, block: _Block) -> None:
        """Release the parts at a block's barrier if all parts that have not ended have arrived."""
        barrier = block.barrier
        if barrier is None or len(barrier.waiting) < len(block.parts):
            return
        if block.finished_lanes:
            raise build_barrier_error(self._batch, min(block.finished_lanes), barrier.position)
        barrier.passed_mask, block.barrier = LaneMask(barrier.arrived_bits), None
        self._ready += barrier.waiting
        if self._batch.observer is not None:
            self._batch.observer.barrier(self._batch, barrier.position, barrier.passed_mask)

    def _complete_if_all_arrived(self, key: tuple[int, str, int]) -> None:
        """Complete a warp operation if all lanes of its mask that have not exited have arrived."""
        sync = self._pending_syncs[key]
        if (sync.expected & self._running_lanes & ~sync.arrived_bits).any():
            return
        del self._pending_syncs[key]
        sync.result = WarpOperation(LaneMask(sync.arrived_bits), sync.member_mask, sync.operands)
        self._ready += sync.waiting
        if key[1] == "__syncwarp" and self._batch.observer is not None:
            mask, named = sync.result.mask, sync.member_mask
            self._batch.observer.fence(self._batch, "__syncwarp", mask, named)
            event = WarpSync(sync.position, "__syncwarp", mask, named, self.returned_mask)
            self._batch.observer.warp_sync(self._batch, event)

    def _missing_lane_error(self) -> LaunchError:
        """Return the error of a warp operation for which lanes wait in vain."""
        (_, op, _), sync = next(iter(self._pending_syncs.items()))
        return self._batch.thread_error(
            int(np.flatnonzero(sync.expected & self._running_lanes & ~sync.arrived_bits)[0]),
            sync.position,
            f"Barrier error detected. Divergent thread(s) in warp: {op}{'()' if op.isidentifier() else ''} names "
            "{thread}, which does not arrive.",
            kind="barrier",
            advice="Name only the lanes that arrive, or move the call out of the branch.",
        )


def _find_counter(snapshots: list[list[Any]], mask: LaneMask) -> int | None:
    """Return the slot of the only variable that changed, if it is an integer and changed by a constant amount."""
    changed = set()
    for before, after in pairwise(snapshots):
        for slot, (old, new) in enumerate(zip(before, after, strict=True)):
            if old is not new and not (_is_number(old) and _is_number(new) and _is_equal(old, new, mask)):
                changed.add(slot)
    if len(changed) != 1:
        return None
    (slot,) = changed
    values = [snapshot[slot] for snapshot in snapshots]
    if not all(_is_number(value) and value.dtype.kind in "iu" for value in values):
        return None
    lanes = [np.broadcast_to(value, mask.bits.shape)[mask.lanes].astype(np.int64) for value in values]
    steps = np.diff(np.array(lanes), axis=0)
    same = (steps == steps[0, 0]).all() and all((each == each[0]).all() for each in lanes)
    return slot if same and steps[0, 0] else None


def _is_number(value: Any) -> bool:
    return isinstance(value, np.generic | np.ndarray)


def _is_equal(old: Any, new: Any, mask: LaneMask) -> bool:
    return bool(np.all(np.broadcast_to(old == new, mask.bits.shape)[mask.lanes]))


def _get_lane(value: Any, mask: LaneMask) -> Any:
    return np.broadcast_to(value, mask.bits.shape)[mask.lanes[0]]


def _advance(before: int, value: int, dtype: np.dtype[Any], compared: set[int]) -> int:
    """Return a later value of a counter: just before one with which it is compared, or near the end of its range."""
    step = value - before
    steps = [(other - value) // step for other in compared]
    near = min((count for count in steps if count > _COMPARED_ITERATIONS), default=0)
    if near:
        return value + (near - 2) * step
    border = np.iinfo(dtype).max // 2 * (1 if step > 0 else -1)
    return value + max((border - value) // step, 0) * step
