"""The rows of a dataflow picture: cells with values, and edges that show the source of each value.

A row is the content of an array, or of a variable of all threads, after a program step.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.stepping.dataflow.provenance import Provenance
from gpu.stepping.dataflow.value_graph import Columns, ValueGraph
from gpu.stepping.dataflow.value_locator import ValueLocator
from gpu.stepping.dataflow.writes import Storage

MAX_COMPLETE_CELLS = 4096
"""The largest array that is shown completely. Larger arrays show only the cells that were accessed."""


class CellWriter(NamedTuple):
    """The writer of a cell's value: the thread, the source line, and the event number."""

    block: int
    thread: int
    line: int
    moment: int


class Row:
    """One row: the content of a storage after a program step.

    `column`, `value`, `computed`, `moment`, `block`, `thread`, `warp`, `operation_counts` and `has_operation` have one
    entry per cell. Cells without a value are omitted. All data are computed on first use, or by `preload`.

    Parameters
    ----------
    rows : DataflowRows
        All rows of the picture.
    step : int
        The last program step of the row, which shows its storage's content after that step.
    writes : int array
        The indices of the defining writes, ascending; empty for an input.

    Attributes
    ----------
    label : str
        A short text: the loop variable that changed, or the array's name or the line. `labels.label_rows` sets it.
    """

    def __init__(
        self, rows: DataflowRows, number: int, storage: Storage, launch: int, step: int, writes: Array
    ) -> None:
        self._rows = rows
        self.number, self.storage, self.launch, self.step, self.writes = number, storage, launch, step, writes
        self.label = ""

    @property
    def is_input(self) -> bool:
        """Whether the row shows the content of an array before a launch."""
        return not self.writes.size

    def preload(self) -> None:
        """Compute all properties, so that a later reader, such as a view, does not wait for them."""
        for name, member in vars(Row).items():
            if isinstance(member, cached_property):
                getattr(self, name)

    @cached_property
    def first(self) -> int:
        """The number of the first event that computed a value of this row; for an input, the one before the launch."""
        return int(self.events[0])

    @cached_property
    def last(self) -> int:
        """The number of the last event that computed a value of this row."""
        return int(self.events[-1])

    @cached_property
    def events(self) -> Array:
        """The event numbers that computed values of this row, ascending; for an input, the one before the launch."""
        provenance = self._rows.provenance
        if self.is_input:
            return np.array([provenance.recording.launches[self.launch].first - 1])
        events: Array = np.unique(provenance.writes.moment[self.writes])
        return events

    @cached_property
    def position(self) -> SourcePosition | None:
        """The source position of the statement; None for an input."""
        return None if self.is_input else self._rows.provenance.recording.position(self.first)

    @cached_property
    def line(self) -> int:
        """The statement's line; 0 for an input."""
        return self.position.line if self.position is not None else 0

    @property
    def turn(self) -> int:
        """The number of atomic operations of the statement that preceded the row's on the same elements."""
        return 0 if self.is_input else int(self._rows.provenance.turns[self.step])

    @cached_property
    def cells(self) -> Array:
        """The number of each cell in its storage, ascending."""
        cells: Array = np.flatnonzero(self._last_writes >= self._minimum_write)
        return self._rows.select_visible_cells(self.storage, cells) if self._minimum_write < 0 else cells

    @cached_property
    def _minimum_write(self) -> int:
        """The least value in `_last_writes` of a cell with content; -1 if the array had initial content, else 0."""
        number = self.storage.number
        is_known = number in self._rows.input_storages and number in self._rows.provenance.initial_contents
        return -1 if is_known else 0

    @cached_property
    def _last_writes(self) -> Array:
        """The last write to each cell of the storage; -1 where there is none."""
        rows = self._rows.provenance.find_writes(self.storage.number)
        steps = self._rows.provenance.writes.step[rows]
        previous = rows[: np.searchsorted(steps, self.step, side="right")]
        cells = self._rows.provenance.writes.cell[previous]
        # A variable has a cell for each thread of the grid, but a recording may contain only the first threads.
        newest = np.full(self.storage.count if self._minimum_write < 0 else int(cells.max(initial=-1)) + 1, -1)
        newest[cells] = previous
        return newest

    @cached_property
    def writers(self) -> Array:
        """The index, among all writes, of the write of each cell's value; -1 where there is none."""
        writers: Array = self._last_writes[self.cells]
        return writers

    @cached_property
    def nodes(self) -> Array:
        """The node of each cell's value; 0 if it has no recorded origin."""
        provenance, has_node = self._rows.provenance, self.writers >= 0
        nodes = np.zeros(has_node.size, np.int64)
        nodes[has_node] = provenance.writes.node[self.writers[has_node]]
        for each in reversed(provenance.inputs):
            if each.storage == self.storage.number and each.launch <= self.launch and each.elements.size:
                at = np.minimum(np.searchsorted(each.elements, self.cells), each.elements.size - 1)
                matches = ~has_node & (each.elements[at] == self.cells)
                nodes[matches] = each.first + at[matches]
                has_node |= matches
        return nodes

    def _write_column(self, name: str) -> Array:
        """Return a column of the writes; -1 for cells that were not written."""
        written = self.writers >= 0
        # Without a single write, no index is valid.
        column = np.full(written.size, -1, np.int64)
        column[written] = getattr(self._rows.provenance.writes, name)[self.writers[written]]
        return column

    @cached_property
    def column(self) -> Array:
        """The column in which each cell is drawn, ascending."""
        return self._rows.columns.find_columns(np.full(self.cells.size, self.storage.number), self.cells)

    @cached_property
    def value(self) -> Array:
        """The value of each cell, in the storage's type."""
        dtype = self.storage.dtype
        raw = self._rows.provenance.writes.raw
        values = np.zeros(self.cells.size, dtype)
        written = self.writers >= 0
        values[written] = np.ascontiguousarray(raw[self.writers[written], : dtype.itemsize]).view(dtype).reshape(-1)
        initial = self._rows.provenance.initial_contents.get(self.storage.number)
        if initial is not None:
            values[~written] = initial[self.cells[~written]]
        return values

    @cached_property
    def computed(self) -> Array:
        """Whether this row computed the cell's value, rather than leaving an older one."""
        return np.isin(self.cells, self._rows.provenance.writes.cell[self.writes])

    @cached_property
    def moment(self) -> Array:
        """The number of the event that wrote the cell's value; -1 if it is older than all events."""
        return self._write_column("moment")

    @cached_property
    def sorted_moments(self) -> Array:
        """The moments in ascending order."""
        return np.sort(self.moment)

    @cached_property
    def block(self) -> Array:
        """The block of the thread that wrote the value; -1 for none."""
        return self._write_column("block")

    @cached_property
    def thread(self) -> Array:
        """The thread that wrote the value; -1 for none."""
        return self._write_column("thread")

    @cached_property
    def warp(self) -> Array:
        """The number, over all blocks of the launch, of the warp that wrote the value; negative for none."""
        warps: Array = self.block * self._rows.provenance.recording.warps[self.launch] + self.thread // WARP
        return warps

    @cached_property
    def _operations(self) -> tuple[Array, Array, tuple[str, ...]]:
        return self._rows.collect_operations(self.writes)

    @cached_property
    def operation_counts(self) -> Array:
        """The number of this row's operations per cell; 0 if the value was only moved or left unchanged."""
        operation_counts = np.zeros(self.cells.size, np.int64)
        cells, counts, _ = self._operations
        operation_counts[np.searchsorted(self.cells, cells)] = counts
        return operation_counts

    @cached_property
    def has_operation(self) -> Array:
        """Whether an operation of this row computed the cell's value, rather than moving it from another column."""
        has_operation: Array = self.operation_counts > 0
        return has_operation

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operators of the row, in execution order; empty if values were only moved."""
        return self._operations[2]

    @cached_property
    def sources(self) -> Array:
        """The edges, shape (edges, 3): a cell of this row, and the source's row and cell."""
        cells, rows, source_cells = self._rows.find_row_edges(self.number)
        edges = np.stack((np.searchsorted(self.cells, cells), rows, source_cells), axis=1)
        for row in np.unique(rows):
            chosen = rows == row
            edges[chosen, 2] = np.searchsorted(self._rows.entries[row].cells, source_cells[chosen])
        return edges[np.lexsort(edges.T[::-1])]

    def find_defining_write(self, cell: int) -> int:
        """Return the index, among all writes, of the write by which this row defined a cell."""
        return int(self.writes[self._rows.provenance.writes.cell[self.writes] == self.cells[cell]][-1])

    def find_writer(self, cell: int) -> CellWriter | None:
        """Return the writer of a cell's value; None if the value is older than the program."""
        moment = int(self.moment[cell])
        if self.thread[cell] < 0:
            return None
        return CellWriter(
            int(self.block[cell]),
            int(self.thread[cell]),
            self._rows.provenance.recording.position(moment).line,
            moment,
        )


class DataflowRows:
    """All rows of a dataflow picture, in order; the input arrays of a launch precede its other rows.

    Attributes
    ----------
    entries : tuple of Row
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph) -> None:
        self.provenance, self.columns, self._graph = provenance, columns, graph
        firsts = np.array(provenance.first_steps or [0])
        inputs = sorted(_find_inputs(provenance, columns, graph), key=lambda each: _input_sort_key(provenance, *each))
        found = [(launch, int(firsts[launch]), storage, np.zeros(0, np.int64)) for launch, storage in inputs]
        found += [
            (int(np.searchsorted(firsts, step, side="right")) - 1, step, storage, writes)
            for step, storage, writes in _find_step_rows(provenance, graph)
        ]
        found.sort(key=lambda each: each[:2])
        self.entries = tuple(
            Row(self, number, provenance.storages[storage], launch, step, writes)
            for number, (launch, step, storage, writes) in enumerate(found)
        )
        self.input_storages = frozenset(row.storage.number for row in self.entries if row.is_input)

    def select_visible_cells(self, storage: Storage, cells: Array) -> Array:
        """Return the cells to show; for a large array, those that were written or are the source of a value."""
        if storage.count <= MAX_COMPLETE_CELLS:
            return cells
        storages, used_cells = self._used_inputs
        written = self.provenance.writes.cell[self.provenance.find_writes(storage.number)]
        return np.intersect1d(cells, np.union1d(used_cells[storages == storage.number], written))

    @cached_property
    def _used_inputs(self) -> tuple[Array, Array]:
        """The storages and cells of input values that were used."""
        nodes = np.unique(np.concatenate((self.provenance.operations.sources.ravel(), self.provenance.writes.node)))
        return self.columns.find_input_cells(nodes)

    @cached_property
    def row_of_write(self) -> Array:
        """For each write the row that it defines a value in; -1 for none."""
        rows = np.full(len(self.provenance.writes), -1)
        for row in self.entries:
            rows[row.writes] = row.number
        return rows

    @cached_property
    def value_locator(self) -> ValueLocator:
        """The last row and cell that contained each value."""
        storage = np.array([row.storage.number for row in self.entries], np.int64)
        step = np.array([row.step for row in self.entries], np.int64)
        return ValueLocator(self.provenance, self.columns, self._graph, storage, step, self.row_of_write)

    @cached_property
    def _edge_columns(self) -> tuple[Array, Array, Array, Array]:
        """By row: the row of each edge's end, its cell, and the row and the cell where it begins."""
        groups, nodes = self._graph.sources
        writes, write = self.provenance.writes, self._graph.definitions.last_writes[groups]
        row, cell = self.row_of_write[write], writes.cell[write]
        from_row, from_cell = self.value_locator.find(nodes, row, writes.storage[write], cell)
        edges = np.unique(np.stack((row, cell, from_row, from_cell), axis=1)[from_row >= 0], axis=0)
        return edges[:, 0], edges[:, 1], edges[:, 2], edges[:, 3]

    def find_row_edges(self, row: int) -> tuple[Array, Array, Array]:
        """Return the edges of a row: cell, source row, source cell."""
        rows, *rest = self._edge_columns
        chosen = slice(np.searchsorted(rows, row), np.searchsorted(rows, row, side="right"))
        cell, from_row, from_cell = (each[chosen] for each in rest)
        return cell, from_row, from_cell

    def collect_operations(self, writes: Array) -> tuple[Array, Array, tuple[str, ...]]:
        """Return the cells that operations of a row computed, the number of operations per cell, and the operators.

        `writes` are the row's defining writes.
        """
        definitions = self._graph.definitions
        groups = np.unique(definitions.group[np.searchsorted(definitions.write, writes)])
        group_of_operation, operation = self._graph.members
        first = np.searchsorted(group_of_operation, groups)
        counts = np.searchsorted(group_of_operation, groups, side="right") - first
        selected = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        cells, counts = self.provenance.writes.cell[definitions.last_writes[groups[counts > 0]]], counts[counts > 0]
        operators = self.provenance.operations.operator[operation[selected]]
        unique, first = np.unique(operators, return_index=True)
        names = tuple(self.provenance.operators[each] for each in unique[np.argsort(first)])
        return cells, counts, names


def _find_inputs(provenance: Provenance, columns: Columns, graph: ValueGraph) -> set[tuple[int, int]]:
    """Return pairs of a launch and a storage, if the launch uses the storage's initial content."""
    used = np.unique(columns.find_input_indices(graph.sources[1]))
    inputs = {(provenance.inputs[number].launch, provenance.inputs[number].storage) for number in used if number >= 0}
    # An array without dependent values is shown too, because it may control execution, like sort keys.
    return inputs | {
        (launch, storage)
        for storage, launch in provenance.first_reading_launch.items()
        if provenance.storages[storage].space == "global"
    }


def _input_sort_key(provenance: Provenance, launch: int, storage: int) -> tuple[int, bool, bool, int]:
    """Sort arrays that are read before those that are only changed, and those before constants."""
    return (
        launch,
        provenance.storages[storage].space == "constant",
        storage not in provenance.first_reading_launch,
        storage,
    )


def _find_step_rows(provenance: Provenance, graph: ValueGraph) -> list[tuple[int, int, Array]]:
    """Return the last step, the storage and the defining writes of a row for each step that defines values.

    Consecutive statements in one iteration are merged into one row if they depend neither on each other nor on a
    barrier, such as the two halves of a compare-exchange.
    """
    writes, definitions = provenance.writes, graph.definitions
    step, storage = writes.step[definitions.write], writes.storage[definitions.write]
    order = np.lexsort((definitions.write, storage, step))
    step, storage, write, group = step[order], storage[order], definitions.write[order], definitions.group[order]
    borders = np.flatnonzero((step[1:] != step[:-1]) | (storage[1:] != storage[:-1])) + 1
    starts = np.concatenate(([0], borders)) if step.size else np.zeros(0, np.int64)
    ends = np.append(borders, step.size)
    barriers = np.cumsum(provenance.barriers)
    users, sources = graph.sources
    source_group = graph.group_of_node(sources)
    rows: list[tuple[int, int, Array]] = []
    groups: set[int] = set()
    cells: set[int] = set()
    for start, end in zip(starts, ends, strict=False):
        step_number, storage_number, step_writes = int(step[start]), int(storage[start]), write[start:end]
        own_groups = set(group[start:end].tolist())
        new_cells = set(writes.cell[step_writes].tolist())
        previous_step, previous_storage, previous_writes = rows[-1] if rows else (0, -1, step_writes)
        if (
            previous_storage == storage_number
            and provenance.scopes[previous_step] == provenance.scopes[step_number]
            and barriers[previous_step] == barriers[step_number]
            and not writes.is_atomic[step_writes].any()
            and not writes.is_atomic[previous_writes].any()
            and cells.isdisjoint(new_cells)
            and groups.isdisjoint(_source_groups(users, source_group, own_groups))
            and cells.isdisjoint(_written_cells(provenance, storage_number, previous_step + 1, step_number))
        ):
            rows[-1] = (step_number, storage_number, np.concatenate((previous_writes, step_writes)))
            groups |= own_groups
            cells |= new_cells
        else:
            rows.append((step_number, storage_number, step_writes))
            groups, cells = own_groups, new_cells
    return rows


def _source_groups(users: Array, source_group: Array, groups: set[int]) -> set[int]:
    """Return the source groups of some groups; group numbers ascend with their steps."""
    low, high = np.searchsorted(users, min(groups)), np.searchsorted(users, max(groups), side="right")
    selected = np.isin(users[low:high], list(groups))
    return set(source_group[low:high][selected].tolist())


def _written_cells(provenance: Provenance, storage: int, first: int, last: int) -> set[int]:
    """Return the cells of a storage that were written in a range of steps."""
    writes = provenance.writes
    rows = slice(np.searchsorted(writes.step, first), np.searchsorted(writes.step, last, side="right"))
    return set(writes.cell[rows][writes.storage[rows] == storage].tolist())
