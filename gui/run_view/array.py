"""An array and what became of it: bars where there are few elements, the band between extremes where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QSizePolicy, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from gpu.pattern import Array
from gui.run_view.view import RunView
from gui.theme import Look, code_font, look
from gui.widgets import Card, ElidedLabel, as_count, column, label
from gui.workbench import Outcome


class ArrayPlot(QWidget):
    """Draws an outline: a bar from the least to the greatest value of each column.

    Parameters
    ----------
    name : str
        What a screen reader says.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(160, 80)
        self.plot = pg.PlotWidget(parent=self)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.getViewBox().setMouseEnabled(x=True, y=False)
        self.plot.getViewBox().setDefaultPadding(0.02)
        self.outline: Array | None = None
        self._elements = 0
        self._bars: pg.BarGraphItem | None = None
        self._styled: Look | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)

    def show_outline(self, outline: Array, elements: int) -> None:
        """Show an outline of shape (2, columns), of so many elements."""
        self.outline, self._elements = outline, elements
        self._redraw()
        self.plot.getViewBox().enableAutoRange()

    def _redraw(self) -> None:
        if self._bars is not None:
            self.plot.removeItem(self._bars)
            self._bars = None
        if self.outline is None or not self.outline.shape[1]:
            return
        low, high = self.outline.astype(np.float64)
        columns = len(low)
        if columns == self._elements:  # each element has a bar of its own, which stands on zero
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        edges = np.arange(columns + 1) * (self._elements / columns)
        colour = QColor(look().theme.accent)
        fill = QColor(colour)
        fill.setAlpha(110)
        self._bars = pg.BarGraphItem(
            x0=edges[:-1], x1=edges[1:], y0=low, y1=high, pen=pg.mkPen(colour, width=1), brush=fill
        )
        self.plot.addItem(self._bars)

    def _restyle(self) -> None:
        if self._styled == look():
            return
        self._styled = look()
        theme = look().theme
        self.plot.setBackground(theme.surface)
        self.plot.showGrid(x=False, y=True, alpha=0.12)
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(theme.border))
            axis.setTextPen(pg.mkPen(theme.muted))
            axis.setStyle(tickFont=code_font(max(10, look().small_px - 1)), tickLength=-4, autoExpandTextSpace=True)
            axis.enableAutoSIPrefix(False)
        self.plot.getAxis("left").setWidth(look().px(80))
        self._redraw()

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() == event.Type.StyleChange and self.isVisible():
            self._restyle()

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self._restyle()


class ArrayView(RunView):
    """The Run tab of a pattern that turns an array into an array, or into one value."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = ArrayPlot("Input"), ArrayPlot("Result")
        self.value = label("–", "figure", name="Result")
        self.value.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        alone = QWidget()
        alone.setLayout(column(0, self.value, 0))
        self.result = QStackedWidget()
        self.result.addWidget(self.after)
        self.result.addWidget(alone)
        self._about_input, self._about_result = (
            ElidedLabel("caption", f"About the {of}") for of in ("input", "result")
        )
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(8)
        for title, content, about in (
            ("Input", self.before, self._about_input),
            ("Result", self.result, self._about_result),
        ):
            card = Card(title, margins=(12, 8, 8, 6))
            card.head.addWidget(about, 1)
            card.body.addWidget(content, 1)
            self.splitter.addWidget(card)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.splitter)

    def show_outcome(self, outcome: Outcome) -> None:
        arrays, params = outcome.arrays, outcome.params
        elements, result = int(arrays["elements"]), arrays["output"]
        self.before.show_outline(arrays["input"], elements)
        self._about_input.say(f"{as_count(elements)} × {params['dtype']}, {params['input']}")
        if result.shape[1] == 1:
            value = result[0, 0].item()
            self.value.setText(str(value) if isinstance(value, int) else f"{value:.9g}")
            self.result.setCurrentIndex(1)
        else:
            self.after.show_outline(result, elements)
            self.result.setCurrentIndex(0)
        self._about_result.say(f"{params['operator']}, {outcome.variant}" if "operator" in params else outcome.variant)
