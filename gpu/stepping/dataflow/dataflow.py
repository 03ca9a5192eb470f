"""The dataflow picture of a recording: rows of cells, with edges from the source of each value.

It is derived from the recording alone and knows no algorithm. A row contains the values of one statement in one
iteration of its loops. Rows are ordered as in the program, so two schedules of the warps produce the same rows. A copy
produces a row only if it moves a value to another column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.stepping.dataflow.labels import label_rows
from gpu.stepping.dataflow.provenance import Provenance
from gpu.stepping.dataflow.rows import DataflowRows
from gpu.stepping.dataflow.value_graph import Columns, ValueGraph

_SELECTIONS = frozenset(("?:", "min", "max", "fmin", "fmax", "fminf", "fmaxf"))
"""Operators with a result that is one of their operands."""


Location = tuple[int, int]
"""A row, and a cell in it."""


class CellTerm(NamedTuple):
    """The computation of a value: an operator and its operands, or "" for a value from elsewhere.

    `location` is the last row and cell that contained the value; None for an operation of the same statement, and for a
    value without a recorded origin, such as a constant.
    """

    operator: str
    value: np.generic
    operands: tuple[CellTerm, ...]
    location: Location | None


class Dataflow:
    """The rows of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.provenance = Provenance(recording)
        columns = Columns(self.provenance)
        self._graph = ValueGraph(self.provenance, columns)
        self._rows = DataflowRows(self.provenance, columns, self._graph)
        self.rows = self._rows.entries
        label_rows(recording, self.rows)

    # Rows by moment.

    def row_at(self, moment: int) -> int:
        """Return the row that was last changed before a moment; 0 if there is none."""
        at = int(np.searchsorted(self._rows_by_moment[0], moment)) - 1
        return int(self._rows_by_moment[1][at]) if at >= 0 else 0

    @cached_property
    def _rows_by_moment(self) -> tuple[Array, Array]:
        """The event number of each defining write, ascending, and its row."""
        writes = [row.writes for row in self.rows]
        rows = np.repeat(np.arange(len(writes)), [write.size for write in writes])
        moments = self.provenance.writes.moment[np.concatenate([*writes, np.zeros(0, np.int64)])]
        order = np.lexsort((rows, moments))
        return moments[order], rows[order]

    # Sources of values.

    def find_ancestors(self, row: int, cell: int) -> set[Location]:
        """Return all rows and cells that a cell's value depends on, including itself."""
        return _collect_reachable((row, cell), self.find_sources)

    def find_sources(self, row: int, cell: int) -> list[Location]:
        """Return the sources of a cell's value; for an unchanged cell, its previous location."""
        row_data = self.rows[row]
        if row_data.computed[cell]:
            edges = row_data.sources
            low, high = np.searchsorted(edges[:, 0], cell), np.searchsorted(edges[:, 0], cell, side="right")
            return [(int(edge[1]), int(edge[2])) for edge in edges[low:high]]
        if row_data.is_input:
            return []
        node = int(row_data.nodes[cell])
        location = (
            self._find_last_location(node, row, row_data.storage.number, int(row_data.cells[cell])) if node else None
        )
        return [location] if location is not None and location[0] < row else []

    def find_descendants(self, row: int, cell: int) -> set[Location]:
        """Return all rows and cells that depend on a cell's value, including itself.

        An operation that selects one of its operands, such as `min`, passes on a value only to a cell that has it: a
        key of a sort leads to its place in the result, not to each key that it was compared with.
        """
        return _collect_reachable((row, cell), self._find_consumers)

    def _find_consumers(self, row: int, cell: int) -> list[Location]:
        """Return the cells that were computed from a cell's value, and the next location of an unchanged cell."""
        starts, consumers = self._consumers
        number = int(self._first_cells[row]) + cell
        value = self.rows[row].value[cell]
        found = []
        for consumer_row, consumer_cell in consumers[starts[number] : starts[number + 1]].tolist():
            target = self.rows[consumer_row]
            selects = bool(target.operators) and _SELECTIONS.issuperset(target.operators)
            if not selects or target.value[consumer_cell] == value:
                found.append((consumer_row, consumer_cell))
        return found

    @cached_property
    def _first_cells(self) -> Array:
        """The number of each row's first cell, over all rows."""
        counts = [row.cells.size for row in self.rows]
        return np.cumsum([0, *counts])

    @cached_property
    def _consumers(self) -> tuple[Array, Array]:
        """The consumers of all cells, by cell: the first entry of each cell, and a row and a cell per entry."""
        targets, sources = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2), np.int64)]
        for number, row in enumerate(self.rows):
            cells = np.arange(row.cells.size)
            previous = self.find_previous_locations(number)
            unchanged = ~row.computed & (previous[:, 0] >= 0)
            edges = row.sources[row.computed[row.sources[:, 0]]]
            for target, source in ((cells[unchanged], previous[unchanged]), (edges[:, 0], edges[:, 1:])):
                targets.append(np.stack((np.full(target.size, number), target), axis=1))
                sources.append(source)
        target, source = np.concatenate(targets), np.concatenate(sources)
        numbers = self._first_cells[source[:, 0]] + source[:, 1]
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(self._first_cells[-1] + 1))
        return starts, target[order]

    def find_previous_locations(self, row: int) -> Array:
        """Return the previous location of each unchanged cell, shape (cells, 2): row and cell, or -1."""
        row_data = self.rows[row]
        locations = np.full((row_data.cells.size, 2), -1, np.int64)
        if row_data.is_input:
            return locations
        nodes = row_data.nodes
        unchanged = np.flatnonzero(~row_data.computed & (nodes > 0))
        if not unchanged.size:
            return locations
        storage = np.full(unchanged.size, row_data.storage.number)
        rows, cells = self._rows.value_locator.find(
            nodes[unchanged], np.full(unchanged.size, row), storage, row_data.cells[unchanged]
        )
        for at in np.unique(rows[(rows >= 0) & (rows < row)]).tolist():
            matches = rows == at
            locations[unchanged[matches], 0] = at
            locations[unchanged[matches], 1] = np.searchsorted(self.rows[at].cells, cells[matches])
        return locations

    def _find_last_location(self, node: int, row: int, storage: int, cell: int) -> Location | None:
        """Return the last row before a given one that contains a node, and the cell in that row."""
        rows, cells = self._rows.value_locator.find(*(np.array([each]) for each in (node, row, storage, cell)))
        if rows[0] < 0:
            return None
        return int(rows[0]), int(np.searchsorted(self.rows[rows[0]].cells, cells[0]))

    def build_term(self, row: int, cell: int) -> CellTerm | None:
        """Return the term that computed a cell's value; None for an unchanged cell."""
        row_data = self.rows[row]
        if not row_data.computed[cell]:
            return None
        write = row_data.find_defining_write(cell)
        group = int(self._graph.definitions.group[np.searchsorted(self._graph.definitions.write, write)])
        return self._build_term(int(self.provenance.writes.node[write]), None, row, cell, group)

    def _build_term(self, node: int, operand: object, row: int, cell: int, group: int) -> CellTerm:
        row_data = self.rows[row]
        if not node:
            return CellTerm("", operand, (), None)  # type: ignore[arg-type]
        launch, number = self.provenance.find_node_launch(node)
        value_node = launch.trace.node(number)
        node_group = int(self._graph.group_of_node(np.array([node]))[0])
        if (
            not value_node.operator
            or (node_group >= 0 and node_group != group)
            or bool(row_data.operation_counts[cell] == 0)
        ):
            return CellTerm(
                "",
                value_node.value,
                (),
                self._find_last_location(node, row, row_data.storage.number, int(row_data.cells[cell])),
            )
        global_nodes = self.provenance.to_global_nodes(launch, value_node.sources)
        operands = zip(global_nodes, value_node.operands, strict=True)
        return CellTerm(
            value_node.operator,
            value_node.value,
            tuple(self._build_term(*each, row, cell, group) for each in operands),
            None,
        )

    # Cells by name.

    def cell_at(self, moment: int, name: str, element: int, *, block: int = 0) -> Location | None:
        """Return the row and cell that show an array's element at a moment.

        Parameters
        ----------
        name : str
            The name of the array.
        block : int
            The block of a shared array.

        Returns
        -------
        (int, int) or None
            The last such row, and the cell; None if no row shows it.
        """
        for number in range(len(self.rows) - 1, -1, -1):
            row = self.rows[number]
            storage = row.storage
            if row.first >= moment or storage.name != name or not 0 <= element < storage.extent:
                continue
            start = block * storage.section if storage.space != "global" and storage.space != "constant" else 0
            cell = start + element
            at = int(np.searchsorted(row.cells, cell))
            if at < row.cells.size and row.cells[at] == cell and row.moment[at] < moment:
                return number, at
        return None


def _collect_reachable(start: Location, find_next: Callable[[int, int], list[Location]]) -> set[Location]:
    """Return all rows and cells to which a function leads from a start, including the start."""
    reached: set[Location] = set()
    pending = [start]
    while pending:
        location = pending.pop()
        if location not in reached:
            reached.add(location)
            pending += find_next(*location)
    return reached
