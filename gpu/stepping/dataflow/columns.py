"""The columns of cells: blocks stand side by side, under their sections of the input where sizes allow."""

from __future__ import annotations

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.provenance.provenance import Provenance


class Columns:
    """Gives cells their columns.

    Parameters
    ----------
    provenance : Provenance
    """

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        storages = provenance.storages.all
        self._section = np.array([max(storage.section, 1) for storage in storages] or [1])
        width = self._width()
        blocks = [-(-storage.count // max(storage.section, 1)) for storage in storages]
        self._stride = np.array(
            [
                max(storage.section, -(-width // number)) if number > 1 else storage.section
                for storage, number in zip(storages, blocks, strict=True)
            ]
            or [1]
        )
        self._starts = np.array([each.first for each in provenance.inputs] or [0])

    def _width(self) -> int:
        """Return how many elements the first array has that the program was given."""
        given = [self._provenance.storages[number] for number in self._provenance.read]
        arrays = [storage for storage in given if storage.space == "global"] or given
        return arrays[0].count if arrays else 0

    def of(self, storage: Array, cell: Array) -> Array:
        """Return the column of each cell."""
        block, within = np.divmod(cell, self._section[storage])
        found: Array = block * self._stride[storage] + within
        return found

    def of_inputs(self, node: Array) -> tuple[Array, Array]:
        """Return the storage and the cell of nodes that a launch found in an array; -1 for the storage of any other."""
        storage, cell = np.full(node.size, -1), np.zeros(node.size, np.int64)
        which = np.searchsorted(self._starts, node, side="right") - 1
        for number in np.unique(which):
            if 0 <= number < len(self._provenance.inputs):
                found = self._provenance.inputs[number]
                rows = np.flatnonzero((which == number) & (node - found.first < found.elements.size))
                storage[rows], cell[rows] = found.storage, found.elements[node[rows] - found.first]
        return storage, cell

    def input_of(self, node: Array) -> Array:
        """Return the number of the inputs that each node is of; -1 for a node of an operation."""
        which = np.searchsorted(self._starts, node, side="right") - 1
        sizes = np.array([each.elements.size for each in self._provenance.inputs] or [0])
        inside = (which >= 0) & (node - self._starts[which] < sizes[which])
        return np.where(inside, which, -1)
