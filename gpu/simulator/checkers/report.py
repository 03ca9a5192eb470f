"""Conversion of findings to editor diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gpu.base.errors import Diagnostic, SourcePosition
from gpu.base.findings import Finding
from gpu.base.thread_names import Extents, rename_threads
from gpu.simulator.frontend.editor_diagnostics import build_diagnostic


def build_diagnostics(
    findings: Sequence[Finding],
    text: str,
    path: Path,
    warnings: Sequence[Finding] = (),
    extents: Extents | None = None,
) -> tuple[Diagnostic, ...]:
    """Return one diagnostic for each line of each finding, sorted by position, with the window's names of threads.

    A finding without a position is placed in the first line.

    Parameters
    ----------
    findings : sequence of Finding
        Findings to show as errors.
    text : str
        The source text of the kernel file.
    path : Path
        The kernel file.
    warnings : sequence of Finding
        Findings to show as warnings: code that is only suspicious.
    extents : (sequence of int, sequence of int) or None
        The blocks and the threads of a block of the launch, in x, y and z; None if unknown.
    """
    lines = text.split("\n")
    entries = [
        (f"{finding.message} ({finding.count} times)" if finding.count > 1 else finding.message, position, severity)
        for severity, group in (("error", findings), ("warning", warnings))
        for finding in group
        for position in _distinct_lines(finding, path)
    ]
    diagnostics = {
        build_diagnostic(
            rename_threads(message, extents, names_single_block=extents is None), position, path, lines, severity
        )
        for message, position, severity in entries
    }
    return tuple(sorted(diagnostics, key=lambda each: (each.line, each.column, each.message)))


def _distinct_lines(finding: Finding, path: Path) -> Iterable[SourcePosition]:
    """Return the first position of a finding in each of its lines."""
    positions = finding.positions or (SourcePosition(path.name, 1),)
    return {position.line_key: position for position in reversed(positions)}.values()
