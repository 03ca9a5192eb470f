"""The rows and cells of a dataflow picture that contain a value.

An edge starts at the last row and cell that contained the value.
"""

from __future__ import annotations

import numpy as np

from gpu.recording.packing import Array
from gpu.stepping.dataflow.provenance import Provenance
from gpu.stepping.dataflow.value_graph import Columns, ValueGraph


class ValueLocator:
    """Find the rows and cells that contain a value.

    Parameters
    ----------
    storage, step : int arrays
        The number of each row's storage, and the row's last program step.
    row_of_write : int array
        For each write the row that it defines a value in; -1 for none.
    """

    def __init__(
        self,
        provenance: Provenance,
        columns: Columns,
        graph: ValueGraph,
        storage: Array,
        step: Array,
        row_of_write: Array,
    ) -> None:
        self._provenance, self._columns, self._graph = provenance, columns, graph
        self._step_limit = len(provenance.scopes) + 2
        self._row_limit = storage.size + 1
        # The rows of each storage, in order, and the same as sort keys: by storage and step, and by storage and row.
        self._rows = np.lexsort((np.arange(storage.size), storage))
        self._step_keys = self._compute_step_key(storage[self._rows], step[self._rows])
        self._row_keys = storage[self._rows] * self._row_limit + self._rows
        self._row_of_write = row_of_write
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
