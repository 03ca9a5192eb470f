"""Texts of kernel files, and their lines for reports."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu.base.errors import CompileError, InputError, SourcePosition
from gpu.files.file_access import read_bytes

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
"""An include directive; group 1 is the name."""

MAX_BYTES = 4 << 20
"""Bytes of the largest kernel file."""

RELAXED_CONSTEXPR = "__CUDACC_RELAXED_CONSTEXPR__"
"""The macro that nvcc's option --expt-relaxed-constexpr defines: device code may call constexpr host functions."""


def format_macros(defines: Mapping[str, int | str]) -> list[str]:
    """Return nvcc's options that define macros."""
    return [
        "--expt-relaxed-constexpr" if name == RELAXED_CONSTEXPR else f"-D{name}={value}"
        for name, value in sorted(defines.items())
    ]


def read_source(path: Path, *, follows_links: bool = True) -> str:
    """Return a kernel file's text, from UTF-8 or Windows' UTF-16; raise InputError if it cannot be read."""
    data = read_bytes(path, MAX_BYTES, follows_links=follows_links)
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    return data.decode(encoding, errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def read_includes(text: str, path: Path, include_dirs: Sequence[Path] = ()) -> dict[Path, str]:
    """Return the texts of a kernel file's includes, and of theirs, by path.

    Parameters
    ----------
    text : str
        Text of the kernel file.
    path, include_dirs
        As for `SourceLines`.

    Raises
    ------
    CompileError
        An include is too large or not a regular file, which a compiler would open without a check.
    """
    pending = [(text, path)]
    texts: dict[Path, str] = {}
    for inner, file in pending:
        for match in INCLUDE.finditer(inner):
            for included in (folder / match[1] for folder in (file.parent, path.parent, *include_dirs)):
                if included in texts or not _is_openable(included):
                    continue
                try:
                    texts[included] = read_source(included)
                except InputError as error:
                    line = 1 + inner.count("\n", 0, match.start(1))
                    position = SourcePosition(file.name, line)
                    raise CompileError(f"{position}: {error.message}", position=position) from None
                pending.append((texts[included], included))
    return texts


def has_computed_include(text: str) -> bool:
    """Return whether a text may include files that `read_includes` does not find, such as one that a macro names."""
    lines = INCLUDE.sub("", text).replace("\\\n", "").splitlines()
    directives = (line for line in lines if "#" in line or "%:" in line or "__has_" in line)
    return any(word in line for line in directives for word in ("include", "import", "embed"))


def _is_openable(path: Path) -> bool:
    """Return whether a path can be opened by a compiler, which skips folders."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # for example, a name that is too long
        return False


class SourceLines:
    """Lines of a kernel file and its includes, by bare file name as in `SourcePosition`.

    Parameters
    ----------
    path : Path
        The kernel file.
    include_dirs : sequence of Path
        Additional folders of includes, besides the folder of the including file.
    edited : str or None
        Text that replaces the file's content.
    """

    def __init__(self, path: Path, include_dirs: Sequence[Path] = (), *, edited: str | None = None) -> None:
        self._lines: dict[str, list[str]] = {}
        pending = [path]
        for file in pending:
            try:
                text = edited if edited is not None and file is path else read_source(file)
            except InputError:
                continue
            if file.name not in self._lines:
                self._lines[file.name] = text.split("\n")
                folders = (file.parent, path.parent, *include_dirs)
                pending += [folder / name for name in INCLUDE.findall(text) for folder in folders]

    def line(self, file: str, number: int) -> str:
        """Return a line with tabs expanded; "" if there is no such line."""
        lines = self._lines.get(file, [])
        return lines[number - 1].expandtabs(4).rstrip() if 0 < number <= len(lines) else ""

    def caret(self, position: SourcePosition) -> str:
        """Return spaces and a caret to print below a line; "" for a position without a column."""
        lines = self._lines.get(position.file, [])
        if not position.column or not 0 < position.line <= len(lines):
            return ""
        # Clang counts columns in bytes.
        before = lines[position.line - 1].encode()[: position.column - 1].decode(errors="ignore")
        return " " * len(before.expandtabs(4)) + "^"
