"""One memory of a trace: what it held, and the nodes of it, at any moment."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.simulator.trace.packing import Array

# So many written units lie between two moments that are kept.
_BETWEEN = 1 << 18


class MemoryLog:
    """A memory's writes, and what they add up to.

    Parameters
    ----------
    initial : uint8 array
        What it held before the first write.
    unit : int
        Bytes of what the log counts in; 0 where nobody accessed it.
    index, values, nodes : arrays
        For each written unit its place, its bytes and its node, oldest first.
    borders : array
        How many units were written before each write.
    base : int
        The node of the first unit before anything was written, 0 for none.
    """

    def __init__(
        self, initial: Array, unit: int, index: Array, values: Array, nodes: Array, borders: Array, base: int
    ) -> None:
        self.unit = unit or 1
        self._initial = initial
        self.index, self.nodes = index, nodes
        self.borders = np.append(borders, index.size)
        self.values = values.reshape(-1, self.unit)
        self._base = base
        self._kept: dict[int, Array] = {}

    def content(self, write: int) -> Array:
        """Return all bytes just before a write, by its number; a copy."""
        end = int(self.borders[write])
        start = end // _BETWEEN * _BETWEEN
        state = self._at(start).copy()
        self._apply(state, start, end)
        return state

    def _at(self, position: int) -> Array:
        if position == 0:
            return self._initial
        if position not in self._kept:
            state = self._at(position - _BETWEEN).copy()
            self._apply(state, position - _BETWEEN, position)
            self._kept[position] = state
        return self._kept[position]

    def _apply(self, state: Array, start: int, end: int) -> None:
        whole = state.size // self.unit * self.unit
        kind = f"V{self.unit}" if self.unit not in (1, 2, 4, 8) else f"u{self.unit}"
        values = np.ascontiguousarray(self.values[start:end]).reshape(-1).view(kind)
        state[:whole].view(kind)[self.index[start:end]] = values

    def last_write(self, places: Array, write: int) -> Array:
        """Return, for each place, the position in the log of its last write before a write; -1 where there is none."""
        end = int(self.borders[write])
        if places.size == 1:
            found = np.flatnonzero(self.index[:end] == places[0])
            return found[-1:] if found.size else np.array([-1])
        newest = np.full(self._initial.size // self.unit, -1)
        newest[self.index[:end]] = np.arange(end)
        return newest[places]

    def nodes_of(self, places: Array, write: int) -> Array:
        """Return the nodes of some places just before a write."""
        last = self.last_write(places, write)
        before = places + self._base if self._base else np.zeros_like(places)
        return np.where(last >= 0, self.nodes[last] if self.nodes.size else 0, before).astype(np.int64)

    def written(self, write: int, size: int) -> tuple[Any, Any]:
        """Return what a write of elements of `size` bytes wrote, as bytes a row, and the nodes."""
        start, end = int(self.borders[write]), int(self.borders[write + 1])
        return self.values[start:end].reshape(-1, size), self.nodes[start : end : size // self.unit]
