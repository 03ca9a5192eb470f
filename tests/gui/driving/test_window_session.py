"""A window that a program drives."""

from __future__ import annotations

import os
import subprocess
import sys

from gpu.base.paths import ROOT
from gui.driving.window_session import wait_until
from tests import needs


def test_nothing_is_asked_once_a_wait_is_over(qtbot):
    asked = []

    def is_finished():
        asked.append(True)
        return len(asked) > 2

    assert wait_until(is_finished, 10)
    before = len(asked)
    qtbot.wait(200)
    assert len(asked) == before
    assert not wait_until(lambda: False, 0.05)


_OPENINGS = """
import gc, os, weakref
from PyQt6.QtCore import QCoreApplication
from gui.driving.window_session import open_window, wait_until

windows = []

def are_deleted():
    gc.collect()
    return all(each() is None for each in windows)

if __name__ == "__main__":
    for _ in range(6):
        with open_window("null") as window:
            windows.append(weakref.ref(window))
            QCoreApplication.processEvents()
        del window
        wait_until(are_deleted, 5)  # what still waits for the background or for a deferred deletion
        print(sum(each() is not None for each in windows), len(gc.get_objects()), len(os.listdir("/proc/self/fd")))
"""


@needs.linux
def test_windows_that_are_opened_one_after_the_other_leave_nothing(tmp_path):
    """Each was kept by its signals, since Qt's application, and all widgets with it, ended with the first window."""
    script = tmp_path / "openings.py"
    script.write_text(_OPENINGS)
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=100, env=environment
    )
    alive, objects, descriptors = zip(*(map(int, line.split()) for line in done.stdout.splitlines()), strict=True)
    assert max(alive) == 0
    # The bounds are half of what four windows kept: modules may be imported late, and a pipe be closed a moment later.
    assert objects[-1] - objects[1] < 5_600
    assert descriptors[-1] - descriptors[1] <= 2
