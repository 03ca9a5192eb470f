"""A window that shows bodies, with an engine that a test can hold."""

from __future__ import annotations

import pytest

from gpu.messages.bodies import AdvanceBodies
from tests.gui.conftest import FakeHost


@pytest.fixture
def bodies(qtbot, make_window, saved_settings):
    """Return a window at the n-body page; its first picture is there, and what the first kernel does is verified."""
    saved_settings.pattern = "nbody"  # no other's page is made first
    window = make_window()
    window.bench.choose_pattern("nbody")
    return wait_for_picture(qtbot, window)


def wait_for_picture(qtbot, window):
    """Return a window once its first picture of bodies is there."""
    window.host = FakeHost.instances[0]
    window.view = window.page.view
    qtbot.waitUntil(lambda: window.view.frame is not None and window.is_idle)
    wait_for_simulation(qtbot, window)
    return window


def wait_for_simulation(qtbot, window):
    """Wait until nothing is asked for any more."""
    qtbot.wait(40)
    qtbot.waitUntil(lambda: not window.jobs.busy and not window.bench.pending)


def body_requests(window):
    """Return the requests that advance or draw."""
    return [request for request in window.host.requests if isinstance(request, AdvanceBodies)]
