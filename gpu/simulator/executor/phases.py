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


@dataclass(frozen=True)
class PhaseOperation:
    """An operation on mbarriers.

    Parameters
    ----------
    barrier : PointerValue
        The mbarrier of each lane.
    mask : LaneMask
        The lanes that execute it.
    values : PlainValues
        The algebra of values.
    is_relaxed : bool
        Whether it orders no accesses without a fence.
    """

    barrier: PointerValue
    mask: LaneMask
    position: SourcePosition
    values: PlainValues
    is_relaxed: bool = False


class BarrierPhases:
    """The mbarriers of a batch."""

    def __init__(self, batch: RunningBatch) -> None:
        self._batch = batch
        self._barrier_numbers: dict[tuple[int, int], int] = {}
        self._copies: dict[int, list[_PendingCopy]] = {}

    def init(self, operation: PhaseOperation, count: Any) -> None:
        """Initialize mbarriers.

        Parameters
        ----------
        count : int or array
            The expected arrivals per phase, one number for all lanes or one per lane.

        Raises
        ------
        LaunchError
            A number is not in 1 to `MAX_ARRIVALS`.
        """
        lanes, values, site = self._batch.geometry.lanes, operation.values, AccessSite(operation.position, "write")
        counts = np.broadcast_to(count, lanes)
        words = np.zeros(lanes, _WORD)
        for lane in operation.mask.lanes.tolist():
            if not 0 < int(counts[lane]) <= MAX_ARRIVALS:
                misuse = f"initializes a barrier for {int(counts[lane])} arrivals"
                raise self._misuse_error(lane, misuse, operation.position)
            words[lane] = PhaseWord(int(counts[lane]), int(counts[lane]), 0, 0).encoded
        values.write(operation.barrier, self._batch, None, _WORD, values.lift(words), operation.mask, site)
        for number in set(self._find_numbers(operation).values()):
            self._copies.pop(number, None)
        self._recheck()

    def change(self, operation: PhaseOperation, op: str, amount: Any) -> Array:
        """Change the pending arrivals or bytes of the current phase.

        Parameters
        ----------
        op : str
            "arrive"; "drop", which also lowers the expected arrivals; "expect" for more pending bytes, else fewer.
        amount : int or array
            The number of arrivals or bytes, one for all lanes or one per lane.

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
        words, parities = self._read_words(operation), np.zeros(self._batch.geometry.lanes, _WORD)
        for number, lanes in _group_lanes(self._find_numbers(operation)):
            phase = self._decode(words, lanes[0], operation.position)
            for lane in lanes:
                count = int(amounts[lane])
                parities[lane] = phase.parity
                if op in ("arrive", "drop"):
                    self._notify(number, phase.parity, lane, passes=False, is_relaxed=operation.is_relaxed)
                    expected = phase.expected_arrivals - count if op == "drop" else phase.expected_arrivals
                    phase = replace(phase, pending_arrivals=phase.pending_arrivals - count, expected_arrivals=expected)
                else:
                    phase = replace(phase, pending_bytes=phase.pending_bytes + (count if op == "expect" else -count))
                if phase.pending_arrivals < 0:
                    raise self._misuse_error(lane, TOO_MANY_ARRIVALS, operation.position)
                phase = phase.next_phase
                words[lane] = phase.encoded
        self._write_words(operation, words)
        self._recheck()
        return parities

    def is_complete(self, operation: PhaseOperation, parity: Any) -> Array:
        """Test whether a phase is complete; if only copies are pending, they are performed first.

        Parameters
        ----------
        parity : int or array
            The parity of the phase, one for all lanes or one per lane; only its lowest bit counts.

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
        batch, position = self._batch, operation.position
        parities = np.broadcast_to(parity, batch.geometry.lanes)
        words, over = self._read_words(operation), np.zeros(batch.geometry.lanes, bool)
        for number, lanes in _group_lanes(self._find_numbers(operation)):
            phase = self._perform_last_copies(number, self._decode(words, lanes[0], position))
            words[lanes] = phase.encoded
            for lane in lanes:
                over[lane] = phase.parity != int(parities[lane]) & 1
                if over[lane]:
                    self._notify(number, int(parities[lane]) & 1, lane, passes=True, is_relaxed=operation.is_relaxed)
        self._write_words(operation, words)
        if not over[operation.mask.lanes].all():
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
        operation: PhaseOperation,
        perform: Callable[[LaneMask], None],
        *,
        size: Any = 0,
        arrivals: int = 0,
        extra_arrivals: int = 0,
    ) -> None:
        """Make the current phase wait for each lane's copy.

        Parameters
        ----------
        perform : callable
            Performs the copy for the lanes that it is called with.
        size : int or array
            The bytes that the copy completes, one for all lanes or one per lane.
        arrivals : int
            The arrivals that each lane's copy completes.
        extra_arrivals : int
            The number by which each lane raises the phase's pending arrivals.
        """
        barrier, mask, position = operation.barrier, operation.mask, operation.position
        words = self._read_words(operation)
        amounts = np.broadcast_to(size, self._batch.geometry.lanes)
        if self._batch.observer is not None and amounts.any():
            site = AccessSite(position, "read")
            for address, part in barrier.split_by_memory(mask):
                memory, element = address.find_element(self._batch, _WORD.itemsize, part, site)
                access = Access(site, memory, element, _WORD.itemsize, part, None)
                self._batch.observer.mbarrier_bound(self._batch, access)
        for number, lanes in _group_lanes(self._find_numbers(operation)):
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

    def _read_words(self, operation: PhaseOperation) -> Array:
        site = AccessSite(operation.position, "atomic")
        with without_observer(self._batch):
            words = operation.barrier.load(self._batch, None, _WORD, operation.mask, site)
        return np.array(np.broadcast_to(words, self._batch.geometry.lanes))

    def _write_words(self, operation: PhaseOperation, words: Array) -> None:
        """Write the new words of mbarriers by an atomic operation, in lane order."""
        values, site = operation.values, AccessSite(operation.position, "atomic")
        exchange = AtomicOperation("exch", [values.lift(words)], used=False)
        values.atomic(operation.barrier, self._batch, None, _WORD, exchange, operation.mask, site)

    def _find_numbers(self, operation: PhaseOperation) -> dict[int, int]:
        """Return the number of each lane's mbarrier; each block's copy of a shared variable has its own number."""
        batch, numbers, site = self._batch, {}, AccessSite(operation.position, "atomic")
        for address, part in operation.barrier.split_by_memory(operation.mask):
            memory, element = address.find_element(batch, _WORD.itemsize, part, site)
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
