"""The header that every kernel file begins with, parsed once and kept: that is most of what a parse takes."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from clang import cindex

from gpu.simulator import disk

SHIM = Path(__file__).parents[1] / "shim"
_HEADER = SHIM / "lockstep_device.h"

PLAIN = ("-include", str(_HEADER))
"""Arguments by which clang reads the header's text."""

_FOR_OTHERS = cindex.TranslationUnit.PARSE_INCOMPLETE | 0x10  # CXTranslationUnit_ForSerialization


def parsed_before(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments by which clang takes the header as it was parsed before, with these arguments.

    Where there is no room to keep that, they are `PLAIN`.
    """
    folder = disk.folder()
    path = _path(folder, arguments)
    if path is not None and not path.is_file():  # somebody has cleared the cache
        _path.cache_clear()
        path = _path(folder, arguments)
    return PLAIN if path is None else ("-include-pch", str(path))


@cache
def _path(folder: Path, arguments: tuple[str, ...]) -> Path | None:
    """Return the file of what was parsed, made where it is missing, damaged or of another clang.

    A file is named by its content, so that nobody ever sees half of one; another file tells the name.
    """
    name = folder / f"{_key(arguments)}.header"
    digest = (disk.read(name) or b"").decode("ascii", errors="replace")
    path = folder / f"{digest}.pch"
    if digest.isalnum() and _digest(disk.read(path)) == digest and _is_taken(path, arguments):
        return path
    content = _parse(arguments)
    digest = _digest(content)
    path = folder / f"{digest}.pch"
    disk.write(path, content)
    disk.write(name, digest.encode())
    return path if path.is_file() else None


def _key(arguments: Sequence[str]) -> str:
    """Return what changes with the headers, also with their dates, to which clang holds."""
    key = hashlib.sha256(repr(arguments).encode())
    for header in sorted(SHIM.rglob("*.h")):
        about = header.stat()
        key.update(repr((str(header), about.st_size, about.st_mtime_ns)).encode())
    return key.hexdigest()


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()


def _is_taken(path: Path, arguments: Sequence[str]) -> bool:
    try:
        unit = cindex.Index.create().parse(
            "empty.cu", args=[*arguments, "-include-pch", str(path)], unsaved_files=[("empty.cu", "")]
        )
    except cindex.TranslationUnitLoadError:
        return False
    return all(said.severity < cindex.Diagnostic.Error for said in unit.diagnostics)


def _parse(arguments: Sequence[str]) -> bytes:
    unit = cindex.Index.create().parse(str(_HEADER), args=arguments, options=_FOR_OTHERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "header.pch")
        unit.save(str(path))
        return path.read_bytes()
