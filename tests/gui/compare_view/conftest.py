"""The Compare tab in a window of its own."""

from __future__ import annotations

import pytest
from PyQt6 import sip
from PyQt6.QtWidgets import QWidget

from gpu.patterns import find_pattern
from gui.compare_view.tab import CompareTab
from gui.widgets.basic import column
from tests.gui.tab_window import TabWindow


class CompareWindow(TabWindow):
    """A window whose only content is the Compare tab, below its corner of the tab bar.

    `host` is the engine's host.
    """

    def __init__(self, saved_settings, pattern):
        super().__init__(saved_settings, pattern, saved_settings.variant(find_pattern(pattern)))
        bench = self.bench
        settings = bench.settings[pattern]
        self.host = self.jobs._host
        self.compare = CompareTab(
            bench.pattern,
            bench.sources,
            self.jobs,
            lambda: settings.params,
            lambda: {} if bench.image is None else bench.image.inputs,
            bench.modeling,
            lambda: settings.variant,
        )
        bench.image_changed.connect(lambda _: self.compare.on_image_changed())
        content = QWidget()
        content.setLayout(column(self.compare.views, self.compare, stretch=1))
        self.setCentralWidget(content)
        self.resize(1122, 634)  # with the tab as large as in the whole window


@pytest.fixture
def open_compare(qtbot, saved_settings):
    """Return a function that opens the Compare tab of a pattern in a window of its own, once the engine is ready."""
    windows = []

    def open_at(pattern):
        window = CompareWindow(saved_settings, pattern)
        windows.append(window)
        with qtbot.waitExposed(window):
            window.show()
        qtbot.waitUntil(lambda: window.jobs.device is not None)
        return window

    yield open_at
    for window in windows:
        window.close()
        sip.delete(window)
