"""Memory with the same address for the host program and its kernels: managed and page-locked memory.

Small addresses of the simulator are valid on the host too. Each memory has its own slots of them
(`HOST_SLOT_BYTES`), and is mapped there in the middle of its first slot: pointers that miss it by up to half a slot
still belong to it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.memory import GlobalMemory, free_memory
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.simulator.executor.state.pointers import HOST_SLOT_BYTES, reserve_address, to_pointer

Array = npt.NDArray[Any]

_SLOTS = range(1 << 10, 80 << 10)
"""Slots for mapped memory; outside of them are programs and libraries."""
_MAX_MEMORIES = 60_000
"""Linux maps at most 65,530 regions in a process."""
_FIXED_NOREPLACE = 0x100000
_MAP_FAILED = ctypes.c_void_p(-1).value
_PAGE = 4096


def host_view(address: int, size: int) -> Array:
    """Return a view of bytes at an address of this process, without checks."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.empty(0, np.uint8)


def access_host(kind: type[Any], address: int) -> Any:
    """Return an object of a ctypes type at an address of this process; raise RefusedRoutineError for null."""
    if not address:
        raise RefusedRoutineError(errors.INVALID_VALUE)
    return kind.from_address(address)


def write_address(target: int, value: int) -> None:
    """Write an address, a size or a handle, 64 bits, at an address of this process."""
    access_host(ctypes.c_longlong, target).value = value


def write_int(target: int, value: int) -> None:
    """Write an int, 32 bits, at an address of this process."""
    access_host(ctypes.c_int, target).value = value


def write_string(target: int, room: int, text: str) -> None:
    """Write a text with a final zero at an address of this process, as much of it as fits into `room` bytes."""
    data = text.encode()[: room - 1] + b"\0"
    ctypes.memmove(target, data, len(data))


@dataclass
class MappedMemories:
    """Mapped memories of a program, by address."""

    memories: dict[int, GlobalMemory] = field(default_factory=dict)
    _slots: dict[int, range] = field(default_factory=dict)
    _used_slots: set[int] = field(default_factory=set)
    _next_slot: int = _SLOTS.start

    def allocate(self, size: int, *, managed: bool) -> int | None:
        """Map new memory and return its address; None if there is no space."""
        if not 0 < size <= free_memory():
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        for slots in self._find_free_slots(size):
            address = slots.start * HOST_SLOT_BYTES + HOST_SLOT_BYTES // 2
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
            result = libc.mmap(address, _round_to_pages(size), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            if result in (None, _MAP_FAILED):
                if ctypes.get_errno() != errno.EEXIST:
                    return None
                continue
            if result != address:
                _unmap(libc, result, size)
                continue
            memory = GlobalMemory(host_view(address, size), written=True, managed=managed)
            reserve_address(memory, address, slots)
            self.memories[address], self._slots[address] = memory, slots
            self._used_slots.update(slots)
            self._next_slot = slots.stop
            return address
        return None

    def _find_free_slots(self, size: int) -> Iterator[range]:
        """Yield free slots for a memory; those that were freed last come last, to detect their use after that."""
        if len(self.memories) >= _MAX_MEMORIES:
            return
        count = 1 if size <= HOST_SLOT_BYTES // 4 else 1 + -(-size // HOST_SLOT_BYTES)
        for starts in (range(self._next_slot, _SLOTS.stop), range(_SLOTS.start, self._next_slot)):
            for start in starts:
                slots = range(start, start + count)
                if slots.stop <= _SLOTS.stop and self._used_slots.isdisjoint(slots):
                    yield slots

    def free(self, address: int) -> bool:
        """Unmap memory; return whether there was any at this address."""
        memory = self.memories.pop(address, None)
        if memory is None:
            return False
        _unmap(ctypes.CDLL(None), address, memory.data.size)
        self._used_slots.difference_update(self._slots.pop(address))
        return True

    def find_memory(self, address: int) -> GlobalMemory | None:
        """Return the memory that contains an address."""
        pointer = to_pointer(address)
        memory = pointer.memory
        is_inside = isinstance(memory, GlobalMemory) and 0 <= pointer.offset < memory.data.size
        return self.memories.get(address - pointer.offset) if is_inside else None


def _round_to_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _unmap(libc: ctypes.CDLL, address: int, size: int) -> None:
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(_round_to_pages(size)))
