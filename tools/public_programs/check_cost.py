"""Measure what checks cost on programs of HeCBench: python -m tools.public_programs.check_cost FOLDER.

FOLDER is a clone of HeCBench. Each program runs three times in processor time: as machine code with an empty cache, as
machine code again, and with `--check`. The results replace their section of docs/programs.md.
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

from gpu.base.paths import DOCS
from tools.public_programs.cuda_samples import replace_section
from tools.public_programs.program_command import run_program
from tools.public_programs.recipes import read_hecbench_recipe, reduce_arguments
from tools.public_programs.saved_results import SavedResults

PAGE = DOCS / "programs.md"
HEADING = "## Cost of checks"
PROGRAMS = (
    *("bitpermute", "blockAccess", "chemv", "cross", "crossEntropy", "fft", "fwt", "gelu", "histogram"),
    *("layout", "matrixT", "nlll", "overlay", "pointwise", "scatter", "threadfence", "upsample"),
)
"""Programs of HeCBench that are correct on the simulator, and of which all runs end within the limit."""
_LIMIT_S = 120


@dataclass(frozen=True)
class Cost:
    """Processor time of a program's runs in seconds, with compilation and start.

    Parameters
    ----------
    name : str
    first, second : float
        As machine code, with an empty cache and with the cache of the first run.
    checked : float
        With all checkers; infinite if it exceeds the limit.
    """

    name: str
    first: float
    second: float
    checked: float

    @property
    def ratio(self) -> float:
        """The checked run's time as a multiple of the second unchecked run's."""
        return self.checked / self.second


def measure_cost(folder: Path) -> Cost | None:
    """Measure a program; return None if it does not end normally or exceeds the limit without checks."""
    recipe = read_hecbench_recipe(folder)
    assert recipe is not None
    arguments, times = reduce_arguments(recipe.arguments), []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LOCKSTEP_CACHE"] = cache
        for option in ("--fast", "--fast", "--check"):
            before = _measure_children()
            code, _, _ = run_program(folder, recipe.files, [option, *recipe.options], arguments, _LIMIT_S)
            times.append(_measure_children() - before if code is not None else float("inf"))
            if option == "--fast" and code:
                return None
        del os.environ["LOCKSTEP_CACHE"]
    return Cost(folder.name.removesuffix("-cuda"), *times) if times[1] < _LIMIT_S else None


def _measure_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def format_section(costs: Sequence[Cost], day: str) -> str:
    """Return the section of the page, with a newline at its end."""
    return "\n".join((*_section_lines(costs, day), ""))


def _section_lines(costs: Sequence[Cost], day: str) -> Iterator[str]:
    ratios = [cost.ratio for cost in costs]
    slower = [f"`{cost.name}`" for cost in costs if cost.ratio > 10]
    yield HEADING
    yield ""
    yield "`python -m tools.public_programs.check_cost FOLDER` runs programs of HeCBench in a clone, and writes this"
    yield f"section. Date of this run: {day}. Times are processor time of the whole command in seconds. A run"
    yield f"with `--check` takes {statistics.median(ratios):.1f} times as long as one with `--fast` in the median of"
    yield f"{len(costs)} programs, at most {max(ratios):.1f} times."
    yield f"More than 10 times as long: {', '.join(slower) or 'none'}."
    yield "The second run takes the host code and the kernels from the cache."
    yield ""
    yield "| program | `--fast`, empty cache | `--fast` again | `--check` | ratio |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for cost in costs:
        yield f"| `{cost.name}` | {cost.first:.1f} | {cost.second:.1f} | {cost.checked:.1f} | {cost.ratio:.1f} |"


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
    """Measure all programs and write the section; return 1 if a program was not measured."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_programs.check_cost", description="cost of checks")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder of a clone of HeCBench")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="folder for results; a later run continues from it")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="start no program after this time")
    options = parser.parse_args(arguments)
    costs = _measure_all(options.folder, options.kept, time.monotonic() + 60 * options.minutes)
    if costs:
        section = format_section(costs, datetime.date.today().isoformat())
        PAGE.write_text(replace_section(PAGE.read_text("utf-8"), section, HEADING), "utf-8")
    return 0 if len(costs) == len(PROGRAMS) else 1


if __name__ == "__main__":
    sys.exit(main())
