"""The order in which the lanes of a batch run: all in lockstep, or warps or single lanes each on their own.

Where they go on their own, what goes together (a warp, or a part of one) is a greenlet that goes through the kernel
with a mask of its own lanes and a frame of its own. Before each statement a seeded generator names the one that goes
on, so that those which wait for each other in loops all get their turns, and one seed always gives one order.
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

# So many lanes are interleaved: each statement of a warp, or of a lane, takes time in proportion to them.
_INTERLEAVED_LANES = {WARP: 1 << 11, 1: 1 << 8}

# How often a lane goes on with its next statement before another one may: a seed has one of these.
_STAYING = (0.0, 0.5, 0.9)


class Chooser:
    """Says whose turn it is."""

    def stays(self) -> bool:
        """Return whether the one that runs goes on, rather than one that is chosen."""
        return False

    def choose(self, count: int) -> int:
        """Return which of so many goes on, from 0; they stand in the order in which they began to wait."""
        raise NotImplementedError


class InTurn(Chooser):
    """Lets one after the other go on."""

    def __init__(self) -> None:
        self._last = 0

    def choose(self, count: int) -> int:
        self._last = (self._last + 1) % count
        return self._last


class Shuffled(Chooser):
    """Chooses at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


class Drifting(Shuffled):
    """Chooses at random too, and lets lanes run ahead of each other: by a little or by much, as the seed has it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._staying = self._generator.choice(_STAYING)

    def stays(self) -> bool:
        return self._generator.random() < self._staying


@dataclass(frozen=True)
class Order:
    """How a launch runs.

    Parameters
    ----------
    chooser : Chooser or None
        Names the next one; None where all go in lockstep.
    together : int
        How many lanes go together.
    register_seed : int or None
        Decides what threads keep in registers; None where they keep nothing.
    """

    chooser: Chooser | None = None
    together: int = WARP
    register_seed: int | None = None

    @property
    def batch_lanes(self) -> int:
        """How many lanes are interleaved at most, but for those of one block."""
        return _INTERLEAVED_LANES[self.together]


def order_of(schedule: str | Chooser) -> Order:
    """Return how a launch runs.

    Parameters
    ----------
    schedule : str or Chooser
        One of `gpu.schedules.NAMES`; or what chooses the next warp.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(schedule, Chooser):
        return Order(schedule)
    wanted = Schedule.of(schedule)
    match wanted.kind.name:
        case "shuffle":
            return Order(Shuffled(wanted.seed))
        case "lanes":
            return Order(Drifting(wanted.seed), together=1)
        case "cached":
            return Order(register_seed=wanted.seed)
    return Order()


class _WarpPart:
    """A warp or a part of one, whose lanes go together, and how far it has come."""

    def __init__(self, number: int, mask: LaneMask, block: _Block, rounds: int) -> None:
        self.number = number
        self.mask = mask
        self.block = block
        self.running: Any = None
        self.rounds = rounds
        self.position = SourcePosition("", 0)
        self.declared: Counter[int] = Counter()


class _Block:
    """The parts of a block that have not ended, and the barrier where some of them wait."""

    def __init__(self) -> None:
        self.parts: list[_WarpPart] = []
        self.barrier: _Barrier | None = None
        # Lanes that came to the kernel's end, and not to a return.
        self.through: list[int] = []


class _Barrier:
    """A barrier where parts of a block wait: who is there, and how they vote."""

    def __init__(self, position: SourcePosition, lanes: int, votes: Array) -> None:
        self.position = position
        self.waiting: list[_WarpPart] = []
        self.bits = np.zeros(lanes, bool)
        self.votes = np.zeros(lanes, votes.dtype)
        self.passed: LaneMask | None = None


class _Rendezvous:
    """Where lanes of a warp wait for those that they name: who is due and who is there, and what these bring."""

    def __init__(self, position: SourcePosition, named: Any, due: Array) -> None:
        self.position = position
        self.named = named
        self.due = due
        self.waiting: list[_WarpPart] = []
        self.bits = np.zeros(due.size, bool)
        self.brought: list[Array] = []
        self.held: Meeting | None = None

    def join(self, part: _WarpPart, mask: LaneMask, brought: Sequence[Any]) -> None:
        """Let lanes wait here with what they bring."""
        if not self.brought:
            self.brought = [np.zeros(self.bits.size, np.asarray(each).dtype) for each in brought]
        for kept, each in zip(self.brought, brought, strict=True):
            kept[mask.lanes] = np.broadcast_to(each, kept.shape)[mask.lanes]
        self.bits |= mask.bits
        self.waiting.append(part)


class WarpScheduler:
    """The warps of a batch, or parts of them, of which one runs at a time.

    Parameters
    ----------
    batch : RunningBatch
    chooser : Chooser
        Names the next one.
    together : int
        How many lanes go together: those of a warp, or each alone.
    """

    def __init__(self, batch: RunningBatch, chooser: Chooser, together: int = WARP) -> None:
        self._batch = batch
        self._chooser = chooser
        self._lanes_part = together < WARP
        self._current: _WarpPart | None = None
        self._ready: list[_WarpPart] = []
        self._locals: WeakValueDictionary[tuple[int, int], LocalMemory] = WeakValueDictionary()
        self._blocked: list[tuple[_WarpPart, Callable[[], bool], Callable[[], LaunchError]]] = []
        self._woken = False
        self._meetings: dict[tuple[int, str, int], _Rendezvous] = {}
        self._alive = batch.geometry.everyone.bits.copy()
        blocks = [_Block() for _ in range(batch.geometry.blocks)]
        masks = batch.geometry.lanes_apart if self._lanes_part else batch.geometry.warps
        for number, mask in enumerate(masks):
            block = blocks[int(mask.lanes[0]) // batch.geometry.lanes_per_block]
            part = _WarpPart(number, mask, block, batch.rounds)
            block.parts.append(part)
            self._ready.append(part)

    def run(self, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        """Let every part go through a kernel, to the end of all.

        Parameters
        ----------
        kernel : callable
            Takes the lanes that begin, and returns those that come to its end without a return.
        """
        everyone = list(self._ready)
        for part in everyone:
            part.running = greenlet(lambda part=part: self._live(part, kernel))
            # NumPy's error state is part of the context, and a greenlet would start with an empty one.
            part.running.gr_context = copy_context()
        try:
            while self._ready or self._meetings or self._blocked:
                self._resume(self._next())
            self._batch.rounds = max(self._batch.rounds, *(part.rounds for part in everyone))
        finally:
            for part in everyone:
                if not part.running.dead:
                    part.running.throw()

    def pause(self, position: SourcePosition | None = None) -> None:
        """Let another part go on, if it is one's turn; `position` is where the one that runs stands."""
        if self._current is not None and position is not None:
            self._current.position = position
        if self._chooser.stays():
            return
        following = self._next()
        if following is not self._current:
            self._resume(following)

    def part(self) -> None:
        """Let other lanes go on between what a statement reads and what it writes."""
        if self._lanes_part:
            self.pause()

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the rest of the block.

        Parameters
        ----------
        gone : LaneMask or None
            The lanes of the part that have returned.
        mask : LaneMask
            Those that are here.
        position : SourcePosition
            The barrier.
        votes : scalar or array
            How they vote.

        Returns
        -------
        tuple of LaneMask and array
            The block's lanes that arrived, and their votes, one a lane.

        Raises
        ------
        LaunchError
            There are lanes that do not come.
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
        self._let_pass(block)
        if barrier.passed is None:
            self._resume(self._next())
        assert barrier.passed is not None
        return barrier.passed, barrier.votes

    def meet(self, op: str, mask: LaneMask, named: Any, brought: Sequence[Any]) -> Meeting:
        """Wait for the lanes of the warp that are named and have not ended.

        Parameters
        ----------
        op : str
            What lanes meet for: only those of the same one that name the same lanes meet.
        mask : LaneMask
            The lanes that are here.
        named : scalar or array
            The lanes that each of them names, as bits.
        brought : sequence
            What they bring.

        Returns
        -------
        Meeting
            The lanes that met, and what all of them brought.

        Raises
        ------
        LaunchError
            There are lanes that do not come.
        """
        if not self._lanes_part:
            return Meeting(mask, named, brought)
        part, geometry = self._current, self._batch.geometry
        assert part is not None
        lane = int(mask.lanes[0])
        own = named[lane] if isinstance(named, np.ndarray) else named
        key = (lane // WARP, op, int(own))
        if key not in self._meetings:
            bits = (int(own) >> (geometry.lane_numbers % WARP)) & 1 != 0
            due = bits & (geometry.lane_numbers // WARP == lane // WARP)
            due[lane] = True
            self._meetings[key] = _Rendezvous(part.position, own, due)
        meeting = self._meetings[key]
        meeting.join(part, mask, brought)
        self._ready.remove(part)
        self._let_meet(key)
        if meeting.held is None:
            self._resume(self._next())
        assert meeting.held is not None
        return meeting.held

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], LaunchError]) -> None:
        """Let other parts go on until something holds; where none can, and it does not, that is an error."""
        if holds():
            return
        part = self._current
        assert part is not None
        self._ready.remove(part)
        self._blocked.append((part, holds, otherwise))
        self._resume(self._next())

    def wake(self) -> None:
        """Let those look again that wait until something holds."""
        self._woken = True

    @property
    def ended(self) -> LaneMask | None:
        """The lanes of the parts that have come to their end."""
        return self._batch.geometry.everyone.split(~self._alive)[0]

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of an array of each thread's own that the running part declares.

        It is the same for all that declare it the same time, so that an array is one for all threads.
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

    def _live(self, part: _WarpPart, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        through = kernel(part.mask)
        if through is not None:
            part.block.through += through.lanes.tolist()
        part.block.parts.remove(part)
        self._ready.remove(part)
        self._alive &= ~part.mask.bits
        self.wake()
        self._let_pass(part.block)
        warp = int(part.mask.lanes[0]) // WARP
        for key in [key for key in self._meetings if key[0] == warp]:
            self._let_meet(key)

    def _next(self) -> _WarpPart:
        if self._woken and self._blocked:
            self._woken = False
            for blocked in [each for each in self._blocked if each[1]()]:
                self._blocked.remove(blocked)
                self._ready.append(blocked[0])
        if not self._ready and self._blocked:
            raise self._blocked[0][2]()
        if not self._ready:
            raise self._stuck()
        return self._ready[self._chooser.choose(len(self._ready))]

    def _resume(self, part: _WarpPart) -> None:
        batch = self._batch
        if self._current is not None:
            self._current.rounds = batch.rounds
        self._current, batch.rounds = part, part.rounds
        if batch.observer is not None:
            batch.observer.switch(batch, part.number)
        part.running.switch()

    def _let_pass(self, block: _Block) -> None:
        """End the waiting where all parts of a block that have not ended are at the barrier."""
        barrier = block.barrier
        if barrier is None or len(barrier.waiting) < len(block.parts):
            return
        if block.through:
            raise barrier_error(self._batch, min(block.through), barrier.position)
        barrier.passed, block.barrier = LaneMask(barrier.bits), None
        self._ready += barrier.waiting
        if self._batch.observer is not None:
            self._batch.observer.barrier(self._batch, barrier.position, barrier.passed)

    def _let_meet(self, key: tuple[int, str, int]) -> None:
        """End the waiting where all lanes that are named and have not ended are there."""
        meeting = self._meetings[key]
        if (meeting.due & self._alive & ~meeting.bits).any():
            return
        del self._meetings[key]
        meeting.held = Meeting(LaneMask(meeting.bits), meeting.named, meeting.brought)
        self._ready += meeting.waiting
        if key[1] == "__syncwarp" and self._batch.observer is not None:
            mask, named = meeting.held.mask, meeting.named
            self._batch.observer.fence(self._batch, "__syncwarp", mask, named)
            met = WarpMeeting(meeting.position, "__syncwarp", mask, named, self.ended)
            self._batch.observer.warp_meets(self._batch, met)

    def _stuck(self) -> LaunchError:
        """Return the error of lanes that wait for others of their warp, which do not come."""
        (_, op, _), meeting = next(iter(self._meetings.items()))
        who = self._batch.describe(int(np.flatnonzero(meeting.due & self._alive & ~meeting.bits)[0]))
        return LaunchError(
            f"{meeting.position}: Barrier error detected. Divergent thread(s) in warp: "
            f"{op}{'()' if op.isidentifier() else ''} names {who}, "
            "which does not come.",
            position=meeting.position,
            advice="Name the lanes that come there, or move it out of the branch, so that all of them do.",
            kind="barrier",
            thread=who,
        )
