"""Cached pictures of the highlighted operations of a moment, painted over the rows of a dataflow."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRect, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gui.painting.pixmaps import Pixmaps
from gui.step_view.dataflow.flow_painter import FlowPainter


class HighlightPictures:
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
        self._boxes: dict[int, QRect] = {}

    def paint(self, painter: QPainter, row: int, moment: int, max_area: float) -> None:
        """Paint the operations of a moment.

        Parameters
        ----------
        painter : QPainter
            A painter in the coordinates of the dataflow's picture.
        row : int
            The number of the row that the moment belongs to.
        moment : int
            The moment.
        max_area : float
            The largest area in square pixels of a picture to cache; larger ones are painted each time.
        """
        area = self._highlight_box(row, moment)
        if area.width() * area.height() > max_area:
            self._flow.paint_highlight(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        elif not area.isEmpty():
            picture = self._pixmaps.find_or_paint(moment, lambda: self._paint_picture(row, moment))
            painter.drawPixmap(QPointF(area.topLeft()), picture)

    def prepare(self, row: int, moment: int, max_area: float) -> bool:
        """Add the picture of a moment to the cache; return whether there was nothing to do."""
        area = self._highlight_box(row, moment)
        if moment in self._pixmaps or area.isEmpty() or area.width() * area.height() > max_area:
            return True
        self._pixmaps.insert(moment, self._paint_picture(row, moment))
        return False

    def _highlight_box(self, row: int, moment: int) -> QRect:
        """Return the bounding box of a moment's operations and the lines to them; empty if there are none."""
        if moment not in self._boxes:
            cells = self._flow.layout.cells_at(row, moment)
            self._boxes[moment] = self._flow.highlight_area(row, cells).toAlignedRect() if cells.size else QRect()
        return self._boxes[moment]

    def _paint_picture(self, row: int, moment: int) -> QPixmap:
        area = self._highlight_box(row, moment)
        picture = QPixmap(area.size() * self._ratio)
        picture.setDevicePixelRatio(self._ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(QPointF(-area.topLeft()))
        self._flow.paint_highlight(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        painter.end()
        return picture
