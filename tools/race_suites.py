"""Run public suites of racy and race-free CUDA programs, and write docs/races.md: python -m tools.race_suites.

The suites are Indigo, as in the artifact of HiRace, the microbenchmarks of ScoR, programs of HeCBench with a known
race, and NVIDIA's samples for compute-sanitizer. They are read from `--indigo`, `--scor`, `--hecbench` and `--samples`,
and run unchanged. In the first two the file names say which programs are racy. With a GPU, `--sanitize` runs the same
programs under compute-sanitizer instead; the page shows these results if `--kept` names the same folder.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpu.base.paths import DOCS
from tools.public_programs.program_command import run_program
from tools.public_programs.saved_results import SavedResults

PAGE = DOCS / "races.md"
GRAPHS = ("DAG_100n_200e.egr", "DAG_5n_5e.egr")
"""Input graphs of Indigo: the smallest on which every racy program races, and the smallest of all."""
_INDIGO_LAUNCH = ("128", "256")
"""Threads per block, and blocks, as in HiRace's evaluation."""
_BUG_NAME = re.compile(r"_([a-z]+)Bug")
_PUBLISHED: dict[str, tuple[tuple[str, str], ...]] = {
    f"Indigo {GRAPHS[0]}": (
        ("HiRace, published", "346"),
        ("iGUARD, published", "298"),
        ("compute-sanitizer, published", "92"),
    ),
    f"Indigo {GRAPHS[1]}": (
        ("HiRace, published", "182"),
        ("iGUARD, published", "118"),
        ("compute-sanitizer, published", "92"),
    ),
}
"""Racy programs of Indigo that other tools report, by suite; from table I of HiRace's paper (SC 2024)."""
_REMARKS = {
    f"Indigo {GRAPHS[1]}": "In this graph every edge leads to a node with a lower number. The programs that are not "
    "reported update memory only where `i < nei`, for an edge to a higher one, so none of their updates executes.",
    "HeCBench": "sosfil and hungarian are compiled for small problems, by their macros `DEBUG` and `_n_`. Otherwise "
    "the first waits at a barrier for each of a million samples, and one of the second's ten problems took 113 s.",
}
"""Explanations of a suite's results, checked by hand."""
_MOST_NAMES = 20
"""The most names that the page lists openly."""
_LIMIT_S = 900
"""The limit of a program's processor time."""
_SANITIZER_LIMIT_S = 60
_HECBENCH = "HeCBench"
_HECBENCH_MACROS = {"sosfil": ("-D", "DEBUG"), "hungarian": ("-D", "_n_=64", "-D", "_range_=64")}
"""Macros by which these programs select small problems: others exceed the limit on the simulator."""
_SAMPLES = "NVIDIA's samples for compute-sanitizer"
_SUITES = (*(f"Indigo {graph}" for graph in GRAPHS), "ScoR", _HECBENCH, _SAMPLES)
"""The suites in the order of the page."""
_SANITIZER = "compute-sanitizer's racecheck"
_SAMPLE_BUGS = {
    "Initcheck/memset_error": "uninitialized",
    "Memcheck/memcheck_demo": "misaligned",
    "Racecheck/block_error": "race",
    "Racecheck/warp_error": "race",
    "Suppressions/suppressions_initcheck_demo": "uninitialized",
    "Synccheck/divergent_threads": "barrier",
    "Synccheck/illegal_syncwarp": "warp-mask",
}
"""The kernel error that each sample demonstrates; the other samples have none."""
_RACES = {"atomic", "guard", "race", "sync"}
"""The bugs that are races."""


@dataclass(frozen=True)
class SuiteProgram:
    """A program of a suite.

    Parameters
    ----------
    name : str
        Its file name without suffix, followed by the graph for Indigo.
    suite : str
        The suite, with the graph for Indigo.
    options, arguments : tuple of str
        Options of the compiler, and arguments of the program.
    bugs : tuple of str
        The bugs that its name states, such as "atomic" and "bounds"; for ScoR and HeCBench "race", or none; for
        NVIDIA's samples the kind of the finding.
    other_paths : tuple of Path
        Further source files.
    """

    name: str
    suite: str
    path: Path
    options: tuple[str, ...]
    arguments: tuple[str, ...]
    bugs: tuple[str, ...]
    other_paths: tuple[Path, ...] = ()

    @property
    def sources(self) -> list[str]:
        """All source files."""
        return [str(path) for path in (self.path, *self.other_paths)]

    @property
    def title(self) -> str:
        """The name without the graph or the issue."""
        return self.name.partition(" ")[0]

    @property
    def is_racy(self) -> bool:
        """Whether one of its bugs is a race."""
        return not _RACES.isdisjoint(self.bugs)


@dataclass(frozen=True)
class SuiteResult:
    """What a tool reports about a program.

    Parameters
    ----------
    kinds : tuple of str
        The kinds of its findings, as in `gpu.base.findings.Finding`.
    seconds : float
        Time by the clock.
    failure : str
        Why there is no verdict, or "".
    day : str
        The date of the run.
    """

    kinds: tuple[str, ...]
    seconds: float
    failure: str = ""
    day: str = ""

    @property
    def reports_race(self) -> bool:
        """Whether a race is among the findings."""
        return "race" in self.kinds


Results = Mapping[str, SuiteResult]


def list_indigo(folder: Path, graph: str) -> list[SuiteProgram]:
    """Return Indigo's programs for a graph.

    Parameters
    ----------
    folder : Path
        The folder with `indigo_sources`, `indigo_include` and `input`.
    graph : str
        The name of a file in `input`.
    """
    paths = sorted((folder / "indigo_sources").rglob("*.cu"))
    arguments = (str(folder / "input" / graph), *_INDIGO_LAUNCH)
    options = ("-I", str(folder / "indigo_include"))
    return [
        SuiteProgram(
            f"{path.stem} {graph}", f"Indigo {graph}", path, options, arguments, tuple(_BUG_NAME.findall(path.stem))
        )
        for path in paths
    ]


def list_scor(folder: Path) -> list[SuiteProgram]:
    """Return ScoR's microbenchmarks; `folder` is the repository's."""
    return [
        SuiteProgram(path.stem, "ScoR", path, (), (), () if path.stem.startswith("norace") else ("race",))
        for path in sorted((folder / "microbenchmarks" / "src").glob("*race_*.cu"))
    ]


def list_hecbench(folder: Path, inputs: Path) -> list[SuiteProgram]:
    """Return HeCBench's programs with a known race.

    Parameters
    ----------
    folder : Path
        The repository's, as of 2026-03-27; of 2025-09-17 is `src/dxtc2-cuda`, which was corrected since.
    inputs : Path
        A folder for inputs that the repository lacks.
    """
    sources, graph, roads, nets = folder / "src", inputs / "graph.egr", inputs / "roads.dat", inputs / "nets.gr"
    _write_graph(graph)
    _write_roads(roads)
    _write_nets(nets)
    image = sources / "dxtc2-sycl" / "data"
    # Issue, name, further sources, include folder, arguments.
    programs: tuple[tuple[int, str, tuple[str, ...], str, tuple[object, ...]], ...] = (
        (133, "dxtc2", ("../boxfilter-sycl/shrUtils.cpp",), "boxfilter-sycl",
         (image / "lena_std.ppm", image / "lena_ref.dds", 1)),
        (253, "surfel", (), "", (512, 16, 16, 1)),
        (254, "marchingCubes", (), "", (1,)),
        (255, "morphology", ("morphology.cu",), "", (64, 64, 128, 128, 1)),
        (256, "sosfil", (), "", (1,)),
        (261, "floydwarshall2", (), "mis-cuda", (graph, 1)),
        (263, "hungarian", (), "", (os.devnull,)),
        (264, "sssp", ("kernel.cu",), "", ("-f", roads, "-l", 1, "-t", 1, "-w", 0)),
        (265, "rsmt", (), "", (nets,)),
    )  # fmt: skip
    return [
        SuiteProgram(
            f"{name} (issue {issue})",
            _HECBENCH,
            path := sources / f"{name}-cuda" / "main.cu",
            (*(("-I", str(sources / include)) if include else ()), *_HECBENCH_MACROS.get(name, ())),
            tuple(map(str, arguments)),
            ("race",),
            tuple(path.parent / other for other in others),
        )
        for issue, name, others, include, arguments in programs
    ]


def list_samples(folder: Path) -> list[SuiteProgram]:
    """Return NVIDIA's samples that demonstrate errors of kernels; `folder` is the repository's."""
    return [SuiteProgram(name, _SAMPLES, folder / f"{name}.cu", (), (), (bug,)) for name, bug in _SAMPLE_BUGS.items()]


def _write_graph(path: Path, nodes: int = 200) -> None:
    """Write a random weighted graph with more than two tiles of 64 nodes, in the format of ECL graphs."""
    generator = random.Random(0)
    neighbors = [sorted(generator.sample(range(nodes), 6)) for _ in range(nodes)]
    edges = [neighbor for each in neighbors for neighbor in each]
    starts = [6 * node for node in range(nodes + 1)]
    weights = [generator.randint(1, 99) for _ in edges]
    path.write_bytes(array("i", [nodes, len(edges), *starts, *edges, *weights]).tobytes())


def _write_roads(path: Path, nodes: int = 300) -> None:
    """Write a random weighted graph as text, whose first node has an edge to each other node."""
    generator = random.Random(2)
    neighbors = [[*range(1, nodes)], *(sorted(generator.sample(range(nodes), 4)) for _ in range(nodes - 1))]
    lines = [f"{nodes} {sum(map(len, neighbors))} 0"]
    start = 0
    for each in neighbors:
        lines.append(f"{start} {len(each)}")
        start += len(each)
    lines += [f"{neighbor} {generator.randint(1, 99)}" for each in neighbors for neighbor in each]
    path.write_text("\n".join(lines) + "\n", "ascii")


def _write_nets(path: Path, nets: int = 40) -> None:
    """Write random nets of 4 to 12 pins, in the format of the ISPD 2008 contest."""
    generator = random.Random(1)
    lines = ["grid 100 100 2"]
    lines += [f"{name} 1 1" for name in ("vertical capacity", "horizontal capacity", "minimum width")]
    lines += ["minimum spacing 1 1", "via spacing 1 1", "0 0 10 10", f"num net {nets}"]
    for net in range(nets):
        pins = generator.randint(4, 12)
        lines.append(f"n{net} {net} {pins} 1")
        lines += [f"{generator.randrange(1000)} {generator.randrange(1000)} 1" for _ in range(pins)]
    path.write_text("\n".join(lines) + "\n", "ascii")


def simulate(program: SuiteProgram) -> SuiteResult:
    """Run a program on the simulator with the checkers."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        options = ["--check", "--report", str(report), *program.options]
        start = time.monotonic()
        code, _, errors = run_program(Path(folder), program.sources, options, program.arguments, _LIMIT_S)
        seconds = time.monotonic() - start
        launches = json.loads(report.read_text("utf-8"))["launches"] if report.is_file() else []
    kinds = {finding["kind"] for launch in launches for finding in launch["findings"]}
    failure = ""
    if not kinds and (code is None or not launches):
        failure = errors.strip().rpartition("\n")[2] or f"it launches no kernel and ends with {code}"
    return SuiteResult(tuple(sorted(kinds)), seconds, failure)


def sanitize(program: SuiteProgram, folder: Path) -> SuiteResult:
    """Build a program with nvcc in a folder, and run it on a GPU under compute-sanitizer's racecheck."""
    binary = folder / "-".join(program.path.parts[-2:])
    if not binary.exists():  # built for another graph
        build = ["nvcc", "-arch=native", "-lineinfo", *program.options, "-o", str(binary), *program.sources]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        if built.returncode:
            return SuiteResult((), 0.0, "nvcc does not compile it")
    command = ["compute-sanitizer", "--tool", "racecheck", "--print-limit", "1", str(binary), *program.arguments]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SANITIZER_LIMIT_S)
    except subprocess.TimeoutExpired:
        return SuiteResult((), _SANITIZER_LIMIT_S, f"does not end within {_SANITIZER_LIMIT_S} s")
    summary = re.search(r"RACECHECK SUMMARY: (\d+) hazard", done.stdout)
    if summary is None:
        return SuiteResult((), time.monotonic() - start, "no summary")
    return SuiteResult(("race",) if int(summary[1]) else (), time.monotonic() - start)


@dataclass(frozen=True)
class _Score:
    """Numbers of racy programs that are reported, and of race-free ones that are accused."""

    found: int
    racy: int
    accused: int
    race_free: int

    @classmethod
    def count(cls, programs: Iterable[SuiteProgram], results: Results) -> _Score:
        pairs = [(each.is_racy, results[each.name].reports_race) for each in programs if each.name in results]
        return cls(
            sum(racy and reported for racy, reported in pairs),
            sum(racy for racy, _ in pairs),
            sum(reported and not racy for racy, reported in pairs),
            sum(not racy for racy, _ in pairs),
        )

    def __str__(self) -> str:
        return f"{self.found} of {self.racy} | {self.accused} of {self.race_free}"


def format_page(
    programs: Sequence[SuiteProgram], results: Results, sanitizer: Results, gpu: str = "", earlier: str = ""
) -> str:
    """Return the text of the page. The sections of suites without programs stay as they were.

    Parameters
    ----------
    results, sanitizer : mapping of str to SuiteResult
        By program: results on the simulator, and under compute-sanitizer; the latter may be empty.
    gpu : str
        The GPU of compute-sanitizer's results, and their date.
    earlier : str
        The page as it was.
    """
    sections = dict.fromkeys(_SUITES, "")
    for text in earlier.split("\n## ")[1:]:
        sections[text.partition("\n")[0]] = f"## {text}".rstrip("\n") + "\n\n"
    for suite in dict.fromkeys(program.suite for program in programs):
        members = [program for program in programs if program.suite == suite]
        row = re.search(rf"^\| {_SANITIZER}.*\n", sections.get(suite, ""), re.MULTILINE)
        if any(program.name in sanitizer for program in members):
            sanitizer_row = f"| {_SANITIZER}, {gpu} | {_Score.count(members, sanitizer)} |"
        else:
            sanitizer_row = row[0].rstrip() if row else ""
        lines = _section_lines(suite, members, results, sanitizer_row)
        sections[suite] = "".join(f"{line}\n" for line in lines)
    return "".join(f"{line}\n" for line in _introduction_lines()) + "".join(sections.values()).rstrip("\n") + "\n"


def _introduction_lines() -> Iterator[str]:
    yield "# Races in public suites"
    yield ""
    yield from _wrap(
        "`python -m tools.race_suites` runs public suites unchanged on the simulator, with `program --check`, and"
        " writes this page: [Indigo](https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24) as in HiRace's "
        "artifact, with 256 blocks of 128 threads; the microbenchmarks of "
        "[ScoR](https://github.com/csl-iisc/ScoR) on scopes, fences and locks; programs of "
        "[HeCBench](https://github.com/ORNL/HeCBench) whose issues report a race; and "
        "[NVIDIA's samples](https://github.com/NVIDIA/compute-sanitizer-samples) that demonstrate an error of a "
        "kernel. In the first two, the names of the programs say which ones race; programs whose only bug is a "
        "`boundsBug` count as race-free. Published figures are those of table I of HiRace's paper "
        "(SC 2024; `results/paper_figures/table1.png` in the artifact), which counts 580 of Indigo's 590 programs, "
        "346 of them racy. A section is replaced when its suite runs again; its minutes are the sum of the programs' "
        "times by the clock, on a machine that may have had other work."
    )
    yield ""


def _section_lines(suite: str, members: Sequence[SuiteProgram], results: Results, sanitizer_row: str) -> Iterator[str]:
    """Yield the section of a suite; `sanitizer_row` is the row of compute-sanitizer's results, or ""."""
    own = [results[each.name] for each in members if each.name in results]
    days = sorted({result.day for result in own if result.day})
    seconds = sum(result.seconds for result in own)
    yield f"## {suite}"
    yield ""
    minutes = max(1, round(seconds / 60))
    yield f"Run on {' and '.join(days)}: {len(own)} programs, {minutes} minute{'s' * (minutes > 1)}."
    yield ""
    yield "| tool | racy programs reported | race-free programs accused |"
    yield "| --- | ---: | ---: |"
    yield f"| Lockstep | {_Score.count(members, results)} |"
    if sanitizer_row:
        yield sanitizer_row
    for tool, found in _PUBLISHED.get(suite, ()):
        yield f"| {tool} | {found} of 346 | |"
    yield ""
    if suite in (_HECBENCH, _SAMPLES):
        yield from _wrap("Programs: " + ", ".join(program.name for program in members) + ".")
        yield ""
    if suite in _REMARKS:
        yield from _wrap(_REMARKS[suite])
        yield ""
    yield from _bug_lines(members, results)
    yield from _list_lines(members, results)


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def _bug_lines(programs: Sequence[SuiteProgram], results: Results) -> Iterator[str]:
    """Yield the table of kinds of bugs, if there are several."""
    kinds = sorted({bug for program in programs for bug in program.bugs})
    if len(kinds) < 2:
        return
    yield "| bug | programs | with a finding |"
    yield "| --- | ---: | ---: |"
    for kind in kinds:
        with_bug = [program for program in programs if kind in program.bugs and program.name in results]
        yield f"| {kind} | {len(with_bug)} | {sum(bool(results[each.name].kinds) for each in with_bug)} |"
    yield ""


def _list_lines(programs: Sequence[SuiteProgram], results: Results) -> Iterator[str]:
    """Yield the programs with a wrong verdict or none, by name."""
    known = [(program, results[program.name]) for program in programs if program.name in results]
    lists = {
        "Not reported": [p for p, result in known if p.is_racy and not result.reports_race and not result.failure],
        "Accused": [p for p, result in known if result.reports_race and not p.is_racy],
    }
    for title, wrong in lists.items():
        if not wrong:
            continue
        names = _wrap(", ".join(f"`{program.title}`" for program in wrong) + ".")
        if len(wrong) > _MOST_NAMES:
            names = ["<details>", f"<summary>{title}: {len(wrong)} programs</summary>", "", *names, "", "</details>"]
        else:
            names = _wrap(" ".join([f"{title}:", *names]))
        yield from names
        yield ""
    for program, result in known:
        if result.failure:
            yield f"No verdict for `{program.title}`: {result.failure}."
            yield ""


def _run_all(
    programs: Sequence[SuiteProgram], saved: SavedResults, run: Callable[[SuiteProgram], SuiteResult]
) -> dict[str, SuiteResult]:
    """Run the programs that have no result yet with `run`; return all results."""
    lock = threading.Lock()

    def run_one(program: SuiteProgram) -> None:
        if program.name not in saved.results:
            result = run(program)
            with lock:
                day = datetime.date.today().isoformat()
                saved.add(program.name, [result.kinds, result.seconds, result.failure, day])
            right = "" if result.reports_race == program.is_racy else ", wrong"
            print(f"{program.name}: {', '.join(result.kinds) or result.failure or 'no findings'}{right}", flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run_one, programs))
    return _read_results(saved)


def _read_gpu_name() -> str:
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def _read_results(saved: SavedResults) -> dict[str, SuiteResult]:
    return {name: SuiteResult(tuple(kinds), *rest) for name, (kinds, *rest) in saved.results.items()}


def _list_programs(options: argparse.Namespace, scratch: Path) -> list[SuiteProgram]:
    programs: list[SuiteProgram] = []
    if options.indigo is not None:
        listings = [list_indigo(options.indigo.resolve(), graph) for graph in options.graphs or GRAPHS]
        programs += [program for listing in listings for program in listing]
    if options.scor is not None:
        programs += list_scor(options.scor.resolve())
    if options.hecbench is not None:
        programs += list_hecbench(options.hecbench.resolve(), scratch)
    if options.samples is not None:
        programs += list_samples(options.samples.resolve())
    return programs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites, and write the page; return 0 if all verdicts are right except on Indigo's second graph."""
    parser = argparse.ArgumentParser(prog="python -m tools.race_suites", description="public suites of races")
    parser.add_argument("--indigo", metavar="FOLDER", type=Path, help="folder `indigo` of HiRace's artifact")
    parser.add_argument(
        "--graph", dest="graphs", action="append", choices=GRAPHS, help="an input graph of Indigo (default: both)"
    )
    parser.add_argument("--scor", metavar="FOLDER", type=Path, help="folder of ScoR's repository")
    parser.add_argument("--hecbench", metavar="FOLDER", type=Path, help="folder of HeCBench's repository")
    parser.add_argument("--samples", metavar="FOLDER", type=Path, help="folder of NVIDIA's compute-sanitizer-samples")
    parser.add_argument("--every", metavar="N", type=int, default=1, help="run only every Nth program")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="folder for results; a later run continues from it")
    parser.add_argument(
        "--sanitize", action="store_true", help="run the programs on a GPU under compute-sanitizer; needs --kept"
    )
    options = parser.parse_args(arguments)
    if options.sanitize and options.kept is None:
        parser.error("--sanitize needs --kept FOLDER")
    if all(folder is None for folder in (options.indigo, options.scor, options.hecbench, options.samples)):
        parser.error("there are no programs: name a suite's folder with --indigo, --scor, --hecbench or --samples")
    saved_under = partial(SavedResults, options.kept)
    with tempfile.TemporaryDirectory() as scratch:
        programs = _list_programs(options, Path(scratch))[:: options.every]
        if options.sanitize:
            saved_under("gpu").add("title", f"{_read_gpu_name()}, {datetime.date.today().isoformat()}")
            _run_all(programs, saved_under("sanitizer"), partial(sanitize, folder=Path(scratch)))
            return 0
        results = _run_all(programs, saved_under("simulator"), simulate)
    sanitizer = _read_results(saved_under("sanitizer"))
    gpu = saved_under("gpu").results.get("title", "")
    earlier = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    PAGE.write_text(format_page(programs, results, sanitizer, gpu, earlier), "utf-8")
    judged = [program for program in programs if GRAPHS[1] not in program.suite]
    return int(any(results[each.name].reports_race != each.is_racy for each in judged))


if __name__ == "__main__":
    sys.exit(main())
