"""Host memory known to the driver: page-locked, aligned, registered and managed; kernels can access it."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import INVALID_VALUE, DriverMemoryError, build_logic_error, format_failure
from gpu.hosts.driver.memory import GlobalMemory, address_of
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.memory.device_memory import SimulatedAllocation, new_memory
from gpu.hosts.pycuda.names import NAMES, export
from gpu.hosts.pycuda.streams import SimulatedStream

Array = npt.NDArray[Any]


@export("HostPointer")
class HostMemory:
    """Host memory that is mapped into device memory."""

    def __init__(self, data: Array) -> None:
        self._mapped: GlobalMemory | None = GlobalMemory(data, written=True)
        self.data = data

    def get_device_pointer(self) -> int:
        """Return its address on the device."""
        if self._mapped is None:
            raise build_logic_error("cuMemHostGetDevicePointer", INVALID_VALUE, "it was freed")
        return address_of(self._mapped)

    def _unmap(self, routine: str) -> None:
        if self._mapped is None:
            raise build_logic_error(routine, INVALID_VALUE, "it is already freed")
        self._mapped = None


@export("PagelockedHostAllocation")
class PagelockedMemory(HostMemory):
    """Page-locked memory."""

    def __init__(self, data: Array, flags: int) -> None:
        super().__init__(data)
        self._flags = flags

    def free(self) -> None:
        """Free it; arrays over it keep their values."""
        self._unmap("cuMemFreeHost")

    def get_flags(self) -> int:
        """Return the flags of its allocation."""
        return self._flags


NAMES["HostAllocation"] = PagelockedMemory


@export("AlignedHostAllocation")
class AlignedMemory(HostMemory):
    """Memory that begins at a multiple of a number of bytes."""

    def free(self) -> None:
        """Free it; arrays over it keep their values."""
        self._unmap("aligned_host_allocation::free")


@export("RegisteredHostMemory")
class RegisteredMemory(HostMemory):
    """An array of the script that was mapped after its creation."""

    def __init__(self, array: Array) -> None:
        super().__init__(array.reshape(-1).view(np.uint8))
        self.array = array

    def unregister(self) -> None:
        """Unmap it."""
        self._unmap("cuMemHostUnregister")


@export("ManagedAllocation")
class ManagedAllocation(SimulatedAllocation):
    """Memory that host and device can access."""

    def __init__(self, memory: GlobalMemory) -> None:
        super().__init__(memory)
        self.data = memory.data

    def get_device_pointer(self) -> int:
        """Return its address on the device."""
        return int(self)

    def attach(self, mem_flags: int, stream: SimulatedStream | None = None) -> None:
        """Ignore which stream uses it."""


def _wrap_memory(owner: Any, data: Array, shape: Any, dtype: Any, order: str, routine: str) -> Array:
    """Return an array over memory, with `owner` as its base."""
    if order not in ("C", "F"):
        raise build_logic_error(routine, INVALID_VALUE, "unrecognized order specifier")
    view = np.ndarray(shape, dtype, data.data, order=order)  # type: ignore[arg-type]
    owner.__array_interface__ = view.__array_interface__ | {"strides": view.strides}
    array = np.asarray(owner)
    result: Array = array if array.dtype == view.dtype else array.view(view.dtype)
    return result


def _size_in_bytes(shape: Any, dtype: Any) -> int:
    extents = shape if isinstance(shape, list | tuple) else (shape,)
    return int(math.prod(operator.index(extent) for extent in extents) * np.dtype(dtype).itemsize)


def _allocate_zeros(size: int, routine: str) -> Array:
    try:
        return np.zeros(max(size, 1), np.uint8)
    except (MemoryError, OverflowError):
        raise DriverMemoryError(format_failure(routine, "out of memory", f"{size:,} bytes are requested")) from None


@export("pagelocked_empty")
def pagelocked_empty(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> Array:
    """Return a new array in page-locked memory; a script must not rely on its contents.

    Parameters
    ----------
    shape : int or sequence of int
        The shape.
    dtype : dtype
        The type of the elements.
    order : {"C", "F"}
        Whether rows or columns are contiguous.
    mem_flags : int
        A combination of `host_alloc_flags`, which the simulator only stores.

    Raises
    ------
    DriverMemoryError
        If there is not enough memory.
    DriverLogicError
        If the order is invalid, or there is no context.
    """
    current_context("cuMemHostAlloc")
    data = _allocate_zeros(_size_in_bytes(shape, dtype), "cuMemHostAlloc")
    return _wrap_memory(PagelockedMemory(data, mem_flags), data, shape, dtype, order, "cuMemHostAlloc")


@export("aligned_empty")
def aligned_empty(shape: Any, dtype: Any, order: str = "C", alignment: int = 4096) -> Array:
    """Return a new array with an aligned address; a script must not rely on its contents.

    Parameters
    ----------
    shape, dtype, order
        As of `pagelocked_empty`.
    alignment : int
        The array begins at a multiple of this number of bytes.

    Raises
    ------
    DriverMemoryError
        If there is not enough memory.
    DriverLogicError
        If the order is invalid.
    """
    size = max(_size_in_bytes(shape, dtype), 1)
    memory = _allocate_zeros(size + alignment, "aligned_empty")
    first = -memory.ctypes.data % alignment
    data = memory[first : first + size]
    return _wrap_memory(AlignedMemory(data), data, shape, dtype, order, "aligned_empty")


@export("managed_empty")
def managed_empty(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> Array:
    """Return a new array that kernels can access too; a script must not rely on its contents.

    Parameters
    ----------
    shape, dtype, order
        As of `pagelocked_empty`.
    mem_flags : int
        A combination of `mem_attach_flags`, which the simulator ignores.

    Raises
    ------
    DriverMemoryError
        If there is not enough device memory.
    DriverLogicError
        If the order is invalid, or there is no context.
    """
    memory = new_memory(max(_size_in_bytes(shape, dtype), 1), "cuMemAllocManaged", written=True, managed=True)
    return _wrap_memory(ManagedAllocation(memory), memory.data, shape, dtype, order, "cuMemAllocManaged")


@export("register_host_memory")
def register_host_memory(ary: Array, flags: int = 0) -> Array:
    """Map an array of the script into device memory."""
    current_context("cuMemHostRegister")
    if not isinstance(ary, np.ndarray):
        raise build_logic_error("register_host_memory", INVALID_VALUE, "ary argument is not a numpy array")
    if not ary.flags.c_contiguous:
        raise build_logic_error("register_host_memory", INVALID_VALUE, "ary argument is not contiguous")
    owner = RegisteredMemory(ary)
    return _wrap_memory(owner, owner.data, ary.shape, ary.dtype, "C", "register_host_memory")
