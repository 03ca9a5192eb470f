"""How every file that a user names is opened: only what is a file is read, and none is lost where one is written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpu.errors import InputError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], most: int | None = None) -> Iterator[IO[bytes]]:
    """Open a regular file to be read.

    What blocks or never ends (a pipe, a device, a socket) is refused before a byte of it is asked for.

    Parameters
    ----------
    path : path-like
    most : int or None
        The most bytes that the file may have; None means any number.

    Raises
    ------
    InputError
        With one sentence, where there is no such file, it is none, is too large or may not be read.
    """
    name = name_of(path)
    with os_errors(name, "read"):
        # A link is followed: it is the user's own word for the file. A pipe without a writer is not waited for.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise InputError(f"{name} is {_kind(about.st_mode)}, not a file.")
            if most is not None and about.st_size > most:
                raise InputError(f"{name} is too large: {_size(about.st_size)}, where at most {_size(most)} are taken.")
        except BaseException:
            os.close(handle)
            raise
    with os_errors(name, "read"), open(handle, "rb") as file:
        yield file


def lines_of(file: IO[bytes], name: str, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield a file's lines with their numbers; InputError for one of more than `longest` bytes."""
    place = 0
    while line := file.readline(longest + 1):
        place += 1
        if len(line) > longest:
            raise InputError(f"{name}, line {place}, is too long: at most {_size(longest)} are taken.")
        yield place, line


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return all of a regular file of at most `most` bytes; InputError with one sentence where that cannot be."""
    with reading(path, most) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)  # as many as are asked for, so many bytes it takes
        if len(data) > size:  # it has grown
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise InputError(f"{name_of(path)} is too large: at most {_size(most)} are taken.")
    return data


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that takes `path`'s place when the block ends well, and vanishes when it does not.

    Only a file is replaced. Where the name is a link, the link is, and what it leads to stays as it is.

    Raises
    ------
    InputError
        With one sentence, when the file cannot be written.
    """
    with os_errors(name_of(path), "written"):
        target, before = _target(Path(path))
        unfinished = target.with_name(f".lockstep-{secrets.token_hex(8)}.part")
        try:
            nameless = _without_name(target.parent)
            with nameless or open(unfinished, "xb") as file:
                yield file
                if nameless is not None:
                    file.flush()
                    _give_name(file, unfinished)
            if before is not None and stat.S_ISREG(before):
                unfinished.chmod(stat.S_IMODE(before))
            unfinished.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def replacing_in_parts(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Have the name of a new file, or folder, that others write to; it takes `path`'s place when the block ends well.

    When the block does not, what was written vanishes. A file is replaced, a folder is not. A file is on the disk
    before it has the name: who sees it may remove what it was made of.

    Raises
    ------
    InputError
        With one sentence, when it cannot be written.
    """
    with os_errors(name_of(path), "written"):
        target, before = _target(Path(path))
        unfinished = target.with_name(f".lockstep-{secrets.token_hex(8)}.part")
        try:
            yield unfinished
            if unfinished.is_file():
                _sync(unfinished)
            if before is not None and stat.S_ISREG(before) and unfinished.is_file():
                unfinished.chmod(stat.S_IMODE(before))
            unfinished.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)
            raise


def write_back(file: IO[bytes], start: int, size: int) -> None:
    """Have the system begin to write bytes of a file to the disk that were written just now, and wait for nothing.

    Left to itself it begins seconds later, and then all wait for the disk that had nothing to do before.
    """
    if hasattr(os, "posix_fadvise"):
        file.flush()
        with contextlib.suppress(OSError):  # as of a device
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _without_name(folder: Path) -> IO[bytes] | None:
    """Return a new file of which nothing is left when its process is killed; None where the system has none."""
    kind = getattr(os, "O_TMPFILE", 0)
    if not kind or not Path("/proc/self/fd").is_dir():
        return None
    try:
        handle = os.open(folder, kind | os.O_WRONLY, 0o666)
    except OSError:
        return None  # this file system has none, or the reason will be met again
    return open(handle, "wb")


def _give_name(file: IO[bytes], path: Path) -> None:
    # With a folder's handle, which an absolute path ignores, os.link follows the link that /proc has.
    os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno(), follow_symlinks=True)


def folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder for new files, made where it is not there; InputError where that cannot be."""
    name = name_of(path)
    with os_errors(name, "made a folder"):
        made = Path(path)
        made.mkdir(parents=True, exist_ok=True)
        if not os.access(made, os.W_OK | os.X_OK):
            raise InputError(f"{name} cannot be written to: permission denied.")
    return made


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise InputError where `replacing` could not write to `path` anyway: before work that would be in vain."""
    with os_errors(name_of(path), "written"):
        _target(Path(path))


def _target(path: Path) -> tuple[Path, int | None]:
    """Return where a file is written, and the mode of what is there; None for nothing."""
    name = name_of(path)
    target = Path(os.path.realpath(path.parent), path.name)
    if path.name in ("", "..") or path.is_dir():
        raise InputError(f"{name} cannot be written: it is a folder.")
    if not target.parent.is_dir():
        raise InputError(f"{name} cannot be written: there is no folder {name_of(path.parent)}.")
    before = _mode(target)
    if before is not None and not stat.S_ISLNK(before):
        if not stat.S_ISREG(before):
            raise InputError(f"{name} cannot be written: it is {_kind(before)}.")
        if not os.access(target, os.W_OK):
            raise InputError(f"{name} cannot be written: permission denied.")
    elif not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"{name} cannot be written: permission denied.")
    return target, before


def name_of(path: str | os.PathLike[str]) -> str:
    """Return a path as a sentence of one line can hold it."""
    name = os.fspath(path)
    if not name.isprintable():
        name = repr(name)
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"


_SHOWN = 300


@contextlib.contextmanager
def os_errors(name: str, verb: str) -> Iterator[None]:
    """Turn what the operating system says of a file into one sentence; `verb` is "read", or what else was wanted."""
    try:
        yield
    except FileNotFoundError as error:
        if verb != "read":
            raise InputError(f"{name} cannot be {verb}: {str(error.strerror).lower()}.") from None
        raise InputError(f"There is no file {name}.") from None
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket, which no open() opens
            raise InputError(f"{name} is a socket or a device, not a file.") from None
        # NumPy, where a file takes no more of an array, has no word of the system's.
        full = "no more of it fits" if "requested and" in str(error) else str(error) or "the disk failed"
        reason = (error.strerror or full).lower()
        raise InputError(f"{name} cannot be {verb}: {reason}.") from None
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise InputError(f"There is no file {name}.") from None


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _kind(mode: int) -> str:
    return next((word for is_kind, word in _KINDS if is_kind(mode)), "no file")


def _size(count: int) -> str:
    return f"{count / 2**20:.3g} MB" if count >= 2**20 else f"{count} bytes"
