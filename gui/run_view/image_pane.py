"""A picture that can be zoomed with the wheel and panned by dragging, with a reading of the pixel under the pointer."""

from __future__ import annotations

import pyqtgraph as pg
from PyQt6.QtCore import QPoint, QPointF, QRectF, Qt, pyqtSignal, pyqtSlot
from PyQt6.QtGui import QColor, QKeyEvent, QPainter, QPen
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gpu.declaration.pattern import Array
from gui.painting.pyramid import Pyramid
from gui.painting.theme import look
from gui.plots.pointer import PointerTracker
from gui.qt.events import StyleListener
from gui.qt.timers import connect_queued
from gui.run_view.pixel_values import paint_pixel_values
from gui.widgets.basic import column

_MIN_VISIBLE_PIXELS = 1
"""Pixels that are visible in each direction at the largest zoom; more would leave no room for values in low panes."""


class PictureItem(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """Paint a pyramid's most suitable level: smoothed when reduced, sharp squares with their values when enlarged."""

    def __init__(self) -> None:
        super().__init__()
        self.pyramid: Pyramid | None = None
        self.values: Array | None = None
        self.framed_pixel: tuple[int, int] | None = None
        self.band: QRectF | None = None

    def show_picture(self, picture: Array, values: Array | None = None) -> None:
        """Paint a picture, and the values of its pixels where they fit."""
        if self.pyramid is not None:
            self.pyramid.abandon()
            self.pyramid.completed.disconnect(self._refresh)
        self.prepareGeometryChange()
        self.pyramid, self.values = Pyramid(picture), values
        connect_queued(self.pyramid.completed, self._refresh)
        self.update()

    @property
    def picture_shape(self) -> tuple[int, int]:
        """Rows and columns of the picture; (0, 0) without a picture."""
        return (0, 0) if self.pyramid is None else self.pyramid.shape

    @pyqtSlot()
    def _refresh(self) -> None:
        self.update()

    def frame_pixel(self, pixel: tuple[int, int] | None) -> None:
        """Frame a pixel."""
        if pixel != self.framed_pixel:
            self.framed_pixel = pixel
            self.update()

    def show_band(self, band: QRectF | None) -> None:
        """Frame whole rows or columns."""
        if band != self.band:
            self.band = band
            self.update()

    def boundingRect(self) -> QRectF:
        height, width = self.picture_shape
        return QRectF(0, 0, width, height)

    def paint(self, painter: QPainter, *_: object) -> None:
        if self.pyramid is None:
            return
        # Screen pixels per picture pixel; the transform includes text scaling and high-density screens.
        scale = abs(painter.deviceTransform().m11())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, scale < 2.0)
        picture = self.pyramid.level_for(scale)
        painter.drawImage(self.boundingRect(), picture)
        if self.values is not None and scale > 1.0:
            paint_pixel_values(painter, self.values, picture, self.viewRect())
        if self.band is not None:
            pen = QPen(QColor(look().theme.accent), 1.5)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.drawRect(self.band)
        if self.framed_pixel is not None:
            pen = QPen(QColor(look().theme.accent), 2)
            pen.setCosmetic(True)
            painter.setPen(pen)
            # A reduced pixel is too small for a frame, so the frame is drawn around it.
            reach = max(0.0, 3.0 / max(scale, 1e-9) - 0.5)
            x, y = self.framed_pixel
            painter.drawRect(QRectF(x - reach, y - reach, 1 + 2 * reach, 1 + 2 * reach))


class ImagePane(StyleListener, QWidget):
    """A picture in a pane; `link_to` makes two panes zoom and pan together."""

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
        self._cursor_pixel: tuple[int, int] | None = None
        self._moved_by_keys = False
        self._shows_whole_image = True
        self.setLayout(column(self._widget))
        pointer = PointerTracker(self._widget, self.box, self)
        pointer.pointer_moved.connect(self._on_pointer_moved)
        pointer.clicked.connect(self._on_clicked)
        pointer.home_requested.connect(self.show_whole_image)
        self.box.sigRangeChangedManually.connect(self._on_manual_range)
        self.box.sigResized.connect(self._on_resize)
        self.setMinimumSize(120, 90)

    def link_to(self, other_pane: ImagePane) -> None:
        """Zoom and pan together with another pane."""
        self.box.setXLink(other_pane.box)
        self.box.setYLink(other_pane.box)

    def show_picture(self, picture: Array, values: Array | None = None) -> None:
        """Show a picture; the zoom is kept if the size is the same.

        Parameters
        ----------
        picture : uint8 array of shape (rows, columns) or (rows, columns, 3)
        values : array of shape (rows, columns) or (rows, columns, channels), optional
            The values to write in the pixels.
        """
        before = self.item.picture_shape
        self.item.show_picture(picture, values)
        if before != self.item.picture_shape:
            self._cursor_pixel = None
            self.item.frame_pixel(None)
            height, width = self.item.picture_shape
            reach = max(height, width)
            self.box.setLimits(
                xMin=-reach,
                xMax=width + reach,
                yMin=-reach,
                yMax=height + reach,
                minXRange=min(_MIN_VISIBLE_PIXELS, width),
                minYRange=min(_MIN_VISIBLE_PIXELS, height),
            )
            self.show_whole_image()

    def show_whole_image(self) -> None:
        """Show the whole image."""
        self._shows_whole_image = True
        self.box.setRange(self.item.boundingRect(), padding=0.0)

    def frame_pixel(self, pixel: tuple[int, int] | None) -> None:
        """Frame the pixel under the pointer of a linked pane."""
        self.item.frame_pixel(pixel)

    def frame_row(self, row: int | None) -> None:
        """Frame a row of pixels."""
        width = self.item.boundingRect().width()
        self.item.show_band(None if row is None else QRectF(0, row, width, 1))

    def frame_column(self, column: int | None) -> None:
        """Frame a column of pixels."""
        height = self.item.boundingRect().height()
        self.item.show_band(None if column is None else QRectF(column, 0, 1, height))

    def _on_manual_range(self, *_: object) -> None:
        self._shows_whole_image = False

    def _on_resize(self, *_: object) -> None:
        if self._shows_whole_image and self.item.pyramid is not None:
            self.show_whole_image()

    def _restyle(self) -> None:
        self._widget.setBackground(look().theme.surface)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        steps = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        if event.key() in steps and self.item.pyramid is not None:
            height, width = self.item.picture_shape
            x, y = self._cursor_pixel or (width // 2, height // 2)
            dx, dy = steps[Qt.Key(event.key())]
            self._move_cursor((min(max(x + dx, 0), width - 1), min(max(y + dy, 0), height - 1)))
            self._moved_by_keys = True
            self._show_cursor()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._cursor_pixel is not None:
            self.picked.emit(self._cursor_pixel)
        elif event.text() in ("+", "-", "="):
            factor = 1.25 if event.text() == "-" else 0.8
            self._shows_whole_image = False
            self.box.scaleBy((factor, factor))
            self._show_cursor()
        elif event.text() == "0":
            self.show_whole_image()
        else:
            super().keyPressEvent(event)

    def _on_pointer_moved(self, place: QPointF | None) -> None:
        if place is not None:
            self._move_cursor(self._find_pixel(place))
        elif not self._moved_by_keys:  # a card that opens below a resting pointer takes it away from the pane
            self._move_cursor(None)

    def _find_pixel(self, place: QPointF) -> tuple[int, int] | None:
        x, y = int(place.x() // 1), int(place.y() // 1)
        height, width = self.item.picture_shape
        return (x, y) if 0 <= x < width and 0 <= y < height else None

    def _on_clicked(self, place: QPointF) -> None:
        pixel = self._find_pixel(place)
        if pixel is not None:
            self._move_cursor(pixel)
            self.picked.emit(pixel)

    def find_cursor_position(self) -> QPoint:
        """Return the framed pixel's position on the screen."""
        x, y = self._cursor_pixel or (0, 0)
        in_scene = self.box.mapViewToScene(QPointF(x + 0.5, y + 0.5))
        return self._widget.mapToGlobal(self._widget.mapFromScene(in_scene))  # type: ignore[no-any-return]

    def _show_cursor(self) -> None:
        """Pan as little as necessary to show the whole framed pixel, or its middle if it is larger than the pane."""
        if self._cursor_pixel is None:
            return
        moves = []
        for pixel, (first, last) in zip(self._cursor_pixel, self.box.viewRange(), strict=True):
            room = max(last - first - 1, 0.0)
            offset = pixel - first if room else pixel + 0.5 - (first + last) / 2
            moves.append(offset - min(max(offset, 0.0), room))
        self._shows_whole_image &= not any(moves)
        self.box.translateBy(tuple(moves))

    def _move_cursor(self, pixel: tuple[int, int] | None) -> None:
        self._cursor_pixel, self._moved_by_keys = pixel, False
        self.item.frame_pixel(pixel)
        self.hovered.emit(pixel)
