"""Run CuPy's own tests, its user guide's examples and public CuPy scripts, and write the tables of docs/cupy.md.

`python -m tools.public_programs.cupy_check` clones CuPy's repository and those of the scripts for this run. With
`--sources FOLDER` it reads them from FOLDER/owner/name instead. It takes about ten minutes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu.base.paths import DOCS, ROOT
from tools.public_programs import cupy_scripts
from tools.public_programs.cupy_scripts import SCRIPTS, PublicScript, run_script
from tools.pycuda_check import CheckedFile, format_counts, format_reasons, read_report

PAGE = DOCS / "cupy.md"
HEADING = "## CuPy's own tests"
_CUPY = "cupy/cupy"
_CORE = "tests/cupy_tests/core_tests"
_JIT = "tests/cupyx_tests/jit_tests"
_TESTS = (
    *(f"{_CORE}/test_{name}.py" for name in ("raw", "userkernel", "elementwise", "function", "carray", "reduction")),
    *(f"{_JIT}/test_{name}.py" for name in ("raw", "device_function")),
)
_GUIDE = "docs/source/user_guide/kernel.rst"
_TEST_SECONDS = 600
"""Limit of a file of tests in seconds of processor time, so that other work does not count."""
_CLOCK_SECONDS = 10 * _TEST_SECONDS
_NOTES = {
    "test_kernel_attributes": "A number of registers is needed",
    "test_device_function_template_recursion": (
        "The kernel calls `__syncthreads()` in a branch that not all threads take"
    ),
}
"""Reasons for failed tests that are known."""
_MARKERS = ("slow", "multi_gpu", "parallel_threads", "iterations", "thread_unsafe", "gpu")
_RUN_GUIDE = """
import doctest, sys
import numpy, cupy, cupyx
names = dict(np=numpy, numpy=numpy, cupy=cupy, cp=cupy, cupyx=cupyx)
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
failed, attempted = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags, globs=names)
print("{} of {}".format(attempted - failed, attempted))
"""


def run_tests(file: Path, sources: Path, work: Path) -> CheckedFile:
    """Run a file of CuPy's tests with the plugin `cupy_test_plugin`.

    Parameters
    ----------
    sources : Path
        CuPy's repository.
    work : Path
        A folder for pytest's files.
    """
    report = work / "report.xml"
    report.unlink(missing_ok=True)
    settings = work / "pytest.ini"
    settings.write_text("[pytest]\nfilterwarnings =\n    ignore\nmarkers =\n    " + "\n    ".join(_MARKERS) + "\n")
    # Tests start processes with scripts of their own, which import this module first.
    (work / "sitecustomize.py").write_text("from gpu.hosts.cupy.installation import install\ninstall()\n", "utf-8")
    environment = os.environ | {
        "CUPY_TEST_GPU_LIMIT": "1", "LOCKSTEP_CUPY_SOURCES": str(sources),
        "PYTHONPATH": os.pathsep.join((str(work), str(ROOT))),
    }  # fmt: skip
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tools.public_programs.cupy_test_plugin", "-n", "0"),
        *("-p", "no:cacheprovider", "-m", "not slow", "--noconftest", "-c", str(settings), "--rootdir", str(work)),
        *(f"--junitxml={report}", str(file)),
    ]
    try:
        subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {_TEST_SECONDS}; exec "$@"', "sh", *command], cwd=work, env=environment,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=_CLOCK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return CheckedFile(file.name, failed=(f"does not end within {_CLOCK_SECONDS} s",))
    name = f"jit_tests/{file.name}" if file.parent.name == "jit_tests" else file.name
    return read_report(name, report) if report.exists() else CheckedFile(name, failed=("pytest did not finish",))


def run_guide(file: Path, work: Path) -> str:
    """Run the examples of a page of CuPy's user guide; return "PASSED of ALL"."""
    script = work / "guide.py"
    script.write_text(_RUN_GUIDE, "utf-8")
    process = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), "cupy", str(script), str(file)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_CLOCK_SECONDS, check=False,
    )  # fmt: skip
    return next(iter(re.findall(r"^\d+ of \d+$", process.stdout, re.MULTILINE)), "none")


def format_sections(
    tests: Sequence[CheckedFile], guide: str, scripts: Sequence[tuple[PublicScript, str]], day: str
) -> str:
    """Return the page's sections about these results.

    Parameters
    ----------
    guide : str
        "PASSED of ALL" examples of the user guide.
    scripts : sequence of (PublicScript, str)
        Scripts with their errors, "" if they finished.
    """
    return "\n".join((*_format_tests(tests, guide, day), *_format_scripts(scripts))) + "\n"


def _format_tests(tests: Sequence[CheckedFile], guide: str, day: str) -> Iterator[str]:
    yield HEADING
    yield ""
    yield "`python -m tools.public_programs.cupy_check` runs CuPy's tests of these classes with CuPy's `cupy.testing`,"
    yield f"and the scripts below, and writes both sections. Date of this run: {day}. Tests marked slow (Jitify, arrays"
    yield "of 4 GB) are left out."
    yield ""
    yield from format_counts(tests)
    yield f"In CuPy's user guide, {guide} examples in `kernel.rst` give the printed results."
    yield from format_reasons("Failed", [f"`{test.name}` {_explain(why)}" for test in tests for why in test.failed])
    yield from format_reasons("Skipped", [why for test in tests for why in test.skipped])


def _explain(failure: str) -> str:
    name, _, message = failure.partition(": ")
    test = name.partition("[")[0]
    return f"`{test}`: {_NOTES.get(test) or message}"


def _format_scripts(results: Sequence[tuple[PublicScript, str]]) -> Iterator[str]:
    yield ""
    yield "## Public scripts"
    yield ""
    yield "| scripts | run | with a kernel of their own | finished |"
    yield "| --- | ---: | ---: | ---: |"
    for name, (count, finished, kernels) in cupy_scripts.count_by_repository(results).items():
        yield f"| [{name}](https://github.com/{name}) | {count} | {kernels} | {finished} |"
    finished = sum(not error for _, error in results)
    kernels = sum(script.has_kernel for script, _ in results)
    yield f"| all | {len(results)} | {kernels} | {finished} |"
    yield ""
    own = [error for script, error in results if script.has_kernel]
    yield f"{finished / max(len(results), 1):.0%} of the scripts finish, and {own.count('')} of the {kernels} with a"
    yield "kernel of their own. Sizes were reduced, and `time.clock`, which Python no longer has, was replaced. The"
    yield "kernels of the tutorial, whose scripts need PyTorch on a GPU, are compared with NumPy. Matplotlib was an"
    yield "empty module."
    yield from format_reasons(
        "Failed",
        [f"`{script.path}` {cupy_scripts.NOTES.get(script.path, '')} ({error})" for script, error in results if error],
    )


def replace_sections(page: str, sections: str) -> str:
    """Return the page with these sections at its end, in place of the former ones."""
    return page.partition(HEADING)[0].rstrip("\n") + f"\n\n{sections}"


def _clone(repository: str, sources: Path | None, work: Path) -> Path:
    """Return the folder of a repository; clone it if there is no folder `sources`."""
    if sources is not None:
        return sources / repository
    folder = work / repository
    if not folder.exists():
        address = f"https://github.com/{repository}"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", address, str(folder)], check=True)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and write the tables; return 0 if 95% of the tests pass and 90% of the scripts finish."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_programs.cupy_check", description=__doc__)
    parser.add_argument("--sources", metavar="FOLDER", type=Path, help="folder with clones owner/name")
    options = parser.parse_args(arguments)
    sources = options.sources.resolve() if options.sources else None
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        cupy = _clone(_CUPY, sources, work)
        tests = []
        for name in _TESTS:
            tests.append(test := run_tests(cupy / name, cupy, work))
            print(f"{test.name}: {test.passed} passed, {len(test.failed)} failed, {len(test.skipped)} skipped")
            print("".join(f"  {why}\n" for why in test.failed), end="", flush=True)
        guide = run_guide(cupy / _GUIDE, work)
        print(f"{_GUIDE}: {guide}", flush=True)
        results = []
        for script in SCRIPTS:
            results.append((script, run_script(script, _clone(script.repository, sources, work), work)))
            print(f"{script.repository} {script.path}: {results[-1][1] or 'finished'}", flush=True)
    day = datetime.date.today().isoformat()
    page = replace_sections(PAGE.read_text("utf-8"), format_sections(tests, guide, results, day))
    PAGE.write_text(page, "utf-8")
    passed, failed = sum(test.passed for test in tests), sum(len(test.failed) for test in tests)
    finished = sum(not error for _, error in results)
    return 0 if passed >= 0.95 * (passed + failed) and finished >= 0.9 * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
