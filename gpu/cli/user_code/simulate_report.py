"""Report of the command `simulate`: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu.cli.findings import findings_data, format_finding
from gpu.files.sources import SourceLines
from gpu.kernel.figures import (
    ATOMIC_CONFLICTS,
    CONFLICTS,
    MOVED_BYTES,
    REQUESTED_BYTES,
    REQUESTS,
    SECTORS,
    SHARED_ATOMICS,
    SHARED_REQUESTS,
    compute_line_figures,
    sum_counters,
)
from gpu.kernel.simulate import Counts, Simulation
from gpu.kernel.written_arrays import WrittenArray

_WIDTH = 100
# Most lines without counts that are shown between lines with counts.
_MAX_GAP = 4


def format_json(simulation: Simulation, trace_file: Path | None = None) -> str:
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
                    "name": written_array.name,
                    "dtype": written_array.dtype,
                    "count": written_array.count,
                    "first": [_to_json_value(value) for value in written_array.first_elements],
                }
                for written_array in simulation.written_arrays
            ],
            "printf": [{"thread": line.thread, "text": line.text} for line in simulation.printed],
            **(
                {"trace": {"file": str(trace_file), "events": len(trace.events), "stopped": trace.stop_reason}}
                if trace is not None
                else {}
            ),
        },
        indent=2,
        allow_nan=False,
    )


def format_text(simulation: Simulation, sources: SourceLines, trace_file: Path | None = None) -> str:
    """Return findings and warnings with source lines, counters per line, totals, kernel output and saved files."""
    findings = simulation.findings
    head = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}" if findings else "No findings."
    sections = [head, *(format_finding(number, finding, sources) for number, finding in enumerate(findings, 1))]
    if warnings := simulation.warnings:
        sections.append(f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}: suspicious, but not an error")
        sections += [format_finding(number, warning, sources) for number, warning in enumerate(warnings, 1)]
    sections += list(_format_tables(simulation, sources))
    sections.append("\n".join(["Totals, counted", *_format_totals(simulation.counters.total)]))
    if simulation.written_arrays:
        sections.append("\n".join(["Written by the kernel", *map(_format_array, simulation.written_arrays)]))
    if simulation.printed:
        sections.append("Printed by the kernel\n" + "".join(line.text for line in simulation.printed).rstrip("\n"))
    if simulation.trace is not None:
        saved = f"Recorded {len(simulation.trace.events):,} events in {trace_file}."
        sections.append(f"{saved} {simulation.trace.stop_reason}".rstrip())
    return "\n\n".join(sections)


def _to_json_value(value: Any) -> Any:
    """Return a value as JSON data, with NaN and infinities as strings: JSON cannot represent them as numbers."""
    if isinstance(value, list | tuple):
        return [_to_json_value(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _format_array(array: WrittenArray) -> str:
    head = f"  {array.name}, {array.count} of {array.dtype}: "
    words = ["-" if value is None else _format_number(value) for value in array.first_elements]
    while len(head) + len(" ".join(words)) + 4 > _WIDTH and len(words) > 1:
        words.pop()
    more = " ..." if len(words) < array.count else ""
    return f"{head}{' '.join(words)}{more}"[:_WIDTH]


def _format_number(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_format_number, value))})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _format_tables(simulation: Simulation, sources: SourceLines) -> Iterator[str]:
    by_file: dict[str, dict[int, Counts]] = {}
    for (file, line), counts in simulation.counters.per_line.items():
        by_file.setdefault(file, {})[line] = counts
    for file, counts_by_line in by_file.items():
        yield _format_table(file, counts_by_line, sources)


def _format_table(file: str, counts_by_line: Mapping[int, Counts], sources: SourceLines) -> str:
    header = f"{'line':>5} {'warp stmts':>11} {'lanes':>6} {'sect/req':>9} {'conflicts':>10}  "
    rows = [
        f"Counters of {file}, line by line",
        "  (lanes: active lanes of 32; sect/req: 32-byte sectors per request to global memory; conflicts:",
        "  bank conflicts in shared memory)",
        header + "source",
    ]
    numbers = sorted(counts_by_line)
    texts = {number: sources.line(file, number) for number in range(numbers[0], numbers[-1] + 1)}
    margin = min((_indent_width(text) for text in texts.values() if text and text[0] != "#"), default=0)
    shown = {number: text[min(margin, _indent_width(text)) :] for number, text in texts.items()}
    previous = numbers[0]
    for number in numbers:
        if number - previous - 1 > _MAX_GAP:
            rows.append(f"{'...':>5}")
        else:
            rows += [
                f"{between:>5}{'':{len(header) - 5}}{shown[between]}"[:_WIDTH].rstrip()
                for between in range(previous + 1, number)
            ]
        rows.append((_format_row(number, counts_by_line[number]) + shown[number])[:_WIDTH].rstrip())
        previous = number
    return "\n".join(rows)


def _format_row(number: int, counts: Counts) -> str:
    """Return the cells of a line's counts, empty where a count does not apply."""
    figures = compute_line_figures(counts)
    cells = (
        f"{figures.statements}" if figures.statements else "",
        f"{figures.lanes:.1f}" if figures.statements else "",
        "" if figures.sectors is None else f"{figures.sectors:.1f}",
        "" if figures.conflicts is None else f"{figures.conflicts}",
    )
    return f"{number:>5} {cells[0]:>11} {cells[1]:>6} {cells[2]:>9} {cells[3]:>10}  "


def _indent_width(text: str) -> int:
    return len(text) - len(text.lstrip())


def _format_totals(total: Counts) -> Iterator[str]:
    def format_line(name: str, text: str) -> str:
        return f"  {name:<22}{text}"

    def format_count(name: str) -> str:
        return f"{int(total.get(name, 0)):,}"

    yield format_line(
        "warp statements", f"{format_count('warp_statements')}, {format_count('lane_statements')} lane statements"
    )
    if lanes := total.get("lanes_per_warp_statement"):
        yield format_line("active lanes", f"{lanes:.1f} of 32 on average")
    if total.get("branches"):
        yield format_line(
            "branches", f"{format_count('branches')}, {format_count('divergent_branches')} of them divergent"
        )
    if total.get("operations"):
        yield format_line("operations", format_count("operations"))
    if requests := sum_counters(total, REQUESTS):
        sectors, moved, requested = (sum_counters(total, names) for names in (SECTORS, MOVED_BYTES, REQUESTED_BYTES))
        yield format_line("global memory", f"{requests:,} requests, {sectors / requests:.1f} sectors each")
        yield format_line("", f"{moved:,} bytes moved for {requested:,} requested")
    if shared := sum_counters(total, (*SHARED_REQUESTS, SHARED_ATOMICS)):
        conflicts = sum_counters(total, (*CONFLICTS, ATOMIC_CONFLICTS))
        worst = f", at worst {format_count('worst_bank_conflict')} words of one bank" if conflicts else ""
        yield format_line("shared memory", f"{shared:,} requests, {conflicts:,} bank conflicts{worst}")
    for space in ("global", "shared"):
        if total.get(f"atomic_queues_{space}"):
            hottest, queue = format_count(f"hottest_atomics_{space}"), format_count(f"longest_atomic_queue_{space}")
            yield format_line(
                f"{space} atomics", f"{hottest} on the busiest address, at most {queue} by one warp at once"
            )
    if total.get("block_barriers"):
        yield format_line("barriers", f"{format_count('block_barriers')} by blocks")
