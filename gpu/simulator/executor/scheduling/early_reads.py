"""Early reads: a strong read is executed before an earlier one of its thread, as no fence orders them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.scheduling.reordered_writes import find_addresses, read_bytes, select_lane
from gpu.simulator.executor.state.batch import Array, BlockBatch
from gpu.simulator.executor.state.memory import AccessSite, DeviceMemory, DType, FlatMemory, observed_memory
from gpu.simulator.executor.state.observer import Access, Observer, StaleRead
from gpu.simulator.executor.state.registers import StoreBuffer
from gpu.simulator.ir.value_uses import ValueUse


@dataclass(frozen=True)
class _Write:
    """A strong write of a lane, and its number among all strong writes."""

    access: Access
    lane: int
    number: int


@dataclass(frozen=True)
class _KnownWrite:
    """A write that a lane has read since its last fence: by which access in the source, and the value."""

    write: _Write
    site: AccessSite
    value: bytes


@dataclass(frozen=True)
class _EarlierRead:
    """What a lane has read at an address, and the number of strong writes up to then."""

    value: Any
    writes: int


class RepeatedReadBuffer(StoreBuffer):
    """A store buffer that notes whether threads read a place again, after another one, without a fence in between."""

    def __init__(self, batch: BlockBatch, observer: Observer) -> None:
        super().__init__(batch, observer)
        # The address that each lane has read last in each memory, at each place in the source, and by its last read
        # since a fence.
        self._addresses: dict[tuple[int, int], Array] = {}
        self._unfenced: Array = np.zeros(batch.geometry.lanes, np.int64)
        self.repeats_reads = False
        """Whether a thread has read an address again, and another one in between, by strong reads without a fence."""

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, None]:
        if site.is_strong and not self.repeats_reads and isinstance(memory, FlatMemory):
            self._note_read(memory, np.asarray(element, np.int64) * dtype.itemsize, mask, site)
        return super().load(memory, element, dtype, mask, site)

    def order_accesses(self, order: str, mask: LaneMask, *, is_fence: bool) -> None:
        if is_fence and order != "release":
            self._unfenced[mask.bits] = 0
        super().order_accesses(order, mask, is_fence=is_fence)

    def flush_lanes(self, mask: LaneMask) -> None:
        self._unfenced[mask.bits] = 0
        super().flush_lanes(mask)

    def _note_read(self, memory: FlatMemory, offsets: Array, mask: LaneMask, site: AccessSite) -> None:
        addresses = memory.data.ctypes.data + offsets
        follows = mask.bits & (self._unfenced != 0) & (self._unfenced != addresses)
        if follows.any() and site.use != ValueUse.DATA:
            self.repeats_reads = any((follows & (each == addresses)).any() for each in self._addresses.values())
        read = self._addresses.setdefault((id(site), id(memory)), np.zeros(mask.bits.size, np.int64))
        np.copyto(read, addresses, where=mask.bits)
        if not site.acquires:
            np.copyto(self._unfenced, addresses, where=mask.bits)


class EarlyReadBuffer(StoreBuffer):
    """The values that threads have read, and may read again without a fence in between, although they are old.

    Such a read may be executed before one that the source has earlier, as that of the data of a sequence lock. Here it
    is only if that one has read a later write of the thread that has overwritten the value. Writes are visible at once.
    The observer is notified of old values.
    """

    def __init__(self, batch: BlockBatch, observer: Observer) -> None:
        super().__init__(batch, observer)
        self._writes_at: dict[int, list[_Write]] = {}
        self._count = 0
        # What each lane has read since its last fence: by address, and the last write of each other lane.
        self._reads: dict[int, dict[int, _EarlierRead]] = {}
        self._known: dict[int, dict[int, _KnownWrite]] = {}

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, None]:
        values = memory.load(self._batch, element, dtype, mask, site)
        observed, all_values = observed_memory(memory), np.broadcast_to(values, mask.bits.shape)
        for lane, address in find_addresses(self._batch, memory, element, dtype, mask) if site.is_strong else ():
            assert isinstance(observed, FlatMemory)
            old = self._find_old_value(lane, address, observed, element, dtype, site)
            if site.acquires:
                self._forget_lane(lane)
            if old is not None:
                values = all_values = np.array(all_values)
                values[lane] = old.value
            else:
                self._note_read(lane, address, all_values[lane], observed, dtype, site)
        return values, None

    def store(
        self, memory: DeviceMemory, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> Access | None:
        memory.store(self._batch, element, dtype, value, mask, site)
        access = Access(site, observed_memory(memory), element, dtype.itemsize, mask, value)
        self._note_writes(access, dtype)
        return access

    def buffer_exchange(self, access: Access, dtype: DType) -> bool:
        return False

    def prepare_atomic(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> None:
        if site.acquires:
            self._forget_lanes(mask)
        for lane, address in find_addresses(self._batch, memory, element, dtype, mask):
            assert isinstance(memory, FlatMemory)
            self._note_known(lane, address, memory, dtype, site)
        self._note_writes(Access(site, observed_memory(memory), element, dtype.itemsize, mask, None), dtype)

    def order_accesses(self, order: str, mask: LaneMask, *, is_fence: bool) -> None:
        if is_fence and order != "release":
            self._forget_lanes(mask)

    def flush_lanes(self, mask: LaneMask) -> None:
        self._forget_lanes(mask)

    def _forget_lanes(self, mask: LaneMask) -> None:
        """Let all later reads of lanes observe what they have read so far."""
        for lane in mask.lanes.tolist():
            self._forget_lane(lane)

    def _forget_lane(self, lane: int) -> None:
        self._reads.pop(lane, None)
        self._known.pop(lane, None)

    def _note_read(
        self, lane: int, address: int, value: Any, memory: FlatMemory, dtype: DType, site: AccessSite
    ) -> None:
        self._reads.setdefault(lane, {})[address] = _EarlierRead(value, self._count)
        if not site.acquires:
            self._note_known(lane, address, memory, dtype, site)

    def _note_known(self, lane: int, address: int, memory: FlatMemory, dtype: DType, site: AccessSite) -> None:
        write = next(reversed(self._writes_at.get(address, ())), None)
        if write is not None and write.lane != lane:
            known = self._known.setdefault(lane, {})
            if write.lane not in known or known[write.lane].write.number < write.number:
                known[write.lane] = _KnownWrite(write, site, read_bytes(memory, address, dtype))

    def _find_old_value(
        self, lane: int, address: int, memory: FlatMemory, element: Any, dtype: DType, site: AccessSite
    ) -> _EarlierRead | None:
        """Return what a lane has read before at an address, if it reads that once more; notify the observer."""
        read = self._reads.get(lane, {}).get(address)
        later = [each for each in self._writes_at.get(address, ()) if each.number > read.writes] if read else []
        known = self._known.get(lane, {}).get(later[0].lane) if later else None
        if read is None or known is None or known.write.number <= later[0].number:
            return None
        write = later[0]
        del self._reads[lane][address]  # the next read observes the new value
        access = Access(site, memory, element, dtype.itemsize, select_lane(lane, self._batch), None)
        self._observer.stale_read(
            self._batch,
            StaleRead(
                access, lane, write.access, write.lane, known.write.access, known.value, known.site, is_repeated=True
            ),
        )
        return read

    def _note_writes(self, access: Access, dtype: DType) -> None:
        """Note strong writes; a lane does not read an old value at an address that it has written."""
        for lane, address in find_addresses(self._batch, access.memory, access.element, dtype, access.mask):
            self._reads.get(lane, {}).pop(address, None)
            if access.site.is_strong:
                self._count += 1
                self._writes_at.setdefault(address, []).append(_Write(access, lane, self._count))
