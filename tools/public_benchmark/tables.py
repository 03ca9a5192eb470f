"""The page of the comparison, a section for each GPU: errors of both halves, every miss, and what was not modeled."""

from __future__ import annotations

import datetime
import math
import re
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tools.public_benchmark.explanations import EXPLANATIONS
from tools.public_benchmark.measurements import Measurement
from tools.public_benchmark.mechanisms import find_mechanism, find_resource
from tools.public_benchmark.profile import format_kernel_name, is_tuned
from tools.public_benchmark.runs import ComparedLaunch

_OPERATIONS_TOLERANCE, _DRAM_TOLERANCE, _MISS = 0.01, 0.15, 1.5
_LETTERS = 100
_SECTION = re.compile(r"^## ", re.MULTILINE)
_FOLDERS = re.compile(r"/\S*/src/")
"""The folders of a program's path, which differ by machine."""


_INTRODUCTION = """\
# Timing model on public programs

`python -m tools.public_benchmark` writes a section of this page. It compares the timing model with measured times of
[HeCBench](https://github.com/zjin-lcf/HeCBench)'s programs. Each program runs on the simulator with the measured
arguments, without nvcc. The timing model predicts the first launch of each measured kernel, grid and block. Long
launches do not run, so that later ones may read memory that was not written. The hash of a program's name assigns it
to a half: the model was improved with the half *looked at*, and not with the other half. That one showed eight
defects. Up to state 484804a1, what is only computed to be printed was not modeled (`gemv`). Explaining misses showed
the others. Up to state 42bddbf7 pointers in structures led to zeros (`bonds`), vector accesses to local memory counted
one word (`colorwheel`), local arrays were cleared byte by byte (`popcount`), and stored addresses differed from modeled
ones (`memtest`); up to c606c690 warps exchanged values in the order of their numbers (`atomicCAS`), and atomic sums of
words that L2 holds took too long (`asmooth`, `sheath`), which measurements on an H200 mended; up to 78812378 programs
that clang built copied tables of constants to each thread (`popcount`), as nvcc's do. Archives with input data have to
be unpacked first, as the programs' makefiles do, and HeCBench's `src/data` be copied beside the programs.
"""


def write_section(page: Path, title: str, body: str) -> None:
    """Write a GPU's section, and keep the page's other sections."""
    text = page.read_text("utf-8") if page.is_file() else ""
    sections = {part.partition("\n")[0]: part.partition("\n")[2].strip("\n") for part in _SECTION.split(text)[1:]}
    sections[title] = body.strip("\n")
    parts = (f"\n## {name}\n\n{content}\n" for name, content in sections.items())
    page.write_text("".join((_INTRODUCTION, *parts)), "utf-8")


def format_section(
    programs: Mapping[str, Sequence[ComparedLaunch]], program_count: int, measurement: Measurement
) -> str:
    """Return the text of a GPU's section.

    Parameters
    ----------
    programs : mapping of str to sequence of ComparedLaunch
        The launches of the programs that were run, by the program's name.
    program_count : int
        The number of programs with measurements.
    """
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [f"Date: {day}. Programs compared: {len(programs)} of {program_count}, by ascending measured time.", ""]
    lines += [measurement.note, "", *_format_revisions(programs), ""]
    halves = {
        title: [launch for name, each in programs.items() if is_tuned(name) == tuned for launch in each]
        for title, tuned in (("looked at", True), ("not looked at", False))
    }
    lines += [
        "| half | programs | launches | modeled | MAPE | median error | bias | within 1.5x | within 2x | Spearman |"
    ]
    lines += ["| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |"]
    lines += [_format_times(title, launches) for title, launches in halves.items()]
    lines += ["", *_format_cost([launch for launches in halves.values() for launch in launches])]
    lines += ["", "| half | float32 operations | float64 operations | DRAM bytes | roofline class |"]
    lines += ["| --- | --: | --: | --: | --: |"]
    lines += [_format_counts(title, launches, measurement) for title, launches in halves.items()]
    lines += ["", *_COUNTS_NOTE, "", "### Misses", "", f"Launches whose time is off by more than {_MISS}x.", ""]
    lines += ["| program | kernel, grid, block | half | measured us | modeled us | ratio | limit |"]
    lines += ["| --- | --- | --- | --: | --: | --: | --- |"]
    for title, launches in halves.items():
        lines += _format_misses(title, launches)
    lines += ["", *_explain_misses([launch for launches in halves.values() for launch in launches], measurement)]
    lines += ["", "### Not modeled", "", "| half | launches | reason |", "| --- | --: | --- |"]
    for title, launches in halves.items():
        lines += _format_refusals(title, launches)
    return "\n".join(lines) + "\n"


_COUNTS_NOTE = [
    "Operations count as right within 1%, DRAM bytes within 15%. A launch is compute bound if its operations per byte",
    "of DRAM traffic exceed the ratio of the peak rates, for float32 or float64, otherwise memory bound.",
]


def _format_revisions(programs: Mapping[str, Sequence[ComparedLaunch]]) -> list[str]:
    """Return by revisions of the timing model how many programs were modeled with each."""
    counts = Counter(launches[0].revision for launches in programs.values() if _modeled(launches))
    parts = [f"{count} with {revision}" for revision, count in counts.most_common() if revision]
    if earlier := counts[""]:
        parts.append(f"{earlier} with earlier states")
    return textwrap.wrap(f"Programs by git's hash of `gpu/timing` when they were modeled: {', '.join(parts)}.", 120)


def _modeled(launches: Sequence[ComparedLaunch]) -> list[tuple[ComparedLaunch, float]]:
    return [(launch, launch.ratio) for launch in launches if launch.ratio is not None]


def _format_times(title: str, launches: Sequence[ComparedLaunch]) -> str:
    modeled = _modeled(launches)
    count = len({launch.measured.program for launch in launches})
    start = f"| {title} | {count} | {len(launches)} | {len(modeled)} |"
    if not modeled:
        return f"{start} | | | | | |"
    errors = [abs(ratio - 1) for _, ratio in modeled]
    shares = [sum(1 / factor <= ratio <= factor for _, ratio in modeled) / len(modeled) for factor in (1.5, 2.0)]
    bias = math.exp(statistics.mean(math.log(ratio) for _, ratio in modeled))
    rank = compute_rank_correlation(
        [launch.measured.time_us for launch, _ in modeled], [launch.result["time_us"] for launch, _ in modeled]
    )
    return (
        f"{start} {statistics.mean(errors):.0%} | {statistics.median(errors):.0%} | {bias:.2f} | {shares[0]:.0%} "
        f"| {shares[1]:.0%} | {rank:.3f} |"
    )


def _format_cost(launches: Sequence[ComparedLaunch]) -> list[str]:
    """Return the sentences about the bias, and about the seconds to model a launch."""
    seconds = [launch.result["seconds"] for launch, _ in _modeled(launches)]
    lines = ["Bias is the geometric mean of modeled over measured times."]
    if seconds:
        lines.append(
            f"Modeling a launch takes {statistics.median(seconds):.1f} s of computing time at the median and "
            f"{max(seconds):.1f} s at most."
        )
    return lines


def compute_rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation, with mean ranks of ties; NaN for fewer than two different values."""
    if min(len(set(first)), len(set(second))) < 2:
        return float("nan")
    return float(np.corrcoef(_compute_ranks(first), _compute_ranks(second))[0, 1])


def _compute_ranks(values: Sequence[float]) -> list[float]:
    array = np.asarray(values)
    return [float((array < value).sum() + ((array == value).sum() - 1) / 2) for value in array]


def _format_counts(title: str, launches: Sequence[ComparedLaunch], measurement: Measurement) -> str:
    modeled = [launch for launch, _ in _modeled(launches)]
    cells = [
        _format_share([
            abs(launch.result[name] - measured) <= _OPERATIONS_TOLERANCE * measured
            for launch in modeled if (measured := getattr(launch.measured, name))
        ])
        for name in ("float32_operations", "float64_operations")
    ]  # fmt: skip
    cells.append(
        _format_share([
            abs(launch.result["dram_bytes"] / max(launch.measured.dram_bytes, 1.0) - 1) <= _DRAM_TOLERANCE
            for launch in modeled
        ])
    )  # fmt: skip
    cells.append(_format_share([_is_class_right(launch, measurement) for launch in modeled]))
    return f"| {title} | {' | '.join(cells)} |"


def _format_share(right: Sequence[bool]) -> str:
    return f"{sum(right) / len(right):.0%} of {len(right)}" if right else ""


def _is_class_right(launch: ComparedLaunch, measurement: Measurement) -> bool:
    measured, result = launch.measured, launch.result
    return measurement.is_compute_bound(
        measured.float32_operations, measured.float64_operations, measured.dram_bytes
    ) == measurement.is_compute_bound(result["float32_operations"], result["float64_operations"], result["dram_bytes"])


def _find_misses(launches: Sequence[ComparedLaunch]) -> list[tuple[ComparedLaunch, float]]:
    misses = [each for each in _modeled(launches) if not 1 / _MISS <= each[1] <= _MISS]
    return sorted(misses, key=lambda each: each[1])


def _explain_misses(launches: Sequence[ComparedLaunch], measurement: Measurement) -> list[str]:
    """Return the mechanism of each kernel with a miss, as lines of a list: by reading it, otherwise by a rule."""
    reasons: dict[str, tuple[str, str]] = {}
    for launch, _ in _find_misses(launches):
        name = format_kernel_name(launch.measured.kernel).partition("<")[0]
        reasons.setdefault(f"{launch.measured.program} {name}", _explain_miss(launch, name, measurement))
    if not reasons:
        return []
    counts = Counter(source for source, _ in reasons.values())
    usual = [launch for launch, ratio in _modeled(launches) if 1 / _MISS <= ratio <= _MISS]
    ruled = sum(bool(find_mechanism(launch, measurement)) for launch in usual)
    summary = (
        f"Mechanisms of {len(reasons)} kernels: {counts['code']} from their code, {counts['rule']} by a rule from the "
        f"measured figures, {counts['unknown']} unknown. Of {counts['resource']} others the figures show only the "
        f"resource. The rules also apply to {ruled} of the {len(usual)} launches without a miss. "
        'Reasons with "probably" are not proven. Figures of the model in reasons from the code may be of earlier '
        "states."
    )
    lines = [f"- {_shorten(kernel)}: {reason}" for kernel, (_, reason) in reasons.items() if reason]
    wrapped = [each for line in lines for each in textwrap.wrap(line, 120, subsequent_indent="  ")]
    return [*textwrap.wrap(summary, 120), "", *wrapped]


def _explain_miss(launch: ComparedLaunch, name: str, measurement: Measurement) -> tuple[str, str]:
    """Return a source, "code", "rule", "resource" or "unknown", and what it says about a kernel's time."""
    if reason := EXPLANATIONS[measurement.gpu].get(f"{launch.measured.program} {name}"):
        return "code", reason
    if reason := find_mechanism(launch, measurement):
        return "rule", reason
    reason = find_resource(launch)
    return ("resource" if reason else "unknown"), reason


def _format_misses(title: str, launches: Sequence[ComparedLaunch]) -> Iterator[str]:
    for launch, ratio in _find_misses(launches):
        measured, result = launch.measured, launch.result
        stale = "" if result["true_values"] else ", memory not written"
        cut = "" if result.get("complete", True) else ", not followed to the end"
        yield (
            f"| {measured.program} | {_shorten(measured.key)} | {title} | {measured.time_us:.1f} "
            f"| {result['time_us']:.1f} | {ratio:.2f} | {result['limit']}{stale}{cut} |"
        )


def _format_refusals(title: str, launches: Sequence[ComparedLaunch]) -> Iterator[str]:
    reasons = Counter(_shorten(launch.result["refusal"]) for launch in launches if launch.ratio is None)
    for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        yield f"| {title} | {count} | {reason} |"


def _shorten(text: str) -> str:
    line = _FOLDERS.sub("", " ".join(text.split()))
    line = line if len(line) <= _LETTERS else f"{line[: _LETTERS - 3]}..."
    for special in ("<", "|", "*", "_"):
        line = line.replace(special, f"\\{special}")
    return line
