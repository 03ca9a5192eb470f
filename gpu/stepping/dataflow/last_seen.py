"""Where a value was last to be seen: the row and the cell that an edge starts from."""

from __future__ import annotations

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.dataflow.value_graph import ValueGraph
from gpu.stepping.provenance.provenance import Provenance


class LastSeen:
    """Finds values in rows.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    graph : ValueGraph
    rows : Outlines
    """

    def __init__(self, provenance: Provenance, columns: Columns, graph: ValueGraph, rows: Outlines) -> None:
        self._provenance, self._columns, self._graph = provenance, columns, graph
        self._steps = len(provenance.scopes) + 2
        self._count = len(rows) + 1
        storage, step = (np.array([getattr(row, name) for row in rows.all], np.int64) for name in ("storage", "step"))
        # The rows of each storage, as they stand; and the same as keys, by storage and step and by storage and row.
        self._rows = np.lexsort((np.arange(len(rows)), storage))
        self._by_step = self._key_of_step(storage[self._rows], step[self._rows])
        self._by_row = storage[self._rows] * self._count + self._rows
        self._row_of_write = rows.row_of_write
        self._shown = np.isin(np.arange(len(provenance.storages.all)), storage)
        self._held = self._holdings()

    def _key_of_step(self, storage: Array, step: Array) -> Array:
        key: Array = storage * self._steps + step + 1
        return key

    def _holdings(self) -> tuple[Array, ...]:
        """Return node, storage, cell and the range of rows of the storage in which the node is in the cell, by node."""
        writes = self._provenance.writes
        rows = np.flatnonzero(self._shown[writes.storage])
        order = rows[np.lexsort((rows, writes.cell[rows], writes.storage[rows]))]
        storage, cell, step = writes.storage[order], writes.cell[order], writes.step[order]
        follows = (storage[1:] == storage[:-1]) & (cell[1:] == cell[:-1])
        after = np.full(order.size, self._steps - 2)
        after[:-1][follows] = step[1:][follows]
        # What a launch found in an array stays until the first write.
        nodes = np.unique(self._graph.sources[1])
        given, element = self._columns.of_inputs(nodes)
        launch = np.array([each.launch for each in self._provenance.inputs] or [0])[self._columns.input_of(nodes)]
        first = np.array([storage.launch for storage in self._provenance.storages.all] or [0])
        kept = (given >= 0) & (launch == first[given])
        launch = launch[kept]
        nodes, given, element = nodes[kept], given[kept], element[kept]
        since = np.array(self._provenance.first_steps or [0])[launch]
        until = self._first_after(storage, cell, step, given, element, since)
        node = np.concatenate((writes.node[order], nodes))
        storage, cell = np.concatenate((storage, given)), np.concatenate((cell, element))
        first = np.searchsorted(self._by_step, self._key_of_step(storage, np.concatenate((step, since))))
        last = np.searchsorted(self._by_step, self._key_of_step(storage, np.concatenate((after, until))))
        seen = np.flatnonzero((node > 0) & (first < last))
        seen = seen[np.argsort(node[seen], kind="stable")]
        return node[seen], storage[seen], cell[seen], first[seen], last[seen]

    def _first_after(
        self, storage: Array, cell: Array, step: Array, given: Array, element: Array, since: Array
    ) -> Array:
        """Return the step of the first write to each given cell after a step; the end where there is none."""
        width = max(int(cell.max(initial=0)), int(element.max(initial=0))) + 1
        keys = (storage * width + cell) * self._steps + step + 1
        at = np.searchsorted(keys, (given * width + element) * self._steps + since + 1, side="right")
        inside = np.minimum(at, max(keys.size - 1, 0))
        if not keys.size:
            return np.full(given.size, self._steps - 2)
        same = (at < keys.size) & (storage[inside] == given) & (cell[inside] == element)
        return np.where(same, step[inside], self._steps - 2)

    def find(self, node: Array, row: Array, storage: Array, cell: Array) -> tuple[Array, Array]:
        """Return for each node the last row before a given one that shows it, and the cell.

        Of several cells the one of the same storage counts, then the nearest to that of `cell`. A value that no earlier
        row shows is in the row that made it.
        """
        found_row, found_cell = self._makers(node)
        # Lanes that read one value in one row have the same candidates: of a constant in thousands of cells, many.
        asked, which = np.unique(node * self._count + row, return_inverse=True)
        pair, shown, held = self._newest(asked // self._count, asked % self._count)
        if not pair.size:
            return found_row, found_cell
        _, storages, cells, _, _ = self._held
        # The candidates of a pair are of one row, and so of one storage, with their columns ascending: the nearest
        # begins or ends where the column sought would stand.
        column, sought = self._columns.of(storages[held], cells[held]), self._columns.of(storage, cell)
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
        nodes, storages, _, first, last = self._held
        low, high = np.searchsorted(nodes, node), np.searchsorted(nodes, node, side="right")
        counts = high - low
        pair = np.repeat(np.arange(node.size), counts)
        held = np.arange(pair.size) - (np.cumsum(counts) - counts)[pair] + low[pair]
        before = np.searchsorted(self._by_row, storages[held] * self._count + row[pair]) - 1
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
        return row, np.where(of >= 0, self._provenance.writes.cell[of], 0)
