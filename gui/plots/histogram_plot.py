"""Plot of counts per bin: one curve for gray, three for color, on a linear or logarithmic scale."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QKeyEvent

from gpu.declaration.pattern import Array
from gui.painting.theme import look
from gui.plots.axes import style_axis, tick_font
from gui.plots.plot import Plot

_NAME_GAP = 0.5
"""Free space between the names of bins, as a multiple of the line height."""

CHANNELS = {1: ("count",), 3: ("red", "green", "blue")}


class HistogramPlot(Plot):
    """A plot of a histogram, and of a reference behind it as a dotted line.

    Parameters
    ----------
    name : str
        Accessible name for screen readers.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.setToolTip("Arrow keys or pointer: read a bin. Click, Enter: its threads. Double click, 0: show all.")
        self.setMinimumSize(160, 90)
        self.box.setMouseEnabled(x=True, y=False)
        self.box.setDefaultPadding(0.0)
        self.counts: Array | None = None
        self.reference: Array | None = None
        self.logarithmic = False
        self._names: tuple[str, ...] = ()
        self._curves: list[pg.PlotCurveItem] = []
        self.box.sigXRangeChanged.connect(self._update_name_ticks)
        self.box.sigResized.connect(self._update_name_ticks)

    def show_counts(self, counts: Array, reference: Array | None = None) -> None:
        """Show counts and an optional reference behind them, both of shape (channels, bins)."""
        new_range = self.counts is None or self.counts.shape[1] != counts.shape[1]
        self.counts, self.reference = counts, reference
        self._redraw()
        if new_range:
            self.fit()
        self.update_layout()

    def clear_counts(self) -> None:
        """Remove all counts."""
        self.counts = self.reference = None
        self._redraw()

    def name_bins(self, names: tuple[str, ...]) -> None:
        """Label bins with names, skipping some if room is short; no names restore the bin numbers."""
        self._names = names
        self.bottom.setTicks(None)
        self._update_name_ticks()

    def _update_name_ticks(self, *_: object) -> None:
        if not self._names:
            return
        (first, last), _ = self.box.viewRange()
        metric = QFontMetricsF(tick_font())
        widths = np.array([metric.horizontalAdvance(name) for name in self._names])
        bin_px = self.box.width() / max(last - first, 1e-9)

        def are_apart(every: int) -> bool:
            labeled = widths[::every]
            needed = (labeled[1:] + labeled[:-1]) / 2 + _NAME_GAP * metric.height()
            return bool((needed <= every * bin_px).all())

        every = next(every for every in range(1, len(widths) + 1) if are_apart(every))
        self.bottom.setTicks([[(index + 0.5, self._names[index]) for index in range(0, len(self._names), every)]])

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Choose the scale of the counts."""
        self.logarithmic = logarithmic
        self._redraw()

    def fit(self) -> None:
        """Show every bin."""
        if self.counts is not None:
            self.plot.setLimits(xMin=0, xMax=self.counts.shape[1])  # first, since they clamp the range
            self.plot.setXRange(0, self.counts.shape[1], padding=0.0)

    def _redraw(self) -> None:
        for curve in self._curves:
            self.plot.removeItem(curve)
        self._curves = []
        if self.counts is None:
            return
        if self.reference is not None and self.reference.shape == self.counts.shape:
            self._draw_counts(self.reference, behind=True)
        self._draw_counts(self.counts, behind=False)
        counts = self.counts if self.reference is None else np.concatenate([self.counts, self.reference])
        top = self._scale_counts(np.array([max(1, int(counts.max()))]))[0]
        self.plot.setYRange(0, float(top) * 1.06, padding=0.0)
        self._label_heights(int(counts.max()))

    def _scale_counts(self, counts: Array) -> Array:
        # log(1 + n) is also defined for empty bins.
        return np.log10(1.0 + counts) if self.logarithmic else counts.astype(np.float64)

    def _draw_counts(self, counts: Array, *, behind: bool) -> None:
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
                edges,
                self._scale_counts(values),
                stepMode="center",
                pen=pen,
                fillLevel=0.0 if brush else None,
                brush=brush,
            )
            curve.setZValue(-1 if behind else 0)
            self.plot.addItem(curve)
            self._curves.append(curve)

    def _label_heights(self, highest: int) -> None:
        if not self.logarithmic:
            self.left.setTicks(None)
            return
        decades = [(np.log10(1.0 + 10**power), _format_short(10**power)) for power in range(len(str(max(1, highest))))]
        self.left.setTicks([[(0.0, "0"), *decades]])

    def restyle(self) -> None:
        self.plot.showGrid(x=False, y=True, alpha=0.12)
        style_axis(self.left)
        style_axis(self.bottom)
        self._update_name_ticks()
        self.left.setWidth(look().px(52))
        self._redraw()

    # --- reading a bin

    @property
    def count(self) -> int:
        return 0 if self.counts is None else self.counts.shape[1]

    def find_number(self, x: float) -> int | None:
        return int(x) if 0 <= x < self.count else None

    def position_of(self, number: int) -> float:
        return number + 0.5

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is not None and event.text() == "0":
            self.fit()
        else:
            super().keyPressEvent(event)


def _format_short(number: int) -> str:
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{suffix}"
    return str(number)
