"""Run every variant's kernels under compute-sanitizer on an NVIDIA GPU: python -m tools.sanitize [PATTERN ...].

Its four tools, memcheck, racecheck, initcheck and synccheck, each check every variant at a small size that leaves
blocks partly empty. Known false reports of a tool are excused here with the reason; any other report is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

from gpu.base.paths import ROOT
from gpu.declaration.pattern import Integer, Pattern, Variant
from gpu.declaration.roles import Role
from gpu.patterns import all_patterns, find_pattern

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

_ERROR_EXIT_CODE = 9
_LIMIT_S = 300.0
_SUMMARY = re.compile(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: .*)$", re.MULTILINE)
_REPORT = re.compile(r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)$", re.MULTILINE)
_STEPS = 2
_MAX_SIZE, _MAX_SINGLE_THREAD_SIZE = 5003, 67
_UNSUPPORTED_TEXT = "CUDA Dynamic Parallelism is not supported by the selected tool"


@dataclass(frozen=True)
class SanitizerRun:
    """Result of one variant under one tool.

    Parameters
    ----------
    clean : bool
        Whether the run succeeded and the tool found nothing.
    report_text : str
        The tool's summary, or the end of the output without one.
    """

    pattern: str
    variant: str
    tool: str
    clean: bool
    report_text: str


def find_excuse(variant: Variant, run: SanitizerRun) -> str:
    """Return why a tool's report about a variant is excused; "" if it is not."""
    if variant.deliberate_error:
        return "wrong by design"
    if _UNSUPPORTED_TEXT in run.report_text and re.search(r"SUMMARY: 1 (error|hazard)", run.report_text):
        return "only memcheck supports kernels that launch kernels"
    return ""


def awkward_size_options(pattern: Pattern, variant: Variant) -> list[str]:
    """Return options for an awkward size: several blocks, the last one not full, or few elements for one thread."""
    words = []
    defaults = pattern.check({})
    for parameter in pattern.parameters:
        if not parameter.applies(defaults):
            continue
        if isinstance(parameter, Integer) and parameter.role is Role.SIZE:
            most = _MAX_SINGLE_THREAD_SIZE if variant.is_single_thread else _MAX_SIZE
            words += [f"--{parameter.name}", str(min(most, parameter.default // 4 + 3))]
        elif isinstance(parameter, Integer) and parameter.role is Role.STEPS:
            words += [f"--{parameter.name}", str(_STEPS)]
    return words


def run_sanitizer(sanitizer: str, pattern: Pattern, variant: Variant, tool: str) -> SanitizerRun:
    """Run one variant under one tool.

    Parameters
    ----------
    sanitizer : str
        The path of compute-sanitizer.
    variant : Variant
        The variant to run, on the GPU.
    tool : str
        The sanitizer's tool, such as "memcheck" or "racecheck".
    """
    command = [sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", str(_ERROR_EXIT_CODE)]
    if tool == "memcheck":
        # The driver's Python bindings request entry points that an older driver lacks, which is not a kernel's error.
        command += ["--report-api-errors", "no"]
    command += [sys.executable, str(ROOT / "main.py"), "run", pattern.name, "--engine", "cuda"]
    command += ["--variant", variant.name, *awkward_size_options(pattern, variant), "--json"]
    try:
        process = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False,
            env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return SanitizerRun(pattern.name, variant.name, tool, False, f"did not end in {_LIMIT_S:.0f} s")
    output = process.stdout + process.stderr
    summaries, reports = _SUMMARY.findall(output), _REPORT.findall(output)
    no_errors = all(re.search(r": 0 (errors|hazards)", summary) for summary in summaries)
    clean = process.returncode == 0 and bool(summaries) and no_errors
    text = "; ".join(dict.fromkeys(summaries)) or output[-300:].replace("\n", " ")
    return SanitizerRun(pattern.name, variant.name, tool, clean, text if clean else f"{text} {' | '.join(reports[:3])}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all variants; return 0 if every report is excused."""
    parser = argparse.ArgumentParser(prog="python -m tools.sanitize", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="patterns to check (default: all)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="runs at the same time")
    options_given = parser.parse_args(arguments)
    if not (sanitizer := shutil.which("compute-sanitizer")):
        print("compute-sanitizer is not on PATH: it comes with the CUDA toolkit.", file=sys.stderr)
        return 2
    patterns = [find_pattern(name) for name in options_given.patterns or all_patterns()]
    cases = [
        (pattern, variant, tool)
        for pattern in patterns
        for variant, tool in product(pattern.variants, TOOLS)
        if not variant.library
    ]
    with ThreadPoolExecutor(options_given.jobs) as pool:
        runs = list(pool.map(lambda case: run_sanitizer(sanitizer, *case), cases))
    failed = 0
    for (_, variant, _), run in zip(cases, runs, strict=True):
        if run.clean:
            continue
        reason = find_excuse(variant, run)
        failed += not reason
        print(f"{run.pattern} {run.variant}, {run.tool}: {f'excused, {reason}: ' if reason else ''}{run.report_text}")
    print(f"{len(runs)} runs, {sum(run.clean for run in runs)} clean, {failed} with reports that are not excused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
