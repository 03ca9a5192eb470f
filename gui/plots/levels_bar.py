"""Horizontal histogram of an array's values, next to the array's plot and on the same value axis."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors
from gui.painting.theme import code_font, look
from gui.plots.array_plot import ArrayPlot
from gui.qt.events import StyleListener
from gui.widgets.basic import format_count, format_figure


class LevelsBar(StyleListener, QWidget):
    """A horizontal bar for each range of values, as long as the range's count.

    Parameters
    ----------
    plot : ArrayPlot
        The array's plot, which provides the value axis.
    """

    def __init__(self, plot: ArrayPlot) -> None:
        super().__init__()
        self._plot = plot
        self.counts: Array = np.zeros(0, np.int64)
        self.edges: Array = np.zeros(1)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setFixedWidth(look().px(76))
        plot.box.sigYRangeChanged.connect(lambda *_: self.update())
        plot.box.sigResized.connect(lambda *_: self.update())

    def show_counts(self, counts: Array, edges: Array) -> None:
        """Show counts of shape (ranges,) between edges of shape (ranges + 1,)."""
        self.counts, self.edges = counts, edges
        largest = int(counts.argmax())
        self.setAccessibleName("Distribution of the values")
        self.setAccessibleDescription(f"{len(counts)} ranges; most frequent: {self.describe_range(largest)}")
        self.update()

    def describe_range(self, number: int) -> str:
        """Return a range's bounds, count and share as text."""
        low, high = self.edges[number : number + 2].tolist()
        share = 100 * self.counts[number] / max(int(self.counts.sum()), 1)
        bounds = f"{format_signed_figure(low)} … {format_signed_figure(high)}"
        return f"{bounds}: {format_count(int(self.counts[number]))} ({share:.1f}%)"

    def find_range(self, y: float) -> int | None:
        """Return the number of the range drawn at a height, or None."""
        index = int(np.searchsorted(self.edges, self._y_to_value(y), "right")) - 1
        return index if 0 <= index < len(self.counts) else None

    def _value_to_y(self, value: float) -> float:
        in_scene = self._plot.box.mapViewToScene(QPointF(0, value))
        return float(self._plot.plot.mapFromScene(in_scene).y())

    def _y_to_value(self, y: float) -> float:
        in_scene = self._plot.plot.mapToScene(QPointF(0, y).toPoint())
        return float(self._plot.box.mapSceneToView(in_scene).y())

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if not len(self.counts):
            return
        painter, theme = QPainter(self), look().theme
        heights = [self._value_to_y(float(edge)) for edge in self.edges]
        max_count, room = max(int(self.counts.max()), 1), self.width() - 10
        color = mix_colors(theme.accent, theme.surface, 0.7)
        painter.setPen(Qt.PenStyle.NoPen)
        for count, low, high in zip(self.counts.tolist(), heights[:-1], heights[1:], strict=True):
            gap = 1 if low - high > 4 else 0
            painter.fillRect(QRectF(6, high, room * count / max_count, max(low - high - gap, 1)), color)
        painter.setPen(QColor(theme.border))
        painter.drawLine(QPointF(5, heights[-1]), QPointF(5, heights[0]))
        painter.setPen(QColor(theme.muted))
        painter.setFont(code_font(look().small_px))
        below = QRectF(0, heights[0] + 2, self.width() - 2, look().px(18))
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter, "count")
        painter.end()

    def _restyle(self) -> None:
        self.setFixedWidth(look().px(76))

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            number = self.find_range(event.pos().y())
            QToolTip.showText(event.globalPos(), self.describe_range(number) if number is not None else "", self)
            return True
        return super().event(event)


def format_signed_figure(value: float) -> str:
    """Return a number of either sign in a short, readable form."""
    return f"-{format_figure(-value)}" if value < 0 else format_figure(value)
