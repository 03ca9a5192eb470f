"""The rows of a dataflow picture: cells with values, and edges that show the source of each value.

A row is the content of an array, or of a variable of all threads, after a program step. An edge starts at the last row
and cell that contained the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.recording.packing import Array
from gpu.stepping.dataflow.outlines import Labels, Outlines
from gpu.stepping.dataflow.provenance import Provenance
from gpu.stepping.dataflow.value_graph import Columns, ValueGraph
from gpu.stepping.dataflow.writes import Storage


class ValueLocator:
    """Find the rows and cells that contain a value.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    graph : ValueGraph
    rows : Outlines
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph, rows: Outlines) -> None:
        self._provenance, self._columns, self._graph = provenance, columns, graph
        self._step_limit = len(provenance.scopes) + 2
        self._row_limit = len(rows) + 1
        storage, step = (
            np.array([getattr(row, name) for row in rows.outlines], np.int64) for name in ("storage", "step")
        )
        # The rows of each storage, in order, and the same as sort keys: by storage and step, and by storage and row.
        self._rows = np.lexsort((np.arange(len(rows)), storage))
        self._step_keys = self._compute_step_key(storage[self._rows], step[self._rows])
        self._row_keys = storage[self._rows] * self._row_limit + self._rows
        self._row_of_write = rows.row_of_write
        self._has_rows = np.isin(np.arange(len(provenance.storages.entries)), storage)
        self._occurrences = self._find_occurrences()

    def _compute_step_key(self, storage: Array, step: Array) -> Array:
        key: Array = storage * self._step_limit + step + 1
        return key

    def _find_occurrences(self) -> tuple[Array, ...]:
        """Return node, storage, cell, and the range of the storage's rows in which the cell contains it, by node."""
        writes = self._provenance.writes
        rows = np.flatnonzero(self._has_rows[writes.storage])
        order = rows[np.lexsort((rows, writes.cell[rows], writes.storage[rows]))]
        storage, cell, step = writes.storage[order], writes.cell[order], writes.step[order]
        follows = (storage[1:] == storage[:-1]) & (cell[1:] == cell[:-1])
        next_step = np.full(order.size, self._step_limit - 2)
        next_step[:-1][follows] = step[1:][follows]
        # The initial content of an array stays until the first write.
        nodes = np.unique(self._graph.sources[1])
        input_storage, element = self._columns.find_input_cells(nodes)
        launch = np.array([each.launch for each in self._provenance.inputs] or [0])[
            self._columns.find_input_indices(nodes)
        ]
        first = np.array([storage.launch for storage in self._provenance.storages.entries] or [0])
        is_first_launch = (input_storage >= 0) & (launch == first[input_storage])
        launch = launch[is_first_launch]
        nodes, input_storage, element = nodes[is_first_launch], input_storage[is_first_launch], element[is_first_launch]
        since = np.array(self._provenance.first_steps or [0])[launch]
        until = self._find_next_write_steps(storage, cell, step, input_storage, element, since)
        node = np.concatenate((writes.node[order], nodes))
        storage, cell = np.concatenate((storage, input_storage)), np.concatenate((cell, element))
        first = np.searchsorted(self._step_keys, self._compute_step_key(storage, np.concatenate((step, since))))
        last = np.searchsorted(self._step_keys, self._compute_step_key(storage, np.concatenate((next_step, until))))
        present = np.flatnonzero((node > 0) & (first < last))
        present = present[np.argsort(node[present], kind="stable")]
        return node[present], storage[present], cell[present], first[present], last[present]

    def _find_next_write_steps(
        self, storage: Array, cell: Array, step: Array, input_storage: Array, element: Array, since: Array
    ) -> Array:
        """Return the step of the first write to each cell after a step; the last step if there is none."""
        width = max(int(cell.max(initial=0)), int(element.max(initial=0))) + 1
        keys = (storage * width + cell) * self._step_limit + step + 1
        at = np.searchsorted(keys, (input_storage * width + element) * self._step_limit + since + 1, side="right")
        inside = np.minimum(at, max(keys.size - 1, 0))
        if not keys.size:
            return np.full(input_storage.size, self._step_limit - 2)
        is_same_cell = (at < keys.size) & (storage[inside] == input_storage) & (cell[inside] == element)
        return np.where(is_same_cell, step[inside], self._step_limit - 2)

    def find(self, node: Array, row: Array, storage: Array, cell: Array) -> tuple[Array, Array]:
        """Return for each node the last row before a given one that contains it, and the cell.

        Among several cells of that row, the one in the same storage, then the one nearest to `cell`, is chosen. A value
        that no earlier row contains is at the row that computed it.

        Parameters
        ----------
        node, row : int arrays
            The values, and for each the row before which to search.
        storage, cell : int arrays
            The reader of each value, near which to search.

        Returns
        -------
        rows, cells : int arrays
            The row is -1 if no row contains the value.
        """
        found_row, found_cell = self._find_defining_cells(node)
        # Lanes that read one value in one row have the same candidates, in thousands of cells for a constant.
        requests, request = np.unique(node * self._row_limit + row, return_inverse=True)
        pair, candidate_row, occurrence = self._find_newest_rows(
            requests // self._row_limit, requests % self._row_limit
        )
        if not pair.size:
            return found_row, found_cell
        _, storages, cells, _, _ = self._occurrences
        # The candidates of a pair are all from one row, and so from one storage, with ascending columns: the nearest
        # candidate is next to the insertion point of the target column.
        column, target = (
            self._columns.find_columns(storages[occurrence], cells[occurrence]),
            self._columns.find_columns(storage, cell),
        )
        order = np.lexsort((column, pair))
        pair, candidate_row, occurrence, column = (each[order] for each in (pair, candidate_row, occurrence, column))
        width = max(int(column.max()), int(target.max(initial=0))) + 1
        at = np.searchsorted(pair * width + column, request * width + target)
        left, right = np.maximum(at - 1, 0), np.minimum(at, pair.size - 1)
        near = np.where(np.abs(column[left] - target) < np.abs(column[right] - target), left, right)
        best = np.where(pair[left] != request, right, np.where(pair[right] != request, left, near))
        is_held = pair[best] == request
        found_row[is_held], found_cell[is_held] = candidate_row[best[is_held]], cells[occurrence[best[is_held]]]
        return found_row, found_cell

    def _find_newest_rows(self, node: Array, row: Array) -> tuple[Array, Array, Array]:
        """Return for each node, by its index in the argument, the last row before a given one that contains it.

        A row that contains it in several cells is repeated for each: index, row and occurrence.
        """
        nodes, storages, _, first, last = self._occurrences
        low, high = np.searchsorted(nodes, node), np.searchsorted(nodes, node, side="right")
        counts = high - low
        pair = np.repeat(np.arange(node.size), counts)
        occurrence = np.arange(pair.size) - (np.cumsum(counts) - counts)[pair] + low[pair]
        latest = np.searchsorted(self._row_keys, storages[occurrence] * self._row_limit + row[pair]) - 1
        at = np.minimum(latest, last[occurrence] - 1)
        present = at >= first[occurrence]
        pair, occurrence, candidate_row = pair[present], occurrence[present], self._rows[at[present]]
        newest = np.full(node.size, -1)
        np.maximum.at(newest, pair, candidate_row)
        is_newest = candidate_row == newest[pair]
        return pair[is_newest], candidate_row[is_newest], occurrence[is_newest]

    def _find_defining_cells(self, node: Array) -> tuple[Array, Array]:
        """Return the row and the cell in which each node was computed; -1 if no row computed it."""
        write = np.append(self._graph.visible_writes, -1)[self._graph.operation_of_node[node]]
        row = np.where(write >= 0, self._row_of_write[write], -1)
        return row, np.where(write >= 0, self._provenance.writes.cell[write], 0)


class Edges:
    """The edges of all rows. Cells are numbered as in their storages.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    graph : ValueGraph
    rows : Outlines
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph, rows: Outlines) -> None:
        self._provenance, self._columns, self._graph, self._rows = provenance, columns, graph, rows

    @cached_property
    def value_locator(self) -> ValueLocator:
        """The last row and cell that contained each value."""
        return ValueLocator(self._provenance, self._columns, self._graph, self._rows)

    @cached_property
    def _edge_columns(self) -> tuple[Array, Array, Array, Array]:
        """By row: the row of each edge's end, its cell, and the row and the cell where it begins."""
        groups, nodes = self._graph.sources
        writes, write = self._provenance.writes, self._graph.definitions.last_writes[groups]
        row, cell = self._rows.row_of_write[write], writes.cell[write]
        from_row, from_cell = self.value_locator.find(nodes, row, writes.storage[write], cell)
        edges = np.unique(np.stack((row, cell, from_row, from_cell), axis=1)[from_row >= 0], axis=0)
        return edges[:, 0], edges[:, 1], edges[:, 2], edges[:, 3]

    def find_row_edges(self, row: int) -> tuple[Array, Array, Array]:
        """Return the edges of a row: cell, source row, source cell."""
        rows, *rest = self._edge_columns
        chosen = slice(np.searchsorted(rows, row), np.searchsorted(rows, row, side="right"))
        cell, from_row, from_cell = (each[chosen] for each in rest)
        return cell, from_row, from_cell

    def collect_operations(self, row: int) -> tuple[Array, Array, tuple[str, ...]]:
        """Return the cells that operations of a row computed, the number of operations per cell, and the operators."""
        definitions = self._graph.definitions
        groups = np.unique(definitions.group[np.searchsorted(definitions.write, self._rows[row].writes)])
        group_of_operation, operation = self._graph.members
        first = np.searchsorted(group_of_operation, groups)
        counts = np.searchsorted(group_of_operation, groups, side="right") - first
        selected = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        cells, counts = self._provenance.writes.cell[definitions.last_writes[groups[counts > 0]]], counts[counts > 0]
        operators = self._provenance.operations.operator[operation[selected]]
        unique, first = np.unique(operators, return_index=True)
        names = tuple(self._provenance.operators[each] for each in unique[np.argsort(first)])
        return cells, counts, names


class CellWriter(NamedTuple):
    """The writer of a cell's value: the thread, the source line, and the event number."""

    block: int
    thread: int
    line: int
    moment: int


@dataclass(frozen=True)
class RowSources:
    """The data from which rows are read."""

    provenance: Provenance
    columns: Columns
    outlines: Outlines
    edges: Edges
    labels: Labels


class Row:
    """One row: the content of a storage after a program step.

    `column`, `value`, `computed`, `moment`, `block`, `thread`, `operation_counts` and `has_operation` have one entry
    per cell. Cells without a value are omitted. All data are computed on first use, or by `preload`.

    Parameters
    ----------
    sources : RowSources
    number : int
    rows : sequence of Row
        All rows of the picture.
    """

    def __init__(self, sources: RowSources, number: int, rows: Sequence[Row]) -> None:
        self._sources, self._rows = sources, rows
        self._outline = sources.outlines[number]
        self.number = number
        self.launch = self._outline.launch
        self.storage: Storage = sources.outlines.storage(number)
        self.is_input = self._outline.is_input

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
        return self._sources.outlines.events(self.number)

    @cached_property
    def position(self) -> SourcePosition | None:
        """The source position of the statement; None for an input."""
        return self._sources.outlines.position(self.number)

    @cached_property
    def line(self) -> int:
        """The statement's line; 0 for an input."""
        return self.position.line if self.position is not None else 0

    @cached_property
    def label(self) -> str:
        """A short text: the loop variable that changed, or the array's name or the line."""
        return self._sources.labels[self.number]

    @cached_property
    def cells(self) -> Array:
        """The number of each cell in its storage, ascending."""
        cells: Array = np.flatnonzero(self._last_writes >= self._minimum_write)
        return (
            self._sources.outlines.select_visible_cells(self.storage.number, cells)
            if self._minimum_write < 0
            else cells
        )

    @cached_property
    def _minimum_write(self) -> int:
        """The least value in `_last_writes` of a cell with content; -1 if the array had initial content, else 0."""
        number = self.storage.number
        return (
            -1
            if number in self._sources.outlines.input_storages and number in self._sources.provenance.initial_contents
            else 0
        )

    @cached_property
    def _last_writes(self) -> Array:
        """The last write to each cell of the storage; -1 where there is none."""
        rows = self._sources.provenance.find_writes(self.storage.number)
        steps = self._sources.provenance.writes.step[rows]
        previous = rows[: np.searchsorted(steps, self._outline.step, side="right")]
        cells = self._sources.provenance.writes.cell[previous]
        # A variable has a cell for each thread of the grid, but a recording may contain only the first threads.
        newest = np.full(self.storage.count if self._minimum_write < 0 else int(cells.max(initial=-1)) + 1, -1)
        newest[cells] = previous
        return newest

    @cached_property
    def writers(self) -> Array:
        """The index, among all writes, of the write of each cell's value; -1 where there is none."""
        writers: Array = self._last_writes[self.cells]
        return writers

    def _write_column(self, name: str) -> Array:
        """Return a column of the writes; -1 for cells that were not written."""
        written = self.writers >= 0
        # Without a single write, no index is valid.
        column = np.full(written.size, -1, np.int64)
        column[written] = getattr(self._sources.provenance.writes, name)[self.writers[written]]
        return column

    @cached_property
    def column(self) -> Array:
        """The column in which each cell is drawn, ascending."""
        return self._sources.columns.find_columns(np.full(self.cells.size, self.storage.number), self.cells)

    @cached_property
    def value(self) -> Array:
        """The value of each cell, in the storage's type."""
        dtype = self.storage.dtype
        raw = self._sources.provenance.writes.raw
        values = np.zeros(self.cells.size, dtype)
        written = self.writers >= 0
        values[written] = np.ascontiguousarray(raw[self.writers[written], : dtype.itemsize]).view(dtype).reshape(-1)
        initial = self._sources.provenance.initial_contents.get(self.storage.number)
        if initial is not None:
            values[~written] = initial[self.cells[~written]]
        return values

    @cached_property
    def computed(self) -> Array:
        """Whether this row computed the cell's value, rather than leaving an older one."""
        return np.isin(self.cells, self._sources.provenance.writes.cell[self._outline.writes])

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
    def operation_counts(self) -> Array:
        """The number of this row's operations per cell; 0 if the value was only moved or left unchanged."""
        operation_counts = np.zeros(self.cells.size, np.int64)
        cells, counts, _ = self._sources.edges.collect_operations(self.number)
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
        return self._sources.edges.collect_operations(self.number)[2]

    @cached_property
    def sources(self) -> Array:
        """The edges, shape (edges, 3): a cell of this row, and the source's row and cell."""
        cells, rows, source_cells = self._sources.edges.find_row_edges(self.number)
        edges = np.stack((np.searchsorted(self.cells, cells), rows, source_cells), axis=1)
        for row in np.unique(rows):
            chosen = rows == row
            edges[chosen, 2] = np.searchsorted(self._rows[row].cells, source_cells[chosen])
        return edges[np.lexsort(edges.T[::-1])]

    def find_defining_write(self, cell: int) -> int:
        """Return the index, among all writes, of the write by which this row defined a cell."""
        own_writes = self._outline.writes
        return int(own_writes[self._sources.provenance.writes.cell[own_writes] == self.cells[cell]][-1])

    def find_writer(self, cell: int) -> CellWriter | None:
        """Return the writer of a cell's value; None if the value is older than the program."""
        moment = int(self.moment[cell])
        if self.thread[cell] < 0:
            return None
        return CellWriter(
            int(self.block[cell]),
            int(self.thread[cell]),
            self._sources.provenance.recording.position(moment).line,
            moment,
        )
