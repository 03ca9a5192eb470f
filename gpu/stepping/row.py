"""A row of a dataflow picture: what an array, or a variable of all threads, held after a step of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.packing import Array
from gpu.stepping.columns import Columns
from gpu.stepping.edges import Edges
from gpu.stepping.history import History
from gpu.stepping.labels import Labels
from gpu.stepping.outlines import Outlines
from gpu.stepping.places import Place


class Who(NamedTuple):
    """Who put a value into a cell: the thread, the line, and the number of the event."""

    block: int
    thread: int
    line: int
    moment: int


@dataclass(frozen=True)
class RowSources:
    """What rows are read from."""

    history: History
    columns: Columns
    outlines: Outlines
    edges: Edges
    labels: Labels


class Row:
    """One row: what a place held after a step of the program.

    A cell is a place in the arrays here: `column`, `value`, `made`, `moment`, `block`, `thread`, `count` have one entry
    for each. Cells that hold nothing yet are left out.

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
        self.place: Place = sources.outlines.place(number)
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
        """The number of each cell in its place, ascending."""
        found: Array = np.flatnonzero(self._newest >= self._missing)
        return found

    @cached_property
    def _missing(self) -> int:
        """The least number in `_newest` of a cell that holds something: only arrays that were given start with that."""
        number = self.place.number
        return -1 if number in self._from.outlines.given and number in self._from.history.initial else 0

    @cached_property
    def _newest(self) -> Array:
        """The last write to each cell of the place; -1 where there was none."""
        rows = self._from.history.writes_to(self.place.number)
        steps = self._from.history.writes.step[rows]
        done = rows[: np.searchsorted(steps, self._outline.step, side="right")]
        newest = np.full(self.place.count, -1)
        newest[self._from.history.writes.cell[done]] = done
        return newest

    @cached_property
    def writers(self) -> Array:
        """The row in the history of the write that gave each cell its value; -1 where none did."""
        found: Array = self._newest[self.cells]
        return found

    def _column(self, name: str) -> Array:
        """Return a column of the writes; -1 where the cell was not written."""
        return np.where(self.writers >= 0, getattr(self._from.history.writes, name)[self.writers], -1)

    @cached_property
    def column(self) -> Array:
        """Where each cell stands, ascending."""
        return self._from.columns.of(np.full(self.cells.size, self.place.number), self.cells)

    @cached_property
    def value(self) -> Array:
        """What each cell holds, in the place's type."""
        dtype = self.place.dtype
        raw = self._from.history.writes.raw
        found = np.zeros(self.cells.size, dtype)
        written = self.writers >= 0
        found[written] = np.ascontiguousarray(raw[self.writers[written], : dtype.itemsize]).view(dtype).reshape(-1)
        initial = self._from.history.initial.get(self.place.number)
        if initial is not None:
            found[~written] = initial[self.cells[~written]]
        return found

    @cached_property
    def made(self) -> Array:
        """Whether this row made the cell's value, rather than found it there."""
        return np.isin(self.cells, self._from.history.writes.cell[self._outline.writes])

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
        """Return the row in the history of the write by which this row made a cell."""
        mine = self._outline.writes
        return int(mine[self._from.history.writes.cell[mine] == self.cells[cell]][-1])

    def who(self, cell: int) -> Who | None:
        """Return who put a cell's value there; None for what was there before the program began."""
        moment = int(self.moment[cell])
        if self.thread[cell] < 0:
            return None
        return Who(
            int(self.block[cell]), int(self.thread[cell]), self._from.history.recording.position(moment).line, moment
        )
