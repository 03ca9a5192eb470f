"""Labels to the left of a dataflow's rows, and the background of the current row."""

from __future__ import annotations

import math
from functools import cached_property

from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from gui.painting.colors import mix_colors
from gui.painting.lettering import Lettering
from gui.painting.theme import Look, text_families
from gui.step_view.dataflow.layout import DataflowLayout, Metrics

_MIN_INDEXED_COLUMNS = 64
"""Minimum number of columns that get indices: cells of fewer columns can be counted."""


class FlowLabels:
    """Painter of row labels for one layout, size and look."""

    def __init__(self, layout: DataflowLayout, sizes: Metrics, look: Look) -> None:
        self.layout, self.sizes, self.look = layout, sizes, look
        self.theme = look.theme
        bold = label_font(look)
        bold.setBold(True)
        self._label, self._current_label = Lettering(label_font(look)), Lettering(bold)
        self._titles: dict[int, str] = {}

    def paint(self, painter: QPainter, rows: range, moment: int, current: int, top: float, width: float) -> None:
        """Paint the labels of rows at the left of a picture, and lines between launches across its width.

        Parameters
        ----------
        rows : range
            Numbers of the visible rows.
        moment : int
            Rows that have not begun at this moment get fainter labels.
        current : int
            The highlighted row; -1 for none.
        top : float
            The y of the picture's top.
        width : float
            The picture's width.
        """
        theme, sizes, side = self.theme, self.sizes, self.look.px(14)
        width_of_label = sizes.label - self.look.px(18)
        painter.setFont(self._label.font)
        for number in rows:
            row = self.layout.rows[number]
            box = QRectF(side, top + sizes.top(number), width_of_label, sizes.cell)
            if number != current:
                painter.setPen(QColor(theme.muted if moment > row.first else theme.faint))
                self._label.paint_left(painter, box, self._elided_title(number))
            if number and row.launch != self.layout.rows[number - 1].launch:
                painter.setPen(QColor(theme.border))
                y = box.top() - (sizes.pitch - sizes.cell) / 2
                painter.drawLine(QPointF(side, y), QPointF(width - side, y))
        if current in rows:
            painter.setFont(self._current_label.font)
            painter.setPen(QColor(theme.accent))
            box = QRectF(side, top + sizes.top(current), width_of_label, sizes.cell)
            self._current_label.paint_left(painter, box, self._elided_title(current))

    @cached_property
    def _index_step(self) -> int:
        """The distance of columns with indices: a power of two with room for the largest index; 0 for few columns."""
        if self.layout.columns < _MIN_INDEXED_COLUMNS:
            return 0
        room = self._label.width(str(self.layout.columns)) + self.look.px(10)
        return 1 << max(0, math.ceil(math.log2(room / self.sizes.column)))

    def list_indices(self, left: float, right: float) -> list[int]:
        """Return the columns that get an index, of those whose centers lie between two x of the dataflow."""
        if not self._index_step:
            return []
        first, last = (math.ceil(x / self.sizes.column - 0.5) for x in (left, right))
        start = -(-max(first, 0) // self._index_step) * self._index_step
        return list(range(start, min(last, self.layout.columns), self._index_step))

    def paint_indices(self, painter: QPainter, origin: QPointF, width: float) -> None:
        """Paint the indices of columns at the top of a view of many columns, over the rows that are scrolled there.

        Parameters
        ----------
        origin : QPointF
            The position of column 0 in the view.
        width : float
            The view's width.
        """
        if not self._index_step:
            return
        strip = QRectF(self.sizes.label, 0, width - self.sizes.label, self.sizes.head)
        painter.fillRect(strip, QColor(self.theme.surface))
        painter.setFont(self._label.font)
        painter.setPen(QColor(self.theme.muted))
        for column in self.list_indices(self.sizes.label - origin.x(), width - origin.x()):
            center = origin.x() + (column + 0.5) * self.sizes.column
            text = str(column)
            half = self._label.width(text) / 2
            # The first index begins where its narrow column does.
            left = max(center - half, self.sizes.label)
            self._label.paint_left(painter, QRectF(left, 0, 2 * half, self.sizes.head), text)

    def _elided_title(self, number: int) -> str:
        """Return the label of a row, elided to the available width."""
        if number not in self._titles:
            room = self.sizes.label - self.look.px(18)
            metric = QFontMetricsF(self._current_label.font)
            title = metric.elidedText(self.layout.rows[number].label, Qt.TextElideMode.ElideRight, room)
            self._titles[number] = title
        return self._titles[number]

    @property
    def band_color(self) -> QColor:
        """The background of the current row."""
        return mix_colors(self.theme.accent, self.theme.surface, 0.1)

    def paint_band(self, painter: QPainter, number: int, top: float, width: float) -> None:
        """Paint the background of a row across a picture.

        Parameters
        ----------
        painter : QPainter
            The picture's painter.
        number : int
            The number of the row.
        top : float
            The y in the picture at which the dataflow begins; negative if it is scrolled.
        width : float
            The picture's width.
        """
        band = QRectF(4, top + self.sizes.top(number) - 4, width - 8, self.sizes.cell + 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.band_color)
        painter.drawRoundedRect(band, 6, 6)


def label_font(look: Look) -> QFont:
    """Return the font of a picture's labels."""
    font = QFont()
    if text_families():
        font.setFamilies(list(text_families()))
    font.setPixelSize(look.small_px)
    return font


def label_width(layout: DataflowLayout, look: Look, maximum: float) -> float:
    """Return the width of the labels, at most `maximum`, plus margins."""
    font = label_font(look)
    font.setBold(True)
    widest = max((QFontMetricsF(font).horizontalAdvance(row.label) for row in layout.rows), default=0.0)
    return min(widest, maximum) + look.px(28)
