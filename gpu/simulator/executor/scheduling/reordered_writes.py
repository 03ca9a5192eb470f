"""Reordered writes: a strong write becomes visible after later ones of its thread, as nothing orders them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.batch import Array, BlockBatch
from gpu.simulator.executor.state.memory import (
    AccessSite,
    DeviceMemory,
    DType,
    FlatMemory,
    SharedMemory,
    observed_memory,
)
from gpu.simulator.executor.state.observer import Access, Observer, StaleRead
from gpu.simulator.executor.state.registers import StoreBuffer, is_cacheable


@dataclass(eq=False)
class _LateWrite:
    """A write of a lane that other threads do not see yet; `first` and `last` are the addresses of its bytes."""

    access: Access
    dtype: DType
    lane: int
    first: int
    last: int


@dataclass
class _Overtaking:
    """A later write of a lane that is visible, and those of its earlier writes that are not."""

    access: Access
    writes: list[_LateWrite]


class ReorderingBuffer(StoreBuffer):
    """The strong writes of one place in the source, which become visible later than all others of their threads.

    They become visible at the latest when their thread executes a fence or a barrier, accesses the same bytes, or reads
    the same value twice by the same access, or any thread does that after their thread has ended. An observer is
    notified of each thread that reads an old value after it has read a later write of the writer.

    Parameters
    ----------
    batch : BlockBatch
        The batch of the threads.
    observer : Observer
        The observer to notify of the writes when they become visible, and of old values.
    late : AccessSite
        The writes in the source that are late.
    """

    def __init__(self, batch: BlockBatch, observer: Observer, late: AccessSite) -> None:
        super().__init__(batch, observer)
        self._late = late
        self._late_writes: list[_LateWrite] = []
        # The overtaking writes by the address of their first byte, and those that each lane has read, with the value.
        self._overtaking: dict[int, _Overtaking] = {}
        self._known: dict[int, list[tuple[_Overtaking, AccessSite, bytes]]] = {}
        self._ended_lanes: set[int] = set()
        # The addresses that each lane has read by strong reads.
        self._read_addresses: set[tuple[int, int]] = set()
        # The last value that each lane has read by a site, and its address.
        self._polled: dict[tuple[int, int], tuple[int, bytes]] = {}

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, None]:
        self._flush_own(memory, element, dtype, mask)
        if site.is_strong:
            addresses = find_addresses(self._batch, memory, element, dtype, mask)
            if self._late_writes:
                self._note_reads(observed_memory(memory), element, dtype, site, addresses)
            self._read_addresses.update(addresses)
        return memory.load(self._batch, element, dtype, mask, site), None

    def store(
        self, memory: DeviceMemory, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> Access | None:
        access = Access(site, observed_memory(memory), element, dtype.itemsize, mask, value)
        if site is self._late and self._delay(access, dtype):
            return None
        self._flush_own(memory, element, dtype, mask)
        memory.store(self._batch, element, dtype, value, mask, site)
        self._note_writes(access, dtype)
        return access

    def buffer_exchange(self, access: Access, dtype: DType) -> bool:
        return access.site is self._late and self._delay(access, dtype)

    def prepare_atomic(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> None:
        self._flush_own(memory, element, dtype, mask)
        if self._late_writes:
            observed = observed_memory(memory)
            addresses = find_addresses(self._batch, memory, element, dtype, mask)
            self._note_reads(observed, element, dtype, site, addresses)
            self._note_writes(Access(site, observed, element, dtype.itemsize, mask, None), dtype, is_update=True)

    def order_accesses(self, order: str, mask: LaneMask, *, is_fence: bool) -> None:
        if order != "acquire":
            self.flush_lanes(mask)

    def flush_lanes(self, mask: LaneMask) -> None:
        if self._late_writes:
            lanes = set(mask.lanes.tolist())
            self._show([write for write in self._late_writes if write.lane in lanes])

    def end_lanes(self, mask: LaneMask) -> None:
        """Note that lanes have ended, which orders nothing."""
        self._ended_lanes.update(mask.lanes.tolist())

    def _delay(self, access: Access, dtype: DType) -> bool:
        """Keep a write back; return False if its memory is not shared or global."""
        if not is_cacheable(access.memory):
            return False
        # Raises an error now if an index is out of bounds.
        access.memory.load(self._batch, access.element, dtype, access.mask, access.site)
        self._flush_own(access.memory, access.element, dtype, access.mask)
        for lane, first in find_addresses(self._batch, access.memory, access.element, dtype, access.mask):
            self._late_writes.append(_LateWrite(access, dtype, lane, first, first + dtype.itemsize - 1))
        return True

    def _flush_own(self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask) -> None:
        """Show the late writes of lanes to bytes that they access now."""
        if self._late_writes:
            for lane, address in find_addresses(self._batch, memory, element, dtype, mask):
                end = address + dtype.itemsize
                own = [each for each in self._late_writes if each.lane == lane]
                if any(each.first < end and address <= each.last for each in own):
                    self._show(own)

    def _note_writes(self, access: Access, dtype: DType, *, is_update: bool = False) -> None:
        """Note writes of lanes that have late ones; an update by another lane does not end what a write shows."""
        if not access.site.is_strong or not (self._late_writes or self._overtaking):
            return
        for lane, address in find_addresses(self._batch, access.memory, access.element, dtype, access.mask):
            own = [each for each in self._late_writes if each.lane == lane]
            if own:
                self._overtaking[address] = _Overtaking(access, own)
            elif not is_update:
                self._overtaking.pop(address, None)

    def _note_reads(
        self, memory: DeviceMemory, element: Any, dtype: DType, site: AccessSite, addresses: Iterable[tuple[int, int]]
    ) -> None:
        for lane, address in addresses:
            assert isinstance(memory, FlatMemory)
            self._note_poll(lane, address, memory, dtype, site)
            self._report_old_value(lane, address, memory, element, dtype, site)
            if address in self._overtaking:
                value = read_bytes(memory, address, dtype)
                self._known.setdefault(lane, []).append((self._overtaking[address], site, value))

    def _report_old_value(
        self, lane: int, address: int, memory: DeviceMemory, element: Any, dtype: DType, site: AccessSite
    ) -> None:
        for known, known_site, value in reversed(self._known.get(lane, ())):
            for write in known.writes if known_site is not site else ():
                is_old = write.first < address + dtype.itemsize and address <= write.last
                if is_old and write.lane != lane and write in self._late_writes:
                    read = Access(site, memory, element, dtype.itemsize, select_lane(lane, self._batch), None)
                    is_repeated = (lane, address) in self._read_addresses
                    stale = StaleRead(read, lane, write.access, write.lane, known.access, value, None, is_repeated)
                    self._observer.stale_read(self._batch, stale)
                    return

    def _note_poll(self, lane: int, address: int, memory: FlatMemory, dtype: DType, site: AccessSite) -> None:
        """Show the late writes of a lane that reads the same value again, and those of lanes that have ended."""
        own = [write for write in self._late_writes if write.lane == lane or write.lane in self._ended_lanes]
        if not own:
            return
        read = address, read_bytes(memory, address, dtype)
        if self._polled.get((lane, id(site))) == read:
            self._show(own)
            self._polled.clear()
        else:
            self._polled[lane, id(site)] = read

    def _show(self, writes: list[_LateWrite]) -> None:
        """Perform late writes."""
        for write in writes:
            self._late_writes.remove(write)
            access, mask = write.access, select_lane(write.lane, self._batch)
            access.memory.store(self._batch, access.element, write.dtype, access.values, mask, access.site)
            self._observer.access(
                self._batch,
                Access(access.site, access.memory, access.element, access.size, mask, access.values, access.used),
            )


def find_addresses(
    batch: BlockBatch, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask
) -> list[tuple[int, int]]:
    """Return each lane of a mask with the address that it accesses, in global or shared memory; else nothing."""
    if not isinstance(memory, FlatMemory) or memory.space not in ("global", "shared"):
        return []
    elements = np.broadcast_to(element, mask.bits.shape)[mask.lanes].astype(np.int64)
    addresses = memory.data.ctypes.data + elements * dtype.itemsize
    if isinstance(memory, SharedMemory):
        addresses += mask.lanes // batch.geometry.lanes_per_block * memory.extents[1]
    return list(zip(mask.lanes.tolist(), addresses.tolist(), strict=True))


def read_bytes(memory: FlatMemory, address: int, dtype: DType) -> bytes:
    """Return the bytes of an element at an address."""
    start = address - memory.data.ctypes.data
    return memory.data[start : start + dtype.itemsize].tobytes()


def select_lane(lane: int, batch: BlockBatch) -> LaneMask:
    """Return a mask with one lane."""
    bits: Array = np.zeros(batch.geometry.lanes, bool)
    bits[lane] = True
    return LaneMask(bits, 1)
