"""Run public CUDA programs on the simulator, and write docs/programs.md: python -m tools.program_check.

Rodinia's programs that need no file of data, and a sample of HeCBench's that check their own result; and where nvcc is
here, which kernels of what it compiles the front end lowers. Both are cloned for this run (`_SOURCES` says from where),
or read where `--rodinia` and `--hecbench` say; nothing of them is kept. It takes about an hour; with `--kept FOLDER` a
run that was ended goes on where it was. Remove a file of that folder to have its part measured anew.
"""

from __future__ import annotations

import argparse
import datetime
import json
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
from typing import Any

from tools import lowered_kernels
from tools.lowered_kernels import CheckedFile

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "programs.md"
_SOURCES = {"rodinia": "https://github.com/yuhc/gpu-rodinia", "hecbench": "https://github.com/zjin-lcf/HeCBench"}
_SECONDS = 120
"""Of a processor's computing, all threads together, that a program may take: other work does not count against it."""
_CLOCK_SECONDS = 15 * _SECONDS
"""By the clock, for one that waits without end."""
_SAMPLE = 60
_SEED = 1
_LARGEST = 1 << 10
"""What a number among a program's arguments is halved down to: they are for GPUs."""

_REPEATED = 10_000
"""What a program's only argument is at most where it says how often a kernel is run."""
_SOURCE_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".c")

_LIBRARIES = re.compile(
    r"#\s*include\s*[<\"](thrust/|cub/|cublas|cufft|cusparse|cusolver|curand\.h|cudnn|nccl|mpi|nvml|npp|mma|cutlass"
    r"|cuda/|cute/|nvrtc|GL/|boost/|opencv|omp\.h|cuco)"
)
_SAYS_RIGHT = re.compile(r"\bPASS(ED)?\b|\bSUCCESS(FUL)?\b", re.IGNORECASE)
_MISTAKE = "ended by a mistake"
"""What the command says of a launch."""
_SAYS_WRONG = re.compile(r"\bFAIL(ED|URE)?\b|\bmismatch", re.IGNORECASE)


@dataclass(frozen=True)
class CheckedProgram:
    """What came of a program.

    Parameters
    ----------
    name : str
    right : bool or None
        None where it does not say.
    why : str
        What was wrong; of a right one what it was compared with, or "".
    """

    name: str
    right: bool | None
    why: str = ""


@dataclass(frozen=True)
class RodiniaProgram:
    """A program of Rodinia's, how it is run, and what tells that it is right.

    Parameters
    ----------
    folder : str
        Below `cuda`.
    files : tuple of str
    arguments : tuple of str
    options : tuple of str
        Of the command `program`.
    judged_by : str
        What tells that it is right, besides that it ends well and no checker finds anything; may be empty.
    judge : callable
        Returns of the output what is wrong with it; "" where nothing is.
    """

    folder: str
    files: tuple[str, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    judged_by: str
    judge: Callable[[str], str]


def _ends(said: str) -> str:
    """Nothing is printed that could be judged."""
    return ""


def _lud(said: str) -> str:
    return "" if ">>>Verify<<<" in said and "dismatch" not in said else "its own check finds a difference"


def _pathfinder(said: str) -> str:
    """The weights are printed, the first row behind them, and the least costs to reach the last row."""
    rows = [[int(x) for x in line.split()] for line in said.splitlines() if re.fullmatch(r"(\d+ )+", line)]
    if len(rows) < 3:
        return "it prints no paths"
    *weights, _, found = rows
    costs = weights[0]
    for row in weights[1:]:
        costs = [each + min(costs[max(place - 1, 0) : place + 2]) for place, each in enumerate(row)]
    return "" if costs == found else f"{sum(a != b for a, b in zip(costs, found, strict=True))} paths differ"


RODINIA = (
    RodiniaProgram(
        "backprop", ("facetrain.c", "imagenet.c", "backprop.c", "backprop_cuda.cu"), ("1024",), (), "", _ends
    ),
    RodiniaProgram("gaussian", ("gaussian.cu",), ("-s", "16"), (), "", _ends),
    RodiniaProgram(
        "lavaMD",
        (
            *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "util/num/num.c", "util/timer/timer.c"),
            "util/device/device.cu",
        ),
        ("-boxes1d", "2"),
        ("-I", "."),
        "",
        _ends,
    ),
    RodiniaProgram(
        "lud/cuda",
        ("lud.cu", "../common/common.c", "lud_kernel.cu"),
        ("-s", "64", "-v"),
        ("-I", "../common"),
        "its own check",
        _lud,
    ),
    RodiniaProgram("nw", ("needle.cu",), ("64", "10"), (), "", _ends),
    RodiniaProgram(
        "particlefilter",
        ("ex_particle_CUDA_naive_seq.cu",),
        ("-x", "32", "-y", "32", "-z", "4", "-np", "100"),
        (),
        "",
        _ends,
    ),
    RodiniaProgram(
        "particlefilter",
        ("ex_particle_CUDA_float_seq.cu",),
        ("-x", "32", "-y", "32", "-z", "4", "-np", "100"),
        (),
        "",
        _ends,
    ),
    RodiniaProgram(
        "pathfinder",
        ("pathfinder.cu",),
        ("100", "20", "5"),
        ("-D", "BENCH_PRINT"),
        "least costs, in Python",
        _pathfinder,
    ),
    RodiniaProgram("srad/srad_v2", ("srad.cu",), ("64", "64", "0", "31", "0", "31", "0.5", "2"), (), "", _ends),
    RodiniaProgram(
        "streamcluster",
        ("streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu"),
        ("3", "5", "16", "256", "256", "100", "none", "output.txt", "1"),
        (),
        "",
        _ends,
    ),
)
"""Those that need neither a file of data nor OpenGL, with the sizes of a simulation."""


def run_rodinia(program: RodiniaProgram, folder: Path) -> CheckedProgram:
    """Run a program of Rodinia's."""
    where = folder / "cuda" / program.folder
    code, said, complained = _program(where, program.files, ["--check", *program.options], program.arguments)
    name = f"{program.folder} {program.files[0]}"
    if code is None:
        return CheckedProgram(name, False, complained)
    found = re.search(r"^1\. (.*(?:\n   \S.*)*)", complained, re.MULTILINE)
    wrong = re.search(r"; (\d+) findings?\.", complained)
    if code not in (0, 1) or (code and wrong is None):
        return CheckedProgram(name, False, _reason(code, said, complained))
    if wrong is not None and found is not None:
        return CheckedProgram(name, False, " ".join(found[1].split()))
    why = program.judge(said)
    return CheckedProgram(name, not why, why or program.judged_by)


def hecbench_programs(folder: Path) -> list[Path]:
    """Return the folders of the programs that check their own result, and need neither data nor a library."""
    found = []
    for makefile in sorted((folder / "src").glob("*-cuda/Makefile")):
        recipe = hecbench_recipe(makefile.parent)
        if recipe is None or not all(_is_plain(word) for word in recipe.arguments):
            continue
        texts = [
            path.read_text("utf-8", "replace") for path in makefile.parent.rglob("*") if path.suffix in _SOURCE_SUFFIXES
        ]
        if any(re.search(r"\bPASS", text) for text in texts) and not any(_LIBRARIES.search(text) for text in texts):
            found.append(makefile.parent)
    return found


def _is_plain(word: str) -> bool:
    """Whether an argument names no file."""
    is_number = re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", word) is not None
    return is_number or not ("/" in word or "." in word)


@dataclass(frozen=True)
class Recipe:
    """What a makefile says of a program.

    Parameters
    ----------
    files, arguments, options : tuple of str
        Its sources, what it is run with, and what the compiler is given of -I and -D.
    """

    files: tuple[str, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...]


def hecbench_recipe(folder: Path) -> Recipe | None:
    """Return how a program is made and run; None where its makefile does not say so in plain words."""
    text = (folder / "Makefile").read_text("utf-8", "replace").replace("\\\n", " ")
    files = [word for line in re.findall(r"^(?:\w+_)?source\s*=\s*(.+)$", text, re.MULTILINE) for word in line.split()]
    command = re.search(r"^run:.*\n(?:\t.*\n)*?\t.*?\./\S+[ \t]*(.*)", text, re.MULTILINE)
    if not files or command is None or any("$" in word or not (folder / word).is_file() for word in files):
        return None
    arguments = re.split(r"[|>;&#]", command[1])[0].split()
    flags = [word for line in re.findall(r"^CFLAGS\s*[:+]?=\s*(.*)$", text, re.MULTILINE) for word in line.split()]
    options = [word for word in flags if word[:2] in ("-I", "-D") and "$" not in word and word != "-DDEBUG"]
    return Recipe(tuple(files), tuple(arguments), tuple(part for word in options for part in (word[:2], word[2:])))


def smaller(arguments: Sequence[str]) -> list[str]:
    """Return arguments for a simulation: what is done again and again once, and large numbers halved until they fit."""
    made = list(arguments)
    for place, word in enumerate(made):
        if word.isdigit():
            number = int(word)
            while number > _LARGEST:
                number //= 2
            made[place] = str(number)
    if made and made[-1].isdigit():
        made[-1] = "1" if len(made) > 1 or int(arguments[-1]) <= _REPEATED else made[-1]
    return made


def run_hecbench(folder: Path) -> CheckedProgram:
    """Run a program of HeCBench's, and take it at its word."""
    recipe = hecbench_recipe(folder)
    assert recipe is not None
    code, said, complained = _program(folder, recipe.files, ["--fast", *recipe.options], smaller(recipe.arguments))
    name = folder.name.removesuffix("-cuda")
    if code is None:
        return CheckedProgram(name, False, complained)
    if code == 0 and not _SAYS_WRONG.search(said) and not _SAYS_RIGHT.search(said) and _MISTAKE not in complained:
        return CheckedProgram(name, None, "prints no verdict")
    if code or _SAYS_WRONG.search(said) or not _SAYS_RIGHT.search(said):
        return CheckedProgram(name, False, _reason(code, said, complained))
    if _MISTAKE in complained:
        return CheckedProgram(name, False, "a launch ended by a mistake")
    return CheckedProgram(name, True)


def _reason(code: int, said: str, complained: str) -> str:
    lines = [line for line in complained.splitlines() if line.startswith("lockstep: ") and "launch" not in line[:40]]
    lines = [line for line in lines if "In file included" not in line and "In function" not in line]
    errors = [line for line in complained.splitlines() if "error" in line or "undefined reference" in line]
    wrong = _SAYS_WRONG.search(said)
    text = (*lines, *errors, *([said[wrong.start() :].partition("\n")[0]] if wrong else []), f"it ends with {code}")[0]
    return text.removeprefix("lockstep: ")


def _program(
    folder: Path, files: Sequence[str], options: Sequence[str], arguments: Sequence[str]
) -> tuple[int | None, str, str]:
    """Return a program's exit code and what it said; of one that took too long None, and that."""
    command = [sys.executable, str(ROOT / "main.py"), "program", *files, *options, "--", *arguments]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {_SECONDS}; exec "$@"', "sh", *command],
            cwd=folder, capture_output=True, timeout=_CLOCK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "", f"it does not end within {_CLOCK_SECONDS // 60} minutes by the clock"
    if re.search("SIGXCPU|crashed: SIGKILL", done.stderr.decode(errors="replace")):
        return None, "", f"it computes for more than {_SECONDS} s"
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@dataclass
class Findings:
    """What the page tells.

    Parameters
    ----------
    rodinia, hecbench : list of CheckedProgram
    candidates : int
        The programs of HeCBench's that the sample is drawn from.
    left_out : int
        Those of the sample that had no time to run.
    kernels : dict of str to list of CheckedFile
        By the collection and the sample; empty where there is no nvcc.
    """

    rodinia: list[CheckedProgram] = field(default_factory=list)
    hecbench: list[CheckedProgram] = field(default_factory=list)
    candidates: int = 0
    left_out: int = 0
    kernels: dict[str, list[CheckedFile]] = field(default_factory=dict)


def page(found: Findings, day: str) -> str:
    """Return the text of the page."""
    return "\n".join((*_of_programs(found, day), *_of_kernels(found.kernels))) + "\n"


def _of_programs(found: Findings, day: str) -> Iterator[str]:
    yield "# CUDA programs on the simulator"
    yield ""
    yield f"`make program_check` clones public programs ([Rodinia]({_SOURCES['rodinia']}),"
    yield f"[HeCBench]({_SOURCES['hecbench']})), runs them unchanged with `python main.py program`,"
    yield f"and writes this page. This one is of {day}."
    yield ""
    yield "| programs | right | of | share |"
    yield "| --- | ---: | ---: | ---: |"
    for name, each in (("Rodinia", found.rodinia), ("HeCBench", found.hecbench)):
        right, all_told = _counted(each)
        yield f"| {name} | {right} | {all_told} | {100 * right / max(all_told, 1):.0f} % |"
    yield ""
    yield "Of Rodinia all that need neither a file of data nor OpenGL, with the sizes of a simulation: one is right"
    yield "that ends well while no checker finds anything, and gives what it is compared with, where that is said."
    yield f"None may compute for more than {_SECONDS} s, all threads of a processor together."
    yield ""
    yield "| Rodinia | |"
    yield "| --- | --- |"
    for program in found.rodinia:
        note = f" {note}" if (note := _NOTES.get(program.name, "")) and not program.right else ""
        yield f"| `{program.name}` | {'right' if program.right else 'not right'}{_also(program.why)}{note} |"
    yield ""
    yield f"Of HeCBench {len(found.hecbench)} drawn at random from the {found.candidates} that print PASS for a result"
    yield "that their own host code finds right, and need neither a file nor a library. What is repeated to be measured"
    yield f"runs once; numbers among the arguments above {_LARGEST:,} are halved until they are not. Kernels run with"
    silent = [f"`{program.name}`" for program in found.hecbench if program.right is None]
    yield f"`--fast`. Not counted, as they print no verdict for these arguments: {', '.join(silent) or 'none'}."
    if found.left_out:
        yield ""
        yield f"{found.left_out} more of the sample did not run: the time for it was up."
    yield ""
    yield f"Right: {', '.join(f'`{program.name}`' for program in found.hecbench if program.right)}."
    yield ""
    yield "| not right | why |"
    yield "| --- | --- |"
    for program in found.hecbench:
        if program.right is False:
            why, note = _short(program.why), _NOTES.get(program.name, "")
            yield f"| `{program.name}` | {why.removesuffix('.') + '. ' + note if note else why} |"


_NOTES = {
    "srad/srad_v2 srad.cu": "The finding is right: threads of the first row of blocks read above the image before the"
    " value is replaced by the image's own.",
    "glu": "It does not ask whether there was room for its two arrays of 4 GiB.",
    "merge": "It indexes shared memory by the complement of an unsigned number, 16 GiB away: where addresses have 32"
    " bits, as those of a GPU's shared memory, that comes round.",
    "unfold": "It adds to memory that nobody has written, as `--check` says; on a GPU that is often zero.",
}
"""What there is to say of programs that are not right."""


def _of_kernels(kernels: Mapping[str, Sequence[CheckedFile]]) -> Iterator[str]:
    yield ""
    yield "## Kernels that nvcc takes"
    yield ""
    if not kernels:
        yield "Not measured here, as there is no nvcc."
        return
    yield "Of the files that nvcc compiles, the kernels that it makes machine code of, templates as they are launched,"
    yield "without those of the toolkit's own headers; and how many of them the front end lowers."
    yield ""
    yield "| files | | kernels | lowered | share |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, files in kernels.items():
        lowered, count = sum(len(each.lowered) for each in files), sum(each.count for each in files)
        yield f"| {name} | {len(files)} | {count} | {lowered} | {100 * lowered / max(count, 1):.1f} % |"
    yield ""
    yield "| not lowered | kernel | why |"
    yield "| --- | --- | --- |"
    told: set[tuple[str, str]] = set()
    for files in kernels.values():
        for file in files:
            for kernel, why in file.refused.items():
                if (file.name, kernel) not in told:
                    told.add((file.name, kernel))
                    yield f"| {file.name} | `{_short(kernel, 60)}` | {_short(why)} |"


def _also(why: str) -> str:
    return f": {_short(why)}" if why else ""


def _short(reason: str, letters: int = 160) -> str:
    line = " ".join(re.sub(r"(?<![:/\w])/\S*/", "", reason).split()).replace("<", r"\<").replace("|", r"\|")
    return line if len(line) <= letters else f"{line[: letters - 3]}..."


def _cloned(name: str, given: Path | None, held: Path) -> Path:
    if given is not None:
        return given
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", _SOURCES[name], str(held / name)], check=True)
    return held / name


class Kept:
    """What was found before, and is added to; in memory alone where there is no folder.

    Parameters
    ----------
    folder : Path or None
    name : str
        Of the file.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = folder / f"{name}.json" if folder is not None else None
        has = self._path is not None and self._path.is_file()
        self.found: dict[str, Any] = json.loads(self._path.read_text("utf-8")) if has and self._path else {}

    def keep(self, key: str, value: object) -> None:
        """Add something."""
        self.found[key] = value
        self.save()

    def save(self) -> None:
        """Write all, whole or not at all."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            made = self._path.with_suffix(".new")
            made.write_text(json.dumps(self.found, indent=1), "utf-8")
            made.replace(self._path)


def _run_all(
    jobs: Mapping[str, Callable[[], CheckedProgram]], kept: Kept, deadline: float, pool: ThreadPoolExecutor
) -> list[CheckedProgram]:
    """Run what is not known yet and begins before a deadline; return what is known then."""
    lock = threading.Lock()

    def one(key: str) -> None:
        if key in kept.found or time.monotonic() >= deadline:
            return
        program = _told(jobs[key]())
        with lock:
            kept.keep(key, [program.name, program.right, program.why])

    list(pool.map(one, jobs))
    return [CheckedProgram(*kept.found[key]) for key in jobs if key in kept.found]


def _check_kernels(
    tops: Mapping[str, Path], folder: Path | None, sample: int, pool: ThreadPoolExecutor
) -> dict[str, list[CheckedFile]]:
    """Lower the kernels of what nvcc compiles: all of Rodinia, and two samples of HeCBench."""
    done = Kept(folder, "kernels")
    tables: dict[str, list[CheckedFile]] = {}
    for title, name, within, seed, wanted in (
        ("Rodinia", "rodinia", "cuda", 1, sys.maxsize),
        ("HeCBench, the sample that the front end was mended by", "hecbench", "src/*-cuda", 1, sample),
        ("HeCBench, another one", "hecbench", "src/*-cuda", 2, sample),
    ):
        top, known = tops[name], Kept(folder, f"nvcc_{name}")
        files = lowered_kernels.cuda_files(top, within)
        picked = lowered_kernels.sample(files, top, wanted, seed, known.found, known.save)

        def one(each: tuple[Path, list[str]], top: Path = top, name: str = name) -> CheckedFile:
            key = f"{name}/{each[0].relative_to(top)}"
            if key not in done.found:
                file = lowered_kernels.checked(each[0], top, each[1])
                done.found[key] = [file.name, file.lowered, file.refused]
            label, lowered, refused = done.found[key]
            return CheckedFile(label, tuple(lowered), refused)

        tables[title] = list(pool.map(one, picked))
        done.save()
        print(f"{title}: {sum(len(each.lowered) for each in tables[title])} kernels lowered", flush=True)
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, and write the page; return 0 where as many are right as are wanted."""
    parser = argparse.ArgumentParser(prog="python -m tools.program_check", description="public programs, simulated")
    for name, address in _SOURCES.items():
        parser.add_argument(f"--{name}", metavar="FOLDER", type=Path, help=f"where {address} is, instead of a clone")
    parser.add_argument("--sample", metavar="N", type=int, default=_SAMPLE, help="programs of HeCBench's that are run")
    parser.add_argument(
        "--files", metavar="N", type=int, default=lowered_kernels.SAMPLE, help="files of HeCBench's, of each sample"
    )
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="begin no program after so many")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="keep what is found there, and go on from it")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as held, ThreadPoolExecutor(os.cpu_count()) as pool:
        tops = {name: _cloned(name, getattr(options, name), Path(held)) for name in _SOURCES}
        kept = Kept(options.kept, "programs")
        candidates = hecbench_programs(tops["hecbench"])
        drawn = sorted(random.Random(_SEED).sample(candidates, min(options.sample, len(candidates))))
        found = Findings(candidates=len(candidates))
        first = {
            f"rodinia/{each.folder}/{each.files[0]}": partial(run_rodinia, each, tops["rodinia"]) for each in RODINIA
        }
        found.rodinia = _run_all(first, kept, deadline, pool)
        found.hecbench = _run_all(
            {f"hecbench/{each.name}": partial(run_hecbench, each) for each in drawn}, kept, deadline, pool
        )
        found.left_out = len(drawn) - len(found.hecbench)
        if lowered_kernels.compiler_is_here() and options.files:
            found.kernels = _check_kernels(tops, options.kept, options.files, pool)
    PAGE.write_text(page(found, datetime.date.today().isoformat()), "utf-8")
    shares = [right / max(all_told, 1) for right, all_told in (_counted(found.rodinia), _counted(found.hecbench))]
    return 0 if shares[0] >= 0.8 and shares[1] >= 0.75 else 1


def _counted(programs: Sequence[CheckedProgram]) -> tuple[int, int]:
    """Return how many are right, and how many of them say so or otherwise."""
    return sum(each.right is True for each in programs), sum(each.right is not None for each in programs)


_WORDS = {True: "right", False: "not right", None: "unknown"}


def _told(program: CheckedProgram) -> CheckedProgram:
    print(f"{program.name}: {_WORDS[program.right]} {program.why}".rstrip(), flush=True)
    return program


if __name__ == "__main__":
    sys.exit(main())
