"""The application as it is started: what goes wrong in a part of it does not end it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

FAILS = """
import sys
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication
from gui.app import application, main
from gui.window.main_window import MainWindow

def fail():
    QTimer.singleShot(0, look)
    raise ZeroDivisionError("out of luck")

def look():
    window = next(each for each in QApplication.topLevelWidgets() if isinstance(each, MainWindow))
    print(window.banner.message.text(), window.banner.detail.toPlainText().splitlines()[-1], sep="\\n")
    window.close()

if __name__ == "__main__":
    application()
    QTimer.singleShot(0, fail)
    sys.exit(main(["--engine", "null"]))
"""


def test_a_mistake_in_a_part_of_the_window_is_said_and_does_not_end_it(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "Lockstep made a mistake: ZeroDivisionError.",
        "ZeroDivisionError: out of luck",
    ]
    assert "out of luck" in done.stderr
    assert done.returncode == 0
