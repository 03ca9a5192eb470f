"""Arrays that a Dask task leaves on its worker's device for later tasks.

Another worker of the same machine copies them from device to device if its device has peer access; others receive them
as host arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpu.engines.base import Array, Buffer, Engine, SharingEngine


class Owner(Protocol):
    """Owner of the engine to which a buffer belongs."""

    def in_engines_thread(self, action: Callable[[Engine], Any]) -> Any:
        """Call a function with the engine, from any thread, and return its result."""
        ...

    def discard(self, buffer: Buffer) -> None:
        """Schedule a buffer to be freed when the engine is next used; callable from any thread."""
        ...


class Resident:
    """An array on a worker's device; when Dask moves it, its bytes are sent and uploaded at their next use.

    Parameters
    ----------
    owner : Owner or None
        None for an array that was received and is not yet on this worker's device.
    held : Buffer or array
        An array if there is no owner.
    handle : bytes
        Inter-process handle of the buffer for this machine's other processes; empty if they cannot access it.
    """

    def __init__(self, owner: Owner | None, held: Any, handle: bytes = b"") -> None:
        self._owner = owner
        self._held = held
        self._handle = handle

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self._held.shape, dtype=np.int64)) * int(self._held.dtype.itemsize)

    def __sizeof__(self) -> int:
        # Dask uses this to estimate the cost of a transfer.
        return self.nbytes

    def on(self, owner: Owner, engine: Engine) -> Buffer:
        """Return the buffer, in the engine's thread; this object keeps ownership."""
        if self._owner is None:
            self._held, self._owner = engine.upload(self._held), owner
        buffer: Buffer = self._held
        return buffer

    def __reduce__(self) -> tuple[Any, ...]:
        if self._handle:
            # The receiver unpickles this, and so completes its copy, before it replies; until then Dask's sender keeps
            # this object, and thus the memory, alive.
            return copied, (self._handle, self._held.shape, self._held.dtype.str)
        return arrived, (self.array(),)

    def array(self) -> Array:
        """Return a copy of the elements; callable from any thread."""
        if self._owner is None:
            array: Array = self._held
            return array
        buffer = self._held
        downloaded: Array = self._owner.in_engines_thread(lambda engine: engine.download(buffer))
        return downloaded

    def __del__(self) -> None:
        if self._owner is not None:
            self._owner.discard(self._held)


def arrived(array: Array) -> Resident:
    """Return an array that was received from another worker."""
    return Resident(None, array)


_local_owner: list[Owner] = []


def settle(owner: Owner) -> None:
    """Set the owner of arrays that this process receives from other workers."""
    _local_owner[:] = [owner]


def copied(handle: bytes, shape: tuple[int, ...], dtype: str) -> Resident:
    """Copy an array from the device of another worker of this machine to this one's.

    Raises
    ------
    OSError
        If it cannot be accessed, as when its worker has just ended; Dask then recomputes it.
    """
    if not _local_owner:
        raise OSError("only workers receive arrays on devices")
    (owner,) = _local_owner
    return Resident(owner, owner.in_engines_thread(lambda engine: _copy_shared(engine, handle, shape, dtype)))


def _copy_shared(engine: Engine, handle: bytes, shape: tuple[int, ...], dtype: str) -> Buffer:
    assert isinstance(engine, SharingEngine)
    return engine.copy_shared(handle, shape, dtype)
