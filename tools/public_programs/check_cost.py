"""Measure what checks cost on public programs: python -m tools.public_programs.check_cost HECBENCH SAMPLES.

HECBENCH is a clone of HeCBench, SAMPLES one of NVIDIA's CUDA samples. The processor time of each program is measured in
four runs: as machine code with an empty cache, as machine code again, in lockstep without checks, and with `--check`.
The results replace their section of docs/programs.md.
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
from tools.public_programs import cuda_samples
from tools.public_programs.cuda_samples import measure_children, wrap_text
from tools.public_programs.program_command import run_program
from tools.public_programs.recipes import read_hecbench_recipe, reduce_arguments
from tools.public_programs.saved_results import SavedResults

PAGE = DOCS / "programs.md"
HEADING = "## Cost of checks"
PROGRAMS = (
    *("blockAccess", "cross", "layout", "matrixT", "overlay", "nlll", "threadfence", "burger", "eigenvalue", "fpc"),
    *("gaussian", "iso2dfd", "mrc", "present", "qem", "rfs", "wedford", "vol2col", "tensorAccessor", "split", "rtm8"),
    *("f16max", "fft", "fwt", "histogram", "crossEntropy", "chemv", "libor", "moe-sum", "sobol", "epistasis"),
    *("gelu", "nw", "upsample", "pointwise", "scatter", "aligned-types", "asmooth", "graphExecution", "qrg"),
    *("bitpermute", "asta", "fdtd3d", "minisweep", "radixsort", "secp256k1"),
)
"""Programs of HeCBench that are correct on the simulator, cheap ones first."""
SAMPLES = (
    *("asyncAPI", "clock", "cudaOpenMP", "fp16ScalarProduct", "mergeSort", "simpleAtomicIntrinsics"),
    *("simpleCallback", "simpleCooperativeGroups", "simpleLayeredTexture", "simpleMultiGPU", "simpleOccupancy"),
    *("simplePrintf", "simpleSurfaceWrite", "simpleTemplates", "simpleTexture", "simpleVoteIntrinsics"),
    *("simpleZeroCopy", "systemWideAtomics", "template", "vectorAdd", "matrixMul", "MC_EstimatePiInlineP"),
    *("MC_SingleAsianOptionP", "inlinePTX", "streamOrderedAllocation", "StreamPriorities", "cdpAdvancedQuicksort"),
    *("globalToShmemAsyncCopy", "graphMemoryNodes", "graphConditionalNodes", "cudaGraphsPerfScaling", "lineOfSight"),
    *("simpleStreams", "simplePitchLinearTexture", "reductionMultiBlockCG", "shfl_scan", "threadFenceReduction"),
    *("binaryPartitionCG", "cdpBezierTessellation", "cdpSimplePrint", "cdpSimpleQuicksort", "simpleCudaGraphs"),
    *("warpAggregatedAtomicsCG", "conjugateGradientMultiBlockCG", "FDTD3d", "SobolQRNG", "binomialOptions", "dxtc"),
    *("fastWalshTransform", "quasirandomGenerator", "transpose", "alignedTypes", "convolutionSeparable", "dct8x8"),
    *("eigenvalues", "histogram", "reduction", "scalarProd", "scan", "sortingNetworks", "stereoDisparity"),
)
"""CUDA samples that pass and need no file from a build."""
_LIMIT_S = 20
"""Limit of an unchecked run; a program that exceeds it is not measured."""
_GOAL = 10
"""The most times that a checked run should take as long as an unchecked one."""


@dataclass(frozen=True)
class Cost:
    """Processor time of a program's runs in seconds, with compilation and start.

    Parameters
    ----------
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


@dataclass(frozen=True)
class _Program:
    """A program, and how to run it."""

    name: str
    folder: Path
    files: Sequence[str]
    options: Sequence[str]
    arguments: Sequence[str]


def _list_programs(hecbench: Path, samples: Path) -> Iterator[_Program]:
    for name in PROGRAMS:
        folder = hecbench / "src" / f"{name}-cuda"
        recipe = read_hecbench_recipe(folder)
        assert recipe is not None
        yield _Program(name, folder, recipe.files, recipe.options, reduce_arguments(recipe.arguments))
    folders = {folder.name: folder for folder in cuda_samples.list_samples(samples)}
    for name in SAMPLES:
        sources, arguments = cuda_samples.list_sources(folders[name]), cuda_samples.ARGUMENTS.get(name, ())
        yield _Program(f"{name} (sample)", folders[name], sources, (), arguments)


def _measure_cost(program: _Program) -> Cost | None:
    """Measure a program; return None if it does not end normally or exceeds the limit without checks."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, LOCKSTEP_CACHE=cache):
        for options in (["--fast"], ["--fast"], [], ["--check"]):
            is_checked = "--check" in options
            before = measure_children()
            limit_s = math.ceil(_GOAL * times[-1]) if is_checked else _LIMIT_S
            words = [*options, *program.options]
            code, _, _ = run_program(program.folder, program.files, words, program.arguments, limit_s)
            times.append(measure_children() - before if code is not None else math.inf)
            if code != 0 and not is_checked:
                return None
    return Cost(program.name, *times)


def format_section(costs: Sequence[Cost], day: str) -> str:
    """Return the section of the page, with a newline at its end."""
    return "\n".join((*_section_lines(costs, day), ""))


def _section_lines(costs: Sequence[Cost], day: str) -> Iterator[str]:
    ratios = [cost.ratio for cost in costs]
    slower = [f"`{cost.name}`" for cost in costs if cost.ratio > _GOAL]
    yield HEADING
    yield ""
    yield from wrap_text(
        "`python -m tools.public_programs.check_cost HECBENCH SAMPLES` runs programs of HeCBench and NVIDIA's samples"
        f" in clones, and writes this section. Date of this run: {day}. Times are processor time of the whole command,"
        f" with its start, in seconds. A run with `--check` takes {statistics.median(ratios):.1f} times as long as one"
        f" without options, which also runs in lockstep, in the median of {len(costs)} programs, at most"
        f" {max(ratios):.1f} times. The start takes about a second of each run, which lowers the ratio of short ones."
        f" More than {_GOAL} times: {', '.join(slower) or 'none'}. `--fast` runs machine code"
        " instead, without checks; its second run takes the host code and the kernels from the cache, and needs"
        f" {_format_share(costs)} of the first run's time in the median. {len(PROGRAMS) + len(SAMPLES) - len(costs)}"
        f" more programs were not measured: an unchecked run exceeds {_LIMIT_S} s, or the time for the measurement"
        " ended before."
    )
    yield ""
    yield "| program | `--fast`, empty cache | `--fast` again | no option | `--check` | ratio |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for cost in costs:
        times = " | ".join(
            f"{each:.1f}" for each in (cost.first, cost.second, cost.unchecked, cost.checked, cost.ratio)
        )
        yield f"| `{cost.name}` | {times} |"


def _format_share(costs: Sequence[Cost]) -> str:
    return f"{statistics.median(cost.second / cost.first for cost in costs):.0%}"


def _measure_all(programs: Sequence[_Program], kept: Path | None, deadline: float) -> list[Cost]:
    """Measure the programs without a result until a deadline; return all costs known then."""
    saved = SavedResults(kept, "check_cost")
    for program in programs:
        if program.name in saved.results or time.monotonic() >= deadline:
            continue
        cost = _measure_cost(program)
        print(cost if cost is not None else f"{program.name}: not measured", file=sys.stderr, flush=True)
        saved.add(program.name, dataclasses.astuple(cost) if cost is not None else None)
    known = [saved.results.get(program.name) for program in programs]
    return [Cost(*values) for values in known if values]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the programs and write the section; return 1 if a checked run takes too many times as long."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_programs.check_cost", description="cost of checks")
    parser.add_argument("hecbench", metavar="HECBENCH", type=Path, help="folder of a clone of HeCBench")
    parser.add_argument("samples", metavar="SAMPLES", type=Path, help="folder of a clone of NVIDIA's CUDA samples")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="folder for results; a later run continues from it")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="start no program after this time")
    options = parser.parse_args(arguments)
    programs = list(_list_programs(options.hecbench, options.samples))
    costs = _measure_all(programs, options.kept, time.monotonic() + 60 * options.minutes)
    if costs:
        section = format_section(costs, datetime.date.today().isoformat())
        PAGE.write_text(cuda_samples.replace_section(PAGE.read_text("utf-8"), section, HEADING), "utf-8")
    return 0 if costs and all(cost.ratio <= _GOAL for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
