"""A window whose Step tab plays real recordings, made in this process."""

from __future__ import annotations

import pytest

from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.timelines import TimelinePattern
from tests.gui.conftest import FakeHost
from tests.gui.recordings import record


@pytest.fixture
def open_step_tab(qtbot, make_window, saved_settings, monkeypatch, gray):
    """Return a function that opens the window at the Step tab of a pattern and waits for its picture."""
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

    def open_at(pattern="scan", variant="brent-kung", **params):
        saved_settings.pattern = pattern  # no other's page is made first
        window = make_window()
        window.bench.open_image(gray)
        qtbot.waitUntil(lambda: window.bench.image is not None)
        window.choose_pattern(pattern)
        window.choose_variant(variant)
        tab = window.page.step
        tab.settings.form.change_values(**params)
        window.page.tabs.setCurrentIndex(1)
        wait_for_recording(qtbot, tab)
        return window

    return open_at


def wait_for_recording(qtbot, tab):
    """Wait until the newest recording is shown."""
    qtbot.waitUntil(lambda: tab.is_up_to_date, timeout=20_000)
