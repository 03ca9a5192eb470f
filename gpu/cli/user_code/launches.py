"""Summary of a program's launches after it ends: a table of the launches, and their findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpu.base.errors import InputError

if TYPE_CHECKING:
    from gpu.base.findings import Finding
    from gpu.hosts.driver.journal import Journal, LaunchEntry

_MAX_LINES = 60


def make_folder(folder: Path) -> None:
    """Create the folder for recordings."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot create the folder {folder}: {(error.strerror or str(error)).lower()}.") from None


def format_summary(journal: Journal) -> Iterator[str]:
    """Yield the lines of the summary of all launches."""
    entries = journal.entries
    count = f"{len(entries):,} launch{'' if len(entries) == 1 else 'es'}"
    spent = sum(entry.simulated_ms for entry in entries)
    head = f"lockstep: {count} on the simulator, {spent:,.0f} ms of this processor's time"
    findings_by_launch = find_distinct_findings(entries)
    if not journal.checked and journal.trace_folder is None:
        more = f"; {len(findings_by_launch)} ended with an error" if findings_by_launch else ""
        yield f"{head}{more}. --check looks for races and other errors, and counts the work of each launch."
    else:
        yield f"{head}; {len(findings_by_launch) or 'no'} finding{'' if len(findings_by_launch) == 1 else 's'}."
        yield from _format_table(entries)
    yield from format_findings(journal, findings_by_launch)
    if journal.trace_folder is not None:
        yield f"Recorded in {journal.trace_folder}: open the files in the window."


def format_findings(journal: Journal, findings_by_launch: Sequence[tuple[LaunchEntry, Finding]]) -> Iterator[str]:
    """Yield the lines of findings with their kernels and source lines, up to a limit."""
    from gpu.cli.findings import format_finding
    from gpu.files.sources import SourceLines

    for number, (entry, finding) in enumerate(findings_by_launch[:_MAX_LINES], 1):
        yield ""
        yield f"{entry.kernel}, launched at {entry.call_site}:"
        yield format_finding(number, finding, SourceLines(Path("kernel.cu"), edited=journal.texts[entry.text_index]))
    if len(findings_by_launch) > _MAX_LINES:
        yield f"\nand {len(findings_by_launch) - _MAX_LINES:,} more, which --report contains"


def find_distinct_findings(entries: Sequence[LaunchEntry]) -> list[tuple[LaunchEntry, Finding]]:
    """Return each distinct finding with its first launch; findings with equal source text and lines are merged."""
    first: dict[tuple[object, ...], tuple[LaunchEntry, Finding]] = {}
    for entry in entries:
        for finding in entry.findings:
            key = entry.kernel, entry.text_index, finding.kind, finding.positions
            first_entry, merged = first.get(key, (entry, replace(finding, count=0)))
            first[key] = first_entry, replace(merged, count=merged.count + finding.count)
    return list(first.values())


def _format_table(entries: Sequence[LaunchEntry]) -> Iterator[str]:
    """Yield a line per kernel, source position and launch shape."""
    alike: dict[tuple[object, ...], list[LaunchEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.kernel, entry.call_site, entry.grid, entry.block), []).append(entry)
    yield f"{'times':>6}  {'CPU ms':>8}  {'sect/req':>8}  {'lanes':>5}  {'findings':>8}  kernel"
    for group in list(alike.values())[:_MAX_LINES]:
        entry = group[0]
        sectors, lanes = _format_figures(entry)
        findings = sum(len(each.findings) for each in group)
        shape = f"<<<{_format_extent(entry.grid)}, {_format_extent(entry.block)}>>>"
        yield (
            f"{len(group):>6}  {sum(each.simulated_ms for each in group):>8.1f}  {sectors:>8}  {lanes:>5}  "
            f"{findings or '':>8}  {entry.kernel} {shape} at {entry.call_site}"
        )
    if len(alike) > _MAX_LINES:
        yield f"and {len(alike) - _MAX_LINES:,} more, which --report contains"


def _format_figures(entry: LaunchEntry) -> tuple[str, str]:
    """Return the sectors per request to global memory and the active lanes per statement, as text."""
    from gpu.kernel.figures import compute_line_figures

    figures = compute_line_figures(entry.counts)
    return (
        "" if figures.sectors is None else f"{figures.sectors:.1f}",
        f"{figures.lanes:.1f}" if figures.statements else "",
    )


def _format_extent(extent: Sequence[int]) -> str:
    needed = max((index for index, each in enumerate(extent, 1) if each != 1), default=1)
    return str(extent[0]) if needed == 1 else f"({', '.join(map(str, extent[:needed]))})"


def format_json(journal: Journal, program: Sequence[str]) -> str:
    """Return all data about the launches as JSON."""
    from gpu.cli.findings import findings_data

    return json.dumps(
        {
            "program": list(program),
            "schedule": journal.schedule,
            "launches": [
                {
                    "kernel": entry.kernel,
                    "place": entry.call_site,
                    "grid": entry.grid,
                    "block": entry.block,
                    "shared_bytes": entry.shared_bytes,
                    "simulated_ms": round(entry.simulated_ms, 3),
                    "source": entry.text_index,
                    "findings": findings_data(entry.findings),
                    "counters": entry.counts,
                    **({"trace": str(entry.trace)} if entry.trace is not None else {}),
                }
                for entry in journal.entries
            ],
            "sources": journal.texts,
        },
        indent=2,
        allow_nan=False,
    )
