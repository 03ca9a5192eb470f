"""Barriers as objects in shared memory: `mbarrier` in PTX, `cuda::barrier` in C++.

Copies that a phase waits for are performed as late as allowed: when a thread tests the phase and nothing else is
pending.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.batch import Array
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, SharedMemory
from gpu.simulator.executor.observe import Access
from gpu.simulator.executor.phase_words import MISUSE_ADVICE, MOST_ARRIVALS, TOO_MANY_ARRIVALS, UNINITIALIZED, PhaseWord
from gpu.simulator.executor.pointers import PointerValue, unobserved
from gpu.simulator.executor.running import RunningBatch
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
        self._number: dict[tuple[int, int], int] = {}
        self._copies: dict[int, list[_PendingCopy]] = {}

    def init(self, values: PlainValues, at: PointerValue, count: Any, mask: LaneMask, position: SourcePosition) -> None:
        """Initialize mbarriers with `count` expected arrivals per phase, one for all lanes or one per lane."""
        lanes = self._batch.geometry.lanes
        counts = np.broadcast_to(count, lanes)
        words = np.zeros(lanes, _WORD)
        for lane in mask.lanes.tolist():
            if not 0 < int(counts[lane]) <= MOST_ARRIVALS:
                raise self._misuse_error(lane, f"initializes a barrier for {int(counts[lane])} arrivals", position)
            words[lane] = PhaseWord(int(counts[lane]), int(counts[lane]), 0, 0).word
        values.write(at, self._batch, None, _WORD, values.lift(words), mask, AccessSite(position, "write"))
        for number in set(self._numbers(at, mask, position).values()):
            self._copies.pop(number, None)

    def change(
        self, op: str, values: PlainValues, at: PointerValue, amount: Any, mask: LaneMask, position: SourcePosition
    ) -> Array:
        """Change the pending arrivals or bytes of the current phase.

        Parameters
        ----------
        op : str
            "arrive"; "drop", which also lowers the expected arrivals; "expect" for more pending bytes, else fewer.
        values : PlainValues
            The algebra of values.
        at : PointerValue
            The mbarrier of each lane.
        amount : int or array
            The number of arrivals or bytes, one for all lanes or one per lane.
        mask : LaneMask
            The lanes that execute the operation.
        position : SourcePosition
            The position of the operation.

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
        words, parities = self._words(at, mask, position), np.zeros(self._batch.geometry.lanes, _WORD)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            phase = self._decode(words, lanes[0], position)
            for lane in lanes:
                count = int(amounts[lane])
                parities[lane] = phase.parity
                if op in ("arrive", "drop"):
                    self._notify(number, phase.parity, lane, passes=False)
                    expected = phase.expected - count if op == "drop" else phase.expected
                    phase = replace(phase, missing=phase.missing - count, expected=expected)
                else:
                    phase = replace(phase, bytes=phase.bytes + (count if op == "expect" else -count))
                if phase.missing < 0:
                    raise self._misuse_error(lane, TOO_MANY_ARRIVALS, position)
                phase = phase.next
                words[lane] = phase.word
        self._exchange(values, at, words, mask, position)
        return parities

    def is_over(
        self, values: PlainValues, at: PointerValue, parity: Any, mask: LaneMask, position: SourcePosition
    ) -> Array:
        """Return a bool mask of the lanes for which the phase of a parity is complete.

        If only copies are pending, they are performed first. The parameters are those of `change`.
        """
        batch = self._batch
        parities = np.broadcast_to(parity, batch.geometry.lanes)
        words, over = self._words(at, mask, position), np.zeros(batch.geometry.lanes, bool)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            phase = self._decode(words, lanes[0], position)
            copies = self._copies.get(number, [])
            if copies and phase.missing == sum(copy.arrivals for copy in copies):
                del self._copies[number]
                for copy in copies:
                    copy.perform()
                    self._notify(number, phase.parity, copy.lane, passes=False)
                    phase = replace(phase, missing=phase.missing - copy.arrivals, bytes=phase.bytes - copy.bytes)
                phase = phase.next
            words[lanes] = phase.word
            for lane in lanes:
                over[lane] = phase.parity != int(parities[lane]) & 1
                if over[lane]:
                    self._notify(number, int(parities[lane]) & 1, lane, passes=True)
        self._exchange(values, at, words, mask, position)
        if batch.scheduler is not None and not over[mask.lanes].all():
            batch.scheduler.pause(position)
        return over

    def bind(
        self,
        at: PointerValue,
        mask: LaneMask,
        position: SourcePosition,
        arrive: Callable[[LaneMask], None],
        *,
        size: Any = 0,
        arrivals: int = 0,
        more: int = 0,
    ) -> None:
        """Make the current phase wait for each lane's copy.

        Parameters
        ----------
        at : PointerValue
            The mbarrier of each lane.
        mask : LaneMask
            The lanes that copy.
        position : SourcePosition
            The position of the statement.
        arrive : callable
            Performs the copy for the lanes that it is called with.
        size : int or array
            The bytes that the copy completes, one for all lanes or one per lane.
        arrivals : int
            The arrivals that each lane's copy completes.
        more : int
            The number by which each lane raises the phase's pending arrivals.
        """
        words = self._words(at, mask, position)
        amounts = np.broadcast_to(size, self._batch.geometry.lanes)
        if self._batch.observer is not None and amounts.any():
            site = AccessSite(position, "read")
            for address, part in at.parts(mask):
                memory, element = address.element(self._batch, _WORD.itemsize, part, site)
                access = Access(site, memory, element, _WORD.itemsize, part, None)
                self._batch.observer.bound(self._batch, access)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            phase = self._decode(words, lanes[0], position)
            for lane in lanes:
                bits = np.zeros(mask.bits.size, bool)
                bits[lane] = True
                own = LaneMask(bits, 1)
                copy = _PendingCopy(lane, lambda own=own: arrive(own), int(amounts[lane]), arrivals)  # type: ignore[misc]
                self._copies.setdefault(number, []).append(copy)
                phase = replace(phase, missing=phase.missing + more)
            words[lanes] = phase.word
        if more:
            with unobserved(self._batch):
                at.store(self._batch, None, _WORD, words, mask, AccessSite(position, "write"))

    def _words(self, at: PointerValue, mask: LaneMask, position: SourcePosition) -> Array:
        with unobserved(self._batch):
            words = at.load(self._batch, None, _WORD, mask, AccessSite(position, "atomic"))
        return np.array(np.broadcast_to(words, self._batch.geometry.lanes))

    def _exchange(
        self, values: PlainValues, at: PointerValue, words: Array, mask: LaneMask, position: SourcePosition
    ) -> None:
        """Write the new words of mbarriers by an atomic operation, in lane order."""
        site = AccessSite(position, "atomic")
        values.atomic(at, self._batch, None, _WORD, "exch", [values.lift(words)], mask, site, False)

    def _numbers(self, at: PointerValue, mask: LaneMask, position: SourcePosition) -> dict[int, int]:
        """Return the number of each lane's mbarrier; each block's copy of a shared variable has its own number."""
        batch, numbers = self._batch, {}
        for address, part in at.parts(mask):
            memory, element = address.element(batch, _WORD.itemsize, part, AccessSite(position, "atomic"))
            stride = memory.data.size // batch.geometry.blocks if isinstance(memory, SharedMemory) else 0
            flat = element * _WORD.itemsize + stride * batch.geometry.block_of_lane
            for lane in part.lanes.tolist():
                key = (id(memory), int(flat[lane]))
                numbers[lane] = self._number.setdefault(key, len(self._number))
        return numbers

    def _decode(self, words: Array, lane: int, position: SourcePosition) -> PhaseWord:
        phase = PhaseWord.of(int(words[lane]))
        if phase is None:
            raise self._misuse_error(lane, UNINITIALIZED, position)
        return phase

    def _notify(self, number: int, parity: int, lane: int, *, passes: bool) -> None:
        if self._batch.observer is not None:
            self._batch.observer.phase(self._batch, 2 * number + parity, lane, passes=passes)

    def _misuse_error(self, lane: int, misuse: str, position: SourcePosition) -> LaunchError:
        thread = self._batch.describe(lane)
        return LaunchError(
            f"{position}: {thread} {misuse}.",
            position=position,
            advice=MISUSE_ADVICE,
            kind="other",
            thread=thread,
        )


def phases_of(batch: RunningBatch) -> BarrierPhases:
    """Return the mbarriers of a batch; create the object at the first call."""
    if batch.phases is None:
        batch.phases = BarrierPhases(batch)
    phases: BarrierPhases = batch.phases
    return phases


def _groups(numbers: dict[int, int]) -> list[tuple[int, list[int]]]:
    """Return each mbarrier's number with its lanes."""
    groups: dict[int, list[int]] = {}
    for lane, number in numbers.items():
        groups.setdefault(number, []).append(lane)
    return list(groups.items())
