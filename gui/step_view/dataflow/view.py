"""The dataflow under the hand: clicked, dragged, zoomed, and told about."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import QPointF, Qt, pyqtSignal
from PyQt6.QtWidgets import QToolTip

from gui.step_view.dataflow.canvas import Cell, FlowCanvas
from gui.step_view.dataflow.layout import LABELLED
from gui.step_view.dataflow.words import describe_cell


class FlowView(FlowCanvas):
    """Rows of time that are clicked.

    The wheel scrolls, with Ctrl it zooms; dragging moves the picture; a double click or F fits it.
    """

    cell_clicked = pyqtSignal(int, int)
    thread_clicked = pyqtSignal(int, int)
    cleared = pyqtSignal()

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._pressed: QPointF | None = None
        self._dragged = False

    def cell_at(self, point: QPointF) -> tuple[Cell | None, bool]:
        """Return the cell under a point, and whether it is its operation that is there."""
        if self.layout_ is None or not self.layout_.rows:
            return None, False
        sizes, origin = self.sizes, self._origin()
        x, y = point.x() - origin.x(), point.y() - origin.y() - sizes.head
        gap = sizes.pitch - sizes.cell
        number = int((y + gap) // sizes.pitch)
        if point.x() < sizes.label or not 0 <= number < len(self.layout_.rows):
            return None, False
        row = self.layout_.rows[number]
        within = y + gap - number * sizes.pitch
        cell = int(np.searchsorted(row.column, int(x // sizes.column))) if row.column.size else 0
        if x < 0 or cell >= row.column.size or row.column[cell] != int(x // sizes.column):
            return None, False
        if row.moment[cell] >= self.moment or self.layout_.phase(number, self.moment) < 0:
            return None, False
        above = within < gap
        on_circle = within > gap * 0.35 and sizes.column >= LABELLED and bool(row.made[cell])
        return ((number, cell), above) if not above or on_circle else (None, False)

    def mousePressEvent(self, event: Any) -> None:
        self._pressed, self._dragged = event.position(), False

    def mouseMoveEvent(self, event: Any) -> None:
        if self._pressed is not None and event.buttons():
            way = event.position() - self._pressed
            if self._dragged or abs(way.x()) + abs(way.y()) > 4:
                self._dragged = True
                self.scroll_by(way)
                self._pressed = event.position()
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        cell, _ = self.cell_at(event.position())
        self.setCursor(Qt.CursorShape.PointingHandCursor if cell else Qt.CursorShape.ArrowCursor)
        if cell and self.layout_ is not None:
            text = describe_cell(self.layout_, cell, several_blocks=self._several)
            QToolTip.showText(event.globalPosition().toPoint(), text, self)
        else:
            QToolTip.hideText()

    def mouseReleaseEvent(self, event: Any) -> None:
        dragged, self._pressed, self._dragged = self._dragged, None, False
        self.setCursor(Qt.CursorShape.ArrowCursor)
        if dragged or event.button() != Qt.MouseButton.LeftButton:
            return
        cell, operation = self.cell_at(event.position())
        if cell is None or self.layout_ is None:
            self.cleared.emit()
        elif operation:
            row = self.layout_.rows[cell[0]]
            self.thread_clicked.emit(int(row.block[cell[1]]), int(row.thread[cell[1]]))
        else:
            self.cell_clicked.emit(*cell)

    def mouseDoubleClickEvent(self, event: Any) -> None:
        if self.cell_at(event.position())[0] is None:
            self.fit()

    def wheelEvent(self, event: Any) -> None:
        if self.layout_ is None:
            return
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.0015 ** angle.y(), event.position())
        else:
            sideways = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.scroll_by(QPointF(angle.y(), 0) if sideways else QPointF(angle.x(), angle.y()) * 0.6)
        event.accept()

    def keyPressEvent(self, event: Any) -> None:
        if event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1.2)
        elif event.key() == Qt.Key.Key_Minus:
            self.zoom(1 / 1.2)
        elif event.key() == Qt.Key.Key_F:
            self.fit()
        else:
            super().keyPressEvent(event)
