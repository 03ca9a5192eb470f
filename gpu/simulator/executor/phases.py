"""Barriers as objects in shared memory: `mbarrier` in PTX, `cuda::barrier` in C++.

Copies that a phase waits for are performed as late as allowed: when a thread tests the phase and nothing else is
pending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.atomics import AtomicOperation
from gpu.simulator.executor.state.batch import Array
from gpu.simulator.executor.state.memory import AccessSite, SharedMemory
from gpu.simulator.executor.state.observer import Access, PhaseChange
from gpu.simulator.executor.state.phase_words import (
    MAX_ARRIVALS,
    MISUSE_ADVICE,
    TOO_MANY_ARRIVALS,
    UNINITIALIZED,
    PhaseWord,
)
from gpu.simulator.executor.state.pointers import PointerValue, without_observer
from gpu.simulator.executor.state.progress import StarvationError
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.values import PlainValues
from gpu.simulator.types import Scalar

_WORD = Scalar("uint64").dtype


@dataclass(frozen=True)
class _PendingCopy:
    """A copy that a phase waits for: the function that performs it, and the bytes and arrivals that it completes."""

    lane: int
    perform: Callable[[], None]
    bytes: int = 0
    arrivals: int = 0


class BarrierPhases:
    """The mbarriers of a batch."""

    def __init__(self, batch: RunningBatch) -> None:
        self._batch = batch
        self._barrier_numbers: dict[tuple[int, int], int] = {}
        self._copies: dict[int, list[_PendingCopy]] = {}

    def init(
        self, values: PlainValues, barrier: PointerValue, count: Any, mask: LaneMask, position: SourcePosition
    ) -> None:
        """Initialize mbarriers.

        Parameters
        ----------
        values : PlainValues
            The algebra of values.
        barrier : PointerValue
            The mbarrier of each lane.
        count : int or array
            The expected arrivals per phase, one number for all lanes or one per lane.
        mask : LaneMask
            The lanes that execute the operation.
        position : SourcePosition
            The position of the operation.

        Raises
        ------
        LaunchError
            A number is not in 1 to `MAX_ARRIVALS`.
        """
        lanes = self._batch.geometry.lanes
        counts = np.broadcast_to(count, lanes)
        words = np.zeros(lanes, _WORD)
        for lane in mask.lanes.tolist():
            if not 0 < int(counts[lane]) <= MAX_ARRIVALS:
                raise self._misuse_error(lane, f"initializes a barrier for {int(counts[lane])} arrivals", position)
            words[lane] = PhaseWord(int(counts[lane]), int(counts[lane]), 0, 0).encoded
        values.write(barrier, self._batch, None, _WORD, values.lift(words), mask, AccessSite(position, "write"))
        for number in set(self._find_numbers(barrier, mask, position).values()):
            self._copies.pop(number, None)
        self._recheck()

    def change(
        self,
        op: str,
        values: PlainValues,
        barrier: PointerValue,
        amount: Any,
        mask: LaneMask,
        position: SourcePosition,
        *,
        is_relaxed: bool = False,
    ) -> Array:
        """Change the pending arrivals or bytes of the current phase.

        Parameters
        ----------
        op : str
            "arrive"; "drop", which also lowers the expected arrivals; "expect" for more pending bytes, else fewer.
        values : PlainValues
            The algebra of values.
        barrier : PointerValue
            The mbarrier of each lane.
        amount : int or array
            The number of arrivals or bytes, one for all lanes or one per lane.
        mask : LaneMask
            The lanes that execute the operation.
        position : SourcePosition
            The position of the operation.
        is_relaxed : bool
            Whether an arrival orders no accesses without a fence.

        Returns
        -------
        array of uint64
            The parity of the current phase before each lane's operation.

        Raises
        ------
        LaunchError
            The mbarrier is not initialized, or has more arrivals than expected.
        """
        amounts = np.broadcast_to(amount, self._batch.geometry.lanes)
        words, parities = self._read_words(barrier, mask, position), np.zeros(self._batch.geometry.lanes, _WORD)
        for number, lanes in _group_lanes(self._find_numbers(barrier, mask, position)):
            phase = self._decode(words, lanes[0], position)
            for lane in lanes:
                count = int(amounts[lane])
                parities[lane] = phase.parity
                if op in ("arrive", "drop"):
                    self._notify(number, phase.parity, lane, passes=False, is_relaxed=is_relaxed)
                    expected = phase.expected_arrivals - count if op == "drop" else phase.expected_arrivals
                    phase = replace(phase, pending_arrivals=phase.pending_arrivals - count, expected_arrivals=expected)
                else:
                    phase = replace(phase, pending_bytes=phase.pending_bytes + (count if op == "expect" else -count))
                if phase.pending_arrivals < 0:
                    raise self._misuse_error(lane, TOO_MANY_ARRIVALS, position)
                phase = phase.next_phase
                words[lane] = phase.encoded
        self._write_words(values, barrier, words, mask, position)
        self._recheck()
        return parities

    def is_complete(
        self,
        values: PlainValues,
        barrier: PointerValue,
        parity: Any,
        mask: LaneMask,
        position: SourcePosition,
        *,
        is_relaxed: bool = False,
    ) -> Array:
        """Test whether a phase is complete; if only copies are pending, they are performed first.

        Parameters
        ----------
        values : PlainValues
            The algebra of values.
        barrier : PointerValue
            The mbarrier of each lane.
        parity : int or array
            The parity of the phase, one for all lanes or one per lane; only its lowest bit counts.
        mask : LaneMask
            The lanes that execute the operation.
        position : SourcePosition
            The position of the operation.
        is_relaxed : bool
            Whether it orders no accesses without a fence.

        Returns
        -------
        bool array
            Whether the phase is complete, for each lane of the batch; False in inactive lanes.

        Raises
        ------
        LaunchError
            The mbarrier is not initialized.
        StarvationError
            In lockstep, the phase of a lane is not complete.
        """
        batch = self._batch
        parities = np.broadcast_to(parity, batch.geometry.lanes)
        words, over = self._read_words(barrier, mask, position), np.zeros(batch.geometry.lanes, bool)
        for number, lanes in _group_lanes(self._find_numbers(barrier, mask, position)):
            phase = self._perform_last_copies(number, self._decode(words, lanes[0], position))
            words[lanes] = phase.encoded
            for lane in lanes:
                over[lane] = phase.parity != int(parities[lane]) & 1
                if over[lane]:
                    self._notify(number, int(parities[lane]) & 1, lane, passes=True, is_relaxed=is_relaxed)
        self._write_words(values, barrier, words, mask, position)
        if not over[mask.lanes].all():
            if batch.scheduler is None:
                raise StarvationError
            batch.scheduler.wait_for_phase(position)
        return over

    def _perform_last_copies(self, number: int, phase: PhaseWord) -> PhaseWord:
        """Perform the copies of an mbarrier if only they are pending; return its phase."""
        copies = self._copies.get(number, [])
        if not copies or phase.pending_arrivals != sum(copy.arrivals for copy in copies):
            return phase
        del self._copies[number]
        for copy in copies:
            copy.perform()
            self._notify(number, phase.parity, copy.lane, passes=False, completes_copy=True)
            phase = replace(
                phase,
                pending_arrivals=phase.pending_arrivals - copy.arrivals,
                pending_bytes=phase.pending_bytes - copy.bytes,
            )
        self._recheck()
        return phase.next_phase

    def bind_copy(
        self,
        barrier: PointerValue,
        mask: LaneMask,
        position: SourcePosition,
        perform: Callable[[LaneMask], None],
        *,
        size: Any = 0,
        arrivals: int = 0,
        extra_arrivals: int = 0,
    ) -> None:
        """Make the current phase wait for each lane's copy.

        Parameters
        ----------
        barrier : PointerValue
            The mbarrier of each lane.
        mask : LaneMask
            The lanes that copy.
        position : SourcePosition
            The position of the statement.
        perform : callable
            Performs the copy for the lanes that it is called with.
        size : int or array
            The bytes that the copy completes, one for all lanes or one per lane.
        arrivals : int
            The arrivals that each lane's copy completes.
        extra_arrivals : int
            The number by which each lane raises the phase's pending arrivals.
        """
        words = self._read_words(barrier, mask, position)
        amounts = np.broadcast_to(size, self._batch.geometry.lanes)
        if self._batch.observer is not None and amounts.any():
            site = AccessSite(position, "read")
            for address, part in barrier.split_by_memory(mask):
                memory, element = address.find_element(self._batch, _WORD.itemsize, part, site)
                access = Access(site, memory, element, _WORD.itemsize, part, None)
                self._batch.observer.mbarrier_bound(self._batch, access)
        for number, lanes in _group_lanes(self._find_numbers(barrier, mask, position)):
            phase = self._decode(words, lanes[0], position)
            for lane in lanes:
                bits = np.zeros(mask.bits.size, bool)
                bits[lane] = True
                own = LaneMask(bits, 1)
                copy = _PendingCopy(lane, lambda own=own: perform(own), int(amounts[lane]), arrivals)  # type: ignore[misc]
                self._copies.setdefault(number, []).append(copy)
                phase = replace(phase, pending_arrivals=phase.pending_arrivals + extra_arrivals)
            words[lanes] = phase.encoded
        if extra_arrivals:
            with without_observer(self._batch):
                barrier.store(self._batch, None, _WORD, words, mask, AccessSite(position, "write"))
        self._recheck()

    def _recheck(self) -> None:
        if self._batch.scheduler is not None:
            self._batch.scheduler.recheck_phases()

    def _read_words(self, barrier: PointerValue, mask: LaneMask, position: SourcePosition) -> Array:
        with without_observer(self._batch):
            words = barrier.load(self._batch, None, _WORD, mask, AccessSite(position, "atomic"))
        return np.array(np.broadcast_to(words, self._batch.geometry.lanes))

    def _write_words(
        self, values: PlainValues, barrier: PointerValue, words: Array, mask: LaneMask, position: SourcePosition
    ) -> None:
        """Write the new words of mbarriers by an atomic operation, in lane order."""
        exchange = AtomicOperation("exch", [values.lift(words)], used=False)
        values.atomic(barrier, self._batch, None, _WORD, exchange, mask, AccessSite(position, "atomic"))

    def _find_numbers(self, barrier: PointerValue, mask: LaneMask, position: SourcePosition) -> dict[int, int]:
        """Return the number of each lane's mbarrier; each block's copy of a shared variable has its own number."""
        batch, numbers = self._batch, {}
        for address, part in barrier.split_by_memory(mask):
            memory, element = address.find_element(batch, _WORD.itemsize, part, AccessSite(position, "atomic"))
            stride = memory.data.size // batch.geometry.blocks if isinstance(memory, SharedMemory) else 0
            flat = element * _WORD.itemsize + stride * batch.geometry.block_of_lane
            for lane in part.lanes.tolist():
                key = (id(memory), int(flat[lane]))
                numbers[lane] = self._barrier_numbers.setdefault(key, len(self._barrier_numbers))
        return numbers

    def _decode(self, words: Array, lane: int, position: SourcePosition) -> PhaseWord:
        phase = PhaseWord.decode(int(words[lane]))
        if phase is None:
            raise self._misuse_error(lane, UNINITIALIZED, position)
        return phase

    def _notify(
        self,
        number: int,
        parity: int,
        lane: int,
        *,
        passes: bool,
        completes_copy: bool = False,
        is_relaxed: bool = False,
    ) -> None:
        if self._batch.observer is not None:
            change = PhaseChange(2 * number + parity, lane, passes, completes_copy, is_relaxed)
            self._batch.observer.phase(self._batch, change)

    def _misuse_error(self, lane: int, misuse: str, position: SourcePosition) -> LaunchError:
        return self._batch.thread_error(lane, position, f"{{thread}} {misuse}.", advice=MISUSE_ADVICE)


def get_phases(batch: RunningBatch) -> BarrierPhases:
    """Return the mbarriers of a batch; create the object at the first call."""
    if batch.mbarriers is None:
        batch.mbarriers = BarrierPhases(batch)
    phases: BarrierPhases = batch.mbarriers
    return phases


def _group_lanes(numbers: dict[int, int]) -> list[tuple[int, list[int]]]:
    """Return each mbarrier's number with its lanes."""
    groups: dict[int, list[int]] = {}
    for lane, number in numbers.items():
        groups.setdefault(number, []).append(lane)
    return list(groups.items())
