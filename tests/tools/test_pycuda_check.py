"""What is said of PyCUDA's own tests is what pytest said of them."""

from __future__ import annotations

from tools import pycuda_check
from tools.pycuda_check import CheckedFile

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="right"/>
<testcase classname="a" name="wrong"><failure message="AssertionError: 1 != 2&#10;more">trace</failure></testcase>
<testcase classname="a" name="broken"><error message="no device">trace</error></testcase>
<testcase classname="a" name="left"><skipped message="needs two devices"/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    read = pycuda_check.read_report("test_a.py", report)
    assert read == CheckedFile(
        "test_a.py", 1, ("needs two devices",), ("wrong: AssertionError: 1 != 2", "broken: no device")
    )


def test_the_page_counts_what_ran(tmp_path):
    tests = [CheckedFile("test_a.py", 18, ("left", "left"), ("one: /tmp/x/kernel.cu failed",)), CheckedFile("b.py", 1)]
    known = CheckedFile("from-wiki/sparse_solve.py", failed=("IndexError: list index out of range",))
    failed = CheckedFile("e.py", failed=("x",)), known
    examples = [CheckedFile("c.py", 1), CheckedFile("d.py", skipped=("No module",)), *failed]
    text = pycuda_check.format_page(tests, examples, "2026-11-22")
    assert "| `test_a.py` | 18 | 1 | 2 |" in text
    assert "| all | 19 | 1 | 2 |" in text
    assert "95.0% of the tests" in text
    assert "- left (2)" in text
    assert "`test_a.py` one: kernel.cu failed" in text
    assert "Of 4 examples, 1 finish" in text
    assert "- `d.py` No module" in text
    why = "needs a matrix file, and pymetis (IndexError: list index out of range)"
    assert f"- `e.py` x\n- `from-wiki/sparse_solve.py` {why}\n" in text


def test_why_an_example_fails_is_its_own_exception():
    launches = "lockstep: 2 launches; 1 ended by a mistake.\n\nk, launched at a.py:1:\n1. race\n    a[i] = 1;\n    ^\n"
    assert pycuda_check.find_error_line(f"Traceback\nLaunchError: astray\n\n{launches}") == "LaunchError: astray"
    assert (
        pycuda_check.find_error_line(f"a.CompileError: no\n[stderr:\nk.cu(1): error: x\n]\n{launches}")
        == "a.CompileError: no"
    )
    assert pycuda_check.find_error_line("Segmentation fault\n") == "Segmentation fault"
    assert pycuda_check.find_error_line(launches) == ""
