"""Report of the command `simulate`: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu.cli.findings import finding_text, findings_data
from gpu.files.sources import Sources
from gpu.kernel.figures import (
    ASKED,
    ATOMIC_CONFLICTS,
    CONFLICTS,
    MOVED,
    REQUESTS,
    SECTORS,
    SHARED_ATOMICS,
    SHARED_REQUESTS,
    line_figures,
    total_of,
)
from gpu.kernel.simulate import Counts, Simulation
from gpu.kernel.written import WrittenArray

_WIDTH = 100
# Most lines without counts that are shown between lines with counts.
_GAP = 4


def as_json(simulation: Simulation, trace_file: Path | None = None) -> str:
    """Return findings, warnings, counters and output as JSON; for a trace, its file and whether it is complete."""
    trace = simulation.trace
    return json.dumps(
        {
            "findings": findings_data(simulation.findings),
            "warnings": findings_data(simulation.warnings),
            "counters": {
                "total": simulation.counters.total,
                "per_line": [
                    {"file": file, "line": line, "counts": counts}
                    for (file, line), counts in simulation.counters.per_line.items()
                ],
            },
            "arrays": [
                {
                    "name": each.name,
                    "dtype": each.dtype,
                    "count": each.count,
                    "first": [_plain(value) for value in each.first],
                }
                for each in simulation.written
            ],
            "printf": [{"thread": line.thread, "text": line.text} for line in simulation.printed],
            **(
                {"trace": {"file": str(trace_file), "events": len(trace.events), "stopped": trace.stopped}}
                if trace is not None
                else {}
            ),
        },
        indent=2,
        allow_nan=False,
    )


def as_text(simulation: Simulation, sources: Sources, trace_file: Path | None = None) -> str:
    """Return findings and warnings with source lines, counters per line, totals, kernel output and saved files."""
    findings = simulation.findings
    head = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}" if findings else "No findings."
    sections = [head, *(finding_text(number, finding, sources) for number, finding in enumerate(findings, 1))]
    if warnings := simulation.warnings:
        sections.append(f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}: suspicious, but not an error")
        sections += [finding_text(number, warning, sources) for number, warning in enumerate(warnings, 1)]
    sections += list(_tables(simulation, sources))
    sections.append("\n".join(["Totals, counted", *_totals(simulation.counters.total)]))
    if simulation.written:
        sections.append("\n".join(["Written by the kernel", *map(_array_text, simulation.written)]))
    if simulation.printed:
        sections.append("Printed by the kernel\n" + "".join(line.text for line in simulation.printed).rstrip("\n"))
    if simulation.trace is not None:
        saved = f"Recorded {len(simulation.trace.events):,} events in {trace_file}."
        sections.append(f"{saved} {simulation.trace.stopped}".rstrip())
    return "\n\n".join(sections)


def _plain(value: Any) -> Any:
    """Return a value as JSON data, with NaN and infinities as strings: JSON cannot represent them as numbers."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _array_text(array: WrittenArray) -> str:
    head = f"  {array.name}, {array.count} of {array.dtype}: "
    words = ["-" if value is None else _number_text(value) for value in array.first]
    while len(head) + len(" ".join(words)) + 4 > _WIDTH and len(words) > 1:
        words.pop()
    more = " ..." if len(words) < array.count else ""
    return f"{head}{' '.join(words)}{more}"[:_WIDTH]


def _number_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_number_text, value))})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _tables(simulation: Simulation, sources: Sources) -> Iterator[str]:
    by_file: dict[str, dict[int, Counts]] = {}
    for (file, line), counts in simulation.counters.per_line.items():
        by_file.setdefault(file, {})[line] = counts
    for file, counts_by_line in by_file.items():
        yield _table(file, counts_by_line, sources)


def _table(file: str, counts_by_line: Mapping[int, Counts], sources: Sources) -> str:
    header = f"{'line':>5} {'warp stmts':>11} {'lanes':>6} {'sect/req':>9} {'conflicts':>10}  "
    rows = [
        f"Counters of {file}, line by line",
        "  (lanes: active lanes of 32; sect/req: 32-byte sectors per request to global memory; conflicts:",
        "  bank conflicts in shared memory)",
        header + "source",
    ]
    numbers = sorted(counts_by_line)
    texts = {number: sources.line(file, number) for number in range(numbers[0], numbers[-1] + 1)}
    margin = min((_indent(text) for text in texts.values() if text and text[0] != "#"), default=0)
    shown = {number: text[min(margin, _indent(text)) :] for number, text in texts.items()}
    previous = numbers[0]
    for number in numbers:
        if number - previous - 1 > _GAP:
            rows.append(f"{'...':>5}")
        else:
            rows += [
                f"{between:>5}{'':{len(header) - 5}}{shown[between]}"[:_WIDTH].rstrip()
                for between in range(previous + 1, number)
            ]
        rows.append((_row(number, counts_by_line[number]) + shown[number])[:_WIDTH].rstrip())
        previous = number
    return "\n".join(rows)


def _row(number: int, counts: Counts) -> str:
    """Return the cells of a line's counts, empty where a count does not apply."""
    figures = line_figures(counts)
    cells = (
        f"{figures.statements}" if figures.statements else "",
        f"{figures.lanes:.1f}" if figures.statements else "",
        "" if figures.sectors is None else f"{figures.sectors:.1f}",
        "" if figures.conflicts is None else f"{figures.conflicts}",
    )
    return f"{number:>5} {cells[0]:>11} {cells[1]:>6} {cells[2]:>9} {cells[3]:>10}  "


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _totals(total: Counts) -> Iterator[str]:
    def line(name: str, text: str) -> str:
        return f"  {name:<22}{text}"

    def whole(name: str) -> str:
        return f"{int(total.get(name, 0)):,}"

    yield line("warp statements", f"{whole('warp_statements')}, {whole('lane_statements')} lane statements")
    if lanes := total.get("lanes_per_warp_statement"):
        yield line("active lanes", f"{lanes:.1f} of 32 on average")
    if total.get("branches"):
        yield line("branches", f"{whole('branches')}, {whole('divergent_branches')} of them divergent")
    if total.get("operations"):
        yield line("operations", whole("operations"))
    if requests := total_of(total, REQUESTS):
        sectors, moved, requested = (total_of(total, names) for names in (SECTORS, MOVED, ASKED))
        yield line("global memory", f"{requests:,} requests, {sectors / requests:.1f} sectors each")
        yield line("", f"{moved:,} bytes moved for {requested:,} requested")
    if shared := total_of(total, (*SHARED_REQUESTS, SHARED_ATOMICS)):
        conflicts = total_of(total, (*CONFLICTS, ATOMIC_CONFLICTS))
        worst = f", at worst {whole('worst_bank_conflict')} words of one bank" if conflicts else ""
        yield line("shared memory", f"{shared:,} requests, {conflicts:,} bank conflicts{worst}")
    for space in ("global", "shared"):
        if total.get(f"atomic_queues_{space}"):
            hottest, queue = whole(f"hottest_atomics_{space}"), whole(f"longest_atomic_queue_{space}")
            yield line(f"{space} atomics", f"{hottest} on the busiest address, at most {queue} by one warp at once")
    if total.get("block_barriers"):
        yield line("barriers", f"{whole('block_barriers')} by blocks")
