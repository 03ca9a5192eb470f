"""The device's memory: allocations with flat 64-bit addresses.

An address is the number that the simulator's pointers are kept as in memory, so that those in structs and arrays are
followed as any other.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.driver.faults import INVALID_VALUE, DriverMemoryError, said, wrong
from gpu.simulator.executor.memory import POISON, FlatMemory
from gpu.simulator.executor.pointers import PointerValue, from_number

Array = npt.NDArray[Any]

_UNNAMED = "an allocation"
_MOST_MEMORY = 4 << 30
_LARGEST_POISONED = 64 << 20
"""Bytes of the largest allocation that is filled when it is made: pages that nobody touches cost nothing."""


class GlobalMemory(FlatMemory):
    """An allocation. `written` says whether anybody has given it values yet."""

    def __init__(self, data: Array, *, written: bool = False, managed: bool = False) -> None:
        super().__init__(_UNNAMED, "global", data)
        self.written = written
        self.managed = managed
        _account.take(data.size)

    def __del__(self) -> None:
        if hasattr(self, "data"):
            _account.give(self.data.size)


class _Account:
    """How much of the device's memory is taken."""

    def __init__(self) -> None:
        self.taken = 0
        self._lock = threading.RLock()  # a collection of garbage may come at any time

    def take(self, size: int) -> None:
        with self._lock:
            self.taken += size

    def give(self, size: int) -> None:
        with self._lock:
            self.taken -= size


_account = _Account()


@cache
def total_memory() -> int:
    """Return how many bytes the device has: no more than this machine can give."""
    import psutil  # asks for Unix's modules where there are some

    return min(_MOST_MEMORY, int(psutil.virtual_memory().total) // 2)


def free_memory() -> int:
    """Return how many bytes of it are not taken."""
    return total_memory() - _account.taken


def new_memory(size: int, routine: str = "cuMemAlloc", *, written: bool = False, managed: bool = False) -> GlobalMemory:
    """Return memory of the device.

    Raises
    ------
    DriverMemoryError
        The device has no room for it.
    DriverLogicError
        Nothing is asked for.
    """
    if size <= 0:
        raise wrong(routine, INVALID_VALUE, f"an allocation of {size} bytes")
    left = free_memory()
    complaint = said(routine, "out of memory", f"{size:,} bytes are asked for, and {left:,} are free")
    if size > left:
        raise DriverMemoryError(complaint)
    try:
        data = np.zeros(size, np.uint8) if written or size > _LARGEST_POISONED else np.full(size, POISON, np.uint8)
    except MemoryError:
        raise DriverMemoryError(complaint) from None
    return GlobalMemory(data, written=written, managed=managed)


def address_of(memory: FlatMemory) -> int:
    """Return where a memory begins."""
    return int(PointerValue(memory).number())


def placed(address: int, routine: str) -> tuple[FlatMemory, int]:
    """Return the memory that an address lies in, and where."""
    place = from_number(np.int64(address)) if address < 1 << 63 else PointerValue(None, address)
    if not isinstance(place.memory, FlatMemory):
        raise wrong(routine, INVALID_VALUE, f"there is no memory at {address:#x}: it is null, freed, or no address")
    return place.memory, int(place.offset)


def bytes_at(address: Any, size: int, routine: str) -> Array:
    """Return a view of `size` bytes of the device's memory.

    Raises
    ------
    DriverLogicError
        They are not all within one allocation.
    """
    if not size:
        return np.empty(0, np.uint8)
    memory, offset = placed(int(address), routine)
    if offset < 0 or size < 0 or offset + size > memory.data.size:
        raise wrong(
            routine,
            INVALID_VALUE,
            f"bytes {offset:,} to {offset + size:,} of {memory.name}, which has {memory.data.size:,}",
        )
    return memory.data[offset : offset + size]


def written_at(address: Any, size: int, routine: str) -> Array:
    """Return a view of `size` bytes that are about to be written."""
    view = bytes_at(address, size, routine)
    if size:
        memory, _ = placed(int(address), routine)
        if isinstance(memory, GlobalMemory):
            memory.written = True
    return view
