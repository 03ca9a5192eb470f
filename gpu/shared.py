"""Arrays that two processes share, without a copy: files that both map into memory.

Files, not `multiprocessing.shared_memory`: a mapped array stays valid for as long as anybody looks at it, the same on
every system, and what a killed process leaves behind is a folder that its parent removes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SharedArray:
    """A handle on an array that another process can open; small, and safe to pickle."""

    path: str
    shape: tuple[int, ...]
    dtype: str

    def open(self, *, writable: bool = False) -> Array:
        """Map the array into this process's memory. It stays valid after the file is gone."""
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype)
        mapped = np.memmap(self.path, self.dtype, "r+" if writable else "r", shape=self.shape or (1,))
        return mapped.reshape(self.shape).view(np.ndarray)


class SharedFolder:
    """A folder of shared arrays, in memory where the system has a place for that.

    Parameters
    ----------
    path : str or None
        An existing folder, for the process that joins; None makes a new one, which `close` removes.
    """

    def __init__(self, path: str | None = None) -> None:
        self._owned = path is None
        self.path = path or tempfile.mkdtemp(prefix="lockstep-", dir=_memory_backed_folder())
        self._numbers = itertools.count()

    def create(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SharedArray:
        """Return a new array of zeros."""
        name = f"{os.getpid()}-{next(self._numbers)}"
        handle = SharedArray(str(Path(self.path, name)), tuple(shape), np.dtype(dtype).str)
        size = int(np.prod(handle.shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        with open(handle.path, "wb") as file:
            file.truncate(size)
            if size and hasattr(os, "posix_fallocate"):
                # A full memory-backed folder must say so now: a mapped page that cannot be had kills the process.
                os.posix_fallocate(file.fileno(), 0, size)
        return handle

    def put(self, values: Array) -> SharedArray:
        """Return a shared copy of `values`."""
        handle = self.create(values.shape, values.dtype)
        if values.size:
            handle.open(writable=True)[...] = values
        return handle

    def adopt(self, handle: SharedArray) -> SharedArray:
        """Let the array's file go when `handle` does; return `handle`."""
        weakref.finalize(handle, _remove, handle.path)
        return handle

    def close(self) -> None:
        """Remove the folder, where this process made it."""
        if self._owned:
            shutil.rmtree(self.path, ignore_errors=True)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _memory_backed_folder() -> str | None:
    """Return /dev/shm where it is there and roomy (containers often give it 64 MB); None for the temporary folder."""
    folder = "/dev/shm"
    try:
        return folder if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 2**31 else None
    except OSError:
        return None
