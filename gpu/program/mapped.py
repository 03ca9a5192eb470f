"""Memory that the program and its kernels reach by the same addresses: managed memory, and what is page-locked.

The simulator's addresses have a memory's number in their upper bits. Those whose numbers are small are addresses that
a processor has too: there the memory is put.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.driver.memory import GlobalMemory
from gpu.simulator.executor.pointers import host_address, reserve

Array = npt.NDArray[Any]

_NUMBERS = range(1, 80)
"""Others may be where programs and libraries lie."""
_FIXED_NOREPLACE = 0x100000
_FAILED = ctypes.c_void_p(-1).value
_PAGE = 4096


def host_view(address: int, size: int) -> Array:
    """Return the bytes at an address of this process's own, which nobody checks: a view."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.empty(0, np.uint8)


@dataclass
class MappedMemories:
    """All such memories of a program, by their addresses."""

    held: dict[int, GlobalMemory] = field(default_factory=dict)
    _free: list[int] = field(default_factory=lambda: list(reversed(_NUMBERS)))
    _number_at: dict[int, int] = field(default_factory=dict)

    def allocate(self, size: int, *, managed: bool) -> int | None:
        """Return the address of new memory; None where there is no room."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        while self._free:
            number = self._free.pop()
            wanted = host_address(number)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
            found = libc.mmap(wanted, _pages(size), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            if found in (None, _FAILED):
                continue
            if found != wanted:
                _unmap(libc, found, size)
                continue
            memory = GlobalMemory(host_view(wanted, size), written=True, managed=managed)
            reserve(memory, number)
            self.held[wanted], self._number_at[wanted] = memory, number
            return wanted
        return None

    def free(self, address: int) -> bool:
        """Give memory back; return whether there was some at that address."""
        memory = self.held.pop(address, None)
        if memory is None:
            return False
        _unmap(ctypes.CDLL(None), address, memory.data.size)
        self._free.insert(0, self._number_at.pop(address))
        return True

    def owner(self, address: int) -> GlobalMemory | None:
        """Return the memory that an address lies in."""
        for first, memory in self.held.items():
            if first <= address < first + memory.data.size:
                return memory
        return None


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _unmap(libc: ctypes.CDLL, address: int, size: int) -> None:
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(_pages(size)))
