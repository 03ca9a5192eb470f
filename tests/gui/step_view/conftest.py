"""The Step tab, in the whole window or alone, that plays real recordings, made in this process."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6 import sip
from PyQt6.QtWidgets import QWidget

from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.timelines import TimelinePattern
from gui.step_view.recording.steppable import make_variant_steppable
from gui.step_view.tab import StepTab
from gui.step_view.warps.timeline_requests import TimelineSubject
from gui.widgets.basic import column
from tests.gui.conftest import FakeHost
from tests.gui.recordings import record
from tests.gui.tab_window import TabWindow


@pytest.fixture
def real_recordings(monkeypatch):
    """Have the host record and model timelines."""
    from gpu.base.errors import LockstepError
    from gpu.engines.null import NullEngine
    from gpu.run.handlers.execution import execute_request

    answered = FakeHost.result_of

    def answer(self, request):
        if not isinstance(request, StepPattern | TimelinePattern):
            return answered(self, request)
        try:
            if isinstance(request, StepPattern):
                return record(request, self.folder)
            return execute_request(NullEngine(), request, self.folder, lambda progress: None)
        except LockstepError as error:
            return Failure("input", error.message, error.advice)

    monkeypatch.setattr(FakeHost, "result_of", answer)


@pytest.fixture
def open_step_tab(qtbot, make_window, saved_settings, real_recordings, gray):
    """Return a function that opens the whole window at the Step tab of a pattern and waits for its picture."""

    def open_at(pattern="scan", variant="brent-kung", **params):
        # The window opens there at once: it lays out and paints no other page or tab first.
        saved_settings.pattern = pattern
        saved_settings.store_settings(pattern, variant, {})
        saved_settings.store_step(pattern, params, "")
        saved_settings.store_tab(pattern, "Step")
        window = make_window()
        window.bench.open_image(gray)
        qtbot.waitUntil(lambda: window.bench.image is not None)
        wait_for_recording(qtbot, window.page.step)
        return window

    return open_at


class StepWindow(TabWindow):
    """A window whose only content is the Step tab, below its corner of the tab bar."""

    def __init__(self, saved_settings, pattern, variant):
        super().__init__(saved_settings, pattern, variant)
        bench = self.bench
        timeline_subject = TimelineSubject(bench.modeling, bench.build_timeline_request, bench.block_sizes)
        self.tab = StepTab(self._make_steppable(variant), bench.sources, lambda: bench.side_jobs, timeline_subject)
        bench.image_changed.connect(self._show_image)
        content = QWidget()
        content.setLayout(column(self.tab.corner(), self.tab, stretch=1))
        self.setCentralWidget(content)
        self.resize(1122, 634)  # with the tab as large as in the whole window

    def _make_steppable(self, variant):
        pattern = self.bench.pattern
        return make_variant_steppable(pattern, pattern.variant(variant))

    def _show_image(self, image):
        self.tab.show_input("image", {"image": image.values, "maxval": np.array(image.maxval, np.uint32)})

    def choose_variant(self, name):
        """Show another variant."""
        self.bench.settings[self.bench.pattern_name].variant = name
        self.tab.show_steppable(self._make_steppable(name))

    def closeEvent(self, event):
        self.tab.close_down()
        super().closeEvent(event)


@pytest.fixture
def open_tab(qtbot, saved_settings, real_recordings, gray):
    """Return a function that opens the Step tab of a pattern in a window of its own and waits for its picture."""
    windows = []

    def open_at(pattern="scan", variant="brent-kung", **params):
        window = StepWindow(saved_settings, pattern, variant)
        windows.append(window)
        if window.bench.pattern.is_image_pattern:
            window.bench.open_image(gray)
            qtbot.waitUntil(lambda: window.bench.image is not None)
        window.tab.settings.form.change_values(**params)
        with qtbot.waitExposed(window):
            window.show()
        wait_for_recording(qtbot, window.tab)
        return window.tab

    yield open_at
    for window in windows:
        window.close()
        sip.delete(window)


def wait_for_recording(qtbot, tab):
    """Wait until the newest recording is shown."""
    qtbot.waitUntil(lambda: tab.is_up_to_date, timeout=20_000)
