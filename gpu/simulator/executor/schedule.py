"""Schedules: all lanes of a batch run in lockstep, or warps or single lanes run independently.

In the latter case each part (a warp or a lane) is a greenlet that executes the kernel with its own mask and frame.
Before each statement a seeded generator selects the part that runs next. So parts that wait for each other in loops all
make progress, and a seed determines the order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from greenlet import greenlet

from gpu.errors import LaunchError, SourcePosition
from gpu.schedules import Schedule
from gpu.simulator.executor.barriers import barrier_error, check_barrier
from gpu.simulator.executor.batch import Array
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import LocalMemory
from gpu.simulator.executor.observe import IssuedStep, WarpMeeting
from gpu.simulator.executor.running import Meeting, RunningBatch
from gpu.warp import WARP

# Lanes per batch, by lanes per part: the time per statement of a part is proportional to the lanes of the batch.
_INTERLEAVED_LANES = {WARP: 1 << 11, 1: 1 << 8}

# The probabilities that a lane continues with its next statement without a switch: a seed selects one.
_STAY_PROBABILITIES = (0.0, 0.5, 0.9)


class Chooser:
    """Selects the part that runs next."""

    def stays(self) -> bool:
        """Return whether the running part continues without a call of `choose`."""
        return False

    def choose(self, count: int) -> int:
        """Return the index of the next part out of `count`, which are ordered by the time they became ready."""
        raise NotImplementedError


class InTurn(Chooser):
    """Selects parts in rotation."""

    def __init__(self) -> None:
        self._last = 0

    def choose(self, count: int) -> int:
        self._last = (self._last + 1) % count
        return self._last


class Shuffled(Chooser):
    """Selects parts at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


class Drifting(Shuffled):
    """Selects parts at random, and lets lanes run ahead of each other by a distance that depends on the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._stay_probability = self._generator.choice(_STAY_PROBABILITIES)

    def stays(self) -> bool:
        return self._generator.random() < self._stay_probability


@dataclass(frozen=True)
class Order:
    """The execution order of a launch.

    Parameters
    ----------
    chooser : Chooser or None
        Selects the next part; None if all lanes run in lockstep.
    together : int
        Lanes per part.
    register_seed : int or None
        The seed for caching values in registers; None for no caching.
    """

    chooser: Chooser | None = None
    together: int = WARP
    register_seed: int | None = None

    @property
    def batch_lanes(self) -> int:
        """The target number of lanes per batch; a batch has at least one block."""
        return _INTERLEAVED_LANES[self.together]


def order_of(schedule: str | Chooser) -> Order:
    """Return the execution order for a schedule.

    Parameters
    ----------
    schedule : str or Chooser
        One of `gpu.schedules.NAMES`, or a chooser of the next warp.

    Raises
    ------
    InputError
        The schedule is unknown.
    """
    if isinstance(schedule, Chooser):
        return Order(schedule)
    parsed = Schedule.of(schedule)
    match parsed.kind.name:
        case "shuffle":
            return Order(Shuffled(parsed.seed))
        case "lanes":
            return Order(Drifting(parsed.seed), together=1)
        case "cached":
            return Order(register_seed=parsed.seed)
    return Order()


class _WarpPart:
    """A warp or a part of one, in which all lanes run together, and its progress."""

    def __init__(self, number: int, mask: LaneMask, block: _Block, rounds: int) -> None:
        self.number = number
        self.mask = mask
        self.block = block
        self.running: Any = None
        self.rounds = rounds
        self.position = SourcePosition("", 0)
        self.declared: Counter[int] = Counter()


class _Block:
    """The parts of a block that have not ended, and the barrier at which some of them wait."""

    def __init__(self) -> None:
        self.parts: list[_WarpPart] = []
        self.barrier: _Barrier | None = None
        # Lanes that reached the end of the kernel without a return statement.
        self.through: list[int] = []


class _Barrier:
    """A barrier at which parts of a block wait, with the lanes that arrived and their votes."""

    def __init__(self, position: SourcePosition, lanes: int, votes: Array) -> None:
        self.position = position
        self.waiting: list[_WarpPart] = []
        self.bits = np.zeros(lanes, bool)
        self.votes = np.zeros(lanes, votes.dtype)
        self.passed: LaneMask | None = None


class _PendingSync:
    """A warp operation that waits for lanes of its mask: the expected and the arrived lanes, and their operands."""

    def __init__(self, position: SourcePosition, named: Any, expected: Array) -> None:
        self.position = position
        self.named = named
        self.expected = expected
        self.waiting: list[_WarpPart] = []
        self.bits = np.zeros(expected.size, bool)
        self.operands: list[Array] = []
        self.completed: Meeting | None = None

    def join(self, part: _WarpPart, mask: LaneMask, operands: Sequence[Any]) -> None:
        """Add lanes that wait, with their operands."""
        if not self.operands:
            self.operands = [np.zeros(self.bits.size, np.asarray(each).dtype) for each in operands]
        for stored, each in zip(self.operands, operands, strict=True):
            stored[mask.lanes] = np.broadcast_to(each, stored.shape)[mask.lanes]
        self.bits |= mask.bits
        self.waiting.append(part)


class WarpScheduler:
    """Runs the warps of a batch, or parts of them, one at a time.

    Parameters
    ----------
    batch : RunningBatch
        The batch to run.
    chooser : Chooser
        Selects the next part.
    together : int
        Lanes per part: those of a warp, or 1.
    """

    def __init__(self, batch: RunningBatch, chooser: Chooser, together: int = WARP) -> None:
        self._batch = batch
        self._chooser = chooser
        self._splits_warps = together < WARP
        self._current: _WarpPart | None = None
        self._ready: list[_WarpPart] = []
        self._locals: WeakValueDictionary[tuple[int, int], LocalMemory] = WeakValueDictionary()
        self._blocked: list[tuple[_WarpPart, Callable[[], bool], Callable[[], LaunchError]]] = []
        self._woken = False
        self._pending: dict[tuple[int, str, int], _PendingSync] = {}
        self._alive = batch.geometry.everyone.bits.copy()
        blocks = [_Block() for _ in range(batch.geometry.blocks)]
        masks = batch.geometry.lanes_apart if self._splits_warps else batch.geometry.warps
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
        for part in everyone:
            part.running = greenlet(lambda part=part: self._run_part(part, kernel))
            # NumPy's error state is part of the context, and a greenlet starts with an empty context.
            part.running.gr_context = copy_context()
        try:
            while self._ready or self._pending or self._blocked:
                self._resume(self._next())
            self._batch.rounds = max(self._batch.rounds, *(part.rounds for part in everyone))
        finally:
            for part in everyone:
                if not part.running.dead:
                    part.running.throw()

    def pause(self, position: SourcePosition | None = None) -> None:
        """Switch to another part if it is its turn; `position` is that of the running part."""
        if self._current is not None and position is not None:
            self._current.position = position
        if self._chooser.stays():
            return
        following = self._next()
        if following is not self._current:
            self._resume(following)

    def part(self) -> None:
        """Switch to other lanes between the reads and the writes of a statement."""
        if self._splits_warps:
            self.pause()

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the rest of the block.

        Parameters
        ----------
        gone : LaneMask or None
            The lanes of the part that have returned.
        mask : LaneMask
            The lanes that arrive.
        position : SourcePosition
            The barrier's position.
        votes : scalar or array
            Their votes, one for all lanes or one per lane.

        Returns
        -------
        tuple of LaneMask and array
            The block's lanes that arrived, and their votes, one per lane.

        Raises
        ------
        LaunchError
            Some lanes of the block do not reach the barrier.
        """
        self.pause()
        batch, part = self._batch, self._current
        assert part is not None
        if batch.observer is not None:
            batch.observer.step(batch, IssuedStep(position, "barrier", 0), mask)
        check_barrier(batch, part.mask.without(gone), mask, position)
        block = part.block
        if block.barrier is None:
            block.barrier = _Barrier(position, batch.geometry.lanes, np.asarray(votes))
        barrier = block.barrier
        if barrier.position != position:
            raise barrier_error(batch, int(mask.lanes[0]), barrier.position)
        barrier.bits |= mask.bits
        barrier.votes[mask.lanes] = np.broadcast_to(votes, barrier.votes.shape)[mask.lanes]
        barrier.waiting.append(part)
        self._ready.remove(part)
        self._release_if_complete(block)
        if barrier.passed is None:
            self._resume(self._next())
        assert barrier.passed is not None
        return barrier.passed, barrier.votes

    def meet(self, op: str, mask: LaneMask, named: Any, brought: Sequence[Any]) -> Meeting:
        """Wait for the lanes of the warp in a mask argument that have not exited.

        Parameters
        ----------
        op : str
            The operation: lanes synchronize only with lanes that have an equal operation and mask argument.
        mask : LaneMask
            The lanes that arrive.
        named : scalar or array
            Their mask arguments, as bits.
        brought : sequence
            Their operands.

        Returns
        -------
        Meeting
            The lanes that arrived, with all their operands.

        Raises
        ------
        LaunchError
            Some lanes do not arrive.
        """
        if not self._splits_warps:
            return Meeting(mask, named, brought)
        part, geometry = self._current, self._batch.geometry
        assert part is not None
        lane = int(mask.lanes[0])
        own = named[lane] if isinstance(named, np.ndarray) else named
        key = (lane // WARP, op, int(own))
        if key not in self._pending:
            bits = (int(own) >> (geometry.lane_numbers % WARP)) & 1 != 0
            expected = bits & (geometry.lane_numbers // WARP == lane // WARP)
            expected[lane] = True
            self._pending[key] = _PendingSync(part.position, own, expected)
        sync = self._pending[key]
        sync.join(part, mask, brought)
        self._ready.remove(part)
        self._complete_if_all_arrived(key)
        if sync.completed is None:
            self._resume(self._next())
        assert sync.completed is not None
        return sync.completed

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], LaunchError]) -> None:
        """Run other parts until a condition is true; if none can run, raise the error of `otherwise`."""
        if holds():
            return
        part = self._current
        assert part is not None
        self._ready.remove(part)
        self._blocked.append((part, holds, otherwise))
        self._resume(self._next())

    def wake(self) -> None:
        """Test the conditions of waiting parts again."""
        self._woken = True

    @property
    def ended(self) -> LaneMask | None:
        """The lanes of the parts that have ended."""
        return self._batch.geometry.everyone.split(~self._alive)[0]

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of a local array that the running part declares.

        Parts that execute a declaration equally often share one memory, so that an array is one for all threads.
        """
        part = self._current
        assert part is not None
        key = (id(declaration), part.declared[id(declaration)])
        part.declared[id(declaration)] += 1
        memory = self._locals.get(key)
        if memory is None:
            lanes = self._batch.geometry.lanes
            memory = self._locals[key] = LocalMemory(name, size, lanes, zeroed=zeroed, punned=punned)
        return memory

    def _run_part(self, part: _WarpPart, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        through = kernel(part.mask)
        if through is not None:
            part.block.through += through.lanes.tolist()
        part.block.parts.remove(part)
        self._ready.remove(part)
        self._alive &= ~part.mask.bits
        self.wake()
        self._release_if_complete(part.block)
        warp = int(part.mask.lanes[0]) // WARP
        for key in [key for key in self._pending if key[0] == warp]:
            self._complete_if_all_arrived(key)

    def _next(self) -> _WarpPart:
        if self._woken and self._blocked:
            self._woken = False
            for blocked in [each for each in self._blocked if each[1]()]:
                self._blocked.remove(blocked)
                self._ready.append(blocked[0])
        if not self._ready and self._blocked:
            raise self._blocked[0][2]()
        if not self._ready:
            raise self._missing_lane_error()
        return self._ready[self._chooser.choose(len(self._ready))]

    def _resume(self, part: _WarpPart) -> None:
        batch = self._batch
        if self._current is not None:
            self._current.rounds = batch.rounds
        self._current, batch.rounds = part, part.rounds
        if batch.observer is not None:
            batch.observer.switch(batch, part.number)
        part.running.switch()

    def _release_if_complete(self, block: _Block) -> None:
        """Release the parts at a block's barrier if all parts that have not ended have arrived."""
        barrier = block.barrier
        if barrier is None or len(barrier.waiting) < len(block.parts):
            return
        if block.through:
            raise barrier_error(self._batch, min(block.through), barrier.position)
        barrier.passed, block.barrier = LaneMask(barrier.bits), None
        self._ready += barrier.waiting
        if self._batch.observer is not None:
            self._batch.observer.barrier(self._batch, barrier.position, barrier.passed)

    def _complete_if_all_arrived(self, key: tuple[int, str, int]) -> None:
        """Complete a warp operation if all lanes of its mask that have not exited have arrived."""
        sync = self._pending[key]
        if (sync.expected & self._alive & ~sync.bits).any():
            return
        del self._pending[key]
        sync.completed = Meeting(LaneMask(sync.bits), sync.named, sync.operands)
        self._ready += sync.waiting
        if key[1] == "__syncwarp" and self._batch.observer is not None:
            mask, named = sync.completed.mask, sync.named
            self._batch.observer.fence(self._batch, "__syncwarp", mask, named)
            event = WarpMeeting(sync.position, "__syncwarp", mask, named, self.ended)
            self._batch.observer.warp_meets(self._batch, event)

    def _missing_lane_error(self) -> LaunchError:
        """Return the error of a warp operation for which lanes wait in vain."""
        (_, op, _), sync = next(iter(self._pending.items()))
        thread = self._batch.describe(int(np.flatnonzero(sync.expected & self._alive & ~sync.bits)[0]))
        return LaunchError(
            f"{sync.position}: Barrier error detected. Divergent thread(s) in warp: "
            f"{op}{'()' if op.isidentifier() else ''} names {thread}, "
            "which does not arrive.",
            position=sync.position,
            advice="Name only the lanes that arrive, or move the call out of the branch.",
            kind="barrier",
            thread=thread,
        )
