"""Streams that overlap copies, from and to page-locked memory, with other streams' kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pycuda.driver as cuda
from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

from gpu.engines.base import Array


class SideStream:
    """A stream, with the memory that its queued operations need.

    Parameters
    ----------
    host, device : pool
        Memory pools: locking pages takes longer than copying them, and freeing memory waits for all streams.
    """

    def __init__(self, host: PageLockedMemoryPool, device: DeviceMemoryPool) -> None:
        self.stream = cuda.Stream()
        self._host = host
        self._device = device
        self._pending_copies: list[Array] = []
        self._pending_frees: list[Any] = []

    def reserve(self, size: int) -> Any:
        """Return device memory of `size` bytes."""
        return self._device.allocate(size)

    def upload(self, memory: Any, values: Array) -> None:
        """Queue a copy to the device; `values` may be modified immediately."""
        locked = self._host.allocate(values.shape, values.dtype)
        np.copyto(locked, values)
        self._pending_copies.append(locked)
        cuda.memcpy_htod_async(memory, locked, self.stream)

    def download(self, values: Array, memory: Any) -> None:
        """Queue a copy to the host, and wait for all queued operations."""
        locked = self._host.allocate(values.shape, values.dtype)
        cuda.memcpy_dtoh_async(locked, memory, self.stream)
        self.wait()
        np.copyto(values, locked)

    def fill(self, memory: Any, pattern: Array, count: int) -> None:
        """Queue filling `count` elements with one value."""
        match pattern.dtype.itemsize:
            case 1:
                cuda.memset_d8_async(memory, int(pattern.view(np.uint8)[0]), count, self.stream)
            case 2:
                cuda.memset_d16_async(memory, int(pattern.view(np.uint16)[0]), count, self.stream)
            case 4:
                cuda.memset_d32_async(memory, int(pattern.view(np.uint32)[0]), count, self.stream)
            case _:
                self.upload(memory, np.repeat(pattern, count))

    def discard(self, memory: Any) -> None:
        """Free memory after all queued operations have completed."""
        self._pending_frees.append(memory)

    def wait(self) -> None:
        """Wait for all queued operations."""
        self.stream.synchronize()
        self._pending_copies.clear()
        for memory in self._pending_frees:
            memory.free()
        self._pending_frees.clear()
