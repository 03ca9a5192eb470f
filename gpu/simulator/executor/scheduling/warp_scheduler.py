"""Schedules: all lanes of a batch run in lockstep, or warps or single lanes run independently.

In the latter case each part (a warp or a lane) is a greenlet that executes the kernel with its own mask and frame.
Before each statement a seeded generator selects the part that runs next. So parts that wait for each other in loops all
make progress, and a seed determines the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from greenlet import getcurrent, greenlet

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.executor.barriers import build_barrier_error, check_barrier
from gpu.simulator.executor.scheduling.choosers import Chooser
from gpu.simulator.executor.state.batch import Array
from gpu.simulator.executor.state.memory import LocalMemory
from gpu.simulator.executor.state.observer import IssuedStep, WarpSync
from gpu.simulator.executor.state.pointers import select_lane
from gpu.simulator.executor.state.running_batch import Conversions, RunningBatch, StrongAccess, WarpOperation

_MAX_CHOICES = 1000
"""The most choices of a part without those that wait for a phase: they may do something else that others wait for."""

_CHOICES_PER_WAITER = 4
"""The choices without parts that wait in loops, for each of them: about what one iteration of all of them takes."""


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
    chooser : Chooser
        Selects the next part.
    lanes_per_part : int
        Lanes per part: those of a warp, or 1.

    Attributes
    ----------
    statements : int
        The statements that parts have begun.
    """

    def __init__(self, batch: RunningBatch, chooser: Chooser, lanes_per_part: int = WARP) -> None:
        self._batch = batch
        self._chooser = chooser
        self._splits_warps = lanes_per_part < WARP
        self.notes_accesses = chooser.history is not None
        self.statements = 0
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
        self.statements += 1
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

    def yield_before_strong_access(self, access: StrongAccess) -> None:
        if self._chooser.preempts(access):
            self._resume_next()

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
        members = select_lane(member_mask, lane)
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
    def current_part(self) -> int:
        """The number of the running part."""
        assert self._current is not None
        return self._current.number

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

    def copy_local_memories(self, mask: LaneMask) -> list[tuple[str, bytes]]:
        memories = self._local_memories.values()
        return [(memory.name, memory.copy_lanes(mask.lanes).tobytes()) for memory in memories]

    def _run_part(self, part: _WarpPart, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        through = kernel(part.mask)
        if through is not None:
            part.block.finished_lanes += through.lanes.tolist()
            self._finished_lanes |= through.bits
        if self._batch.registers is not None:
            self._batch.registers.end_lanes(part.mask)
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
            not self._ready
            or self._choices_without_waiters >= _CHOICES_PER_WAITER * len(self._loop_waiters)
            or (
                self._chooser.stopped is not None
                and self._chooser.recalls_waiters([part.number for part in self._ready])
            )
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
        ready, chooser = self._ready, self._chooser
        if chooser.needs_numbers:
            return ready[chooser.choose_part([part.number for part in ready])]
        return ready[chooser.choose(len(ready))]

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
