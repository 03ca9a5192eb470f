"""The dataflow picture of a recording: rows of cells, and edges from where each value came.

It is derived from what was recorded alone: nothing here knows an algorithm. A row is the statement that made values,
in one round of its loops; it stands at its storage in the program, so that two orders of the warps give the same rows.
Copies make no row, unless they move a value to another column.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.edges import Edges
from gpu.stepping.dataflow.labels import Labels
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.dataflow.row import Row, RowSources, Who
from gpu.stepping.dataflow.value_graph import ValueGraph
from gpu.stepping.provenance.provenance import Provenance
from gpu.stepping.recording import Recording


class CellTerm(NamedTuple):
    """How a value was made: by an operator from terms, or, where the operator is "", found elsewhere.

    `seen` is the row and the cell where it was last to be seen; None for what is an operation of the same statement,
    and for a value that nothing recorded made, such as a constant.
    """

    operator: str
    value: np.generic
    operands: tuple[CellTerm, ...]
    seen: tuple[int, int] | None


class Dataflow:
    """The rows of a recording.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.provenance = Provenance(recording)
        self._columns = Columns(self.provenance)
        self._graph = ValueGraph(self.provenance, self._columns)
        self._outlines = Outlines(self.provenance, self._columns, self._graph)
        self._edges = Edges(self.provenance, self._columns, self._graph, self._outlines)
        labels = Labels(recording, self._outlines)
        sources = RowSources(self.provenance, self._columns, self._outlines, self._edges, labels)
        rows: list[Row] = []
        rows += (Row(sources, number, rows) for number in range(len(self._outlines)))
        self.rows: tuple[Row, ...] = tuple(rows)

    @cached_property
    def columns(self) -> int:
        """How many columns there are."""
        shown = np.array(sorted({row.storage.number for row in self.rows}), np.int64)
        written = np.isin(self.provenance.writes.storage, shown)
        storage, cell = self.provenance.writes.storage[written], self.provenance.writes.cell[written]
        given = np.array(sorted(self._outlines.given), np.int64)
        counts = [self.provenance.storages[number].count for number in given]
        cells = [self._outlines.shown(number, np.arange(count)) for number, count in zip(given, counts, strict=True)]
        last = np.array([each.max(initial=-1) for each in cells], np.int64)
        held = last >= 0
        storage, cell = np.concatenate((storage, given[held])), np.concatenate((cell, last[held]))
        return int(self._columns.of(storage, cell).max(initial=-1)) + 1

    # What moments are.

    def row_at(self, moment: int) -> int:
        """Return the row that was worked on last before a moment; 0 where none was."""
        at = int(np.searchsorted(self._times[0], moment)) - 1
        return int(self._times[1][at]) if at >= 0 else 0

    @cached_property
    def _times(self) -> tuple[Array, Array]:
        """The number of the event of each write that made something, ascending, and its row."""
        writes = [each.writes for each in self._outlines.all]
        rows = np.repeat(np.arange(len(writes)), [each.size for each in writes])
        moments = self.provenance.writes.moment[np.concatenate([*writes, np.zeros(0, np.int64)])]
        order = np.lexsort((rows, moments))
        return moments[order], rows[order]

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
        seen = self._seen(node, row, here.storage.number, int(here.cells[cell])) if node else None
        return [seen] if seen is not None and seen[0] < row else []

    def kept_from(self, row: int) -> Array:
        """Return where each cell of a row that is kept was seen before, shape (cells, 2): a row and a cell, else -1."""
        here = self.rows[row]
        found = np.full((here.cells.size, 2), -1, np.int64)
        if here.is_input:
            return found
        nodes = self._nodes(row)
        kept = np.flatnonzero(~here.made & (nodes > 0))
        if not kept.size:
            return found
        storage = np.full(kept.size, here.storage.number)
        rows, cells = self._edges.last_seen.find(nodes[kept], np.full(kept.size, row), storage, here.cells[kept])
        for at in np.unique(rows[(rows >= 0) & (rows < row)]).tolist():
            mine = rows == at
            found[kept[mine], 0] = at
            found[kept[mine], 1] = np.searchsorted(self.rows[at].cells, cells[mine])
        return found

    def _nodes(self, row: int) -> Array:
        """Return the node of each cell's value; 0 where nothing known made it."""
        here = self.rows[row]
        nodes = np.where(here.writers >= 0, self.provenance.writes.node[here.writers], 0)
        known = here.writers >= 0
        for each in reversed(self.provenance.inputs):
            if each.storage == here.storage.number and each.launch <= here.launch and each.elements.size:
                at = np.minimum(np.searchsorted(each.elements, here.cells), each.elements.size - 1)
                mine = ~known & (each.elements[at] == here.cells)
                nodes[mine] = each.first + at[mine]
                known |= mine
        return nodes

    def _node(self, row: int, cell: int) -> int:
        """Return the node of a cell's value; 0 where nothing known made it."""
        here = self.rows[row]
        write = int(here.writers[cell])
        if write >= 0:
            return int(self.provenance.writes.node[write])
        return self._input_node(here.storage.number, int(here.cells[cell]), here.launch)

    def _input_node(self, storage: int, cell: int, launch: int) -> int:
        for each in reversed(self.provenance.inputs):
            if each.storage == storage and each.launch <= launch:
                at = int(np.searchsorted(each.elements, cell))
                if at < each.elements.size and each.elements[at] == cell:
                    return each.first + at
        return 0

    def _seen(self, node: int, row: int, storage: int, cell: int) -> tuple[int, int] | None:
        """Return the row and the cell (of that row) where a node was last to be seen before a row."""
        rows, cells = self._edges.last_seen.find(*(np.array([each]) for each in (node, row, storage, cell)))
        if rows[0] < 0:
            return None
        return int(rows[0]), int(np.searchsorted(self.rows[rows[0]].cells, cells[0]))

    def who(self, row: int, cell: int) -> Who | None:
        """Return who put a cell's value there; None for what was there before the program began."""
        return self.rows[row].who(cell)

    def term(self, row: int, cell: int) -> CellTerm | None:
        """Return how a made cell's value was made; None for a kept one."""
        here = self.rows[row]
        if not here.made[cell]:
            return None
        write = here.maker(cell)
        group = int(self._graph.definitions.group[np.searchsorted(self._graph.definitions.write, write)])
        return self._term(int(self.provenance.writes.node[write]), None, row, cell, group)

    def _term(self, node: int, operand: object, row: int, cell: int, group: int) -> CellTerm:
        here = self.rows[row]
        if not node:
            return CellTerm("", operand, (), None)  # type: ignore[arg-type]
        launch, number = self.provenance.launch_of_node(node)
        made = launch.trace.node(number)
        of = int(self._graph.group_of_node(np.array([node]))[0])
        if not made.operator or (of >= 0 and of != group) or bool(here.count[cell] == 0):
            return CellTerm("", made.value, (), self._seen(node, row, here.storage.number, int(here.cells[cell])))
        same = self.provenance.nodes_in(launch, made.sources)
        operands = zip(same, made.operands, strict=True)
        return CellTerm(
            made.operator, made.value, tuple(self._term(*each, row, cell, group) for each in operands), None
        )

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
            storage = row.storage
            if row.first >= moment or storage.name != name or not 0 <= element < storage.extent:
                continue
            start = block * storage.section if storage.space != "global" and storage.space != "constant" else 0
            cell = start + element + (thread * storage.extent if thread is not None and not storage.is_array else 0)
            at = int(np.searchsorted(row.cells, cell))
            if at < row.cells.size and row.cells[at] == cell and row.moment[at] < moment:
                return number, at
        return None
