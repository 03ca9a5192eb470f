"""The header that every kernel file includes first, precompiled and cached, since it dominates the parse time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from clang import cindex

from gpu.base import folders
from gpu.base.paths import ROOT
from gpu.base.resource_limits import suspend_time_limits
from gpu.simulator import disk

SHIM = ROOT / "gpu" / "simulator" / "shim"
_HEADER = SHIM / "lockstep_device.h"


UNCOMPILED_HEADER = ("-include", str(_HEADER))
"""Clang's arguments to parse the header's text."""

_INCLUDE_COMPILED = "-include-pch"
_SERIALIZABLE = cindex.TranslationUnit.PARSE_INCOMPLETE | 0x10  # CXTranslationUnit_ForSerialization


def get_precompiled_header(arguments: tuple[str, ...]) -> tuple[str, str]:
    """Return clang's arguments for the header precompiled with these; `UNCOMPILED_HEADER` if it cannot be cached."""
    folder = folders.cache_folder()
    with suspend_time_limits():
        path = _header_path(folder, arguments)
        if path is not None and not disk.has_file(path):  # the cache was cleared
            _header_path.cache_clear()
            path = _header_path(folder, arguments)
    return UNCOMPILED_HEADER if path is None else (_INCLUDE_COMPILED, str(path))


def get_index(arguments: Sequence[str]) -> cindex.Index:
    """Return libclang's index for files that are parsed with these arguments.

    Its trees list no declarations of a precompiled header. The header has 1,500, and visiting them takes a third of the
    time of parsing and lowering a small file.
    """
    return _create_index(is_header_hidden=_INCLUDE_COMPILED in arguments)


@cache
def find_named_function() -> tuple[Path, int]:
    """Return the file and offset of one function of the header's block `extern "C++"`, which leads to the others."""
    file = SHIM / "lockstep" / "heap.h"
    return file, file.read_bytes().index(b"malloc(size_t")


@cache
def _create_index(*, is_header_hidden: bool) -> cindex.Index:
    return cindex.Index.create(is_header_hidden)


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
    if _digest(disk.read_file(path)) == path.stem and _is_accepted(path, arguments):
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


def _is_accepted(path: Path, arguments: tuple[str, ...]) -> bool:
    """Return whether clang accepts the precompiled header."""
    options = [*arguments, _INCLUDE_COMPILED, str(path)]
    try:
        unit = get_index(options).parse("empty.cu", args=options, unsaved_files=[("empty.cu", "")])
    except cindex.TranslationUnitLoadError:
        return False
    return all(diagnostic.severity < cindex.Diagnostic.Error for diagnostic in unit.diagnostics)


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
