"""The folder of what can be made again: machine code, and headers that are parsed already.

What lies there is run, or read by clang, so only this user may have written it. An entry is bound to its key: one
that is damaged, cut off, somebody else's or another key's is none. A folder that cannot be used is left as it is.
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

LARGEST = 64 << 20
"""Bytes of the largest entry that is read or written; the parsed header has some 3 MB, machine code some 100 KB."""

MOST = 512 << 20
"""Bytes of all entries together; the ones that were not asked for the longest go first."""

_HALF_WRITTEN = "unfinished-"
_FORGOTTEN_S = 3600
"""After so long a file that is half written will never be whole."""

_DIGEST_BYTES = hashlib.sha256().digest_size


def folder() -> Path:
    """Return the folder where the platform keeps what can be made again."""
    if "LOCKSTEP_CACHE" in os.environ:
        return Path(os.environ["LOCKSTEP_CACHE"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "Lockstep" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "Lockstep"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


def complaint() -> str:
    """Return why nothing is kept in the folder, as a sentence; "" where it is used, or will be made."""
    where = folder()
    try:
        about = where.stat()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return f"The cache folder {where} is not used: {getattr(error, 'strerror', None) or error}."
    if not stat.S_ISDIR(about.st_mode):
        return f"The cache folder {where} is not used: it is no folder."
    if not _is_ours(about):
        return f"The cache folder {where} is not used: it belongs to another user."
    if _others_may_write(about):
        return f"The cache folder {where} is not used: other users may write to it."
    if not os.access(where, os.R_OK | os.W_OK | os.X_OK):
        return f"The cache folder {where} is not used: this user may not read and write there."
    return ""


def keep(path: Path, key: str, content: bytes) -> None:
    """Write an entry, or none where that cannot be. Two processes may do so at once: it appears whole."""
    write(path, hashlib.sha256(key.encode() + content).digest() + content)


def kept(path: Path, key: str) -> bytes | None:
    """Return what `keep` wrote to a file under this key; None where that is not there, whole and this user's own."""
    sealed = read(path)
    if sealed is None:
        return None
    digest, content = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
    return content if hashlib.sha256(key.encode() + content).digest() == digest else None


def write(path: Path, content: bytes) -> None:
    """Write a file of the folder, or none where that cannot be; nothing half written stays behind."""
    if len(content) > LARGEST:
        return
    with suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not usable():
            return
        _make_room(path.parent, len(content))
        handle, name = tempfile.mkstemp(prefix=_HALF_WRITTEN, dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def read(path: Path) -> bytes | None:
    """Return a file's content; None where it is not there, no regular file, too large, or not only this user's."""
    if not usable():
        return None
    # Neither a link nor what another process holds open at its other end is waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError):
        return None
    with suppress(OSError), open(handle, "rb") as file:
        about = os.fstat(handle)
        whole = stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST
        if whole and _is_ours(about) and not _others_may_write(about):
            content = file.read(LARGEST)
            with suppress(OSError):
                os.utime(path)  # it was asked for, which is what _make_room goes by
            return content
    return None


@cache
def _say(reason: str) -> None:
    """Say once in a process why nothing is kept: all works without, only slower."""
    logging.getLogger(__name__).warning("lockstep: %s", reason)


def usable() -> bool:
    """Whether entries are read and written; where not, the reason is said once."""
    reason = complaint()
    if reason:
        _say(reason)
    return not reason


def holds(path: Path) -> bool:
    """Whether a regular file is there; what is in it is not looked at."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _is_ours(about: os.stat_result) -> bool:
    return sys.platform == "win32" or about.st_uid == os.geteuid()


def _others_may_write(about: os.stat_result) -> bool:
    return sys.platform != "win32" and bool(about.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _make_room(where: Path, wanted: int) -> None:
    """Remove what was not asked for the longest until `wanted` bytes fit, and what will never be whole."""
    entries = []
    for path in where.iterdir():
        with suppress(OSError):
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                continue
            if path.name.startswith(_HALF_WRITTEN) and about.st_mtime < time.time() - _FORGOTTEN_S:
                path.unlink()
            else:
                entries.append((about.st_mtime, about.st_size, path))
    excess = sum(size for _, size, _ in entries) + wanted - MOST
    for _, size, path in sorted(entries, key=lambda entry: entry[:2]):
        if excess <= 0:
            return
        with suppress(OSError):
            path.unlink()
            excess -= size
