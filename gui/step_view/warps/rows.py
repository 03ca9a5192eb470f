"""Rows of a timeline: the warps' states at a cycle, and in columns of several cycles."""

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
class WarpSpan:
    """A warp's state: warp number on the multiprocessor, block, state, first and last cycle, line and instruction."""

    warp: int
    block: int
    state: WarpState
    begin: float
    end: float
    line: int
    text: str


class WarpRows:
    """The warps of a multiprocessor, one row each, grouped by warp scheduler.

    Parameters
    ----------
    resident : int
        Number of resident blocks.
    """

    def __init__(self, launch: LaunchTimelines, resident: int) -> None:
        self.launch, self.resident = launch, resident
        self.timeline = launch.timelines[resident - 1]
        self.spans = launch.find_spans(resident)
        self.count = resident * launch.warps_per_block
        order = np.arange(self.count)
        self.warps = np.lexsort((order, launch.find_schedulers(order)))
        self.row_of = np.argsort(self.warps)
        self.schedulers = launch.find_schedulers(self.warps)
        self._span = float(self.timeline.recorded_until) + 2.0
        self._begins, self._ends = (self.spans[name].astype(np.float64) for name in ("begin", "end"))
        self._states = np.ascontiguousarray(self.spans["state"])
        self._keys = self.spans["warp"] * self._span + self._begins
        self._first = np.searchsorted(self.spans["warp"], order)
        lengths = self._ends - self._begins
        gaps = np.append(self._begins[1:] - self._ends[:-1], 0.0)  # negative between spans of different warps
        self._min_duration = min((float(each[each > 0].min(initial=np.inf)) for each in (lengths, gaps)), default=0.0)
        self._used_states = [state for state in WarpState if (self._states == state).any()]
        self._sums = np.zeros((len(WarpState), self.spans.size + 1))
        for state in self._used_states:
            np.cumsum(np.where(self._states == state, lengths, 0), out=self._sums[state, 1:])

    @property
    def end(self) -> int:
        """Return the last cycle."""
        return int(np.ceil(self.timeline.recorded_until))

    def _find_spans(self, cycles: Array) -> Array:
        """Return, by row and cycle, the last span that has begun; the one before its warp's first if none has."""
        keys = self.warps[:, None] * self._span + np.clip(cycles, 0, self._span - 1)[None, :]
        places: Array = np.searchsorted(self._keys, keys, side="right") - 1
        return places

    def _count_state_cycles(self, first: float, cycles: float, count: int, states: Iterable[int]) -> Iterator[Array]:
        """Yield, for each state, the number of a column's cycles that a warp spends in it, by row and column."""
        edges = first + cycles * np.arange(count + 1)
        if not self.spans.size:
            yield from (np.zeros((self.count, count)) for _ in states)
            return
        places, firsts = self._find_spans(edges), self._first[self.warps][:, None]
        at = np.maximum(places, firsts)
        begun = np.minimum(edges[None, :], self._ends.take(at)) - self._begins.take(at)
        begun[places < firsts] = 0.0
        under_way = self._states.take(at)
        for state in states:
            passed = self._sums[state].take(at)
            passed += np.where(under_way == state, begun, 0.0)
            yield np.diff(passed, axis=1)

    def columns(self, first: float, cycles: float, count: int) -> Array:
        """Return, by row and column, the WarpState of most cycles; `len(WarpState)` where the warp is absent.

        Parameters
        ----------
        first : float
            Cycle at which the first column begins.
        cycles : float
            Cycles per column.
        """
        if self.spans.size and 2 * cycles <= self._min_duration:  # at most one state change per column
            return self._states_at(first + cycles * (np.arange(count) + 0.5))
        states = np.full((self.count, count), len(WarpState), np.uint8)
        longest, absent = np.zeros(states.shape), np.full(states.shape, float(cycles))
        for state, spent in zip(
            self._used_states, self._count_state_cycles(first, cycles, count, self._used_states), strict=True
        ):
            absent -= spent
            more = spent > longest
            states[more] = state
            np.maximum(longest, spent, out=longest)
        states[absent > longest] = len(WarpState)
        return states

    def _states_at(self, cycles: Array) -> Array:
        places, firsts = self._find_spans(cycles), self._first[self.warps][:, None]
        at = np.maximum(places, firsts)
        is_present = (places >= firsts) & (self._ends.take(at) > cycles[None, :])
        return np.where(is_present, self._states.take(at), len(WarpState)).astype(np.uint8)

    def ends_within(self, first: float, last: float) -> tuple[Array, Array]:
        """Return the rows and ends of the spans that end between two cycles."""
        ended = (self._ends >= first) & (self._ends <= last)
        return self.row_of[self.spans["warp"][ended]], self._ends[ended]

    def compute_issue_shares(self, cycles: float, count: int) -> Array:
        """Return, by scheduler and column of that many cycles, the share of cycles in which the scheduler issues."""
        (spent,) = self._count_state_cycles(0, cycles, count, (WarpState.ISSUING,))
        shares = np.zeros((self.launch.schedulers, count))
        np.add.at(shares, self.schedulers, spent / cycles)
        return shares

    def _current_spans(self, cycle: float) -> Array:
        """Return each warp's span in the cycle that begins at `cycle`; -1 if the warp is absent."""
        if not self.spans.size:
            return np.full(self.count, -1)
        places = self._find_spans(np.array([cycle + 0.5]))[self.row_of, 0]
        is_present = (places >= self._first) & (self.spans["end"][np.maximum(places, 0)] > cycle + 0.5)
        return np.where(is_present, places, -1)

    def _make_span(self, index: int) -> WarpSpan:
        begin, end, number, block, warp, state = self.spans[index].item()
        operation = self.launch.operations[number]
        return WarpSpan(warp, block, WarpState(state), begin, end, operation.line, operation.text)

    def span_at(self, warp: int, cycle: float) -> WarpSpan | None:
        """Return a warp's state in the cycle that begins at `cycle`; None if the warp is absent."""
        span_index = int(self._current_spans(cycle)[warp])
        return self._make_span(span_index) if span_index >= 0 else None

    def spans_at(self, cycle: float) -> list[WarpSpan]:
        """Return the states of all present warps in a cycle."""
        return [self._make_span(span) for span in self._current_spans(cycle).tolist() if span >= 0]

    def spans_between(self, warp: int, first: float, last: float) -> Array:
        """Return the spans of a warp that overlap a range of cycles."""
        begin = self._first[warp]
        end = self._first[warp + 1] if warp + 1 < self.count else self.spans.size
        spans = self.spans[begin:end]
        return spans[np.searchsorted(spans["end"], first, side="right") : np.searchsorted(spans["begin"], last)]

    @cached_property
    def borders(self) -> list[int]:
        """Return the cycles at which a block begins or a barrier is passed."""
        if not self.spans.size:
            return []
        warps, blocks = self.spans["warp"], self.spans["block"]
        new = np.ones(self.spans.size, np.bool_)
        new[1:] = (warps[1:] != warps[:-1]) | (blocks[1:] != blocks[:-1])
        opened = self.spans["end"][self.spans["state"] == WarpState.BARRIER]
        cycles = np.unique(np.concatenate((self.spans["begin"][new], opened)).astype(np.int64))
        # A block's warps start in consecutive cycles: keep only the first of them.
        is_first = np.ones(cycles.size, np.bool_)
        is_first[1:] = np.diff(cycles) > 1
        return [int(each) for each in cycles[is_first]]
