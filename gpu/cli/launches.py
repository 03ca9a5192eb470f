"""Summary of a program's launches after it ends: a table of the launches, and their findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpu.errors import InputError

if TYPE_CHECKING:
    from gpu.driver.journal import Journal, LaunchEntry
    from gpu.simulator.checkers.findings import Finding

_MOST_LINES = 60


def make_folder(folder: Path) -> None:
    """Create the folder for recordings."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot create the folder {folder}: {(error.strerror or str(error)).lower()}.") from None


def summary(journal: Journal) -> Iterator[str]:
    """Yield the lines of the summary of all launches."""
    entries = journal.entries
    count = f"{len(entries):,} launch{'' if len(entries) == 1 else 'es'}"
    spent = sum(entry.simulated_ms for entry in entries)
    head = f"lockstep: {count} on the simulator, {spent:,.0f} ms of this processor's time"
    findings_by_launch = _distinct_findings(entries)
    if not journal.checked and journal.traces is None:
        more = f"; {len(findings_by_launch)} ended with an error" if findings_by_launch else ""
        yield f"{head}{more}. --check looks for races and other errors, and counts the work of each launch."
    else:
        yield f"{head}; {len(findings_by_launch) or 'no'} finding{'' if len(findings_by_launch) == 1 else 's'}."
        yield from _table(entries)
    yield from _findings(journal, findings_by_launch)
    if journal.traces is not None:
        yield f"Recorded in {journal.traces}: open the files in the window."


def _findings(journal: Journal, findings_by_launch: Sequence[tuple[LaunchEntry, Finding]]) -> Iterator[str]:
    from gpu.cli.findings import finding_text
    from gpu.files.sources import Sources

    for number, (entry, finding) in enumerate(findings_by_launch[:_MOST_LINES], 1):
        yield ""
        yield f"{entry.kernel}, launched at {entry.place}:"
        yield finding_text(number, finding, Sources(Path("kernel.cu"), edited=journal.texts[entry.text]))
    if len(findings_by_launch) > _MOST_LINES:
        yield f"\nand {len(findings_by_launch) - _MOST_LINES:,} more, which --report contains"


def _distinct_findings(entries: Sequence[LaunchEntry]) -> list[tuple[LaunchEntry, Finding]]:
    """Return the distinct findings with their first launches; merge those of the same source text and lines."""
    first: dict[tuple[object, ...], tuple[LaunchEntry, Finding]] = {}
    for entry in entries:
        for finding in entry.findings:
            key = entry.kernel, entry.text, finding.kind, finding.positions
            first_entry, merged = first.get(key, (entry, replace(finding, count=0)))
            first[key] = first_entry, replace(merged, count=merged.count + finding.count)
    return list(first.values())


def _table(entries: Sequence[LaunchEntry]) -> Iterator[str]:
    """Yield a line per kernel, source position and launch shape."""
    alike: dict[tuple[object, ...], list[LaunchEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.kernel, entry.place, entry.grid, entry.block), []).append(entry)
    yield f"{'times':>6}  {'ms':>8}  {'sect/req':>8}  {'lanes':>5}  {'findings':>8}  kernel"
    for group in list(alike.values())[:_MOST_LINES]:
        entry = group[0]
        sectors, lanes = _figures(entry)
        findings = sum(len(each.findings) for each in group)
        shape = f"<<<{_extent(entry.grid)}, {_extent(entry.block)}>>>"
        yield (
            f"{len(group):>6}  {sum(each.simulated_ms for each in group):>8.1f}  {sectors:>8}  {lanes:>5}  "
            f"{findings or '':>8}  {entry.kernel} {shape} at {entry.place}"
        )
    if len(alike) > _MOST_LINES:
        yield f"and {len(alike) - _MOST_LINES:,} more, which --report contains"


def _figures(entry: LaunchEntry) -> tuple[str, str]:
    """Return the sectors per request to global memory and the active lanes per statement, as text."""
    from gpu.kernel.figures import line_figures

    figures = line_figures(entry.counts)
    return (
        "" if figures.sectors is None else f"{figures.sectors:.1f}",
        f"{figures.lanes:.1f}" if figures.statements else "",
    )


def _extent(extent: Sequence[int]) -> str:
    needed = max((place for place, each in enumerate(extent, 1) if each != 1), default=1)
    return str(extent[0]) if needed == 1 else f"({', '.join(map(str, extent[:needed]))})"


def as_json(journal: Journal, program: Sequence[str]) -> str:
    """Return all data about the launches as JSON."""
    from gpu.cli.findings import findings_data

    return json.dumps(
        {
            "program": list(program),
            "schedule": journal.schedule,
            "launches": [
                {
                    "kernel": entry.kernel,
                    "place": entry.place,
                    "grid": entry.grid,
                    "block": entry.block,
                    "shared_bytes": entry.shared_bytes,
                    "simulated_ms": round(entry.simulated_ms, 3),
                    "source": entry.text,
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
