"""Pool of freed device memory, and cache of opened memory handles of other processes.

Measured on an H200: the driver takes 2 ms to allocate 8 GB, 5 ms to free them, which waits for the device, and 9.5 ms
to open 1 to 4 GB of another process, which NVLink copies in 3 to 11 ms. A process that is the only user of its device
therefore keeps both, with these lifetimes:

- Freed memory that was never shared stays in the pool. It returns to the driver when an allocation fails, and when the
  engine is closed.
- Shared memory may be open in another process at any time, and freeing it then is undefined behavior. It stays in the
  pool until the engine is closed, and serves any allocation that fits. This is limited to half of the device's memory:
  memory beyond that is shared for one copy only. The receiver closes it before it acknowledges the copy, and until then
  the owner does not free it.
- Memory of another process stays open until that process or this one ends. Memory of a process that ended stays
  allocated while it is open here. Its replacement is noticed when workers test whether they can reach each other, or
  later: at the first handle of an unknown process, all memory is closed, and opened again on demand. A handle is
  combined with a random name of its process, since a new process may reuse the handles of an old one.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_LARGE_GRANULARITY = 2**21
"""Granularity in bytes of the driver's allocations that exceed one page."""
_SMALL_GRANULARITY = 2**9
_MAX_SLACK_DIVISOR = 8
"""Freed memory serves requests that are at most an eighth smaller, since the parts of a sort vary in length."""

_NAME_BYTES = 8
_SINGLE_USE, _PERMANENT = b"\0", b"\1"


class FreedMemoryPool:
    """Pool of one device's freed memory.

    Parameters
    ----------
    driver : module
        `pycuda.driver`, in the thread of the context.

    Attributes
    ----------
    enabled : bool
        Whether freed memory is reused; False if other processes use the device.
    """

    def __init__(self, driver: Any) -> None:
        self.enabled = False
        self._driver = driver
        self._name = os.urandom(_NAME_BYTES)
        self._sizes: dict[int, int] = {}
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        self._handles: dict[int, bytes] = {}

    def allocate(self, size: int) -> Any:
        """Return at least `size` bytes of uninitialized memory; raise the driver's MemoryError if it fails."""
        if not self.enabled:
            return self._driver.mem_alloc(size)
        grain = _LARGE_GRANULARITY if size > _LARGE_GRANULARITY else _SMALL_GRANULARITY
        size = -(-size // grain) * grain
        fitting = min((each for each in self._free if size <= each <= size + size // _MAX_SLACK_DIVISOR), default=0)
        if fitting:
            memory = self._free[fitting].pop()
            if not self._free[fitting]:
                del self._free[fitting]
            return memory
        memory = self.allocate_with_retry(self._driver.mem_alloc, size)
        self._sizes[int(memory)] = size
        return memory

    def allocate_with_retry(self, allocate: Callable[[int], Any], size: int) -> Any:
        """Call an allocator of the pool's device; if it fails, free the unused memory of the pool and call it again."""
        try:
            return allocate(size)
        except self._driver.MemoryError:
            self.trim()
            return allocate(size)

    def release(self, memory: Any) -> None:
        """Return memory to the pool; later operations on the device are ordered after all earlier ones."""
        size = self._sizes.get(int(memory))
        if size is None:
            memory.free()
        else:
            self._free[size].append(memory)

    def trim(self) -> None:
        """Return unused memory that was never shared to the driver."""
        for size, several in list(self._free.items()):
            for memory in several:
                if int(memory) not in self._handles:
                    del self._sizes[int(memory)]
                    memory.free()
            several[:] = [memory for memory in several if int(memory) in self._handles]
            if not several:
                del self._free[size]

    def share(self, memory: Any) -> bytes:
        """Return a handle by which another process can open memory from `allocate`."""
        address = int(memory)
        if address not in self._handles:
            handle = bytes(self._driver.mem_get_ipc_handle(memory))
            shared = sum(self._sizes[each] for each in self._handles)
            if address not in self._sizes or 2 * (shared + self._sizes[address]) > self._driver.mem_get_info()[1]:
                return self._name + _SINGLE_USE + handle
            self._handles[address] = handle
        return self._name + _PERMANENT + self._handles[address]


class IpcMemoryCache:
    """Cache of other processes' memory that is open in this one.

    Parameters
    ----------
    driver : module
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._process_names: set[bytes] = set()
        self._open_handles: dict[bytes, Any] = {}

    def copy(self, shared: bytes, to: Any, size: int) -> None:
        """Copy memory that another process shared by `FreedMemoryPool.share`; raise the driver's error on failure."""
        name, kind, handle = shared[:_NAME_BYTES], shared[_NAME_BYTES : _NAME_BYTES + 1], shared[_NAME_BYTES + 1 :]
        if name not in self._process_names:
            self.close()
            self._process_names.add(name)
        cached = self._open_handles.get(shared)
        opened = cached if cached is not None else self._driver.IPCMemoryHandle(bytearray(handle))
        try:
            if size:
                self._driver.memcpy_dtod(to, int(opened), size)
            self._driver.Context.synchronize()
        except self._driver.Error:
            self._open_handles.pop(shared, None)
            opened.close()
            raise
        if kind == _PERMANENT:
            self._open_handles[shared] = opened
        else:
            opened.close()

    def close(self) -> None:
        """Close all open memory."""
        while self._open_handles:
            self._open_handles.popitem()[1].close()
