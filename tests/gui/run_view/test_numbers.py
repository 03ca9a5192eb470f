from __future__ import annotations

from dataclasses import replace

import pytest
from PyQt6.QtWidgets import QLabel

from gpu.engines.base import PhaseTimes
from gpu.messages.run_counts import RunCounts, list_figures
from gpu.messages.runs.pattern_runs import Deviation, Report, Throughput
from gpu.messages.runs.timing import Timing
from gpu.messages.verdicts import decide_verdict
from gui.run_view.numbers import NumbersCard, format_time
from gui.widgets.basic import format_figure


def report(verified=True, deviation=None, times=None, engine="null"):
    deviation = Deviation(1e-4, 1e-7) if deviation is None and verified is not None else deviation
    times = times or PhaseTimes(1, 2, 3)
    return Report("p", engine, "null", "d", "v", times, Throughput(812.5, "Mpixel/s"), deviation, verified)


def show_report(card, report, lesson=""):
    card.show_report(report, decide_verdict(report.verified, lesson=lesson))


@pytest.fixture
def card(qtbot):
    made = NumbersCard()
    qtbot.addWidget(made)
    return made


def test_figures_and_units(card):
    show_report(card, report())
    assert card.figure.text() == "812"
    assert card.unit.text().startswith("Mpixel/s")
    assert card.source.text() == "measured"
    assert card.times["kernel"].text() == "2.00 ms"
    assert "1.0e-04" in card.error.text()
    assert card.verdict.property("badge") == "good"


@pytest.mark.parametrize(
    ("verified", "lesson", "tone", "text"),
    [
        (True, "", "good", "verified"),
        (False, "", "bad", "differs"),
        (False, "It races.", "warn", "by design"),
        (True, "It races.", "warn", "right this time"),
        (None, "", "neutral", "checking"),
    ],
)
def test_verdicts(card, verified, lesson, tone, text):
    show_report(card, report(verified), lesson)
    assert card.verdict.property("badge") == tone
    assert text in card.verdict.text()


def test_a_result_of_another_shape_has_no_largest_error(card):
    show_report(card, report(False, Deviation(float("inf"), float("inf"))))
    assert card.error.text().startswith("The result has another size")
    assert card.verdict.property("badge") == "bad"


def test_an_error_relative_to_nothing_is_infinite(card):
    show_report(card, report(False, Deviation(3.0, float("inf"))))
    assert "Largest error 3.00, relative ∞" in card.error.text()


def test_no_time_at_all_is_painted(card):
    show_report(card, report(times=PhaseTimes()))
    assert not card.grab().isNull()


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 µs"), (0.0123, "12 µs"), (1.5, "1.50 ms"), (12.34, "12.3 ms"), (168.2, "168 ms"), (2500, "2.50 s")],
)
def test_times(milliseconds, text):
    assert format_time(milliseconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567.2, "1\u202f234\u202f567"), (812.4, "812"), (81.24, "81.2"), (8.124, "8.12"), (0.0812, "0.081"),
     (1.2e-7, "1.2e-07"), (-3.0, "-3.00"), (float("inf"), "∞")],
)  # fmt: skip
def test_figures(value, text):
    assert format_figure(value) == text


COUNTS = RunCounts(
    "n = 1024", 1024, "element", 8192, requests=64, sectors=512, shared_requests=32, wavefronts=256, conflicts=3,
    warp_statements=10, lane_statements=160, branches=8, divergent_branches=2, operations=2048, barriers=4, atomics=5,
    hottest_atomics=2,
)  # fmt: skip


def test_counts_stand_first_where_a_run_is_simulated(card):
    card.show()
    show_report(card, report(engine="simulator"))
    card.show_counts(None, "")
    assert card.source.text() == "counting…"
    card.show_counts(COUNTS, "")
    assert card.source.text() == "counted"
    assert card.counts_view.figure.text() == "16"
    assert card.counts_view.unit.text() == "bytes moved per element, minimum\N{NO-BREAK SPACE}8"
    view = card.counts_view
    texts = [each.text() for each in view.findChildren(QLabel) if each.property("role") == "section"]
    assert texts == ["per element", "in all"]
    assert {name: cell.text() for name, cell in view.per_element.figures.items()} == {
        "sectors": "0.500", "wavefronts": "0.250", "operations": "2",
    }  # fmt: skip
    assert {name: cell.text() for name, cell in view.totals.figures.items()} == {
        "conflicts": "3", "lanes": "16.0 of 32", "divergent": "25%", "barriers": "4", "atomics": "5",
    }  # fmt: skip
    assert view.input_label.text() == "Input: n = 1024."
    assert card.simulation_time.text() == "2.00 ms to simulate on this CPU."
    assert card.simulation_time.y() > card.counts_view.y()
    assert not card.timing_widget.isVisible()
    assert "2 on one address" in view.totals.figures["atomics"].toolTip()


@pytest.mark.parametrize(("divergent", "shown"), [(7, "0.7%"), (96, "9.6%"), (996, "100%")])
def test_shares_are_written_out(divergent, shown):
    figures = list_figures(replace(COUNTS, branches=1000, divergent_branches=divergent))
    assert next(each.figure for each in figures if each.name == "divergent") == shown


def test_counts_stay_while_the_next_are_on_their_way_but_not_another_variant_s(card):
    show_report(card, report(engine="simulator"))
    card.show_counts(COUNTS, "")
    show_report(card, report(engine="simulator"))
    card.show_counts(None, "")
    assert (card.source.text(), card.counts_view.figure.text()) == ("counting…", "16")
    show_report(card, replace(report(engine="simulator"), variant="w"))
    card.show_counts(None, "")
    assert (card.source.text(), card.counts_view.figure.text()) == ("counting…", "–")
    card.show_counts(None, "No.")
    assert (card.source.text(), card.source.toolTip()) == ("not counted", "No.")


def test_a_gpu_s_throughput_comes_back(card):
    card.show()
    show_report(card, report(engine="simulator"))
    show_report(card, report())
    assert card.timing_widget.isVisible()
    assert not card.counts_view.isVisible()
    assert not card.simulation_time.isVisible()
    assert card.source.text() == "measured"


LARGE = Timing(
    0.04, 0.038, 0.043, 9, launches=1, empty_launch=0.002, comparable_from=2**26, size=2**26, size_parameter="n"
)


def show_timing(card, timing):
    show_report(card, replace(report(engine="cuda"), timing=timing))
    return card


def test_the_spread_of_the_repetitions_is_told(card):
    show_timing(card, LARGE)
    assert card.repetitions_label.text() == "Median of 9: 38 µs to 43 µs"
    assert not card.repetitions_label.isHidden()
    assert card.size_warning.isHidden()
    assert card.larger_button.isHidden()


def test_gaps_between_launches_are_said_apart(card):
    show_timing(card, replace(LARGE, launches=3, gaps=0.017))
    assert card.repetitions_label.text().endswith("; 17 µs of gaps between 3 launches")
    assert "separate run" in card.repetitions_label.toolTip()


def test_what_takes_long_ran_once(card):
    show_timing(card, replace(LARGE, median=5e3, repetitions=1))
    assert card.repetitions_label.text() == "Long run, measured once"


def test_a_run_that_is_bound_by_launches_offers_a_size(card, qtbot):
    show_timing(card, replace(LARGE, median=0.012, size=2**20))
    assert card.size_warning.text().startswith("Launch overhead: an empty launch would take 2 µs of these 12 µs")
    assert card.larger_button.text() == "Run with n = 67\u202f108\u202f864"
    with qtbot.waitSignal(card.larger_size_requested) as wanted:
        card.larger_button.click()
    assert wanted.args == ["n", 2**26]


def test_an_image_that_is_too_small_is_compared_at_larger_ones(card, qtbot):
    show_timing(card, replace(LARGE, size_parameter="", size=512, comparable_from=4096))
    assert card.size_warning.text().startswith("Too small to fill this GPU")
    assert card.larger_button.text() == "Compare up to 4096 × 4096 pixels"
    with qtbot.waitSignal(card.larger_size_requested) as wanted:
        card.larger_button.click()
    assert wanted.args == ["", 4096]


def test_a_run_that_was_not_repeated_says_nothing_of_it(card):
    show_timing(card, replace(LARGE, size=2**10))
    show_timing(card, None)
    assert all(each.isHidden() for each in (card.repetitions_label, card.size_warning, card.larger_button))
