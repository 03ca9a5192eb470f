"""Output of the commands: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpu.base.devices.survey import DeviceStatus
from gpu.declaration.pattern import Array, Choice, Integer, Matrix, Parameter, Pattern, Real, Variant
from gpu.declaration.text_parameters import BinEdges, Text, format_edges
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.engines.cuda import libraries
from gpu.messages.run_counts import RunCounts, format_figure, list_figures
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.messages.runs.pattern_runs import Report
from gpu.messages.runs.timing import Timing
from gpu.messages.verdicts import Verdict

_NAME_WIDTH = 12
_PRINTED_ELEMENTS = 10
_MAX_DEFAULT_CHARACTERS = 30


def format_json(data: Mapping[str, Any]) -> str:
    """Return data as indented JSON text."""
    return json.dumps(data, indent=2, allow_nan=False)


def report_data(report: Report, counts: RunCounts | None) -> dict[str, Any]:
    """Return a run's figures as JSON data; null for infinite or missing values.

    "counted" is present for a simulated run, "timing" for a measured one.
    """
    deviation = report.deviation
    return {
        "pattern": report.pattern,
        "engine": report.engine,
        "executor": report.executor,
        "fallback": report.fallback,
        "device": report.device,
        "variant": report.variant,
        "time_ms": {phase: getattr(report.time_ms, phase) for phase in ("upload", "kernel", "download")},
        "throughput": asdict(report.throughput),
        "error": {
            "max_abs": _finite_or_none(deviation.max_abs if deviation else None),
            "max_rel": _finite_or_none(deviation.max_rel if deviation else None),
        },
        "verified": report.verified,
        **({"counted": counts.data()} if counts is not None else {}),
        **({"timing": report.timing.data()} if report.timing is not None else {}),
    }


def format_report(
    report: Report,
    counts: RunCounts | None,
    verdict: Verdict,
    pattern: Pattern,
    input_description: str,
    result_rows: Sequence[tuple[str, str]] = (),
    distributed: DistributedRun | None = None,
) -> str:
    """Return a run's figures as text, with their units and origin.

    Parameters
    ----------
    counts : RunCounts or None
        The simulator's counts; None for a run on a GPU.
    result_rows : sequence of (str, str)
        Rows about the result, which follow the figures.
    distributed : DistributedRun or None
        A run on a cluster; the times of its phases are those of the busiest worker.
    """
    variant = pattern.variant(report.variant)
    times = report.time_ms
    clock = SIMULATION_TIME_LABEL if report.simulated else "measured by device events"
    rows = [
        ("engine", f"{report.engine} ({report.executor}{f': {report.fallback}' if report.fallback else ''})"),
        ("device", report.device),
        *format_cluster_rows(distributed),
        ("variant", f"{variant.name}: {variant.title}"),
        ("input", input_description),
        *_format_count_rows(counts),
        ("upload", f"{_format_figure(times.upload)} ms  {clock}"),
        ("kernel", f"{_format_figure(times.kernel)} ms  {clock}"),
        ("download", f"{_format_figure(times.download)} ms  {clock}"),
        (
            "simulated" if report.simulated else "throughput",
            f"{_format_figure(report.throughput.value)} {report.throughput.unit}  {clock}, kernel time alone",
        ),
        *_format_timing_rows(report.timing),
    ]
    if deviation := report.deviation:
        errors = f"at most {deviation.max_abs:.3g}, relative to the largest value {deviation.max_rel:.3g}"
        rows.append(("error", f"{errors}  against a reference result computed on the CPU"))
    rows.append(("verified", format_verdict(verdict)))
    return f"{pattern.title}\n{format_rows([*rows, *result_rows])}"


def format_result_rows(result: Array, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the row of a result's values, of which only the first few may be shown.

    Parameters
    ----------
    result : array of shape (n,)
    names : sequence of str
        Names of the values; empty if they have only positions.
    """
    if names:
        named_values = [f"{name} {_format_exact(value)}" for name, value in zip(names, result.tolist(), strict=True)]
        return [("result", "   ".join(named_values))]
    more = f" ... ({result.size} in all)" if result.size > _PRINTED_ELEMENTS else ""
    return [("result", " ".join(map(_format_exact, result[:_PRINTED_ELEMENTS].tolist())) + more)]


def format_cluster_rows(run: DistributedRun | None) -> list[tuple[str, str]]:
    """Return the rows that describe a run on a cluster."""
    if run is None:
        return []
    busy = f"{run.mean_busy_workers:.1f} of {run.concurrent_workers} busy on average"
    rows = [
        ("workers", f"{busy}, {len(run.tasks)} Dask tasks in {run.wall_s:.3g} s  phases of the busiest worker"),
        ("exchanged", f"{run.exchanged_bytes} bytes between workers, {run.gathered_bytes} gathered here"),
    ]
    return rows + [
        ("lost", f"worker {lost_worker.address}; {lost_worker.again} Dask tasks were repeated")
        for lost_worker in run.lost_workers
    ]


def _format_timing_rows(timing: Timing | None) -> list[tuple[str, str]]:
    """Return how a run on a GPU was timed, and a larger size to use if the time is too short."""
    if timing is None:
        return []
    spread = f"{_format_figure(timing.minimum)} to {_format_figure(timing.maximum)} ms"
    rows = [("timed", f"median of {timing.repetitions} warm runs, {spread}" if timing.repetitions > 1 else "once")]
    if timing.gaps:
        rows.append(
            ("gaps", f"{_format_figure(timing.gaps)} ms between its {timing.launches} launches, not counted above")
        )
    if timing.sentence:
        rows.append(("note", timing.sentence))
    if timing.recommended_size:
        image = f"an image of {timing.recommended_size} x {timing.recommended_size} pixels"
        size = f"--{timing.size_parameter} {timing.recommended_size}" if timing.size_parameter else image
        rows.append(("try", f"{size}, to compare variants"))
    return rows


def _format_count_rows(counts: RunCounts | None) -> list[tuple[str, str]]:
    if counts is None:
        return []
    moved, least = (format_figure(counts.per_element(amount)) for amount in (counts.moved_bytes, counts.least_bytes))
    rows = [("moved", f"{moved} bytes {counts.per_element_unit}; minimum traffic {least}  counted with {counts.input}")]
    return rows + [(figure.name, figure.text) for figure in list_figures(counts)]


def format_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of names and texts as indented lines."""
    return "\n".join(f"  {name:<{_NAME_WIDTH}}{text}" for name, text in rows)


def format_patterns_json(patterns: Iterable[Pattern], n: int | None = None) -> str:
    """Return the declarations as JSON: names, titles, variants, parameters and, for n, textbook figures."""
    return json.dumps([_pattern_data(pattern, n) for pattern in patterns], indent=2)


def format_patterns_text(patterns: Iterable[Pattern], n: int | None = None) -> str:
    """Return the declarations as an indented list, with textbook figures for n elements."""
    return "\n\n".join("\n".join(_pattern_lines(pattern, n)) for pattern in patterns)


def format_devices_json(devices: Sequence[DeviceStatus]) -> str:
    """Return the devices as JSON."""
    return json.dumps([asdict(device) for device in devices], indent=2)


def format_devices_text(devices: Sequence[DeviceStatus]) -> str:
    """Return the devices as text, one per line, each with why it is unavailable and what to do."""
    lines = []
    for device in devices:
        lines.append(f"{device.engine:<{_NAME_WIDTH}}{device.name}: {'usable' if device.usable else 'not usable'}")
        lines += [f"{'':<{_NAME_WIDTH}}{text}" for text in (device.reason, device.remedy) if text]
    return "\n".join(lines)


def _pattern_data(pattern: Pattern, n: int | None) -> dict[str, Any]:
    return {
        "name": pattern.name,
        "title": pattern.title,
        "summary": pattern.summary,
        "default_variant": pattern.default_variant,
        "variants": [
            {key: getattr(variant, key) for key in ("name", "title", "idea", "limit", "library")}
            | {"cautionary": variant.deliberate_error}
            | ({} if n is None else {"textbook": _textbook_data(pattern, variant, n)})
            for variant in pattern.variants
        ],
        "parameters": [_parameter_data(parameter) for parameter in pattern.parameters],
    }


def _parameter_data(parameter: Parameter) -> dict[str, Any]:
    data: dict[str, Any] = {"name": parameter.name, "label": parameter.label, "help": parameter.help}
    match parameter:
        case Choice():
            data |= {"kind": "choice", "options": parameter.options, "default": parameter.default}
        case Integer():
            data |= {key: getattr(parameter, key) for key in ("default", "minimum", "maximum", "step")}
            data |= {"kind": "integer", "unit": parameter.unit}
        case Real():
            data |= {key: getattr(parameter, key) for key in ("default", "minimum", "maximum")}
            data |= {"kind": "real", "unit": parameter.unit}
        case Text():
            data |= {"kind": "text", "default": parameter.default, "maximum": parameter.maximum}
        case BinEdges():
            data |= {"kind": "edges", "default": parameter.default, "maximum": parameter.maximum}
        case Matrix():
            data |= {"kind": "matrix", "default": parameter.default, "maximum": parameter.maximum}
    if parameter.only_if:
        data["only_if"] = {"parameter": parameter.only_if[0], "options": parameter.only_if[1]}
    return data


def _textbook_data(pattern: Pattern, variant: Variant, n: int) -> dict[str, Any] | None:
    """Return textbook figures for n elements and default parameters; None without any."""
    book = pattern.textbook_of(variant, pattern.check({}), n)
    return None if book is None else asdict(book) | {"average": book.average_parallelism}


def _textbook_text(pattern: Pattern, variant: Variant, n: int) -> str:
    book = pattern.textbook_of(variant, pattern.check({}), n)
    if book is None:
        return "textbook: no figures"
    if book.average_parallelism is None:
        return f"textbook: {book.operations} operations"
    average = (
        f"{book.average_parallelism:.1f}" if book.average_parallelism < 1000 else str(round(book.average_parallelism))
    )
    return f"textbook: {book.operations} operations in {book.steps} steps, parallelism {average}, peak {book.peak}"


def _pattern_lines(pattern: Pattern, n: int | None) -> list[str]:
    width = 2 + max(
        *(len(variant.name) for variant in pattern.variants),
        *(len(parameter.name) + 2 for parameter in pattern.parameters),
    )
    lines = [f"{pattern.name}: {pattern.summary}"]
    for variant in pattern.variants:
        default = " (default)" if variant.name == pattern.default_variant else ""
        lines.append(f"  {variant.name:<{width}}{variant.title}{default}{_library_text(variant)}")
        if n is not None and not variant.library:
            lines.append(f"  {'':<{width}}{_textbook_text(pattern, variant, n)}")
    lines += [f"  {'--' + parameter.name:<{width}}{_parameter_text(parameter)}" for parameter in pattern.parameters]
    return lines


def _library_text(variant: Variant) -> str:
    """Return where a library variant runs and, if known, why it cannot run here."""
    if not variant.library:
        return ""
    return f"; NVIDIA GPU only. {libraries.explain_missing_library()}".rstrip()


def _parameter_text(parameter: Parameter) -> str:
    match parameter:
        case Choice():
            return f"{', '.join(parameter.options)} (default {parameter.default})"
        case Integer():
            steps = f" in steps of {parameter.step}" if parameter.step > 1 else ""
            more = ", more on a GPU" if parameter.on_gpu is not None else ""
            return f"{parameter.minimum} to {parameter.maximum}{steps} (default {parameter.default}{more})"
        case Real():
            return f"{parameter.minimum:g} to {parameter.maximum:g} (default {parameter.default:g})"
        case Text():
            excerpt = parameter.default[:_MAX_DEFAULT_CHARACTERS]
            return f"a text of up to {parameter.maximum} characters (default: {excerpt}...)"
        case BinEdges():
            return f"increasing numbers, up to {parameter.maximum} (default {format_edges(parameter.default)})"
        case Matrix():
            return f"a .npy or .csv file, up to {parameter.maximum} x {parameter.maximum}"
    return parameter.help


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict in one line."""
    match verdict.kind:
        case "verified":
            return "yes"
        case "pending":
            return "not compared"
        case "lesson":
            return f"no; this variant is wrong by design: {verdict.sentence}"
        case "lucky":
            return f"correct this time, but wrong by design: {verdict.sentence}"
        case "flawed":
            return f"NO: {verdict.words}"
        case "wrong":
            return f"NO: {verdict.words.removeprefix('✗ ').removeprefix('wrong: ')}"
    return verdict.words


def _format_figure(value: float) -> str:
    """Return a number with about three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f}"


def _format_exact(value: float) -> str:
    """Return a whole number, or a float32 with enough digits to identify it."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
