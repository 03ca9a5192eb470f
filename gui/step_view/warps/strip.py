"""Overview strip of a timeline: issue rate over all cycles, visible range, and cursor."""

from __future__ import annotations

from math import ceil

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gpu.timing.timeline import WarpState
from gui.painting.colors import mix_colors
from gui.painting.painters import create_smooth_painter
from gui.painting.pixmaps import Pixmaps
from gui.painting.theme import look
from gui.qt.events import is_event_type
from gui.step_view.warps.rows import WarpRows
from gui.step_view.warps.states import state_color


class IssueStrip(QWidget):
    """A slider over cycles, controlled by clicks and drags."""

    cycle_requested = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Issue rate over all cycles")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.rows: WarpRows | None = None
        self.cycle = 0
        self._visible = (0.0, 0.0)
        self._pictures = Pixmaps()

    def open(self, rows: WarpRows | None) -> None:
        """Set the rows."""
        if rows is None:
            self._pictures.clear()
        self.rows = rows
        self.update()

    def show_cycle(self, cycle: int) -> None:
        """Show the cursor at a cycle."""
        self.cycle = cycle
        self.update()

    def show_visible_range(self, visible_range: tuple[float, float]) -> None:
        """Show the visible range of cycles."""
        self._visible = visible_range
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, look().px(26))

    @property
    def _left(self) -> float:
        return look().px(14)

    @property
    def _cycle_width(self) -> float:
        end = max(self.rows.end if self.rows is not None else 1, 1)
        return max(self.width() - 2 * self._left, 1) / end

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.rows is None:
            return
        theme = look().theme
        painter = create_smooth_painter(self)
        box = QRectF(self._left, 2, self.width() - 2 * self._left, self.height() - 4)
        painter.fillRect(box, QColor(theme.raised))
        first, last = (min(max(each, 0), self.rows.end) for each in self._visible)
        if last - first < self.rows.end - 1:
            shade = QRectF(self._left + first * self._cycle_width, 0, (last - first) * self._cycle_width, self.height())
            painter.fillRect(shade, mix_colors(theme.accent, theme.surface, 0.28))
        ratio = self.devicePixelRatioF()
        key = (self.rows, self.width(), self.height(), ratio, look())
        painter.drawPixmap(QPointF(0, 0), self._pictures.find_or_paint(key, lambda: self._paint_issue_rate(box, ratio)))
        x = self._left + self.cycle * self._cycle_width
        painter.setPen(QPen(QColor(theme.text), 1.5))
        painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))
        painter.end()

    def _paint_issue_rate(self, box: QRectF, ratio: float) -> QPixmap:
        """Return a picture of the issue rate."""
        assert self.rows is not None
        picture = QPixmap(ceil(self.width() * ratio), ceil(self.height() * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        columns = max(int(box.width() / 2), 1)
        shares = self.rows.compute_issue_shares(max(self.rows.end, 1) / columns, columns).mean(axis=0)
        width = box.width() / columns
        color, painter = state_color(look().theme, WarpState.ISSUING), QPainter(picture)
        for column, share in enumerate(np.clip(shares, 0, 1).tolist()):
            height = share * box.height()
            painter.fillRect(QRectF(box.left() + column * width, box.bottom() - height, width, height), color)
        painter.end()
        return picture

    def event(self, event: QEvent | None) -> bool:
        if is_event_type(event, QEvent.Type.Resize, QEvent.Type.StyleChange):
            self.updateGeometry()
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        self._request_cycle(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.buttons():
            self._request_cycle(event.position().x())

    def _request_cycle(self, x: float) -> None:
        if self.rows is not None:
            self.cycle_requested.emit(min(max(round((x - self._left) / self._cycle_width), 0), self.rows.end))
