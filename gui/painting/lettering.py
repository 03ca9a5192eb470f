"""Repeatedly painted short texts, each laid out only once."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSizeF, Qt
from PyQt6.QtGui import QFont, QPainter, QStaticText, QTransform

_MAX_TEXTS = 4096


class Lettering:
    """A cache of laid-out texts in one font."""

    def __init__(self, font: QFont) -> None:
        self.font = font
        self._layouts: dict[str, tuple[QStaticText, QSizeF]] = {}

    def paint_centered(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text centered in a box with the painter's pen; the painter must already use this font."""
        layout, size = self._layouts.get(text) or self._lay_out(text)
        at = QPointF(box.x() + (box.width() - size.width()) / 2, box.y() + (box.height() - size.height()) / 2)
        painter.drawStaticText(at, layout)

    def paint_left(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text at the left of a box, vertically centered."""
        layout, size = self._layouts.get(text) or self._lay_out(text)
        painter.drawStaticText(QPointF(box.x(), box.y() + (box.height() - size.height()) / 2), layout)

    def paint_right(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text at the top right of a box."""
        layout, size = self._layouts.get(text) or self._lay_out(text)
        painter.drawStaticText(QPointF(box.right() - size.width(), box.y()), layout)

    def width(self, text: str) -> float:
        """Return a text's width in pixels."""
        return (self._layouts.get(text) or self._lay_out(text))[1].width()

    def _lay_out(self, text: str) -> tuple[QStaticText, QSizeF]:
        layout = QStaticText(text)
        layout.setTextFormat(Qt.TextFormat.PlainText)
        layout.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
        layout.prepare(QTransform(), self.font)
        if len(self._layouts) >= _MAX_TEXTS:
            self._layouts.clear()
        self._layouts[text] = (layout, layout.size())
        return self._layouts[text]
