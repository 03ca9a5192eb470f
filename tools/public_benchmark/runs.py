"""Runs of the programs, one process each, and their results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpu.base.paths import ROOT
from gpu.files.sources import RELAXED_CONSTEXPR
from gpu.hosts.driver.compiler_options import parse_define
from tools.public_benchmark.profile import MeasuredLaunch
from tools.public_programs.recipes import Recipe, read_hecbench_recipe

_OUTPUT_BYTES = 2000
"""The most bytes of a program's output from which its last line is shown."""
_CLOCK_FACTOR = 4
"""Limit by the clock, as a multiple of the limit of computing time."""


@dataclass(frozen=True)
class ComparedLaunch:
    """A measured launch with the model's figures.

    Parameters
    ----------
    result : dict
        The figures of `tools.public_benchmark.program`; only "refusal" if the launch was not modeled.
    revision : str
        Git's hash of the timing model's folder; "" if unknown.
    """

    measured: MeasuredLaunch
    result: dict[str, Any]
    revision: str = ""

    @property
    def ratio(self) -> float | None:
        """Modeled over measured time; None if the launch was not modeled."""
        time_us = self.result.get("time_us")
        return None if time_us is None else time_us / self.measured.time_us


def compare_program(
    hecbench: Path,
    launches: Sequence[MeasuredLaunch],
    recipes: Mapping[str, Recipe],
    gpu: str,
    kept: Path,
    limit_s: int,
) -> list[ComparedLaunch]:
    """Run a program unless its results are kept; return its launches with the model's figures.

    Parameters
    ----------
    hecbench : Path
        A clone of HeCBench; nothing is written there.
    recipes : mapping of str to Recipe
        How to build programs, by name; others are built as their makefiles say.
    gpu : str
        The key of the measured GPU.
    kept : Path
        The folder of results.
    limit_s : int
        The limit of computing time in seconds.
    """
    target = kept / f"{launches[0].program}.json"
    if not target.is_file():
        begin = time.monotonic()
        results, reason = _run_program(hecbench, launches, recipes, gpu, limit_s)
        seconds = round(time.monotonic() - begin, 1)
        data = {"launches": results, "reason": reason, "seconds": seconds, "revision": find_model_revision()}
        kept.mkdir(parents=True, exist_ok=True)
        new = target.with_suffix(".new")
        new.write_text(json.dumps(data, indent=1), "utf-8")
        new.replace(target)
    return read_results(launches, target)


def read_results(launches: Sequence[MeasuredLaunch], target: Path) -> list[ComparedLaunch]:
    """Return a program's launches with the figures of a kept file."""
    data = json.loads(target.read_text("utf-8"))
    revision = data.get("revision", "")
    return [
        ComparedLaunch(launch, data["launches"].get(launch.key, {"refusal": data["reason"]}), revision)
        for launch in launches
    ]


@cache
def find_model_revision() -> str:
    """Return git's abbreviated hash of the timing model's folder in the last commit; "" outside a clone."""
    command = ["git", "rev-parse", "--short=8", "HEAD:gpu/timing"]
    try:
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def _run_program(
    hecbench: Path,
    launches: Sequence[MeasuredLaunch],
    recipes: Mapping[str, Recipe],
    gpu: str,
    limit_s: int,
) -> tuple[dict[str, Any], str]:
    """Run a program; return the results by key, and why other launches have none."""
    folder = hecbench / "src" / launches[0].program
    if not folder.is_dir():
        return {}, "there is no such program"
    recipe = recipes.get(folder.name)
    if recipe is None and (folder / "Makefile").is_file():
        recipe = read_hecbench_recipe(folder)
    if recipe is None:
        return {}, "its makefile uses variables for its source files"
    words = [word for word in recipe.options if word != "--expt-relaxed-constexpr"]
    options = list(zip(words[::2], words[1::2], strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        target, request = Path(scratch) / "results", Path(scratch) / "request.json"
        target.touch()
        request.write_text(
            json.dumps({
                "folder": str(folder.resolve()), "files": recipe.files, "arguments": launches[0].arguments.split(),
                "include_dirs": [value for kind, value in options if kind == "-I"],
                # Clang, which built the measured programs, accepts constexpr host functions in device code.
                "defines": [(RELAXED_CONSTEXPR, "1"), *(parse_define(word) for kind, word in options if kind == "-D")],
                "wanted": [launch.key for launch in launches], "gpu": gpu,
                "target": str(target),
            }),
            "utf-8",
        )  # fmt: skip
        reason = _run_child(request, limit_s, Path(scratch) / "output")
        lines = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    return {line.pop("key"): line for line in lines}, reason


def _run_child(request: Path, limit_s: int, output: Path) -> str:
    """Run the child process, which prints to a file; return why launches may be missing from its results."""
    command = [sys.executable, "-m", "tools.public_benchmark.program", str(request)]
    try:
        with output.open("wb") as printed:
            process = subprocess.run(
                ["/bin/sh", "-c", f'ulimit -t {limit_s}; exec "$@"', "sh", *command],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE,
                timeout=_CLOCK_FACTOR * limit_s, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not launched within {_CLOCK_FACTOR * limit_s} s by the clock"
    if process.returncode in (-24, -9):
        return f"not launched within {limit_s} s of computing time"
    errors = process.stderr.decode(errors="replace").splitlines()
    messages = [line.removeprefix("lockstep: ") for line in errors if line.startswith("lockstep: ")]
    if messages:
        return re.sub(r"/\S*/", "", messages[0])
    if process.returncode < 0:
        return f"the program crashes: signal {-process.returncode}"
    last_line = next((line.strip() for line in reversed([*_read_end(output), *errors]) if line.strip()), "")
    return f"not launched; the program ends with {process.returncode}" + (f": {last_line}" if last_line else "")


def _read_end(output: Path) -> list[str]:
    """Return the last lines of a file."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - _OUTPUT_BYTES))
        return file.read().decode(errors="replace").splitlines()
