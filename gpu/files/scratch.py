"""Folders for what is temporary. Each is held by the process that made it, and goes when nobody holds it any more.

The hold is a lock that the system takes back however the process ends, so a folder that can be locked is an earlier
end's. Names and process numbers would not do: another process gets the same, and containers share a folder.
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

from gpu.errors import InputError

PREFIX = "lockstep-scratch-"
MEMORY = os.environ.get("LOCKSTEP_MEMORY", "/dev/shm")
"""A folder in memory, on Linux; LOCKSTEP_MEMORY names another."""

_HELD = "held"
"""A file that is open for as long as its folder is held, on Windows, where a folder cannot be locked."""


class ScratchFolder:
    """A new folder that is this process's until `close`, which removes it.

    Parameters
    ----------
    parent : str or None
        Where it is made; None means the system's place for temporary files.

    Raises
    ------
    InputError
        Where no folder can be made.
    """

    def __init__(self, parent: str | None = None) -> None:
        try:
            where = parent or place_for_temporaries()
            _tidy_up(where)
            self.path, self._let_go = _make(where)
        except OSError as error:
            raise InputError(
                f"There is no folder for temporary files: {(error.strerror or str(error)).lower()}.",
                advice="Set TMPDIR to a folder that you may write to and that has room.",
            ) from None

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        if sys.platform == "win32":
            self._let_go()  # an open file cannot be removed there
        remove(self.path)
        self._let_go()


def remove(path: str) -> None:
    """Remove a folder, even while another process adds files to it before it ends."""
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)


def _tidy_up(where: str) -> None:
    for place in (where, MEMORY):
        remove_forgotten(place)
    with contextlib.suppress(OSError):
        remove_forgotten(place_for_temporaries())


def place_for_temporaries() -> str:
    """Return the system's place for temporary files, as `tempfile.gettempdir` does; OSError where there is none.

    That writes a file to try a place, which stays there when the process is killed just then.
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
def remove_forgotten(parent: str) -> None:
    """Remove what processes of this user that are gone left in a folder; done once in a process."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) and _is_ours(about):
                    _remove_unless_held(entry.path)


def _is_ours(about: os.stat_result) -> bool:
    return sys.platform == "win32" or about.st_uid == os.geteuid()


if sys.platform == "win32":

    def _make(parent: str) -> tuple[str, Callable[[], None]]:
        path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        held = open(Path(path, _HELD), "xb")  # noqa: SIM115  # it is open for as long as the folder is held
        return path, held.close

    def _remove_unless_held(path: str) -> None:
        Path(path, _HELD).unlink()  # refused while it is open, and where its folder is only just being made
        remove(path)

else:

    def _make(parent: str) -> tuple[str, Callable[[], None]]:
        while True:
            path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
            with contextlib.suppress(FileNotFoundError):  # removed between the two calls, as a forgotten one
                handle = _lock(path, wait=True)
                if os.fstat(handle).st_nlink:
                    return path, _closing(handle)
                os.close(handle)

    def _remove_unless_held(path: str) -> None:
        handle = _lock(path, wait=False)
        remove(path)
        os.close(handle)

    def _lock(path: str, *, wait: bool) -> int:
        """Return the handle that holds a folder; OSError where another process does and `wait` is not asked for."""
        import fcntl

        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:
                os.close(handle)
                raise
            # This file system has no locks, so nobody will be able to take one and remove the folder.
        return handle

    def _closing(handle: int) -> Callable[[], None]:
        held = [handle]

        def let_go() -> None:
            if held:
                os.close(held.pop())

        return let_go
