"""Delayed accesses: values that a compiler keeps in registers, and writes that stay in a thread's store buffer.

Registers, used by the schedule "cached": a compiler may cache memory values in registers.

A plain read may return the value that its thread has cached, and a plain write may stay in a register, until a barrier,
a fence, `__syncwarp`, a launch or the end of the thread orders the thread's accesses. Cached values are dropped there,
and also at an atomic operation on global memory or a volatile read of it, since other threads may have written. A
thread always reads its own writes.

Store buffers, used by a trial of the race checker: a thread's strong write may become visible to other threads after
the thread's later reads, unless a sequentially consistent fence separates them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.batch import Array, BlockBatch
from gpu.simulator.executor.state.memory import AccessSite, DeviceMemory, DType, FlatMemory, observed_memory
from gpu.simulator.executor.state.observer import Access, IssuedStep, Observer
from gpu.simulator.ir.value_uses import ValueUse

# The fractions of accesses that are cached: a seed selects one; seed 0 caches all.
_CACHED_FRACTIONS = (0.75, 0.5, 0.25)


@dataclass(eq=False)
class _PendingWrite:
    """A write that is not in memory yet, with the lanes for which it is pending."""

    step: IssuedStep
    access: Access
    dtype: DType
    lanes: set[int] = field(default_factory=set)


@dataclass
class _CachedValue:
    """A value that a thread has cached, and its pending write if there is one."""

    value: np.generic
    write: _PendingWrite | None = None


class Registers:
    """The values that the threads of a batch have cached in registers.

    Parameters
    ----------
    batch : BlockBatch
        The batch of the threads.
    observer : Observer or None
        The observer to notify of write-backs.
    seed : int
        Selects the accesses in the source that are cached; with 0, all are.
    """

    def __init__(self, batch: BlockBatch, observer: Observer | None, seed: int) -> None:
        self._batch = batch
        self._observer = observer
        self._seed = seed
        self._cached_fraction = random.Random(seed).choice(_CACHED_FRACTIONS) if seed else 1.0
        self._sites: dict[int, tuple[AccessSite, bool]] = {}
        # The cached values of each lane, by address.
        self._cached: list[dict[int, _CachedValue]] = [{} for _ in range(batch.geometry.lanes)]
        self._pending: list[_PendingWrite] = []
        # The size of the cached elements of each memory, by its address.
        self._sizes: dict[int, int] = {}
        self.step = IssuedStep(SourcePosition("", 0), "evaluate", 0)
        """The current statement."""

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, Array | None]:
        """Load elements.

        Parameters
        ----------
        memory : DeviceMemory
            The memory to read.
        element : int or array
            The index in elements of `dtype`, one for all lanes or one per lane.
        dtype : dtype
            The type of the elements.
        mask : LaneMask
            The lanes that read.
        site : AccessSite
            The access in the source.

        Returns
        -------
        values : scalar or array
            The values, one for all lanes or one per lane.
        in_register : bool array or None
            The lanes whose value came from a register; None if values of this memory are never cached.
        """
        if not is_cacheable(memory):
            return memory.load(self._batch, element, dtype, mask, site), None
        addresses = self._addresses(memory, element, dtype, mask)
        from_register = np.zeros(mask.bits.size, bool)
        if site.volatile or site.vector:
            self._flush_addresses(addresses)
            if site.volatile and memory.space == "global":
                self._invalidate(mask)
            return memory.load(self._batch, element, dtype, mask, site), from_register
        loaded = memory.load(self._batch, element, dtype, mask, site)
        is_cached = self._is_cached(site)
        values = np.array(np.broadcast_to(loaded, mask.bits.shape))
        for lane, address in addresses:
            cached = self._cached[lane].get(address)
            if cached is not None and (is_cached or cached.write is not None):
                values[lane] = cached.value.view(dtype)
                from_register[lane] = True
            else:
                self._cached[lane][address] = _CachedValue(values[lane])
        return (values, from_register) if from_register.any() else (loaded, from_register)

    def store(
        self, memory: DeviceMemory, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> Access:
        """Store elements in memory or in registers, and return the access for the observer.

        Parameters
        ----------
        memory : DeviceMemory
            The memory to write.
        element : int or array
            The index in elements of `dtype`, one for all lanes or one per lane.
        dtype : dtype
            The type of the elements.
        value : scalar or array
            The values, one for all lanes or one per lane.
        mask : LaneMask
            The lanes that write.
        site : AccessSite
            The access in the source.

        Raises
        ------
        LaunchError
            An index is out of bounds in an active lane, or the memory is read-only.
        """
        batch = self._batch
        if not is_cacheable(memory):
            memory.store(batch, element, dtype, value, mask, site)
            return Access(site, observed_memory(memory), element, dtype.itemsize, mask, value)
        addresses = self._addresses(memory, element, dtype, mask)
        is_cached = not site.volatile and not site.vector and self._is_cached(site)
        access = Access(site, memory, element, dtype.itemsize, mask, value, register=mask.bits & is_cached)
        if is_cached:
            memory.load(batch, element, dtype, mask, site)  # raises an error now if an index is out of bounds
        else:
            memory.store(batch, element, dtype, value, mask, site)
        write = _PendingWrite(self.step, access, dtype) if is_cached else None
        values = np.broadcast_to(np.asarray(value, dtype), mask.bits.shape)
        for lane, address in addresses:
            previous = self._cached[lane].get(address)
            if previous is not None and previous.write is not None:
                previous.write.lanes.discard(lane)  # overwritten before any thread could read it
            if site.volatile or site.vector:
                self._cached[lane].pop(address, None)
            else:
                self._cached[lane][address] = _CachedValue(values[lane], write)
            if write is not None:
                write.lanes.add(lane)
        if write is not None:
            self._pending.append(write)
        return access

    def buffer_exchange(self, access: Access, dtype: DType) -> bool:
        """Return False: an atomic exchange is performed at once."""
        return False

    def prepare_atomic(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> None:
        """Write the accessed elements back before an atomic operation, and drop values that others may have changed.

        Parameters
        ----------
        memory : DeviceMemory
            The memory of the operation.
        element : int or array
            The index in elements of `dtype`, one for all lanes or one per lane.
        dtype : dtype
            The type of the elements.
        mask : LaneMask
            The lanes that execute the operation.
        site : AccessSite
            The operation in the source.
        """
        if is_cacheable(memory):
            addresses = self._addresses(memory, element, dtype, mask)
            self._flush_addresses(addresses)
            if memory.space == "global":
                self._invalidate(mask)

    def order_accesses(self, order: str, mask: LaneMask, *, is_fence: bool) -> None:
        """Order the accesses of lanes by a fence or an access with a memory order, "" for sequential consistency."""
        self.flush_lanes(mask)

    def flush_lanes(self, mask: LaneMask) -> None:
        """Write all pending writes of lanes back, and drop their cached values."""
        lanes = mask.lanes.tolist()
        self._write_back(set(lanes))
        for lane in lanes:
            self._cached[lane].clear()

    def end_lanes(self, mask: LaneMask) -> None:
        """Write all pending writes of lanes back, which have ended."""
        self.flush_lanes(mask)

    def _is_cached(self, site: AccessSite) -> bool:
        """Return whether an access in the source is cached; this depends only on the seed and the site."""
        if id(site) not in self._sites:
            at = site.position
            name = f"{self._seed} {PurePath(at.file).name} {at.line} {at.column} {site.action}"
            self._sites[id(site)] = (site, random.Random(name).random() < self._cached_fraction)
        return self._sites[id(site)][1]

    def _addresses(self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask) -> list[tuple[int, int]]:
        """Return each lane with the address that it accesses."""
        assert isinstance(memory, FlatMemory)
        base, size = memory.data.ctypes.data, dtype.itemsize
        if self._sizes.setdefault(base, size) != size:
            # The element size differs from that of the cached values: write all back and drop them.
            self.flush_lanes(self._batch.geometry.thread_mask)
            self._sizes[base] = size
        elements = np.broadcast_to(element, mask.bits.shape)[mask.lanes].astype(np.int64)
        return list(zip(mask.lanes.tolist(), (base + elements * size).tolist(), strict=True))

    def _flush_addresses(self, addresses: list[tuple[int, int]]) -> None:
        """Write pending writes to some addresses back, and drop the values cached for them."""
        pending: dict[_PendingWrite, set[int]] = {}
        for lane, address in addresses:
            cached = self._cached[lane].pop(address, None)
            if cached is not None and cached.write is not None:
                pending.setdefault(cached.write, set()).add(lane)
        for write, lanes in pending.items():
            self._write_value(write, lanes)

    def _invalidate(self, mask: LaneMask) -> None:
        """Drop cached values that other threads may have changed."""
        for lane in mask.lanes.tolist():
            values = self._cached[lane]
            for address in [address for address, value in values.items() if value.write is None]:
                del values[address]

    def _write_back(self, lanes: set[int]) -> None:
        pending, self._pending = self._pending, []
        for write in pending:
            if own := write.lanes & lanes:
                self._write_value(write, own)
        self._pending = [write for write in pending if write.lanes]

    def _write_value(self, write: _PendingWrite, lanes: set[int]) -> None:
        write.lanes -= lanes
        bits = np.zeros(self._batch.geometry.lanes, bool)
        bits[list(lanes)] = True
        mask, access = LaneMask(bits, len(lanes)), write.access
        access.memory.store(self._batch, access.element, write.dtype, access.values, mask, access.site)
        if self._observer is not None:
            self._observer.write_back(self._batch, write.step, access, mask)


@dataclass(eq=False)
class _BufferedWrite:
    """A strong write of lanes that other threads do not see yet."""

    access: Access
    dtype: DType
    lanes: Array
    """Whether it is pending, for each lane."""


class StoreBuffer:
    """The strong writes of a batch's threads that are not visible yet; each thread's become visible in their order.

    They become visible at the latest when their thread executes another atomic operation, a barrier, a fence that is
    sequentially consistent, or a second read in a loop, and when it accesses the same memory otherwise. All of this is
    allowed by PTX's memory model, even if the writes release and the reads acquire.

    Parameters
    ----------
    batch : BlockBatch
        The batch of the threads.
    observer : Observer
        The observer to notify of the writes when they become visible.
    """

    def __init__(self, batch: BlockBatch, observer: Observer) -> None:
        self._batch = batch
        self._observer = observer
        self._writes: list[_BufferedWrite] = []
        # The writes that were pending when their thread wrote again by a strong access, with the memory.
        self._overtaken: set[tuple[AccessSite, int]] = set()
        # The memories from which reads decide a branch or an address; or whether a loop ends, if several places in the
        # source read them, since such a loop may compare two values that are both old.
        self._deciding: set[int] = set()
        self._sites_of: dict[int, set[int]] = {}
        # For each site with a strong read, the lanes that have executed it since they last had no pending write.
        self._readers: dict[int, Array] = {}
        self.step = IssuedStep(SourcePosition("", 0), "evaluate", 0)

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, None]:
        """Load elements; a lane sees its own pending writes."""
        if site.is_strong and site.use != ValueUse.DATA:
            observed = id(observed_memory(memory))
            sites = self._sites_of.setdefault(observed, set())
            sites.add(id(site))
            if site.use != ValueUse.WAIT or len(sites) > 1:
                self._deciding.add(observed)
        if self._writes:
            if site.is_strong:
                readers = self._readers.setdefault(id(site), np.zeros(mask.bits.size, bool))
                self._make_visible(readers & mask.bits)
                readers |= mask.bits
            self._make_visible(self._find_overlap(memory, element, dtype, mask))
        return memory.load(self._batch, element, dtype, mask, site), None

    def store(
        self, memory: DeviceMemory, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> Access | None:
        """Store elements, or buffer a strong write: then return None."""
        access = Access(site, observed_memory(memory), element, dtype.itemsize, mask, value)
        if site.is_strong and is_cacheable(memory):
            memory.load(self._batch, element, dtype, mask, site)  # raises an error now if an index is out of bounds
            self._note_overtaken(mask)
            self._writes.append(_BufferedWrite(access, dtype, mask.bits.copy()))
            return None
        self._make_visible(self._find_overlap(memory, element, dtype, mask))
        memory.store(self._batch, element, dtype, value, mask, site)
        return access

    def buffer_exchange(self, access: Access, dtype: DType) -> bool:
        """Buffer an atomic exchange without a result, if it accesses global or shared memory; return whether it does.

        It is a strong write, which nothing orders before a later read of another location.
        """
        if not is_cacheable(access.memory):
            return False
        access.memory.load(self._batch, access.element, dtype, access.mask, access.site)  # raises an error, as `store`
        self._note_overtaken(access.mask)
        self._writes.append(_BufferedWrite(access, dtype, access.mask.bits.copy()))
        return True

    def prepare_atomic(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> None:
        """Make the pending writes of lanes visible before an atomic operation."""
        self._note_overtaken(mask)
        self._make_visible(mask.bits)

    def order_accesses(self, order: str, mask: LaneMask, *, is_fence: bool) -> None:
        """Make pending writes visible, unless the order is "acquire", "release" or "acq_rel"."""
        if order not in ("acquire", "release", "acq_rel"):
            self._make_visible(mask.bits)

    def flush_lanes(self, mask: LaneMask) -> None:
        """Make the pending writes of lanes visible."""
        self._make_visible(mask.bits)

    def end_lanes(self, mask: LaneMask) -> None:
        """Make the pending writes of lanes visible, which have ended."""
        self.flush_lanes(mask)

    def _note_overtaken(self, mask: LaneMask) -> None:
        """Note that lanes perform another strong access, which nothing orders after their pending writes."""
        self._overtaken |= {
            (write.access.site, id(write.access.memory)) for write in self._writes if (write.lanes & mask.bits).any()
        }

    def find_overtaken(self) -> set[AccessSite]:
        """Return the writes in the source that later ones may overtake, so that threads decide by old values."""
        return {site for site, memory in self._overtaken if memory in self._deciding}

    def _find_overlap(self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask) -> Array:
        """Return the lanes that access bytes of their own pending writes, or memory of another kind."""
        overlap: Array = np.zeros(mask.bits.size, bool)
        if not is_cacheable(memory):
            return overlap
        assert isinstance(memory, FlatMemory)
        first = np.asarray(element) * dtype.itemsize
        for write in self._writes:
            assert isinstance(write.access.memory, FlatMemory)
            if write.access.memory.data.ctypes.data == memory.data.ctypes.data:
                start = np.asarray(write.access.element) * write.access.size
                overlap |= (
                    write.lanes & mask.bits & (first < start + write.access.size) & (start < first + dtype.itemsize)
                )
        return overlap

    def _make_visible(self, lanes: Array) -> None:
        """Perform the pending writes of lanes."""
        if not self._writes or not lanes.any():
            return
        pending, self._writes = self._writes, []
        for write in pending:
            bits = write.lanes & lanes
            write.lanes &= ~lanes
            if write.lanes.any():
                self._writes.append(write)
            if bits.any():
                access = write.access._replace(mask=LaneMask(bits))
                access.memory.store(self._batch, access.element, write.dtype, access.values, access.mask, access.site)
                self._observer.access(self._batch, access)
        for readers in self._readers.values():
            readers &= ~lanes


def is_cacheable(memory: DeviceMemory) -> bool:
    """Return whether accesses may be delayed: to global memory and to shared memory of the own block."""
    return memory.space in ("global", "shared") and observed_memory(memory) is memory
