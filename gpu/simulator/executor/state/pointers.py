"""Pointers as a memory and an offset, and their representation as 64-bit numbers when stored in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.atomics import AtomicOperation
from gpu.simulator.executor.state.memory import AccessError, AccessSite, DeviceMemory, DType, observed_memory
from gpu.simulator.executor.state.observer import Access
from gpu.simulator.executor.state.running_batch import RunningBatch

# A pointer as a number: the memory's number in the upper bits, the biased offset in the lower bits; the bias allows
# pointers before the beginning of an array.
_OFFSET_BITS = 40
_ZERO_OFFSET = 1 << (_OFFSET_BITS - 1)

_HOST_NUMBERS = 128
"""Memory numbers below this are reserved for host addresses, which have 47 bits."""

_LOWEST_HOST_ADDRESS, _LARGEST_NULL_OFFSET = 1 << 22, 1 << 32
"""Host memory is not below the first address. Above the second one, a number is no null pointer plus an offset."""

HOST_SLOT_BYTES = 1 << 30
"""Host addresses are divided into slots of this size, each for one memory at most."""

_HOST_SLOTS = (_HOST_NUMBERS << _OFFSET_BITS) // HOST_SLOT_BYTES

_base_of: WeakKeyDictionary[DeviceMemory, int] = WeakKeyDictionary()
"""The number of the pointer to a memory's first byte."""
_spaces: list[str] = []
"""The spaces of all memories with a number, from the first number on, also of those that no longer exist."""
_memory_of: WeakValueDictionary[int, DeviceMemory] = WeakValueDictionary()
"""Memories by the keys of pointers into them (`_find_keys`)."""


class PointerValue:
    """A pointer: a memory, and an offset into it in bytes, one for all lanes or one per lane.

    Without a memory, as for null, the offset is the pointer as a number.
    If lanes point into different memories, `mixed` is True, and the offsets are pointers as numbers.
    """

    __slots__ = ("_memories", "memory", "mixed", "offset")

    def __init__(
        self,
        memory: DeviceMemory | None,
        offset: Any = 0,
        *,
        mixed: bool = False,
        memories: Sequence[DeviceMemory | None] = (),
    ) -> None:
        self.memory = memory
        self.offset = offset
        self.mixed = mixed
        self._memories = memories  # keeps the memories that lanes point into alive

    def offset_by(self, index: Any, size: int) -> PointerValue:
        """Return the pointer advanced by `index` elements of `size` bytes."""
        by = index.astype(np.int64) * size if isinstance(index, np.ndarray) else int(index) * size
        return PointerValue(self.memory, self.offset + by, mixed=self.mixed, memories=self._memories)

    def load(self, batch: RunningBatch, index: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        """Load elements, and notify the observer.

        Parameters
        ----------
        batch : RunningBatch
            The batch of the lanes.
        index : int, array or None
            The distance from the pointer in elements of `dtype`, one for all lanes or one per lane; None for 0.
        dtype : dtype
            The type of the elements.
        site : AccessSite
            The access in the source.

        Returns
        -------
        scalar or array
            The values, one for all lanes or one per lane; those of inactive lanes are arbitrary.

        Raises
        ------
        LaunchError
            In an active lane, the pointer is invalid or misaligned, or the element is out of bounds.
        """
        if batch.faults is not None and not self.mixed:
            loaded = batch.faults.attempt(lambda live: self._load(batch, index, dtype, live, site), mask)
            return np.zeros(mask.bits.size, dtype) if loaded is None else loaded
        return self._load(batch, index, dtype, mask, site)

    def _load(self, batch: RunningBatch, index: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        if not self.mixed:
            memory, element = self._find_element(batch, index, dtype.itemsize, mask, site)
            if batch.registers is None:
                loaded, register = memory.load(batch, element, dtype, mask, site), None
            else:
                loaded, register = batch.registers.load(memory, element, dtype, mask, site)
            if batch.observer is not None:
                access = Access(site, observed_memory(memory), element, dtype.itemsize, mask, loaded, register=register)
                batch.observer.access(batch, access)
            return loaded
        values = np.zeros(mask.bits.size, dtype)
        for address, part in self.split_by_memory(mask):
            values[part.lanes] = np.broadcast_to(address.load(batch, index, dtype, part, site), values.shape)[
                part.lanes
            ]
        return values

    def store(
        self, batch: RunningBatch, index: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> None:
        """Store elements, and notify the observer.

        Parameters
        ----------
        batch, index, dtype, mask, site
            As of `load`.
        value : scalar or array
            The values, one for all lanes or one per lane.

        Raises
        ------
        LaunchError
            As of `load`; or the memory is read-only.
        """
        if batch.faults is not None and not self.mixed:
            batch.faults.attempt(lambda live: self._store(batch, index, dtype, value, live, site), mask)
        else:
            self._store(batch, index, dtype, value, mask, site)

    def _store(
        self, batch: RunningBatch, index: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> None:
        if not self.mixed:
            memory, element = self._find_element(batch, index, dtype.itemsize, mask, site)
            if batch.registers is not None:
                access = batch.registers.store(memory, element, dtype, value, mask, site)
                if batch.observer is not None and access is not None:
                    batch.observer.access(batch, access)
                return
            memory.store(batch, element, dtype, value, mask, site)
            if batch.observer is not None:
                batch.observer.access(
                    batch, Access(site, observed_memory(memory), element, dtype.itemsize, mask, value)
                )
            return
        for address, part in self.split_by_memory(mask):
            address.store(batch, index, dtype, value, part, site)

    def atomic(
        self,
        batch: RunningBatch,
        index: Any,
        dtype: DType,
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> Any:
        """Execute an atomic operation on elements, and return their old values if it needs them.

        Parameters
        ----------
        batch, index, dtype, mask, site
            As of `load`.
        """
        if batch.faults is not None and not self.mixed:
            old = batch.faults.attempt(lambda live: self._atomic(batch, index, dtype, operation, live, site), mask)
            return np.zeros(mask.bits.size, dtype) if old is None and operation.used else old
        return self._atomic(batch, index, dtype, operation, mask, site)

    def _atomic(
        self,
        batch: RunningBatch,
        index: Any,
        dtype: DType,
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> Any:
        if not self.mixed:
            memory, element = self._find_element(batch, index, dtype.itemsize, mask, site)
            op, values, used = operation
            if batch.registers is not None:
                written = Access(site, observed_memory(memory), element, dtype.itemsize, mask, values[-1], used)
                if op == "exch" and not used and batch.registers.buffer_exchange(written, dtype):
                    return None
                batch.registers.prepare_atomic(memory, element, dtype, mask, site)
            is_swap = op == "cas"
            if is_swap and batch.observer is not None:
                operation = operation._replace(used=True)
            old = memory.atomic(batch, element, dtype, operation, mask, site)
            if batch.observer is not None:
                access = Access(
                    site,
                    observed_memory(memory),
                    element,
                    dtype.itemsize,
                    mask,
                    values[-1],
                    used,
                    old=old,
                    compared=values[0] if is_swap else None,
                )
                batch.observer.access(batch, access)
            return old
        old = np.zeros(mask.bits.size, dtype)
        for address, part in self.split_by_memory(mask):
            part_old = address.atomic(batch, index, dtype, operation, part, site)
            if part_old is not None:
                old[part.lanes] = part_old[part.lanes]
        return old

    def number(self) -> Any:
        """Return the pointer as a 64-bit number; null is 0."""
        if self.mixed:
            return self.offset
        if self.memory is None:
            return self.offset if isinstance(self.offset, np.ndarray) else np.int64(self.offset)
        if self.memory not in _base_of:
            number = _HOST_NUMBERS + len(_spaces)
            _spaces.append(self.memory.space)
            _base_of[self.memory] = (number << _OFFSET_BITS) + _ZERO_OFFSET
            _memory_of[_HOST_SLOTS + number] = self.memory
        base = _base_of[self.memory]
        return base + self.offset if isinstance(self.offset, np.ndarray) else np.int64(base + self.offset)

    def select_lane(self, lane: int) -> PointerValue:
        """Return the pointer of one lane."""
        if not isinstance(self.offset, np.ndarray):
            return self
        return to_pointer(self.offset[lane]) if self.mixed else PointerValue(self.memory, int(self.offset[lane]))

    def split_by_memory(self, mask: LaneMask) -> list[tuple[PointerValue, LaneMask]]:
        """Split a mixed pointer: return one pointer for each memory, with its lanes."""
        if not self.mixed:
            return [(self, mask)]
        keys = _find_keys(self.offset)
        parts: list[tuple[PointerValue, LaneMask]] = []
        for memory, own_keys in _group_keys(keys[mask.lanes]):
            lanes = LaneMask(np.isin(keys, own_keys) & mask.bits)
            offset = self.offset if memory is None else self.offset - _base_of[memory]
            parts.append((PointerValue(memory, offset), lanes))
        return parts

    def _find_element(
        self, batch: RunningBatch, index: Any, size: int, mask: LaneMask, site: AccessSite
    ) -> tuple[DeviceMemory, Any]:
        """Return the memory, and the index in elements of `size` bytes of the element at `index` from the pointer."""
        if self.memory is None:
            raise self._invalid_pointer_error(batch, mask, site)
        if isinstance(self.offset, np.ndarray):
            first = self.offset // size
            misaligned, _ = mask.split(self.offset != first * size)
            if misaligned is not None:
                raise self._misaligned_error(batch, misaligned, size, site)
        elif self.offset == 0:
            return self.memory, 0 if index is None else _to_signed(index)
        else:
            first, rest = divmod(self.offset, size)
            if rest:
                raise self._misaligned_error(batch, mask, size, site)
        if index is None:
            return self.memory, first
        return self.memory, first + (index.astype(np.int64) if isinstance(index, np.ndarray) else int(index))

    def _invalid_pointer_error(self, batch: RunningBatch, mask: LaneMask, site: AccessSite) -> AccessError:
        numbers = np.broadcast_to(self.offset, mask.bits.size)[mask.lanes]
        first = int(np.argmax(numbers >= _LOWEST_HOST_ADDRESS))  # of pointers that are not null, if there is one
        kind, pointer, advice = _describe_invalid_pointer(int(numbers[first]))
        thread = batch.describe(int(mask.lanes[first]))
        return AccessError(
            f"{site.position}: Invalid {site.action} by {thread} through {pointer}.",
            mask.lanes,
            position=site.position,
            advice=advice,
            kind=kind,
            thread=thread,
        )

    def _misaligned_error(self, batch: RunningBatch, mask: LaneMask, size: int, site: AccessSite) -> AccessError:
        assert self.memory is not None
        thread = batch.describe(int(mask.lanes[0]))
        return AccessError(
            f"{site.position}: Invalid __{self.memory.space}__ {site.action} of size {size} bytes by "
            f"{thread}: its address in {self.memory.name} is misaligned.",
            mask.lanes,
            position=site.position,
            advice=f"The address must be a multiple of {size} bytes.",
            kind="misaligned",
            thread=thread,
        )

    def find_element(
        self, batch: RunningBatch, size: int, mask: LaneMask, site: AccessSite
    ) -> tuple[DeviceMemory, Any]:
        """Return the memory that observers see, and the index of the pointer's element in it.

        Parameters
        ----------
        batch : RunningBatch
            The batch of the lanes.
        size : int
            Bytes per element.
        mask : LaneMask
            The lanes that access it; all of them must point into one memory.
        site : AccessSite
            The access in the source, for errors.

        Returns
        -------
        memory : DeviceMemory
            The memory; for another block's variable, that of all blocks.
        element : int or array
            The index in elements of `size` bytes, one for all lanes or one per lane.

        Raises
        ------
        LaunchError
            The pointer of an active lane is invalid or misaligned.
        """
        memory, element = self._find_element(batch, None, size, mask, site)
        return observed_memory(memory), element


def _describe_invalid_pointer(number: int) -> tuple[str, str, str]:
    """Return the finding's kind, the pointer in words, and advice, for a pointer without a memory."""
    upper = number >> _OFFSET_BITS
    if number < _LOWEST_HOST_ADDRESS or (number < _LARGEST_NULL_OFFSET and not _is_in_process(number)):
        return "null-pointer", "a null pointer", ""
    if upper < _HOST_NUMBERS:
        advice = "Pass a pointer from cudaMalloc, and copy the data with cudaMemcpy."
        return "invalid-pointer", "a pointer to host memory", advice
    if upper >= _HOST_NUMBERS + len(_spaces):
        return "invalid-pointer", f"{number:#x}, which is not an address of any memory", ""
    if _spaces[upper - _HOST_NUMBERS] == "global":
        return "use-after-free", "a pointer to memory that has been freed", ""
    return "use-after-scope", "a pointer to a variable whose scope has ended", ""


def _is_in_process(address: int) -> bool:
    """Return whether the process has memory at an address, as the heap of a program that is not relocated; on Linux."""
    regions = Path("/proc/self/maps")
    if not regions.exists():
        return False
    ranges = (line.split(maxsplit=1)[0].split("-") for line in regions.read_text().splitlines())
    return any(int(first, 16) <= address < int(end, 16) for first, end in ranges)


def _to_signed(index: Any) -> Any:
    """Return an index as a signed number: NumPy would make float64 of the sum of a size_t and a block's first index."""
    if not isinstance(index, np.ndarray):
        return int(index)
    return index.view(np.int64) if index.dtype == np.uint64 else index


@contextmanager
def without_observer(batch: RunningBatch) -> Iterator[None]:
    """Disable a batch's observer in a `with` block."""
    observer, batch.observer = batch.observer, None
    try:
        yield
    finally:
        batch.observer = observer


def reserve_address(memory: DeviceMemory, address: int, slots: range) -> None:
    """Make kernels address a memory by its host address, and by all others in its slots of `HOST_SLOT_BYTES`."""
    _base_of[memory] = address
    _memory_of.update(dict.fromkeys(slots, memory))


def to_pointer(number: Any, mask: LaneMask | None = None) -> PointerValue:
    """Convert a 64-bit number, one for all lanes or one per lane, to a pointer.

    In lanes outside a mask, numbers are arbitrary and do not make a pointer mixed.
    """
    if not isinstance(number, np.ndarray):
        value = int(number)
        upper = value >> _OFFSET_BITS
        memory = _memory_of.get(value // HOST_SLOT_BYTES if 0 <= upper < _HOST_NUMBERS else _HOST_SLOTS + upper)
        return PointerValue(memory, value - _base_of[memory] if memory is not None else value)
    keys = _find_keys(number)
    active = keys if mask is None or not mask.lanes.size else keys[mask.lanes]
    if (active == active[0]).all():
        memory = _memory_of.get(int(active[0]))
        return PointerValue(memory, number - _base_of[memory] if memory is not None else number)
    memories = [memory for memory, _ in _group_keys(keys)]
    if len(memories) == 1 and memories[0] is not None:
        return PointerValue(memories[0], number - _base_of[memories[0]])
    return PointerValue(None, number, mixed=True, memories=memories)


def _find_keys(numbers: Any) -> Any:
    """Return the keys in `_memory_of` of an array of pointers: slots of the host, or numbers of memories after them."""
    upper = numbers >> _OFFSET_BITS
    is_host = (upper >= 0) & (upper < _HOST_NUMBERS)
    keys = upper + _HOST_SLOTS
    return np.where(is_host, numbers // HOST_SLOT_BYTES, keys) if np.count_nonzero(is_host) else keys


def _group_keys(keys: Any) -> list[tuple[DeviceMemory | None, list[int]]]:
    """Return the memories that keys belong to, each with its keys; None for each key without a memory."""
    groups: dict[int, tuple[DeviceMemory | None, list[int]]] = {}
    for key in sorted(set(keys.tolist())):
        memory = _memory_of.get(key)
        groups.setdefault(key if memory is None else ~id(memory), (memory, []))[1].append(key)
    return list(groups.values())


def select_lane(value: Any, lane: int) -> Any:
    """Return the value of one lane; of a value that is equal in all lanes, the value itself.

    Parameters
    ----------
    value : scalar, array, PointerValue or tuple
        A tuple is a struct with a value per member.
    lane : int
        The lane's number in the batch.
    """
    if isinstance(value, np.ndarray):
        return value[lane]
    if isinstance(value, PointerValue):
        return value.select_lane(lane)
    return tuple(select_lane(part, lane) for part in value) if isinstance(value, tuple) else value


def merge_pointers(old: PointerValue, new: PointerValue, bits: Any) -> PointerValue:
    """Return a pointer that is `new` in the lanes of `bits`, and `old` in the others."""
    if old.memory is new.memory and not old.mixed and not new.mixed:
        return PointerValue(new.memory, np.where(bits, new.offset, old.offset))
    return to_pointer(np.where(bits, new.number(), old.number()))
