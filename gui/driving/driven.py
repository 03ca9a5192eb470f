"""A window that a program drives: shown, or painted into memory where there is no display, with settings of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtCore import QCoreApplication, QEventLoop, QSettings, QTimer

from gui.work.background import wait_for_aside

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

SIZE = (1280, 720)
_ASIDE_MS = 2000


@contextmanager
def driven(engine: str) -> Iterator[MainWindow]:
    """Open the window on an engine, as it takes it, and close it in the end."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.app import application

    app = application()
    from gui.window.main_window import MainWindow
    from gui.work.settings import Memory

    with tempfile.TemporaryDirectory(prefix="lockstep-driven-") as scratch:
        memory = Memory(QSettings(str(Path(scratch, "settings.ini")), QSettings.Format.IniFormat))
        window = MainWindow(memory, engine)
        try:
            window.resize(*SIZE)
            window.show()
            window.begin()
            yield window
        finally:
            window.close()
            app.processEvents()


def wait(done: Callable[[], bool], patience_s: float) -> bool:
    """Let the window go on until something is done; return False when that takes too long."""
    loop = QEventLoop()
    look, limit = QTimer(), QTimer(singleShot=True)
    in_time = True

    def check() -> None:
        if done():
            loop.quit()

    def give_up() -> None:
        nonlocal in_time
        in_time = False
        loop.quit()

    look.timeout.connect(check)
    limit.timeout.connect(give_up)
    look.start(20)
    limit.start(round(1000 * patience_s))
    loop.exec()
    # Pictures' smaller copies are made aside; let the last of them be painted.
    wait_for_aside(_ASIDE_MS)
    QCoreApplication.processEvents()
    return in_time
