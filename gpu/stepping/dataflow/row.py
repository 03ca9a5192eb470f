"""A row of a dataflow picture: the content of an array, or of a variable of all threads, after a program step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.errors import SourcePosition
from gpu.recording.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.edges import Edges
from gpu.stepping.dataflow.labels import Labels
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.provenance.provenance import Provenance
from gpu.stepping.provenance.storages import Storage


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

    `column`, `value`, `computed`, `moment`, `block`, `thread` and `operation_counts` have one entry per cell. Cells
    without a value are omitted.

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

    @property
    def first(self) -> int:
        """The number of the first event that computed a value of this row; for an input, the one before the launch."""
        return int(self.events[0])

    @property
    def last(self) -> int:
        """The number of the last event that computed a value of this row."""
        return int(self.events[-1])

    @cached_property
    def events(self) -> Array:
        """The event numbers that computed values of this row, ascending; for an input, the one before the launch."""
        return self._sources.outlines.events(self.number)

    @property
    def position(self) -> SourcePosition | None:
        """The source position of the statement; None for an input."""
        return self._sources.outlines.position(self.number)

    @property
    def line(self) -> int:
        """The statement's line; 0 for an input."""
        return self.position.line if self.position is not None else 0

    @property
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
        return np.where(self.writers >= 0, getattr(self._sources.provenance.writes, name)[self.writers], -1)

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

    @property
    def moment(self) -> Array:
        """The number of the event that wrote the cell's value; -1 if it is older than all events."""
        return self._write_column("moment")

    @property
    def block(self) -> Array:
        """The block of the thread that wrote the value; -1 for none."""
        return self._write_column("block")

    @property
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
