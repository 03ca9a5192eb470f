"""Plot of one array: bars for few elements, the band between minima and maxima for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QColor, QFontMetrics, QFontMetricsF

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors
from gui.painting.theme import look
from gui.painting.values import format_value
from gui.plots.axes import CountAxis, style_axis, tick_font
from gui.plots.plot import Plot, VerticalLine, label_axis

MAX_LABELED_ELEMENTS = 32
"""Maximum number of elements for which each bar is labeled with its index and value."""
MAX_SEPARATE_BARS = 96
"""Maximum number of elements for which bars are drawn with gaps."""
_VALUE_MARGIN = 8
"""Pixels that a value above its bar takes besides its line of text."""


class ArrayPlot(Plot):
    """A plot of an array's outline over the index: one bar from minimum to maximum per column.

    Parameters
    ----------
    name : str
        Accessible name for screen readers.
    unit : str
        Label of the vertical axis.
    """

    range_changed = pyqtSignal(float, float)
    """The first and last visible index."""
    excerpt_moved = pyqtSignal(int)
    """The index to which the excerpt's line was dragged."""

    def __init__(self, name: str, unit: str = "value") -> None:
        super().__init__(name, CountAxis("left"), CountAxis("bottom"))
        self.setToolTip(
            "Arrow keys or pointer: read an element. Click, Enter: its thread. Wheel: zoom. Double click: show all."
        )
        self.setMinimumSize(160, look().px(72))
        self.box.setMouseEnabled(x=True, y=False)
        self._unit = unit
        self.outline: Array | None = None
        self.highlighted_outline: Array | None = None
        self.quartiles: Array | None = None
        self.bar_base: float | None = None
        self.elements = 0
        self.drawn_as_curve = False
        self.tone = ""
        self._has_axis_title = True
        self._axis_length = 0
        self._items: list[Any] = []
        self._value_labels: list[tuple[pg.TextItem, Any]] = []
        self._bar_item: pg.BarGraphItem | None = None
        self.excerpt_line = VerticalLine(movable=True)
        self.excerpt_line.hide()
        self.plot.addItem(self.excerpt_line, ignoreBounds=True)
        self.excerpt_line.sigPositionChanged.connect(lambda line: self.excerpt_moved.emit(round(line.value())))
        self.box.sigXRangeChanged.connect(lambda _, shown: self.range_changed.emit(*shown))
        self.box.sigResized.connect(lambda *_: self._on_resized())

    def show_outline(
        self,
        outline: Array,
        elements: int,
        *,
        highlighted: Array | None = None,
        quartiles: Array | None = None,
        axis_length: int = 0,
        draw_curve: bool = False,
        bar_base: float | None = None,
    ) -> None:
        """Show an outline.

        Parameters
        ----------
        outline : array of shape (2, columns)
            Minimum and maximum of each column's elements.
        highlighted : array of shape (2, columns) or None
            Outline of the highlighted elements, NaN for columns without any.
        quartiles : array of shape (2, columns) or None
            Lower and upper quartile of each column's elements, drawn as a darker band.
        axis_length : int
            Length of the index axis, if larger than `elements`.
        draw_curve : bool
            Draw consecutive values as steps, not as separate bars.
        bar_base : float or None
            Value from which bars start if a column holds several elements.
        """
        changed = self.outline is None or max(axis_length, elements) != self._axis_length
        self.outline, self.highlighted_outline, self.elements, self.drawn_as_curve = (
            outline,
            highlighted,
            elements,
            draw_curve,
        )
        self.bar_base, self.quartiles = bar_base, quartiles
        self._axis_length = max(axis_length, elements)
        self._redraw()
        if changed:
            self.fit()
        self._fit_value_range()
        self.update_layout()

    def fit(self) -> None:
        """Show every element."""
        length = max(self._axis_length, 1)
        self.box.setLimits(xMin=-0.02 * length - 0.5, xMax=1.02 * length - 0.5)
        self.box.setXRange(-0.5, length - 0.5, padding=0.01)

    def show_range(self, first: float, last: float) -> None:
        """Show the range of indices from `first` to `last`."""
        self.box.setXRange(first, last, padding=0.0)

    def _on_resized(self) -> None:
        self._fit_value_range()
        self._fit_labels()

    def _fit_value_range(self) -> None:
        if self.outline is None or not self.outline.shape[1]:
            return
        low, high = self._compute_heights(self.outline)
        bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
        span = (top - bottom) or abs(top) or 1.0
        above = 0.06
        if self._axis_length <= MAX_LABELED_ELEMENTS:
            # Values are written above their bars, or below negative bars: a low plot needs a larger share for them.
            line = QFontMetrics(tick_font()).height() + _VALUE_MARGIN
            lines = 2 if bottom < 0 else 1
            above = max(0.3, line / max(self.box.height() - lines * line, line))
        self.box.setYRange(bottom - span * (above if bottom < 0 else 0.02), top + span * above, padding=0.0)

    def show_index_axis(self, visible: bool, *, titled: bool = True) -> None:
        """Show or hide the index axis and its title; a plot below may already show the same axis."""
        self.bottom.setStyle(showValues=visible)
        self._has_axis_title = visible and titled
        self.bottom.showLabel(self._has_axis_title)

    def mark_excerpt(self, first: int, count: int) -> None:
        """Mark the position of the excerpt that another widget shows; hide the mark if `count` is 0."""
        self.excerpt_line.setVisible(count > 0)
        self.excerpt_line.blockSignals(True)
        self.excerpt_line.setPos(first + (count - 1) / 2)
        self.excerpt_line.blockSignals(False)

    def set_tone(self, tone: str) -> None:
        """Draw in the accent color (""), or in the color for "bad" or "muted"."""
        self.tone = tone
        self._redraw()

    def find_column_range(self, index: int) -> tuple[int, int, Any, Any] | None:
        """Return the first and last index of an element's column, and the column's minimum and maximum."""
        if self.outline is None or not 0 <= index < self.elements:
            return None
        columns = self.outline.shape[1]
        column = min(((index + 1) * columns - 1) // self.elements, columns - 1)
        first, stop = column * self.elements // columns, (column + 1) * self.elements // columns
        low, high = self.outline[:, column]
        return first, stop - 1, low.item(), high.item()

    def _redraw(self) -> None:
        for item in self._items:
            self.plot.removeItem(item)
        self._items, self._value_labels, self._bar_item = [], [], None
        few = self._axis_length <= MAX_LABELED_ELEMENTS
        self.bottom.setTicks(
            [[(index, str(index)) for index in range(self._axis_length)]] if few and self._axis_length else None
        )
        if self.outline is None or not self.outline.shape[1]:
            return
        theme = look().theme
        color = QColor({"bad": theme.bad, "muted": theme.muted}.get(self.tone, theme.accent))
        low, high = self._compute_heights(self.outline)
        gap = 0.1 if len(low) == self.elements <= MAX_SEPARATE_BARS and not self.drawn_as_curve else 0.0
        if self.drawn_as_curve and len(low) == self.elements:
            self._draw_steps(high + low, color)
        else:
            if self.drawn_as_curve:  # The band of a smooth curve is thinner than a line: draw its center line as well.
                places = (np.arange(len(high)) + 0.5) * (self.elements / len(high)) - 0.5
                self._add_item(pg.PlotCurveItem(places, (low + high) / 2, pen=pg.mkPen(color, width=2)))
            self._bar_item = self._draw_bars(low, high, gap, self._background_color(color))
        if self.highlighted_outline is not None and self.highlighted_outline.shape == self.outline.shape:
            self._draw_bars(*self._compute_heights(self.highlighted_outline), gap, color)
        elif self.quartiles is not None:
            self._draw_bars(self.quartiles[0].astype(np.float64), self.quartiles[1].astype(np.float64), gap, color)
        if few and self.elements:
            self._label_values(self.outline[1])

    def _background_color(self, color: QColor) -> QColor:
        """Return the color of the background bars, or of the bars if no others are drawn over them."""
        theme = look().theme
        if self.highlighted_outline is not None:
            return QColor(theme.faint)
        return color if self.quartiles is None else mix_colors(color.name(), theme.surface, 0.45)

    def _compute_heights(self, outline: Array) -> tuple[Array, Array]:
        low, high = outline.astype(np.float64)
        if outline.shape[1] == self.elements:  # one bar per element, starting from zero
            low, high = np.fmin(low, 0), np.fmax(high, 0)
            low[np.isnan(outline[0])] = high[np.isnan(outline[0])] = np.nan
        elif self.bar_base is not None:
            low = np.fmin(low, self.bar_base)
        return low, high

    def _draw_bars(self, low: Array, high: Array, gap: float, color: QColor) -> pg.BarGraphItem:
        edges = np.arange(len(low) + 1) * (self.elements / len(low)) - 0.5
        filled = ~np.isnan(low)
        fill = QColor(color)
        fill.setAlpha(200 if gap else 170)
        bars = pg.BarGraphItem(
            x0=edges[:-1][filled] + gap,
            x1=edges[1:][filled] - gap,
            y0=low[filled],
            y1=high[filled],
            pen=pg.mkPen(color, width=1) if gap else pg.mkPen(None),
            brush=fill,
        )
        self._add_item(bars)
        return bars

    def _draw_steps(self, values: Array, color: QColor) -> None:
        fill = QColor(color)
        fill.setAlpha(70)
        edges = np.arange(len(values) + 1) - 0.5
        pen = pg.mkPen(color, width=2)
        self._add_item(pg.PlotCurveItem(edges, values, stepMode="center", pen=pen, fillLevel=0.0, brush=fill))

    def _label_values(self, values: Array) -> None:
        for index, value in enumerate(values.tolist()):
            item = pg.TextItem("", color=look().theme.text, anchor=(0.5, 1.0 if value >= 0 else 0.0))
            item.setFont(tick_font())
            item.setPos(index, value)
            self._add_item(item)
            self._value_labels.append((item, value))
        self._fit_labels()

    def _fit_labels(self) -> None:
        """Write each value in as many characters as fit above its bar, or not at all."""
        room = self.box.width() / max(self._axis_length, 1)
        characters = int(room / QFontMetricsF(tick_font()).horizontalAdvance("0"))
        for item, value in self._value_labels:
            text = str(value) if isinstance(value, int) else f"{value:.3g}"
            if len(text) > characters:
                text = format_value(value, max(characters, 1))
            item.setText(text if len(text) <= max(characters, 1) else "")

    def _add_item(self, item: Any) -> None:
        self.plot.addItem(item)
        self._items.append(item)

    def restyle(self) -> None:
        self.plot.showGrid(x=False, y=True, alpha=0.12)
        for axis, text in ((self.left, self._unit), (self.bottom, "index")):
            style_axis(axis)
            label_axis(axis, text)
        self.bottom.showLabel(self._has_axis_title)
        self.left.setWidth(look().px(84))
        self.excerpt_line.setPen(pg.mkPen(look().theme.text, width=2))
        self.excerpt_line.setHoverPen(pg.mkPen(look().theme.warn, width=3))
        self._redraw()

    # --- reading an element

    @property
    def count(self) -> int:
        return self._axis_length

    def find_number(self, x: float) -> int | None:
        index = round(x)
        return index if 0 <= index < self._axis_length else None

    def show_cursor(self, number: int | None) -> None:
        super().show_cursor(number)
        if number is not None and number >= self._axis_length:
            self.line.hide()
