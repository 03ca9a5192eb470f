"""Run PyCUDA's own tests and examples on the simulator, and write docs/pycuda.md: python -m tools.pycuda_check.

The source archive, and what its examples need beside it, are downloaded for this run; nothing of it is kept. It takes
about ten minutes.
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

from tools import pycuda_files

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pycuda.md"
_TESTS = ("test_driver.py", "test_gpuarray.py", "test_cumath.py")
_TEST_SECONDS = 300
_EXAMPLE_SECONDS = 100
_PACKAGES = ("cgen", "jinja2", "matplotlib")
"""What examples import and the project does not."""
_INITIALIZES = re.compile(r"pycuda\.auto|pycuda\.gl|make_context|primary_context|cuda\.init\(\)|cupy|numba")
_DIFFERENCES = (
    "",
    "What differs from a GPU: all is done when a call returns, events tell this processor's time, and a context",
    "outlives an illegal access. Registers are 0 in a function's attributes. Texture and surface references are gone",
    "since CUDA 12; objects are made with cuda-bindings, as on a GPU. Random numbers are cuRAND's, but for scrambled",
    "Sobol sequences, which have other vectors and shifts, and for Poisson's of means from 64 to 4000, which come",
    "of other steps. There is no machine code and no second device.",
)
_KNOWN = {
    "game_of_life.py": "needs a size, and then shows the board until its window is closed",
    "gpu_scalar_mult.py": "reads texture references, which CUDA 12 has not",
    "mandelbrot_interactive.py": "asks Matplotlib for what newer ones have not",
    "matrix_transpose.py": "measures 193 matrices of up to 8192 x 8192",
    "measure_gpuarray_speed_random.py": "makes five thousand million random numbers",
    "select_to_list.py": "a mistake of its own: one thread sets the pointer that all follow",
    "simple_rgb2gray.py": "asks SciPy for what newer ones have not",
    "simple_speed_test.py": "launches two hundred thousand kernels",
    "sparse_solve.py": "needs the file of a matrix, and pymetis",
}
"""What keeps examples from their end that no simulator can mend."""
_FUTURE = "from __future__ import annotations\n"


@dataclass(frozen=True)
class CheckedFile:
    """What came of a file of tests, or of an example.

    Parameters
    ----------
    name : str
    passed : int
    skipped : tuple of str
        Why, once for each test.
    failed : tuple of str
        What, once for each test.
    """

    name: str
    passed: int = 0
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def run_tests(file: Path) -> CheckedFile:
    """Run a file of PyCUDA's tests."""
    report = file.with_suffix(".xml")
    options = ["-p", "no:cacheprovider", "-q", f"--timeout={_TEST_SECONDS}", f"--junitxml={report}"]
    _script(file.parent, ["-m", "pytest", *options, file.name], None)
    if not report.exists():
        return CheckedFile(file.name, failed=("pytest did not come to its end",))
    return read_report(file.name, report)


def read_report(name: str, report: Path) -> CheckedFile:
    """Return what pytest says of a file, in JUnit's form."""
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
    """Run an example beside a folder of packages; one that needs a module that is in neither is skipped."""
    text = file.read_text("utf-8")
    if not _INITIALIZES.search(text):
        file.write_text(text.replace(_FUTURE, f"{_FUTURE}import pycuda.autoinit\n", 1), "utf-8")
    code, complaint = _script(file.parent, [file.name], _EXAMPLE_SECONDS, packages)
    if code == 0:
        return CheckedFile(name, 1)
    last = last_line(complaint) or f"ended with {code}"
    if "ModuleNotFoundError" in last or "ImportError" in last:
        return CheckedFile(name, skipped=(last.partition(": ")[2],))
    return CheckedFile(name, failed=(last,))


def last_line(complaint: str) -> str:
    """Return what an example complained of: its last exception's first line, or its last line.

    What is said of its launches behind that is not its own.
    """
    own = [line for line in re.split("^lockstep: ", complaint, maxsplit=1, flags=re.MULTILINE)[0].splitlines() if line]
    named = [line for line in own if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (named or own or [""])[-1]


def _script(
    folder: Path, program: Sequence[str], seconds: float | None, packages: Path | None = None
) -> tuple[int, str]:
    environment = os.environ | {"MPLBACKEND": "Agg"} | ({"PYTHONPATH": str(packages)} if packages else {})
    command = [sys.executable, str(ROOT / "main.py"), "pycuda", *program]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, input="\n" * 9, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"it takes more than {seconds:g} s on this machine"
    return done.returncode, done.stderr


def page(tests: Sequence[CheckedFile], examples: Sequence[CheckedFile], day: str) -> str:
    """Return the text of the page."""
    return "\n".join(_lines(tests, examples, day)) + "\n"


def _lines(tests: Sequence[CheckedFile], examples: Sequence[CheckedFile], day: str) -> Iterator[str]:
    yield "# PyCUDA on the simulator"
    yield ""
    yield f"`make pycuda_check` runs the tests and examples of PyCUDA {pycuda_files.VERSION}, fetched from PyPI and not"
    yield f"changed, with `python main.py pycuda`, and writes this page. This one is of {day}."
    yield ""
    yield "| tests | passed | failed | skipped |"
    yield "| --- | ---: | ---: | ---: |"
    for each in tests:
        yield f"| `{each.name}` | {each.passed} | {len(each.failed)} | {len(each.skipped)} |"
    passed, failed = sum(each.passed for each in tests), sum(len(each.failed) for each in tests)
    yield f"| all | {passed} | {failed} | {sum(len(each.skipped) for each in tests)} |"
    yield ""
    yield f"Of those that were not skipped {100 * passed / max(passed + failed, 1):.1f} % pass."
    yield from _DIFFERENCES
    yield from _reasons("Failed", [f"`{each.name}` {why}" for each in tests for why in each.failed])
    yield from _reasons("Skipped, by PyCUDA's tests themselves", [why for each in tests for why in each.skipped])
    yield ""
    yield "## Examples"
    yield ""
    right = sum(each.passed for each in examples)
    wrong = [each for each in examples if each.failed]
    yield f"Of {len(examples)} examples {right} run to their end, what they assert holds, {len(wrong)} fail, and"
    yield f"{len(examples) - right - len(wrong)} need what is not installed. Those that make no context, as a release"
    yield "took `import pycuda.autoinit` from them, are given that line."
    yield from _reasons("Failed", [f"`{each.name}` {_why(each)}" for each in wrong])
    yield from _reasons("Not run", [f"`{each.name}` {each.skipped[0]}" for each in examples if each.skipped])


def _why(example: CheckedFile) -> str:
    """Return why an example fails: what is known of it, and its last line."""
    known = _KNOWN.get(Path(example.name).name)
    return f"{known} ({example.failed[0]})" if known else example.failed[0]


def _reasons(title: str, reasons: Sequence[str]) -> Iterator[str]:
    if reasons:
        yield ""
        yield f"{title}:"
        yield ""
        for why, count in Counter(_short(reason) for reason in reasons).most_common():
            yield f"- {why}" + (f" ({count})" if count > 1 else "")


def _short(reason: str) -> str:
    line = " ".join(re.sub(r"(?<![:/\w])/\S*/", "", reason).split()).replace("<", r"\<")
    return line if len(line) <= 160 else f"{line[:157]}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, and write the page; return 0 where at least 95 % of the tests pass."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.pycuda_check", description="PyCUDA's own tests, on the simulator"
    )
    parser.add_argument("--no-examples", action="store_true", help="run the tests only, and write nothing")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as held:
        archive, failure = pycuda_files.download(Path(sys.executable), Path(held))
        if archive is None:
            print(f"lockstep: PyCUDA's archive cannot be had: {failure}", file=sys.stderr)
            return 2
        with tarfile.open(archive) as packed:
            packed.extractall(held, filter="data")
        whole = Path(held) / f"pycuda-{pycuda_files.VERSION}"
        shutil.rmtree(whole / "pycuda")  # what runs is what set-up placed
        tests = [run_tests(whole / "test" / name) for name in _TESTS]
        for each in tests:
            print(f"{each.name}: {each.passed} passed, {len(each.failed)} failed, {len(each.skipped)} skipped")
            print("".join(f"  {why}\n" for why in each.failed), end="")
        if not options.no_examples:
            folder, packages = whole / "examples", Path(held) / "packages"
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), *_PACKAGES]
            subprocess.run(install, check=False)  # an example says itself what is not there
            examples = []
            for file in sorted(folder.rglob("*.py")):
                examples.append(run_example(file, str(file.relative_to(folder)), packages))
                print(f"{examples[-1].name}: {(*examples[-1].failed, *examples[-1].skipped, 'ok')[0]}", flush=True)
            PAGE.write_text(page(tests, examples, datetime.date.today().isoformat()), "utf-8")
    passed, failed = sum(each.passed for each in tests), sum(len(each.failed) for each in tests)
    return 0 if passed >= 0.95 * (passed + failed) else 1


if __name__ == "__main__":
    sys.exit(main())
