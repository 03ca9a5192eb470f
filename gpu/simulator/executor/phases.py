"""Barriers that are objects in shared memory, `mbarrier` in PTX and `cuda::barrier` in C++, and what arrives at them.

Copies that a phase waits for arrive as late as they may: when a thread asks whether the phase is over, and nothing but
they is missing.
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
class _Bound:
    """A copy that a phase waits for: what makes it arrive, and what that means for the barrier."""

    lane: int
    arrive: Callable[[], None]
    bytes: int = 0
    arrivals: int = 0


class BarrierPhases:
    """The barriers of a batch's blocks."""

    def __init__(self, batch: RunningBatch) -> None:
        self._batch = batch
        self._number: dict[tuple[int, int], int] = {}
        self._bound: dict[int, list[_Bound]] = {}

    def init(self, values: PlainValues, at: PointerValue, count: Any, mask: LaneMask, position: SourcePosition) -> None:
        """Let phases of a barrier have so many arrivals."""
        lanes = self._batch.geometry.lanes
        counts = np.broadcast_to(count, lanes)
        words = np.zeros(lanes, _WORD)
        for lane in mask.lanes.tolist():
            if not 0 < int(counts[lane]) <= MOST_ARRIVALS:
                raise self._misused(lane, f"initializes a barrier for {int(counts[lane])} arrivals", position)
            words[lane] = PhaseWord(int(counts[lane]), int(counts[lane]), 0, 0).word
        values.write(at, self._batch, None, _WORD, values.lift(words), mask, AccessSite(position, "write"))
        for number in set(self._numbers(at, mask, position).values()):
            self._bound.pop(number, None)

    def change(
        self, op: str, values: PlainValues, at: PointerValue, amount: Any, mask: LaneMask, position: SourcePosition
    ) -> Array:
        """Let lanes arrive ("arrive", "drop"), or have a phase wait for more bytes of copies, or fewer.

        Returns
        -------
        array of uint64
            The parity of the phase in which each lane came.
        """
        amounts = np.broadcast_to(amount, self._batch.geometry.lanes)
        words, parities = self._words(at, mask, position), np.zeros(self._batch.geometry.lanes, _WORD)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            held = self._held(words, lanes[0], position)
            for lane in lanes:
                count = int(amounts[lane])
                parities[lane] = held.parity
                if op in ("arrive", "drop"):
                    self._tell(number, held.parity, lane, passes=False)
                    expected = held.expected - count if op == "drop" else held.expected
                    held = replace(held, missing=held.missing - count, expected=expected)
                else:
                    held = replace(held, bytes=held.bytes + (count if op == "expect" else -count))
                if held.missing < 0:
                    raise self._misused(lane, TOO_MANY_ARRIVALS, position)
                held = held.next
                words[lane] = held.word
        self._exchange(values, at, words, mask, position)
        return parities

    def is_over(
        self, values: PlainValues, at: PointerValue, parity: Any, mask: LaneMask, position: SourcePosition
    ) -> Array:
        """Return in which lanes the phase of a parity is over, letting copies arrive that only it still waits for."""
        batch = self._batch
        asked = np.broadcast_to(parity, batch.geometry.lanes)
        words, over = self._words(at, mask, position), np.zeros(batch.geometry.lanes, bool)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            held = self._held(words, lanes[0], position)
            bound = self._bound.get(number, [])
            if bound and held.missing == sum(each.arrivals for each in bound):
                del self._bound[number]
                for each in bound:
                    each.arrive()
                    self._tell(number, held.parity, each.lane, passes=False)
                    held = replace(held, missing=held.missing - each.arrivals, bytes=held.bytes - each.bytes)
                held = held.next
            words[lanes] = held.word
            for lane in lanes:
                over[lane] = held.parity != int(asked[lane]) & 1
                if over[lane]:
                    self._tell(number, int(asked[lane]) & 1, lane, passes=True)
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
        """Let a phase wait for what each lane copies: for bytes of it, or for its arrival, `more` than was expected."""
        words = self._words(at, mask, position)
        amounts = np.broadcast_to(size, self._batch.geometry.lanes)
        if self._batch.observer is not None and amounts.any():
            site = AccessSite(position, "read")
            for address, part in at.parts(mask):
                memory, element = address.element(self._batch, _WORD.itemsize, part, site)
                access = Access(site, memory, element, _WORD.itemsize, part, None)
                self._batch.observer.bound(self._batch, access)
        for number, lanes in _groups(self._numbers(at, mask, position)):
            held = self._held(words, lanes[0], position)
            for lane in lanes:
                bits = np.zeros(mask.bits.size, bool)
                bits[lane] = True
                own = LaneMask(bits, 1)
                bound = _Bound(lane, lambda own=own: arrive(own), int(amounts[lane]), arrivals)  # type: ignore[misc]
                self._bound.setdefault(number, []).append(bound)
                held = replace(held, missing=held.missing + more)
            words[lanes] = held.word
        if more:
            with unobserved(self._batch):
                at.store(self._batch, None, _WORD, words, mask, AccessSite(position, "write"))

    def _words(self, at: PointerValue, mask: LaneMask, position: SourcePosition) -> Array:
        with unobserved(self._batch):
            found = at.load(self._batch, None, _WORD, mask, AccessSite(position, "atomic"))
        return np.array(np.broadcast_to(found, self._batch.geometry.lanes))

    def _exchange(
        self, values: PlainValues, at: PointerValue, words: Array, mask: LaneMask, position: SourcePosition
    ) -> None:
        """Write what barriers have become, as an atomic: lanes go one after the other."""
        site = AccessSite(position, "atomic")
        values.atomic(at, self._batch, None, _WORD, "exch", [values.lift(words)], mask, site, False)

    def _numbers(self, at: PointerValue, mask: LaneMask, position: SourcePosition) -> dict[int, int]:
        """Return the number of the barrier of each lane: a shared one is another in each block."""
        batch, found = self._batch, {}
        for address, part in at.parts(mask):
            memory, element = address.element(batch, _WORD.itemsize, part, AccessSite(position, "atomic"))
            whole = memory.data.size // batch.geometry.blocks if isinstance(memory, SharedMemory) else 0
            flat = element * _WORD.itemsize + whole * batch.geometry.block_of_lane
            for lane in part.lanes.tolist():
                key = (id(memory), int(flat[lane]))
                found[lane] = self._number.setdefault(key, len(self._number))
        return found

    def _held(self, words: Array, lane: int, position: SourcePosition) -> PhaseWord:
        held = PhaseWord.of(int(words[lane]))
        if held is None:
            raise self._misused(lane, UNINITIALIZED, position)
        return held

    def _tell(self, number: int, parity: int, lane: int, *, passes: bool) -> None:
        if self._batch.observer is not None:
            self._batch.observer.phase(self._batch, 2 * number + parity, lane, passes=passes)

    def _misused(self, lane: int, what: str, position: SourcePosition) -> LaunchError:
        who = self._batch.describe(lane)
        return LaunchError(
            f"{position}: {who} {what}.",
            position=position,
            advice=MISUSE_ADVICE,
            kind="other",
            thread=who,
        )


def phases_of(batch: RunningBatch) -> BarrierPhases:
    """Return the barriers of a batch."""
    if batch.phases is None:
        batch.phases = BarrierPhases(batch)
    found: BarrierPhases = batch.phases
    return found


def _groups(numbers: dict[int, int]) -> list[tuple[int, list[int]]]:
    """Return each barrier with its lanes."""
    found: dict[int, list[int]] = {}
    for lane, number in numbers.items():
        found.setdefault(number, []).append(lane)
    return list(found.items())
