"""Strong accesses in the source, as points where a schedule may switch from one part to others."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.memory import AccessSite, DeviceMemory, FlatMemory, SharedMemory
from gpu.simulator.executor.state.pointers import PointerValue, select_lane
from gpu.simulator.executor.state.running_batch import RunningBatch, StrongAccess


class SwitchPoint(NamedTuple):
    """A strong access in the source, before which other parts may run.

    Parameters
    ----------
    dtype : dtype
        The type of the accessed elements.
    writes : bool
        Whether the access may write.
    is_tested : bool
        Whether the value that it reads decides a branch.
    """

    site: AccessSite
    dtype: np.dtype[Any]
    writes: bool
    is_tested: bool

    def yield_before_access(
        self, batch: RunningBatch, address: PointerValue, index: Any, mask: LaneMask, compared: Any = None
    ) -> None:
        """Switch to other parts before the access, in schedules that stop a part there.

        Parameters
        ----------
        address : PointerValue
            The pointer of each lane.
        index : int, array or None
            The accessed element after it, one for all lanes or one per lane; None for 0.
        compared : scalar, array or None
            The values that a compare-and-swap replaces; None for other accesses.
        """
        scheduler = batch.scheduler
        if scheduler is None or not scheduler.notes_accesses:
            return
        lane, size = int(mask.lanes[0]), self.dtype.itemsize
        first = address.select_lane(lane)
        offset = first.offset + int(select_lane(index, lane) or 0) * size
        memory, block = first.memory, None
        if isinstance(memory, SharedMemory):
            block = lane // batch.geometry.lanes_per_block
        scheduler.yield_before_strong_access(
            StrongAccess(
                scheduler.current_part,
                self.site,
                (id(memory), block, offset),
                self.writes,
                self.is_tested,
                partial(_read_bytes, memory, block, offset, size),
                None if compared is None else self.dtype.type(select_lane(compared, lane)).tobytes(),
            )
        )


def _read_bytes(memory: DeviceMemory | None, block: int | None, offset: int, size: int) -> bytes:
    """Return bytes of a memory, of shared memory those of a block."""
    if not isinstance(memory, FlatMemory):
        return b""
    if isinstance(memory, SharedMemory) and block is not None:
        offset += block * memory.extents[1]
    return memory.data[offset : offset + size].tobytes()
