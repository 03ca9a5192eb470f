"""The first start offers three ways to begin; later starts, and starts with a file, do not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PyQt6.QtCore import Qt

from gpu.base.paths import ROOT
from gui.window.start_dialog import StartDialog


@pytest.fixture
def start(qtbot, make_window):
    """Open a window with the dialog; return the window and a function that clicks a button of the dialog."""
    window = make_window()
    window.show_start()
    dialog = window.findChild(StartDialog)
    assert dialog.isVisible()

    def click(text):
        chosen = next(each for each in dialog.buttons if each.text() == text)
        with qtbot.waitSignal(dialog.destroyed):
            qtbot.mouseClick(chosen, Qt.MouseButton.LeftButton)

    return window, click


def test_a_beginner_gets_the_first_lesson(qtbot, start):
    window, click = start
    click("Open lesson 1")
    lessons = window.teaching.lessons
    qtbot.waitUntil(lambda: lessons.lesson is not None)
    assert lessons.lesson == lessons.shelves[""].lessons[0]
    assert window.teaching.pane.isVisible()


def test_a_lecturer_gets_the_first_moment_of_a_lecture_on_reduction(qtbot, start):
    window, click = start
    click("Open a lecture on reduction")
    assert window.sequences.path.name == "1-reduction.sequence"
    assert window.sequences.index == 0
    assert window.bench.pattern_name == "reduction"
    assert window.page.stepping


def test_a_programmer_opens_a_file(qtbot, start, tmp_path, monkeypatch):
    window, click = start
    path = tmp_path / "own.cu"
    path.write_text("__global__ void own(float *a) { a[threadIdx.x] = 1; }")
    monkeypatch.setattr("gui.user_kernel.user_file.choose_existing_file", lambda *words: path)
    click("Open a file…")
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None)
    assert window.user_file.visible_page.path == path


def test_it_can_be_left_with_a_key(qtbot, start):
    window, _ = start
    dialog = window.findChild(StartDialog)
    with qtbot.waitSignal(dialog.destroyed):
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)


STARTS = """
import os, sys
from PyQt6.QtCore import QTimer
from gui import app
from gui.window.start_dialog import StartDialog

open_first_file = app._open_first_file

def look(window, *arguments):
    open_first_file(window, *arguments)
    print(window.findChild(StartDialog) is not None)
    QTimer.singleShot(0, window.close)

if __name__ == "__main__":
    app._open_first_file = look
    for start in sys.argv[1:]:
        os.environ["LOCKSTEP_SETTINGS"], *arguments = start.split()
        assert app.main([*arguments, "--engine", "null"]) == 0
"""


def test_it_is_shown_at_the_first_start_without_a_file(tmp_path):
    script, kernel = tmp_path / "starts.py", tmp_path / "own.cu"
    script.write_text(STARTS)
    kernel.write_text("__global__ void own(float *a) { a[threadIdx.x] = 1; }")
    starts = ("new.json", "new.json", f"other.json {kernel.name}")
    done = subprocess.run(
        [sys.executable, str(script), *starts],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "False", "False"], "the first start, the second, and one with a file"
