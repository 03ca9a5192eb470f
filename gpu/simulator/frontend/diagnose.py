"""What is wrong with a kernel's text, as an editor shows it while it is typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpu.bounds import bounded
from gpu.errors import CompileError, Diagnostic, SourcePosition
from gpu.simulator.frontend.program import Program

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_SHOWN = 100
"""Errors and warnings that an editor shows at most."""

_WORD = re.compile(r"\w+|\S")


def diagnose(text: str, path: Path, defines: Mapping[str, int | str]) -> tuple[Diagnostic, ...]:
    """Return clang's errors and warnings, and where there is no error also what the simulator does not support.

    Templates are not instantiated: of what depends on their arguments nothing is said.

    Parameters
    ----------
    text : str
        The source, which need not be what the file holds.
    path : Path
        Where it belongs: includes are looked for beside it.
    defines : mapping
        Macros.
    """
    with bounded():
        return _diagnose(text, path, defines)


def _diagnose(text: str, path: Path, defines: Mapping[str, int | str]) -> tuple[Diagnostic, ...]:
    lines = text.split("\n")
    try:
        program = Program(text, path, defines, tolerant=True, again=True)
    except CompileError as refusal:
        return (_refused(refusal, path, lines),)
    found = [
        diagnostic_at(each.message, each.position, path, lines, "error" if each.is_error else "warning")
        for each in program.diagnoses()
    ]
    if not any(each.severity == "error" for each in found):
        for kernel in program.kernels:
            try:
                program.kernel(kernel)
            except CompileError as refusal:
                found.append(_refused(refusal, path, lines))
    found = sorted(dict.fromkeys(found), key=lambda each: (each.line, each.column))
    # The first errors explain more than warnings, and more than the errors that follow from them.
    shown = sorted(sorted(found, key=lambda each: each.severity != "error")[:_SHOWN], key=found.index)
    if more := len(found) - len(shown):
        last = shown[-1]
        shown[-1] = replace(last, message=f"{last.message} (and {more:,} more errors and warnings)")
    return tuple(shown)


def _refused(refusal: CompileError, path: Path, lines: list[str]) -> Diagnostic:
    position = refusal.position or SourcePosition(path.name, 1)
    message = refusal.message.removeprefix(f"{position}: ")
    return diagnostic_at(f"{message} {refusal.advice}".strip(), position, path, lines, "error")


def diagnostic_at(message: str, position: SourcePosition, path: Path, lines: list[str], severity: str) -> Diagnostic:
    """Return what is said of a position as an editor shows it, in a text that is given as lines."""
    message = message[:1].upper() + message[1:] if message.startswith("the ") else message
    if position.file != path.name:
        # What is wrong in a header is shown where it is included.
        for number, line in enumerate(lines, 1):
            if (included := _INCLUDE.match(line)) and Path(included[1]).name == position.file:
                return Diagnostic(number, 1, len(line) + 1, severity, f"{position}: {message}")
        return Diagnostic(1, 1, len(lines[0]) + 1, severity, f"{position}: {message}")
    number = min(max(position.line, 1), len(lines))
    line = lines[number - 1]
    # Clang counts columns in bytes.
    start = len(line.encode()[: max(position.column - 1, 0)].decode(errors="ignore"))
    word = _WORD.search(line, start)
    end = word.end() if word is not None and word.start() == start else start + 1
    return Diagnostic(number, start + 1, end + 1, severity, message)
