"""Measure HeCBench's programs on this machine's GPU with Nsight Compute: `python -m tools.public_benchmark.measure`.

The result has the columns of gpuFLOPBench's file, so that the comparison reads both. Clocks are not locked; the
profiler empties the caches before each launch.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu.base.errors import LockstepError
from tools.public_benchmark.build_commands import read_build_commands
from tools.public_benchmark.profile import MeasuredLaunch, group_programs, read_profile
from tools.public_programs.recipes import Recipe

COLUMNS = ("Kernel Name", "Grid Size", "Block Size", "targetName", "exeArgs", "xtime", "traffic", "spPerf", "dpPerf",
           "intops")  # fmt: skip
_THREAD = "smsp__sass_thread_inst_executed_op"
_TIME, _TRAFFIC, _INTEGER = "gpu__time_duration.sum", "dram__bytes.sum", f"{_THREAD}_integer_pred_on.sum"
_OPERATIONS = {
    "spPerf": {f"{_THREAD}_{name}_pred_on.sum": count for name, count in (("fadd", 1), ("fmul", 1), ("ffma", 2))},
    "dpPerf": {f"{_THREAD}_{name}_pred_on.sum": count for name, count in (("dadd", 1), ("dmul", 1), ("dfma", 2))},
}
_METRICS = (_TIME, _TRAFFIC, _INTEGER, *_OPERATIONS["spPerf"], *_OPERATIONS["dpPerf"])
_LIMIT_S = 20
_CODE_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and profile programs, and write each one's launches at once; return 2 if that is impossible."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.public_benchmark.measure",
        description="Profiles HeCBench's programs with Nsight Compute, with the arguments of public measurements.",
    )
    parser.add_argument("--hecbench", metavar="DIR", type=Path, required=True, help="folder that contains src/")
    parser.add_argument(
        "--profile", metavar="CSV", type=Path, required=True,
        help="gpuFLOPBench's profiling-data.csv, which names programs and arguments; beside it compile_commands.json",
    )  # fmt: skip
    parser.add_argument("--target", metavar="FILE", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--minutes", metavar="M", type=float, default=60, help="start no program after this time")
    options = parser.parse_args(arguments)
    try:
        programs = group_programs(read_profile(options.profile))
        recipes = read_build_commands(options.profile.with_name("compile_commands.json"))
    except LockstepError as error:
        print(error.message, error.advice, file=sys.stderr)
        return 2
    deadline = time.monotonic() + 60 * options.minutes
    chosen = [name for name in programs if name in recipes and (options.hecbench / "src" / name).is_dir()]
    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(os.cpu_count()) as pool,
        options.target.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        builds = {
            name: pool.submit(_build, options.hecbench / "src" / name, recipes[name], Path(scratch) / name, deadline)
            for name in chosen
        }  # fmt: skip
        for name, build in builds.items():
            reason = build.result()
            if time.monotonic() > deadline:
                break
            rows = (
                [] if reason else list(_profile(options.hecbench / "src" / name, Path(scratch) / name, programs[name]))
            )
            writer.writerows(rows)
            file.flush()
            print(f"{name}: {reason or f'{len(rows)} launches'}", flush=True)
    return 0


def _build(folder: Path, recipe: Recipe, target: Path, deadline: float) -> str:
    """Compile a program; return the reason if that fails, otherwise ""."""
    if time.monotonic() > deadline:
        return "not built in time"
    files = [name for name in recipe.files if name.endswith(_CODE_SUFFIXES)]
    command = ["nvcc", "-O3", "-std=c++17", "-arch=native", "-w", "-o", str(target), *recipe.options, *files]
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return "nvcc does not end"
    lines = [line for line in run.stderr.decode(errors="replace").splitlines() if "error" in line]
    return (lines or [f"nvcc ends with {run.returncode}"])[0] if run.returncode else ""


def _profile(folder: Path, program: Path, launches: Sequence[MeasuredLaunch]) -> Iterator[dict[str, str]]:
    """Profile the first launch of each kernel of a program, and end it after that; yield a row for each kernel."""
    name, arguments = launches[0].program, launches[0].arguments
    kernels = len({launch.kernel for launch in launches})
    command = [
        "timeout", "--signal=INT", "--kill-after=5", str(_LIMIT_S), "ncu", "--csv", "--print-units", "base",
        "--clock-control", "none", "--kernel-id", ":::1", "--launch-count", str(kernels), "--kill", "yes",
        "--metrics", ",".join(_METRICS), str(program), *arguments.split(),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    for shape, metrics in _read_launches(run.stdout.decode(errors="replace")):
        if metrics.get(_TIME, 0.0) > 0 and _TRAFFIC in metrics:
            yield {**shape, **_compute_rates(metrics), "targetName": name, "exeArgs": arguments}


def _read_launches(text: str) -> Iterator[tuple[dict[str, str], dict[str, float]]]:
    """Yield the kernel, grid and block of each launch in the profiler's output, and its metrics."""
    lines = text.splitlines(keepends=True)
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    shapes: dict[str, dict[str, str]] = {}
    metrics: dict[str, dict[str, float]] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO("".join(line for line in lines[start:] if line.startswith('"')))):
        shapes[row["ID"]] = {name: row[name] for name in ("Kernel Name", "Grid Size", "Block Size")}
        try:
            metrics[row["ID"]][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            continue  # a metric that could not be counted has a text as its value
    for number, shape in shapes.items():
        yield shape, metrics[number]


def _compute_rates(metrics: Mapping[str, float]) -> dict[str, str]:
    seconds = metrics[_TIME] * 1e-9
    operations = {
        column: sum(count * metrics.get(name, 0.0) for name, count in counts.items()) / seconds
        for column, counts in _OPERATIONS.items()
    }
    figures = {"xtime": metrics[_TIME], "traffic": metrics[_TRAFFIC] / seconds, "intops": metrics.get(_INTEGER, 0.0)}
    return {name: repr(value) for name, value in {**figures, **operations}.items()}


if __name__ == "__main__":
    sys.exit(main())
