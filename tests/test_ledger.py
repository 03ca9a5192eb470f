"""The ledger of a whole run: a case that did not run, and has no marker for it, fails `make test`."""

from __future__ import annotations

import json

import pytest

from tests import ledger

pytest_plugins = ["pytester"]

CASES = """
import pytest

def test_runs(): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.sweep)])
def test_has_two_tiers(n): pass

@pytest.mark.skip(reason="needs a browser: pip install one")
def test_is_skipped(): pass

def test_fails(): assert False

@pytest.mark.gpu
def test_of_a_gpu(): pass
"""
MARKERS = "[pytest]\nmarkers =\n    sweep: x\n    gpu: x\n"
CONFTEST = """
from pathlib import Path
from tests.ledger import LedgerPlugin

def pytest_configure(config):
    config.pluginmanager.register(LedgerPlugin(Path("ledger"), ""))
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs the cases above once, with arguments, in an empty folder."""
    monkeypatch.setenv("PYTHONPATH", str(ledger.Path(ledger.__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # their imports take longer than this run
    pytester.makeini(MARKERS)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_cases=CASES)
    return lambda *arguments: pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_what_ran_is_told_from_what_another_tier_and_what_nothing_explains(run, pytester, capsys):
    run("-m", "not sweep and not gpu")
    folder = pytester.path / "ledger"
    found = ledger.Ledger.read(folder)
    assert len(found.markers) == 6
    assert found.executed == {f"test_cases.py::{name}" for name in ("test_runs", "test_has_two_tiers[1]", "test_fails")}
    assert found.skipped == {"test_cases.py::test_is_skipped": "needs a browser: pip install one"}
    assert found.unexplained == found.untested_functions == ["test_cases.py::test_of_a_gpu"]
    assert ledger.main([str(folder)]) == 1
    assert "  test_cases.py::test_of_a_gpu" in capsys.readouterr().out
    run("-m", "gpu")
    assert ledger.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "4 of 6 cases ran, of 5 test functions; 1 skipped, 1 left to make sweep" in said
    assert "      1 needs a browser: pip install one" in said


def test_a_function_of_which_no_case_is_in_the_first_tier_is_a_defect(tmp_path, capsys):
    (tmp_path / "collected-0.json").write_text(json.dumps({"a.py::f": [], "a.py::g[1]": ["sweep"]}))
    (tmp_path / "executed-0.json").write_text(json.dumps({"a.py::f": ""}))
    assert ledger.main([str(tmp_path)]) == 1
    assert "no case is in make test:\n  a.py::g\n" in capsys.readouterr().out


def test_a_run_without_any_case_is_no_success(tmp_path):
    assert ledger.main([str(tmp_path)]) == 1


def test_what_a_gpu_skipped_and_its_stand_in_ran_has_run(tmp_path):
    (tmp_path / "collected-0.json").write_text(json.dumps({"a.py::f": ["gpu"]}))
    for number, reason in enumerate(("needs an NVIDIA GPU", "")):
        (tmp_path / f"executed-{number}.json").write_text(json.dumps({"a.py::f": reason}))
    found = ledger.Ledger.read(tmp_path)
    assert (found.executed, found.skipped) == ({"a.py::f"}, {})
