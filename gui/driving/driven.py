"""A window that a program drives: shown, or painted into memory where there is no display, with settings of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtCore import QCoreApplication, QEventLoop

from gui.qt.background import wait_for_background
from gui.qt.later import after, every

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

SIZE = (1280, 720)
_LOOK_MS = 20
_BACKGROUND_MS = 2000


@contextmanager
def driven(engine: str, folder: Path | None = None) -> Iterator[MainWindow]:
    """Open the window on an engine, as it takes it, and close it in the end.

    What it remembers is kept in a folder; without one it begins as on a machine that never saw it, and forgets all.
    """
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.app import application

    app = application()
    from gui.editor.drafts import Drafts
    from gui.model.settings import SavedSettings
    from gui.window.main_window import MainWindow

    with tempfile.TemporaryDirectory(prefix="lockstep-driven-") as scratch:
        home = folder or Path(scratch)
        memory = SavedSettings(home / "settings.json")
        first = not memory.geometry
        window = MainWindow(memory, engine, drafts=Drafts(home / "drafts"))
        try:
            if first:
                window.resize(*SIZE)
            window.show()
            window.begin()
            yield window
        finally:
            window.close()
            app.processEvents()


def flows_complete(window: MainWindow) -> bool:
    """Return whether all rows of Flow that are on screen are painted, which happens when there is time."""
    from gui.step_view.dataflow.view import FlowView

    return all(each.complete for each in window.findChildren(FlowView) if each.isVisible())


def wait(done: Callable[[], bool], patience_s: float) -> bool:
    """Let the window go on until something is done; return False when that takes too long."""
    loop = QEventLoop()
    in_time = True

    def check() -> None:
        if done():
            loop.quit()

    def give_up() -> None:
        nonlocal in_time
        in_time = False
        loop.quit()

    # Without a parent: they end with this call, and nothing is asked of a window that has gone.
    timers = every(_LOOK_MS, check), after(round(1000 * patience_s), give_up)
    for timer in timers:
        timer.start()
    loop.exec()
    # Pictures' smaller copies are made in the background; let the last of them be painted.
    wait_for_background(_BACKGROUND_MS)
    QCoreApplication.processEvents()
    return in_time
