"""Memories of a trace: their contents and nodes at any write."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpu.recording.packing import Array

# The number of written units between two cached states.
_BETWEEN = 1 << 18


@dataclass(frozen=True, eq=False)
class TraceMemory:
    """A global array, a `__shared__` array of all blocks of a batch, or a local array of all its threads; with writes.

    Parameters
    ----------
    name : str
        The array's name.
    space : str
        "global", "constant", "shared" or "local".
    size : int
        Bytes of the array, per block or thread.
    dtype : numpy.dtype
        The type of its elements if it is known, else uint8.
    blocks : int
        The number of blocks with such an array; 1 for global and local memory.
    stride : int
        The distance in bytes between the arrays of consecutive blocks, or of consecutive threads of a local array; 0 if
        the elements of a local array are interleaved by thread.
    lanes : int
        The number of lanes with such an array; 0 if the memory is not local.
    batch : int
        The batch that it belongs to; -1 for an array of the launch.
    unit : int
        Bytes per unit of the write log: the size of the smallest element that was accessed.
    is_accessed : bool
        Whether any element was accessed.
    base : int
        The node of the first unit's initial value, 0 for none.
    fill : int
        The initial value of all bytes if `initial` is None.
    initial : uint8 array or None
        The initial content.
    index, nodes : int32 arrays
        The unit and the node of each logged unit, oldest first.
    values : uint8 array, shape (units, unit)
        The bytes written to each.
    borders : int32 array
        The number of logged units before each write.
    """

    name: str
    space: str
    size: int
    dtype: np.dtype[Any]
    blocks: int
    stride: int
    lanes: int
    batch: int
    unit: int
    is_accessed: bool
    base: int
    fill: int
    initial: Array | None
    index: Array
    nodes: Array
    values: Array
    borders: Array
    _states: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def total_bytes(self) -> int:
        """The size for all blocks or threads, in bytes."""
        return (self.lanes or self.blocks) * (self.stride or self.size)

    def lane_element_index(self, lane: Any, element: Any, size: int) -> Any:
        """Return the index of a lane's element of `size` bytes, counted over the local memory of all lanes."""
        return lane * (self.stride // size) + element if self.stride else element * self.lanes + lane

    def content(self, write: int) -> Array:
        """Return a copy of all bytes just before a write, by its number."""
        end = self._end(write)
        start = end // _BETWEEN * _BETWEEN
        state = self._at(start).copy()
        self._apply(state, start, end)
        return state

    def find_last_writes(self, places: Array, write: int) -> Array:
        """Return for each unit the index of its last log entry before a write; -1 for none."""
        end = self._end(write)
        if places.size == 1:
            entries = np.flatnonzero(self.index[:end] == places[0])
            return entries[-1:] if entries.size else np.array([-1])
        newest = np.full(self.total_bytes // self.unit, -1)
        newest[self.index[:end]] = np.arange(end)
        return newest[places]

    def find_nodes(self, places: Array, write: int) -> Array:
        """Return the nodes of some units just before a write."""
        last = self.find_last_writes(places, write)
        before = places + self.base if self.base else np.zeros_like(places)
        return np.where(last >= 0, self.nodes[last] if self.nodes.size else 0, before).astype(np.int64)

    def read_write(self, write: int, size: int) -> tuple[Array, Array]:
        """Return the bytes, shape (elements, size), and the nodes of a write of elements of `size` bytes."""
        start, end = self._end(write), self._end(write + 1)
        return self.values[start:end].reshape(-1, size), self.nodes[start : end : size // self.unit]

    def _end(self, write: int) -> int:
        return int(self.borders[write]) if write < self.borders.size else self.index.size

    @cached_property
    def _initial(self) -> Array:
        return np.full(self.total_bytes, self.fill, np.uint8) if self.initial is None else self.initial

    def _at(self, position: int) -> Array:
        if position == 0:
            return self._initial
        if position not in self._states:
            state = self._at(position - _BETWEEN).copy()
            self._apply(state, position - _BETWEEN, position)
            self._states[position] = state
        return self._states[position]

    def _apply(self, state: Array, start: int, end: int) -> None:
        size = state.size // self.unit * self.unit
        kind = f"V{self.unit}" if self.unit not in (1, 2, 4, 8) else f"u{self.unit}"
        values = np.ascontiguousarray(self.values[start:end]).ravel().view(kind)
        state[:size].view(kind)[self.index[start:end]] = values
