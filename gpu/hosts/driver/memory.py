"""Device memory: allocations with flat 64-bit addresses.

An address is the number by which the simulator stores pointers in memory, so pointers in structs and arrays work like
any others.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import INVALID_VALUE, DriverMemoryError, build_logic_error, format_failure
from gpu.simulator.executor.state.memory import POISON, FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer

Array = npt.NDArray[Any]

_UNNAMED = "an allocation"
_MAX_MEMORY_BYTES = 4 << 30
_MAX_POISONED_BYTES = 64 << 20
"""Bytes of the largest allocation that is filled with a pattern; untouched pages of larger ones cost nothing."""


class GlobalMemory(FlatMemory):
    """An allocation; `written` is whether anything has been written to it."""

    def __init__(self, data: Array, *, written: bool = False, managed: bool = False) -> None:
        super().__init__(_UNNAMED, "global", data)
        self.written = written
        self.managed = managed
        _usage.add(data.size)

    def __del__(self) -> None:
        if hasattr(self, "data"):
            _usage.subtract(self.data.size)


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
    message = format_failure(routine, "out of memory", f"{size:,} bytes are requested, but {free:,} are free")
    if size > free:
        raise DriverMemoryError(message)
    try:
        data = np.zeros(size, np.uint8) if written or size > _MAX_POISONED_BYTES else np.full(size, POISON, np.uint8)
    except MemoryError:
        raise DriverMemoryError(message) from None
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
    """Return a view of `size` bytes that the caller will write."""
    view = bytes_at(address, size, routine)
    if size:
        memory, _ = find_memory(int(address), routine)
        if isinstance(memory, GlobalMemory):
            memory.written = True
    return view
