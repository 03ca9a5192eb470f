"""Run NVIDIA's CUDA samples on the simulator, and format their section of docs/programs.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.devices.probe import find_nvcc
from gpu.base.paths import ROOT

ADDRESS = "https://github.com/NVIDIA/cuda-samples"
HEADING = "## NVIDIA's CUDA samples"
LIMIT_S = 60
"""Limit of a sample's run, in seconds of processor time, so that other work does not count."""
_CLOCK_FACTOR = 10
"""Limit by the clock, as a multiple of the limit of processor time: for a sample that waits forever."""
SECTIONS = (
    *("0_Introduction", "1_Utilities", "2_Concepts_and_Techniques", "3_CUDA_Features", "4_CUDA_Libraries"),
    *("5_Domain_Specific", "6_Performance"),
)
"""Sections whose samples are listed: those after them are about NVVM's library and about Tegra."""
ARGUMENTS = {
    "FDTD3d": ("--dimx=64", "--dimy=64", "--dimz=64", "--timesteps=1"),
    "cdpAdvancedQuicksort": ("--size=5000",),
    "globalToShmemAsyncCopy": ("-wA=128", "-hA=128", "-wB=128", "-hB=128"),
    **dict.fromkeys(("matrixMul", "matrixMul_nvrtc"), ("-wA=64", "-hA=64", "-wB=64", "-hB=64")),
    "p2pBandwidthLatencyTest": ("--numElems=65536",),
    "radixSortThrust": ("--n=65536", "--iterations=1"),
    "reductionMultiBlockCG": ("--n=65536",),
    "simpleHyperQ": ("--nstreams=4",),
}
"""Arguments for sizes below a sample's own."""
_FIXED_SIZES = (
    *("BlackScholes", "BlackScholes_nvrtc", "HSOpticalFlow", "UnifiedMemoryPerf", "bf16TensorCoreGemm"),
    *("cudaTensorCoreGemm", "dmmaTensorCoreGemm", "immaTensorCoreGemm", "tf32TensorCoreGemm"),
)
"""Samples with sizes or repetitions for GPUs that they have no option for."""
NOTES = {
    **dict.fromkeys(_FIXED_SIZES, "Its size is for GPUs, and it has no option for another."),
    "interval": "Each of its 100 launches takes about 4 s: its recursion rules out machine code. With one launch it"
    " finds the intervals that its host code finds.",
    "newdelete": "The simulator does not support virtual functions.",
    "cdpQuadtree": "Its functor draws the points by their thread's number; on the host, where Thrust's algorithms run"
    " here, it draws the same point each time.",
}
"""Remarks on samples that fail."""

_SUFFIXES = (".cu", ".cpp", ".c")
_NEEDS = {
    "a library": re.compile(
        r'#\s*include\s*[<"](cublas|cufft|cusparse|cusolver|curand\.h|npp|nvJitLink|helper_nvjpeg|nvjpeg|nvsci|cudla'
        r"|FreeImage)",
        re.IGNORECASE,
    ),
    "a graphics library": re.compile(
        r'#\s*include\s*[<"](GL/|GLFW|helper_gl|rendercheck|EGL|vulkan|d3d|cuda_gl_interop|cuda_d3d|cuda_?egl)',
        re.IGNORECASE,
    ),
    "the driver's library at run time": re.compile("drvapi_dynlink"),
    "several processes": re.compile(r'#\s*include\s*[<"](mpi\.h|helper_multiprocess)'),
}
_MODULE = re.compile(r'"((\w+?)(?:32|64)?\.(fatbin|ptx))"')
"""A file that a sample loads: name, name of its source and kind."""
_COPIED_HEADER = re.compile(r"\$\{CUDA_INCLUDE_DIR\}/(\w+\.h)\b")
_SHIM = ROOT / "gpu" / "simulator" / "shim"
"""Lockstep's stand-ins for CUDA's headers."""
_NVRTC = re.compile(r'#\s*include\s*[<"]nvrtc')
_FAILURE = re.compile(r"\bFAIL(?:ED|URE)?\b(?! as expected)|\bmismatch|Result = FAIL", re.IGNORECASE)
_VERDICT = re.compile(r"\bPASS(?:ED)?\b|\bSUCCESS(?:FUL)?\b|\bOK\b|Test passed", re.IGNORECASE)
_WAIVED = 2
"""Exit code of a sample that finds that the device lacks a feature or that there is only one."""
_LIMIT_MESSAGE = re.compile("SIGXCPU|crashed: SIGKILL")
"""The command's message about a program that exceeds its limit of processor time."""
_REFUSAL = re.compile(r"lockstep: .*(?:does not support|:\d+:\d+: )")
"""The command's message about a kernel that the simulator cannot run."""
_FINDINGS = re.compile(r"; (\d+) findings?\.")


@dataclass(frozen=True)
class SampleResult:
    """Result of a sample.

    Parameters
    ----------
    outcome : {"passes", "ends", "waives", "fails", "skipped"}
        Whether the sample's own check passes; "ends" if it ends with 0 and prints no verdict, "waives" if it says that
        the device cannot run it.
    findings : int or None
        Findings of the checkers; None if it was not run with them.
    seconds : float or None
        Processor time, with compilation; None if it was not measured.
    reason : str
        What failed, or what a skipped sample needs.
    day : str
        The date of the run, "" for that of the page.
    """

    name: str
    outcome: str
    findings: int | None = None
    seconds: float | None = 0.0
    reason: str = ""
    day: str = ""


def list_samples(folder: Path) -> list[Path]:
    """Return the folders of the samples in `SECTIONS`."""
    return [path for section in SECTIONS for path in sorted((folder / "Samples" / section).glob("*/")) if path.is_dir()]


def find_requirement(sample: Path) -> str:
    """Return what a sample needs beyond what Lockstep has, such as "a library"; "" if nothing."""
    texts = [
        path.read_text("utf-8", "replace") for path in sample.rglob("*") if path.suffix in (*_SUFFIXES, ".h", ".cuh")
    ]
    if not list_sources(sample):
        return "sources in another folder"
    found = next((name for name, pattern in _NEEDS.items() if any(pattern.search(text) for text in texts)), "")
    modules = list_modules(sample)
    if found or not modules:
        return found
    has_sources = all(source.is_file() for source in modules.values())
    return "" if has_sources and find_nvcc() else "machine code or PTX that nvcc writes"


def list_modules(sample: Path) -> dict[str, Path]:
    """Return the sources of the files of PTX and machine code that a sample loads, by these files' names."""
    texts = [path.read_text("utf-8", "replace") for path in sample.glob("*.cpp")]
    return {match[1]: sample / f"{match[2]}.cu" for text in texts for match in _MODULE.finditer(text)}


def list_copied_headers(sample: Path) -> list[str]:
    """Return CUDA's headers that a sample's build copies beside its program, for NVRTC."""
    build = sample / "CMakeLists.txt"
    text = build.read_text("utf-8", "replace") if build.is_file() else ""
    return sorted(set(_COPIED_HEADER.findall(text)))


def _build_modules(sample: Path, folder: Path) -> None:
    """Link a sample's files into a folder, with the headers and the compiled files that its build puts there."""
    for path in sample.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    for header in list_copied_headers(sample):
        (folder / header).symlink_to(_SHIM / header)
    for name, source in list_modules(sample).items():
        kind = f"-{Path(name).suffix[1:]}"
        command = [find_nvcc(), kind, "-arch=sm_90", "-o", str(folder / name), str(source)]
        subprocess.run(command, check=True, capture_output=True)


def list_sources(sample: Path) -> list[str]:
    """Return the sources, relative to the sample's folder: those there, or those in `src`."""
    folders = (sample, sample / "src")
    found = [sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES) for folder in folders]
    sources = found[0] or found[1]
    if any(_NVRTC.search(path.read_text("utf-8", "replace")) for path in sources):
        sources = [path for path in sources if path.suffix != ".cu"]  # the program reads these files
    sources = [path for path in sources if path not in list_modules(sample).values()]
    return [str(path.relative_to(sample)) for path in sources]


def run_sample(sample: Path, limit_s: float = LIMIT_S) -> SampleResult:
    """Run a sample with the checkers; if that exceeds the limit, with `--fast`."""
    requirement = find_requirement(sample)
    if requirement:
        return SampleResult(sample.name, "skipped", reason=requirement)
    with tempfile.TemporaryDirectory() as built:
        folder = sample
        if list_modules(sample) or list_copied_headers(sample):
            folder = Path(built, sample.name)
            folder.mkdir()
            _build_modules(sample, folder)
        result = _run(folder, "--check", limit_s)
        return result if result is not None else _run(folder, "--fast", limit_s) or _exceeds_limit(sample, limit_s)


def _exceeds_limit(sample: Path, limit_s: float) -> SampleResult:
    return SampleResult(sample.name, "fails", None, limit_s, f"exceeds the limit of {limit_s:g} s")


def _run(sample: Path, option: str, limit_s: float) -> SampleResult | None:
    """Run a sample with an option of `program`; return None if it exceeds the limit."""
    arguments = ["--", *ARGUMENTS.get(sample.name, ())]
    command = [sys.executable, str(ROOT / "main.py"), "program", *list_sources(sample), option, *arguments]
    before = measure_children()
    try:
        process = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {limit_s:.0f}; exec "$@"', "sh", *command],
            cwd=sample, capture_output=True, stdin=subprocess.DEVNULL, timeout=_CLOCK_FACTOR * limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    seconds = measure_children() - before
    output, errors = process.stdout.decode(errors="replace"), process.stderr.decode(errors="replace")
    if process.returncode < 0 or _LIMIT_MESSAGE.search(errors):
        return None
    return judge_output(sample.name, process.returncode, output, errors, option == "--check", seconds)


def measure_children() -> float:
    """Return the processor time of all child processes that ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def judge_output(name: str, code: int, output: str, errors: str, checked: bool, seconds: float) -> SampleResult:
    """Return a sample's result from its exit code, its output, and the command's errors.

    Parameters
    ----------
    code : int
        Exit code of the command `program`.
    checked : bool
        Whether the checkers ran.
    """
    match = _FINDINGS.search(errors)
    findings = (int(match[1]) if match is not None else 0) if checked else None
    if code == _WAIVED and re.search("waiv", output + errors, re.IGNORECASE):
        return SampleResult(name, "waives", findings, seconds)
    failed = _FAILURE.search(output) or _FAILURE.search(errors)
    if (code and not (findings and code == 1)) or failed:
        lines = [line for line in errors.splitlines() if "error" in line and " on the simulator" not in line]
        refused = [line.removeprefix("lockstep: ") for line in errors.splitlines() if _REFUSAL.match(line)]
        verdict = [(output + errors)[failed.start() :].partition("\n")[0]] if failed else []
        return SampleResult(name, "fails", findings, seconds, (*refused, *lines, *verdict, f"it ends with {code}")[0])
    return SampleResult(name, "passes" if _VERDICT.search(output) else "ends", findings, seconds)


def format_section(results: Sequence[SampleResult], count: int, day: str, limit_s: float) -> str:
    """Return the section of the page about these results of `count` samples, with a newline at its end."""
    return "\n".join((*_section_lines(results, count, day, limit_s), ""))


def _section_lines(results: Sequence[SampleResult], count: int, day: str, limit_s: float) -> Iterator[str]:
    ran = [result for result in results if result.outcome != "skipped"]
    passed = sum(result.outcome == "passes" for result in ran)
    ended = sum(result.outcome == "ends" for result in ran)
    waived = sum(result.outcome == "waives" for result in ran)
    share = 100 * (passed + ended) / max(len(ran) - waived, 1)
    yield HEADING
    yield ""
    smaller = ", ".join(f"`{name}` ({' '.join(words)})" for name, words in ARGUMENTS.items())
    is_timed = all(result.seconds is not None for result in ran)
    days = sorted({result.day or day for result in ran} or {day})
    dates = f"Date of this run: {day}." if len(days) == 1 else f"Dates of the runs: {days[0]} to {days[-1]}."
    untimed = "" if is_timed else " Samples with a dash for the seconds were run with `--fast` only, for at most 12 s."
    yield from wrap_text(
        f"`python -m tools.program_check --cuda-samples FOLDER --limit {limit_s:g}` runs the [samples]({ADDRESS}) in a"
        f" folder, and writes this section. {dates} Of {count} samples, {len(ran)} were run: {passed}"
        f" pass their own check, {ended} end with exit code 0, which is their verdict, and print none, {waived} waive"
        f" the device since it is only one or lacks a feature, and {len(ran) - passed - ended - waived} fail:"
        f" {share:.0f}% of those that do not waive pass."
        f" The limit is {limit_s:g} s of processor time, which includes compilation. All"
        f" sizes are the samples' own, except for {smaller}. Findings are those of `--check`; a dash means that the"
        " sample was run with `--fast`, since the run with the checkers exceeds the limit or was left out. Those of"
        " `simpleAtomicIntrinsics` and `systemWideAtomics` are shifts of an `int` by 32 or more. Thrust's"
        " algorithms run on the host. nvcc compiles the files of PTX and machine code that samples"
        f" load.{untimed}"
    )
    yield ""
    if count > len(results):
        yield f"{count - len(results)} more were not run within the time limit of the whole check."
        yield ""
    yield "| sample | result | findings | seconds |"
    yield "| --- | --- | ---: | ---: |"
    for result in ran:
        note = NOTES[result.name] if result.outcome == "fails" and result.name in NOTES else ""
        why = _escape(result.reason)
        reason = f": {why}{note and (' ' if why.endswith('.') else '. ')}{note}" if result.reason else ""
        findings = "–" if result.findings is None else str(result.findings)
        seconds = "–" if result.seconds is None else f"{result.seconds:.1f}"
        yield f"| `{result.name}` | {result.outcome}{reason} | {findings} | {seconds} |"
    yield ""
    yield "Not run, by what they need:"
    yield ""
    reasons = sorted({result.reason for result in results if result.outcome == "skipped"})
    for reason in reasons:
        names = ", ".join(f"`{result.name}`" for result in results if result.reason == reason)
        yield from wrap_text(f"- {reason}: {names}", "  ")


def wrap_text(text: str, indent: str = "") -> list[str]:
    """Return the lines of a paragraph of the page, wrapped; all but the first begin with `indent`."""
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _escape(reason: str, letters: int = 140) -> str:
    """Return a reason on one line, without folders, as Markdown of a table's cell."""
    line = " ".join(re.sub(r"(?<![:/\w])/\S*/", "", reason).split())
    line = line if len(line) <= letters else f"{line[: letters - 3]}..."
    return re.sub(r"([<>|*`]|__)", lambda match: "".join(f"\\{letter}" for letter in match[0]), line)


def get_section(page: str, heading: str = HEADING) -> str:
    """Return the section of a page with this heading, without other sections; "" if it has none."""
    match = re.search(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return match[0].rstrip("\n") + "\n" if match is not None else ""


def replace_section(page: str, section: str, heading: str = HEADING) -> str:
    """Return a page with this section at its end, and no other with this heading."""
    old = get_section(page, heading)
    start = page.find(old) if old else len(page)
    rest = (page[:start].rstrip("\n") + "\n\n" + page[start + len(old) :].lstrip("\n")).rstrip("\n") + "\n"
    return f"{rest}\n{section}" if section else rest
