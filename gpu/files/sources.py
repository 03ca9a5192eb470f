"""The texts of kernel files, and of their lines for reports that show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gpu.errors import InputError, SourcePosition
from gpu.files.opening import read_bytes

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)

MOST_BYTES = 4 << 20
"""Bytes of the largest kernel file."""


def read_source(path: Path) -> str:
    """Return a kernel file's text; InputError where it cannot be read."""
    return read_bytes(path, MOST_BYTES).decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


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
