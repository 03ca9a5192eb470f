"""Findings as JSON data and as text with their source lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.files.sources import SourceLines

_WIDTH = 100
# Most characters shown of a source line, around the position of the finding.
_EXCERPT_WIDTH = 160


def findings_data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON data."""
    return [
        {
            "kind": finding.kind,
            "message": finding.message,
            "lines": [position.line for position in finding.positions],
            "files": [position.file for position in finding.positions],
            "threads": list(finding.threads),
            "count": finding.count,
        }
        for finding in findings
    ]


def format_finding(number: int, finding: Finding, sources: SourceLines) -> str:
    """Return a finding as text with its source lines."""
    times = f", {finding.count} times" if finding.count > 1 else ""
    lines = textwrap.wrap(
        f"{number}. {finding.kind}{times}: {finding.message}",
        _WIDTH,
        subsequent_indent="   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for index, position in enumerate(finding.positions):
        thread = finding.threads[index] if index < len(finding.threads) else ""
        lines.append(f"  {position}" + (f"  {thread}" if thread else ""))
        if position not in finding.positions[index + 1 :] and (shown := format_excerpt(sources, position)):
            lines.append(shown)
    if not finding.positions:
        lines += [f"  {thread}" for thread in finding.threads]
    return "\n".join(lines)


def format_excerpt(sources: SourceLines, position: SourcePosition) -> str:
    """Return a source line with a caret below it; "" if the line is not available."""
    text, caret = sources.line(position.file, position.line), sources.caret(position)
    if len(text) > _EXCERPT_WIDTH:
        first = max(0, len(caret) - _EXCERPT_WIDTH // 2)
        text, caret = text[first : first + _EXCERPT_WIDTH], caret[first:]
    return "\n".join(f"    {line}" for line in (text, caret) if line) if text else ""
