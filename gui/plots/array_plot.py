"""One array as a picture: bars where there are few elements, the band between extremes where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QColor

from gpu.declaration.pattern import Array
from gui.painting.colors import mixed
from gui.painting.theme import look
from gui.plots.axes import CountAxis, dress, tick_font
from gui.plots.plot import Plot, label_axis

LABELLED = 32
"""Up to so many elements each has its index below it and, where there is room, its value above."""
SEPARATE = 96
"""Up to so many elements there is a gap between bars."""


class ArrayPlot(Plot):
    """Draws an outline over the index: a bar from the least to the greatest value of each column.

    Parameters
    ----------
    name : str
        What a screen reader says.
    unit : str
        What the vertical axis is labelled with.
    """

    moved = pyqtSignal(float, float)
    """The range of indices that is shown."""
    stretch_moved = pyqtSignal(int)
    """The index to which the mark of the stretch was dragged."""

    def __init__(self, name: str, unit: str = "value") -> None:
        super().__init__(name, CountAxis("left"), CountAxis("bottom"))
        self.setToolTip(
            "Arrow keys or pointer: read an element. Click, Enter: its thread. Wheel: zoom. Double click: all."
        )
        self.setMinimumSize(160, look().px(72))
        self.box.setMouseEnabled(x=True, y=False)
        self._unit = unit
        self.outline: Array | None = None
        self.kept: Array | None = None
        self.middle: Array | None = None
        self.floor: float | None = None
        self.elements = 0
        self.as_curve = False
        self.tone = ""
        self._named = True
        self._room = 0
        self._items: list[Any] = []
        self._bars: pg.BarGraphItem | None = None
        self.stretch = pg.InfiniteLine(angle=90, movable=True)
        self.stretch.hide()
        self.plot.addItem(self.stretch, ignoreBounds=True)
        self.stretch.sigPositionChanged.connect(lambda line: self.stretch_moved.emit(round(line.value())))
        self.box.sigXRangeChanged.connect(lambda _, shown: self.moved.emit(*shown))

    def show_outline(
        self,
        outline: Array,
        elements: int,
        *,
        kept: Array | None = None,
        middle: Array | None = None,
        room: int = 0,
        as_curve: bool = False,
        floor: float | None = None,
    ) -> None:
        """Show an outline.

        Parameters
        ----------
        outline : array of shape (2, columns)
            The least and the greatest value of each column's elements.
        elements : int
            How many there are.
        kept : array of shape (2, columns) or None
            The outline of those that stand out, NaN where none does.
        middle : array of shape (2, columns) or None
            Between what the middle half of each column's elements lies: it is drawn stronger.
        room : int
            How many elements the axis has room for, if more.
        as_curve : bool
            Whether values follow from one another: they are drawn as steps.
        floor : float or None
            What the bars stand on where there are fewer than elements.
        """
        changed = self.outline is None or max(room, elements) != self._room
        self.outline, self.kept, self.elements, self.as_curve = outline, kept, elements, as_curve
        self.floor, self.middle = floor, middle
        self._room = max(room, elements)
        self._redraw()
        if changed:
            self.fit()
        self._fit_heights()
        self.settle()

    def fit(self) -> None:
        """Show every element."""
        most = max(self._room, 1)
        self.box.setLimits(xMin=-0.02 * most - 0.5, xMax=1.02 * most - 0.5)
        self.box.setXRange(-0.5, most - 0.5, padding=0.01)

    def show_range(self, first: float, last: float) -> None:
        """Show that range of indices."""
        self.box.setXRange(first, last, padding=0.0)

    def _fit_heights(self) -> None:
        if self.outline is None or not self.outline.shape[1]:
            return
        low, high = self._heights(self.outline)
        bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
        span = (top - bottom) or abs(top) or 1.0
        # Values are written above their bars, or below those that hang down.
        above = 0.3 if self._room <= LABELLED else 0.06
        self.box.setYRange(bottom - span * (above if bottom < 0 else 0.02), top + span * above, padding=0.0)

    def show_index_axis(self, shown: bool, *, named: bool = True) -> None:
        """Show or hide the axis below, where a plot below this one has the same, and what it counts."""
        self.bottom.setStyle(showValues=shown)
        self._named = shown and named
        self.bottom.showLabel(self._named)

    def mark_stretch(self, first: int, count: int) -> None:
        """Show where a stretch of elements is that is read elsewhere; none where `count` is 0."""
        self.stretch.setVisible(count > 0)
        self.stretch.blockSignals(True)
        self.stretch.setPos(first + (count - 1) / 2)
        self.stretch.blockSignals(False)

    def set_tone(self, tone: str) -> None:
        """Draw in the accent's color (""), or in that of something "bad" or "muted"."""
        self.tone = tone
        self._redraw()

    def range_at(self, index: int) -> tuple[int, int, Any, Any] | None:
        """Return the first and last index of the column of an element, and its least and greatest value."""
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
        self._items, self._bars = [], None
        few = self._room <= LABELLED
        self.bottom.setTicks([[(index, str(index)) for index in range(self._room)]] if few and self._room else None)
        if self.outline is None or not self.outline.shape[1]:
            return
        theme = look().theme
        color = QColor({"bad": theme.bad, "muted": theme.muted}.get(self.tone, theme.accent))
        low, high = self._heights(self.outline)
        gap = 0.1 if len(low) == self.elements <= SEPARATE and not self.as_curve else 0.0
        if self.as_curve and len(low) == self.elements:
            self._draw_steps(high + low, color)
        else:
            if self.as_curve:  # where it rises evenly its band is thinner than a line
                places = (np.arange(len(high)) + 0.5) * (self.elements / len(high)) - 0.5
                self._add(pg.PlotCurveItem(places, (low + high) / 2, pen=pg.mkPen(color, width=2)))
            self._bars = self._draw_bars(low, high, gap, self._behind(color))
        if self.kept is not None and self.kept.shape == self.outline.shape:
            self._draw_bars(*self._heights(self.kept), gap, color)
        elif self.middle is not None:
            self._draw_bars(self.middle[0].astype(np.float64), self.middle[1].astype(np.float64), gap, color)
        if few and self.elements:
            self._write_values(self.outline[1])

    def _behind(self, color: QColor) -> QColor:
        """Return the color of bars that others are drawn upon, or else that of these."""
        theme = look().theme
        if self.kept is not None:
            return QColor(theme.faint)
        return color if self.middle is None else mixed(color.name(), theme.surface, 0.45)

    def _heights(self, outline: Array) -> tuple[Array, Array]:
        low, high = outline.astype(np.float64)
        if outline.shape[1] == self.elements:  # each element has a bar of its own, which stands on zero
            low, high = np.fmin(low, 0), np.fmax(high, 0)
            low[np.isnan(outline[0])] = high[np.isnan(outline[0])] = np.nan
        elif self.floor is not None:
            low = np.fmin(low, self.floor)
        return low, high

    def _draw_bars(self, low: Array, high: Array, gap: float, color: QColor) -> pg.BarGraphItem:
        edges = np.arange(len(low) + 1) * (self.elements / len(low)) - 0.5
        there = ~np.isnan(low)
        fill = QColor(color)
        fill.setAlpha(200 if gap else 170)
        bars = pg.BarGraphItem(
            x0=edges[:-1][there] + gap,
            x1=edges[1:][there] - gap,
            y0=low[there],
            y1=high[there],
            pen=pg.mkPen(color, width=1) if gap else pg.mkPen(None),
            brush=fill,
        )
        self._add(bars)
        return bars

    def _draw_steps(self, values: Array, color: QColor) -> None:
        fill = QColor(color)
        fill.setAlpha(70)
        edges = np.arange(len(values) + 1) - 0.5
        pen = pg.mkPen(color, width=2)
        self._add(pg.PlotCurveItem(edges, values, stepMode="center", pen=pen, fillLevel=0.0, brush=fill))

    def _write_values(self, values: Array) -> None:
        for index, value in enumerate(values.tolist()):
            text = str(value) if isinstance(value, int) else f"{value:.3g}"
            written = pg.TextItem(text, color=look().theme.text, anchor=(0.5, 1.0 if value >= 0 else 0.0))
            written.setFont(tick_font())
            written.setPos(index, value)
            self._add(written)

    def _add(self, item: Any) -> None:
        self.plot.addItem(item)
        self._items.append(item)

    def restyle(self) -> None:
        self.plot.showGrid(x=False, y=True, alpha=0.12)
        for axis, text in ((self.left, self._unit), (self.bottom, "index")):
            dress(axis)
            label_axis(axis, text)
        self.bottom.showLabel(self._named)
        self.left.setWidth(look().px(84))
        self.stretch.setPen(pg.mkPen(look().theme.text, width=2))
        self.stretch.setHoverPen(pg.mkPen(look().theme.warn, width=3))
        self._redraw()

    # --- reading an element

    @property
    def count(self) -> int:
        return self._room

    def number_at(self, x: float) -> int | None:
        index = round(x)
        return index if 0 <= index < self._room else None

    def mark(self, number: int | None) -> None:
        super().mark(number)
        if number is not None and number >= self._room:
            self.line.hide()
