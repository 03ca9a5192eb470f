"""The lanes of a trace: lookup of masks, and of the launch, block and thread of lanes."""

from __future__ import annotations

from typing import Any

from gpu.recording.data import TraceData
from gpu.recording.packing import Array
from gpu.recording.tables import BatchRow
from gpu.recording.types import TraceLaunch


class TraceLanes:
    """The lanes of a trace, numbered within their batch, block by block."""

    def __init__(self, data: TraceData) -> None:
        self._data = data
        self._batches = [BatchRow(*row) for row in data.batches.tolist()]

    def mask_lanes(self, number: int) -> Array:
        """Return the lanes of a recorded mask, ascending."""
        return self._data.masks.lanes(number)

    def launch(self, batch: int) -> TraceLaunch:
        """Return the launch that a batch belongs to."""
        return self._data.launches[self._batches[batch].launch]

    def count(self, batch: int) -> int:
        """Return the number of lanes of a batch."""
        return self._batches[batch].blocks * self.per_block(batch)

    def per_block(self, batch: int) -> int:
        """Return the number of lanes per block of a batch: its threads, padded to whole warps."""
        return self.launch(batch).lanes_per_block

    def first_block(self, batch: int) -> int:
        """Return the number of a batch's first block in the grid."""
        return self._batches[batch].first

    def block(self, batch: int, lanes: Any) -> Any:
        """Return the numbers in the grid of the blocks of a batch's lanes."""
        return self._batches[batch].first + lanes // self.per_block(batch)

    def threads(self, batch: int, lanes: Array) -> tuple[Array, Array]:
        """Return the block numbers in the grid, and the thread numbers in the block, of a batch's lanes."""
        return self.block(batch, lanes), lanes % self.per_block(batch)
