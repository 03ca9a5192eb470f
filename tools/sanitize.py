"""Run every variant's kernels under compute-sanitizer on an NVIDIA GPU: python -m tools.sanitize [PATTERN ...].

Its four tools, memcheck, racecheck, initcheck and synccheck, each watch every variant at a small size that fills no
block evenly. What a tool is known to say is excused here with the reason; anything else is a failure.
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
from pathlib import Path

from gpu.declaration.pattern import Integer, Pattern, Variant
from gpu.declaration.roles import Role
from gpu.patterns import all_patterns, find_pattern

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

_FOUND = 9
_LIMIT_S = 300.0
_SUMMARY = re.compile(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: .*)$", re.MULTILINE)
_REPORT = re.compile(r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY)(\S.*)$", re.MULTILINE)
_STEPS = 2
_MOST, _MOST_ALONE = 5003, 67
_BLIND = "CUDA Dynamic Parallelism is not supported by the selected tool"


@dataclass(frozen=True)
class Watched:
    """What came of one variant under one tool.

    Parameters
    ----------
    pattern, variant, tool : str
    clean : bool
        Whether the run ended well and the tool found nothing.
    said : str
        The tool's summary, or the end of the output where it gave none.
    """

    pattern: str
    variant: str
    tool: str
    clean: bool
    said: str


def excuse(variant: Variant, seen: Watched) -> str:
    """Return why a tool need not be silent about a variant; nothing where it must be."""
    if variant.cautionary:
        return "wrong by design"
    if _BLIND in seen.said and re.search(r"SUMMARY: 1 (error|hazard)", seen.said):
        return "only memcheck looks into kernels that launch kernels"
    return ""


def options(pattern: Pattern, variant: Variant) -> list[str]:
    """Return the options for an awkward size: several blocks, the last of them not full, or little for one thread."""
    given = []
    defaults = pattern.check({})
    for parameter in pattern.parameters:
        if not parameter.applies(defaults):
            continue
        if isinstance(parameter, Integer) and parameter.role is Role.SIZE:
            most = _MOST_ALONE if variant.alone else _MOST
            given += [f"--{parameter.name}", str(min(most, parameter.default // 4 + 3))]
        elif isinstance(parameter, Integer) and parameter.role is Role.STEPS:
            given += [f"--{parameter.name}", str(_STEPS)]
    return given


def watch(sanitizer: str, pattern: Pattern, variant: Variant, tool: str) -> Watched:
    """Run one variant under one tool."""
    command = [sanitizer, "--tool", tool, "--target-processes", "all", "--error-exitcode", str(_FOUND)]
    if tool == "memcheck":
        # The driver's Python bindings ask for entry points that an older driver lacks: that is no kernel's mistake.
        command += ["--report-api-errors", "no"]
    command += [sys.executable, str(ROOT / "main.py"), "run", pattern.name, "--engine", "cuda"]
    command += ["--variant", variant.name, *options(pattern, variant), "--json"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S, check=False,
            env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Watched(pattern.name, variant.name, tool, False, f"did not end in {_LIMIT_S:.0f} s")
    output = done.stdout + done.stderr
    summaries, reports = _SUMMARY.findall(output), _REPORT.findall(output)
    clean = done.returncode == 0 and bool(summaries) and all(re.search(r": 0 (errors|hazards)", s) for s in summaries)
    said = "; ".join(dict.fromkeys(summaries)) or output[-300:].replace("\n", " ")
    return Watched(pattern.name, variant.name, tool, clean, said if clean else f"{said} {' | '.join(reports[:3])}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch all variants; return 0 where every tool is silent about each that it must be silent about."""
    parser = argparse.ArgumentParser(prog="python -m tools.sanitize", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="of them all")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="runs at a time")
    given = parser.parse_args(arguments)
    if not (sanitizer := shutil.which("compute-sanitizer")):
        print("compute-sanitizer is not on PATH: it comes with the CUDA toolkit.", file=sys.stderr)
        return 2
    patterns = [find_pattern(name) for name in given.patterns or all_patterns()]
    cases = [
        (pattern, variant, tool)
        for pattern in patterns
        for variant, tool in product(pattern.variants, TOOLS)
        if not variant.library
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        seen = list(pool.map(lambda case: watch(sanitizer, *case), cases))
    failed = 0
    for (_, variant, _), each in zip(cases, seen, strict=True):
        if each.clean:
            continue
        why = excuse(variant, each)
        failed += not why
        print(f"{each.pattern} {each.variant}, {each.tool}: {f'excused, {why}: ' if why else ''}{each.said}")
    print(f"{len(seen)} runs, {sum(each.clean for each in seen)} without a word, {failed} with one that has no excuse")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
