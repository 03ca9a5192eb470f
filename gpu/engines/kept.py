"""Device memory that serves again rather than go back to the driver, and other processes' memory that stays open.

Measured on an H200: the driver takes 2 ms to give 8 GB, 5 to take them back, waiting for the device, and 9.5 to open 1
to 4 GB of another process, which NVLink copies in 3 to 11. So who has a device for itself keeps both, and these are the
lifetimes:

- Memory that nobody else has seen is kept when it is freed. It goes back to the driver when an allocation finds no
  room, and when the engine is closed.
- What is shared may be open elsewhere at any time, and to give that back to the driver is undefined behavior. It is
  kept until the engine is closed, for whatever fits it; that is no more than half of the device's memory. What would be
  more is shared for one copy: who takes it closes it before it says that it has it, and until then nobody frees it.
- What another process shares stays open until that process, or this one, ends. A process that ended leaves its memory
  taken for as long as it is open here. Another comes in its place, and is met when workers try whether they reach each
  other, or later: whoever meets a process for the first time closes all that is open, and opens again what is asked
  for. A handle goes by the name of its process, as a new process may have old ones' handles.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_PAGE = 2**21
"""The driver gives memory in pages of so many bytes, where more than one is asked for."""
_GRAIN = 2**9
_SLACK = 8
"""What is kept serves for what is smaller by an eighth at most: parts of a sort are never equally long twice."""

_NAME_BYTES = 8
_ONCE, _FOR_GOOD = b"\0", b"\1"


class KeptMemory:
    """Memory of one device.

    Parameters
    ----------
    driver : module
        `pycuda.driver`, in the thread that has the context.

    Attributes
    ----------
    keeps : bool
        Whether what is freed serves again; not where other processes use the device.
    """

    def __init__(self, driver: Any) -> None:
        self.keeps = False
        self._driver = driver
        self._name = os.urandom(_NAME_BYTES)
        self._sizes: dict[int, int] = {}
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        self._handles: dict[int, bytes] = {}

    def take(self, size: int) -> Any:
        """Return memory of so many bytes at least, whatever is in it; the driver's MemoryError where there is none."""
        if not self.keeps:
            return self._driver.mem_alloc(size)
        grain = _PAGE if size > _PAGE else _GRAIN
        size = -(-size // grain) * grain
        fitting = min((each for each in self._free if size <= each <= size + size // _SLACK), default=0)
        if fitting:
            memory = self._free[fitting].pop()
            if not self._free[fitting]:
                del self._free[fitting]
            return memory
        memory = self.with_room(self._driver.mem_alloc, size)
        self._sizes[int(memory)] = size
        return memory

    def with_room(self, allocate: Callable[[int], Any], size: int) -> Any:
        """Return what an allocator of the same device gives, which finds what is kept if it finds nothing else."""
        try:
            return allocate(size)
        except self._driver.MemoryError:
            self.give_back()
            return allocate(size)

    def put_back(self, memory: Any) -> None:
        """Take memory back: what is asked of the device later comes after all that was asked before."""
        size = self._sizes.get(int(memory))
        if size is None:
            memory.free()
        else:
            self._free[size].append(memory)

    def give_back(self) -> None:
        """Give the driver back what nobody uses and nobody else has seen."""
        for size, several in list(self._free.items()):
            for memory in several:
                if int(memory) not in self._handles:
                    del self._sizes[int(memory)]
                    memory.free()
            several[:] = [memory for memory in several if int(memory) in self._handles]
            if not several:
                del self._free[size]

    def share(self, memory: Any) -> bytes:
        """Return by what another process finds memory of `take`."""
        address = int(memory)
        if address not in self._handles:
            handle = bytes(self._driver.mem_get_ipc_handle(memory))
            shared = sum(self._sizes[each] for each in self._handles)
            if address not in self._sizes or 2 * (shared + self._sizes[address]) > self._driver.mem_get_info()[1]:
                return self._name + _ONCE + handle
            self._handles[address] = handle
        return self._name + _FOR_GOOD + self._handles[address]


class OpenedMemory:
    """Memory of other processes that is open in this one.

    Parameters
    ----------
    driver : module
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._known: set[bytes] = set()
        self._open: dict[bytes, Any] = {}

    def copy(self, shared: bytes, to: Any, size: int) -> None:
        """Copy what `KeptMemory.share` named in another process; the driver's error where it is not to be reached."""
        name, kind, handle = shared[:_NAME_BYTES], shared[_NAME_BYTES : _NAME_BYTES + 1], shared[_NAME_BYTES + 1 :]
        if name not in self._known:
            self.close()
            self._known.add(name)
        found = self._open.get(shared)
        opened = found if found is not None else self._driver.IPCMemoryHandle(bytearray(handle))
        try:
            if size:
                self._driver.memcpy_dtod(to, int(opened), size)
            self._driver.Context.synchronize()
        except self._driver.Error:
            self._open.pop(shared, None)
            opened.close()
            raise
        if kind == _FOR_GOOD:
            self._open[shared] = opened
        else:
            opened.close()

    def close(self) -> None:
        """Close all that is open."""
        while self._open:
            self._open.popitem()[1].close()
