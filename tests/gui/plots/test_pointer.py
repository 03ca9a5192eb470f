"""The pointer over a plot: what it rests on is what is read, however fast it came there."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QPointF, Qt
from PyQt6.QtGui import QMouseEvent
from PyQt6.QtWidgets import QApplication

from gui.plots.array_plot import ArrayPlot
from gui.plots.histogram_plot import HistogramPlot
from gui.plots.throughput_plot import ThroughputPlot
from gui.run_view.image_pane import ImagePane


def element_plot():
    plot = ArrayPlot("Input")
    plot.show_outline(np.arange(8).reshape(1, 8).repeat(2, axis=0), 8)
    return plot, [(2, 2), (5, 5)]


def bin_plot():
    plot = HistogramPlot("Histogram")
    plot.show_counts(np.arange(16).reshape(1, 16) + 1)
    return plot, [(3.5, 3), (12.5, 12)]


def size_plot():
    plot = ThroughputPlot()
    plot.set_logarithmic(False)
    plot.clear_points([2**exponent for exponent in range(4, 12)], "GB/s")
    return plot, [(5, 32), (9, 512)]


def pixel_plot():
    pane = ImagePane("Image")
    pane.show_picture(np.zeros((16, 16), np.uint8))
    return pane, [(3.5, (3, 3)), (12.5, (12, 12))]


def move_to(viewport, place):
    none = Qt.MouseButton.NoButton
    there = QPointF(viewport.mapToGlobal(place.toPoint()))
    event = QMouseEvent(QEvent.Type.MouseMove, place, there, none, none, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(viewport, event)


def show_plot(qtbot, plot):
    """Show a plot, and return its graphics view and a list that receives what is hovered."""
    qtbot.addWidget(plot)
    plot.resize(480, 320)
    plot.show()
    qtbot.waitExposed(plot)
    read = []
    plot.hovered.connect(read.append)
    return plot.plot if hasattr(plot, "plot") else plot._widget, read


@pytest.mark.parametrize("make", [element_plot, bin_plot, size_plot, pixel_plot])
def test_moves_at_once_end_where_the_last_one_does(qtbot, make):
    plot, places = make()
    view, read = show_plot(qtbot, plot)
    for x, _ in places:
        y = x if isinstance(plot, ImagePane) else np.mean(plot.box.viewRange()[1])
        move_to(view.viewport(), QPointF(view.mapFromScene(plot.box.mapViewToScene(QPointF(x, y)))))
    assert read == [number for _, number in places]
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    assert read[-1] is None


@pytest.mark.parametrize("make", [element_plot, bin_plot, pixel_plot])
def test_what_keys_have_reached_stays_when_the_pointer_leaves(qtbot, make):
    plot, _ = make()
    view, read = show_plot(qtbot, plot)
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert len(read) == 2
    assert read[0] is not None
    assert read[1] > read[0]


def test_beside_the_axes_nothing_is_read(qtbot):
    plot, _ = element_plot()
    view, read = show_plot(qtbot, plot)
    move_to(view.viewport(), QPointF(3, 100))
    assert read == [None]
