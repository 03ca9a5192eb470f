"""On a GPU there is more to do by default, in the form too; what somebody has chosen stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.requests import Ready
from gpu.messages.timing import Timing
from gui.model.settings import SavedSettings
from tests.gui import conftest
from tests.gui.conftest import FakeHost, settle

# So few multiprocessors that what is pretended to run stays small.
ON_GPU = replace(conftest.DEVICE, engine="cuda", executor="gpu", multiprocessors=1)


@pytest.fixture
def shown(qtbot, window):
    """A window that shows a sort that is quick, of 8192 keys where nobody has chosen."""
    window.choose_pattern("sort")
    window.choose_variant("radix")
    settle(qtbot, window)
    window.host = FakeHost.made[0]
    return window


def goes_to(qtbot, window, device, monkeypatch):
    monkeypatch.setattr(conftest, "DEVICE", device)
    window.host.deliver(0, Ready(device))
    qtbot.waitUntil(lambda: window.jobs.device == device)
    settle(qtbot, window)


def n_of(window):
    return window.page.form.values["n"], window.bench.settings["sort"].params["n"]


def test_the_form_shows_what_suits_the_gpu_and_runs_it(qtbot, shown, monkeypatch):
    assert n_of(shown) == (2**13, 2**13)
    goes_to(qtbot, shown, ON_GPU, monkeypatch)
    assert n_of(shown) == (2**17, 2**17)
    assert shown.host.runs("sort")[-1].params["n"] == 2**17
    goes_to(qtbot, shown, replace(ON_GPU, multiprocessors=2), monkeypatch)
    assert n_of(shown) == (2**18, 2**18)
    goes_to(qtbot, shown, replace(ON_GPU, engine="simulator", executor="compiled"), monkeypatch)
    assert n_of(shown) == (2**13, 2**13), "the simulator keeps its own"


def test_what_somebody_has_chosen_stays(qtbot, shown, monkeypatch):
    shown.page.form.change(n=1000)
    settle(qtbot, shown)
    goes_to(qtbot, shown, ON_GPU, monkeypatch)
    assert n_of(shown) == (1000, 1000)
    # Even where it is another device's default.
    shown.page.form.change(n=2**13)
    settle(qtbot, shown)
    goes_to(qtbot, shown, replace(ON_GPU, multiprocessors=2), monkeypatch)
    assert n_of(shown) == (2**13, 2**13)


def test_only_what_was_chosen_is_remembered(qtbot, shown, monkeypatch, store, make_window):
    goes_to(qtbot, shown, ON_GPU, monkeypatch)
    shown.page.form.change(block="64")
    settle(qtbot, shown)
    shown.close()
    kept = SavedSettings(store)
    pattern = shown.bench.patterns["sort"]
    assert "n" not in kept.chosen(pattern)
    assert kept.params(pattern)["block"] == "64"
    again = make_window()
    settle(qtbot, again)
    assert again.bench.settings["sort"].params["n"] == 2**17, "it is a GPU's default again"


def test_a_saved_size_is_taken_again_on_a_gpu(qtbot, shown, monkeypatch, make_window):
    shown.page.form.change(n=5000)
    settle(qtbot, shown)
    shown.close()
    monkeypatch.setattr(conftest, "DEVICE", ON_GPU)
    again = make_window()
    qtbot.waitUntil(lambda: again.jobs.device == ON_GPU)
    assert again.bench.settings["sort"].params["n"] == 5000


def test_a_click_runs_the_size_that_is_offered(qtbot, shown, monkeypatch):
    report = shown.host._report
    timing = Timing(0.012, 0.011, 0.013, 9, 1, launch=0.002, comparable_from=2**17, size=1000, of="n")
    shown.host._report = lambda request, wrong=False: replace(report(request, wrong), timing=timing)
    shown.page.form.change(n=1000)
    settle(qtbot, shown)
    assert shown.page.numbers.larger.isVisible()
    shown.page.numbers.larger.click()
    settle(qtbot, shown)
    assert n_of(shown) == (2**17, 2**17)
    assert shown.host.runs("sort")[-1].params["n"] == 2**17


def test_a_click_compares_images_at_the_size_that_is_offered(qtbot, window, monkeypatch):
    timing = Timing(0.012, 0.011, 0.013, 9, 1, launch=0.002, comparable_from=4096, size=512)
    host = FakeHost.made[0]
    report = host._report
    host._report = lambda request, wrong=False: replace(report(request, wrong), timing=timing)
    window.page.form.change(size=7)
    settle(qtbot, window)
    window.page.numbers.larger.click()
    assert window.page.comparing is window.page.compare
