"""The texts of kernel files, and of their lines for reports that show them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from pathlib import Path

from gpu.errors import CompileError, InputError, SourcePosition
from gpu.files.opening import read_bytes

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)

MOST_BYTES = 4 << 20
"""Bytes of the largest kernel file."""


def read_source(path: Path) -> str:
    """Return a kernel file's text, UTF-8 or the UTF-16 that Windows' shells write; InputError if it cannot be read."""
    data = read_bytes(path, MOST_BYTES)
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    return data.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def check_includes(text: str, path: Path, include_dirs: Sequence[Path] = ()) -> None:
    """Raise CompileError, with its place, for an include that is no file or too large: a compiler would just open it.

    Parameters
    ----------
    text : str
        The kernel file's.
    path, include_dirs
        As of `Sources`.
    """
    waiting = [(text, path)]
    seen: set[Path] = set()
    for inner, file in waiting:
        for found in _INCLUDE.finditer(inner):
            for included in (folder / found[1] for folder in (file.parent, path.parent, *include_dirs)):
                if included in seen or not _is_there(included):
                    continue
                seen.add(included)
                try:
                    waiting.append((read_source(included), included))
                except InputError as error:
                    line = 1 + inner.count("\n", 0, found.start(1))
                    position = SourcePosition(file.name, line)
                    raise CompileError(f"{position}: {error.message}", position=position) from None


def _is_there(path: Path) -> bool:
    """Whether there is something that a compiler opens; it goes past folders."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # such as a name that is too long
        return False


class Sources:
    """The lines of a kernel file and of what it includes, by the file's bare name, which is what positions have.

    Parameters
    ----------
    path : Path
        The kernel file.
    include_dirs : sequence of Path
        Where includes are looked for, other than beside the file that has them.
    edited : str or None
        What stands in the place of what the file holds.
    """

    def __init__(self, path: Path, include_dirs: Sequence[Path] = (), *, edited: str | None = None) -> None:
        self._lines: dict[str, list[str]] = {}
        waiting = [path]
        for file in waiting:
            try:
                text = edited if edited is not None and file is path else read_source(file)
            except InputError:
                continue
            if file.name not in self._lines:
                self._lines[file.name] = text.split("\n")
                folders = (file.parent, path.parent, *include_dirs)
                waiting += [folder / name for name in _INCLUDE.findall(text) for folder in folders]

    def line(self, file: str, number: int) -> str:
        """Return a line, tabs as spaces; "" for one that is not known."""
        lines = self._lines.get(file, [])
        return lines[number - 1].expandtabs(4).rstrip() if 0 < number <= len(lines) else ""

    def caret(self, position: SourcePosition) -> str:
        """Return the spaces and the caret that go below a line; "" for a position without a column."""
        lines = self._lines.get(position.file, [])
        if not position.column or not 0 < position.line <= len(lines):
            return ""
        # Clang counts columns in bytes.
        before = lines[position.line - 1].encode()[: position.column - 1].decode(errors="ignore")
        return " " * len(before.expandtabs(4)) + "^"
