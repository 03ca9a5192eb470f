"""What a task leaves on its worker's device, for other tasks of that worker.

To another worker of the same machine it goes from device to device, where devices reach each other; elsewhere it
arrives as an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpu.engines.base import Array, Buffer, Engine, SharingEngine


class Owner(Protocol):
    """Who has the engine that a buffer is of."""

    def in_engines_thread(self, action: Callable[[Engine], Any]) -> Any:
        """Do something with the engine from any thread, and return what comes of it."""
        ...

    def discard(self, buffer: Buffer) -> None:
        """Have a buffer freed, from any thread, when the engine is next used."""
        ...


class Resident:
    """An array on a worker's device; where Dask moves it, its bytes go along, and are uploaded when they are used.

    Parameters
    ----------
    owner : Owner or None
        None for what has arrived and is not on this worker's device yet.
    held : Buffer or array
        The array if there is no owner.
    handle : bytes
        By what other processes of this machine find the buffer; empty where they do not reach it.
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
        # Dask weighs by this what it would cost to move it.
        return self.nbytes

    def on(self, owner: Owner, engine: Engine) -> Buffer:
        """Return the buffer, in the engine's thread; it stays this object's."""
        if self._owner is None:
            self._held, self._owner = engine.upload(self._held), owner
        buffer: Buffer = self._held
        return buffer

    def __reduce__(self) -> tuple[Any, ...]:
        if self._handle:
            # Whoever asked unpacks this, and so has its copy, before it answers; until then Dask's sender holds this
            # object, and the memory is not freed.
            return copied, (self._handle, self._held.shape, self._held.dtype.str)
        return arrived, (self.array(),)

    def array(self) -> Array:
        """Return a copy of its elements, from any thread."""
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
    """Return what has come from another worker."""
    return Resident(None, array)


_here: list[Owner] = []


def settle(owner: Owner) -> None:
    """Have what comes from other workers belong to this process's engine."""
    _here[:] = [owner]


def copied(handle: bytes, shape: tuple[int, ...], dtype: str) -> Resident:
    """Return what another worker of this machine has on its device, copied to this one's.

    Raises
    ------
    OSError
        Where it cannot be reached, as when its worker has just ended: Dask then has it made again.
    """
    if not _here:
        raise OSError("what is on a device comes to workers only")
    (owner,) = _here
    return Resident(owner, owner.in_engines_thread(lambda engine: _copied(engine, handle, shape, dtype)))


def _copied(engine: Engine, handle: bytes, shape: tuple[int, ...], dtype: str) -> Buffer:
    assert isinstance(engine, SharingEngine)
    return engine.copy_shared(handle, shape, dtype)
