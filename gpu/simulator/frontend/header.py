"""The header that every kernel file begins with, parsed once and kept: that is most of what a parse takes."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from clang import cindex

from gpu.bounds import unhurried
from gpu.simulator import disk

SHIM = Path(__file__).parents[1] / "shim"
_HEADER = SHIM / "lockstep_device.h"


@dataclass(frozen=True)
class PrecompiledHeader:
    """How clang takes the header.

    Parameters
    ----------
    arguments : tuple of str
        What tells clang of it.
    declarations : int
        How many of the outermost declarations, which come first, are known to be the header's.
    """

    arguments: tuple[str, ...]
    declarations: int


PLAIN = PrecompiledHeader(("-include", str(_HEADER)), 0)
"""Clang reads the header's text."""

_FOR_OTHERS = cindex.TranslationUnit.PARSE_INCOMPLETE | 0x10  # CXTranslationUnit_ForSerialization


def parsed_before(arguments: tuple[str, ...]) -> PrecompiledHeader:
    """Return the header as it was parsed before, with these arguments; `PLAIN` where there is no room to keep that."""
    folder = disk.folder()
    with unhurried():
        path = _path(folder, arguments)
        if path is not None and not disk.holds(path):  # somebody has cleared the cache
            _path.cache_clear()
            path = _path(folder, arguments)
    return PLAIN if path is None else PrecompiledHeader(_taking(path), _number_of_declarations(path, arguments) or 0)


@cache
def _path(folder: Path, arguments: tuple[str, ...]) -> Path | None:
    """Return the file of what was parsed, made where it is missing, damaged or of another clang.

    A file is named by its content, so that nobody ever sees half of one; another file tells the name.
    """
    if not disk.usable():
        return None
    key = _key(arguments)
    name = folder / f"{key}.header"
    path = folder / f"{(disk.kept(name, key) or b'').decode('ascii')}.pch"
    if _digest(disk.read(path)) == path.stem and _number_of_declarations(path, arguments) is not None:
        return path
    content = _parse(arguments)
    if content is None:
        return None
    path = folder / f"{_digest(content)}.pch"
    disk.write(path, content)
    disk.keep(name, key, path.stem.encode())
    return path if disk.read(path) == content else None


def _key(arguments: Sequence[str]) -> str:
    """Return what changes with the headers, also with their dates, to which clang holds."""
    key = hashlib.sha256(repr(arguments).encode())
    for header in sorted(SHIM.rglob("*.h")):
        about = header.stat()
        key.update(repr((str(header), about.st_size, about.st_mtime_ns)).encode())
    return key.hexdigest()


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()


def _taking(path: Path) -> tuple[str, ...]:
    return "-include-pch", str(path)


@cache
def _number_of_declarations(path: Path, arguments: tuple[str, ...]) -> int | None:
    """Return how much an empty file declares behind what was parsed; None where clang does not take that."""
    try:
        unit = cindex.Index.create().parse(
            "empty.cu", args=[*arguments, *_taking(path)], unsaved_files=[("empty.cu", "")]
        )
    except cindex.TranslationUnitLoadError:
        return None
    if any(said.severity >= cindex.Diagnostic.Error for said in unit.diagnostics):
        return None
    return sum(1 for _ in unit.cursor.get_children())


def _parse(arguments: Sequence[str]) -> bytes | None:
    """Return the parsed header as clang keeps it; None where there is no folder for its file."""
    unit = cindex.Index.create().parse(str(_HEADER), args=arguments, options=_FOR_OTHERS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "header.pch")
            unit.save(str(path))
            return path.read_bytes()
    except (OSError, cindex.TranslationUnitSaveError):
        return None
