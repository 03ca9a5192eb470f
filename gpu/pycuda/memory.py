"""The device's memory: allocations with flat 64-bit addresses, and what is copied and filled there.

An address is the number that the simulator's pointers are kept as in memory, so that those in structs and arrays are
followed as any other.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.pycuda.devices import current, total_memory
from gpu.pycuda.faults import INVALID_VALUE, DriverMemoryError, said, wrong
from gpu.pycuda.names import exported
from gpu.pycuda.streams import SimulatedStream
from gpu.simulator.executor.memory import POISON, FlatMemory
from gpu.simulator.executor.pointers import PointerValue, from_number

Array = npt.NDArray[Any]

_UNNAMED = "an allocation"
_PITCH = 512
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


def new_memory(size: int, routine: str = "cuMemAlloc", *, written: bool = False, managed: bool = False) -> GlobalMemory:
    """Return memory of the device.

    Raises
    ------
    DriverMemoryError
        The device has no room for it.
    DriverLogicError
        There is no context, or nothing is asked for.
    """
    current(routine)
    if size <= 0:
        raise wrong(routine, INVALID_VALUE, f"an allocation of {size} bytes")
    left = total_memory() - _account.taken
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


@exported("DeviceAllocation")
class SimulatedAllocation:
    """Memory that is free again when this object is gone."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory: GlobalMemory | None = memory
        self._address = address_of(memory)

    def __int__(self) -> int:
        return self._address

    __index__ = __long__ = __int__

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Return a part of it as a buffer."""
        return bytes_at(self._address + offset, size, "DeviceAllocation.as_buffer").data

    def free(self) -> None:
        """Give the memory back."""
        if self.memory is None:
            raise wrong("cuMemFree", INVALID_VALUE, "it was freed before")
        self.memory = None


@exported("PointerHolderBase")
class PointerHolder:
    """What a script derives from to hand out pointers of its own."""

    def get_pointer(self) -> int:
        """Return the address."""
        raise NotImplementedError("a class that derives from PointerHolderBase says what its pointer is")

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Return what is there as a buffer."""
        return bytes_at(int(self) + offset, size, "PointerHolderBase.as_buffer").data

    def __int__(self) -> int:
        return int(self.get_pointer())

    __index__ = __long__ = __int__


def _place(address: int, routine: str) -> tuple[FlatMemory, int]:
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
    memory, offset = _place(int(address), routine)
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
        memory, _ = _place(int(address), routine)
        if isinstance(memory, GlobalMemory):
            memory.written = True
    return view


def host_bytes(thing: Any, *, writable: bool = False) -> Array:
    """Return the bytes of an array, or of another buffer without gaps, as they lie in memory: a view."""
    array = thing if isinstance(thing, np.ndarray | np.generic) else np.asarray(memoryview(thing))
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("ndarray is not contiguous")
    if writable and not array.flags.writeable:
        raise ValueError("buffer source array is read-only")
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)


class _Reach:
    """The bytes from an array's first element to its last one, gaps included."""

    def __init__(self, array: Array, size: int) -> None:
        self._array = array  # which is kept
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (array.__array_interface__["data"][0], not array.flags.writeable),
            "version": 3,
        }


def reach_of(thing: Any, *, writable: bool = False) -> Array:
    """Return the bytes from an array's first element on, as far as it reaches, gaps included: a view."""
    array = thing if isinstance(thing, np.ndarray) else np.asarray(memoryview(thing))
    if writable and not array.flags.writeable:
        raise ValueError("buffer source array is read-only")
    if not array.size:
        return np.empty(0, np.uint8)
    steps = zip(array.shape, array.strides, strict=True)
    size = array.itemsize + sum((extent - 1) * stride for extent, stride in steps if stride > 0)
    return np.asarray(_Reach(array, size))


@exported("mem_get_info")
def mem_get_info() -> tuple[int, int]:
    """Return how many bytes are free, and how many there are."""
    current("cuMemGetInfo")
    return total_memory() - _account.taken, total_memory()


@exported("mem_alloc")
def mem_alloc(bytes: int) -> SimulatedAllocation:  # noqa: A002
    """Allocate memory."""
    return SimulatedAllocation(new_memory(int(bytes)))


@exported("mem_alloc_pitch")
def mem_alloc_pitch(width: int, height: int, access_size: int) -> tuple[SimulatedAllocation, int]:
    """Allocate rows of `width` bytes; return them, and the bytes from one to the next."""
    if access_size not in (4, 8, 16):
        raise wrong("cuMemAllocPitch", INVALID_VALUE, f"elements of {access_size} bytes")
    pitch = -(-int(width) // _PITCH) * _PITCH
    return SimulatedAllocation(new_memory(pitch * int(height), "cuMemAllocPitch")), pitch


@exported("mem_get_address_range")
def mem_get_address_range(address: Any) -> tuple[int, int]:
    """Return where the allocation of an address begins, and its bytes."""
    memory, offset = _place(int(address), "cuMemGetAddressRange")
    return int(address) - offset, memory.data.size


@exported("mem_get_ipc_handle")
def mem_get_ipc_handle(address: Any) -> bytes:
    """Refuse: the memory is this process's own."""
    raise wrong("cuIpcGetMemHandle", "operation not supported", "the simulator's memory is its process's own")


@exported("memcpy_htod")
def memcpy_htod(dest: Any, src: Any) -> None:
    """Copy from the host."""
    current("cuMemcpyHtoD")
    data = host_bytes(src)
    written_at(dest, data.size, "cuMemcpyHtoD")[:] = data


@exported("memcpy_htod_async")
def memcpy_htod_async(dest: Any, src: Any, stream: SimulatedStream | None = None) -> None:
    """Copy from the host; it is done on return."""
    memcpy_htod(dest, src)


@exported("memcpy_dtoh")
def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copy to the host."""
    current("cuMemcpyDtoH")
    data = host_bytes(dest, writable=True)
    data[:] = bytes_at(src, data.size, "cuMemcpyDtoH")


@exported("memcpy_dtoh_async")
def memcpy_dtoh_async(dest: Any, src: Any, stream: SimulatedStream | None = None) -> None:
    """Copy to the host; it is done on return."""
    memcpy_dtoh(dest, src)


@exported("memcpy_dtod")
def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copy within the device."""
    current("cuMemcpyDtoD")
    written_at(dest, size, "cuMemcpyDtoD")[:] = bytes_at(src, size, "cuMemcpyDtoD").copy()


@exported("memcpy_dtod_async")
def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: SimulatedStream | None = None) -> None:
    """Copy within the device; it is done on return."""
    memcpy_dtod(dest, src, size)


@exported("memcpy_peer")
def memcpy_peer(dest: Any, src: Any, size: int, dest_context: Any = None, src_context: Any = None) -> None:
    """Copy between contexts, which share their memory here."""
    memcpy_dtod(dest, src, size)


@exported("memcpy_peer_async")
def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Any = None,
    src_context: Any = None,
    stream: SimulatedStream | None = None,
) -> None:
    """Copy between contexts; it is done on return."""
    memcpy_dtod(dest, src, size)


def _pattern(data: int, itemsize: int) -> Array:
    """Return the bytes of an unsigned number."""
    return np.frombuffer((int(data) % (1 << 8 * itemsize)).to_bytes(itemsize, "little"), np.uint8)


def _memset(itemsize: int, dest: Any, data: int, size: int) -> None:
    routine = f"cuMemsetD{8 * itemsize}"
    current(routine)
    written_at(dest, int(size) * itemsize, routine).reshape(-1, itemsize)[:] = _pattern(data, itemsize)


def _memset_2d(itemsize: int, dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    routine = f"cuMemsetD2D{8 * itemsize}"
    current(routine)
    for row in range(int(height)):
        _memset(itemsize, int(dest) + row * int(pitch), data, width)


def _enter_memsets(itemsize: int) -> None:
    bits = 8 * itemsize

    @exported(f"memset_d{bits}")
    def memset(dest: Any, data: int, size: int) -> None:
        _memset(itemsize, dest, data, size)

    @exported(f"memset_d{bits}_async")
    def memset_async(dest: Any, data: int, size: int, stream: SimulatedStream | None = None) -> None:
        _memset(itemsize, dest, data, size)

    @exported(f"memset_d2d{bits}")
    def memset_2d(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
        _memset_2d(itemsize, dest, pitch, data, width, height)

    @exported(f"memset_d2d{bits}_async")
    def memset_2d_async(
        dest: Any, pitch: int, data: int, width: int, height: int, stream: SimulatedStream | None = None
    ) -> None:
        _memset_2d(itemsize, dest, pitch, data, width, height)


for _itemsize in (1, 2, 4):
    _enter_memsets(_itemsize)
