"""How long it takes from `python main.py` to the first picture of the window, each time in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 120
_WARM_UP = 1
"""Openings that are not counted: the first one reads all files."""


@dataclass(frozen=True)
class Opening:
    """One start of the window, in ms: by the clock, and of computing in the window's own process."""

    wall_ms: float
    cpu_ms: float


def openings(repetitions: int) -> Sequence[Opening]:
    """Open the window so often, as on a machine that never saw it.

    Raises
    ------
    RuntimeError
        Where it does not open.
    """
    return [_opening() for _ in range(_WARM_UP + repetitions)][_WARM_UP:]


def _opening() -> Opening:
    with tempfile.TemporaryDirectory(prefix="lockstep-opening-") as home:
        own = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "QT_QPA_PLATFORM": "offscreen"}
        environment = os.environ | own
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # who opens it every day has its bytecode
        command = [sys.executable, "-m", __name__, str(time.time())]
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=_ROOT,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = str(error.stderr or "").strip().splitlines()
            raise RuntimeError(said[-1] if said else "the window does not open") from None
    return Opening(**json.loads(done.stdout.splitlines()[-1]))


def _open(begun: float) -> int:
    """Do what `main.py` does, and leave as soon as the window has been painted."""
    from PyQt6.QtCore import QEvent, QObject, QTimer
    from PyQt6.QtWidgets import QApplication

    import main  # the file beside the folders

    class FirstPicture(QObject):
        """Tells the times when a window has been painted, and closes it."""

        told = False

        def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
            if event is not None and event.type() == QEvent.Type.UpdateRequest and not self.told:
                self.told = True
                QTimer.singleShot(0, self._tell)
            return False

        def _tell(self) -> None:
            wall, cpu = time.time() - begun, time.process_time()
            print(json.dumps({"wall_ms": 1e3 * wall, "cpu_ms": 1e3 * cpu}), flush=True)
            for window in QApplication.topLevelWidgets():
                window.close()
            QApplication.quit()

    picture = FirstPicture()
    go_on = QApplication.exec

    def watch(*_: object) -> int:
        for window in QApplication.topLevelWidgets():
            window.installEventFilter(picture)
        return go_on()

    QApplication.exec = watch  # type: ignore[method-assign]
    sys.argv = ["main.py"]
    code: int = main._main()  # noqa: SLF001
    return code


if __name__ == "__main__":
    # At once: Python's own end, so soon after a window's first picture, crashed once when all had been measured.
    os._exit(_open(float(sys.argv[1])))
