"""Device memory: allocations, pointers and pools."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.cupy.devices import CupyDevice, defer
from gpu.hosts.cupy.faults import CUDARuntimeError, OutOfMemoryError, cupy_errors
from gpu.hosts.cupy.memory_hooks import call_hooks, has_hooks
from gpu.hosts.driver.memory import (
    GlobalMemory,
    address_of,
    bytes_at,
    find_memory,
    new_memory,
    total_memory,
    writable_bytes_at,
)
from gpu.simulator.executor.state.memory import FlatMemory

Array = npt.NDArray[Any]


class DeviceBytes(np.ndarray):
    """The bytes of an allocation; `memory` is a weak reference to it, so that views find its address."""

    memory: weakref.ref[FlatMemory] | None = None


def register_bytes(data: Array, *, written: bool = True) -> GlobalMemory:
    """Return an allocation over bytes of the host.

    Parameters
    ----------
    data : array of uint8, (n,)
    written : bool
        Whether the bytes count as initialized.
    """
    view = data.view(DeviceBytes)
    memory = GlobalMemory(view, written=written)
    view.memory = weakref.ref(memory)
    return memory


def allocate(size: int) -> GlobalMemory:
    """Allocate uninitialized device memory; the smallest allocation has one byte.

    Raises
    ------
    OutOfMemoryError
        If there is not enough free memory.
    """
    with cupy_errors():
        fresh = new_memory(max(size, 1), "cudaMalloc")
    return register_bytes(fresh.data, written=False)


class Memory:
    """An allocation.

    Parameters
    ----------
    size : int
        Bytes.
    """

    __module__ = "cupy.cuda.memory"
    device_id = 0

    def __init__(self, size: int) -> None:
        self._keep(allocate(size), size)

    def _keep(self, memory: FlatMemory, size: int) -> None:
        self.memory: FlatMemory = memory
        self.size = size
        self.ptr = address_of(memory) if size else 0

    @classmethod
    def wrap(cls, memory: FlatMemory) -> Memory:
        """Return the object for an existing allocation."""
        self = cls.__new__(cls)
        self._keep(memory, memory.data.size)
        return self

    @property
    def device(self) -> Any:
        """The device."""
        return CupyDevice(0)

    def __int__(self) -> int:
        return self.ptr


class UnownedMemory(Memory):
    """Memory at an address that something else allocated.

    Parameters
    ----------
    size : int
        Bytes.
    owner : object
        Kept as long as this object exists.
    """

    __module__ = "cupy.cuda.memory"

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        if size:
            with cupy_errors():
                memory, _ = find_memory(ptr, "cupy.cuda.UnownedMemory")
                bytes_at(ptr, size, "cupy.cuda.UnownedMemory")
            self.memory = memory
        self.ptr, self.size, self._owner = ptr, size, owner


class MemoryPointer:
    """An address in an allocation.

    Parameters
    ----------
    offset : int
        Bytes from the beginning.
    """

    __module__ = "cupy.cuda.memory"
    device_id = 0

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    @property
    def device(self) -> Any:
        """The device."""
        return self.mem.device

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    __radd__ = __add__

    def __iadd__(self, offset: int) -> MemoryPointer:
        self.ptr += offset
        return self

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def __isub__(self, offset: int) -> MemoryPointer:
        self.ptr -= offset
        return self

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy bytes from device memory."""
        copy_bytes(self.ptr, src.ptr, size)

    def copy_from_host(self, mem: Any, size: int) -> None:
        """Copy bytes from a host address, an integer or a ctypes pointer."""
        copy_bytes(self.ptr, _host_address(mem), size)

    def copy_from(self, mem: Any, size: int) -> None:
        """Copy bytes from device memory or from a host address."""
        copy_bytes(self.ptr, mem.ptr if hasattr(mem, "ptr") else _host_address(mem), size)

    def copy_to_host(self, mem: Any, size: int) -> None:
        """Copy bytes to a host address, an integer or a ctypes pointer."""
        copy_bytes(_host_address(mem), self.ptr, size)

    def memset(self, value: int, size: int) -> None:
        """Set each of `size` bytes."""
        set_bytes(self.ptr, value, size)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy bytes from device memory."""
        self.copy_from_device(src, size)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from a host address."""
        self.copy_from_host(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from device memory or from a host address."""
        self.copy_from(mem, size)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes to a host address."""
        self.copy_to_host(mem, size)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Set each of `size` bytes."""
        self.memset(value, size)


def _host_address(pointer: Any) -> int:
    if isinstance(pointer, int):
        return pointer
    return int(ctypes.cast(pointer, ctypes.c_void_p).value or 0)


_FIRST_DEVICE_ADDRESS = 1 << 47
"""Host addresses have 47 bits; the simulator's are above."""


def is_device_address(address: int) -> bool:
    """Return whether an address is one of the device."""
    return address >= _FIRST_DEVICE_ADDRESS


def _view_bytes(address: int, size: int, *, writable: bool) -> Array:
    if is_device_address(address) or not address:
        with cupy_errors():
            return (writable_bytes_at if writable else bytes_at)(address, size, "cudaMemcpy")
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def copy_bytes(target: int, source: int, size: int) -> None:
    """Copy bytes between addresses of the device or the host.

    Raises
    ------
    CUDADriverError
        If an address is not in an allocation, or the bytes exceed it.
    """
    if size and not defer(lambda: copy_bytes(target, source, size)):
        _view_bytes(int(target), size, writable=True)[:] = _view_bytes(int(source), size, writable=False).copy()


def set_bytes(target: int, value: int, size: int) -> None:
    """Set each of `size` bytes of the device; raise as `copy_bytes`."""
    if size and not defer(lambda: set_bytes(target, value, size)):
        _view_bytes(int(target), size, writable=True)[:] = value & 0xFF


_allocations: dict[int, GlobalMemory] = {}


def malloc(size: int) -> int:
    """Allocate device memory that exists until `free`; return its address, 0 for no bytes."""
    if not size:
        return 0
    memory = allocate(size)
    _allocations[address_of(memory)] = memory
    return address_of(memory)


def free(ptr: int) -> None:
    """Free memory of `malloc`.

    Raises
    ------
    CUDARuntimeError
        If there is no such allocation.
    """
    if ptr and _allocations.pop(ptr, None) is None:
        raise CUDARuntimeError(f"cudaErrorInvalidValue: invalid argument - no allocation begins at {ptr:#x}")


_BLOCK_BYTES = 512


class MemoryPool:
    """Pool with CuPy's counters. Each allocation has its exact size, so accesses beyond it are out of bounds.

    Parameters
    ----------
    allocator : callable or None
        Returns a `MemoryPointer` for a number of bytes.
    """

    __module__ = "cupy.cuda.memory"

    def __init__(self, allocator: Callable[..., MemoryPointer] | None = None) -> None:
        self._memories: weakref.WeakSet[FlatMemory] = weakref.WeakSet()
        self._limit = 0
        self._allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))

    def malloc(self, size: int) -> MemoryPointer:
        """Allocate memory.

        Raises
        ------
        OutOfMemoryError
            If there is not enough free memory, or the pool would exceed its limit.
        """
        self._check_limit(size)
        pointer = self._allocator(size)
        self._count(pointer.mem.memory, size)
        return pointer

    def register(self, data: Array) -> GlobalMemory:
        """Return an allocation over bytes of the host, which the pool counts; raise as `malloc`.

        Parameters
        ----------
        data : array of uint8, (n,)
        """
        self._check_limit(data.size)
        memory = register_bytes(data)
        self._count(memory, data.size)
        return memory

    def _check_limit(self, size: int) -> None:
        used = self.used_bytes() if self._limit else 0
        if self._limit and used + _round_up(size) > self._limit:
            raise OutOfMemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {used:,} bytes, "
                f"limit set to: {self._limit:,} bytes)."
            )

    def _count(self, memory: FlatMemory, size: int) -> None:
        """Count an allocation in `used_bytes` as long as it exists, and call the hooks."""
        self._memories.add(memory)
        if has_hooks():
            place = {"mem_size": _round_up(size), "mem_ptr": address_of(memory)}
            call_hooks("alloc", **place)
            call_hooks("malloc", size=size, pmem_id=id(memory), **place)
            weakref.finalize(memory, call_hooks, "free", pmem_id=id(memory), **place)

    def used_bytes(self) -> int:
        """Return the bytes of all allocations in use, rounded up to CuPy's units."""
        return sum(_round_up(memory.data.size) for memory in self._memories)

    def total_bytes(self) -> int:
        """Return the bytes that the pool has: those in use, as it keeps no free blocks."""
        return self.used_bytes()

    def free_bytes(self) -> int:
        """Return 0: the pool keeps no free blocks."""
        return 0

    n_free_blocks = free_bytes

    def free_all_blocks(self, stream: Any = None) -> None:
        """Do nothing: the pool keeps no free blocks."""

    free_all_free = free_all_blocks

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set the most bytes of the pool, or their fraction of the device's memory; 0 for no limit."""
        self._limit = int(total_memory() * fraction) if fraction is not None else int(size or 0)

    def get_limit(self) -> int:
        """Return the limit; 0 for none."""
        return self._limit


def _round_up(size: int) -> int:
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES


class MemoryAsyncPool(MemoryPool):
    """Pool of the driver, which is a pool as the others here.

    Parameters
    ----------
    pool_handles : object
        Ignored.
    """

    __module__ = "cupy.cuda.memory"

    def __init__(self, pool_handles: Any = "current") -> None:
        super().__init__()


class ManagedMemory(Memory):
    """An allocation that the host and the device share."""

    __module__ = "cupy.cuda.memory"

    def prefetch(self, stream: Any, *, device: int | None = None) -> None:
        """Do nothing: the memory is the host's."""

    def advise(self, advise: int, dev: Any) -> None:
        """Do nothing: the memory is the host's."""


class PinnedMemoryPool(MemoryPool):
    """Pool of page-locked memory."""

    def malloc(self, size: int) -> Any:
        """Return memory of the host."""
        return memoryview(bytearray(size))


default_pool = MemoryPool()
default_pinned_pool = PinnedMemoryPool()
_allocators: list[Callable[[int], MemoryPointer]] = [default_pool.malloc]


def alloc(size: int) -> MemoryPointer:
    """Allocate device memory with the current allocator."""
    return _allocators[-1](size)


def register_array(data: Array) -> GlobalMemory:
    """Return an allocation over bytes of the host; the pool of the current allocator counts it.

    Parameters
    ----------
    data : array of uint8, (n,)
    """
    pool = getattr(_allocators[-1], "__self__", None)
    return pool.register(data) if isinstance(pool, MemoryPool) else register_bytes(data)


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    """Set the allocator of `alloc` and new arrays."""
    _allocators[-1] = allocator or (lambda size: MemoryPointer(Memory(size), 0))


def get_allocator() -> Callable[[int], MemoryPointer]:
    """Return the current allocator."""
    return _allocators[-1]


@contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Use an allocator in a with statement."""
    _allocators.append(_allocators[-1])
    set_allocator(allocator)
    try:
        yield
    finally:
        _allocators.pop()
