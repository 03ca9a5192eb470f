"""Counts per bin as curves: one for gray, three for color, linear or logarithmic, with a read-out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent
from PyQt6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gpu.declaration.pattern import Array
from gui.painting.theme import Look, look
from gui.run_view.axes import dress, settle

_MOST_NAMES = 14

CHANNELS = {1: ("count",), 3: ("red", "green", "blue")}


class HistogramPlot(QWidget):
    """Draws one histogram solid, and one behind it dashed to compare with.

    Parameters
    ----------
    name : str
        What a screen reader says.
    """

    hovered = pyqtSignal(object)
    """The index of the bin under the pointer, or None."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setToolTip("Arrow keys or pointer: read a bin. Double click or 0: the whole range.")
        self.counts: Array | None = None
        self.reference: Array | None = None
        self.logarithmic = False
        self._bin: int | None = None
        self.plot = pg.PlotWidget(parent=self, enableMenu=False)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.hideButtons()
        self.plot.getViewBox().setMouseEnabled(x=True, y=False)
        self.plot.getViewBox().setDefaultPadding(0.0)
        self._curves: list[pg.PlotCurveItem] = []
        self._line = pg.InfiniteLine(angle=90, movable=False)
        self._line.hide()
        self.plot.addItem(self._line, ignoreBounds=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.plot.scene().sigMouseMoved.connect(self._moved)
        self.plot.viewport().installEventFilter(self)
        self.setMinimumSize(160, 90)
        self._styled: Look | None = None

    def show_counts(self, counts: Array, reference: Array | None = None) -> None:
        """Show counts of shape (channels, bins); `reference` is drawn behind them."""
        new_range = self.counts is None or self.counts.shape[1] != counts.shape[1]
        self.counts, self.reference = counts, reference
        self._redraw()
        if new_range:
            self.fit()
        settle(self.plot.getViewBox())

    def name_bins(self, names: tuple[str, ...]) -> None:
        """Write names below the bins, as many as there is room for; without any their numbers."""
        axis = self.plot.getAxis("bottom")
        every = -(-len(names) // _MOST_NAMES)
        axis.setTicks(
            [[(place + 0.5, name) for place, name in enumerate(names) if place % every == 0]] if names else None
        )

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Choose the scale of the counts."""
        self.logarithmic = logarithmic
        self._redraw()

    def fit(self) -> None:
        """Show every bin."""
        if self.counts is not None:
            self.plot.setXRange(0, self.counts.shape[1], padding=0.0)
            self.plot.setLimits(xMin=0, xMax=self.counts.shape[1])

    def _redraw(self) -> None:
        for curve in self._curves:
            self.plot.removeItem(curve)
        self._curves = []
        if self.counts is None:
            return
        if self.reference is not None and self.reference.shape == self.counts.shape:
            self._draw(self.reference, behind=True)
        self._draw(self.counts, behind=False)
        shown = self.counts if self.reference is None else np.concatenate([self.counts, self.reference])
        top = self._height(np.array([max(1, int(shown.max()))]))[0]
        self.plot.setYRange(0, float(top) * 1.06, padding=0.0)
        self._label_heights(int(shown.max()))

    def _height(self, counts: Array) -> Array:
        # log(1 + n) has a place for bins that nothing fell into.
        return np.log10(1.0 + counts) if self.logarithmic else counts.astype(np.float64)

    def _draw(self, counts: Array, *, behind: bool) -> None:
        theme = look().theme
        colors = (theme.accent,) if len(counts) == 1 else theme.channels
        edges = np.arange(counts.shape[1] + 1)
        for values, name in zip(counts, colors, strict=False):
            color = QColor(name)
            if behind:
                color.setAlpha(190)
                pen, brush = pg.mkPen(color, width=1, style=Qt.PenStyle.DotLine), None
            else:
                fill = QColor(name)
                fill.setAlpha(70 if len(counts) == 1 else 38)
                pen, brush = pg.mkPen(color, width=1.4), fill
            curve = pg.PlotCurveItem(
                edges, self._height(values), stepMode="center", pen=pen, fillLevel=0.0 if brush else None, brush=brush
            )
            curve.setZValue(-1 if behind else 0)
            self.plot.addItem(curve)
            self._curves.append(curve)

    def _label_heights(self, highest: int) -> None:
        axis = self.plot.getAxis("left")
        if not self.logarithmic:
            axis.setTicks(None)
            return
        decades = [(np.log10(1.0 + 10**power), _short(10**power)) for power in range(len(str(max(1, highest))))]
        axis.setTicks([[(0.0, "0"), *decades]])

    def _restyle(self) -> None:
        if self._styled == look():
            return
        self._styled = look()
        theme = look().theme
        self.plot.setBackground(theme.surface)
        self.plot.showGrid(x=False, y=True, alpha=0.12)
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            dress(axis)
            axis.enableAutoSIPrefix(False)
        self.plot.getAxis("left").setWidth(look().px(52))
        self._line.setPen(pg.mkPen(theme.text, width=1))
        self._redraw()

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() == event.Type.StyleChange and self.isVisible():
            self._restyle()

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self._restyle()

    def eventFilter(self, watched: Any, event: Any) -> bool:
        if event.type() == event.Type.Leave:
            self._hover(None)
        elif event.type() == event.Type.MouseButtonDblClick:
            self.fit()
            return True
        elif event.type() == event.Type.MouseButtonPress:
            self.setFocus(Qt.FocusReason.MouseFocusReason)
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bins = 0 if self.counts is None else self.counts.shape[1]
        if bins and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            start = bins // 2 if self._bin is None else self._bin
            self._hover(min(max(start + (1 if event.key() == Qt.Key.Key_Right else -1), 0), bins - 1))
        elif event.text() == "0":
            self.fit()
        else:
            super().keyPressEvent(event)

    def _moved(self, position: QPointF) -> None:
        if self.counts is None:
            return
        place = self.plot.getViewBox().mapSceneToView(position).x()
        inside = self.plot.getViewBox().sceneBoundingRect().contains(position)
        self._hover(int(place) if inside and 0 <= place < self.counts.shape[1] else None)

    def _hover(self, index: int | None) -> None:
        self._bin = index
        self._line.setVisible(index is not None)
        if index is not None:
            self._line.setPos(index + 0.5)
        self.hovered.emit(index)


def _short(number: int) -> str:
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{suffix}"
    return str(number)
