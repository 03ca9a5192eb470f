"""Partial results that were combined into one value, drawn as rows below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPolygonF
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors
from gui.painting.theme import code_font, look, resize_font
from gui.painting.values import format_value
from gui.widgets.basic import format_count

_MAX_CELLS = 32
_MAX_CHARACTERS = 9


@dataclass(frozen=True)
class PartialResults:
    """A row of results: its outline of shape (2, columns) with minima and maxima, its length, and a description."""

    outline: Array
    count: int
    description: str


class PartialsTree(QWidget):
    """The rows, the last launch's on top: cells with values if there are few, else bars."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[PartialResults, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(300, self.minimumSizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, look().px(54) * max(len(self.rows), 1))

    def show_rows(self, rows: tuple[PartialResults, ...]) -> None:
        """Show rows, in the order of the launches."""
        self.rows = rows
        self.setAccessibleName("Partial results")
        self.setAccessibleDescription("; ".join(_format_caption(row) for row in reversed(rows)))
        self.updateGeometry()
        self.update()

    def describe_position(self, position: QPointF) -> str:
        """Return the tooltip text at a position."""
        for area, row in self._compute_areas():
            if area.contains(position):
                columns = row.outline.shape[1]
                column = min(int((position.x() - area.x()) / area.width() * columns), columns - 1)
                low, high = (format_value(each.item(), 12) for each in row.outline[:, column])
                first, stop = column * row.count // columns, (column + 1) * row.count // columns
                indices = f"{first}" if stop - first <= 1 else f"{first} … {stop - 1}"
                return f"[{indices}]: {low if low == high else f'{low} … {high}'}"
        return ""

    def _compute_areas(self) -> list[tuple[QRectF, PartialResults]]:
        """Return each row's rectangle below its caption, from top to bottom."""
        side, caption = look().px(10), look().px(18)
        row_height = self.height() / max(len(self.rows), 1)
        tops = (number * row_height for number in range(len(self.rows)))
        bar_height = row_height - caption - look().px(6)
        return [
            (QRectF(side, top + caption, self.width() - 2 * side, max(bar_height, 8)), row)
            for top, row in zip(tops, reversed(self.rows), strict=True)
        ]

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, theme = QPainter(self), look().theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for area, row in self._compute_areas():
            top = area.y() - look().px(18)
            drawn = QRectF(area) if row.outline.shape[1] > _MAX_CELLS else _compute_cell_area(area)
            middle, half = self.width() / 2, look().px(7)
            funnel = [QPointF(middle - half, top - look().px(6)), QPointF(middle + half, top - look().px(6)),
                      drawn.topRight(), drawn.topLeft()]  # fmt: skip
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mix_colors(theme.accent, theme.surface, 0.12))
            painter.drawPolygon(QPolygonF(funnel))
            painter.setPen(QColor(theme.muted))
            font = resize_font(self.font(), look().small_px)
            painter.setFont(font)
            words = painter.fontMetrics().elidedText(
                _format_caption(row), Qt.TextElideMode.ElideRight, int(area.width())
            )
            painter.drawText(QRectF(area.x(), top, area.width(), look().px(17)), Qt.AlignmentFlag.AlignCenter, words)
            if row.outline.shape[1] > _MAX_CELLS:
                self._draw_bars(painter, drawn, row)
            else:
                self._draw_cells(painter, drawn, row)
        painter.end()

    def _draw_cells(self, painter: QPainter, area: QRectF, row: PartialResults) -> None:
        theme, values = look().theme, row.outline[1].tolist()
        painter.setFont(code_font(look().small_px))
        digit = max(painter.fontMetrics().horizontalAdvance("0"), 1)
        longest = max(len(format_value(value, _MAX_CHARACTERS)) for value in values)
        # In two lines if the values are too wide for one.
        lines = 1 if longest * digit + 6 <= area.width() / len(values) else 2
        across = -(-len(values) // lines)
        width, height = area.width() / across, area.height() / lines
        room = int((width - 6) // digit)
        for number, value in enumerate(values):
            line, column = divmod(number, across)
            cell = QRectF(area.x() + column * width + 1, area.y() + line * height, width - 2, height - lines + 1)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.accent_soft))
            painter.drawRoundedRect(cell, 3, 3)
            text = _format_short(value, room)
            if len(text) <= room:
                painter.setPen(QColor(theme.text))
                painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_bars(self, painter: QPainter, area: QRectF, row: PartialResults) -> None:
        low, high = row.outline.astype(np.float64)
        bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
        span = (top - bottom) or 1.0
        width = area.width() / len(high)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(area, QColor(look().theme.raised))
        color = QColor(look().theme.accent)
        # The smallest value has a bar too, so that heights can be compared.
        for index, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            upper = area.bottom() - (0.1 + 0.9 * (most - bottom) / span) * area.height()
            lower = area.bottom() - (0.1 + 0.9 * (least - bottom) / span) * area.height()
            soft = QColor(color)
            soft.setAlpha(120)
            x = area.x() + index * width
            painter.fillRect(QRectF(x, lower, max(width, 1), area.bottom() - lower), soft)
            painter.fillRect(QRectF(x, upper, max(width, 1), max(lower - upper, 1)), color)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.describe_position(QPointF(event.pos())), self)
            return True
        return super().event(event)


def _compute_cell_area(area: QRectF) -> QRectF:
    """Return the rectangle of the cells, which are no higher than their text needs."""
    height = min(area.height(), look().px(34))
    return QRectF(area.x(), area.y(), area.width(), height)


def _format_short(value: float, max_characters: int) -> str:
    """Format a number in at most `max_characters` characters if possible: 3232301 as 3.23M in five."""
    text = format_value(value, max(max_characters, 1))
    power, letter = next(((p, s) for p, s in ((9, "G"), (6, "M"), (3, "k")) if abs(value) >= 10**p), (0, ""))
    return (
        format_value(value / 10**power, max_characters - 1) + letter
        if "e" in text and letter and max_characters > 2
        else text
    )


def _format_caption(row: PartialResults) -> str:
    low, high = float(np.nanmin(row.outline)), float(np.nanmax(row.outline))
    kind = int if row.outline.dtype.kind in "ui" else float
    ends = f": {format_value(kind(low), _MAX_CHARACTERS)} … {format_value(kind(high), _MAX_CHARACTERS)}"
    return f"{format_count(row.count)} {row.description}{ends}"
