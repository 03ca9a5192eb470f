"""Opening of files that users name: only regular files are read, and files are replaced atomically."""

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

from gpu.base.errors import InputError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextlib.contextmanager
def open_for_reading(
    path: str | os.PathLike[str], max_bytes: int | None = None, *, follows_links: bool = True
) -> Iterator[IO[bytes]]:
    """Open a regular file for reading.

    A pipe, device or socket, which may block or never end, is refused before it is read.

    Parameters
    ----------
    max_bytes : int or None
        Most bytes that the file may have; None means no limit.
    follows_links : bool
        Whether the file may be a symbolic link: yes if the user named it, no if another person supplied it.

    Raises
    ------
    InputError
        If the file does not exist, is not a regular file, is too large, or cannot be read.
    """
    name = format_path(path)
    with convert_os_errors(name, "read"):
        if not follows_links and Path(path).is_symlink():
            raise InputError(f"{name} is a symbolic link, not a file.")
        # O_NONBLOCK avoids waiting for a pipe's writer; with O_NOFOLLOW, a file replaced by a link is an error.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(path, flags | (0 if follows_links else getattr(os, "O_NOFOLLOW", 0)))
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise InputError(f"{name} is {_describe_kind(about.st_mode)}, not a file.")
            if max_bytes is not None and about.st_size > max_bytes:
                raise InputError(
                    f"{name} is too large: {_format_size(about.st_size)}; the limit is {_format_size(max_bytes)}."
                )
        except BaseException:
            os.close(handle)
            raise
    with convert_os_errors(name, "read"), open(handle, "rb") as file:
        yield file


def read_lines(file: IO[bytes], name: str, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield a file's lines with their numbers; raise InputError for a line of more than `max_line_bytes` bytes."""
    number = 0
    while line := file.readline(max_line_bytes + 1):
        number += 1
        if len(line) > max_line_bytes:
            raise InputError(f"{name}, line {number}, is too long: the limit is {_format_size(max_line_bytes)}.")
        yield number, line


def read_bytes(path: str | os.PathLike[str], max_bytes: int, *, follows_links: bool = True) -> bytes:
    """Return the content of a regular file of at most `max_bytes` bytes; raise InputError if that is not possible."""
    with open_for_reading(path, max_bytes, follows_links=follows_links) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)  # read() allocates the requested size
        if len(data) > size:  # the file has grown
            data += file.read(max_bytes + 1 - len(data))
    if len(data) > max_bytes:
        raise InputError(f"{format_path(path)} is too large: the limit is {_format_size(max_bytes)}.")
    return data


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` if the block succeeds, and is deleted if it fails.

    Only a regular file or a link is replaced; the target of a link is unchanged.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _replace(path) as unfinished:
        unnamed = _open_unnamed(unfinished.parent)
        with unnamed or open(unfinished, "xb") as file:
            yield file
            if unnamed is not None:
                file.flush()
                _link_to_path(file, unfinished)


def write_file(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file as `replace_file`; a text as UTF-8, with "?" for characters that are not Unicode."""
    with replace_file(path) as file:
        file.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)


@contextlib.contextmanager
def replace_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide the name of a new file or folder for others to write; it replaces `path` if the block succeeds.

    If the block fails, it is deleted. A file can be replaced, a folder cannot. A file is synchronized to disk before it
    is renamed, since its user may then delete the data that it was computed from.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with _replace(path) as unfinished:
        yield unfinished
        if unfinished.is_file():
            _sync(unfinished)


@contextlib.contextmanager
def _replace(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide a name in the folder of `path`; its file or folder replaces `path`, or is deleted if the block fails."""
    with convert_os_errors(format_path(path), "write"):
        target, before = _resolve_target(Path(path))
        unfinished = target.with_name(f".lockstep-{secrets.token_hex(8)}.part")
        try:
            yield unfinished
            if before is not None and stat.S_ISREG(before) and unfinished.is_file():
                unfinished.chmod(stat.S_IMODE(before))
            unfinished.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)
            raise


def write_back(file: IO[bytes], start: int, size: int) -> None:
    """Start writing recently written bytes of a file to disk, without waiting.

    Otherwise the system starts seconds later, and processes wait for a disk that was idle before.
    """
    if hasattr(os, "posix_fadvise"):
        file.flush()
        with contextlib.suppress(OSError):  # for example, for a device
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _open_unnamed(folder: Path) -> IO[bytes] | None:
    """Open a file without a name, which vanishes if the process is killed; return None if not supported."""
    kind = getattr(os, "O_TMPFILE", 0)
    if not kind or not Path("/proc/self/fd").is_dir():
        return None
    try:
        handle = os.open(folder, kind | os.O_WRONLY, 0o666)
    except OSError:
        return None  # not supported by this file system, or the next attempt reports the reason
    return open(handle, "wb")


def _link_to_path(file: IO[bytes], path: Path) -> None:
    # With a folder descriptor, which an absolute path ignores, os.link follows the link in /proc.
    os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno(), follow_symlinks=True)


def ensure_folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder for new files, created if necessary; raise InputError if that is not possible."""
    name = format_path(path)
    with convert_os_errors(name, "create the folder"):
        directory = Path(path)
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise InputError(f"Cannot write to {name}: permission denied.")
    return directory


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise InputError if `replace_file` cannot write to `path`, to detect that before long work."""
    with convert_os_errors(format_path(path), "write"):
        _resolve_target(Path(path))


def _resolve_target(path: Path) -> tuple[Path, int | None]:
    """Return the resolved target of a write, and the mode of the existing file; None if there is none."""
    name = format_path(path)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InputError(f"Cannot write {name}: no file can have this name.") from None
    target = Path(os.path.realpath(path.parent), path.name)
    if path.name in ("", "..") or path.is_dir():
        raise InputError(f"Cannot write {name}: it is a folder.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {name}: there is no folder {format_path(path.parent)}.")
    before = _read_mode(target)
    if before is not None and not stat.S_ISLNK(before):
        if not stat.S_ISREG(before):
            raise InputError(f"Cannot write {name}: it is {_describe_kind(before)}.")
        if not os.access(target, os.W_OK):
            raise InputError(f"Cannot write {name}: permission denied.")
    elif not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"Cannot write {name}: permission denied.")
    return target, before


def format_path(path: str | os.PathLike[str]) -> str:
    """Return a path shortened and escaped for a message of one line."""
    name = os.fspath(path)
    if not name.isprintable():
        name = repr(name)
    return (
        name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH // 2]}…{name[-_MAX_NAME_LENGTH // 2 :]}"
    )


_MAX_NAME_LENGTH = 300


@contextlib.contextmanager
def convert_os_errors(name: str, verb: str) -> Iterator[None]:
    """Convert operating-system errors to InputError; `verb` is "read" or another verb for the message."""
    try:
        yield
    except FileNotFoundError as error:
        if verb != "read":
            raise InputError(f"Cannot {verb} {name}: {str(error.strerror).lower()}.") from None
        raise InputError(f"There is no file {name}.") from None
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket, which cannot be opened
            raise InputError(f"{name} is a socket or a device, not a file.") from None
        # NumPy raises its own message when a file cannot take a whole array.
        full = "no space is left" if "requested and" in str(error) else str(error) or "the disk failed"
        reason = (error.strerror or full).lower()
        raise InputError(f"Cannot {verb} {name}: {reason}.") from None
    except ValueError as error:
        is_name = isinstance(error, UnicodeEncodeError) and verb == "read"
        if "null" not in str(error) and not is_name:
            raise
        raise InputError(f"There is no file {name}.") from None


def _read_mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _describe_kind(mode: int) -> str:
    return next((word for is_kind, word in _KINDS if is_kind(mode)), "no file")


def _format_size(count: int) -> str:
    return f"{count / 2**20:.3g} MB" if count >= 2**20 else f"{count} bytes"
