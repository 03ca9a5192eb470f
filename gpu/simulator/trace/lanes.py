"""The lanes of a trace: which ones a mask has, and whose they are."""

from __future__ import annotations

from typing import Any

from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.tables import BatchRow
from gpu.simulator.trace.types import TraceLaunch


class TraceLanes:
    """The lanes of a trace, numbered within their batch: blocks that ran in lockstep, one after the other.

    Parameters
    ----------
    data : TraceData
    """

    def __init__(self, data: TraceData) -> None:
        self._data = data
        self._batches = [BatchRow(*row) for row in data.batches.tolist()]

    def of_mask(self, number: int) -> Array:
        """Return the lanes of a recorded mask, ascending."""
        return self._data.masks.lanes(number)

    def launch(self, batch: int) -> TraceLaunch:
        """Return the launch that a batch belongs to."""
        return self._data.launches[self._batches[batch].launch]

    def count(self, batch: int) -> int:
        """Return how many lanes a batch has."""
        return self._batches[batch].blocks * self.per_block(batch)

    def per_block(self, batch: int) -> int:
        """Return how many lanes each block of a batch has: its threads, filled up to whole warps."""
        return self.launch(batch).lanes_per_block

    def first_block(self, batch: int) -> int:
        """Return the number in the grid of a batch's first block."""
        return self._batches[batch].first

    def block(self, batch: int, lanes: Any) -> Any:
        """Return the number in the grid of the block of lanes of a batch."""
        return self._batches[batch].first + lanes // self.per_block(batch)

    def threads(self, batch: int, lanes: Array) -> tuple[Array, Array]:
        """Return the number in the grid of the block of lanes of a batch, and of each thread in its block."""
        return self.block(batch, lanes), lanes % self.per_block(batch)
