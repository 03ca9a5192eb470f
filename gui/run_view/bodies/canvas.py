"""The widget with the newest picture of the bodies, where the pointer moves the camera."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PyQt6.QtWidgets import QApplication, QSizePolicy, QWidget

from gpu.declaration.pattern import Array
from gpu.messages.bodies import Camera
from gui.painting.pyramid import to_qimage
from gui.painting.theme import DARK, code_font, look, resize_font
from gui.run_view.bodies import camera as cameras

_SPACE_COLOR = "#04060b"
_LABEL_BACKGROUND = QColor(4, 6, 11, 190)
_HINTS = ("drag to orbit", "wheel to zoom", "right drag to pan", "click a body for its thread")
"""Hints shown until the camera has been moved, as many as fit."""
_WHEEL_NOTCH = 120
_KEY_SHARE = 0.05
_CORNER_RADIUS = 8


class BodiesCanvas(QWidget):
    """A view of pictures of the bodies; the background is dark in either theme, and so texts use the dark theme."""

    camera_moved = pyqtSignal(object)
    """Camera"""
    home_requested = pyqtSignal()
    picked = pyqtSignal(QPointF)
    """A clicked position, or the center if Enter was pressed."""
    resized = pyqtSignal()
    painted = pyqtSignal()
    """The newest picture has been painted."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Bodies")
        self.setAccessibleDescription(
            "Drag to orbit, right drag to pan, wheel to zoom, click a body; arrows, plus, minus, Home, Enter"
        )
        self.setToolTip("")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(240, 180)
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.camera = Camera()
        self.left_text = self.right_text = self.message = ""
        self.recording = ""
        self._image: QImage | None = None
        self._pixels: Array | None = None
        self._is_unpainted = self._has_ring = self._camera_was_moved = False
        self._last_position: QPointF | None = None
        self._press_position: QPointF | None = None
        self._orbits = True

    @property
    def has_picture(self) -> bool:
        """Whether a picture has arrived."""
        return self._image is not None

    @property
    def pixels(self) -> QSize:
        """The size in screen pixels."""
        return self.size() * self.devicePixelRatioF()

    def show_picture(self, picture: Array) -> None:
        """Show a picture: uint8, shape (height, width, 3)."""
        self._pixels = picture  # the image refers to this memory
        self._image = to_qimage(picture)
        self._is_unpainted = True
        self.update()

    def show_texts(self, left: str, right: str) -> None:
        """Show texts in the upper left and upper right corners."""
        if (left, right) != (self.left_text, self.right_text):
            self.left_text, self.right_text = left, right
            self.update()

    def show_message(self, text: str) -> None:
        """Show a sentence in the middle; "" hides it."""
        if text != self.message:
            self.message = text
            self.update()

    def show_recording(self, text: str) -> None:
        """Show a text about the recording of a film; "" hides it."""
        if text != self.recording:
            self.recording = text
            self.update()

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), _CORNER_RADIUS, _CORNER_RADIUS)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(outline, QColor(_SPACE_COLOR))
        painter.setClipPath(outline)
        if self._image is not None:
            target = self._picture_rect(self._image.size())
            scaled = round(target.width() * self.devicePixelRatioF()) != self._image.width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, scaled)
            painter.drawImage(target, self._image)
        self._paint_texts(painter)
        if self._has_ring:
            painter.setPen(QColor(DARK.accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), _CORNER_RADIUS, _CORNER_RADIUS)
        painter.end()
        if self._is_unpainted:
            self._is_unpainted = False
            self.painted.emit()

    def pixel_at(self, place: QPointF) -> tuple[float, float] | None:
        """Convert a widget position to picture pixels; None without a picture."""
        if self._image is None:
            return None
        target = self._picture_rect(self._image.size())
        share = self._image.width() / target.width()
        return (place.x() - target.left()) * share, (place.y() - target.top()) * share

    def _picture_rect(self, size: QSize) -> QRectF:
        """Return the rectangle of a picture: the whole widget, or as much as the aspect ratio allows."""
        canvas_rect = QRectF(self.rect())
        missing = self.pixels - size
        if 0 <= missing.width() < 2 and 0 <= missing.height() < 2:
            # Drawn for this size, rounded to even sides: unscaled it is sharp and painted ten times faster.
            ratio = self.devicePixelRatioF()
            return QRectF(0, 0, size.width() / ratio, size.height() / ratio)
        share = min(canvas_rect.width() / size.width(), canvas_rect.height() / size.height())
        across, down = share * size.width(), share * size.height()
        return QRectF((canvas_rect.width() - across) / 2, (canvas_rect.height() - down) / 2, across, down)

    def _paint_texts(self, painter: QPainter) -> None:
        inner = QRectF(self.rect()).adjusted(14, 10, -14, -10)
        painter.setFont(code_font(look().text_px))
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        self._paint_label(painter, inner, left, self.left_text, DARK.text)
        self._paint_label(painter, inner, right, self.right_text, DARK.text)
        if self.recording:
            below = inner.adjusted(0, 1.7 * painter.fontMetrics().height(), 0, 0)
            self._paint_label(painter, below, right, f"● {self.recording}", DARK.bad)
        if not self._camera_was_moved and not self.message and self._image is not None:
            hint = resize_font(self.font(), look().small_px)
            painter.setFont(hint)
            painter.setPen(QColor(DARK.muted))
            metrics = painter.fontMetrics()
            hints = ["  ·  ".join(_HINTS[:count]) for count in range(len(_HINTS), 0, -1)]
            fits = next((each for each in hints if metrics.horizontalAdvance(each) <= inner.width()), "")
            painter.drawText(inner, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignHCenter, fits)
        if self.message:
            font = resize_font(self.font(), look().title_px)
            painter.setFont(font)
            painter.setPen(QColor(DARK.text))
            middle = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(inner, middle, self.message)

    def _paint_label(self, painter: QPainter, inner: QRectF, side: Qt.AlignmentFlag, text: str, color: str) -> None:
        """Paint a line of text at the top, on a background that covers bodies."""
        if not text:
            return
        where = Qt.AlignmentFlag.AlignTop | side
        ground = painter.boundingRect(inner, where, text).adjusted(-7, -3, 7, 3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_LABEL_BACKGROUND)
        painter.drawRoundedRect(ground, 5, 5)
        painter.setPen(QColor(color))
        painter.drawText(inner, where, text)

    # --- pointer and keys

    def _normalize_distances(self, x: float, y: float) -> tuple[float, float]:
        shorter = max(1, min(self.width(), self.height()))
        return x / shorter, y / shorter

    def _move_camera(self, camera: Camera) -> None:
        self.camera, self._camera_was_moved = camera, True
        self.camera_moved.emit(camera)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
            self._last_position = self._press_position = event.position()
            shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self._orbits = event.button() == Qt.MouseButton.LeftButton and not shift
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if self._last_position is None:
            return
        moved = event.position() - self._last_position
        self._last_position = event.position()
        shares = self._normalize_distances(moved.x(), moved.y())
        self._move_camera((cameras.orbit if self._orbits else cameras.pan)(self.camera, *shares))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        pressed, self._press_position = self._press_position, None
        still = (
            pressed is not None and (event.position() - pressed).manhattanLength() < QApplication.startDragDistance()
        )
        if still and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(event.position())
        if event.buttons() == Qt.MouseButton.NoButton:
            self._last_position = None
            self.setCursor(Qt.CursorShape.OpenHandCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        self.home_requested.emit()

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        assert event is not None
        notches = event.angleDelta().y() / _WHEEL_NOTCH
        at = event.position() - QRectF(self.rect()).center()
        self._move_camera(cameras.zoom(self.camera, 1.15**notches, *self._normalize_distances(at.x(), at.y())))
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        assert event is not None
        event.accept()  # the right button pans

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        directions = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        key = event.key()
        if key in directions:
            right, down = directions[Qt.Key(key)]
            pans = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            move = cameras.pan if pans else cameras.orbit
            self._move_camera(move(self.camera, _KEY_SHARE * right, _KEY_SHARE * down))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._move_camera(cameras.zoom(self.camera, 1.15))
        elif key == Qt.Key.Key_Minus:
            self._move_camera(cameras.zoom(self.camera, 1 / 1.15))
        elif key == Qt.Key.Key_Home:
            self.home_requested.emit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.picked.emit(QRectF(self.rect()).center())
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent | None) -> None:
        assert event is not None
        super().focusInEvent(event)
        self._has_ring = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.update()

    def focusOutEvent(self, event: QFocusEvent | None) -> None:
        super().focusOutEvent(event)
        self._has_ring = False
        self.update()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.resized.emit()
