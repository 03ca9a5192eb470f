"""Diagnostics of a kernel file for an editor, while the user types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpu.base.errors import CompileError, Diagnostic, SourcePosition
from gpu.base.resource_limits import limit_resources
from gpu.simulator.frontend.program import Program

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_MAX_DIAGNOSTICS = 100
"""The most errors and warnings that an editor shows."""

_WORD = re.compile(r"\w+|\S")


def diagnose(text: str, path: Path, defines: Mapping[str, int | str]) -> tuple[Diagnostic, ...]:
    """Return clang's errors and warnings; if there are no errors, also the constructs that the simulator refuses.

    Templates are not instantiated, so code that depends on their arguments is not diagnosed.

    Parameters
    ----------
    text : str
        The source, which may differ from the file's content.
    path : Path
        The file's path; includes are searched in its folder.
    defines : mapping
        Macros.
    """
    with limit_resources():
        return _diagnose(text, path, defines)


def _diagnose(text: str, path: Path, defines: Mapping[str, int | str]) -> tuple[Diagnostic, ...]:
    lines = text.split("\n")
    try:
        program = Program(text, path, defines, tolerant=True, is_reparse=True)
    except CompileError as refusal:
        return (_unsupported_diagnostic(refusal, path, lines),)
    entries = [
        build_diagnostic(each.message, each.position, path, lines, "error" if each.is_error else "warning")
        for each in program.diagnoses()
    ]
    if not any(entry.severity == "error" for entry in entries):
        for kernel in program.kernels:
            try:
                program.lower_kernel(kernel)
            except CompileError as refusal:
                entries.append(_unsupported_diagnostic(refusal, path, lines))
    entries = sorted(dict.fromkeys(entries), key=lambda each: (each.line, each.column))
    # The first errors explain more than warnings and follow-up errors.
    shown = sorted(sorted(entries, key=lambda each: each.severity != "error")[:_MAX_DIAGNOSTICS], key=entries.index)
    if more := len(entries) - len(shown):
        last = shown[-1]
        shown[-1] = replace(last, message=f"{last.message} (and {more:,} more errors and warnings)")
    return tuple(shown)


def _unsupported_diagnostic(refusal: CompileError, path: Path, lines: list[str]) -> Diagnostic:
    position = refusal.position or SourcePosition(path.name, 1)
    message = refusal.message.removeprefix(f"{position}: ")
    return build_diagnostic(f"{message} {refusal.advice}".strip(), position, path, lines, "error")


def build_diagnostic(message: str, position: SourcePosition, path: Path, lines: list[str], severity: str) -> Diagnostic:
    """Return a diagnostic for a position, with its range in the lines of the edited text.

    Parameters
    ----------
    message : str
        The text; for an error in a header, the position precedes it.
    position : SourcePosition
        The position, with the column in bytes. One in a header is shown at its #include.
    path : Path
        The edited file.
    lines : list of str
        The lines of the edited text, at least one.
    severity : {"error", "warning"}
        The severity.
    """
    message = message[:1].upper() + message[1:] if message.startswith("the ") else message
    if position.file != path.name:
        # An error in a header is shown at its #include.
        for number, line in enumerate(lines, 1):
            if (match := _INCLUDE.match(line)) and Path(match[1]).name == position.file:
                return Diagnostic(number, 1, len(line) + 1, severity, f"{position}: {message}")
        return Diagnostic(1, 1, len(lines[0]) + 1, severity, f"{position}: {message}")
    number = min(max(position.line, 1), len(lines))
    line = lines[number - 1]
    # Clang counts columns in bytes.
    start = len(line.encode()[: max(position.column - 1, 0)].decode(errors="ignore"))
    word = _WORD.search(line, start)
    end = word.end() if word is not None and word.start() == start else start + 1
    return Diagnostic(number, start + 1, end + 1, severity, message)
