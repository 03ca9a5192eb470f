"""Excerpt of an array: neighboring elements as numbers in a row of cells, scrolled by wheel, drag and keys."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from PyQt6.QtWidgets import QApplication, QSizePolicy, QWidget

from gpu.declaration.pattern import Array
from gui.painting.theme import code_font, look
from gui.painting.values import format_values
from gui.qt.events import StyleListener
from gui.widgets.basic import format_count

_CELL_CHARACTERS = 8
_WHEEL_STEP = 120
_PENDING_TEXT = "values follow with the result"


class ArrayExcerpt(StyleListener, QWidget):
    """A row of cells that shows the elements from `first` on.

    Parameters
    ----------
    name : str
        Accessible name for screen readers.
    """

    first_changed = pyqtSignal(int)
    """The requested first index."""
    resized = pyqtSignal()
    hovered = pyqtSignal(object)
    """The index under the pointer, or None."""
    picked = pyqtSignal(int)
    """The index that was clicked, or the first index if Enter was pressed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setToolTip(
            "Neighboring elements. Drag, wheel, arrow keys: move. Page keys: next row. Home, End: first, last.\n"
            "Click, Enter: its thread."
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.values: Array | None = None
        self.first = 0
        self.elements = 0
        self._drag_start: tuple[float, int] | None = None
        self._press_position: QPointF | None = None
        self._wheel_angle = 0

    def sizeHint(self) -> QSize:
        return QSize(200, look().px(24))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, look().px(24))

    @property
    def count(self) -> int:
        """Return the number of cells that fit."""
        return max(1, int(self._compute_cells_rect().width() // self._cell_width()))

    @property
    def cell_texts(self) -> list[str]:
        """Return the texts of the cells."""
        return format_values(self._visible_values(), _CELL_CHARACTERS)

    def show_values(self, values: Array | None, elements: int) -> None:
        """Show an array's values, or a note that they are pending.

        `elements`, the length to scroll over, may exceed the values.
        """
        self.values, self.elements = values, elements
        self._refresh()

    def scroll_to(self, first: int) -> None:
        """Show the elements from an index on."""
        self.first = first
        self._refresh()

    def _visible_values(self) -> Array:
        return np.zeros(0) if self.values is None else self.values[self.first : self.first + self.count]

    def _refresh(self) -> None:
        self.setAccessibleDescription(f"from {self.first}: {' '.join(self.cell_texts)}")
        self.update()

    def _compute_cells_rect(self) -> QRectF:
        left = look().px(84)
        return QRectF(left, 1, self.width() - left - 1, self.height() - 2)

    def _cell_width(self) -> int:
        return look().px(62)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, theme = QPainter(self), look().theme
        area, figures = self._compute_cells_rect(), self.cell_texts
        font = code_font(look().small_px)
        painter.setFont(font)
        painter.setPen(QColor(theme.muted))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        width, count = area.width() / self.count, self.count
        if self.values is None:
            painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, _PENDING_TEXT)
            count = 0
        else:
            painter.drawText(QRectF(0, 0, area.x() - 8, self.height()), right, f"[{format_count(self.first)}]")
        for index in range(count):
            cell = QRectF(area.x() + index * width + 1, area.y() + 1, width - 2, area.height() - 2)
            has_value = index < len(figures)
            painter.fillRect(cell, QColor(theme.raised if has_value else theme.surface))
            if has_value:
                painter.setPen(QColor(theme.text))
                painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, figures[index])
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.drawRect(area.adjusted(0, 0, -1, -1))
        painter.end()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def _restyle(self) -> None:
        self.updateGeometry()

    # --- positions

    def _find_index(self, x: float) -> int | None:
        area = self._compute_cells_rect()
        index = int((x - area.x()) // (area.width() / self.count))
        return self.first + index if 0 <= index < len(self._visible_values()) else None

    def find_cell_position(self, index: int) -> QPoint:
        """Return the screen position of the center of an element's cell."""
        area = self._compute_cells_rect()
        x = area.x() + (index - self.first + 0.5) * area.width() / self.count
        return self.mapToGlobal(QPointF(x, area.center().y()).toPoint())

    # --- moving

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and len(self._visible_values()):
            self.picked.emit(self.first)
            return
        offset = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_PageUp: -self.count,
            Qt.Key.Key_PageDown: self.count,
            Qt.Key.Key_Home: -self.elements,
            Qt.Key.Key_End: self.elements,
        }.get(Qt.Key(event.key()))
        if offset is None:
            super().keyPressEvent(event)
        else:
            self.first_changed.emit(self.first + offset)

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        assert event is not None
        self._wheel_angle += event.angleDelta().y() or event.angleDelta().x()
        steps = int(self._wheel_angle / _WHEEL_STEP)
        self._wheel_angle -= steps * _WHEEL_STEP
        if steps:
            self.first_changed.emit(self.first - steps)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag_start, self._press_position = (event.position().x(), self.first), event.position()

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        pressed, self._drag_start, self._press_position = self._press_position, None, None
        if pressed is None or event.button() != Qt.MouseButton.LeftButton:
            return
        index = self._find_index(event.position().x())
        if index is not None and (event.position() - pressed).manhattanLength() < QApplication.startDragDistance():
            self.picked.emit(index)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if self._drag_start is not None:
            start, first = self._drag_start
            width = self._compute_cells_rect().width() / self.count
            self.first_changed.emit(first + round((start - event.position().x()) / width))
            return
        self.hovered.emit(self._find_index(event.position().x()))

    def leaveEvent(self, event: QEvent | None) -> None:
        self.hovered.emit(None)
