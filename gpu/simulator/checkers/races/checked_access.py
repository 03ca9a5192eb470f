"""The access that the race checker compares with earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.races.shadow import EVENT, Shadow, find_span
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access

Array = npt.NDArray[Any]

_NO_INDICES = np.empty(0, np.intp)


class CheckedAccess:
    """The access to check; `lanes` and `cells` have one element for each cell of each lane.

    Parameters
    ----------
    batch : BlockBatch
    access : Access
    event : int
    shadow : Shadow
    own_records : tuple of arrays of int64
        A record of each lane of the batch for "high" and for "low" slots, without an event.
    """

    def __init__(
        self, batch: BlockBatch, access: Access, event: int, shadow: Shadow, own_records: tuple[Array, Array]
    ) -> None:
        self.batch, self.access, self.event, self.shadow = batch, access, event, shadow
        self.lanes, self.cells = shadow.cells(batch.geometry, access)
        # The cells as a slice if they are equally spaced, as in most kernels; it costs less than an index array.
        self.span = find_span(self.cells)
        # The only cell, else None. Most accesses for synchronization have one: those of one lane, and those of all
        # lanes to one cell, of which two lanes remain.
        first, size = int(self.cells[0]), self.cells.size
        self.only_cell = first if size == 1 or (size == 2 and first == self.cells[1]) else None
        self._own_records = own_records
        self.high = self._select(own_records[0])
        self._low: Array | None = None

    @property
    def low(self) -> Array:
        """Records of `lanes` for "low" slots; `high` are those for "high" slots."""
        if self._low is None:
            self._low = self._select(self._own_records[1])
        return self._low

    def _select(self, values: Array) -> Array:
        selected: Array = values if self.lanes is self.batch.geometry.lane_numbers else values.take(self.lanes)
        return selected

    def view(self, slot: str) -> Array:
        """Return the records of a slot at the cells: a view of them if the cells are a slice, else a copy."""
        records = self.shadow.get_or_create(slot)
        selected: Array = records.take(self.cells) if self.span is None else records[self.span]
        return selected

    def find_others(self, records: Array, slot: str) -> Array:
        """Return the indices of records of a slot that may be of other threads than the lanes."""
        present = records != 0
        if not np.count_nonzero(present):  # `present.any()` takes several times as long for the lanes of a warp
            return _NO_INDICES
        differences = records ^ (self.low if slot.endswith("low") else self.high)
        others: Array = np.logical_and(differences > EVENT, present, out=present).nonzero()[0]
        return others
