"""What is said of a program's launches when it has ended: a table of them, and what they did wrong."""

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
    """Make the folder that recordings go to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made: {(error.strerror or str(error)).lower()}.") from None


def summary(journal: Journal) -> Iterator[str]:
    """Yield the lines that are said of all launches when the program has ended."""
    entries = journal.entries
    count = f"{len(entries):,} launch{'' if len(entries) == 1 else 'es'}"
    spent = sum(entry.simulated_ms for entry in entries)
    head = f"lockstep: {count} on the simulator, {spent:,.0f} ms of this processor's time"
    found = _told_once(entries)
    if not journal.checked and journal.traces is None:
        more = f"; {len(found)} ended by a mistake" if found else ""
        yield f"{head}{more}. --check looks for races and other mistakes, and counts what each launch costs."
    else:
        yield f"{head}; {len(found) or 'no'} finding{'' if len(found) == 1 else 's'}."
        yield from _table(entries)
    yield from _findings(journal, found)
    if journal.traces is not None:
        yield f"Recorded in {journal.traces}: each file opens in the window."


def _findings(journal: Journal, found: Sequence[tuple[LaunchEntry, Finding]]) -> Iterator[str]:
    from gpu.cli.findings import finding_text
    from gpu.files.sources import Sources

    for number, (entry, finding) in enumerate(found[:_MOST_LINES], 1):
        yield ""
        yield f"{entry.kernel}, launched at {entry.place}:"
        yield finding_text(number, finding, Sources(Path("kernel.cu"), edited=journal.texts[entry.text]))
    if len(found) > _MOST_LINES:
        yield f"\nand {len(found) - _MOST_LINES:,} more, which --report holds"


def _told_once(entries: Sequence[LaunchEntry]) -> list[tuple[LaunchEntry, Finding]]:
    """Return the findings, those of the same lines in launches of one text put together, with the first launch."""
    first: dict[tuple[object, ...], tuple[LaunchEntry, Finding]] = {}
    for entry in entries:
        for finding in entry.findings:
            key = entry.kernel, entry.text, finding.kind, finding.positions
            known, before = first.get(key, (entry, replace(finding, count=0)))
            first[key] = known, replace(before, count=before.count + finding.count)
    return list(first.values())


def _table(entries: Sequence[LaunchEntry]) -> Iterator[str]:
    """Yield a line for each kernel, place and shape."""
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
        yield f"and {len(alike) - _MOST_LINES:,} more, which --report holds"


def _figures(entry: LaunchEntry) -> tuple[str, str]:
    """Return the sectors of a request to global memory, and the active lanes of a statement."""
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
    """Return all that is known of the launches."""
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
