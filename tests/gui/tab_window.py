"""A window that holds one tab of a pattern, for tests of the tab itself: the whole window takes three times as long."""

from __future__ import annotations

from PyQt6.QtWidgets import QMainWindow

from gui.model.request_queue import RequestQueue
from gui.model.workbench import Workbench
from gui.painting.style import style_sheet
from gui.painting.theme import look, palette
from gui.qt.background import finish_background
from gui.window.appearance import Appearance
from tests.gui.conftest import FakeHost


class TabWindow(QMainWindow):
    """A window with a workbench and the application's look, whose only content is a tab.

    Parameters
    ----------
    saved_settings : SavedSettings
        Supplies the look.
    pattern, variant : str
        The workbench's current pattern and its variant.
    """

    def __init__(self, saved_settings, pattern, variant):
        super().__init__()
        FakeHost.instances = []
        self.jobs, side_jobs, modeling_jobs = (RequestQueue(FakeHost, self) for _ in range(3))
        self.jobs.start("null")
        self.bench = Workbench(self.jobs, self, side=side_jobs, modeling_jobs=modeling_jobs)
        self.bench.pattern_name = pattern
        self.bench.settings[pattern].variant = variant
        self.appearance = Appearance(saved_settings, self)
        self.appearance.changed.connect(self._apply_look)
        self._apply_look()

    def _apply_look(self):
        self.setPalette(palette(look().theme))
        self.setStyleSheet(style_sheet(look()))

    def closeEvent(self, event):
        self.bench.close()
        super().closeEvent(event)
        finish_background()
