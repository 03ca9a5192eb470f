"""Run public CUDA programs on the simulator, and write docs/programs.md: python -m tools.program_check.

The programs are Rodinia's that need no data file, and a sample of HeCBench's that check their own result; with nvcc,
also the share of kernels compiled by nvcc that the front end lowers. Both collections are cloned for this run (from
`_SOURCES`), or read from `--rodinia` and `--hecbench`, and deleted afterwards. It takes about an hour; with
`--kept FOLDER` an interrupted run continues. Remove a file of that folder to measure its part again. With
`--cuda-samples FOLDER` only NVIDIA's samples in a clone of theirs run, and their section of the page is replaced.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gpu.base.paths import DOCS
from tools.public_programs import check_cost, cuda_samples, lowered_kernels
from tools.public_programs.lowered_kernels import CheckedFile
from tools.public_programs.program_command import LIMIT_S, run_program
from tools.public_programs.recipes import MAX_ARGUMENT, read_hecbench_recipe, reduce_arguments
from tools.public_programs.saved_results import SavedResults

PAGE = DOCS / "programs.md"
_SOURCES = {"rodinia": "https://github.com/yuhc/gpu-rodinia", "hecbench": "https://github.com/zjin-lcf/HeCBench"}
_KERNELS_HEADING = "## Kernels that nvcc compiles"
_SAMPLE = 60
_SEED = 1
_SOURCE_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".c")

_LIBRARIES = re.compile(
    r"#\s*include\s*[<\"](thrust/|cub/|cublas|cufft|cusparse|cusolver|curand\.h|cudnn|nccl|mpi|nvml|npp|mma|cutlass"
    r"|cuda/|cute/|nvrtc|GL/|boost/|opencv|omp\.h|cuco)"
)
_PASS_PATTERN = re.compile(r"\bPASS(ED)?\b|\bSUCCESS(FUL)?\b", re.IGNORECASE)
_REPORT = re.compile(r"lockstep: [\d,]+ launch")
"""The first line of the command's report."""
_LAUNCH_ERROR_TEXT = "ended with an error"
"""The command's message about a failed launch."""
_FAIL_PATTERN = re.compile(r"\bFAIL(ED|URE)?\b|\bmismatch", re.IGNORECASE)


@dataclass(frozen=True)
class CheckedProgram:
    """Result of a program.

    Parameters
    ----------
    correct : bool or None
        Whether it is correct; None if it prints no verdict.
    explanation : str
        The error; for a correct program what it was compared with, or "".
    """

    name: str
    correct: bool | None
    explanation: str = ""


@dataclass(frozen=True)
class RodiniaProgram:
    """A program of Rodinia, how to run it, and how to judge its output.

    Parameters
    ----------
    folder : str
        Folder below `cuda`.
    options : tuple of str
        Options of the command `program`.
    judging_method : str
        Method of `judge`; "" if only the exit code and the checkers count.
    judge : callable
        Returns the error in an output, or "".
    """

    folder: str
    files: tuple[str, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    judging_method: str
    judge: Callable[[str], str]


def _accept_output(output: str) -> str:
    """Accept any output: the program prints nothing that could be judged."""
    return ""


def _judge_lud(output: str) -> str:
    return "" if ">>>Verify<<<" in output and "dismatch" not in output else "the program finds a difference"


def _judge_pathfinder(output: str) -> str:
    """Judge the printed costs: the output has the weights, the first row again, and the least costs per column."""
    rows = [[int(x) for x in line.split()] for line in output.splitlines() if re.fullmatch(r"(\d+ )+", line)]
    if len(rows) < 3:
        return "it prints no paths"
    *weights, _, printed_costs = rows
    costs = weights[0]
    for row in weights[1:]:
        costs = [each + min(costs[max(index - 1, 0) : index + 2]) for index, each in enumerate(row)]
    differing = sum(a != b for a, b in zip(costs, printed_costs, strict=True))
    return "" if costs == printed_costs else f"{differing} paths differ"


RODINIA = (
    RodiniaProgram(
        "backprop", ("facetrain.c", "imagenet.c", "backprop.c", "backprop_cuda.cu"), ("1024",), (), "", _accept_output
    ),
    RodiniaProgram("gaussian", ("gaussian.cu",), ("-s", "16"), (), "", _accept_output),
    RodiniaProgram(
        "lavaMD",
        (
            *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "util/num/num.c", "util/timer/timer.c"),
            "util/device/device.cu",
        ),
        ("-boxes1d", "2"),
        ("-I", "."),
        "",
        _accept_output,
    ),
    RodiniaProgram(
        "lud/cuda",
        ("lud.cu", "../common/common.c", "lud_kernel.cu"),
        ("-s", "64", "-v"),
        ("-I", "../common"),
        "the program verifies its result",
        _judge_lud,
    ),
    RodiniaProgram("nw", ("needle.cu",), ("64", "10"), (), "", _accept_output),
    RodiniaProgram(
        "particlefilter",
        ("ex_particle_CUDA_naive_seq.cu",),
        ("-x", "32", "-y", "32", "-z", "4", "-np", "100"),
        (),
        "",
        _accept_output,
    ),
    RodiniaProgram(
        "particlefilter",
        ("ex_particle_CUDA_float_seq.cu",),
        ("-x", "32", "-y", "32", "-z", "4", "-np", "100"),
        (),
        "",
        _accept_output,
    ),
    RodiniaProgram(
        "pathfinder",
        ("pathfinder.cu",),
        ("100", "20", "5"),
        ("-D", "BENCH_PRINT"),
        "the costs equal those computed in Python",
        _judge_pathfinder,
    ),
    RodiniaProgram(
        "srad/srad_v2", ("srad.cu",), ("64", "64", "0", "31", "0", "31", "0.5", "2"), (), "", _accept_output
    ),
    RodiniaProgram(
        "streamcluster",
        ("streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu"),
        ("3", "5", "16", "256", "256", "100", "none", "output.txt", "1"),
        (),
        "",
        _accept_output,
    ),
)
"""Programs that need neither a data file nor OpenGL, with sizes for a simulation."""


def run_rodinia(program: RodiniaProgram, folder: Path) -> CheckedProgram:
    """Run a program of Rodinia."""
    where = folder / "cuda" / program.folder
    code, output, errors = run_program(where, program.files, ["--check", *program.options], program.arguments)
    name = f"{program.folder} {program.files[0]}"
    if code is None:
        return CheckedProgram(name, False, errors)
    first_finding = re.search(r"^1\. (.*(?:\n   \S.*)*)", errors, re.MULTILINE)
    has_findings = re.search(r"; (\d+) findings?\.", errors)
    if code not in (0, 1) or (code and has_findings is None):
        return CheckedProgram(name, False, _failure_reason(code, output, errors))
    if has_findings is not None and first_finding is not None:
        return CheckedProgram(name, False, " ".join(first_finding[1].split()))
    reason = program.judge(output)
    return CheckedProgram(name, not reason, reason or program.judging_method)


def list_hecbench_programs(folder: Path) -> list[Path]:
    """Return the folders of the programs that check their own result and need neither data nor a library."""
    folders = []
    for makefile in sorted((folder / "src").glob("*-cuda/Makefile")):
        recipe = read_hecbench_recipe(makefile.parent)
        if recipe is None or not all(_is_not_file_name(word) for word in recipe.arguments):
            continue
        texts = [
            path.read_text("utf-8", "replace") for path in makefile.parent.rglob("*") if path.suffix in _SOURCE_SUFFIXES
        ]
        if any(re.search(r"\bPASS", text) for text in texts) and not any(_LIBRARIES.search(text) for text in texts):
            folders.append(makefile.parent)
    return folders


def _is_not_file_name(word: str) -> bool:
    """Return whether an argument is not a file name."""
    is_number = re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", word) is not None
    return is_number or not ("/" in word or "." in word)


def run_hecbench(folder: Path) -> CheckedProgram:
    """Run a program of HeCBench, and use its own verdict."""
    recipe = read_hecbench_recipe(folder)
    assert recipe is not None
    code, output, errors = run_program(
        folder, recipe.files, ["--fast", *recipe.options], reduce_arguments(recipe.arguments)
    )
    name = folder.name.removesuffix("-cuda")
    if code is None:
        return CheckedProgram(name, False, errors)
    if (
        code == 0
        and not _FAIL_PATTERN.search(output)
        and not _PASS_PATTERN.search(output)
        and _LAUNCH_ERROR_TEXT not in errors
    ):
        return CheckedProgram(name, None, "prints no verdict")
    if code or _FAIL_PATTERN.search(output) or not _PASS_PATTERN.search(output):
        return CheckedProgram(name, False, _failure_reason(code, output, errors))
    if _LAUNCH_ERROR_TEXT in errors:
        return CheckedProgram(name, False, "a launch ended with an error")
    return CheckedProgram(name, True)


def _failure_reason(code: int, output: str, errors: str) -> str:
    printed = [line for line in errors.splitlines() if not _REPORT.match(line)]
    lines = [line for line in printed if line.startswith("lockstep: ")]
    lines = [line for line in lines if "In file included" not in line and "In function" not in line]
    error_lines = [line for line in printed if "error" in line or "undefined reference" in line]
    wrong = _FAIL_PATTERN.search(output)
    verdict = [output[wrong.start() :].partition("\n")[0]] if wrong else []
    text = (*lines, *error_lines, *verdict, f"it ends with {code}")[0]
    return text.removeprefix("lockstep: ")


@dataclass
class ProgramResults:
    """Contents of the page.

    Parameters
    ----------
    candidates : int
        Programs of HeCBench from which the sample is drawn.
    left_out : int
        Programs of the sample that did not run in time.
    kernels : dict of str to list of CheckedFile
        By the collection and the sample; empty without nvcc.
    """

    rodinia: list[CheckedProgram] = field(default_factory=list)
    hecbench: list[CheckedProgram] = field(default_factory=list)
    candidates: int = 0
    left_out: int = 0
    kernels: dict[str, list[CheckedFile]] = field(default_factory=dict)


def format_page(results: ProgramResults, day: str) -> str:
    """Return the text of the page."""
    return "\n".join((*_program_lines(results, day), *_kernel_lines(results.kernels))) + "\n"


def _program_lines(results: ProgramResults, day: str) -> Iterator[str]:
    yield "# CUDA programs on the simulator"
    yield ""
    yield f"`make program_check` clones public programs ([Rodinia]({_SOURCES['rodinia']}),"
    yield f"[HeCBench]({_SOURCES['hecbench']})), runs them unchanged with `python main.py program`,"
    yield f"and writes this page. Date of this run: {day}."
    yield ""
    yield "| programs | correct | of | share |"
    yield "| --- | ---: | ---: | ---: |"
    for name, each in (("Rodinia", results.rodinia), ("HeCBench", results.hecbench)):
        correct, total = _count_correct(each)
        yield f"| {name} | {correct} | {total} | {100 * correct / max(total, 1):.0f}% |"
    yield ""
    yield "*Rodinia*: all programs that need neither a data file nor OpenGL, with small sizes. A program is correct if"
    yield "it ends normally, the checkers find nothing, and its output equals the reference, if there is one."
    yield f"The limit is {LIMIT_S} s of computing time, summed over all threads."
    yield ""
    yield "| Rodinia | |"
    yield "| --- | --- |"
    for program in results.rodinia:
        note = f" {note}" if (note := _NOTES.get(program.name, "")) and not program.correct else ""
        verdict = "correct" if program.correct else "not correct"
        yield f"| `{program.name}` | {verdict}{_format_explanation(program.explanation)}{note} |"
    yield ""
    sample_size = len(results.hecbench)
    yield f"*HeCBench*: {sample_size} programs, drawn at random from the {results.candidates} that print PASS if their"
    yield "own host code accepts the result, and need neither a file nor a library."
    yield "Repetitions for measurements run once. Arguments are halved until they are at most"
    yield f"{MAX_ARGUMENT:,}. Kernels run with"
    silent = [f"`{program.name}`" for program in results.hecbench if program.correct is None]
    yield f"`--fast`. Not counted, since they print no verdict for these arguments: {', '.join(silent) or 'none'}."
    if results.left_out:
        yield ""
        yield f"{results.left_out} more of the sample did not run within the time limit."
    yield ""
    correct_names = ", ".join(f"`{program.name}`" for program in results.hecbench if program.correct)
    yield from cuda_samples.wrap_text(f"Correct: {correct_names}.")
    yield ""
    yield "| not correct | why |"
    yield "| --- | --- |"
    for program in results.hecbench:
        if program.correct is False:
            why, note = _shorten(program.explanation), _NOTES.get(program.name, "")
            yield f"| `{program.name}` | {why.removesuffix('.') + '. ' + note if note else why} |"


_NOTES = {
    "srad/srad_v2 srad.cu": "The finding is an error of the program: threads of the first row of blocks read above the"
    " image before the value is replaced by the image's own.",
    "glu": "It does not check whether its two arrays of 4 GiB were allocated.",
    "merge": "It indexes shared memory by the complement of an unsigned number, 16 GiB away: with 32-bit addresses, as"
    " in a GPU's shared memory, the index wraps around.",
    "unfold": "It adds to uninitialized memory, as `--check` reports; on a GPU that is often zero.",
}
"""Remarks on programs that are not correct."""


def _kernel_lines(kernels: Mapping[str, Sequence[CheckedFile]]) -> Iterator[str]:
    yield ""
    yield _KERNELS_HEADING
    yield ""
    if not kernels:
        yield "Not measured, since nvcc is not installed."
        return
    yield "The table compares, for all files that nvcc compiles, the kernels for which nvcc generates machine code with"
    yield "those that the simulator's front end lowers. Templates count as launched."
    yield "Kernels of the toolkit's headers do not count."
    yield ""
    yield "| files | | kernels | lowered | share |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, files in kernels.items():
        lowered, count = sum(len(each.lowered) for each in files), sum(each.count for each in files)
        yield f"| {name} | {len(files)} | {count} | {lowered} | {100 * lowered / max(count, 1):.1f}% |"
    yield ""
    yield "| not lowered | kernel | why |"
    yield "| --- | --- | --- |"
    listed: set[tuple[str, str]] = set()
    for files in kernels.values():
        for file in files:
            for kernel, why in file.refused.items():
                if (file.name, kernel) not in listed:
                    listed.add((file.name, kernel))
                    yield f"| {file.name} | `{_shorten_line(kernel, 60)}` | {_shorten(why)} |"


def _format_explanation(explanation: str) -> str:
    return f": {_shorten(explanation)}" if explanation else ""


def _shorten(reason: str, letters: int = 160) -> str:
    """Return a reason on one line of at most `letters` letters, as Markdown of a table's cell."""
    line = _shorten_line(reason, letters)
    for special in ("<", "__", "|"):
        line = line.replace(special, "".join(f"\\{letter}" for letter in special))
    return line


def _shorten_line(text: str, letters: int) -> str:
    """Return a text on one line of at most `letters` letters, without the folders of absolute paths."""
    line = " ".join(re.sub(r"(?<![:/\w])/\S*/", "", text).split())
    return line if len(line) <= letters else f"{line[: letters - 3]}..."


def _clone_collection(name: str, folder: Path | None, parent: Path) -> Path:
    if folder is not None:
        return folder
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", _SOURCES[name], str(parent / name)], check=True)
    return parent / name


def _run_all(
    jobs: Mapping[str, Callable[[], CheckedProgram]], saved: SavedResults, deadline: float, pool: ThreadPoolExecutor
) -> list[CheckedProgram]:
    """Run the jobs without a result until a deadline; return all results known then."""
    lock = threading.Lock()

    def run_one(key: str) -> None:
        if key in saved.results or time.monotonic() >= deadline:
            return
        program = _print_result(jobs[key]())
        with lock:
            saved.add(key, [program.name, program.correct, program.explanation])

    list(pool.map(run_one, jobs))
    return [CheckedProgram(*saved.results[key]) for key in jobs if key in saved.results]


def _check_kernels(
    tops: Mapping[str, Path], folder: Path | None, sample: int, pool: ThreadPoolExecutor
) -> dict[str, list[CheckedFile]]:
    """Lower the kernels that nvcc compiles: all of Rodinia, and two samples of HeCBench."""
    results = SavedResults(folder, "kernels")
    tables: dict[str, list[CheckedFile]] = {}
    for title, name, within, seed, sample_size in (
        ("Rodinia", "rodinia", "cuda", 1, sys.maxsize),
        ("HeCBench, the sample used to improve the front end", "hecbench", "src/*-cuda", 1, sample),
        ("HeCBench, another sample", "hecbench", "src/*-cuda", 2, sample),
    ):
        top, symbols = tops[name], SavedResults(folder, f"nvcc_{name}")
        files = lowered_kernels.list_cuda_files(top, within)
        picked = lowered_kernels.sample_files(files, top, sample_size, seed, symbols.results, symbols.save)

        def check(each: tuple[Path, list[str]], top: Path = top, name: str = name) -> CheckedFile:
            key = f"{name}/{each[0].relative_to(top)}"
            if key not in results.results:
                file = lowered_kernels.check_file(each[0], top, each[1])
                results.results[key] = [file.name, file.lowered, file.refused]
            label, lowered, refused = results.results[key]
            return CheckedFile(label, tuple(lowered), refused)

        tables[title] = list(pool.map(check, picked))
        results.save()
        print(f"{title}: {sum(len(each.lowered) for each in tables[title])} kernels lowered", flush=True)
    return tables


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.program_check", description="public programs, simulated")
    for name, address in _SOURCES.items():
        parser.add_argument(f"--{name}", metavar="FOLDER", type=Path, help=f"folder of {address}, instead of a clone")
    parser.add_argument(
        "--sample", metavar="N", type=int, default=_SAMPLE, help="programs of HeCBench to run (default: %(default)s)"
    )
    parser.add_argument(
        "--files",
        metavar="N",
        type=int,
        default=lowered_kernels.SAMPLE,
        help="files of HeCBench per sample of kernels; 0 keeps the page's section (default: %(default)s)",
    )
    parser.add_argument(
        "--minutes",
        metavar="M",
        type=float,
        default=math.inf,
        help="start no program after this time (default: no limit)",
    )
    parser.add_argument(
        "--cuda-samples",
        metavar="FOLDER",
        type=Path,
        help=f"run only the samples in this clone of {cuda_samples.ADDRESS}",
    )
    parser.add_argument(
        "--limit",
        metavar="S",
        type=float,
        default=cuda_samples.LIMIT_S,
        help="limit of a CUDA sample, in seconds of processor time (default: %(default)s)",
    )
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="folder for results; a later run continues from it")
    return parser


def _check_collections(options: argparse.Namespace, deadline: float) -> ProgramResults:
    """Run the programs of the collections until a deadline, and lower their kernels."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        tops = {name: _clone_collection(name, getattr(options, name), Path(folder)) for name in _SOURCES}
        kept = SavedResults(options.kept, "programs")
        candidates = list_hecbench_programs(tops["hecbench"])
        sample = sorted(random.Random(_SEED).sample(candidates, min(options.sample, len(candidates))))
        found = ProgramResults(candidates=len(candidates))
        rodinia_jobs = {
            f"rodinia/{each.folder}/{each.files[0]}": partial(run_rodinia, each, tops["rodinia"]) for each in RODINIA
        }
        found.rodinia = _run_all(rodinia_jobs, kept, deadline, pool)
        found.hecbench = _run_all(
            {f"hecbench/{each.name}": partial(run_hecbench, each) for each in sample}, kept, deadline, pool
        )
        found.left_out = len(sample) - len(found.hecbench)
        if lowered_kernels.has_nvcc() and options.files:
            found.kernels = _check_kernels(tops, options.kept, options.files, pool)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, and write the page; return 0 if the shares of correct programs reach their goals."""
    options = _create_parser().parse_args(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    if options.cuda_samples is not None:
        return _check_cuda_samples(options.cuda_samples, options.kept, options.limit, deadline)
    found = _check_collections(options, deadline)
    old = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    page = format_page(found, datetime.date.today().isoformat())
    kept = (*([] if options.files else [_KERNELS_HEADING]), cuda_samples.HEADING, check_cost.HEADING)
    for heading in kept:
        page = cuda_samples.replace_section(page, cuda_samples.get_section(old, heading), heading)
    PAGE.write_text(page, "utf-8")
    shares = [
        correct / max(total, 1) for correct, total in (_count_correct(found.rodinia), _count_correct(found.hecbench))
    ]
    return 0 if shares[0] >= 0.8 and shares[1] >= 0.75 else 1


def _check_cuda_samples(folder: Path, kept: Path | None, limit_s: float, deadline: float) -> int:
    """Run NVIDIA's samples one by one, and replace their section of the page; return 1 if there are none."""
    samples = cuda_samples.list_samples(folder)
    if not samples:
        print(f"{folder} has no CUDA samples; clone {cuda_samples.ADDRESS} there.", file=sys.stderr)
        return 1
    saved = SavedResults(kept, "cuda_samples")
    for sample in samples:
        if sample.name not in saved.results and time.monotonic() < deadline:
            day = datetime.date.today().isoformat()
            result = dataclasses.replace(cuda_samples.run_sample(sample, limit_s), day=day)
            print(f"{sample.name}: {result.outcome} {result.reason}".rstrip(), flush=True)
            saved.add(sample.name, dataclasses.astuple(result))
    results = [
        cuda_samples.SampleResult(*saved.results[sample.name]) for sample in samples if sample.name in saved.results
    ]
    section = cuda_samples.format_section(results, len(samples), datetime.date.today().isoformat(), limit_s)
    PAGE.write_text(cuda_samples.replace_section(PAGE.read_text("utf-8"), section), "utf-8")
    return 0


def _count_correct(programs: Sequence[CheckedProgram]) -> tuple[int, int]:
    """Return the number of correct programs, and of programs with a verdict."""
    return sum(program.correct is True for program in programs), sum(
        program.correct is not None for program in programs
    )


_VERDICT_TEXTS = {True: "correct", False: "not correct", None: "unknown"}


def _print_result(program: CheckedProgram) -> CheckedProgram:
    print(f"{program.name}: {_VERDICT_TEXTS[program.correct]} {program.explanation}".rstrip(), flush=True)
    return program


if __name__ == "__main__":
    sys.exit(main())
