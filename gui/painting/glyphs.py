"""Icons of the transport buttons, such as play and step."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QIcon, QPainter, QPixmap, QPolygonF

from gui.painting.theme import look


def glyph(name: str, color: str) -> QIcon:
    """Return a transport icon, drawn as shapes because the characters differ between fonts."""
    icon = QIcon()
    for mode, tint in ((QIcon.Mode.Normal, color), (QIcon.Mode.Disabled, look().theme.faint)):
        picture = QPixmap(48, 42)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tint))
        forward = name in ("play", "step", "barrier on", "last")
        if not forward and name != "pause":
            painter.translate(48, 0)
            painter.scale(-1, 1)

        def triangle(x: float, painter: QPainter = painter) -> None:
            painter.drawPolygon(QPolygonF([QPointF(x, 7), QPointF(x + 19, 21), QPointF(x, 35)]))

        if name == "pause":
            painter.drawRoundedRect(QRectF(12, 7, 8, 28), 2, 2)
            painter.drawRoundedRect(QRectF(28, 7, 8, 28), 2, 2)
        elif name == "play":
            painter.drawPolygon(QPolygonF([QPointF(12, 5), QPointF(38, 21), QPointF(12, 37)]))
        elif name in ("step", "back"):
            triangle(15)
        elif name in ("barrier on", "barrier back"):
            triangle(5)
            triangle(24)
        else:
            triangle(12)
            painter.drawRoundedRect(QRectF(33, 7, 5, 28), 2, 2)
        painter.end()
        icon.addPixmap(picture, mode)
    return icon
