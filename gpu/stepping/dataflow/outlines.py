"""The rows of a dataflow picture without their values: which steps of the program make one, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.value_graph import ValueGraph
from gpu.stepping.provenance.provenance import Provenance
from gpu.stepping.provenance.storages import Storage


@dataclass(frozen=True)
class RowOutline:
    """Where a row stands, without its values.

    Parameters
    ----------
    storage : int
    launch : int
    step : int
        The last step of the program that belongs to it: it shows what its storage held after that.
    writes : array
        The numbers of the writes that made something, ascending; empty for an input.
    """

    storage: int
    launch: int
    step: int
    writes: Array

    @property
    def is_input(self) -> bool:
        """Whether it shows an array as a launch found it."""
        return not self.writes.size


SHOWN_WHOLE = 4096
"""Elements of an array up to which all are shown. Of larger ones, of which a block alone is recorded, only some are."""


class Outlines:
    """The outlines of all rows, in order: before those of a launch the arrays that it was given.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    graph : ValueGraph
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph) -> None:
        self._provenance, self._columns = provenance, columns
        firsts = np.array(provenance.first_steps or [0])
        made = _steps(provenance, graph)
        launches = [int(np.searchsorted(firsts, each.step, side="right")) - 1 for each in made]
        inputs = sorted(_inputs(provenance, columns, graph), key=lambda each: _precedence(provenance, *each))
        rows = [RowOutline(storage, at, int(firsts[at]), np.zeros(0, np.int64)) for at, storage in inputs]
        rows += [RowOutline(each.storage, at, each.step, each.writes) for each, at in zip(made, launches, strict=True)]
        self.all = tuple(sorted(rows, key=lambda row: (row.launch, row.step)))
        self.given = frozenset(row.storage for row in self.all if row.is_input)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, number: int) -> RowOutline:
        return self.all[number]

    def storage(self, number: int) -> Storage:
        """Return what a row shows."""
        return self._provenance.storages[self.all[number].storage]

    def events(self, number: int) -> Array:
        """Return the numbers of the events that made something in a row; that before the launch for an input."""
        row = self.all[number]
        if row.is_input:
            return np.array([self._provenance.recording.launches[row.launch].first - 1])
        found: Array = np.unique(self._provenance.writes.moment[row.writes])
        return found

    def turn(self, number: int) -> int:
        """Return how many atomics of the row's statement came to the elements of the row before its own."""
        row = self.all[number]
        return 0 if row.is_input else int(self._provenance.turns[row.step])

    def position(self, number: int) -> SourcePosition | None:
        """Return the statement of a row; None for an input."""
        if self.all[number].is_input:
            return None
        return self._provenance.recording.position(int(self._provenance.writes.moment[self.all[number].writes].min()))

    def shown(self, storage: int, cells: Array) -> Array:
        """Return those of some cells that are shown: of a large array what was written, and what anything came from."""
        if self._provenance.storages[storage].count <= SHOWN_WHOLE:
            return cells
        storages, touched = self._touched
        writes = self._provenance.writes
        mine = np.union1d(touched[storages == storage], writes.cell[self._provenance.writes_to(storage)])
        return np.intersect1d(cells, mine)

    @cached_property
    def _touched(self) -> tuple[Array, Array]:
        """The storages and cells of what was found in arrays and used."""
        nodes = np.unique(np.concatenate((self._provenance.operations.sources.ravel(), self._provenance.writes.node)))
        return self._columns.of_inputs(nodes)

    @cached_property
    def row_of_write(self) -> Array:
        """For each write the row that it made something in; -1 for none."""
        found = np.full(len(self._provenance.writes), -1)
        for number, row in enumerate(self.all):
            found[row.writes] = number
        return found


def _inputs(provenance: Provenance, columns: Columns, graph: ValueGraph) -> set[tuple[int, int]]:
    """Return launches, each with a storage of which it uses what it found there."""
    used = np.unique(columns.input_of(graph.sources[1]))
    found = {(provenance.inputs[number].launch, provenance.inputs[number].storage) for number in used if number >= 0}
    return found | {(launch, storage) for storage, launch in provenance.read.items() if _is_data(provenance, storage)}


def _precedence(provenance: Provenance, launch: int, storage: int) -> tuple[int, bool, bool, int]:
    """Let arrays that are read come before those that are only changed, and those before constants."""
    return launch, provenance.storages[storage].space == "constant", storage not in provenance.read, storage


def _is_data(provenance: Provenance, storage: int) -> bool:
    """Whether an array that nothing was made from is shown all the same: it chose what happened, as a key does."""
    return provenance.storages[storage].space == "global"


def _steps(provenance: Provenance, graph: ValueGraph) -> list[RowOutline]:
    """Return a row for each step that made something in a storage.

    Statements that follow each other in one round, and neither depend on each other nor on a barrier, make one row, as
    the two halves of a compare-exchange do.
    """
    writes, made = provenance.writes, graph.definitions
    step, storage = writes.step[made.write], writes.storage[made.write]
    order = np.lexsort((made.write, storage, step))
    step, storage, write, group = step[order], storage[order], made.write[order], made.group[order]
    borders = np.flatnonzero((step[1:] != step[:-1]) | (storage[1:] != storage[:-1])) + 1
    starts = np.concatenate(([0], borders)) if step.size else np.zeros(0, np.int64)
    ends = np.append(borders, step.size)
    barriers = np.cumsum(provenance.barriers)
    users, sources = graph.sources
    of_source = graph.group_of_node(sources)
    rows: list[RowOutline] = []
    groups: set[int] = set()
    cells: set[int] = set()
    for start, end in zip(starts, ends, strict=False):
        at, where, these = int(step[start]), int(storage[start]), write[start:end]
        own = set(group[start:end].tolist())
        fresh = set(writes.cell[these].tolist())
        before = rows[-1] if rows else None
        if (
            before is not None
            and before.storage == where
            and provenance.scopes[before.step] == provenance.scopes[at]
            and barriers[before.step] == barriers[at]
            and not writes.is_atomic[these].any()
            and not writes.is_atomic[before.writes].any()
            and cells.isdisjoint(fresh)
            and groups.isdisjoint(_used(users, of_source, own))
            and cells.isdisjoint(_written(provenance, where, before.step + 1, at))
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


def _written(provenance: Provenance, storage: int, first: int, last: int) -> set[int]:
    """Return the cells of a storage that were written in some steps."""
    writes = provenance.writes
    rows = slice(np.searchsorted(writes.step, first), np.searchsorted(writes.step, last, side="right"))
    return set(writes.cell[rows][writes.storage[rows] == storage].tolist())
