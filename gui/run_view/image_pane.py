"""A picture that can be zoomed with the wheel and panned by dragging, with a reading of the pixel under the pointer."""

from __future__ import annotations

import pyqtgraph as pg
from PyQt6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, pyqtSignal, pyqtSlot
from PyQt6.QtGui import QColor, QKeyEvent, QPainter, QPen
from PyQt6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gpu.declaration.pattern import Array
from gui.painting.pyramid import Pyramid
from gui.painting.theme import look
from gui.plots.pointer import PointerTracker
from gui.qt.events import is_of
from gui.qt.later import queue


class PictureItem(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """Paint a pyramid's most suitable level: smoothed when reduced, sharp squares when enlarged."""

    def __init__(self) -> None:
        super().__init__()
        self.pyramid: Pyramid | None = None
        self.marked: tuple[int, int] | None = None
        self.band: QRectF | None = None

    def show_picture(self, picture: Array) -> None:
        """Paint a picture."""
        if self.pyramid is not None:
            self.pyramid.abandon()
            self.pyramid.grown.disconnect(self._refresh)
        self.prepareGeometryChange()
        self.pyramid = Pyramid(picture)
        queue(self.pyramid.grown, self._refresh)
        self.update()

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the picture; (0, 0) without a picture."""
        return (0, 0) if self.pyramid is None else self.pyramid.shape

    @pyqtSlot()
    def _refresh(self) -> None:
        self.update()

    def mark(self, pixel: tuple[int, int] | None) -> None:
        """Frame a pixel."""
        if pixel != self.marked:
            self.marked = pixel
            self.update()

    def show_band(self, band: QRectF | None) -> None:
        """Frame whole rows or columns."""
        if band != self.band:
            self.band = band
            self.update()

    def boundingRect(self) -> QRectF:
        height, width = self.extent
        return QRectF(0, 0, width, height)

    def paint(self, painter: QPainter, *_: object) -> None:
        if self.pyramid is None:
            return
        # Screen pixels per picture pixel; the transform includes text scaling and high-density screens.
        scale = abs(painter.deviceTransform().m11())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, scale < 2.0)
        painter.drawImage(self.boundingRect(), self.pyramid.level_for(scale))
        if self.band is not None:
            pen = QPen(QColor(look().theme.accent), 1.5)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.drawRect(self.band)
        if self.marked is not None:
            pen = QPen(QColor(look().theme.accent), 2)
            pen.setCosmetic(True)
            painter.setPen(pen)
            # A reduced pixel is too small for a frame, so the frame is drawn around it.
            reach = max(0.0, 3.0 / max(scale, 1e-9) - 0.5)
            x, y = self.marked
            painter.drawRect(QRectF(x - reach, y - reach, 1 + 2 * reach, 1 + 2 * reach))


class ImagePane(QWidget):
    """A picture in a pane; `link` makes two panes zoom and pan together."""

    hovered = pyqtSignal(object)
    """(x, y) of the pixel under the pointer, or None."""
    picked = pyqtSignal(object)
    """(x, y) of the pixel that was clicked, or was framed when Enter was pressed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip("Wheel: zoom. Drag: pan. Double click or 0: whole image. Arrow keys: move the pixel frame.")
        self._widget = pg.GraphicsView(parent=self)
        self._widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.box = pg.ViewBox(lockAspect=True, invertY=True, enableMenu=False, defaultPadding=0.0)
        self._widget.setCentralItem(self.box)
        self.item = PictureItem()
        self.box.addItem(self.item, ignoreBounds=True)
        self._cursor: tuple[int, int] | None = None
        self._fitted = True
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._widget)
        pointer = PointerTracker(self._widget, self.box, self)
        pointer.moved.connect(self._follow)
        pointer.clicked.connect(self._pick)
        pointer.home_wanted.connect(self.fit)
        self.box.sigRangeChangedManually.connect(self._on_manual_range)
        self.box.sigResized.connect(self._on_resize)
        self.setMinimumSize(120, 90)

    def link(self, other: ImagePane) -> None:
        """Zoom and pan together with another pane."""
        self.box.setXLink(other.box)
        self.box.setYLink(other.box)

    def show_picture(self, picture: Array) -> None:
        """Show a picture; the zoom is kept if the size is the same."""
        before = self.item.extent
        self.item.show_picture(picture)
        if before != self.item.extent:
            self._cursor = None
            self.item.mark(None)
            height, width = self.item.extent
            reach = max(height, width)
            self.box.setLimits(
                xMin=-reach,
                xMax=width + reach,
                yMin=-reach,
                yMax=height + reach,
                minXRange=min(4, width),
                minYRange=min(4, height),
            )
            self.fit()

    def fit(self) -> None:
        """Show the whole image."""
        self._fitted = True
        self.box.setRange(self.item.boundingRect(), padding=0.0)

    def mark(self, pixel: tuple[int, int] | None) -> None:
        """Frame the pixel under the pointer of a linked pane."""
        self.item.mark(pixel)

    def mark_row(self, row: int | None) -> None:
        """Frame a row of pixels."""
        width = self.item.boundingRect().width()
        self.item.show_band(None if row is None else QRectF(0, row, width, 1))

    def mark_column(self, column: int | None) -> None:
        """Frame a column of pixels."""
        height = self.item.boundingRect().height()
        self.item.show_band(None if column is None else QRectF(column, 0, 1, height))

    def _on_manual_range(self, *_: object) -> None:
        self._fitted = False

    def _on_resize(self, *_: object) -> None:
        if self._fitted and self.item.pyramid is not None:
            self.fit()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self._widget.setBackground(look().theme.surface)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        steps = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        if event.key() in steps and self.item.pyramid is not None:
            height, width = self.item.extent
            x, y = self._cursor or (width // 2, height // 2)
            dx, dy = steps[Qt.Key(event.key())]
            self._hover((min(max(x + dx, 0), width - 1), min(max(y + dy, 0), height - 1)))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._cursor is not None:
            self.picked.emit(self._cursor)
        elif event.text() in ("+", "-", "="):
            factor = 1.25 if event.text() == "-" else 0.8
            self._fitted = False
            self.box.scaleBy((factor, factor))
        elif event.text() == "0":
            self.fit()
        else:
            super().keyPressEvent(event)

    def _follow(self, place: QPointF | None) -> None:
        self._hover(None if place is None else self._pixel_at(place))

    def _pixel_at(self, place: QPointF) -> tuple[int, int] | None:
        x, y = int(place.x() // 1), int(place.y() // 1)
        height, width = self.item.extent
        return (x, y) if 0 <= x < width and 0 <= y < height else None

    def _pick(self, place: QPointF) -> None:
        pixel = self._pixel_at(place)
        if pixel is not None:
            self._hover(pixel)
            self.picked.emit(pixel)

    def anchor(self) -> QPoint:
        """Return the framed pixel's position on the screen."""
        x, y = self._cursor or (0, 0)
        in_scene = self.box.mapViewToScene(QPointF(x + 0.5, y + 0.5))
        return self._widget.mapToGlobal(self._widget.mapFromScene(in_scene))  # type: ignore[no-any-return]

    def _hover(self, pixel: tuple[int, int] | None) -> None:
        self._cursor = pixel
        self.item.mark(pixel)
        self.hovered.emit(pixel)
