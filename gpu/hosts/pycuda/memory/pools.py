"""Memory pools with PyCUDA's counters; freed blocks are kept in bins of similar sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import INVALID_VALUE, build_logic_error
from gpu.hosts.driver.memory import GlobalMemory, address_of
from gpu.hosts.pycuda.memory.device_memory import new_memory
from gpu.hosts.pycuda.memory.host_memory import pagelocked_empty
from gpu.hosts.pycuda.names import export

Array = npt.NDArray[Any]

_LEADING_BITS = 4


@export("bitlog2")
def bitlog2(number: int) -> int:
    """Return the index of the highest set bit; 0 for 0."""
    return max(int(number).bit_length() - 1, 0)


class _Pool:
    """Counters of a pool. Each allocation has its exact size, so accesses beyond it are out of bounds."""

    def __init__(self) -> None:
        self._free_blocks: dict[int, int] = {}
        self._keeps_free_blocks = True
        self.active_blocks = 0
        self.active_bytes = 0
        self.managed_bytes = 0

    @property
    def held_blocks(self) -> int:
        """Number of free blocks that the pool keeps."""
        return sum(self._free_blocks.values())

    def bin_number(self, size: int) -> int:
        """Return the bin of a size in bytes."""
        exponent = bitlog2(size)
        shift = exponent - _LEADING_BITS
        shifted = size << -shift if shift < 0 else size >> shift
        return exponent << _LEADING_BITS | shifted & ((1 << _LEADING_BITS) - 1)

    def alloc_size(self, bin: int) -> int:  # noqa: A002
        """Return the size in bytes of a bin's blocks."""
        exponent, mantissa = bin >> _LEADING_BITS, bin & ((1 << _LEADING_BITS) - 1)
        shift = exponent - _LEADING_BITS
        head = (1 << _LEADING_BITS) | mantissa
        return head >> -shift if shift < 0 else head << shift | ((1 << shift) - 1)

    def free_held(self) -> None:
        """Release the kept blocks."""
        for number, count in self._free_blocks.items():
            self.managed_bytes -= count * self.alloc_size(number)
        self._free_blocks.clear()

    def stop_holding(self) -> None:
        """Release blocks immediately from now on."""
        self._keeps_free_blocks = False
        self.free_held()

    def _count_allocation(self, size: int) -> None:
        number = self.bin_number(size)
        if self._free_blocks.get(number):
            self._free_blocks[number] -= 1
        else:
            self.managed_bytes += self.alloc_size(number)
        self.active_blocks += 1
        self.active_bytes += size

    def count_release(self, size: int) -> None:
        """Count a freed block."""
        number = self.bin_number(size)
        self.active_blocks -= 1
        self.active_bytes -= size
        if self._keeps_free_blocks:
            self._free_blocks[number] = self._free_blocks.get(number, 0) + 1
        else:
            self.managed_bytes -= self.alloc_size(number)


@export("PooledDeviceAllocation")
class PooledAllocation:
    """Device memory that returns to its pool with the end of this object."""

    def __init__(self, pool: _Pool, memory: GlobalMemory, size: int) -> None:
        self._pool = pool
        self._memory: GlobalMemory | None = memory
        self._size = size
        self._address = address_of(memory)

    def free(self) -> None:
        """Return it to the pool."""
        if self._memory is None:
            raise build_logic_error("pooled_device_allocation::free", INVALID_VALUE, "it is already freed")
        self._memory = None
        self._pool.count_release(self._size)

    def __int__(self) -> int:
        return self._address

    __index__ = __long__ = __int__

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True

    def __del__(self) -> None:
        if getattr(self, "_memory", None) is not None:
            self.free()


@export("DeviceMemoryPool")
class SimulatedDevicePool(_Pool):
    """Pool of device memory."""

    def allocate(self, size: int) -> PooledAllocation:
        """Allocate memory."""
        memory = new_memory(max(int(size), 1), "memory_pool::allocate")
        self._count_allocation(int(size))
        return PooledAllocation(self, memory, int(size))


@export("PageLockedAllocator")
class SimulatedHostAllocator:
    """Allocator of a pool of page-locked memory."""

    def __init__(self, flags: int = 0) -> None:
        self.flags = flags


@export("PooledHostAllocation")
class PooledHostMemory:
    """Page-locked memory that returns to its pool with the end of this object."""

    def __init__(self, pool: _Pool, array: Array) -> None:
        self._pool: _Pool | None = pool
        self._size = array.nbytes
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"strides": array.strides}

    def free(self) -> None:
        """Return it to the pool."""
        if self._pool is None:
            raise build_logic_error("pooled_host_allocation::free", INVALID_VALUE, "it is already freed")
        self._pool.count_release(self._size)
        self._pool = None

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self.free()


@export("PageLockedMemoryPool")
class SimulatedHostPool(_Pool):
    """Pool of page-locked memory."""

    def __init__(self, allocator: SimulatedHostAllocator | None = None) -> None:
        super().__init__()
        self._flags = allocator.flags if allocator is not None else 0

    def allocate(self, shape: Any, dtype: Any, order: str = "C") -> Array:
        """Return an array in page-locked memory."""
        array = pagelocked_empty(shape, dtype, order, self._flags)
        self._count_allocation(array.nbytes)
        view = np.asarray(PooledHostMemory(self, array))
        result: Array = view if view.dtype == array.dtype else view.view(array.dtype)
        return result
