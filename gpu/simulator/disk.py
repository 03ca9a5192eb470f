"""The cache folder on disk: compiled machine code and parsed headers, which can be generated again.

Entries are executed, or read by clang, so only this user may have written them. An entry is bound to its key: one that
is damaged, truncated, written by another user or stored for another key is ignored. An unusable folder is not changed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from gpu.base import folders
from gpu.files.scratch import is_owned_by_user

MAX_ENTRY_BYTES = 64 << 20
"""Bytes of the largest entry that is read or written; the parsed header has about 3 MB, machine code about 100 KB."""

MAX_TOTAL_BYTES = 512 << 20
"""Bytes of all entries together, which each process may exceed by `_UNCOUNTED_BYTES`.

The least recently used entries are removed first.
"""

_KEPT_FRACTION = 7 / 8
"""Fraction of the bytes that is kept when entries are removed, so that not every write has to remove some."""

_UNCOUNTED_BYTES = MAX_TOTAL_BYTES // 64
"""Bytes that a process writes before it lists the folder again."""

_UNFINISHED_PREFIX = "unfinished-"
_ABANDONED_AGE_S = 3600
"""Age in seconds after which an incomplete file is considered abandoned."""

_DIGEST_BYTES = hashlib.sha256().digest_size


def find_problem() -> str:
    """Return why the folder cannot be used, as a sentence; "" if it is usable or does not exist yet."""
    path = folders.cache_folder()
    try:
        status = path.stat()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return f"The cache folder {path} is not used: {getattr(error, 'strerror', None) or error}."
    if not stat.S_ISDIR(status.st_mode):
        return f"The cache folder {path} is not used: it is not a folder."
    if not is_owned_by_user(status):
        return f"The cache folder {path} is not used: it belongs to another user."
    if _others_may_write(status):
        return f"The cache folder {path} is not used: other users may write to it."
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return f"The cache folder {path} is not used: this user may not read and write it."
    return ""


def write_entry(path: Path, key: str, content: bytes) -> None:
    """Write an entry atomically, so that two processes may write it at once; do nothing if it cannot be written."""
    write_file(path, hashlib.sha256(key.encode() + content).digest() + content)


def read_entry(path: Path, key: str) -> bytes | None:
    """Return the content that `write_entry` wrote under this key; None if missing, damaged or not this user's own."""
    sealed = read_file(path)
    if sealed is None:
        return None
    digest, content = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
    return content if hashlib.sha256(key.encode() + content).digest() == digest else None


def write_file(path: Path, content: bytes) -> None:
    """Write a file of the folder atomically; do nothing if it cannot be written, and leave no incomplete file."""
    if len(content) > MAX_ENTRY_BYTES:
        return
    with suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_usable():
            return
        _make_room(path.parent, len(content))
        handle, name = tempfile.mkstemp(prefix=_UNFINISHED_PREFIX, dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def read_file(path: Path) -> bytes | None:
    """Return a file's content; None if it is missing, not a regular file, too large, or writable by other users."""
    if not is_usable():
        return None
    # Do not follow links, and do not block on a pipe that another process holds open.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError):
        return None
    with suppress(OSError), open(handle, "rb") as file:
        status = os.fstat(handle)
        is_readable = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_ENTRY_BYTES
        if is_readable and is_owned_by_user(status) and not _others_may_write(status):
            content = file.read(MAX_ENTRY_BYTES)
            with suppress(OSError):
                os.utime(path)  # _make_room removes the least recently used entries
            return content
    return None


@cache
def _warn_once(reason: str) -> None:
    """Log once per process why the folder is not used; everything works without it, only slower."""
    logging.getLogger(__name__).warning("lockstep: %s", reason)


def is_usable() -> bool:
    """Return whether entries are read and written; if not, log the reason once."""
    reason = find_problem()
    if reason:
        _warn_once(reason)
    return not reason


def has_file(path: Path) -> bool:
    """Return whether a regular file exists at the path; its content is not checked."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _others_may_write(status: os.stat_result) -> bool:
    return sys.platform != "win32" and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


_uncounted: dict[Path, int] = {}
"""For each folder, the bytes that this process wrote since it listed the folder."""


def _make_room(folder_path: Path, needed: int) -> None:
    """Remove the least recently used entries if `needed` bytes do not fit, and abandoned incomplete files.

    The folder is listed only now and then, because that takes 25 us per entry.
    """
    uncounted = _uncounted.get(folder_path, _UNCOUNTED_BYTES + 1) + needed
    if uncounted <= _UNCOUNTED_BYTES:
        _uncounted[folder_path] = uncounted
        return
    entries = []
    with os.scandir(folder_path) as listing:
        for entry in listing:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if entry.name.startswith(_UNFINISHED_PREFIX) and status.st_mtime < time.time() - _ABANDONED_AGE_S:
                    os.unlink(entry.path)
                else:
                    entries.append((status.st_mtime, status.st_size, entry.path))
    total = needed + sum(size for _, size, _ in entries)
    if total > MAX_TOTAL_BYTES:
        for _, size, path in sorted(entries):
            with suppress(OSError):
                os.unlink(path)
                total -= size
            if total <= MAX_TOTAL_BYTES * _KEPT_FRACTION:
                break
    _uncounted[folder_path] = 0
