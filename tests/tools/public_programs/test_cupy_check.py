"""The tables of docs/cupy.md: what counts as passed and finished, and that the text above them stays."""

from __future__ import annotations

from tools.public_programs import cupy_check, cupy_scripts
from tools.public_programs.cupy_scripts import PublicScript
from tools.pycuda_check import CheckedFile

ATTRIBUTES = "test_kernel_attributes"
ERROR = (
    "Traceback (most recent call last):\ncupy.cuda.compiler.CompileException: k.cu:1: error: x\n    text\nlockstep: 1\n"
)


def test_the_sections_count_tests_and_scripts():
    tests = [
        CheckedFile(
            "test_raw.py",
            27,
            ("2 GPUs",),
            (f"{ATTRIBUTES}[a]: assert 0 > 0", f"{ATTRIBUTES}[b]: 0", f"other: {'wrong' * 40}"),
        )
    ]
    scripts = [
        (PublicScript("a/b", "one.py"), ""),
        (PublicScript("a/b", "two.py", has_kernel=False), "ValueError: no"),
        (PublicScript("c/d", "cupy04.py"), "invalid"),
    ]
    text = cupy_check.format_sections(tests, "5 of 6", scripts, "2026-11-27")
    assert "| `test_raw.py` | 27 | 3 | 1 |" in text
    assert "90.0% of the tests" in text
    assert "5 of 6 examples" in text
    assert "- `test_raw.py` `test_kernel_attributes`: A number of registers is needed (2)\n" in text
    other = next(line for line in text.splitlines() if "`other`: wrong" in line)
    assert other.endswith("...")
    assert len(other) == 162
    assert "| [a/b](https://github.com/a/b) | 2 | 1 | 1 |" in text
    assert "| all | 3 | 2 | 1 |" in text
    assert "- `two.py` (ValueError: no)\n" in text
    assert "- `cupy04.py` launches blocks of 0 threads, which a GPU refuses too (invalid)\n" in text
    page = cupy_check.replace_sections("# CuPy\n\nHand-written.\n\n## CuPy's own tests\n\nold\n", text)
    assert page.startswith("# CuPy\n\nHand-written.\n\n## CuPy's own tests\n\n`python -m")
    assert "old" not in page


def test_a_script_runs_with_its_changes_and_reports_its_error(tmp_path):
    repository, work = tmp_path / "clone", tmp_path / "work"
    repository.mkdir()
    work.mkdir()
    (repository / "script.py").write_text(
        "import sys, cupy as cp, matplotlib.pyplot\nn = 10 ** 9\nassert cp.arange(n).size == int(sys.argv[1])\n"
    )
    changes = (("10 ** 9", "1000"),)
    for expected, error in (("1000", ""), ("999", "AssertionError")):
        script = PublicScript("a/b", "script.py", (expected,), changes)
        assert cupy_scripts.run_script(script, repository, work) == error
    assert cupy_scripts.find_error(ERROR) == "cupy.cuda.compiler.CompileException: k.cu:1: error: x"


def test_a_script_that_its_repository_no_longer_has_did_not_finish(tmp_path):
    assert cupy_scripts.run_script(PublicScript("a/b", "old/one.py"), tmp_path, tmp_path) == "a/b does not have it"
