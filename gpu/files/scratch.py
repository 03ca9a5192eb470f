"""Temporary folders, each locked by the process that created it and deleted when no process holds the lock.

The system releases the lock however the process ends, so a folder that can be locked is a leftover. Names and process
numbers would not suffice: other processes may get the same ones, and containers may share a folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gpu.base.errors import InputError

PREFIX = "lockstep-scratch-"
MEMORY_FOLDER = os.environ.get("LOCKSTEP_MEMORY", "/dev/shm")
"""An in-memory folder on Linux; the environment variable LOCKSTEP_MEMORY selects another."""

_LOCK_FILE = "held"
"""Name of a file that stays open while its folder is in use, on Windows, where folders cannot be locked."""


class ScratchFolder:
    """A new folder that belongs to this process until `close` deletes it.

    Parameters
    ----------
    parent : str or None
        Its parent folder; None means the system's folder for temporary files.

    Raises
    ------
    InputError
        If the folder cannot be created.
    """

    def __init__(self, parent: str | None = None) -> None:
        try:
            location = parent or find_temporary_folder()
            _clean_temporary_folders(location)
            self.path, self._release = _create(location)
        except OSError as error:
            raise InputError(
                f"There is no folder for temporary files: {(error.strerror or str(error)).lower()}.",
                advice="Set TMPDIR to a folder with write permission and free space.",
            ) from None

    def close(self) -> None:
        """Delete the folder with its content."""
        if sys.platform == "win32":
            self._release()  # Windows cannot delete an open file
        remove_folder(self.path)
        self._release()


def remove_folder(path: str) -> None:
    """Delete a folder, even if another process still adds files to it before it ends."""
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)


def _clean_temporary_folders(location: str) -> None:
    for folder in (location, MEMORY_FOLDER):
        remove_stale_folders(folder)
    with contextlib.suppress(OSError):
        remove_stale_folders(find_temporary_folder())


def find_temporary_folder() -> str:
    """Return the system's folder for temporary files, as `tempfile.gettempdir`; raise OSError if there is none.

    `tempfile` writes a test file, which would remain if the process were killed at that time.
    """
    if tempfile.tempdir is None:
        for name in ("TMPDIR", "TEMP", "TMP"):
            where = os.environ.get(name, "")
            if Path(where).is_absolute() and Path(where).is_dir() and os.access(where, os.W_OK | os.X_OK):
                return where
        if sys.platform != "win32" and os.access("/tmp", os.W_OK | os.X_OK):
            return "/tmp"
    return tempfile.gettempdir()


@cache
def remove_stale_folders(parent: str) -> None:
    """Delete leftovers of this user's ended processes in a folder; done once per process."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) and is_owned_by_user(about):
                    _remove_unless_locked(entry.path)


def is_owned_by_user(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user of this process; always true on Windows."""
    return sys.platform == "win32" or status.st_uid == os.geteuid()


if sys.platform == "win32":

    def _create(parent: str) -> tuple[str, Callable[[], None]]:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        held = open(Path(path, _LOCK_FILE), "xb")  # noqa: SIM115  # open while the folder is in use
        return path, held.close

    def _remove_unless_locked(path: str) -> None:
        Path(path, _LOCK_FILE).unlink()  # fails while it is open, or not created yet
        remove_folder(path)

else:

    def _create(parent: str) -> tuple[str, Callable[[], None]]:
        while True:
            path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
            # Another process may delete the folder as a leftover between the two calls.
            with contextlib.suppress(FileNotFoundError):
                handle = _lock(path, wait=True)
                if os.fstat(handle).st_nlink:
                    return path, _build_release(handle)
                os.close(handle)

    def _remove_unless_locked(path: str) -> None:
        handle = _lock(path, wait=False)
        remove_folder(path)
        os.close(handle)

    def _lock(path: str, *, wait: bool) -> int:
        """Lock a folder and return the handle; raise OSError if another process holds the lock and `wait` is False."""
        import fcntl

        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:
                os.close(handle)
                raise
            # This file system does not support locks, so no process can lock and delete the folder.
        return handle

    def _build_release(handle: int) -> Callable[[], None]:
        handles = [handle]

        def release() -> None:
            if handles:
                os.close(handles.pop())

        return release
