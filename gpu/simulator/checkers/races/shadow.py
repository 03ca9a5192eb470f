"""Shadow memory of the race checker: for each cell, its last writer, readers and atomic operations.

A record is one int64: a thread in the upper 32 bits and the number of its event in the lower bits. One `take` loads a
record, and one `maximum` selects among several. Zero means no record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.state.batch import Geometry
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access

Array = npt.NDArray[Any]

EVENT = (1 << 31) - 1
# Set in a record if several lanes of a warp wrote the same value in one instruction.
SEVERAL = 1 << 31
LAST_THREAD = (1 << 31) - 2


def high_records(threads: Array) -> Array:
    """Return records of threads without events, ordered so that the highest thread has the largest record."""
    records: Array = (threads + 1) << 32
    return records


def low_records(threads: Array) -> Array:
    """Return records of threads without events, ordered so that the lowest thread has the largest record."""
    records: Array = (LAST_THREAD - threads + 1) << 32
    return records


def extract_threads(records: Array, slot: str) -> Array:
    """Return the threads in the records of a slot."""
    numbers: Array = (records >> 32) - 1
    return LAST_THREAD - numbers if slot.endswith("low") else numbers


_FEWEST = 64
"""The least number of cells for which a slice is worth the search for it."""


def find_span(cells: Array) -> slice | None:
    """Return the slice that selects the same cells in the same order; None if there is none, or it costs more."""
    if cells.size < _FEWEST:
        return None
    first, last, step = int(cells[0]), int(cells[-1]), int(cells[1] - cells[0])
    if step <= 0 or last - first != step * (cells.size - 1) or not (cells[1:] - cells[:-1] == step).all():
        return None
    return slice(first, last + 1, step)


class Shadow:
    """The records of one array in global memory, or of one shared array for all blocks of a batch.

    A cell has the size of the smallest access so far. As long as all accesses are words, one record describes a word;
    after the first smaller access, different bytes of a word have separate records.

    Parameters
    ----------
    memory : FlatMemory
        The memory that the records describe.
    blocks : int
        The number of equal parts of the memory, one per block; 1 for global memory.
    cell : int
        The size of a cell in bytes, a power of two.
    """

    def __init__(self, memory: FlatMemory, blocks: int, cell: int) -> None:
        # A cell is part of one block's memory.
        self.cell_size = math.gcd(cell, memory.data.size // blocks) if blocks > 1 else cell
        self.block_count = blocks
        self._bytes = memory.data.size
        self._slots: dict[str, Array] = {}
        self._base: Array | None = None
        self._strong_size = 0
        self.has_mixed_sizes = False
        """Whether strong accesses of different sizes have accessed the memory."""

    def note_strong_size(self, size: int) -> None:
        """Note the size of a strong access, in bytes."""
        self.has_mixed_sizes |= self._strong_size not in (0, size)
        self._strong_size = size

    def get(self, slot: str) -> Array | None:
        """Return the records of a slot, one per cell, or None if it has none."""
        return self._slots.get(slot)

    def get_or_create(self, slot: str) -> Array:
        """Return the records of a slot, one per cell; create them if necessary."""
        if slot not in self._slots:
            self._slots[slot] = np.zeros(-(-self._bytes // self.cell_size), np.int64)
        return self._slots[slot]

    def slots(self) -> Iterator[tuple[str, Array]]:
        """Yield the name of each slot and its records, one per cell."""
        yield from self._slots.items()

    def replace_slots(self, slots: dict[str, Array]) -> None:
        """Replace all slots; each has one record per cell."""
        self._slots = slots

    def clear_blocks(self, blocks: Array) -> None:
        """Clear the records of some blocks; `block_count` has one bool per block."""
        if blocks.all():
            self._slots.clear()
            return
        for records in self._slots.values():
            records.reshape(self.block_count, -1)[blocks] = 0

    def cells(self, geometry: Geometry, access: Access) -> tuple[Array, Array]:
        """Return the lanes of an access and the cells that they access: one pair for each cell of each lane.

        If all lanes read one element of global memory, only the first and the last lane are returned: if any two of the
        lanes are in different blocks or warps, so are these two.
        """
        if access.size < self.cell_size:
            self._split(access.size)
        element, mask = access.element, access.mask
        if isinstance(element, np.ndarray):
            lanes = geometry.lane_numbers if mask.full else mask.lanes
            cells = (element if mask.full else element.take(lanes)).astype(np.intp, copy=False)
        else:
            lanes = mask.lanes
            if self.block_count == 1 and access.site.action != "write" and mask.count > 1:
                lanes = lanes[[0, -1]]
            cells = np.empty(lanes.size, np.intp)
            cells.fill(element)
        count = access.size // self.cell_size
        cells = self._flatten(geometry, lanes, cells, count)
        if count > 1:
            lanes = np.repeat(lanes, count)
            cells = (cells[:, None] + np.arange(count)).ravel()
        return lanes, cells

    def all_cells(self, geometry: Geometry, access: Access) -> tuple[Array, Array]:
        """Return all lanes of an access and the first cell that each of them accesses."""
        lanes = access.mask.lanes
        cells = self._flatten(geometry, lanes, access.elements, access.size // self.cell_size)
        return lanes, cells

    def _flatten(self, geometry: Geometry, lanes: Array, elements: Array, count: int) -> Array:
        """Return the first of `count` cells of each element."""
        cells = elements * count if count > 1 else elements
        if self.block_count > 1:
            if self._base is None:
                self._base = geometry.block_of_lane * (self._bytes // self.block_count // self.cell_size)
            cells = cells + (self._base if lanes.size == self._base.size else self._base.take(lanes))
        return cells

    def _split(self, cell: int) -> None:
        """Split all cells into cells of the given size."""
        self._slots = {slot: np.repeat(records, self.cell_size // cell) for slot, records in self._slots.items()}
        self.cell_size = cell
        self._base = None
