"""Memory with the same address for the host program and its kernels: managed and page-locked memory.

The upper bits of the simulator's addresses are a memory's number. Addresses with small numbers are valid on the host
too, and this memory is mapped there.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.memory import GlobalMemory, free_memory
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.simulator.executor.state.pointers import host_address, reserve_address

Array = npt.NDArray[Any]

_MEMORY_NUMBERS = range(1, 80)
"""Memory numbers for mapped memory; larger ones may collide with programs and libraries."""
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


@dataclass
class MappedMemories:
    """Mapped memories of a program, by address."""

    memories: dict[int, GlobalMemory] = field(default_factory=dict)
    _free: list[int] = field(default_factory=lambda: list(reversed(_MEMORY_NUMBERS)))
    _numbers: dict[int, int] = field(default_factory=dict)

    def allocate(self, size: int, *, managed: bool) -> int | None:
        """Map new memory and return its address; None if there is no space."""
        if not 0 < size <= free_memory():
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        while self._free:
            number = self._free.pop()
            address = host_address(number)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
            result = libc.mmap(address, _round_to_pages(size), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            if result in (None, _MAP_FAILED):
                continue
            if result != address:
                _unmap(libc, result, size)
                continue
            memory = GlobalMemory(host_view(address, size), written=True, managed=managed)
            reserve_address(memory, number)
            self.memories[address], self._numbers[address] = memory, number
            return address
        return None

    def free(self, address: int) -> bool:
        """Unmap memory; return whether there was any at this address."""
        memory = self.memories.pop(address, None)
        if memory is None:
            return False
        _unmap(ctypes.CDLL(None), address, memory.data.size)
        self._free.insert(0, self._numbers.pop(address))
        return True

    def find_memory(self, address: int) -> GlobalMemory | None:
        """Return the memory that contains an address."""
        for first, memory in self.memories.items():
            if first <= address < first + memory.data.size:
                return memory
        return None


def _round_to_pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _unmap(libc: ctypes.CDLL, address: int, size: int) -> None:
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(_round_to_pages(size)))
