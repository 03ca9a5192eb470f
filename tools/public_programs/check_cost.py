"""Measure what checks cost on programs of HeCBench: python -m tools.public_programs.check_cost FOLDER.

FOLDER is a clone of HeCBench. The processor time of each program is measured in four runs: as machine code with an
empty cache, as machine code again, in lockstep without checks, and with `--check`. The results replace their section of
docs/programs.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from gpu.base.paths import DOCS
from tools.public_programs.cuda_samples import replace_section, wrap_text
from tools.public_programs.program_command import run_program
from tools.public_programs.recipes import read_hecbench_recipe, reduce_arguments
from tools.public_programs.saved_results import SavedResults

PAGE = DOCS / "programs.md"
HEADING = "## Cost of checks"
PROGRAMS = (
    *("bitpermute", "blockAccess", "chemv", "cross", "crossEntropy", "fft", "fwt", "gelu", "histogram"),
    *("layout", "matrixT", "nlll", "overlay", "pointwise", "scatter", "threadfence", "upsample"),
)
"""Programs of HeCBench that are correct on the simulator."""
_LIMIT_S = 10
"""Limit of an unchecked run; a program that exceeds it is not measured."""
_GOAL = 10
"""The most times that a checked run should take as long as an unchecked one."""


@dataclass(frozen=True)
class Cost:
    """Processor time of a program's runs in seconds, with compilation and start.

    Parameters
    ----------
    name : str
    first, second : float
        As machine code, with an empty cache and with the cache of the first run.
    unchecked : float
        In lockstep, without options.
    checked : float
        With all checkers; infinite if it exceeds the limit.
    """

    name: str
    first: float
    second: float
    unchecked: float
    checked: float

    @property
    def ratio(self) -> float:
        """The checked run's time as a multiple of the unchecked run's in lockstep."""
        return self.checked / self.unchecked


def measure_cost(folder: Path) -> Cost | None:
    """Measure a program; return None if it does not end normally or exceeds the limit without checks."""
    recipe = read_hecbench_recipe(folder)
    assert recipe is not None
    arguments, times = reduce_arguments(recipe.arguments), []
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, LOCKSTEP_CACHE=cache):
        for options in (["--fast"], ["--fast"], [], ["--check"]):
            before = _measure_children()
            limit_s = _GOAL * _LIMIT_S if "--check" in options else _LIMIT_S
            code, _, _ = run_program(folder, recipe.files, [*options, *recipe.options], arguments, limit_s)
            times.append(_measure_children() - before if code is not None else math.inf)
            if code != 0 and "--check" not in options:
                return None
    return Cost(folder.name.removesuffix("-cuda"), *times)


def _measure_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def format_section(costs: Sequence[Cost], day: str) -> str:
    """Return the section of the page, with a newline at its end."""
    return "\n".join((*_section_lines(costs, day), ""))


def _section_lines(costs: Sequence[Cost], day: str) -> Iterator[str]:
    ratios = [cost.ratio for cost in costs]
    slower = [f"`{cost.name}`" for cost in costs if cost.ratio > _GOAL]
    yield HEADING
    yield ""
    yield from wrap_text(
        "`python -m tools.public_programs.check_cost FOLDER` runs programs of HeCBench in a clone, and writes this"
        f" section. Date of this run: {day}. Times are processor time of the whole command, with its start, in"
        f" seconds. A run with `--check` takes {statistics.median(ratios):.1f} times as long as one without"
        f" options, which also runs in lockstep, in the median of {len(costs)} programs, at most {max(ratios):.1f}"
        f" times. More than {_GOAL} times: {', '.join(slower) or 'none'}. `--fast` runs machine code instead,"
        " without checks; its second run takes the"
        f" host code and the kernels from the cache. {len(PROGRAMS) - len(costs)} more programs were not measured:"
        f" an unchecked run exceeds {_LIMIT_S} s, or the time for the measurement ended before."
    )
    yield ""
    yield "| program | `--fast`, empty cache | `--fast` again | no option | `--check` | ratio |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for cost in costs:
        times = " | ".join(
            f"{each:.1f}" for each in (cost.first, cost.second, cost.unchecked, cost.checked, cost.ratio)
        )
        yield f"| `{cost.name}` | {times} |"


def _measure_all(folder: Path, kept: Path | None, deadline: float) -> list[Cost]:
    """Measure the programs without a result until a deadline; return all costs known then."""
    saved = SavedResults(kept, "check_cost")
    for name in PROGRAMS:
        if name in saved.results or time.monotonic() >= deadline:
            continue
        cost = measure_cost(folder / "src" / f"{name}-cuda")
        print(cost if cost is not None else f"{name}: not measured", file=sys.stderr, flush=True)
        if cost is not None:
            saved.add(name, dataclasses.astuple(cost))
    return [Cost(*saved.results[name]) for name in PROGRAMS if name in saved.results]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the programs and write the section; return 1 if a checked run takes too many times as long."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_programs.check_cost", description="cost of checks")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of a clone of HeCBench")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="folder for results; a later run continues from it")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="start no program after this time")
    options = parser.parse_args(arguments)
    costs = _measure_all(options.folder, options.kept, time.monotonic() + 60 * options.minutes)
    if costs:
        section = format_section(costs, datetime.date.today().isoformat())
        PAGE.write_text(replace_section(PAGE.read_text("utf-8"), section, HEADING), "utf-8")
    return 0 if costs and all(cost.ratio <= _GOAL for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
