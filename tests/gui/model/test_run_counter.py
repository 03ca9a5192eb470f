"""What a simulated run does is counted beside it; a GPU's run is timed, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.requests import CountPattern, Failure
from tests.gui import conftest
from tests.gui.conftest import FakeHost, wait_until_idle


@pytest.fixture
def simulated(qtbot, monkeypatch, make_window, gray):
    """A window whose engine says that it simulates."""
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, engine="simulator"))
    made = make_window()
    made.bench.open_image(gray)
    wait_until_idle(qtbot, made)
    made.host, made.side = FakeHost.instances[0], FakeHost.instances[-1]
    return made


def count_requests(host):
    return [request for request in host.requests if isinstance(request, CountPattern)]


def select_variant(qtbot, window, variant):
    window.choose_variant(variant)
    wait_until_idle(qtbot, window)
    return window.page.numbers


def test_a_simulated_run_is_counted_by_the_other_process_and_once(qtbot, simulated):
    numbers = select_variant(qtbot, simulated, "constant")
    assert numbers.source.text() == "counted"
    assert numbers.counts_view.figure.text() == "12"
    asked = count_requests(simulated.side)[-1]
    ran = simulated.host.runs("convolution")[-1]
    assert (asked.variant, asked.params, asked.inputs) == (ran.variant, ran.params, ran.inputs)
    assert not count_requests(simulated.host)
    assert select_variant(qtbot, simulated, "tiled").counts_view.figure.text() == "16"
    before = len(count_requests(simulated.side))
    assert select_variant(qtbot, simulated, "constant").counts_view.figure.text() == "12"
    assert len(count_requests(simulated.side)) == before


def test_counts_that_come_late_are_not_shown_of_another_variant(qtbot, simulated):
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


def test_what_cannot_be_counted_says_why(qtbot, simulated):
    simulated.side.answers_later = True
    simulated.choose_variant("constant")
    qtbot.waitUntil(lambda: any(isinstance(each, CountPattern) for each in simulated.side.pending.values()))
    simulated.side.answer(Failure("launch", "It never ends."))
    qtbot.waitUntil(lambda: simulated.page.numbers.source.text() == "not counted")
    assert simulated.page.numbers.source.toolTip() == "It never ends."


def test_nothing_is_counted_where_the_engine_does_not_simulate(qtbot, window):
    select_variant(qtbot, window, "constant")
    assert not any(count_requests(host) for host in FakeHost.instances)
    assert window.page.numbers.source.text() == "measured"
