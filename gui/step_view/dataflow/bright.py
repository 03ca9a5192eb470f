"""Pictures of the operations of a moment, which lie over the rows of a dataflow."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRect, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gpu.declaration.pattern import Array
from gui.step_view.dataflow.paint import FlowPainter

_KEPT = 8
"""Moments whose operations are kept as pictures."""

Placed = tuple[QPointF, QPixmap]


class BrightPictures:
    """The painted operations of the moments that were asked for last.

    Parameters
    ----------
    flow : FlowPainter
    ratio : float
        Pixels of the screen for each of the picture.
    most : float
        How large such a picture may be, in square pixels.
    """

    def __init__(self, flow: FlowPainter, ratio: float, most: float) -> None:
        self._flow, self._ratio, self._most = flow, ratio, most
        self._kept: dict[int, Placed | None] = {}

    def at(self, row: int, cells: Array, moment: int) -> Placed | None:
        """Return the operations of a moment, cells of a row, and where the picture lies; None where it is too large."""
        if moment not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[moment] = self._made(row, cells)
        return self._kept[moment]

    def knows(self, moment: int) -> bool:
        """Return whether there is a picture of a moment's operations."""
        return self._kept.get(moment) is not None

    def prepare(self, row: int, cells: Array, moment: int) -> bool:
        """Paint the operations of a moment for later; return whether that was still to be done."""
        if moment in self._kept:
            return False
        self.at(row, cells, moment)
        return True

    def _made(self, row: int, cells: Array) -> Placed | None:
        area = self._flow.bright_area(row, cells).toAlignedRect() if cells.size else QRect()
        if area.width() * area.height() > self._most:
            return None
        picture = QPixmap(area.size() * self._ratio)
        picture.setDevicePixelRatio(self._ratio)
        picture.fill(Qt.GlobalColor.transparent)
        if cells.size:
            painter = QPainter(picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.translate(QPointF(-area.topLeft()))
            self._flow.paint_bright(painter, row, cells.tolist())
            painter.end()
        return QPointF(area.topLeft()), picture
