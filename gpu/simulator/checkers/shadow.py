"""What the race checker remembers of a memory: for each cell of it who wrote, read and changed it last.

A record is one number, a thread and the event that it took part in, so that one `take` finds it and one `maximum`
chooses among several. Zero is no record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.batch import Geometry
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.observe import Access

Array = npt.NDArray[Any]

EVENT = (1 << 31) - 1
# Marks a record of several lanes of a warp that wrote the same value in one instruction.
SEVERAL = 1 << 31
_LAST_THREAD = (1 << 31) - 2


def high_records(threads: Array) -> Array:
    """Return the records of threads, event left out, of which the largest is that of the highest thread."""
    records: Array = (threads + 1) << 32
    return records


def low_records(threads: Array) -> Array:
    """Return the records of threads, event left out, of which the largest is that of the lowest thread."""
    records: Array = (_LAST_THREAD - threads + 1) << 32
    return records


def thread_of(records: Array, slot: str) -> Array:
    """Return the threads of the records of a slot."""
    numbers: Array = (records >> 32) - 1
    return _LAST_THREAD - numbers if slot.endswith("low") else numbers


class Shadow:
    """The records of one memory, or of one array of each block of a batch.

    A cell is as large as the smallest access so far: threads that touch different bytes of a word are told apart as
    soon as one of them touches less than the word, and until then a record stands for a whole word.

    Parameters
    ----------
    memory : FlatMemory
    blocks : int
        How many equal parts the memory has, one a block; 1 for a memory of the grid.
    cell : int
        The bytes of a cell, a power of two.
    """

    def __init__(self, memory: FlatMemory, blocks: int, cell: int) -> None:
        self.cell = cell
        self.blocks = blocks
        self._bytes = memory.data.size
        self._slots: dict[str, Array] = {}
        self._base: Array | None = None

    def get(self, slot: str) -> Array | None:
        """Return the records of a slot, one a cell, or None where it has none."""
        return self._slots.get(slot)

    def slot(self, slot: str) -> Array:
        """Return the records of a slot, one a cell."""
        if slot not in self._slots:
            self._slots[slot] = np.zeros(-(-self._bytes // self.cell), np.int64)
        return self._slots[slot]

    def slots(self) -> Iterator[tuple[str, Array]]:
        """Yield each slot and its records, one a cell."""
        yield from self._slots.items()

    def forget(self, blocks: Array) -> None:
        """Drop the records of some blocks: bool, one a block."""
        if blocks.all():
            self._slots.clear()
            return
        for records in self._slots.values():
            records.reshape(self.blocks, -1)[blocks] = 0

    def cells(self, geometry: Geometry, access: Access) -> tuple[Array, Array]:
        """Return the lanes of an access and the cells that they touch: one pair for each cell of each lane.

        Where all lanes read one element, the first lane and the last stand for all: if any two of the lanes are in
        different blocks or warps, then these two are.
        """
        if access.size < self.cell:
            self._split(access.size)
        element, mask = access.element, access.mask
        if isinstance(element, np.ndarray):
            lanes = geometry.lane_numbers if mask.full else mask.lanes
            cells = (element if mask.full else element.take(lanes)).astype(np.intp, copy=False)
        else:
            lanes = mask.lanes
            if self.blocks == 1 and access.site.action != "write" and mask.count > 1:
                lanes = lanes[[0, -1]]
            cells = np.full(lanes.size, element, np.intp)
        count = access.size // self.cell
        if count > 1:
            cells = cells * count
        if self.blocks > 1:
            if self._base is None:
                self._base = geometry.block_of_lane * (self._bytes // self.blocks // self.cell)
            cells = cells + (self._base if lanes.size == self._base.size else self._base.take(lanes))
        if count > 1:
            lanes = np.repeat(lanes, count)
            cells = (cells[:, None] + np.arange(count)).ravel()
        return lanes, cells

    def _split(self, cell: int) -> None:
        """Make cells smaller."""
        self._slots = {slot: np.repeat(records, self.cell // cell) for slot, records in self._slots.items()}
        self.cell = cell
        self._base = None
