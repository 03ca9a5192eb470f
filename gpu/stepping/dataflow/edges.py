"""The edges of a dataflow picture: from the cells of its rows to the sources of their values."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gpu.recording.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.dataflow.outlines import Outlines
from gpu.stepping.dataflow.value_graph import ValueGraph
from gpu.stepping.dataflow.value_locator import ValueLocator
from gpu.stepping.provenance.provenance import Provenance


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
