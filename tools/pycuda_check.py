"""Run PyCUDA's own tests and examples on the simulator, and write docs/pycuda.md: python -m tools.pycuda_check.

The source archive, and the packages that its examples need, are downloaded for this run and deleted afterwards. It
takes about ten minutes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from gpu.base.paths import DOCS, ROOT
from gpu.hosts.pycuda import python_files

PAGE = DOCS / "pycuda.md"
_TESTS = ("test_driver.py", "test_gpuarray.py", "test_cumath.py")
_TEST_SECONDS = 300
_EXAMPLE_SECONDS = 100
_PACKAGES = ("cgen", "jinja2", "matplotlib")
"""Packages that examples import and the project does not."""
_AUTOINIT_PATTERN = re.compile(r"pycuda\.auto|pycuda\.gl|make_context|primary_context|cuda\.init\(\)|cupy|numba")
_DIFFERENCES = (
    "",
    "What differs from a GPU:",
    "",
    "- All work is complete when a call returns.",
    "- Events measure this processor's time.",
    "- A context survives an illegal access.",
    "- A function's attribute for registers is 0.",
    "- Texture and surface references no longer exist since CUDA 12; cuda-bindings creates objects, as on a GPU.",
    "- Random numbers are cuRAND's, except for two generators: scrambled Sobol sequences have other vectors and",
    "  shifts, and another method generates Poisson numbers with means from 64 to 4000.",
    "- Sums and other reductions of `gpuarray` rely on `volatile` shared memory and lack a `__syncwarp()`, so that",
    "  checked runs report a race in `reduce_kernel_stage1`. Write it to a baseline of `check`, or mark the test as",
    "  `xfail`.",
    "- There is no machine code and no second device.",
)
_EXPECTED_REASONS = {
    "game_of_life.py": "needs a size, and then shows the board until its window is closed",
    "gpu_scalar_mult.py": "reads texture references, which CUDA 12 no longer has",
    "mandelbrot_interactive.py": "uses a function that newer versions of Matplotlib lack",
    "matrix_transpose.py": "measures 193 matrices of up to 8192 x 8192",
    "measure_gpuarray_speed_random.py": "generates five billion random numbers",
    "select_to_list.py": "has an error: one thread sets the pointer that all threads follow",
    "simple_rgb2gray.py": "uses a function that newer versions of SciPy lack",
    "simple_speed_test.py": "launches two hundred thousand kernels",
    "sparse_solve.py": "needs a matrix file, and pymetis",
}
"""Reasons why examples fail that no simulator can remove."""
_FUTURE_IMPORT = "from __future__ import annotations\n"


@dataclass(frozen=True)
class CheckedFile:
    """Results of a file of tests, or of an example.

    Parameters
    ----------
    skipped : tuple of str
        The reason for each skipped test.
    failed : tuple of str
        The error of each failed test.
    """

    name: str
    passed: int = 0
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def run_tests(file: Path) -> CheckedFile:
    """Run a file of PyCUDA's tests."""
    report = file.with_suffix(".xml")
    options = ["-p", "no:cacheprovider", "-q", f"--timeout={_TEST_SECONDS}", f"--junitxml={report}"]
    _run_script(file.parent, ["-m", "pytest", *options, file.name], None)
    if not report.exists():
        return CheckedFile(file.name, failed=("pytest did not finish",))
    return read_report(file.name, report)


def read_report(name: str, report: Path) -> CheckedFile:
    """Return the results of a file from pytest's JUnit report."""
    passed, skipped, failed = 0, [], []
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        if skip is not None:
            skipped.append(skip.get("message") or "")
        elif (fault := next((each for each in case if each.tag in ("failure", "error")), None)) is not None:
            failed.append(f"{case.get('name')}: {(fault.get('message') or '').partition(chr(10))[0]}")
        else:
            passed += 1
    return CheckedFile(name, passed, tuple(skipped), tuple(failed))


def run_example(file: Path, name: str, packages: Path) -> CheckedFile:
    """Run an example with a folder of extra packages; skip it if a module is missing."""
    text = file.read_text("utf-8")
    if not _AUTOINIT_PATTERN.search(text):
        file.write_text(text.replace(_FUTURE_IMPORT, f"{_FUTURE_IMPORT}import pycuda.autoinit\n", 1), "utf-8")
    code, complaint = _run_script(file.parent, [file.name], _EXAMPLE_SECONDS, packages)
    if code == 0:
        return CheckedFile(name, 1)
    last = find_error_line(complaint) or f"ended with {code}"
    if "ModuleNotFoundError" in last or "ImportError" in last:
        return CheckedFile(name, skipped=(last.partition(": ")[2],))
    return CheckedFile(name, failed=(last,))


def find_error_line(output: str) -> str:
    """Return an example's error: the first line of its last exception, or its last line.

    The command's report on launches, which follows, is ignored.
    """
    text = re.split("^lockstep: ", output, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in text.splitlines() if line]
    exceptions = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (exceptions or lines or [""])[-1]


def _run_script(
    folder: Path, program: Sequence[str], seconds: float | None, packages: Path | None = None
) -> tuple[int, str]:
    environment = os.environ | {"MPLBACKEND": "Agg"} | ({"PYTHONPATH": str(packages)} if packages else {})
    command = [sys.executable, str(ROOT / "main.py"), "pycuda", *program]
    try:
        process = subprocess.run(
            command, cwd=folder, env=environment, input="\n" * 9, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"exceeds the limit of {seconds:g} s"
    return process.returncode, process.stderr


def format_page(tests: Sequence[CheckedFile], examples: Sequence[CheckedFile], day: str) -> str:
    """Return the text of the page."""
    return "\n".join(_format_lines(tests, examples, day)) + "\n"


def _format_lines(tests: Sequence[CheckedFile], examples: Sequence[CheckedFile], day: str) -> Iterator[str]:
    yield "# PyCUDA on the simulator"
    yield ""
    yield f"`make pycuda_check` runs the tests and examples of PyCUDA {python_files.VERSION}, unchanged from PyPI, with"
    yield f"`python main.py pycuda`, and writes this page. Date of this run: {day}."
    yield ""
    yield from format_counts(tests)
    yield from _DIFFERENCES
    yield from format_reasons("Failed", [f"`{test.name}` {why}" for test in tests for why in test.failed])
    yield from format_reasons("Skipped by PyCUDA's tests", [why for test in tests for why in test.skipped])
    yield ""
    yield "## Examples"
    yield ""
    passing = sum(example.passed for example in examples)
    failing = [example for example in examples if example.failed]
    yield f"Of {len(examples)} examples, {passing} finish without a failed assertion, {len(failing)} fail, and"
    missing = len(examples) - passing - len(failing)
    yield f"{missing} need packages that are not installed. Examples that create no context,"
    yield "because a release removed `import pycuda.autoinit` from them, get that line back."
    yield from format_reasons("Failed", [f"`{each.name}` {_failure_reason(each)}" for each in failing])
    yield from format_reasons(
        "Not run", [f"`{example.name}` {example.skipped[0]}" for example in examples if example.skipped]
    )


def _failure_reason(example: CheckedFile) -> str:
    """Return why an example fails: the known reason, if any, and its last line."""
    known = _EXPECTED_REASONS.get(Path(example.name).name)
    return f"{known} ({example.failed[0]})" if known else example.failed[0]


def format_counts(tests: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the lines of a table of tests, and the share that passes."""
    yield "| tests | passed | failed | skipped |"
    yield "| --- | ---: | ---: | ---: |"
    for test in tests:
        yield f"| `{test.name}` | {test.passed} | {len(test.failed)} | {len(test.skipped)} |"
    passed, failed = sum(test.passed for test in tests), sum(len(test.failed) for test in tests)
    yield f"| all | {passed} | {failed} | {sum(len(test.skipped) for test in tests)} |"
    yield ""
    yield f"{100 * passed / max(passed + failed, 1):.1f}% of the tests that were not skipped pass."


def format_reasons(title: str, reasons: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a list of reasons, the most frequent first; none without reasons."""
    if reasons:
        yield ""
        yield f"{title}:"
        yield ""
        for why, count in Counter(_shorten(reason) for reason in reasons).most_common():
            yield f"- {why}" + (f" ({count})" if count > 1 else "")


def _shorten(reason: str) -> str:
    line = " ".join(re.sub(r"(?<![:/\w])/\S*/", "", reason).split()).replace("<", r"\<")
    return line if len(line) <= 160 else f"{line[:157]}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, and write the page; return 0 if at least 95% of the tests pass."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.pycuda_check", description="PyCUDA's own tests, on the simulator"
    )
    parser.add_argument("--no-examples", action="store_true", help="run the tests only, and do not write the page")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        archive, failure = python_files.download(Path(sys.executable), Path(folder))
        if archive is None:
            print(f"lockstep: Cannot download PyCUDA's archive: {failure}", file=sys.stderr)
            return 2
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        source = Path(folder) / f"pycuda-{python_files.VERSION}"
        shutil.rmtree(source / "pycuda")  # so that the files from set-up are imported
        tests = [run_tests(source / "test" / name) for name in _TESTS]
        for test in tests:
            print(f"{test.name}: {test.passed} passed, {len(test.failed)} failed, {len(test.skipped)} skipped")
            print("".join(f"  {why}\n" for why in test.failed), end="")
        if not options.no_examples:
            examples_folder, packages = source / "examples", Path(folder) / "packages"
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), *_PACKAGES]
            subprocess.run(install, check=False)  # an example reports a missing package itself
            examples = []
            for file in sorted(examples_folder.rglob("*.py")):
                examples.append(run_example(file, str(file.relative_to(examples_folder)), packages))
                print(f"{examples[-1].name}: {(*examples[-1].failed, *examples[-1].skipped, 'ok')[0]}", flush=True)
            PAGE.write_text(format_page(tests, examples, datetime.date.today().isoformat()), "utf-8")
    passed, failed = sum(test.passed for test in tests), sum(len(test.failed) for test in tests)
    return 0 if passed >= 0.95 * (passed + failed) else 1


if __name__ == "__main__":
    sys.exit(main())
