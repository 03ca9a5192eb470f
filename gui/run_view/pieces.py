"""Elements drawn as lengths end to end, such as a sausage cut into pieces: a prefix sum gives the cuts."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFont, QPainter, QPainterPath, QPaintEvent, QPen
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gpu.declaration.pattern import Array, LengthsPresentation
from gui.painting.colors import mix_colors, warp_color
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import code_font, look


class PiecesBar(QWidget):
    """A bar cut into pieces, with the prefix sums at the cuts."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(120)
        self.pieces: LengthsPresentation | None = None
        self.lengths: Array = np.zeros(0, np.int64)
        self.cut_positions: Array = np.zeros(0, np.int64)
        self.unused_length = 0

    def show_pieces(self, pieces: LengthsPresentation, lengths: Array, cut_positions: Array) -> None:
        """Show pieces of these nonnegative lengths; `cut_positions` are their ends, or starts if not inclusive."""
        self.pieces, self.lengths, self.cut_positions = pieces, lengths, cut_positions
        self.unused_length = max(pieces.total_length - int(lengths.sum()), 0)
        at = ("cut at" if pieces.inclusive else "begin at", " ".join(map(str, cut_positions.tolist())))
        left = f", {self.unused_length} {pieces.remainder_label}" if self.unused_length else ""
        self.setAccessibleName(f"{len(lengths)} pieces, {' '.join(at)}{left}")
        self.update()

    @property
    def total_length(self) -> int:
        """The length of the bar."""
        return max(int(self.lengths.sum()) + self.unused_length, 1)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.pieces is None:
            return
        painter = create_smooth_painter(self)
        theme, side = look().theme, look().px(22)
        height = min(look().px(76), self.height() // 3)
        area = QRectF(side, (self.height() - height) / 2 - look().px(6), self.width() - 2 * side, height)
        scale = area.width() / self.total_length
        shape = QPainterPath()
        shape.addRoundedRect(area, height / 2, height / 2)
        painter.fillPath(shape, QColor(theme.raised))
        painter.setClipPath(shape)
        begins = np.cumsum(self.lengths) - self.lengths
        for number, (begin, length) in enumerate(zip(begins.tolist(), self.lengths.tolist(), strict=True)):
            color = mix_colors(warp_color(theme, number).name(), theme.surface, 0.55)
            painter.fillRect(QRectF(area.x() + begin * scale, area.y(), length * scale, height), color)
        if self.unused_length:
            hatch = QRectF(area.right() - self.unused_length * scale, area.y(), self.unused_length * scale, height)
            painter.setClipRect(hatch, Qt.ClipOperation.IntersectClip)
            painter.setPen(QPen(QColor(theme.border), 1))
            for x in range(int(hatch.left() - height), int(hatch.right()), 9):
                painter.drawLine(QPointF(x, hatch.bottom()), QPointF(x + height, hatch.top()))
            painter.setClipPath(shape)
        painter.setPen(QPen(QColor(theme.surface), 3))
        for end in (begins + self.lengths).tolist():
            painter.drawLine(
                QPointF(area.x() + end * scale, area.top()), QPointF(area.x() + end * scale, area.bottom())
            )
        painter.setClipping(False)
        painter.strokePath(shape, QPen(QColor(theme.faint), 1.2))
        self._draw_lengths(painter, area, scale, begins)
        painter.end()

    def _draw_lengths(self, painter: QPainter, area: QRectF, scale: float, starts: Array) -> None:
        """Draw each piece's length inside it, and the prefix sums below."""
        assert self.pieces is not None
        theme = look().theme
        inside, small = code_font(look().px(15)), code_font(look().small_px)
        inside.setWeight(QFont.Weight.Bold)
        painter.setFont(inside)
        painter.setPen(QColor(theme.text))
        for begin, length in zip(starts.tolist(), self.lengths.tolist(), strict=True):
            text, width = str(length), length * scale
            if painter.fontMetrics().horizontalAdvance(text) < width - 3:
                rect = QRectF(area.x() + begin * scale, area.y(), width, area.height())
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
        if self.unused_length:
            rect = QRectF(
                area.right() - self.unused_length * scale, area.y(), self.unused_length * scale, area.height()
            )
            painter.setPen(QColor(theme.muted))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, f"{self.unused_length} {self.pieces.remainder_label}")
        painter.setFont(small)
        metrics = painter.fontMetrics()
        self._draw_cut_positions(painter, area, scale, metrics.height() + 2)
        painter.setPen(QColor(theme.muted))
        above = QRectF(area.x(), 0, area.width(), area.y() - 4)
        lengths = f"lengths: {' '.join(map(str, self.lengths.tolist()))}   of {self.total_length} {self.pieces.unit}"
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, lengths)

    def _draw_cut_positions(self, painter: QPainter, area: QRectF, scale: float, line: int) -> None:
        """Draw the cut positions in up to three lines, so that the numbers do not overlap."""
        theme, metrics = look().theme, painter.fontMetrics()
        ends = [-1e9] * 3
        for place in dict.fromkeys(self.cut_positions.tolist()):
            again = self.cut_positions.tolist().count(place)
            x, text = area.x() + place * scale, str(place) if again == 1 else f"{place} ×{again}"
            width = metrics.horizontalAdvance(text) + 6
            row = next((number for number, end in enumerate(ends) if x - width / 2 > end), len(ends) - 1)
            ends[row] = x + width / 2
            top = area.bottom() + 6 + row * line
            painter.setPen(QPen(QColor(theme.faint), 1))
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, top + 1))
            painter.setPen(QColor(theme.accent if again == 1 else theme.warn))
            painter.drawText(QRectF(x - width, top, 2 * width, line), Qt.AlignmentFlag.AlignHCenter, text)
