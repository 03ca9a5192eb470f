"""A row of a dataflow picture: what an array, or a variable of all threads, held after a step of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.edges import Edges
from gpu.stepping.dataflow.labels import Labels
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.provenance.provenance import Provenance
from gpu.stepping.provenance.storages import Storage


class Who(NamedTuple):
    """Who put a value into a cell: the thread, the line, and the number of the event."""

    block: int
    thread: int
    line: int
    moment: int


@dataclass(frozen=True)
class RowSources:
    """What rows are read from."""

    provenance: Provenance
    columns: Columns
    outlines: Outlines
    edges: Edges
    labels: Labels


class Row:
    """One row: what a storage held after a step of the program.

    `column`, `value`, `made`, `moment`, `block`, `thread` and `count` have one entry for each cell. Cells that hold
    nothing yet are left out.

    Parameters
    ----------
    sources : RowSources
    number : int
    rows : sequence of Row
        All of them.
    """

    def __init__(self, sources: RowSources, number: int, rows: Sequence[Row]) -> None:
        self._from, self._rows = sources, rows
        self._outline = sources.outlines[number]
        self.number = number
        self.launch = self._outline.launch
        self.storage: Storage = sources.outlines.storage(number)
        self.is_input = self._outline.is_input

    @property
    def first(self) -> int:
        """The number of the first event that made something here; that before the launch for an input."""
        return int(self.events[0])

    @property
    def last(self) -> int:
        """The number of the last event that made something here."""
        return int(self.events[-1])

    @cached_property
    def events(self) -> Array:
        """The numbers of the events that made something here, ascending; that before the launch for an input."""
        return self._from.outlines.events(self.number)

    @property
    def position(self) -> SourcePosition | None:
        """The statement; None for an input."""
        return self._from.outlines.position(self.number)

    @property
    def line(self) -> int:
        """The statement's line; 0 for an input."""
        return self.position.line if self.position is not None else 0

    @property
    def label(self) -> str:
        """A few words: the loop variable that changed, else the array's name or the line."""
        return self._from.labels[self.number]

    @cached_property
    def cells(self) -> Array:
        """The number of each cell in its storage, ascending."""
        found: Array = np.flatnonzero(self._newest >= self._missing)
        return self._from.outlines.shown(self.storage.number, found) if self._missing < 0 else found

    @cached_property
    def _missing(self) -> int:
        """The least number in `_newest` of a cell that holds something: only arrays that were given start with that."""
        number = self.storage.number
        return -1 if number in self._from.outlines.given and number in self._from.provenance.initial else 0

    @cached_property
    def _newest(self) -> Array:
        """The last write to each cell of the storage, as far as there are any; -1 where there was none."""
        rows = self._from.provenance.writes_to(self.storage.number)
        steps = self._from.provenance.writes.step[rows]
        done = rows[: np.searchsorted(steps, self._outline.step, side="right")]
        cells = self._from.provenance.writes.cell[done]
        # A variable has cells for all threads of the grid, of which a recording may have the first few only.
        newest = np.full(self.storage.count if self._missing < 0 else int(cells.max(initial=-1)) + 1, -1)
        newest[cells] = done
        return newest

    @cached_property
    def writers(self) -> Array:
        """The number, among all writes, of the one that gave each cell its value; -1 where none did."""
        found: Array = self._newest[self.cells]
        return found

    def _column(self, name: str) -> Array:
        """Return a column of the writes; -1 where the cell was not written."""
        return np.where(self.writers >= 0, getattr(self._from.provenance.writes, name)[self.writers], -1)

    @cached_property
    def column(self) -> Array:
        """Where each cell stands, ascending."""
        return self._from.columns.of(np.full(self.cells.size, self.storage.number), self.cells)

    @cached_property
    def value(self) -> Array:
        """What each cell holds, in the storage's type."""
        dtype = self.storage.dtype
        raw = self._from.provenance.writes.raw
        found = np.zeros(self.cells.size, dtype)
        written = self.writers >= 0
        found[written] = np.ascontiguousarray(raw[self.writers[written], : dtype.itemsize]).view(dtype).reshape(-1)
        initial = self._from.provenance.initial.get(self.storage.number)
        if initial is not None:
            found[~written] = initial[self.cells[~written]]
        return found

    @cached_property
    def made(self) -> Array:
        """Whether this row made the cell's value, rather than found it there."""
        return np.isin(self.cells, self._from.provenance.writes.cell[self._outline.writes])

    @property
    def moment(self) -> Array:
        """The number of the event that gave the cell its value, which is there at later moments; -1 before all."""
        return self._column("moment")

    @property
    def block(self) -> Array:
        """The block of the thread that wrote the value; -1 for none."""
        return self._column("block")

    @property
    def thread(self) -> Array:
        """The thread that wrote the value; -1 for none."""
        return self._column("thread")

    @cached_property
    def count(self) -> Array:
        """How many operations this row did for the cell; 0 where it only moved a value, or left it as it was."""
        found = np.zeros(self.cells.size, np.int64)
        cells, counts, _ = self._from.edges.operations(self.number)
        found[np.searchsorted(self.cells, cells)] = counts
        return found

    @cached_property
    def operator(self) -> tuple[str, ...]:
        """The operators of the row, in the order in which a thread comes to them; none where values were only moved."""
        return self._from.edges.operations(self.number)[2]

    @cached_property
    def sources(self) -> Array:
        """The edges, shape (edges, 3): a cell of this row, and the row and the cell where a source was last seen."""
        cells, rows, others = self._from.edges.of_row(self.number)
        found = np.stack((np.searchsorted(self.cells, cells), rows, others), axis=1)
        for row in np.unique(rows):
            chosen = rows == row
            found[chosen, 2] = np.searchsorted(self._rows[row].cells, others[chosen])
        return found[np.lexsort(found.T[::-1])]

    def maker(self, cell: int) -> int:
        """Return the number, among all writes, of the one by which this row made a cell."""
        mine = self._outline.writes
        return int(mine[self._from.provenance.writes.cell[mine] == self.cells[cell]][-1])

    def who(self, cell: int) -> Who | None:
        """Return who put a cell's value there; None for what was there before the program began."""
        moment = int(self.moment[cell])
        if self.thread[cell] < 0:
            return None
        return Who(
            int(self.block[cell]), int(self.thread[cell]), self._from.provenance.recording.position(moment).line, moment
        )
