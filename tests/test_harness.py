"""The harness itself: a warning, a log message or a stray setting makes a test fail."""

from __future__ import annotations

import logging
import os
import re
import signal
import warnings

import pytest

from gpu.base.paths import ROOT
from tests import needs

pytest_plugins = ["pytester"]


@pytest.fixture
def run_pytest(pytester, monkeypatch):
    """Return a function that runs pytest in a process, with Lockstep's modules and with no installed plugin but Qt's.

    To import all takes longer than these tests.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return lambda: pytester.runpytest_subprocess("-p", "pytest-qt")


def test_a_python_warning_is_an_error():
    with pytest.raises(UserWarning, match="careful"):
        warnings.warn("careful", stacklevel=1)


def test_an_expected_log_message_is_cleared(caplog):
    logging.getLogger("gpu.test").warning("expected")
    assert caplog.messages == ["expected"]
    caplog.clear()


@pytest.mark.parametrize(("level", "outcome"), [("warning", "errors"), ("info", "passed")])
def test_an_unexpected_log_message_fails(pytester, run_pytest, level, outcome):
    pytester.makeconftest("from tests.conftest import _no_unexpected_log")
    pytester.makepyfile(f"import logging\ndef test_it():\n    logging.getLogger('x').{level}('surprise')\n")
    result = run_pytest()
    assert result.parseoutcomes().get(outcome) == 1


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("QTest.mousePress(widget, Qt.MouseButton.RightButton)", "RightButton is left pressed"),
        ("widget.grabKeyboard()", "QPushButton is left without releaseKeyboard"),
        ("widget.grabMouse()", "QPushButton is left without releaseMouse"),
        ("dialog = QDialog(widget); dialog.open()", "QDialog is left open"),
    ],
)
def test_a_test_that_keeps_mouse_or_keyboard_fails_and_the_next_does_not(pytester, run_pytest, left, message):
    pytester.makeconftest("from tests.gui.conftest import pytest_runtest_call, pytest_runtest_teardown")
    pytester.makepyfile(
        "from PyQt6.QtCore import Qt\n"
        "from PyQt6.QtTest import QTest\n"
        "from PyQt6.QtWidgets import QDialog, QPushButton\n"
        "def test_one(qapp):\n"
        "    global widget, dialog\n"
        "    widget, dialog = QPushButton(), None\n"
        "    widget.show()\n"
        f"    {left}\n"
        "def test_other(qapp):\n"
        "    pass\n"
    )
    result = run_pytest()
    assert result.parseoutcomes() == {"passed": 2, "errors": 1}
    result.stdout.fnmatch_lines([f"*{message}*", "ERROR *::test_one*"])


def test_settings_live_in_a_folder_of_the_test(qapp, tmp_path_factory):
    from gpu.base.folders import settings_file
    from gui.model.settings import SavedSettings

    assert settings_file().is_relative_to(tmp_path_factory.getbasetemp())
    assert not settings_file().exists()
    SavedSettings().theme = "light"
    assert settings_file().exists()


def test_settings_are_new_in_every_test(qapp):
    from gui.model.settings import SavedSettings

    assert SavedSettings().theme == "dark"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("pass", None),
        ("import tempfile; tempfile.mkdtemp(prefix='forgotten-')", None),
        (
            "import pathlib; pathlib.Path('~/.cache/lockstep-forgotten').expanduser().mkdir(parents=True)",
            "file *lockstep-forgotten",
        ),
        ("import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True)", "process * sleep 60*"),
    ],
)
@needs.linux
def test_what_tests_leave_behind_fails_the_session(pytester, run_pytest, monkeypatch, body, left):
    for name in ("PYTEST_XDIST_WORKER", "LOCKSTEP_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest(
        "from tests import leftovers\n"
        "leftovers.PATIENCE_S = 0.5\n"
        "def pytest_configure(config): config.pluginmanager.register(leftovers.LeftoversPlugin())\n"
    )
    pytester.makepyfile(f"def test_it():\n    {body}\n")
    result = run_pytest()
    assert result.parseoutcomes() == {"passed": 1}
    assert result.ret == (left is not None)
    if left is not None:
        result.stdout.fnmatch_lines(["*left behind by the tests*", left])
    for pid in re.findall(r"process (\d+) sleep 60", result.stdout.str()):
        os.kill(int(pid), signal.SIGKILL)
