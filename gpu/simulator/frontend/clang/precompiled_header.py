"""The header that every kernel file includes first, precompiled and cached, since it dominates the parse time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from clang import cindex

from gpu.base import folders
from gpu.base.paths import ROOT
from gpu.base.resource_limits import suspend_time_limits
from gpu.simulator import disk

SHIM = ROOT / "gpu" / "simulator" / "shim"
_HEADER = SHIM / "lockstep_device.h"


@dataclass(frozen=True)
class PrecompiledHeader:
    """How to pass the header to clang.

    Parameters
    ----------
    arguments : tuple of str
        The command-line arguments that include it.
    declarations : int
        The number of leading top-level declarations known to come from the header.
    """

    arguments: tuple[str, ...]
    declarations: int


UNCOMPILED_HEADER = PrecompiledHeader(("-include", str(_HEADER)), 0)
"""Clang parses the header's text."""

_SERIALIZABLE = cindex.TranslationUnit.PARSE_INCOMPLETE | 0x10  # CXTranslationUnit_ForSerialization


def get_precompiled_header(arguments: tuple[str, ...]) -> PrecompiledHeader:
    """Return the header precompiled with these arguments; `UNCOMPILED_HEADER` if it cannot be cached."""
    folder = folders.cache_folder()
    with suspend_time_limits():
        path = _header_path(folder, arguments)
        if path is not None and not disk.has_file(path):  # the cache was cleared
            _header_path.cache_clear()
            path = _header_path(folder, arguments)
    return (
        UNCOMPILED_HEADER
        if path is None
        else PrecompiledHeader(_flags(path), _count_declarations(path, arguments) or 0)
    )


@cache
def _header_path(folder: Path, arguments: tuple[str, ...]) -> Path | None:
    """Return the precompiled header's file; create it if it is missing, damaged or from another version of clang.

    The file is named by its content's hash, so that it is never seen incomplete; a second file stores that name.
    """
    if not disk.is_usable():
        return None
    key = _compute_key(arguments)
    name = folder / f"{key}.header"
    path = folder / f"{(disk.read_entry(name, key) or b'').decode('ascii')}.pch"
    if _digest(disk.read_file(path)) == path.stem and _count_declarations(path, arguments) is not None:
        return path
    content = _precompile(arguments)
    if content is None:
        return None
    path = folder / f"{_digest(content)}.pch"
    disk.write_file(path, content)
    disk.write_entry(name, key, path.stem.encode())
    return path if disk.read_file(path) == content else None


def _compute_key(arguments: Sequence[str]) -> str:
    """Return a key that changes with the headers and their modification times, which clang checks."""
    key = hashlib.sha256(repr(arguments).encode())
    for header in sorted(SHIM.rglob("*.h")):
        status = header.stat()
        key.update(repr((str(header), status.st_size, status.st_mtime_ns)).encode())
    return key.hexdigest()


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()


def _flags(path: Path) -> tuple[str, ...]:
    return "-include-pch", str(path)


@cache
def _count_declarations(path: Path, arguments: tuple[str, ...]) -> int | None:
    """Return the number of declarations with the precompiled header; None if clang rejects it."""
    try:
        unit = cindex.Index.create().parse(
            "empty.cu", args=[*arguments, *_flags(path)], unsaved_files=[("empty.cu", "")]
        )
    except cindex.TranslationUnitLoadError:
        return None
    if any(diagnostic.severity >= cindex.Diagnostic.Error for diagnostic in unit.diagnostics):
        return None
    return sum(1 for _ in unit.cursor.get_children())


def _precompile(arguments: Sequence[str]) -> bytes | None:
    """Return the precompiled header's bytes; None if no temporary file can be written."""
    unit = cindex.Index.create().parse(str(_HEADER), args=arguments, options=_SERIALIZABLE)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "header.pch")
            unit.save(str(path))
            return path.read_bytes()
    except (OSError, cindex.TranslationUnitSaveError):
        return None
