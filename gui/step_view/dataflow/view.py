"""Interactive dataflow view: it follows the moment, and supports clicks, dragging, zooming and tooltips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PyQt6.QtWidgets import QToolTip, QWidget

from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look
from gui.qt.events import is_event_type
from gui.qt.timers import create_repeating_timer, create_single_shot_timer
from gui.step_view.dataflow.canvas import Canvas, Marks
from gui.step_view.dataflow.descriptions import CellFinding, describe_cell
from gui.step_view.dataflow.finding_picture import FindingPainter, FindingPicture, choose_picture
from gui.step_view.dataflow.layout import DataflowLayout
from gui.step_view.dataflow.viewport import Cell, Viewport
from gui.widgets.basic import wrap_tip

_GLIDE_MS = 16
_MAX_COLUMN_WIDTH, _MAX_FILM_COLUMN_WIDTH = 150, 72
_ROOM_PER_ROW = 130
"""Pixels, at the normal text size, that a row keeps beside pictures of findings."""
_MAX_STRIP_SHARE = 0.5
"""Maximum height of the picture of a finding below the rows, relative to the view."""


class FlowView(QWidget):
    """The dataflow with one row per statement and one column per element.

    The wheel scrolls, with Ctrl it zooms; dragging moves the picture; a double click or F fits it. A click on a cell
    requests its sources, with Shift its uses.

    Parameters
    ----------
    complete_frames : bool
        Paint each picture completely, as for saved files.
    fits_all : bool
        Fit all columns at any text size, for pictures that are compared.
    """

    cell_clicked = pyqtSignal(int, int)
    uses_requested = pyqtSignal(int, int)
    """A cell that was clicked with Shift."""
    future_clicked = pyqtSignal(int, int)
    """A cell that has no value yet."""
    thread_clicked = pyqtSignal(int, int)
    cleared = pyqtSignal()

    def __init__(self, *, complete_frames: bool = False, fits_all: bool = False) -> None:
        super().__init__()
        self.setAccessibleName("Dataflow")
        self.setMinimumSize(240, 160)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.viewport = Viewport(
            max_column_width=_MAX_FILM_COLUMN_WIDTH if complete_frames else _MAX_COLUMN_WIDTH,
            fits_all=complete_frames or fits_all,
        )
        self.canvas = Canvas(self.viewport, complete_frames=complete_frames)
        self.marks = Marks()
        self.moment = 0
        self.complete = True
        """Whether the last frame was painted completely."""
        self._finding_pictures: Sequence[FindingPicture] = ()
        self._finding_painter = FindingPainter()
        self._press_position: QPointF | None = None
        self._dragged = False
        self._glide_timer = create_repeating_timer(_GLIDE_MS, self._continue_glide, self)
        # A timer, so that keyboard and mouse events come first.
        self._repaint_timer = create_single_shot_timer(0, self.update, self)

    # --- contents

    def open(self, layout: DataflowLayout | None) -> None:
        """Set the dataflow and go to its start."""
        self.moment, self.marks, self._finding_pictures = 0, Marks(), ()
        self.viewport.open(layout)
        self._share_height()

    def show_layout(self, layout: DataflowLayout) -> None:
        """Replace the layout by one of this dataflow with other texts."""
        self.viewport.show_layout(layout)
        self._update_view()

    @property
    def current_row(self) -> int:
        """Return the row of the last executed statement; -1 if there is none."""
        return -1 if self.viewport.layout is None else self.viewport.layout.row_at(self.moment)

    def show_moment(self, moment: int) -> None:
        """Show the dataflow at a moment."""
        self.moment = moment
        self.viewport.follow(moment, at_once=not self.isVisible())
        self._update_view()

    def select(self, cell: Cell | None, *, forward: bool = False) -> None:
        """Highlight a cell and all cells that it was computed from; None clears the highlight.

        With `forward`, highlight the cells that depend on it instead, each from the moment at which it has its value.
        """
        lit: dict[int, list[int]] = {}
        if cell is not None and self.viewport.layout is not None:
            dataflow = self.viewport.layout.dataflow
            cells = dataflow.find_descendants(*cell) if forward else dataflow.find_ancestors(*cell)
            for row, number in cells | {cell}:
                lit.setdefault(int(row), []).append(int(number))
        self.marks.selected, self.marks.highlighted, self.marks.forward = cell, lit, forward
        self.update()

    def mark_difference(self, cell: Cell | None) -> None:
        """Mark a cell with another value in another schedule."""
        self.marks.difference = cell
        self.update()

    def show_findings(self, findings: Mapping[Cell, CellFinding], pictures: Sequence[FindingPicture] = ()) -> None:
        """Mark the cells with findings; findings without a cell have pictures below the rows, by event."""
        self.marks.findings, self._finding_pictures = findings, pictures
        self._share_height()

    def follow_thread(self, thread: tuple[int, int] | None) -> None:
        """Mark the operations of one thread of one block."""
        self.marks.followed = thread
        self.update()

    def fit(self) -> None:
        """Zoom so that all columns fit."""
        self.viewport.fit_all(self.moment)
        self._update_view()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Scale the column width by a factor around the point `at`, or the center."""
        self.viewport.zoom(factor, at or QPointF(self.width() / 2, self.height() / 2))
        self._update_view()

    def scroll_by(self, offset: QPointF) -> None:
        """Scroll by an offset, within the picture's ends."""
        self.viewport.scroll_by(offset)
        self._update_view()

    def _update_view(self) -> None:
        """Repaint, and continue the animated scrolling if it has not reached its goal."""
        if self.viewport.gliding:
            self._glide_timer.start()
        else:
            self._glide_timer.stop()
        self.update()

    def _continue_glide(self) -> None:
        self.viewport.glide()
        self._update_view()

    @property
    def _strip(self) -> QRectF:
        """Return the place of the pictures of findings: below the rows, or all of the view if there are none."""
        height = max((picture.height for picture in self._finding_pictures), default=0)
        rows = len(self.viewport.layout.rows) if self.viewport.layout is not None else 1
        if height:
            # A few rows leave room for a larger picture.
            height = max(height, self.height() - rows * look().px(_ROOM_PER_ROW)) if rows else self.height()
        height = min(height, int(_MAX_STRIP_SHARE * self.height())) if height < self.height() else height
        return QRectF(0, self.height() - height, self.width(), height)

    def _share_height(self) -> None:
        """Divide the view between the rows and the pictures of findings."""
        self.viewport.resize(self.width(), self.height() - int(self._strip.height()), self.moment)
        self._update_view()

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        if self.viewport.height > 0 or not self._finding_pictures:
            painter.setClipRect(QRectF(0, 0, self.width(), self.viewport.height))
            self.complete = self.canvas.paint(painter, self.moment, self.marks, self.devicePixelRatioF())
            painter.setClipping(False)
        if self._finding_pictures:
            self._paint_finding(painter)
        painter.end()
        if not self.complete:
            self._repaint_timer.start()

    def _paint_finding(self, painter: QPainter) -> None:
        """Paint the picture of the last finding so far, or of the first one."""
        strip = self._strip
        painter.resetTransform()
        painter.fillRect(strip, QColor(look().theme.surface))
        if strip.top() > 0:
            painter.setPen(QColor(look().theme.border))
            painter.drawLine(strip.topLeft(), strip.topRight())
        picture = choose_picture(self._finding_pictures, self.moment)
        self._finding_painter.paint(painter, strip, picture, self.moment)

    def prepare(self, moment: int) -> bool:
        """Paint a part of the pictures of a moment into the caches; return whether the caches now have all of them."""
        return self.canvas.prepare(moment, self.devicePixelRatioF())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._share_height()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self.viewport.restyle(self.moment)
            self._update_view()

    # --- mouse and keys

    def box_at(self, point: QPointF) -> QRectF | None:
        """Return the box of the cell under a point, or None if there is no cell with a value."""
        cell, _ = self.viewport.cell_at(point, self.moment)
        return self.canvas.flow.cell_rect(*cell).translated(self.viewport.origin()) if cell is not None else None

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        if event is not None:
            self._press_position, self._dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        if event is None:
            return
        if self._press_position is not None and event.buttons():
            offset = event.position() - self._press_position
            if self._dragged or abs(offset.x()) + abs(offset.y()) > 4:
                self._dragged = True
                self.scroll_by(offset)
                self._press_position = event.position()
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        cell, _ = self.viewport.cell_at(event.position(), self.moment)
        self.setCursor(Qt.CursorShape.PointingHandCursor if cell else Qt.CursorShape.ArrowCursor)
        if cell and self.viewport.layout is not None:
            text = describe_cell(self.viewport.layout, cell)
            if (found := self.marks.findings.get(cell)) is not None and found.moment < self.moment:
                text += f"\n{wrap_tip(found.text)}"
            QToolTip.showText(event.globalPosition().toPoint(), text, self)
        else:
            QToolTip.hideText()

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:
        dragged, self._press_position, self._dragged = self._dragged, None, False
        self.setCursor(Qt.CursorShape.ArrowCursor)
        if event is None or dragged or event.button() != Qt.MouseButton.LeftButton:
            return
        if event.position().y() >= self.viewport.height:
            if (thread := self._finding_painter.thread_at(event.position())) is not None:
                self.thread_clicked.emit(*thread)
            return
        cell, operation = self.viewport.cell_at(event.position(), self.moment)
        if cell is None or self.viewport.layout is None:
            self.cleared.emit()
            if (empty := self.viewport.empty_cell_at(event.position(), self.moment)) is not None:
                self.future_clicked.emit(*empty)
        elif operation:
            row = self.viewport.layout.rows[cell[0]]
            self.thread_clicked.emit(int(row.block[cell[1]]), int(row.thread[cell[1]]))
        else:
            with_shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            (self.uses_requested if with_shift else self.cell_clicked).emit(*cell)

    def mouseDoubleClickEvent(self, event: QMouseEvent | None) -> None:
        if event is not None and self.viewport.cell_at(event.position(), self.moment)[0] is None:
            self.fit()

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None or self.viewport.layout is None:
            return
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.0015 ** angle.y(), event.position())
        else:
            sideways = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.scroll_by(QPointF(angle.y(), 0) if sideways else QPointF(angle.x(), angle.y()) * 0.6)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is None:
            return
        if event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1.2)
        elif event.key() == Qt.Key.Key_Minus:
            self.zoom(1 / 1.2)
        elif event.key() == Qt.Key.Key_F:
            self.fit()
        else:
            super().keyPressEvent(event)
