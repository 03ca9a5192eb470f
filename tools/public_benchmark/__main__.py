"""Compare the timing model with public measurements: `python -m tools.public_benchmark`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu.base.errors import LockstepError
from gpu.base.paths import DOCS
from tools.public_benchmark import tables
from tools.public_benchmark.build_commands import read_build_commands
from tools.public_benchmark.measurements import MEASUREMENTS
from tools.public_benchmark.profile import MeasuredLaunch, group_programs, is_tuned, read_profile
from tools.public_benchmark.runs import ComparedLaunch, compare_program, read_results


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs without kept results, and write the GPU's section; return 2 if that is impossible."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.public_benchmark",
        description="Models HeCBench's kernels, and compares their times with measured ones.",
    )
    parser.add_argument(
        "--hecbench", metavar="DIR", type=Path, required=True, help="folder that contains src/, as it was measured"
    )
    parser.add_argument(
        "--profile", metavar="CSV", type=Path, required=True, help="gpuFLOPBench's cuda-profiling/profiling-data.csv"
    )
    parser.add_argument(
        "--build", metavar="JSON", type=Path, help="CMake's commands (default: compile_commands.json beside --profile)"
    )
    parser.add_argument(
        "--gpu", choices=tuple(MEASUREMENTS), default="rtx-3080", help="measured GPU (default: %(default)s)"
    )
    parser.add_argument("--kept", metavar="DIR", type=Path, required=True, help="folder of results, to continue")
    parser.add_argument(
        "--limit", metavar="S", type=int, default=60, help="computing time of a program (default: %(default)s)"
    )
    parser.add_argument("--minutes", metavar="M", type=float, default=60, help="start no program after this time")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="programs that run at once")
    parser.add_argument("--tuned", action="store_true", help="run only the half that may be used for improvements")
    parser.add_argument("--page", metavar="FILE", type=Path, default=DOCS / "timing-model-public.md", help="page")
    options = parser.parse_args(arguments)
    try:
        programs = group_programs(read_profile(options.profile))
        compared = _compare_programs(programs, options)
    except LockstepError as error:
        print(error.message, error.advice, file=sys.stderr)
        return 2
    measurement = MEASUREMENTS[options.gpu]
    tables.write_section(
        options.page, measurement.description.name, tables.format_section(compared, len(programs), measurement)
    )
    return 0


def _compare_programs(
    programs: dict[str, list[MeasuredLaunch]], options: argparse.Namespace
) -> dict[str, list[ComparedLaunch]]:
    deadline = time.monotonic() + 60 * options.minutes
    build_file = options.build or options.profile.with_name("compile_commands.json")
    recipes = read_build_commands(build_file) if build_file.is_file() else {}

    def compare(name: str) -> list[ComparedLaunch] | None:
        kept = options.kept / f"{name}.json"
        if kept.is_file():
            return read_results(programs[name], kept)
        if time.monotonic() > deadline or (options.tuned and not is_tuned(name)):
            return None
        launches = compare_program(options.hecbench, programs[name], recipes, options.gpu, options.kept, options.limit)
        modeled = sum(launch.ratio is not None for launch in launches)
        print(f"{name}: {modeled} of {len(launches)} launches modeled", flush=True)
        return launches

    with ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(programs, pool.map(compare, programs), strict=True))
    return {name: launches for name, launches in results.items() if launches is not None}


if __name__ == "__main__":
    sys.exit(main())
