"""Measure the time from `python main.py` to the first picture of the window, each time in a new process."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.base.child_processes import last_line
from gpu.base.paths import ROOT

_TIMEOUT_S = 120
_WARM_UP_COUNT = 1
"""Number of openings that are not counted: the first one reads all files from disk."""


@dataclass(frozen=True)
class StartupTime:
    """One start of the window in ms: wall-clock time, and CPU time of the window's process."""

    wall_ms: float
    cpu_ms: float


def measure_startups(repetitions: int) -> Sequence[StartupTime]:
    """Open the window `repetitions` times, as on a machine where it has never run.

    Raises
    ------
    RuntimeError
        If the window does not open.
    """
    return [_measure_startup() for _ in range(_WARM_UP_COUNT + repetitions)][_WARM_UP_COUNT:]


def _measure_startup() -> StartupTime:
    with tempfile.TemporaryDirectory(prefix="lockstep-opening-") as home:
        overrides = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "QT_QPA_PLATFORM": "offscreen"}
        environment = os.environ | overrides
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # daily use has cached bytecode
        command = [sys.executable, "-m", __name__, str(time.time())]
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(last_line(str(error.stderr or ""), "the window does not open")) from None
    return StartupTime(**json.loads(done.stdout.splitlines()[-1]))


def _run_until_painted(start: float) -> None:
    """Run `main.py`, and close the window as soon as it has been painted."""
    from PyQt6.QtCore import QEvent, QObject, QTimer
    from PyQt6.QtWidgets import QApplication

    class FirstPicture(QObject):
        """Print the times when a window has been painted, and close it."""

        reported = False

        def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
            if event is not None and event.type() == QEvent.Type.UpdateRequest and not self.reported:
                self.reported = True
                QTimer.singleShot(0, self._report)
            return False

        def _report(self) -> None:
            wall, cpu = time.time() - start, time.process_time()
            print(json.dumps({"wall_ms": 1e3 * wall, "cpu_ms": 1e3 * cpu}), flush=True)
            for window in QApplication.topLevelWidgets():
                window.close()
            QApplication.quit()

    picture = FirstPicture()
    run_event_loop = QApplication.exec

    def exec_with_filter(*_: object) -> int:
        for window in QApplication.topLevelWidgets():
            window.installEventFilter(picture)
        return run_event_loop()

    QApplication.exec = exec_with_filter  # type: ignore[method-assign]
    sys.argv = ["main.py"]
    runpy.run_path(str(ROOT / "main.py"), run_name="__main__")


if __name__ == "__main__":
    try:
        _run_until_painted(float(sys.argv[1]))
    except SystemExit as ended:
        # Exit without Python's cleanup, which once crashed so soon after a window's first picture.
        os._exit(int(ended.code or 0))
