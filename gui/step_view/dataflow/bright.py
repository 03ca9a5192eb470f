"""Pictures of the operations of a moment, which lie over the rows of a dataflow."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRect, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gui.painting.pixmaps import Pixmaps
from gui.step_view.dataflow.paint import FlowPainter


class BrightPictures:
    """The painted operations of moments, one row's each.

    Parameters
    ----------
    flow : FlowPainter
    ratio : float
        Pixels of the screen for each of the picture.
    """

    def __init__(self, flow: FlowPainter, ratio: float) -> None:
        self._flow, self._ratio = flow, ratio
        self._kept = Pixmaps()
        self._areas: dict[int, QRect] = {}

    def paint(self, painter: QPainter, row: int, moment: int, most: float) -> None:
        """Paint the operations of a moment; those that cover more than `most` square pixels are not kept."""
        area = self._area(row, moment)
        if area.width() * area.height() > most:
            self._flow.paint_bright(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        elif not area.isEmpty():
            picture = self._kept.at(moment, lambda: self._painted(row, moment))
            painter.drawPixmap(QPointF(area.topLeft()), picture)

    def prepare(self, row: int, moment: int, most: float) -> bool:
        """Paint the operations of a moment for later; return whether there was nothing left to do."""
        area = self._area(row, moment)
        if moment in self._kept or area.isEmpty() or area.width() * area.height() > most:
            return True
        self._kept.keep(moment, self._painted(row, moment))
        return False

    def _area(self, row: int, moment: int) -> QRect:
        """Return where the operations of a moment lie, and the lines to them; empty where there are none."""
        if moment not in self._areas:
            cells = self._flow.layout.cells_at(row, moment)
            self._areas[moment] = self._flow.bright_area(row, cells).toAlignedRect() if cells.size else QRect()
        return self._areas[moment]

    def _painted(self, row: int, moment: int) -> QPixmap:
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
