"""A real window that a program drives, offscreen if there is no display, with its own settings."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtCore import QCoreApplication, QEventLoop
from PyQt6.QtWidgets import QWidget

from gui.qt.background import wait_for_background
from gui.qt.timers import create_repeating_timer, create_single_shot_timer

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

SIZE = (1280, 720)
_CHECK_INTERVAL_MS = 20
_BACKGROUND_TIMEOUT_MS = 2000


@contextmanager
def open_window(engine: str, folder: Path | None = None) -> Iterator[MainWindow]:
    """Open the window on an engine, and close it at the end.

    Settings are saved in `folder`. Without a folder, the window starts with defaults and nothing is saved.
    """
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from gui.app import application

    app = application()
    from gui.editor.drafts import Drafts
    from gui.model.settings import SavedSettings
    from gui.window.main_window import MainWindow

    with tempfile.TemporaryDirectory(prefix="lockstep-driven-") as scratch:
        settings_folder = folder or Path(scratch)
        saved_settings = SavedSettings(settings_folder / "settings.json")
        first = not saved_settings.geometry
        window = MainWindow(saved_settings, engine, drafts=Drafts(settings_folder / "drafts"))
        try:
            if first:
                window.resize(*SIZE)
            window.show()
            window.load_first_input()
            yield window
        finally:
            window.close()
            app.processEvents()


def are_flows_complete(parent: QWidget) -> bool:
    """Return whether all visible rows of Flow in a widget are painted; they are painted when the window is idle."""
    from gui.step_view.dataflow.view import FlowView

    return all(each.complete for each in parent.findChildren(FlowView) if each.isVisible())


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Process events until `condition` returns true; return False on a timeout."""
    loop = QEventLoop()
    in_time = True

    def check() -> None:
        if condition():
            loop.quit()

    def on_timeout() -> None:
        nonlocal in_time
        in_time = False
        loop.quit()

    # Without a parent, because they end with this call, and a parent window might be deleted earlier.
    timers = (
        create_repeating_timer(_CHECK_INTERVAL_MS, check),
        create_single_shot_timer(round(1000 * timeout_s), on_timeout),
    )
    for timer in timers:
        timer.start()
    loop.exec()
    # Reduced copies of pictures are computed in the background; paint the last of them.
    wait_for_background(_BACKGROUND_TIMEOUT_MS)
    QCoreApplication.processEvents()
    return in_time
