"""Where a value was last to be seen: the row and the cell that an edge starts from."""

from __future__ import annotations

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.columns import Columns
from gpu.stepping.history import History
from gpu.stepping.outlines import Outlines
from gpu.stepping.value_graph import ValueGraph


class LastSeen:
    """Finds values in rows.

    Parameters
    ----------
    history : History
    columns : Columns
    graph : ValueGraph
    rows : Outlines
    """

    def __init__(self, history: History, columns: Columns, graph: ValueGraph, rows: Outlines) -> None:
        self._history, self._columns, self._graph = history, columns, graph
        self._steps = len(history.scopes) + 2
        self._count = len(rows) + 1
        place, step = (np.array([getattr(row, name) for row in rows.all], np.int64) for name in ("place", "step"))
        # The rows of each place, as they stand; and the same as keys, by place and step and by place and row.
        self._rows = np.lexsort((np.arange(len(rows)), place))
        self._by_step = self._key_of_step(place[self._rows], step[self._rows])
        self._by_row = place[self._rows] * self._count + self._rows
        self._row_of_write = rows.row_of_write
        self._shown = np.isin(np.arange(len(history.places.all)), place)
        self._held = self._holdings()

    def _key_of_step(self, place: Array, step: Array) -> Array:
        key: Array = place * self._steps + step + 1
        return key

    def _holdings(self) -> tuple[Array, ...]:
        """Return node, place, cell and the range of rows of the place in which the node is in the cell, by node."""
        writes = self._history.writes
        rows = np.flatnonzero(self._shown[writes.place])
        order = rows[np.lexsort((rows, writes.cell[rows], writes.place[rows]))]
        place, cell, step = writes.place[order], writes.cell[order], writes.step[order]
        follows = (place[1:] == place[:-1]) & (cell[1:] == cell[:-1])
        after = np.full(order.size, self._steps - 2)
        after[:-1][follows] = step[1:][follows]
        # What a launch found in an array stays until the first write.
        nodes = np.unique(self._graph.sources[1])
        given, element = self._columns.of_inputs(nodes)
        launch = np.array([each.launch for each in self._history.inputs] or [0])[self._columns.input_of(nodes)]
        first = np.array([place.launch for place in self._history.places.all] or [0])
        kept = (given >= 0) & (launch == first[given])
        launch = launch[kept]
        nodes, given, element = nodes[kept], given[kept], element[kept]
        since = np.array(self._history.first_steps or [0])[launch]
        until = self._first_after(place, cell, step, given, element, since)
        node = np.concatenate((writes.node[order], nodes))
        place, cell = np.concatenate((place, given)), np.concatenate((cell, element))
        first = np.searchsorted(self._by_step, self._key_of_step(place, np.concatenate((step, since))))
        last = np.searchsorted(self._by_step, self._key_of_step(place, np.concatenate((after, until))))
        seen = np.flatnonzero((node > 0) & (first < last))
        seen = seen[np.argsort(node[seen], kind="stable")]
        return node[seen], place[seen], cell[seen], first[seen], last[seen]

    def _first_after(self, place: Array, cell: Array, step: Array, given: Array, element: Array, since: Array) -> Array:
        """Return the step of the first write to each given cell after a step; the end where there is none."""
        width = max(int(cell.max(initial=0)), int(element.max(initial=0))) + 1
        keys = (place * width + cell) * self._steps + step + 1
        at = np.searchsorted(keys, (given * width + element) * self._steps + since + 1, side="right")
        inside = np.minimum(at, max(keys.size - 1, 0))
        if not keys.size:
            return np.full(given.size, self._steps - 2)
        same = (at < keys.size) & (place[inside] == given) & (cell[inside] == element)
        return np.where(same, step[inside], self._steps - 2)

    def find(self, node: Array, row: Array, place: Array, cell: Array) -> tuple[Array, Array]:
        """Return for each node the last row before a given one that shows it, and the cell.

        Of several cells the one of the same place counts, then the nearest to that of `cell`. A value that no earlier
        row shows is in the row that made it.
        """
        found_row, found_cell = self._makers(node)
        # Lanes that read one value in one row have the same candidates: of a constant in thousands of cells, many.
        asked, which = np.unique(node * self._count + row, return_inverse=True)
        pair, shown, held = self._newest(asked // self._count, asked % self._count)
        if not pair.size:
            return found_row, found_cell
        _, places, cells, _, _ = self._held
        # The candidates of a pair are of one row, and so of one place, with their columns ascending: the nearest
        # begins or ends where the column sought would stand.
        column, sought = self._columns.of(places[held], cells[held]), self._columns.of(place, cell)
        order = np.lexsort((column, pair))
        pair, shown, held, column = (each[order] for each in (pair, shown, held, column))
        width = max(int(column.max()), int(sought.max(initial=0))) + 1
        at = np.searchsorted(pair * width + column, which * width + sought)
        left, right = np.maximum(at - 1, 0), np.minimum(at, pair.size - 1)
        near = np.where(np.abs(column[left] - sought) < np.abs(column[right] - sought), left, right)
        best = np.where(pair[left] != which, right, np.where(pair[right] != which, left, near))
        known = pair[best] == which
        found_row[known], found_cell[known] = shown[best[known]], cells[held[best[known]]]
        return found_row, found_cell

    def _newest(self, node: Array, row: Array) -> tuple[Array, Array, Array]:
        """Return for each node, by its number in the order given, the last row before a given one that shows it.

        A row that shows it in several cells comes once for each: number, row and holding.
        """
        nodes, places, _, first, last = self._held
        low, high = np.searchsorted(nodes, node), np.searchsorted(nodes, node, side="right")
        counts = high - low
        pair = np.repeat(np.arange(node.size), counts)
        held = np.arange(pair.size) - (np.cumsum(counts) - counts)[pair] + low[pair]
        before = np.searchsorted(self._by_row, places[held] * self._count + row[pair]) - 1
        at = np.minimum(before, last[held] - 1)
        seen = at >= first[held]
        pair, held, shown = pair[seen], held[seen], self._rows[at[seen]]
        newest = np.full(node.size, -1)
        np.maximum.at(newest, pair, shown)
        kept = shown == newest[pair]
        return pair[kept], shown[kept], held[kept]

    def _makers(self, node: Array) -> tuple[Array, Array]:
        """Return the row and the cell in which each node was made; -1 for what no row made."""
        of = np.append(self._graph.kept, -1)[self._graph.operation[node]]
        row = np.where(of >= 0, self._row_of_write[of], -1)
        return row, np.where(of >= 0, self._history.writes.cell[of], 0)
