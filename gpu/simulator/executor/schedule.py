"""The order in which the warps of a batch run: all in lockstep, or each on its own, as a seeded generator has it.

Shuffled, a warp is a greenlet that goes through the kernel with a mask of its own lanes and a frame of its own. Before
each statement the generator names the warp that goes on, so that warps which wait for each other in loops all get
their turns, and one seed always gives one order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from greenlet import greenlet

from gpu.errors import InputError, SourcePosition
from gpu.simulator.executor.barriers import barrier_error, check_barrier
from gpu.simulator.executor.batch import Array
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import LocalMemory
from gpu.simulator.executor.observe import IssuedStep
from gpu.simulator.executor.running import RunningBatch
from gpu.warp import WARP

ROUND_ROBIN = "round-robin"

# So many lanes are interleaved: each statement of a warp takes time in proportion to them.
SHUFFLED_LANES = 1 << 11


class Chooser:
    """Says whose turn it is."""

    def choose(self, count: int) -> int:
        """Return which of so many warps goes on, from 0; they stand in the order in which they began to wait."""
        raise NotImplementedError


class Shuffled(Chooser):
    """Chooses at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def choose(self, count: int) -> int:
        return int(self._generator.random() * count)


def chooser_of(schedule: str | Chooser) -> Chooser | None:
    """Return what chooses the next warp, or None where warps run in lockstep.

    Parameters
    ----------
    schedule : str or Chooser
        "round-robin", or "shuffle:SEED" with a whole number; or what chooses.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(schedule, Chooser):
        return schedule
    name, _, seed = schedule.partition(":")
    if schedule == ROUND_ROBIN:
        return None
    if name != "shuffle" or not (seed.isascii() and seed.isdigit()):
        raise InputError(
            f"{schedule!r} is no schedule: it is round-robin or shuffle:SEED, where SEED is a whole number from 0."
        )
    return Shuffled(int(seed))


class _Warp:
    """A warp: its lanes, and how far it has come."""

    def __init__(self, number: int, mask: LaneMask, block: _Block, rounds: int) -> None:
        self.number = number
        self.mask = mask
        self.block = block
        self.running: Any = None
        self.rounds = rounds
        self.declared: Counter[int] = Counter()


class _Block:
    """The warps of a block that have not ended, and the barrier where some of them wait."""

    def __init__(self) -> None:
        self.warps: list[_Warp] = []
        self.barrier: _Barrier | None = None
        # Lanes that came to the kernel's end, and not to a return.
        self.through: list[int] = []


class _Barrier:
    """A barrier where warps of a block wait: who is there, and how they vote."""

    def __init__(self, position: SourcePosition, lanes: int, votes: Array) -> None:
        self.position = position
        self.waiting: list[_Warp] = []
        self.bits = np.zeros(lanes, bool)
        self.votes = np.zeros(lanes, votes.dtype)
        self.passed: LaneMask | None = None


class WarpScheduler:
    """The warps of a batch, of which one runs at a time.

    Parameters
    ----------
    batch : RunningBatch
    chooser : Chooser
        Names the next one.
    """

    def __init__(self, batch: RunningBatch, chooser: Chooser) -> None:
        self._batch = batch
        self._chooser = chooser
        self._current: _Warp | None = None
        self._ready: list[_Warp] = []
        self._locals: WeakValueDictionary[tuple[int, int], LocalMemory] = WeakValueDictionary()
        blocks = [_Block() for _ in range(batch.geometry.blocks)]
        per_block = batch.geometry.lanes_per_block // WARP
        for number, mask in enumerate(batch.geometry.warps):
            block = blocks[number // per_block]
            warp = _Warp(number, mask, block, batch.rounds)
            block.warps.append(warp)
            self._ready.append(warp)

    def run(self, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        """Let every warp go through a kernel, to the end of all.

        Parameters
        ----------
        kernel : callable
            Takes the lanes that begin, and returns those that come to its end without a return.
        """
        everyone = list(self._ready)
        for warp in everyone:
            warp.running = greenlet(lambda warp=warp: self._live(warp, kernel))
            # NumPy's error state is part of the context, and a greenlet would start with an empty one.
            warp.running.gr_context = copy_context()
        try:
            while self._ready:
                self._resume(self._next())
            self._batch.rounds = max(self._batch.rounds, *(warp.rounds for warp in everyone))
        finally:
            for warp in everyone:
                if not warp.running.dead:
                    warp.running.throw()

    def pause(self) -> None:
        """Let another warp go on, if it is one's turn."""
        following = self._next()
        if following is not self._current:
            self._resume(following)

    def wait(self, gone: LaneMask | None, mask: LaneMask, position: SourcePosition, votes: Any) -> tuple[LaneMask, Any]:
        """Wait at a barrier for the block's other warps.

        Parameters
        ----------
        gone : LaneMask or None
            The lanes of the warp that have returned.
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
        batch, warp = self._batch, self._current
        assert warp is not None
        if batch.observer is not None:
            batch.observer.step(batch, IssuedStep(position, "barrier", 0), mask)
        check_barrier(batch, warp.mask.without(gone), mask, position)
        block = warp.block
        if block.barrier is None:
            block.barrier = _Barrier(position, batch.geometry.lanes, np.asarray(votes))
        barrier = block.barrier
        if barrier.position != position:
            raise barrier_error(batch, int(mask.lanes[0]), barrier.position)
        barrier.bits |= mask.bits
        barrier.votes[mask.lanes] = np.broadcast_to(votes, barrier.votes.shape)[mask.lanes]
        barrier.waiting.append(warp)
        self._ready.remove(warp)
        self._let_pass(block)
        if barrier.passed is None:
            self._resume(self._next())
        assert barrier.passed is not None
        return barrier.passed, barrier.votes

    def local_memory(self, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool) -> LocalMemory:
        """Return the memory of an array of each thread's own that the running warp declares.

        It is the same for all warps that declare it the same time, so that an array is one for all threads.
        """
        warp = self._current
        assert warp is not None
        key = (id(declaration), warp.declared[id(declaration)])
        warp.declared[id(declaration)] += 1
        memory = self._locals.get(key)
        if memory is None:
            lanes = self._batch.geometry.lanes
            memory = self._locals[key] = LocalMemory(name, size, lanes, zeroed=zeroed, punned=punned)
        return memory

    def _live(self, warp: _Warp, kernel: Callable[[LaneMask], LaneMask | None]) -> None:
        through = kernel(warp.mask)
        if through is not None:
            warp.block.through += through.lanes.tolist()
        warp.block.warps.remove(warp)
        self._ready.remove(warp)
        self._let_pass(warp.block)

    def _next(self) -> _Warp:
        return self._ready[self._chooser.choose(len(self._ready))]

    def _resume(self, warp: _Warp) -> None:
        batch = self._batch
        if self._current is not None:
            self._current.rounds = batch.rounds
        self._current, batch.rounds = warp, warp.rounds
        if batch.observer is not None:
            batch.observer.switch(batch, warp.number)
        warp.running.switch()

    def _let_pass(self, block: _Block) -> None:
        """End the waiting where all warps of a block that have not ended are at the barrier."""
        barrier = block.barrier
        if barrier is None or len(barrier.waiting) < len(block.warps):
            return
        if block.through:
            raise barrier_error(self._batch, min(block.through), barrier.position)
        barrier.passed, block.barrier = LaneMask(barrier.bits), None
        self._ready += barrier.waiting
        if self._batch.observer is not None:
            self._batch.observer.barrier(self._batch, barrier.position, barrier.passed)
