"""One memory of a trace: what it held, and the nodes of it, at any moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpu.simulator.trace.packing import Array

# So many written units lie between two moments that are kept.
_BETWEEN = 1 << 18


@dataclass(frozen=True, eq=False)
class TraceMemory:
    """A global array, a `__shared__` one of all blocks of a batch, or one of each thread of a batch; and its writes.

    Parameters
    ----------
    name : str
    space : str
        "global", "constant", "shared" or "local".
    size : int
        Bytes of the array; of one block's or one thread's.
    dtype : numpy.dtype
        The type of its elements, as far as one is known.
    blocks : int
        How many blocks have one.
    stride : int
        Bytes from one block's to the next one's. Of threads' own memory from one thread's to the next one's; 0 where
        the threads' lie side by side, element after element.
    lanes : int
        How many threads have one of their own; 0 for others.
    batch : int
        The batch that it belongs to; -1 for an array of the launch.
    unit : int
        Bytes of what the writes are counted in: the smallest element that was accessed.
    is_accessed : bool
        Whether anybody asked for what it holds.
    base : int
        The node of the first unit before anything was written, 0 for none.
    fill : int
        The byte that it was full of, where nobody gave it contents.
    initial : uint8 array or None
        What it was given.
    index, nodes : int32 arrays
        For each written unit its place and its node, oldest first.
    values : uint8 array, shape (units, unit)
        What was written there.
    borders : int32 array
        How many units were written before each write.
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
    _kept: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def total(self) -> int:
        """The bytes of all blocks or threads."""
        return (self.lanes or self.blocks) * (self.stride or self.size)

    def of_lane(self, lane: Any, element: Any, size: int) -> Any:
        """Return where an element of `size` bytes of a lane's own memory lies, counted in elements."""
        return lane * (self.stride // size) + element if self.stride else element * self.lanes + lane

    def content(self, write: int) -> Array:
        """Return all bytes just before a write, by its number; a copy."""
        end = self._end(write)
        start = end // _BETWEEN * _BETWEEN
        state = self._at(start).copy()
        self._apply(state, start, end)
        return state

    def last_write(self, places: Array, write: int) -> Array:
        """Return, for each place, the number of the unit that was last written there before a write; -1 for none."""
        end = self._end(write)
        if places.size == 1:
            found = np.flatnonzero(self.index[:end] == places[0])
            return found[-1:] if found.size else np.array([-1])
        newest = np.full(self.total // self.unit, -1)
        newest[self.index[:end]] = np.arange(end)
        return newest[places]

    def nodes_of(self, places: Array, write: int) -> Array:
        """Return the nodes of some places just before a write."""
        last = self.last_write(places, write)
        before = places + self.base if self.base else np.zeros_like(places)
        return np.where(last >= 0, self.nodes[last] if self.nodes.size else 0, before).astype(np.int64)

    def written(self, write: int, size: int) -> tuple[Array, Array]:
        """Return what a write of elements of `size` bytes wrote, as bytes a row, and the nodes."""
        start, end = self._end(write), self._end(write + 1)
        return self.values[start:end].reshape(-1, size), self.nodes[start : end : size // self.unit]

    def _end(self, write: int) -> int:
        return int(self.borders[write]) if write < self.borders.size else self.index.size

    @cached_property
    def _initial(self) -> Array:
        return np.full(self.total, self.fill, np.uint8) if self.initial is None else self.initial

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
        values = np.ascontiguousarray(self.values[start:end]).ravel().view(kind)
        state[:whole].view(kind)[self.index[start:end]] = values
