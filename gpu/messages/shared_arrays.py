"""Arrays that two processes share without a copy, as files that both map into memory.

Unlike `multiprocessing.shared_memory`, a mapped file stays valid while any process uses it, on every system, and the
folder that a killed process leaves is removed by its parent or at the next start.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.files import scratch

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SharedArray:
    """Handle of an array that another process can open; small, and safe to pickle."""

    path: str
    shape: tuple[int, ...]
    dtype: str

    def open(self, *, writable: bool = False) -> Array:
        """Map the array into this process's memory; the mapping stays valid after the file is deleted."""
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype)
        mapped = np.memmap(self.path, self.dtype, "r+" if writable else "r", shape=self.shape or (1,))
        return mapped.reshape(self.shape).view(np.ndarray)


class SharedFolder:
    """Folder of shared arrays, in memory if the system has an in-memory file system.

    Parameters
    ----------
    path : str or None
        An existing folder, for a process that joins; None creates a folder that `close` removes, or raises InputError.
    label : str
        Prefix of the names of this process's files and subfolders. Every process that joins needs a unique one; its
        process number does not suffice, since systems reuse it while a dead process's arrays are still in use.
    """

    def __init__(self, path: str | None = None, *, label: str = "host") -> None:
        self._scratch_folder = _new_folder() if path is None else None
        self._label = label
        self.path = self._scratch_folder.path if self._scratch_folder is not None else str(path)
        self._numbers = itertools.count()
        self._adopted: weakref.WeakValueDictionary[str, SharedArray] = weakref.WeakValueDictionary()
        self._undeleted_paths: set[str] = set()

    def create(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SharedArray:
        """Return a new array of zeros; raise InputError if there is no space for it."""

        def fill(file: BinaryIO, size: int) -> None:
            file.truncate(size)
            if size:
                _reserve_space(file.fileno(), size)

        return self._create_file(shape, dtype, fill)

    def put(self, values: Array) -> SharedArray:
        """Return a shared copy of `values`; raise InputError if there is no space for it."""

        # Writing to the file takes less time than writing to its mapping, whose pages appear one by one.
        def fill(file: BinaryIO, size: int) -> None:
            file.write(np.asarray(values, order="C").reshape(-1).view(np.uint8).data)

        return self._create_file(values.shape, values.dtype, fill)

    def _create_file(
        self, shape: Sequence[int], dtype: npt.DTypeLike, fill: Callable[[BinaryIO, int], None]
    ) -> SharedArray:
        path = str(Path(self.path, f"{self._label}-{next(self._numbers)}"))
        handle = SharedArray(path, tuple(int(extent) for extent in shape), np.dtype(dtype).str)
        size = math.prod(handle.shape) * np.dtype(dtype).itemsize
        try:
            with open(path, "xb") as file:
                fill(file, size)
        except OSError as error:
            _remove(path, self._undeleted_paths)
            if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.ENOMEM):
                raise
            raise InputError(
                f"There is no space for an array of {size / 2**20:.0f} MiB in {self.path}.",
                advice="Use a smaller input, close other programs, or free space there.",
            ) from None
        return handle

    def put_all(self, arrays: Mapping[str, Array]) -> dict[str, SharedArray]:
        """Return shared copies, of an array with two names only one; on an error, remove all copies."""
        handles: dict[int, SharedArray] = {}
        try:
            for values in arrays.values():
                if id(values) not in handles:
                    handles[id(values)] = self.put(values)
        except BaseException:
            for handle in handles.values():
                self.discard(handle)
            raise
        return {name: handles[id(values)] for name, values in arrays.items()}

    def adopt(self, handle: SharedArray) -> SharedArray:
        """Delete the array's file together with the returned handle, which is the same for all adoptions of a file."""
        self._retry_deletions()
        adopted = self._adopted.get(handle.path)
        if adopted is None:
            adopted = self._adopted[handle.path] = handle
            weakref.finalize(handle, _remove, handle.path, self._undeleted_paths)
        return adopted

    def discard(self, handle: SharedArray) -> None:
        """Delete an array's file now."""
        _remove(handle.path, self._undeleted_paths)

    def sweep(self, label: str) -> None:
        """Delete the files of a dead process with this label, except adopted ones."""
        with contextlib.suppress(OSError):
            for file in os.scandir(self.path):
                if file.name.startswith(f"{label}-") and self._adopted.get(file.path) is None:
                    if file.is_dir(follow_symlinks=False):
                        scratch.remove_folder(file.path)
                    else:
                        _remove(file.path, self._undeleted_paths)

    def _retry_deletions(self) -> None:
        for path in tuple(self._undeleted_paths):
            self._undeleted_paths.discard(path)
            _remove(path, self._undeleted_paths)

    def close(self) -> None:
        """Delete the folder if this process created it."""
        if self._scratch_folder is not None:
            self._scratch_folder.close()


def _reserve_space(file: int, size: int) -> None:
    """Reserve a file's memory now: failure to allocate a mapped page later would kill the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # this file system cannot reserve
            raise


def _remove(path: str, undeleted_paths: set[str]) -> None:
    """Delete a file; Windows refuses if it is mapped, so `undeleted_paths` collects it to retry with the next array."""
    try:
        os.unlink(path)
    except PermissionError:
        undeleted_paths.add(path)
    except OSError:
        pass


def _new_folder() -> scratch.ScratchFolder:
    memory = _memory_backed_folder()
    if memory is not None:
        with contextlib.suppress(InputError):
            return scratch.ScratchFolder(memory)
    return scratch.ScratchFolder()


def _memory_backed_folder() -> str | None:
    """Return the in-memory folder if it has ample space (containers often limit it to 64 MB); None otherwise."""
    folder = scratch.MEMORY_FOLDER
    try:
        return folder if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 2**31 else None
    except OSError:
        return None
