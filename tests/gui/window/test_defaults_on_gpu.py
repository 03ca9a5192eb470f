"""On a GPU there is more to do by default, in the form too; what somebody has chosen stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.events import Ready
from gpu.messages.runs.timing import Timing
from gui.model.settings import SavedSettings
from tests.gui import conftest
from tests.gui.conftest import FakeHost, wait_until_idle

# So few multiprocessors that what is pretended to run stays small.
ON_GPU = replace(conftest.DEVICE, engine="cuda", executor="gpu", multiprocessors=1)


@pytest.fixture
def sort_window(qtbot, window):
    """A window that shows a sort that is quick, of 8192 keys where nobody has chosen."""
    window.choose_pattern("sort")
    window.choose_variant("radix")
    wait_until_idle(qtbot, window)
    window.host = FakeHost.instances[0]
    return window


def switch_device(qtbot, window, device, monkeypatch):
    monkeypatch.setattr(conftest, "DEVICE", device)
    window.host.deliver(0, Ready(device))
    qtbot.waitUntil(lambda: window.jobs.device == device)
    wait_until_idle(qtbot, window)


def entered_size(window):
    return window.page.form.values["n"], window.bench.settings["sort"].params["n"]


def test_the_form_shows_what_suits_the_gpu_and_runs_it(qtbot, sort_window, monkeypatch):
    assert entered_size(sort_window) == (2**13, 2**13)
    switch_device(qtbot, sort_window, ON_GPU, monkeypatch)
    assert entered_size(sort_window) == (2**15, 2**15)
    assert sort_window.host.runs("sort")[-1].params["n"] == 2**15
    switch_device(qtbot, sort_window, replace(ON_GPU, multiprocessors=2), monkeypatch)
    assert entered_size(sort_window) == (2**16, 2**16)
    switch_device(qtbot, sort_window, replace(ON_GPU, engine="simulator", executor="compiled"), monkeypatch)
    assert entered_size(sort_window) == (2**13, 2**13), "the simulator keeps its own"


def test_what_somebody_has_chosen_stays(qtbot, sort_window, monkeypatch):
    sort_window.page.form.change_values(n=1000)
    wait_until_idle(qtbot, sort_window)
    switch_device(qtbot, sort_window, ON_GPU, monkeypatch)
    assert entered_size(sort_window) == (1000, 1000)
    # Even where it is another device's default.
    sort_window.page.form.change_values(n=2**13)
    wait_until_idle(qtbot, sort_window)
    switch_device(qtbot, sort_window, replace(ON_GPU, multiprocessors=2), monkeypatch)
    assert entered_size(sort_window) == (2**13, 2**13)


def test_only_what_was_chosen_is_remembered(qtbot, sort_window, monkeypatch, store, make_window):
    switch_device(qtbot, sort_window, ON_GPU, monkeypatch)
    sort_window.page.form.change_values(block="64")
    wait_until_idle(qtbot, sort_window)
    sort_window.close()
    kept = SavedSettings(store)
    pattern = sort_window.bench.patterns["sort"]
    assert "n" not in kept.list_saved_params(pattern)
    assert kept.params(pattern)["block"] == "64"
    again = make_window()
    wait_until_idle(qtbot, again)
    assert again.bench.settings["sort"].params["n"] == 2**15, "it is a GPU's default again"


def test_a_saved_size_is_taken_again_on_a_gpu(qtbot, sort_window, monkeypatch, make_window):
    sort_window.page.form.change_values(n=5000)
    wait_until_idle(qtbot, sort_window)
    sort_window.close()
    monkeypatch.setattr(conftest, "DEVICE", ON_GPU)
    again = make_window()
    qtbot.waitUntil(lambda: again.jobs.device == ON_GPU)
    assert again.bench.settings["sort"].params["n"] == 5000


def test_a_click_runs_the_size_that_is_offered(qtbot, sort_window, monkeypatch):
    report = sort_window.host._report
    timing = Timing(0.012, 0.011, 0.013, 9, 1, empty_launch=0.002, comparable_from=2**15, size=1000, size_parameter="n")
    sort_window.host._report = lambda request, wrong=False: replace(report(request, wrong), timing=timing)
    sort_window.page.form.change_values(n=1000)
    wait_until_idle(qtbot, sort_window)
    assert sort_window.page.numbers.larger_button.isVisible()
    sort_window.page.numbers.larger_button.click()
    wait_until_idle(qtbot, sort_window)
    assert entered_size(sort_window) == (2**15, 2**15)
    assert sort_window.host.runs("sort")[-1].params["n"] == 2**15


def test_a_click_compares_images_at_the_size_that_is_offered(qtbot, window, monkeypatch):
    timing = Timing(0.012, 0.011, 0.013, 9, 1, empty_launch=0.002, comparable_from=4096, size=512)
    host = FakeHost.instances[0]
    report = host._report
    host._report = lambda request, wrong=False: replace(report(request, wrong), timing=timing)
    window.page.form.change_values(size=7)
    wait_until_idle(qtbot, window)
    window.page.numbers.larger_button.click()
    assert window.page.comparing is window.page.compare
