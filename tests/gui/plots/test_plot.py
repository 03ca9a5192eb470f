"""Plots while they are shown and deleted."""

from __future__ import annotations

import weakref

from PyQt6.QtCore import QRectF, QSizeF

from gui.plots.array_plot import ArrayPlot


class View:
    def size(self) -> QSizeF:
        return QSizeF(300, 200)


def test_a_line_has_bounds_while_garbage_collection_deletes_its_view(qtbot, monkeypatch) -> None:
    plot = ArrayPlot("Input")
    qtbot.addWidget(plot)
    for line in (plot.line, plot.excerpt_line):
        views = [View()]
        line.viewTransformChanged()
        monkeypatch.setattr(line, "_viewBox", weakref.ref(views[0]))
        monkeypatch.setattr(line, "viewRect", lambda: QRectF(0, 0, 1, 1))
        # Computing the bounds asks for the pixels' size: the last reference to the view goes here.
        monkeypatch.setattr(line, "pixelVectors", lambda direction, views=views: (views.clear(), None))
        assert line.boundingRect().width() == 1
        line.viewTransformChanged()
        assert line.getViewBox() is None
        assert line.boundingRect().isNull()
