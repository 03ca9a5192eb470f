"""Short texts that are painted again and again, laid out once each."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSizeF, Qt
from PyQt6.QtGui import QFont, QPainter, QStaticText, QTransform

_KEPT = 4096


class Lettering:
    """Texts in one font.

    Parameters
    ----------
    font : QFont
    """

    def __init__(self, font: QFont) -> None:
        self.font = font
        self._laid: dict[str, tuple[QStaticText, QSizeF]] = {}

    def center(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text in the middle of a box with the painter's pen; the painter has this font."""
        laid, size = self._laid.get(text) or self._lay(text)
        at = QPointF(box.x() + (box.width() - size.width()) / 2, box.y() + (box.height() - size.height()) / 2)
        painter.drawStaticText(at, laid)

    def left(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text at the left of a box, halfway down."""
        laid, size = self._laid.get(text) or self._lay(text)
        painter.drawStaticText(QPointF(box.x(), box.y() + (box.height() - size.height()) / 2), laid)

    def right(self, painter: QPainter, box: QRectF, text: str) -> None:
        """Paint a text at the right of a box, from its top."""
        laid, size = self._laid.get(text) or self._lay(text)
        painter.drawStaticText(QPointF(box.right() - size.width(), box.y()), laid)

    def width(self, text: str) -> float:
        """Return how wide a text is."""
        return (self._laid.get(text) or self._lay(text))[1].width()

    def _lay(self, text: str) -> tuple[QStaticText, QSizeF]:
        made = QStaticText(text)
        made.setTextFormat(Qt.TextFormat.PlainText)
        made.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
        made.prepare(QTransform(), self.font)
        if len(self._laid) >= _KEPT:
            self._laid.clear()
        self._laid[text] = (made, made.size())
        return self._laid[text]
