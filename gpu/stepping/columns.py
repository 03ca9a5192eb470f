"""The columns of cells: blocks stand side by side, under their sections of the input where sizes allow."""

from __future__ import annotations

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.history import History


class Columns:
    """Gives cells their columns.

    Parameters
    ----------
    history : History
    """

    def __init__(self, history: History) -> None:
        self._history = history
        places = history.places.all
        self._section = np.array([max(place.section, 1) for place in places] or [1])
        width = self._width()
        blocks = [-(-place.count // max(place.section, 1)) for place in places]
        self._stride = np.array(
            [
                max(place.section, -(-width // number)) if number > 1 else place.section
                for place, number in zip(places, blocks, strict=True)
            ]
            or [1]
        )
        self._starts = np.array([each.first for each in history.inputs] or [0])

    def _width(self) -> int:
        """Return how many elements the first array has that the program was given."""
        given = [self._history.places[number] for number in self._history.read]
        arrays = [place for place in given if place.space == "global"] or given
        return arrays[0].count if arrays else 0

    def of(self, place: Array, cell: Array) -> Array:
        """Return the column of each cell."""
        block, within = np.divmod(cell, self._section[place])
        found: Array = block * self._stride[place] + within
        return found

    def of_inputs(self, node: Array) -> tuple[Array, Array]:
        """Return the place and the cell of nodes that a launch found in an array; -1 for the place of any other."""
        place, cell = np.full(node.size, -1), np.zeros(node.size, np.int64)
        which = np.searchsorted(self._starts, node, side="right") - 1
        for number in np.unique(which):
            if 0 <= number < len(self._history.inputs):
                found = self._history.inputs[number]
                rows = np.flatnonzero((which == number) & (node - found.first < found.elements.size))
                place[rows], cell[rows] = found.place, found.elements[node[rows] - found.first]
        return place, cell

    def input_of(self, node: Array) -> Array:
        """Return the number of the inputs that each node is of; -1 for a node of an operation."""
        which = np.searchsorted(self._starts, node, side="right") - 1
        sizes = np.array([each.elements.size for each in self._history.inputs] or [0])
        inside = (which >= 0) & (node - self._starts[which] < sizes[which])
        return np.where(inside, which, -1)
