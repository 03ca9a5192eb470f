"""What the rows of a timeline hold: at a cycle, and in columns of several cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing.timeline import LaunchTimelines, WarpState

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class WarpNow:
    """What a warp does: its place on the multiprocessor, its block, its state, from when to when, at what."""

    warp: int
    block: int
    state: WarpState
    begin: float
    end: float
    line: int
    text: str


class WarpRows:
    """The warps of a multiprocessor with so many blocks at once, a row each, those of a scheduler together.

    Parameters
    ----------
    found : LaunchTimelines
    resident : int
    """

    def __init__(self, found: LaunchTimelines, resident: int) -> None:
        self.found, self.resident = found, resident
        self.timeline = found.timelines[resident - 1]
        self.spans = found.spans_of(resident)
        self.count = resident * found.warps_per_block
        order = np.arange(self.count)
        self.warps = np.lexsort((order, found.scheduler_of(order)))
        self.row_of = np.argsort(self.warps)
        self.schedulers = found.scheduler_of(self.warps)
        self._span = float(self.timeline.until) + 2.0
        self._begins, self._ends = (self.spans[name].astype(np.float64) for name in ("begin", "end"))
        self._states = np.ascontiguousarray(self.spans["state"])
        self._keys = self.spans["warp"] * self._span + self._begins
        self._first = np.searchsorted(self.spans["warp"], order)
        lengths = self._ends - self._begins
        apart = np.append(self._begins[1:] - self._ends[:-1], 0.0)  # of spans of two warps it may be less than nothing
        self._shortest = min((float(each[each > 0].min(initial=np.inf)) for each in (lengths, apart)), default=0.0)
        self._there = [state for state in WarpState if (self._states == state).any()]
        self._sums = np.zeros((len(WarpState), self.spans.size + 1))
        for state in self._there:
            np.cumsum(np.where(self._states == state, lengths, 0), out=self._sums[state, 1:])

    @property
    def end(self) -> int:
        """The last cycle that can be looked at."""
        return int(np.ceil(self.timeline.until))

    def _places(self, cycles: Array) -> Array:
        """Return by row and cycle the span that begins last up to then; one before its warp's first where none has."""
        keys = self.warps[:, None] * self._span + np.clip(cycles, 0, self._span - 1)[None, :]
        found: Array = np.searchsorted(self._keys, keys, side="right") - 1
        return found

    def _spent(self, first: float, cycles: float, count: int, states: Iterable[int]) -> Iterator[Array]:
        """Yield for each state how many of a column's cycles a warp is in it, by row and column."""
        edges = first + cycles * np.arange(count + 1)
        if not self.spans.size:
            yield from (np.zeros((self.count, count)) for _ in states)
            return
        places, firsts = self._places(edges), self._first[self.warps][:, None]
        at = np.maximum(places, firsts)
        begun = np.minimum(edges[None, :], self._ends.take(at)) - self._begins.take(at)
        begun[places < firsts] = 0.0
        under_way = self._states.take(at)
        for state in states:
            passed = self._sums[state].take(at)
            passed += np.where(under_way == state, begun, 0.0)
            yield np.diff(passed, axis=1)

    def columns(self, first: float, cycles: float, count: int) -> Array:
        """Return by row and column the WarpState that a warp is in for longest; one beyond where it is not there.

        Parameters
        ----------
        first : float
            The cycle at which the first column begins.
        cycles : float
            Of a column.
        count : int
        """
        if self.spans.size and 2 * cycles <= self._shortest:  # there is one border in a column, at most
            return self._in_the_middle(first + cycles * (np.arange(count) + 0.5))
        found = np.full((self.count, count), len(WarpState), np.uint8)
        longest, absent = np.zeros(found.shape), np.full(found.shape, float(cycles))
        for state, spent in zip(self._there, self._spent(first, cycles, count, self._there), strict=True):
            absent -= spent
            more = spent > longest
            found[more] = state
            np.maximum(longest, spent, out=longest)
        found[absent > longest] = len(WarpState)
        return found

    def _in_the_middle(self, cycles: Array) -> Array:
        places, firsts = self._places(cycles), self._first[self.warps][:, None]
        at = np.maximum(places, firsts)
        there = (places >= firsts) & (self._ends.take(at) > cycles[None, :])
        return np.where(there, self._states.take(at), len(WarpState)).astype(np.uint8)

    def ends_within(self, first: float, last: float) -> tuple[Array, Array]:
        """Return of the spans that end between two cycles the row and the end."""
        ended = (self._ends >= first) & (self._ends <= last)
        return self.row_of[self.spans["warp"][ended]], self._ends[ended]

    def issuing(self, first: float, cycles: float, count: int) -> Array:
        """Return by scheduler and column the share of its cycles in which a scheduler issues."""
        (spent,) = self._spent(first, cycles, count, (WarpState.ISSUING,))
        shares = np.zeros((self.found.schedulers, count))
        np.add.at(shares, self.schedulers, spent / cycles)
        return shares

    def _at(self, cycle: float) -> Array:
        """Return by warp its span in the cycle that begins then; -1 where it is not there."""
        if not self.spans.size:
            return np.full(self.count, -1)
        places = self._places(np.array([cycle + 0.5]))[self.row_of, 0]
        there = (places >= self._first) & (self.spans["end"][np.maximum(places, 0)] > cycle + 0.5)
        return np.where(there, places, -1)

    def _described(self, place: int) -> WarpNow:
        begin, end, number, block, warp, state = self.spans[place].item()
        operation = self.found.operations[number]
        return WarpNow(warp, block, WarpState(state), begin, end, operation.line, operation.text)

    def now(self, warp: int, cycle: float) -> WarpNow | None:
        """Return what a warp does in the cycle that begins then; None where it is not there."""
        place = int(self._at(cycle)[warp])
        return self._described(place) if place >= 0 else None

    def everyone(self, cycle: float) -> list[WarpNow]:
        """Return what all warps that are there do in a cycle."""
        return [self._described(place) for place in self._at(cycle).tolist() if place >= 0]

    def within(self, warp: int, first: float, last: float) -> Array:
        """Return the spans of a warp that reach into some cycles."""
        begin = self._first[warp]
        end = self._first[warp + 1] if warp + 1 < self.count else self.spans.size
        own = self.spans[begin:end]
        return own[np.searchsorted(own["end"], first, side="right") : np.searchsorted(own["begin"], last)]

    @cached_property
    def borders(self) -> list[int]:
        """The cycles at which a block begins or a barrier opens."""
        if not self.spans.size:
            return []
        warps, blocks = self.spans["warp"], self.spans["block"]
        new = np.ones(self.spans.size, np.bool_)
        new[1:] = (warps[1:] != warps[:-1]) | (blocks[1:] != blocks[:-1])
        opened = self.spans["end"][self.spans["state"] == WarpState.BARRIER]
        cycles = np.unique(np.concatenate((self.spans["begin"][new], opened)).astype(np.int64))
        # Warps of a block come one after the other: a border is where some cycles have none before.
        apart = np.ones(cycles.size, np.bool_)
        apart[1:] = np.diff(cycles) > 1
        return [int(each) for each in cycles[apart]]
