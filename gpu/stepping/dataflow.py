"""The dataflow picture of a recording: rows of cells, and edges from where each value came.

It is derived from what was recorded alone: nothing here knows an algorithm. A row is the statement that made values,
in one round of its loops; it stands at its place in the program, so that two orders of the warps give the same rows.
Copies make no row, unless they move a value to another column.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from gpu.errors import SourcePosition
from gpu.stepping.columns import Columns
from gpu.stepping.history import Array, History
from gpu.stepping.labels import Labels
from gpu.stepping.network import Network
from gpu.stepping.places import Place
from gpu.stepping.recording import Recording
from gpu.stepping.rows import RowOutline, outline
from gpu.stepping.sight import Sight


class Who(NamedTuple):
    """Who put a value into a cell: the thread, the line, and the number of the event."""

    block: int
    thread: int
    line: int
    moment: int


class Term(NamedTuple):
    """How a value was made: by an operator from terms, or, where the operator is "", found elsewhere.

    `seen` is the row and the cell where it was last to be seen; None for what is an operation of the same statement,
    and for a value that nothing recorded made, such as a constant.
    """

    operator: str
    value: np.generic
    operands: tuple[Term, ...]
    seen: tuple[int, int] | None


class Row:
    """One row: what a place held after a step of the program.

    A cell is a place in the arrays here: `column`, `value`, `made`, `moment`, `block`, `thread`, `count` have one entry
    for each. Cells that hold nothing yet are left out.

    Parameters
    ----------
    flow : Dataflow
    number : int
    outline : RowOutline
    """

    def __init__(self, flow: Dataflow, number: int, outline: RowOutline) -> None:
        self._flow = flow
        self._outline = outline
        self.number = number
        self.launch = outline.launch
        self.place: Place = flow.history.places[outline.place]

    @property
    def is_input(self) -> bool:
        """Whether it shows an array as a launch found it."""
        return not self._outline.writes.size

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
        if self.is_input:
            return np.array([self._flow.recording.launches[self.launch].first - 1])
        found: Array = np.unique(self._flow.history.writes.moment[self._outline.writes])
        return found

    @property
    def position(self) -> SourcePosition | None:
        """The statement; None for an input."""
        return None if self.is_input else self._flow.position(self.first)

    @property
    def line(self) -> int:
        """The statement's line; 0 for an input."""
        return self.position.line if self.position is not None else 0

    @property
    def label(self) -> str:
        """A few words: the loop variable that changed, else the array's name or the line."""
        return self._flow.labels[self.number]

    @cached_property
    def cells(self) -> Array:
        """The number of each cell in its place, ascending."""
        found: Array = np.flatnonzero(self._newest >= self._missing)
        return found

    @cached_property
    def _missing(self) -> int:
        """The least number in `_newest` of a cell that holds something: only arrays that were given start with that."""
        return -1 if self.place.number in self._flow.given and self.place.number in self._flow.history.initial else 0

    @cached_property
    def _newest(self) -> Array:
        """The last write to each cell of the place; -1 where there was none."""
        rows = self._flow.writes_of_place(self.place.number)
        steps = self._flow.history.writes.step[rows]
        done = rows[: np.searchsorted(steps, self._outline.step, side="right")]
        newest = np.full(self.place.count, -1)
        newest[self._flow.history.writes.cell[done]] = done
        return newest

    @cached_property
    def writers(self) -> Array:
        """The row in the history of the write that gave each cell its value; -1 where none did."""
        found: Array = self._newest[self.cells]
        return found

    def _column(self, name: str) -> Array:
        """Return a column of the writes; -1 where the cell was not written."""
        return np.where(self.writers >= 0, getattr(self._flow.history.writes, name)[self.writers], -1)

    @cached_property
    def column(self) -> Array:
        """Where each cell stands, ascending."""
        return self._flow.columns_of(np.full(self.cells.size, self.place.number), self.cells)

    @cached_property
    def value(self) -> Array:
        """What each cell holds, in the place's type."""
        dtype = self.place.dtype
        raw = self._flow.history.writes.raw
        found = np.zeros(self.cells.size, dtype)
        written = self.writers >= 0
        found[written] = np.ascontiguousarray(raw[self.writers[written], : dtype.itemsize]).view(dtype).reshape(-1)
        initial = self._flow.history.initial.get(self.place.number)
        if initial is not None:
            found[~written] = initial[self.cells[~written]]
        return found

    @cached_property
    def made(self) -> Array:
        """Whether this row made the cell's value, rather than found it there."""
        return np.isin(self.cells, self._flow.history.writes.cell[self._outline.writes])

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
        cells, counts, _ = self._flow.operations_of(self._outline.writes)
        found[np.searchsorted(self.cells, cells)] = counts
        return found

    @cached_property
    def operator(self) -> tuple[str, ...]:
        """The operators of the row, in the order in which a thread comes to them; none where values were only moved."""
        return self._flow.operations_of(self._outline.writes)[2]

    @cached_property
    def sources(self) -> Array:
        """The edges, shape (edges, 3): a cell of this row, and the row and the cell where a source was last seen."""
        cells, rows, others = self._flow.edges_of(self.number)
        found = np.stack((np.searchsorted(self.cells, cells), rows, others), axis=1)
        for row in np.unique(rows):
            chosen = rows == row
            found[chosen, 2] = np.searchsorted(self._flow.rows[row].cells, others[chosen])
        return found[np.lexsort(found.T[::-1])]


class Dataflow:
    """The rows of a recording.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.history = History(recording)
        self._columns = Columns(self.history)
        self._network = Network(self.history, self._columns)
        outlines = outline(self.history, self._columns, self._network)
        self._outlines = outlines
        self.rows: tuple[Row, ...] = tuple(Row(self, number, each) for number, each in enumerate(outlines))
        self.labels = Labels(recording, self.rows)
        self.given = {row.place.number for row in self.rows if row.is_input}

    @cached_property
    def columns(self) -> int:
        """How many columns there are."""
        last = [(row.place.number, row.place.count - 1) for row in self.rows if row.place.count]
        places, cells = (np.array([each[side] for each in last], np.int64) for side in (0, 1))
        return int(self._columns.of(places, cells).max(initial=-1)) + 1

    # What moments are.

    def row_at(self, moment: int) -> int:
        """Return the row that was worked on last before a moment; 0 where none was."""
        at = int(np.searchsorted(self._times[0], moment)) - 1
        return int(self._times[1][at]) if at >= 0 else 0

    def operations_before(self, moment: int) -> int:
        """Return how many cells were made before a moment."""
        return int(np.searchsorted(self._times[0], moment))

    @cached_property
    def _times(self) -> tuple[Array, Array]:
        """The number of the event of each write that made something, ascending, and its row."""
        writes = [each.writes for each in self._outlines]
        rows = np.repeat(np.arange(len(writes)), [each.size for each in writes])
        moments = self.history.writes.moment[np.concatenate([*writes, np.zeros(0, np.int64)])]
        order = np.lexsort((rows, moments))
        return moments[order], rows[order]

    def position(self, moment: int) -> SourcePosition:
        """Return the statement of the event of a number."""
        launch, event = self.recording.at(moment)
        found: SourcePosition = launch.trace.events[event].position
        return found

    # What made what.

    def ancestry(self, row: int, cell: int) -> set[tuple[int, int]]:
        """Return all rows and cells that a cell's value came from, itself included."""
        found: set[tuple[int, int]] = set()
        waiting = [(row, cell)]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += self.sources_of(*at)
        return found

    def sources_of(self, row: int, cell: int) -> list[tuple[int, int]]:
        """Return where a cell's value came from: for one that is kept, where it was seen before."""
        here = self.rows[row]
        if here.made[cell]:
            edges = here.sources
            low, high = np.searchsorted(edges[:, 0], cell), np.searchsorted(edges[:, 0], cell, side="right")
            return [(int(each[1]), int(each[2])) for each in edges[low:high]]
        if here.is_input:
            return []
        node = self._node(row, cell)
        seen = self._seen(node, row, here.place.number, int(here.cells[cell])) if node else None
        return [seen] if seen is not None and seen[0] < row else []

    def _node(self, row: int, cell: int) -> int:
        """Return the node of a cell's value; 0 where nothing known made it."""
        here = self.rows[row]
        write = int(here.writers[cell])
        if write >= 0:
            return int(self.history.writes.node[write])
        return self._input_node(here.place.number, int(here.cells[cell]), here.launch)

    def _input_node(self, place: int, cell: int, launch: int) -> int:
        for each in reversed(self.history.inputs):
            if each.place == place and each.launch <= launch:
                at = int(np.searchsorted(each.elements, cell))
                if at < each.elements.size and each.elements[at] == cell:
                    return each.first + at
        return 0

    def _seen(self, node: int, row: int, place: int, cell: int) -> tuple[int, int] | None:
        """Return the row and the cell (of that row) where a node was last to be seen before a row."""
        rows, cells = self._sight.find(*(np.array([each]) for each in (node, row, place, cell)))
        if rows[0] < 0:
            return None
        return int(rows[0]), int(np.searchsorted(self.rows[rows[0]].cells, cells[0]))

    def who(self, row: int, cell: int) -> Who | None:
        """Return who put a cell's value there; None for what was there before the program began."""
        here = self.rows[row]
        moment = int(here.moment[cell])
        if moment < 0:
            return None
        return Who(int(here.block[cell]), int(here.thread[cell]), self.position(moment).line, moment)

    def term(self, row: int, cell: int) -> Term | None:
        """Return how a made cell's value was made; None for a kept one."""
        here = self.rows[row]
        if not here.made[cell]:
            return None
        node = self._node(row, cell)
        group = int(self._network.making.group[np.searchsorted(self._network.making.write, here.writers[cell])])
        return self._term(node, None, row, cell, group)

    def _term(self, node: int, operand: object, row: int, cell: int, group: int) -> Term:
        here = self.rows[row]
        if not node:
            return Term("", operand, (), None)  # type: ignore[arg-type]
        launch, number = self.history.launch_of_node(node)
        made = launch.trace.node(number)
        of = int(self._network.group_of_node(np.array([node]))[0])
        if not made.operator or (of >= 0 and of != group) or bool(here.count[cell] == 0):
            return Term("", made.value, (), self._seen(node, row, here.place.number, int(here.cells[cell])))
        same = self.history.nodes_in(launch, made.sources)
        operands = zip(same, made.operands, strict=True)
        return Term(made.operator, made.value, tuple(self._term(*each, row, cell, group) for each in operands), None)

    # Where to look.

    def cell_at(
        self, moment: int, name: str, element: int, *, block: int = 0, thread: int | None = None
    ) -> tuple[int, int] | None:
        """Return where an array's element, or a variable, is to be seen at a moment.

        Parameters
        ----------
        moment : int
        name : str
            Of the array or the variable.
        element : int
            0 for a variable.
        block : int
            The block that a shared array or a thread belongs to.
        thread : int or None
            The thread whose variable, or own array, it is.

        Returns
        -------
        (int, int) or None
            The row, which is the last one by then, and the cell; None where nothing shows it.
        """
        for number in range(len(self.rows) - 1, -1, -1):
            row = self.rows[number]
            place = row.place
            if row.first >= moment or place.name != name or not 0 <= element < place.extent:
                continue
            start = block * place.section if place.space != "global" and place.space != "constant" else 0
            cell = start + element + (thread * place.extent if thread is not None and not place.is_array else 0)
            at = int(np.searchsorted(row.cells, cell))
            if at < row.cells.size and row.cells[at] == cell and row.moment[at] < moment:
                return number, at
        return None

    # For rows.

    @cached_property
    def _sight(self) -> Sight:
        return Sight(self.history, self._columns, self._network, self._outlines)

    @cached_property
    def _edges(self) -> tuple[Array, Array, Array, Array]:
        """By row: the row of each edge's end, its cell, and the row and the cell where it begins."""
        groups, nodes = self._network.sources
        making, writes = self._network.making, self.history.writes
        last = np.zeros(int(making.group.max(initial=-1)) + 1, np.int64)
        last[making.group] = making.write
        row_of_write = np.zeros(len(writes), np.int64)
        for number, each in enumerate(self._outlines):
            row_of_write[each.writes] = number
        write = last[groups]
        row, cell = row_of_write[write], writes.cell[write]
        from_row, from_cell = self._sight.find(nodes, row, writes.place[write], cell)
        edges = np.stack((row, cell, from_row, from_cell), axis=1)[from_row >= 0]
        edges = np.unique(edges, axis=0)
        return edges[:, 0], edges[:, 1], edges[:, 2], edges[:, 3]

    def edges_of(self, row: int) -> tuple[Array, Array, Array]:
        """Return the edges of a row: cell, source row, source cell, with cells numbered as in their places."""
        rows, *rest = self._edges
        chosen = slice(np.searchsorted(rows, row), np.searchsorted(rows, row, side="right"))
        cell, from_row, from_cell = (each[chosen] for each in rest)
        return cell, from_row, from_cell

    def operations_of(self, writes: Array) -> tuple[Array, Array, tuple[str, ...]]:
        """Return the cells of a row that operations made, how many made each, and the operators."""
        making = self._network.making
        groups = np.unique(making.group[np.searchsorted(making.write, writes)])
        of, operation = self._network.members
        wanted = np.flatnonzero(np.isin(of, groups))
        made, counts = np.unique(of[wanted], return_counts=True)
        cell_of = np.zeros(int(making.group.max(initial=0)) + 1, np.int64)
        cell_of[making.group] = self.history.writes.cell[making.write]
        operators = self.history.operations.operator[operation[wanted]]
        different, first = np.unique(operators, return_index=True)
        names = tuple(self.history.operators[each] for each in different[np.argsort(first)])
        return cell_of[made], counts, names

    def columns_of(self, place: Array, cell: Array) -> Array:
        """Return the column of each cell of a place."""
        return self._columns.of(place, cell)

    @lru_cache(maxsize=256)  # noqa: B019 a flow lives as long as its rows
    def writes_of_place(self, place: int) -> Array:
        """Return the rows of the writes to a place, ascending."""
        found: Array = np.flatnonzero(self.history.writes.place == place)
        return found
