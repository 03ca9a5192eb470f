"""The rows of a dataflow picture without their values: which steps of the program make one, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.stepping.columns import Columns
from gpu.stepping.history import History
from gpu.stepping.places import Place
from gpu.stepping.value_graph import ValueGraph


@dataclass(frozen=True)
class RowOutline:
    """Where a row stands, without its values.

    Parameters
    ----------
    place : int
    launch : int
    step : int
        The last step of the program that belongs to it: it shows what its place held after that.
    writes : array
        The rows of the history's writes that made something, ascending; empty for an input.
    """

    place: int
    launch: int
    step: int
    writes: Array

    @property
    def is_input(self) -> bool:
        """Whether it shows an array as a launch found it."""
        return not self.writes.size


class Outlines:
    """The outlines of all rows, in order: before those of a launch the arrays that it was given.

    Parameters
    ----------
    history : History
    columns : Columns
    graph : ValueGraph
    """

    def __init__(self, history: History, columns: Columns, graph: ValueGraph) -> None:
        self._history = history
        firsts = np.array(history.first_steps or [0])
        made = _steps(history, graph)
        launches = [int(np.searchsorted(firsts, each.step, side="right")) - 1 for each in made]
        rows = [
            RowOutline(place, launch, int(firsts[launch]), np.zeros(0, np.int64))
            for launch, place in sorted(_inputs(history, columns, graph), key=lambda each: _precedence(history, *each))
        ]
        rows += [RowOutline(each.place, at, each.step, each.writes) for each, at in zip(made, launches, strict=True)]
        self.all = tuple(sorted(rows, key=lambda row: (row.launch, row.step)))
        self.given = frozenset(row.place for row in self.all if row.is_input)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, number: int) -> RowOutline:
        return self.all[number]

    def place(self, number: int) -> Place:
        """Return what a row shows."""
        return self._history.places[self.all[number].place]

    def events(self, number: int) -> Array:
        """Return the numbers of the events that made something in a row; that before the launch for an input."""
        row = self.all[number]
        if row.is_input:
            return np.array([self._history.recording.launches[row.launch].first - 1])
        found: Array = np.unique(self._history.writes.moment[row.writes])
        return found

    def position(self, number: int) -> SourcePosition | None:
        """Return the statement of a row; None for an input."""
        if self.all[number].is_input:
            return None
        return self._history.recording.position(int(self._history.writes.moment[self.all[number].writes].min()))

    @cached_property
    def row_of_write(self) -> Array:
        """For each of the history's writes the row that it made something in; -1 for none."""
        found = np.full(len(self._history.writes), -1)
        for number, row in enumerate(self.all):
            found[row.writes] = number
        return found


def _inputs(history: History, columns: Columns, graph: ValueGraph) -> set[tuple[int, int]]:
    """Return launches, each with a place of which it uses what it found there."""
    used = np.unique(columns.input_of(graph.sources[1]))
    found = {(history.inputs[number].launch, history.inputs[number].place) for number in used if number >= 0}
    return found | {(launch, place) for place, launch in history.read.items() if _is_data(history, place)}


def _precedence(history: History, launch: int, place: int) -> tuple[int, bool, bool, int]:
    """Let arrays that are read come before those that are only changed, and those before constants."""
    return launch, history.places[place].space == "constant", place not in history.read, place


def _is_data(history: History, place: int) -> bool:
    """Whether an array that nothing was made from is shown all the same: it chose what happened, as a key does."""
    return history.places[place].space == "global"


def _steps(history: History, graph: ValueGraph) -> list[RowOutline]:
    """Return a row for each step that made something in a place.

    Statements that follow each other in one round, and neither depend on each other nor on a barrier, make one row, as
    the two halves of a compare-exchange do.
    """
    writes, made = history.writes, graph.definitions
    step, place = writes.step[made.write], writes.place[made.write]
    order = np.lexsort((made.write, place, step))
    step, place, write, group = step[order], place[order], made.write[order], made.group[order]
    borders = np.flatnonzero((step[1:] != step[:-1]) | (place[1:] != place[:-1])) + 1
    starts = np.concatenate(([0], borders)) if step.size else np.zeros(0, np.int64)
    ends = np.append(borders, step.size)
    barriers = np.cumsum(history.barriers)
    users, sources = graph.sources
    of_source = graph.group_of_node(sources)
    rows: list[RowOutline] = []
    groups: set[int] = set()
    cells: set[int] = set()
    for start, end in zip(starts, ends, strict=False):
        at, where, these = int(step[start]), int(place[start]), write[start:end]
        own = set(group[start:end].tolist())
        fresh = set(writes.cell[these].tolist())
        before = rows[-1] if rows else None
        if (
            before is not None
            and before.place == where
            and history.scopes[before.step] == history.scopes[at]
            and barriers[before.step] == barriers[at]
            and not writes.is_atomic[these].any()
            and not writes.is_atomic[before.writes].any()
            and cells.isdisjoint(fresh)
            and groups.isdisjoint(_used(users, of_source, own))
            and cells.isdisjoint(_written(history, where, before.step + 1, at))
        ):
            rows[-1] = RowOutline(where, -1, at, np.concatenate((before.writes, these)))
            groups |= own
            cells |= fresh
        else:
            rows.append(RowOutline(where, -1, at, these))
            groups, cells = own, fresh
    return rows


def _used(users: Array, of_source: Array, groups: set[int]) -> set[int]:
    """Return the groups that some groups were made from; groups are numbered as their steps come."""
    low, high = np.searchsorted(users, min(groups)), np.searchsorted(users, max(groups), side="right")
    wanted = np.isin(users[low:high], list(groups))
    return set(of_source[low:high][wanted].tolist())


def _written(history: History, place: int, first: int, last: int) -> set[int]:
    """Return the cells of a place that were written in some steps."""
    writes = history.writes
    rows = slice(np.searchsorted(writes.step, first), np.searchsorted(writes.step, last, side="right"))
    return set(writes.cell[rows][writes.place[rows] == place].tolist())
