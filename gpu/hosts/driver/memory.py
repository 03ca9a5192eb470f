"""Device memory: allocations with flat 64-bit addresses.

An address is the number by which the simulator stores pointers in memory, so pointers in structs and arrays work like
any others.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import INVALID_VALUE, DriverMemoryError, build_logic_error, format_failure
from gpu.simulator.executor.state.memory import POISON, FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer

Array = npt.NDArray[Any]

_UNNAMED = "an allocation"
_WRITTEN = 0xFF
_MAX_MEMORY_BYTES = 4 << 30
_MAX_POISONED_BYTES = 64 << 20
"""Bytes of the largest allocation that is filled with a pattern; untouched pages of larger ones cost nothing."""


class GlobalMemory(FlatMemory):
    """An allocation, which knows its written bytes.

    Parameters
    ----------
    data : array of uint8
        The bytes.
    written : bool
        Whether all bytes always count as written, as the host may write them.
    managed : bool
        Whether the host can access it too.
    """

    def __init__(self, data: Array, *, written: bool = False, managed: bool = False) -> None:
        super().__init__(_UNNAMED, "global", data)
        self.managed = managed
        self._is_tracked, self._is_written = not written, written
        self._written_bytes: Array | None = None
        _usage.add(data.size)
        if not written:
            _partly_written.add(self)

    def __del__(self) -> None:
        if hasattr(self, "data"):
            _usage.subtract(self.data.size)

    def get_written_bytes(self) -> Array | None:
        if self._is_written:
            return None
        if self._written_bytes is None:
            self._written_bytes = np.zeros(-(-self.data.size // 16) * 16, np.uint8)
        return self._written_bytes

    def mark_written(self, offset: int = 0, size: int | None = None) -> None:
        """Mark `size` bytes from an offset as written; by default, all bytes."""
        if size is None or size >= self.data.size:
            self._is_written, self._written_bytes = True, None
            _partly_written.discard(self)
            return
        written = self.get_written_bytes()
        if written is not None:
            written[offset : offset + size] = _WRITTEN

    def share(self) -> None:
        """Count all bytes as written from now on, as the host may write them."""
        self._is_tracked = False
        self.mark_written()

    def mark_unwritten(self, offset: int, unwritten: Array) -> None:
        """Mark bytes from an offset as not written, where `unwritten` is true: a bool for each byte."""
        if not self._is_tracked:
            return
        written = self.get_written_bytes()
        if written is None:
            self._is_written = False
            written = self._written_bytes = np.full(-(-self.data.size // 16) * 16, _WRITTEN, np.uint8)
            _partly_written.add(self)
        written[offset : offset + unwritten.size][unwritten] = 0

    def mark_if_complete(self) -> None:
        """Drop the mask of written bytes if it contains all of them."""
        written = self._written_bytes
        if written is not None and written[-1 - (written.size - self.data.size)] and written[: self.data.size].all():
            self.mark_written()


def mark_all_written() -> None:
    """Mark all bytes of all allocations as written, after unobserved writes."""
    for memory in list(_partly_written):
        memory.mark_written()


def mark_complete_memories() -> None:
    """Drop the masks of all allocations whose bytes have all been written."""
    for memory in list(_partly_written):
        memory.mark_if_complete()


class _Usage:
    """Counter of allocated device memory."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.RLock()  # garbage collection may run at any time

    def add(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def subtract(self, size: int) -> None:
        with self._lock:
            self.bytes -= size


_usage = _Usage()
_partly_written: WeakSet[GlobalMemory] = WeakSet()


@cache
def total_memory() -> int:
    """Return the device's memory in bytes, limited by this machine's."""
    import psutil  # imports modules that exist on Unix only

    return min(_MAX_MEMORY_BYTES, int(psutil.virtual_memory().total) // 2)


def free_memory() -> int:
    """Return the free device memory in bytes."""
    return total_memory() - _usage.bytes


def new_memory(size: int, routine: str = "cuMemAlloc", *, written: bool = False, managed: bool = False) -> GlobalMemory:
    """Allocate device memory.

    Parameters
    ----------
    size : int
        Bytes, more than 0.
    routine : str
        The driver's function in messages.
    written : bool
        Whether the memory counts as initialized: it contains zeros, and the checkers report no uninitialized reads.
    managed : bool
        Whether the host can access it too.

    Raises
    ------
    DriverMemoryError
        If there is not enough free memory.
    DriverLogicError
        If the size is not positive.
    """
    if size <= 0:
        raise build_logic_error(routine, INVALID_VALUE, f"an allocation of {size} bytes")
    free = free_memory()
    requested = f"{size:,} bytes are requested, "
    if size > free:
        raise DriverMemoryError(format_failure(routine, "out of memory", f"{requested}but {free:,} are free"))
    try:
        data = np.zeros(size, np.uint8) if written or size > _MAX_POISONED_BYTES else np.full(size, POISON, np.uint8)
    except MemoryError:
        detail = f"{requested}more than --max-memory or this machine has left"
        raise DriverMemoryError(format_failure(routine, "out of memory", detail)) from None
    return GlobalMemory(data, written=written, managed=managed)


def address_of(memory: FlatMemory) -> int:
    """Return the address of a memory's first byte."""
    return int(PointerValue(memory).number())


def find_memory(address: int, routine: str) -> tuple[FlatMemory, int]:
    """Return the memory that contains an address, and the offset in it."""
    pointer = to_pointer(np.int64(address)) if address < 1 << 63 else PointerValue(None, address)
    if not isinstance(pointer.memory, FlatMemory):
        raise build_logic_error(
            routine, INVALID_VALUE, f"there is no memory at {address:#x}: null, freed or not an address"
        )
    return pointer.memory, int(pointer.offset)


def bytes_at(address: Any, size: int, routine: str) -> Array:
    """Return a view of `size` bytes of the device's memory.

    Raises
    ------
    DriverLogicError
        If they are not all in one allocation.
    """
    if not size:
        return np.empty(0, np.uint8)
    memory, offset = find_memory(int(address), routine)
    if offset < 0 or size < 0 or offset + size > memory.data.size:
        raise build_logic_error(
            routine,
            INVALID_VALUE,
            f"bytes {offset:,} to {offset + size:,} of {memory.name}, which has {memory.data.size:,} bytes",
        )
    return memory.data[offset : offset + size]


def writable_bytes_at(address: Any, size: int, routine: str) -> Array:
    """Return a view of `size` bytes that the caller will write; they count as written."""
    view = bytes_at(address, size, routine)
    if size:
        memory, offset = find_memory(int(address), routine)
        if isinstance(memory, GlobalMemory):
            memory.mark_written(offset, size)
    return view


def shared_bytes_at(address: Any, size: int, routine: str) -> Array:
    """Return a view of `size` bytes that the host may write at any time; from now on they always count as written."""
    view = bytes_at(address, size, routine)
    if size:
        memory, _ = find_memory(int(address), routine)
        if isinstance(memory, GlobalMemory):
            memory.share()
    return view


def copy_device_bytes(target: Any, source: Any, size: int, routine: str) -> None:
    """Copy `size` bytes within the device; what has not been written to the source counts as unwritten at the target.

    Raises
    ------
    DriverLogicError
        If the bytes are not all in one allocation on each side.
    """
    if not size:
        return
    data = bytes_at(source, size, routine)
    memory, offset = find_memory(int(source), routine)
    written = memory.get_written_bytes()
    part = None if written is None else written[offset : offset + size].copy()
    writable_bytes_at(target, size, routine)[:] = data
    if part is not None and not part.all():
        memory, offset = find_memory(int(target), routine)
        if isinstance(memory, GlobalMemory):
            memory.mark_unwritten(offset, part == 0)
