"""The dataflow on screen: scrolled, zoomed, clicked; painted rows are kept as pictures."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QFontMetricsF, QPainter, QPixmap
from PyQt6.QtWidgets import QToolTip, QWidget

from gui.step_view.flow_layout import LABELLED, NARROWEST, FlowLayout, Metrics, metrics
from gui.step_view.flow_paint import FlowPainter, label_width
from gui.step_view.flow_words import describe_cell
from gui.step_view.values import texts
from gui.theme import code_font, look

_TILE = 512
_KEPT_BYTES = 96 * 2**20
_WIDEST = 110.0
_GLIDE_MS = 16
_MOST_READ = 128
"""Columns up to which a picture keeps its text, if need be by scrolling."""
_SMALL_PRINT = 9
_BUDGET_S = 0.009
"""How long one frame may paint rows anew; what is left comes with the next."""

Cell = tuple[int, int]


class FlowView(QWidget):
    """Rows of time with an element a column.

    The wheel scrolls, with Ctrl it zooms; dragging moves the picture; a double click or F fits it.

    Parameters
    ----------
    whole : bool
        Whether all columns are to be seen at once even where that leaves no room for all of their values.
    """

    cell_clicked = pyqtSignal(int, int)
    thread_clicked = pyqtSignal(int, int)
    cleared = pyqtSignal()

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__()
        self.setAccessibleName("Dataflow")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.layout_: FlowLayout | None = None
        self.moment = 0
        self.selected: Cell | None = None
        self.lit: dict[int, list[int]] = {}
        self.followed: tuple[int, int] | None = None
        self.differing: Cell | None = None
        self.patient = False
        self._whole = whole
        self._warps: Sequence[int] = (1,)
        self._several = False
        self._painter: FlowPainter | None = None
        self._tiles: OrderedDict[tuple[Any, ...], QPixmap] = OrderedDict()
        self._latest: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._deadline = 0.0
        self._bytes = 0
        self._column = 34.0
        self._fitted = True
        self._offset = QPointF(0, 0)
        self._goal: QPointF | None = None
        self._glide = QTimer(self, interval=_GLIDE_MS)
        self._glide.timeout.connect(self._glide_on)
        self._pressed: QPointF | None = None
        self._dragged = False

    # --- what is shown

    def open(self, layout: FlowLayout | None, warps: Sequence[int], *, several_blocks: bool) -> None:
        """Show another dataflow; `warps` are those of a block, by launch."""
        self.layout_ = layout
        self._warps, self._several = warps, several_blocks
        self.selected, self.lit, self.followed, self.moment = None, {}, None, 0
        self.differing = None
        self._offset = QPointF(0, 0)
        self._glide.stop()
        self.fit()

    def show_moment(self, moment: int) -> None:
        """Show the picture as it is just before a moment."""
        self.moment = moment
        self._follow()
        self.update()

    def select(self, cell: Cell | None) -> None:
        """Light up a cell with all that it was made from; None lights up nothing."""
        self.selected, self.lit = cell, {}
        if cell is not None and self.layout_ is not None:
            for row, number in self.layout_.dataflow.ancestry(*cell) | {cell}:
                self.lit.setdefault(int(row), []).append(int(number))
        self.update()

    def show_differing(self, cell: Cell | None) -> None:
        """Mark a cell as one that another order of the warps gives another value."""
        self.differing = cell
        self.update()

    def follow_thread(self, thread: tuple[int, int] | None) -> None:
        """Mark the operations of one thread of one block."""
        self.followed = thread
        self.update()

    @property
    def sizes(self) -> Metrics:
        """The sizes at the zoom that is on."""
        return self._ready().sizes

    @property
    def current_row(self) -> int:
        """The row of the statement that has just been executed; -1 where there is none."""
        if self.layout_ is None or not self.layout_.rows or self.moment <= 0:
            return -1
        return int(self.layout_.dataflow.row_at(self.moment))

    # --- sizes

    def _label_width(self, width: float) -> float:
        assert self.layout_ is not None
        return label_width(self.layout_, look(), 0.28 * width)

    def _room(self, width: float) -> float:
        """Return what is left to the columns of a picture's width."""
        return width - self._label_width(width) - look().px(14)

    def holds_values(self, width: float) -> bool:
        """Return whether a picture of that width shows all columns with their values."""
        return self.layout_ is None or self._room(width) / self.layout_.columns >= self._readable()

    def _readable(self) -> float:
        """Return the width of a column that holds its values in small print."""
        assert self.layout_ is not None
        metric = QFontMetricsF(code_font(_SMALL_PRINT))
        longest = max((len(text) for row in self.layout_.rows for text in texts(row.value, 6)), default=1)
        return max(metric.horizontalAdvance("0" * longest) + 4, LABELLED)

    def _lower(self, column: float) -> float:
        """Return the width of column at which all rows are seen too, where they stay readable."""
        assert self.layout_ is not None
        least = min(self._readable(), column)
        while column > least and self.layout_.height(metrics(look(), column, 0.0, 0.0)) > self.height():
            column = max(column - 1, least)
        return column

    def fit(self) -> None:
        """Make all columns fit, as long as that leaves them readable."""
        self._fitted = True
        if self.layout_ is not None:
            room = self._room(self.width())
            # So many columns that no text fits are shown all at once; fewer are scrolled rather than unreadable.
            seen = self._whole or self.layout_.columns > _MOST_READ
            least = NARROWEST if seen else min(self._readable(), room)
            self._column = min(max(room / self.layout_.columns, least), look().px(72 if self.patient else 52))
            if self._whole:
                self._column = self._lower(self._column)
        self._forget()
        self._offset.setX(0)
        self._follow(at_once=True)

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Make columns wider by a factor; the point `at` stays where it is."""
        if self.layout_ is None:
            return
        at = at or QPointF(self.width() / 2, self.height() / 2)
        old, origin = self.sizes, self._origin()
        place = (at.x() - origin.x()) / old.column, (at.y() - origin.y()) / old.pitch
        self._fitted = False
        self._column = min(max(old.column * factor, NARROWEST), _WIDEST)
        self._forget()
        new = self.sizes
        self._glide.stop()
        self._offset = QPointF(new.label + place[0] * new.column - at.x(), place[1] * new.pitch - at.y())
        self._clamp()
        self.update()

    def _forget(self) -> None:
        self._painter = None
        self._tiles.clear()
        self._latest.clear()
        self._bytes = 0
        self.update()

    def _ready(self) -> FlowPainter:
        assert self.layout_ is not None
        if self._painter is None:
            # All rows at once, where that is possible without crowding them.
            pitch = (self.height() - look().px(26)) / len(self.layout_.rows) if self._fitted else None
            sizes = metrics(look(), self._column, self._label_width(self.width()), pitch)
            self._painter = FlowPainter(self.layout_, sizes, look(), self._warps, self._several)
        return self._painter

    def _origin(self) -> QPointF:
        """Return where column 0 and the top of the picture are in the widget; a narrow picture stands in the middle."""
        assert self.layout_ is not None
        sizes = self.sizes
        room = self.width() - sizes.label
        spare = max(0.0, (room - self.layout_.width(sizes)) / 2) if self._fitted else 0.0
        return QPointF(sizes.label + min(spare, look().px(40)) - self._offset.x(), -self._offset.y())

    def _clamp(self) -> None:
        assert self.layout_ is not None
        sizes = self.sizes
        widest = max(0.0, self.layout_.width(sizes) - (self.width() - sizes.label - look().px(10)))
        highest = max(0.0, self.layout_.height(sizes) - self.height())
        self._offset = QPointF(min(max(self._offset.x(), 0), widest), min(max(self._offset.y(), 0), highest))

    # --- following

    def _follow(self, *, at_once: bool = False) -> None:
        """Bring the current row into the middle part of the picture, and its operations into its width."""
        if self.layout_ is None or not self.layout_.rows:
            return
        row, sizes = max(self.current_row, 0), self.sizes
        before = QPointF(self._goal if self._goal is not None and self._glide.isActive() else self._offset)
        goal = QPointF(before)
        top = sizes.top(row)
        if not before.y() + 0.12 * self.height() < top < before.y() + 0.72 * self.height() - sizes.pitch:
            goal.setY(top - 0.45 * self.height())
        if row == 0:
            goal.setY(0)
        room = self.width() - sizes.label
        cells = self._current_cells(row)
        if cells.size and self.layout_.width(sizes) > room:
            columns = self.layout_.rows[row].column[cells]
            left, right = sizes.left(int(columns.min())), sizes.left(int(columns.max()) + 1)
            if left < before.x() or right > before.x() + room:
                goal.setX(left - 0.15 * room if right - left > 0.7 * room else (left + right - room) / 2)
        kept, self._offset = self._offset, goal
        self._clamp()
        goal, self._offset = self._offset, kept
        if at_once or not self.isVisible():
            self._glide.stop()
            self._offset = goal
        elif goal != self._offset:
            self._goal = goal
            self._glide.start()
        self.update()

    def _glide_on(self) -> None:
        assert self._goal is not None
        way = self._goal - self._offset
        if abs(way.x()) + abs(way.y()) < 1.5:
            self._offset = self._goal
            self._glide.stop()
        else:
            self._offset += way * 0.3
        self.update()

    def _current_cells(self, row: int) -> Any:
        assert self.layout_ is not None
        return np.flatnonzero(self.layout_.rows[row].moment == self.moment - 1) if self.moment else np.zeros(0, int)

    # --- painting

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._deadline = math.inf if self.patient else time.perf_counter() + _BUDGET_S
        if self.layout_ is None or not self.layout_.rows:
            painter.setPen(QColor(look().theme.muted))
            if self.layout_ is not None:
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No operation on data was recorded.")
            painter.end()
            return
        flow, origin, sizes = self._ready(), self._origin(), self.sizes
        first = max(0, int((self._offset.y() - sizes.head) // sizes.pitch))
        last = min(len(self.layout_.rows) - 1, int((self._offset.y() + self.height() - sizes.head) // sizes.pitch) + 1)
        current = self.current_row
        if current >= 0:
            flow.paint_band(painter, current, origin.y(), self.width())
        painter.setOpacity(0.35 if self.selected is not None else 1.0)
        for row in range(first, last + 1):
            self._paint_tiles(painter, row, origin)
        painter.setOpacity(1.0)
        painter.save()
        painter.setClipRect(QRectF(sizes.label, 0, self.width() - sizes.label, self.height()))
        painter.translate(origin)
        self._paint_overlay(painter, flow, first, last)
        painter.restore()
        flow.paint_labels(painter, range(first, last + 1), self.moment, current, origin.y(), self.width())
        painter.end()

    def _paint_tiles(self, painter: QPainter, row: int, origin: QPointF) -> None:
        assert self.layout_ is not None
        flow, sizes = self._ready(), self.sizes
        rows = (*self.layout_.through.get(row, ()), row)
        phases = {each: self.layout_.phase(each, self.moment) for each in rows}
        key = tuple(phases.values())
        left = max(0, int((sizes.label - origin.x()) // _TILE))
        width = self.layout_.width(sizes)
        right = int(min(self.width() - origin.x(), width + 2 * sizes.column) // _TILE)
        top = origin.y() + sizes.top(row) - (sizes.pitch - sizes.cell)
        painter.save()
        painter.setClipRect(QRectF(sizes.label, 0, self.width() - sizes.label, self.height()))
        for tile in range(left, right + 1):
            picture = self._tile(flow, row, tile, phases, key)
            painter.drawPixmap(QPointF(origin.x() + tile * _TILE, top), picture)
        painter.restore()

    def _tile(self, flow: FlowPainter, row: int, tile: int, phases: dict[int, int], key: tuple[int, ...]) -> QPixmap:
        found = self._tiles.get((row, tile, key))
        if found is not None:
            self._tiles.move_to_end((row, tile, key))
            self._latest[row, tile] = (row, tile, key)
            return found
        latest = self._latest.get((row, tile))
        if latest in self._tiles and time.perf_counter() > self._deadline:
            QTimer.singleShot(0, self.update)
            return self._tiles[latest]
        sizes, ratio = flow.sizes, self.devicePixelRatioF()
        made = QPixmap(QSize(round(_TILE * ratio), round((sizes.pitch + 2) * ratio)))
        made.setDevicePixelRatio(ratio)
        made.fill(Qt.GlobalColor.transparent)
        painter = QPainter(made)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(-tile * _TILE, -(sizes.top(row) - (sizes.pitch - sizes.cell)))
        flow.paint_row(painter, row, phases, tile * _TILE, (tile + 1) * _TILE)
        painter.end()
        self._tiles[row, tile, key] = made
        self._latest[row, tile] = (row, tile, key)
        self._bytes += made.width() * made.height() * 4
        while self._bytes > _KEPT_BYTES:
            _, oldest = self._tiles.popitem(last=False)
            self._bytes -= oldest.width() * oldest.height() * 4
        return made

    def _paint_overlay(self, painter: QPainter, flow: FlowPainter, first: int, last: int) -> None:
        assert self.layout_ is not None
        if self.selected is not None:
            for row, cells in self.lit.items():
                if first - 1 <= row <= last + 1:
                    flow.paint_bright(painter, row, cells)
        else:
            row = self.current_row
            if row >= 0:
                cells = self._current_cells(row)
                if cells.size:
                    flow.paint_bright(painter, row, cells.tolist())
        if self.differing is not None:
            flow.paint_differing(painter, *self.differing)
        if self.followed is not None:
            block, thread = self.followed
            for row in range(first, last + 1):
                each = self.layout_.rows[row]
                mine = each.made & (each.block == block) & (each.thread == thread) & (each.moment < self.moment)
                for cell in np.flatnonzero(mine).tolist():
                    flow.paint_ring(painter, row, cell)

    # --- mouse and keys

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
                self._glide.stop()
                self._offset -= way
                self._clamp()
                self._pressed = event.position()
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
                self.update()
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
            self._glide.stop()
            self._offset -= QPointF(angle.y(), 0) if sideways else QPointF(angle.x(), angle.y()) * 0.6
            self._clamp()
            self.update()
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

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        if self._fitted:
            self.fit()
        elif self.layout_ is not None:
            self._clamp()

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() in (event.Type.StyleChange, event.Type.FontChange):
            self._forget()
            if self._fitted:
                self.fit()
