"""Allocation, copy and fill routines of device memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver import memory as device
from gpu.hosts.driver.faults import INVALID_VALUE, build_logic_error
from gpu.hosts.driver.memory import (
    GlobalMemory,
    address_of,
    bytes_at,
    copy_device_bytes,
    find_memory,
    free_memory,
    shared_bytes_at,
    total_memory,
    writable_bytes_at,
)
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.names import export
from gpu.hosts.pycuda.streams import SimulatedStream

Array = npt.NDArray[Any]

_PITCH = 512


def new_memory(size: int, routine: str = "cuMemAlloc", *, written: bool = False, managed: bool = False) -> GlobalMemory:
    """Allocate device memory in the current context.

    Parameters
    ----------
    size, routine, written, managed
        As of `gpu.hosts.driver.memory.new_memory`.

    Raises
    ------
    DriverMemoryError
        If there is not enough free memory.
    DriverLogicError
        If the size is not positive, or there is no context.
    """
    current_context(routine)
    return device.new_memory(size, routine, written=written, managed=managed)


@export("DeviceAllocation")
class SimulatedAllocation:
    """Device memory that is freed with this object."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory: GlobalMemory | None = memory
        self._address = address_of(memory)

    def __int__(self) -> int:
        return self._address

    __index__ = __long__ = __int__

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Return a part as a buffer, which the script may write."""
        return shared_bytes_at(self._address + offset, size, "DeviceAllocation.as_buffer").data

    def free(self) -> None:
        """Free the memory."""
        if self.memory is None:
            raise build_logic_error("cuMemFree", INVALID_VALUE, "it is already freed")
        self.memory = None


@export("PointerHolderBase")
class PointerHolder:
    """Base class for objects of scripts that hold a pointer."""

    def get_pointer(self) -> int:
        """Return the address."""
        raise NotImplementedError("a subclass of PointerHolderBase must define get_pointer")

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Return memory at the address as a buffer, which the script may write."""
        return shared_bytes_at(int(self) + offset, size, "PointerHolderBase.as_buffer").data

    def __int__(self) -> int:
        return int(self.get_pointer())

    __index__ = __long__ = __int__


def host_bytes(buffer: Any, *, writable: bool = False) -> Array:
    """Return a view of the bytes of an array or another contiguous buffer, in memory order."""
    array = buffer if isinstance(buffer, np.ndarray | np.generic) else np.asarray(memoryview(buffer))
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("ndarray is not contiguous")
    if writable and not array.flags.writeable:
        raise ValueError("buffer source array is read-only")
    flat = array.reshape(-1) if array.flags.c_contiguous else array.T.reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)


class _ByteSpan:
    """The bytes from an array's first to its last element, including gaps."""

    def __init__(self, array: Array, size: int) -> None:
        self._array = array  # keeps it alive
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (array.__array_interface__["data"][0], not array.flags.writeable),
            "version": 3,
        }


def strided_bytes(buffer: Any, *, writable: bool = False) -> Array:
    """Return a view of the bytes from an array's first to its last element, including gaps."""
    array = buffer if isinstance(buffer, np.ndarray) else np.asarray(memoryview(buffer))
    if writable and not array.flags.writeable:
        raise ValueError("buffer source array is read-only")
    if not array.size:
        return np.empty(0, np.uint8)
    steps = zip(array.shape, array.strides, strict=True)
    size = array.itemsize + sum((extent - 1) * stride for extent, stride in steps if stride > 0)
    return np.asarray(_ByteSpan(array, size))


@export("mem_get_info")
def mem_get_info() -> tuple[int, int]:
    """Return the free and the total device memory in bytes."""
    current_context("cuMemGetInfo")
    return free_memory(), total_memory()


@export("mem_alloc")
def mem_alloc(bytes: int) -> SimulatedAllocation:  # noqa: A002
    """Allocate device memory."""
    return SimulatedAllocation(new_memory(int(bytes)))


@export("mem_alloc_pitch")
def mem_alloc_pitch(width: int, height: int, access_size: int) -> tuple[SimulatedAllocation, int]:
    """Allocate rows of `width` bytes; return them and the pitch in bytes."""
    if access_size not in (4, 8, 16):
        raise build_logic_error("cuMemAllocPitch", INVALID_VALUE, f"elements of {access_size} bytes")
    pitch = -(-int(width) // _PITCH) * _PITCH
    return SimulatedAllocation(new_memory(pitch * int(height), "cuMemAllocPitch")), pitch


@export("mem_get_address_range")
def mem_get_address_range(address: Any) -> tuple[int, int]:
    """Return the address and size of the allocation that contains an address."""
    memory, offset = find_memory(int(address), "cuMemGetAddressRange")
    return int(address) - offset, memory.data.size


@export("mem_get_ipc_handle")
def mem_get_ipc_handle(address: Any) -> bytes:
    """Raise an error: other processes cannot access the memory."""
    raise build_logic_error(
        "cuIpcGetMemHandle", "operation not supported", "other processes cannot access the simulator's memory"
    )


@export("memcpy_htod")
def memcpy_htod(dest: Any, src: Any) -> None:
    """Copy from the host."""
    current_context("cuMemcpyHtoD")
    data = host_bytes(src)
    writable_bytes_at(dest, data.size, "cuMemcpyHtoD")[:] = data


@export("memcpy_htod_async")
def memcpy_htod_async(dest: Any, src: Any, stream: SimulatedStream | None = None) -> None:
    """Copy from the host; complete on return."""
    memcpy_htod(dest, src)


@export("memcpy_dtoh")
def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copy to the host."""
    current_context("cuMemcpyDtoH")
    data = host_bytes(dest, writable=True)
    data[:] = bytes_at(src, data.size, "cuMemcpyDtoH")


@export("memcpy_dtoh_async")
def memcpy_dtoh_async(dest: Any, src: Any, stream: SimulatedStream | None = None) -> None:
    """Copy to the host; complete on return."""
    memcpy_dtoh(dest, src)


@export("memcpy_dtod")
def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copy within the device."""
    current_context("cuMemcpyDtoD")
    copy_device_bytes(dest, src, size, "cuMemcpyDtoD")


@export("memcpy_dtod_async")
def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: SimulatedStream | None = None) -> None:
    """Copy within the device; complete on return.

    Parameters
    ----------
    dest, src : int or SimulatedAllocation
        Addresses on the device.
    size : int
        Bytes to copy.
    stream : SimulatedStream or None
        Ignored, because the copy is complete on return.
    """
    memcpy_dtod(dest, src, size)


@export("memcpy_peer")
def memcpy_peer(dest: Any, src: Any, size: int, dest_context: Any = None, src_context: Any = None) -> None:
    """Copy between contexts, which share memory in the simulator.

    Parameters
    ----------
    dest, src : int or SimulatedAllocation
        Addresses on the device.
    size : int
        Bytes to copy.
    dest_context, src_context : SimulatedContext or None
        Ignored.
    """
    memcpy_dtod(dest, src, size)


@export("memcpy_peer_async")
def memcpy_peer_async(
    dest: Any,
    src: Any,
    size: int,
    dest_context: Any = None,
    src_context: Any = None,
    stream: SimulatedStream | None = None,
) -> None:
    """Copy between contexts; complete on return.

    Parameters
    ----------
    dest, src, size, dest_context, src_context
        As of `memcpy_peer`.
    stream : SimulatedStream or None
        Ignored, because the copy is complete on return.
    """
    memcpy_dtod(dest, src, size)


def _fill_pattern(data: int, itemsize: int) -> Array:
    """Return the bytes of an unsigned integer."""
    return np.frombuffer((int(data) % (1 << 8 * itemsize)).to_bytes(itemsize, "little"), np.uint8)


def _memset(itemsize: int, dest: Any, data: int, size: int) -> None:
    routine = f"cuMemsetD{8 * itemsize}"
    current_context(routine)
    writable_bytes_at(dest, int(size) * itemsize, routine).reshape(-1, itemsize)[:] = _fill_pattern(data, itemsize)


def _memset_2d(itemsize: int, dest: Any, pitch: int, data: int, width: int, height: int) -> None:
    routine = f"cuMemsetD2D{8 * itemsize}"
    current_context(routine)
    for row in range(int(height)):
        _memset(itemsize, int(dest) + row * int(pitch), data, width)


def _export_memsets(itemsize: int) -> None:
    bits = 8 * itemsize

    @export(f"memset_d{bits}")
    def memset(dest: Any, data: int, size: int) -> None:
        _memset(itemsize, dest, data, size)

    @export(f"memset_d{bits}_async")
    def memset_async(dest: Any, data: int, size: int, stream: SimulatedStream | None = None) -> None:
        _memset(itemsize, dest, data, size)

    @export(f"memset_d2d{bits}")
    def memset_2d(dest: Any, pitch: int, data: int, width: int, height: int) -> None:
        _memset_2d(itemsize, dest, pitch, data, width, height)

    @export(f"memset_d2d{bits}_async")
    def memset_2d_async(
        dest: Any, pitch: int, data: int, width: int, height: int, stream: SimulatedStream | None = None
    ) -> None:
        _memset_2d(itemsize, dest, pitch, data, width, height)


for _itemsize in (1, 2, 4):
    _export_memsets(_itemsize)
