"""Cached pictures of the highlighted operations of a moment, painted over the rows of a dataflow."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRect, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gui.painting.pixmaps import Pixmaps
from gui.step_view.dataflow.paint import FlowPainter


class BrightPictures:
    """A cache of pictures of the operations executed at each moment.

    Parameters
    ----------
    flow : FlowPainter
    ratio : float
        Device pixel ratio.
    """

    def __init__(self, flow: FlowPainter, ratio: float) -> None:
        self._flow, self._ratio = flow, ratio
        self._pixmaps = Pixmaps()
        self._areas: dict[int, QRect] = {}

    def paint(self, painter: QPainter, row: int, moment: int, most: float) -> None:
        """Paint the operations of a moment; pictures of more than `most` square pixels are not cached."""
        area = self._area(row, moment)
        if area.width() * area.height() > most:
            self._flow.paint_bright(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        elif not area.isEmpty():
            picture = self._pixmaps.at(moment, lambda: self._paint_picture(row, moment))
            painter.drawPixmap(QPointF(area.topLeft()), picture)

    def prepare(self, row: int, moment: int, most: float) -> bool:
        """Add the picture of a moment to the cache; return whether there was nothing to do."""
        area = self._area(row, moment)
        if moment in self._pixmaps or area.isEmpty() or area.width() * area.height() > most:
            return True
        self._pixmaps.keep(moment, self._paint_picture(row, moment))
        return False

    def _area(self, row: int, moment: int) -> QRect:
        """Return the bounding box of a moment's operations and the lines to them; empty if there are none."""
        if moment not in self._areas:
            cells = self._flow.layout.cells_at(row, moment)
            self._areas[moment] = self._flow.bright_area(row, cells).toAlignedRect() if cells.size else QRect()
        return self._areas[moment]

    def _paint_picture(self, row: int, moment: int) -> QPixmap:
        area = self._area(row, moment)
        picture = QPixmap(area.size() * self._ratio)
        picture.setDevicePixelRatio(self._ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(QPointF(-area.topLeft()))
        self._flow.paint_bright(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        painter.end()
        return picture
