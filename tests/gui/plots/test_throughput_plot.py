"""The range and the ticks of the values' axis."""

from __future__ import annotations

import pytest

from gui.plots.throughput_plot import ThroughputPlot


@pytest.fixture
def plot(qtbot):
    plot = ThroughputPlot("threads per block")
    qtbot.addWidget(plot)
    plot.resize(400, 200)
    plot.set_logarithmic(False)
    plot.show()
    return plot


@pytest.mark.parametrize("times", [{256: 4972.3}, {128: 12.0, 256: 11.9, 512: 12.1}])
def test_a_linear_axis_begins_at_zero(plot, times):
    plot.clear_points([128, 256, 512], "µs, modeled")
    plot.show_points({1: times}, "µs, modeled")
    low, high = plot.box.viewRange()[1]
    assert low <= 0 <= max(times.values()) <= high < 1.3 * max(times.values())
    assert plot.left._tickLevels is None


def test_an_axis_without_values_has_no_ticks(plot):
    plot.show_points({1: {256: 4972.3}}, "µs, modeled")
    plot.clear_points([128, 256], "µs, modeled")
    plot.show_points({}, "µs, modeled")
    assert plot.left._tickLevels == [[]]
