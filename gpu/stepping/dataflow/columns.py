"""The columns of cells: blocks are side by side, below their sections of the input if sizes permit."""

from __future__ import annotations

import numpy as np

from gpu.recording.packing import Array
from gpu.stepping.provenance.provenance import Provenance


class Columns:
    """Map cells to columns.

    Parameters
    ----------
    provenance : Provenance
    """

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        storages = provenance.storages.entries
        self._section = np.array([max(storage.section, 1) for storage in storages] or [1])
        width = self._count_input_elements()
        blocks = [-(-storage.count // max(storage.section, 1)) for storage in storages]
        self._stride = np.array(
            [
                max(storage.section, -(-width // number)) if number > 1 else storage.section
                for storage, number in zip(storages, blocks, strict=True)
            ]
            or [1]
        )
        self._starts = np.array([each.first for each in provenance.inputs] or [0])

    def _count_input_elements(self) -> int:
        """Return the number of elements of the program's first input array."""
        inputs = [self._provenance.storages[number] for number in self._provenance.first_reading_launch]
        arrays = [storage for storage in inputs if storage.space == "global"] or inputs
        return arrays[0].count if arrays else 0

    def find_columns(self, storage: Array, cell: Array) -> Array:
        """Return the column of each cell."""
        block, offset = np.divmod(cell, self._section[storage])
        column: Array = block * self._stride[storage] + offset
        return column

    def find_input_cells(self, node: Array) -> tuple[Array, Array]:
        """Return the storage and the cell of nodes that are inputs of a launch; the storage of any other node is -1."""
        storage, cell = np.full(node.size, -1), np.zeros(node.size, np.int64)
        input_number = np.searchsorted(self._starts, node, side="right") - 1
        for number in np.unique(input_number):
            if 0 <= number < len(self._provenance.inputs):
                inputs = self._provenance.inputs[number]
                rows = np.flatnonzero((input_number == number) & (node - inputs.first < inputs.elements.size))
                storage[rows], cell[rows] = inputs.storage, inputs.elements[node[rows] - inputs.first]
        return storage, cell

    def find_input_indices(self, node: Array) -> Array:
        """Return the index of the inputs that contain each node; -1 for an operation's node."""
        input_number = np.searchsorted(self._starts, node, side="right") - 1
        sizes = np.array([each.elements.size for each in self._provenance.inputs] or [0])
        inside = (input_number >= 0) & (node - self._starts[input_number] < sizes[input_number])
        return np.where(inside, input_number, -1)
