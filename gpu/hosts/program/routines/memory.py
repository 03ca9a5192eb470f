"""Device memory, mapped and registered memory, copies and fills."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.memory import (
    GlobalMemory,
    address_of,
    bytes_at,
    copy_device_bytes,
    free_memory,
    new_memory,
    total_memory,
    writable_bytes_at,
)
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import MappedMemories, access_host, host_view, write_address, write_int
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import to_pointer

Array = npt.NDArray[Any]

FROM_DEVICE, TO_DEVICE, DEFAULT_KIND = (2, 3), (1, 3), 4
"""The kinds of copies, `cudaMemcpyKind`, whose source or target is on the device; and the one that addresses decide."""
_PITCH = 512
_HOST, _DEVICE, _MANAGED = 1, 2, 3


class SpanObserver(Protocol):
    """Takes note of the bytes that a copy or fill accesses."""

    def __call__(self, data: Array, routine: str, *, writes: bool = False) -> None:
        """Compare bytes that a copy or fill reads or writes with operations that may run at the same time."""


@dataclass
class ProgramMemory:
    """The memory of a program, and the routines that allocate, copy and fill it.

    Parameters
    ----------
    view_host : callable
        Returns a view of the host memory that a copy accesses, of an address and a size in bytes.
    is_graph_memory : callable
        Returns whether a graph has allocated the memory at an address.
    """

    _view_host: Callable[[int, int], Array]
    note_span: SpanObserver
    _is_graph_memory: Callable[[int], bool]
    allocations: dict[int, FlatMemory] = field(default_factory=dict)
    mapped: MappedMemories = field(default_factory=MappedMemories)
    _registered: dict[int, GlobalMemory] = field(default_factory=dict)

    @property
    def memories(self) -> list[FlatMemory]:
        """The memory that kernels can access: allocations of the device, and mapped and registered memory."""
        return [*self.allocations.values(), *self.mapped.memories.values(), *self._registered.values()]

    def is_pinned(self, address: int) -> bool:
        """Return whether an address is on the device, or in page-locked memory on the host."""
        return (
            is_device_address(address)
            or self.mapped.find_memory(address) is not None
            or any(first <= address < first + memory.data.size for first, memory in self._registered.items())
        )

    def free_all(self) -> None:
        """Free all memory that the program has allocated."""
        self.allocations.clear()
        for address in list(self.mapped.memories):
            self.mapped.free(address)

    def do_malloc(self, target: int, size: int) -> None:
        result = access_host(ctypes.c_longlong, target)
        if size == 0:
            result.value = 0
            return
        if size < 0:  # as a size_t, more than any memory
            raise RefusedRoutineError(errors.NO_MEMORY)
        memory = new_memory(size, "cudaMalloc")
        self.allocations[address_of(memory)] = memory
        result.value = address_of(memory)

    def do_malloc_pitch(self, target: int, pitch: int, width: int, height: int) -> None:
        """Execute `cudaMallocPitch`.

        Parameters
        ----------
        target : int
            The address at which the address of the memory is written.
        pitch : int
            The address at which the pitch in bytes is written, a multiple of 512.
        width : int
            Bytes per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverMemoryError
            If there is not enough free memory.
        """
        if min(width, height) < 0:
            raise RefusedRoutineError(errors.NO_MEMORY)
        row = -(-width // _PITCH) * _PITCH
        write_address(pitch, row)
        self.do_malloc(target, row * height)

    def do_malloc_mapped(self, target: int, size: int, managed: int) -> None:
        result = access_host(ctypes.c_longlong, target)
        address = self.mapped.allocate(size or 1, managed=bool(managed))
        if address is None:
            raise RefusedRoutineError(errors.NO_MEMORY)
        result.value = address

    def do_free(self, address: int) -> None:
        if self._is_graph_memory(address):
            return
        if address and self.allocations.pop(address, None) is None and not self.mapped.free(address):
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_free_host(self, address: int) -> None:
        if address and not self.mapped.free(address):
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_host_register(self, address: int, size: int) -> None:
        if not address or size <= 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if any(first < address + size and address < first + each.data.size for first, each in self._registered.items()):
            raise RefusedRoutineError(errors.ALREADY_REGISTERED)
        self._registered[address] = GlobalMemory(host_view(address, size), written=True)

    def do_host_unregister(self, address: int) -> None:
        if not address:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if self._registered.pop(address, None) is None:
            raise RefusedRoutineError(errors.NOT_REGISTERED)

    def do_check_managed(self, address: int) -> None:
        """Refuse a prefetch of memory, or advice about memory, that is not managed; ignore others."""
        owner = self.mapped.find_memory(address)
        if owner is None or not owner.managed:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_host_device_pointer(self, target: int, address: int) -> None:
        if address in self._registered:
            write_address(target, address_of(self._registered[address]))
        elif self.mapped.find_memory(address) is not None:
            write_address(target, address)
        else:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_mem_info(self, free: int, total: int) -> None:
        if not free and not total:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for target, size in ((free, free_memory()), (total, total_memory())):
            if target:
                write_address(target, size)

    def do_pointer_attributes(self, address: int, kind: int, device: int) -> None:
        owner = self.mapped.find_memory(address)
        if owner is not None:
            write_int(kind, _MANAGED if owner.managed else _HOST)
        else:
            write_int(kind, _DEVICE if is_device_address(address) else 0)
        if owner is not None or is_device_address(address):
            write_address(device, address)

    def do_memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        """Execute `cudaMemcpy`.

        Parameters
        ----------
        target, source : int
            Addresses on the host or on the device.
        size : int
            Bytes to copy; 0 does nothing.
        kind : int
            The direction as a `cudaMemcpyKind`; 4 derives it from the addresses.

        Raises
        ------
        RefusedRoutineError
            The direction is invalid or does not match an address.
        DriverLogicError
            The bytes on the device are not all in one allocation.
        """
        _check_extents(size)
        if not size:
            return
        data = self.view_side(source, size, kind, FROM_DEVICE, "cudaMemcpy")
        self.note_span(data, "cudaMemcpy")
        if is_device_address(source) and is_device_address(target):
            destination = self.view_side(target, size, kind, TO_DEVICE, "cudaMemcpy")
            self.note_span(destination, "cudaMemcpy", writes=True)
            copy_device_bytes(target, source, size, "cudaMemcpy")
            return
        destination = self.view_side(target, size, kind, TO_DEVICE, "cudaMemcpy", written=True)
        self.note_span(destination, "cudaMemcpy", writes=True)
        ctypes.memmove(destination.ctypes.data, data.ctypes.data, size)

    def do_memcpy_2d(
        self, target: int, target_pitch: int, source: int, source_pitch: int, width: int, height: int, kind: int
    ) -> None:
        """Execute `cudaMemcpy2D`.

        Parameters
        ----------
        target, source : int
            Addresses of the first rows, on the host or on the device.
        target_pitch, source_pitch : int
            The distances between the starts of consecutive rows in bytes, at least `width`.
        width : int
            Bytes to copy per row.
        height : int
            The number of rows.
        kind : int
            As of `do_memcpy`.

        Raises
        ------
        RefusedRoutineError, DriverLogicError
            A pitch is too small; or as of `do_memcpy`.
        """
        _check_extents(width, height)
        if width > target_pitch or width > source_pitch:
            raise RefusedRoutineError(12)
        for row in range(height):
            self.do_memcpy(target + row * target_pitch, source + row * source_pitch, width, kind)

    def do_memset(self, target: int, value: int, size: int) -> None:
        _check_extents(size)
        if size:
            filled = writable_bytes_at(target, size, "cudaMemset")
            self.note_span(filled, "cudaMemset", writes=True)
            filled[:] = value & 0xFF

    def do_memset_elements(self, target: int, pitch: int, value: int, size: int, width: int, height: int) -> None:
        """Fill rows on the device, as a node of `cudaGraphAddMemsetNode` does.

        Parameters
        ----------
        target : int
            The address of the first row.
        pitch : int
            The distance between the starts of consecutive rows in bytes; the rows are contiguous if it is smaller.
        value : int
            The value, of which the lowest `size` bytes are used.
        size : int
            Bytes per element: 1, 2 or 4.
        width : int
            Elements per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverLogicError
            A row is not in one allocation.
        """
        _check_extents(width, height)
        row = np.frombuffer((value & 0xFFFF_FFFF).to_bytes(4, "little")[:size] * width, np.uint8)
        for start in range(target, target + max(pitch, row.size) * height, max(pitch, row.size) or 1):
            filled = writable_bytes_at(start, row.size, "cudaGraphAddMemsetNode")
            self.note_span(filled, "a memset node", writes=True)
            filled[:] = row

    def do_memset_2d(self, target: int, pitch: int, value: int, width: int, height: int) -> None:
        """Execute `cudaMemset2D`.

        Parameters
        ----------
        target : int
            The address of the first row on the device.
        pitch : int
            The distance between the starts of consecutive rows in bytes.
        value : int
            The value of each byte, of which the lowest 8 bits are used.
        width : int
            Bytes to fill per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverLogicError
            A row is not in one allocation.
        """
        _check_extents(width, height)
        if width > pitch and height > 1:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for row in range(height):
            self.do_memset(target + row * pitch, value, width)

    def view_side(
        self, address: int, size: int, kind: int, device_kinds: Sequence[int], routine: str, *, written: bool = False
    ) -> Array:
        """Return a view of the bytes of one side of a copy.

        Parameters
        ----------
        address, size : int
            Bytes on the host or on the device.
        kind : int
            As of `do_memcpy`.
        device_kinds : sequence of int
            The kinds in which the side is on the device.
        routine : str
            The routine, for messages.
        written : bool
            Whether the copy writes the side.

        Raises
        ------
        RefusedRoutineError, DriverLogicError
            As of `do_memcpy`.
        """
        if kind not in range(5):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        on_device = is_device_address(address)
        if kind in device_kinds and not on_device:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if kind not in device_kinds and kind != DEFAULT_KIND and on_device and self.mapped.find_memory(address) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if on_device:
            return (writable_bytes_at if written else bytes_at)(address, size, routine)
        if not address:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        return self._view_host(address, size)

    def view_array_side(
        self, address: int, size: int, kind: int, device_kinds: tuple[int, ...], written: bool
    ) -> Array:
        """Return a view of one side of a copy to or from an array; parameters as of `view_side`."""
        return self.view_side(address, size, kind, device_kinds, "cudaMemcpy2DToArray", written=written)


def is_device_address(address: int) -> bool:
    """Return whether an address is in memory of the simulated device."""
    value = to_pointer(np.int64(address))
    return isinstance(value.memory, FlatMemory)


def _check_extents(*extents: int) -> None:
    """Refuse extents that are negative here: as a `size_t` they exceed every memory."""
    if min(extents) < 0:
        raise RefusedRoutineError(errors.INVALID_VALUE)
