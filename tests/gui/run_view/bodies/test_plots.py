"""Histories that stay small, and axes that people can read."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QRectF

from gpu.messages.bodies import BodyFigures, ConservedQuantities
from gui.run_view.bodies.plots import (
    STRIPS,
    Plots,
    compute_axis_range,
    find_name_baseline,
    format_signed,
    format_title_figures,
    round_up_to_nice_number,
)
from gui.run_view.bodies.time_series import CAPACITY, TimeSeries


def test_a_history_keeps_the_whole_time_in_little_memory():
    history = TimeSeries(2)
    for moment in range(10 * CAPACITY):
        history.add(moment / 4, (moment, -moment))
    times = history.times
    assert CAPACITY // 2 <= len(times) <= CAPACITY
    assert times[-1] == (10 * CAPACITY - 1) / 4
    assert times[0] < times[-1] / 100
    steps = np.diff(times)
    assert (steps > 0).all()
    assert steps[:-1].max() < 20 * steps[:-1].min()
    assert np.array_equal(history.rows[:, 0], 4 * times)
    assert np.array_equal(history.rows[:, 1], -4 * times)


def test_a_kernels_name_is_not_written_over_the_curve():
    box, x = QRectF(100, 0, 150, 60), np.array([100.0, 160.0, 250.0])
    assert find_name_baseline(box, 12, x, np.array([20.0, 30.0, 20.0])) == 56
    assert find_name_baseline(box, 12, x, np.array([58.0, 20.0, 10.0])) == 12
    assert find_name_baseline(box, 12, np.array([0.0, 90.0]), np.array([10.0, 55.0])) == 12, (
        "the curve ends at its left"
    )


def test_a_history_holds_one_row_for_a_time():
    history = TimeSeries(1)
    history.add(1.0, (5.0,))
    history.add(1.0, (6.0,))
    assert history.rows.tolist() == [[6.0]]
    history.clear()
    assert history.find_nearest_row(1.0) is None


@pytest.mark.parametrize(("time", "row"), [(-5, 0), (0.4, 0), (0.6, 1), (1.9, 2), (99, 2)])
def test_a_history_finds_the_nearest_time(time, row):
    history = TimeSeries(1)
    for moment in range(3):
        history.add(moment, (0.0,))
    assert history.find_nearest_row(time) == row


@pytest.mark.parametrize(
    ("value", "nearest"), [(0, 0), (0.7, 0.7), (0.71, 1), (1e-7, 1e-7), (1.2e-7, 1.5e-7), (4321, 5000), (1.0, 1.0)]
)
def test_axes_end_at_round_figures(value, nearest):
    assert round_up_to_nice_number(value) == pytest.approx(nearest, rel=1e-12)


def test_limits_hold_every_value_and_zero():
    rows = np.array([[0.4, np.nan], [-1.2, 0.1]])
    assert compute_axis_range(rows, zero_centered=False) == (-1.5, 0.5)
    assert compute_axis_range(rows, zero_centered=True) == (-1.5, 1.5)
    assert compute_axis_range(np.full((3, 1), 5.0), zero_centered=False) == (0.0, 5.0)
    assert compute_axis_range(np.full((3, 1), -5.0), zero_centered=False) == (-5.0, 0.0)
    # Rounding is no landscape.
    assert compute_axis_range(np.array([[3e-9]]), zero_centered=True) == (-1e-6, 1e-6)


@pytest.mark.parametrize("rows", [np.empty((0, 1)), np.full((2, 1), np.nan), np.zeros((2, 1)), np.full((1, 1), np.inf)])
def test_limits_span_something_whatever_comes(rows):
    for about_zero in (False, True):
        low, high = compute_axis_range(rows, zero_centered=about_zero)
        assert low < high


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.25, "−0.25"), (123.4, "123"), (1.5e-6, "1.5e-6"), (-2e7, "−2.0e7"), (np.inf, "∞"),
     (np.nan, "not a number")],
)  # fmt: skip
def test_figures_are_short(value, text):
    assert format_signed(value) == text


def make_figures(time, gflops=10.0, drift=0.0):
    conserved = ConservedQuantities(0.5, -1.0, -0.5, drift, (0.0, 0.0, 0.0), (0.0, 0.0, 2.0))
    return BodyFigures(8, time, 1, 1.0, 5e8, gflops, 1.0, "null", conserved=conserved)


def test_the_pointer_reads_all_plots_at_one_time(qtbot):
    plots = Plots()
    qtbot.addWidget(plots)
    plots.resize(400, 500)
    plots.show()
    for moment in range(11):
        plots.add(make_figures(float(moment)))
    plots.grab()
    qtbot.mouseMove(plots, QPoint(plots.width() - 2, 100))
    qtbot.waitUntil(lambda: plots.cursor_time is not None)
    assert plots.cursor_time == pytest.approx(10.0, abs=0.1)
    plots.clear()
    assert plots.cursor_time is None
    plots.grab()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e-300])
def test_figures_that_went_astray_are_painted_all_the_same(qtbot, value):
    plots = Plots()
    qtbot.addWidget(plots)
    plots.resize(400, 500)
    plots.add(make_figures(0.0))
    plots.add(make_figures(1.0, drift=value))
    plots.add(make_figures(2.0))
    assert not plots.grab().isNull()


def test_a_title_line_names_its_curves_and_the_share_of_the_roof():
    energy, speed = STRIPS[0], STRIPS[-1]
    long, short = format_title_figures(energy, np.array([0.5, -1.0, -0.5, *[0.0] * 7]), 200.0)
    assert long == ["kinetic 0.5", "potential −1", "total −0.5"]
    assert short == ["kinetic", "potential", "total"]
    assert format_title_figures(speed, np.array([50.0]), 200.0) == (["50, 25.0% of modeled peak 200"], ["50"])
    assert format_title_figures(speed, np.array([50.0]), 0.0) == (["50"], ["50"])


def test_a_roof_within_reach_is_drawn(qtbot):
    plots = Plots()
    qtbot.addWidget(plots)
    plots.resize(400, 500)
    for moment in range(3):
        plots.add(make_figures(float(moment), gflops=80.0))
    without = plots.grab().toImage()
    plots.peak = 90.0
    assert plots.grab().toImage() != without


class WatchedPlots(Plots):
    """Notes how high the parts are that are painted."""

    def __init__(self):
        super().__init__()
        self.heights = []

    def paintEvent(self, event):
        self.heights.append(event.region().boundingRect().height())
        super().paintEvent(event)


def test_figures_are_painted_strip_by_strip_and_then_look_as_if_all_were_painted_at_once(qtbot):
    plots = WatchedPlots()
    qtbot.addWidget(plots)
    plots.resize(400, 500)
    plots.show()
    plots.add(make_figures(0.0))
    qtbot.wait(300)
    plots.heights.clear()
    plots.add(make_figures(2.0, drift=0.5))
    qtbot.waitUntil(lambda: len(plots.heights) == len(STRIPS) + 1, timeout=3000)
    assert max(plots.heights) < plots.height() / 4
    by_strips = plots.screen().grabWindow(plots.winId()).toImage()
    plots.repaint()
    assert by_strips == plots.screen().grabWindow(plots.winId()).toImage()
