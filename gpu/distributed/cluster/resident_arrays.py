"""Arrays that a Dask task leaves on its worker's device for later tasks.

Another worker on that machine copies them from device to device if its device has peer access. Other workers receive
host arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpu.engines.base import Array, Buffer, Engine, SharingEngine


class EngineOwner(Protocol):
    """Owner of the engine to which a buffer belongs."""

    def run_in_engine_thread(self, action: Callable[[Engine], Any]) -> Any:
        """Call a function with the engine, from any thread, and return its result."""
        ...

    def discard(self, buffer: Buffer) -> None:
        """Schedule a buffer to be freed when the engine is next used; callable from any thread."""
        ...


class ResidentArray:
    """An array on a worker's device; when Dask moves it, its bytes are sent and uploaded at their next use.

    Parameters
    ----------
    owner : EngineOwner or None
        None for an array that was received and is not yet on this worker's device.
    storage : Buffer or array
        An array if there is no owner.
    handle : bytes
        Inter-process handle of the buffer for this machine's other processes; empty if they cannot access it.
    """

    def __init__(self, owner: EngineOwner | None, storage: Any, handle: bytes = b"") -> None:
        self._owner = owner
        self._storage = storage
        self._handle = handle

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self._storage.shape, dtype=np.int64)) * int(self._storage.dtype.itemsize)

    def __sizeof__(self) -> int:
        # Dask uses this to estimate the cost of a transfer.
        return self.nbytes

    def to_buffer(self, owner: EngineOwner, engine: Engine) -> Buffer:
        """Return the buffer, in the engine's thread; this object keeps ownership."""
        if self._owner is None:
            self._storage, self._owner = engine.upload(self._storage), owner
        buffer: Buffer = self._storage
        return buffer

    def __reduce__(self) -> tuple[Any, ...]:
        if self._handle:
            # The receiver unpickles this, and so completes its copy, before it replies; until then Dask's sender keeps
            # this object, and thus the memory, alive.
            return copy_from_worker, (self._handle, self._storage.shape, self._storage.dtype.str)
        return wrap_received_array, (self.to_array(),)

    def to_array(self) -> Array:
        """Return a copy of the elements; callable from any thread."""
        if self._owner is None:
            array: Array = self._storage
            return array
        buffer = self._storage
        downloaded: Array = self._owner.run_in_engine_thread(lambda engine: engine.download(buffer))
        return downloaded

    def __del__(self) -> None:
        if self._owner is not None:
            self._owner.discard(self._storage)


def wrap_received_array(array: Array) -> ResidentArray:
    """Return an array that was received from another worker."""
    return ResidentArray(None, array)


_local_owner: list[EngineOwner] = []


def set_local_owner(owner: EngineOwner) -> None:
    """Set the owner of arrays that this process receives from other workers."""
    _local_owner[:] = [owner]


def copy_from_worker(handle: bytes, shape: tuple[int, ...], dtype: str) -> ResidentArray:
    """Copy an array from the device of another worker of this machine to this one's.

    Raises
    ------
    OSError
        If it cannot be accessed, as when its worker has just ended; Dask then recomputes it.
    """
    if not _local_owner:
        raise OSError("only workers receive arrays on devices")
    (owner,) = _local_owner
    return ResidentArray(owner, owner.run_in_engine_thread(lambda engine: _copy_shared(engine, handle, shape, dtype)))


def _copy_shared(engine: Engine, handle: bytes, shape: tuple[int, ...], dtype: str) -> Buffer:
    assert isinstance(engine, SharingEngine)
    return engine.copy_shared(handle, shape, dtype)
