"""Findings as an editor shows them: at their lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gpu.errors import Diagnostic, SourcePosition
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.frontend.diagnose import diagnostic_at


def diagnostics_of(
    findings: Sequence[Finding], text: str, path: Path, warnings: Sequence[Finding] = ()
) -> tuple[Diagnostic, ...]:
    """Return findings at their lines, a race at both of its own; one without a place stands in the first line.

    `warnings` are what is only suspicious.
    """
    lines = text.split("\n")
    said = [
        (f"{finding.message} ({finding.count} times)" if finding.count > 1 else finding.message, position, severity)
        for severity, several in (("error", findings), ("warning", warnings))
        for finding in several
        for position in _lines_of(finding, path)
    ]
    found = {diagnostic_at(message, position, path, lines, severity) for message, position, severity in said}
    return tuple(sorted(found, key=lambda each: (each.line, each.column, each.message)))


def _lines_of(finding: Finding, path: Path) -> Iterable[SourcePosition]:
    """Return a finding's first position in each line that it has to do with."""
    positions = finding.positions or (SourcePosition(path.name, 1),)
    return {(each.file, each.line): each for each in reversed(positions)}.values()
