"""Counts of runs: simulated runs are counted in a side process; runs on a GPU are only timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import CountPattern
from tests.gui import conftest
from tests.gui.conftest import FakeHost, wait_until_idle


@pytest.fixture
def simulated(qtbot, monkeypatch, make_window, gray):
    """A window whose engine is a simulator."""
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, engine="simulator"))
    window = make_window()
    window.bench.open_image(gray)
    wait_until_idle(qtbot, window)
    window.host, window.side = FakeHost.instances[0], FakeHost.instances[-1]
    return window


def count_requests(host):
    return [request for request in host.requests if isinstance(request, CountPattern)]


def select_variant(qtbot, window, variant):
    window.choose_variant(variant)
    wait_until_idle(qtbot, window)
    return window.page.numbers


def test_a_simulated_run_is_counted_once_by_the_side_process(qtbot, simulated):
    numbers = select_variant(qtbot, simulated, "constant")
    assert numbers.source.text() == "counted"
    assert numbers.counts_view.figure.text() == "12"
    request = count_requests(simulated.side)[-1]
    run = simulated.host.runs("convolution")[-1]
    assert (request.variant, request.params, request.inputs) == (run.variant, run.params, run.inputs)
    assert not count_requests(simulated.host)
    assert select_variant(qtbot, simulated, "tiled").counts_view.figure.text() == "16"
    before = len(count_requests(simulated.side))
    assert select_variant(qtbot, simulated, "constant").counts_view.figure.text() == "12"
    assert len(count_requests(simulated.side)) == before


def test_late_counts_are_not_shown_for_another_variant(qtbot, simulated):
    simulated.side.answers_later = True
    simulated.choose_variant("constant")
    qtbot.waitUntil(lambda: len(simulated.side.pending) == 1 and bool(count_requests(simulated.side)))
    assert simulated.page.numbers.source.text() == "counting…"
    simulated.choose_variant("separable")
    qtbot.waitUntil(lambda: simulated.bench.outcomes["convolution"].variant == "separable")
    simulated.side.answer()
    assert simulated.page.numbers.counts_view.figure.text() == "–"
    simulated.side.answers_later = False
    wait_until_idle(qtbot, simulated)
    assert simulated.page.numbers.counts_view.figure.text() == "20"


def test_a_failed_count_shows_its_reason(qtbot, simulated):
    simulated.side.answers_later = True
    simulated.choose_variant("constant")
    qtbot.waitUntil(lambda: any(isinstance(each, CountPattern) for each in simulated.side.pending.values()))
    simulated.side.answer(Failure("launch", "It never ends."))
    qtbot.waitUntil(lambda: simulated.page.numbers.source.text() == "not counted")
    assert simulated.page.numbers.source.toolTip() == "It never ends."


def test_a_run_on_a_gpu_is_not_counted(qtbot, window):
    select_variant(qtbot, window, "constant")
    assert not any(count_requests(host) for host in FakeHost.instances)
    assert window.page.numbers.source.text() == "measured"
