"""Canvas of a timeline: one row per warp, cycles from left to right, and a cursor."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import ceil, floor, log10
from typing import Any

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QHelpEvent,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PyQt6.QtWidgets import QToolTip, QWidget
from PyQt6.sip import voidptr

from gpu.declaration.pattern import Array
from gpu.timing.timeline import WarpState
from gui.painting.lettering import Lettering
from gui.painting.pixmaps import Pixmaps
from gui.painting.theme import code_font, look, resize_font
from gui.qt.events import is_event_type
from gui.step_view.warps.rows import WarpRows, WarpSpan
from gui.step_view.warps.states import STATE_NAMES, palette_of, state_color
from gui.widgets.basic import format_count

_MAX_CYCLE_WIDTH = 40.0
"""Maximum width of a cycle in pixels."""
_MIN_GAP_WIDTH = 4.0
"""Minimum width of a cycle in pixels for gaps between instructions."""
_MAX_LABELS = 600


def describe_span(warp_span: WarpSpan) -> str:
    """Return a description of a warp's state in a cycle."""
    line = f"line {warp_span.line}" if warp_span.line else "no source line"
    span = f"cycles {format_count(floor(warp_span.begin))} to {format_count(ceil(warp_span.end))}"
    state = STATE_NAMES[warp_span.state]
    return f"Warp {warp_span.warp}, block {warp_span.block}: {state}, {span}\n{line}: {warp_span.text}"


def parse_opcode(text: str) -> str:
    """Return the opcode of an instruction, without its predicate."""
    return next((word for word in text.split() if not word.startswith("@")), "")


class WarpCanvas(QWidget):
    """The states of warps over cycles."""

    cycle_requested = pyqtSignal(int)
    warp_picked = pyqtSignal(int)
    """The warp of the clicked row."""
    moved = pyqtSignal()
    """The visible range of cycles has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Timeline of warps")
        self.setMouseTracking(True)
        self.setMinimumSize(240, 120)
        self.rows: WarpRows | None = None
        self.first_cycle = 0.0
        """Cycle at the left edge."""
        self.scale = 1.0
        """Width of a cycle in pixels."""
        self.cycle = 0
        self.picked: int | None = None
        self._pictures = Pixmaps()
        self._columns: tuple[Hashable, float, Array] | None = None
        """Key, first cycle and states of the last painted columns."""
        self._restyle()

    # --- visible range

    def open(self, rows: WarpRows | None, *, keep_scale: bool = False) -> None:
        """Set the rows and show all cycles, or `keep_scale` the scale, so that durations can be compared."""
        if rows is None:
            self._pictures.clear()
        self.rows = rows
        if rows is None or (self.picked is not None and self.picked >= rows.count):
            self.picked = None
        if keep_scale:
            self._clamp()
        else:
            self.fit()

    def show_cycle(self, cycle: int) -> None:
        """Move the cursor to a cycle, and scroll it into view."""
        before, self.cycle = self.x_of(self.cycle), cycle
        x, width = self.x_of(cycle), self.width() - self._left
        if not self._left <= x <= self.width() - 2:
            # Scroll a page, so that the following cycles are visible.
            ahead = 0.1 if x > self.width() - 2 else 0.9
            self.first_cycle = cycle - ahead * width / self.scale
            self._clamp()
        else:
            for each in (before, x):
                self.update(int(each) - 100, 0, 200, self.height())

    def pick(self, warp: int | None) -> None:
        """Highlight a warp's row, or none."""
        self.picked = warp
        self.update()

    def fit(self) -> None:
        """Show all cycles."""
        if self.rows is not None:
            self.first_cycle = 0.0
            self.scale = self._fit_scale
        self._clamp()

    def zoom(self, factor: float, x: float | None = None) -> None:
        """Zoom by a factor around `x`, by default the cursor if it is visible, or else the center."""
        if x is None:
            x = self.x_of(self.cycle)
            x = x if self._left <= x <= self.width() else (self._left + self.width()) / 2
        at = self.cycle_at(x)
        self.scale = min(max(self.scale * factor, self._min_scale), max(_MAX_CYCLE_WIDTH, self._fit_scale))
        self.first_cycle = at - (x - self._left) / self.scale
        self._clamp()

    def scroll_by(self, pixels: float) -> None:
        """Scroll the picture to the right by some pixels."""
        self.first_cycle -= pixels / self.scale
        self._clamp()

    @property
    def _fit_scale(self) -> float:
        width = max(self.width() - self._left - look().px(8), 1)
        return width / max(self.rows.end if self.rows is not None else 1, 1)

    @property
    def _min_scale(self) -> float:
        """Return the scale at which the longest of the launch's timelines fits."""
        longest = (
            max(timeline.recorded_until for timeline in self.rows.launch.timelines) if self.rows is not None else 1.0
        )
        return self._fit_scale * (self.rows.end if self.rows is not None else 1) / max(longest, 1.0)

    def _clamp(self) -> None:
        """Clamp the visible range to the timeline."""
        if self.rows is not None:
            self.scale = max(self.scale, min(self._min_scale, _MAX_CYCLE_WIDTH))
            visible = (self.width() - self._left - look().px(8)) / self.scale
            # Scroll by whole pixels, so that painted columns can be reused.
            pixel = self.scale * self.devicePixelRatioF()
            self.first_cycle = round(min(max(self.first_cycle, 0.0), max(self.rows.end - visible, 0.0)) * pixel) / pixel
        self.moved.emit()
        self.update()

    @property
    def visible_range(self) -> tuple[float, float]:
        """Return the cycles at the left and right edge."""
        return self.first_cycle, self.cycle_at(self.width())

    # --- positions

    def x_of(self, cycle: float) -> float:
        """Return the x at which a cycle begins."""
        return self._left + (cycle - self.first_cycle) * self.scale

    def cycle_at(self, x: float) -> float:
        """Return the cycle at an x."""
        return self.first_cycle + (x - self._left) / self.scale

    @property
    def _left(self) -> int:
        return look().px(58)

    @property
    def _top(self) -> int:
        return look().px(20)

    def _row_edges(self) -> tuple[Array, float]:
        """Return the top of each row, grouped by scheduler with gaps between groups, and the height of a row."""
        assert self.rows is not None
        gap = look().px(6)
        _, groups = np.unique(self.rows.schedulers, return_inverse=True)
        group_count = int(groups.max(initial=-1)) + 1
        room = self.height() - self._top - gap * group_count
        height = min(room / max(self.rows.count, 1), look().px(26))
        return self._top + np.arange(self.rows.count) * height + groups * gap, height

    def row_at(self, y: float) -> int | None:
        """Return the row at a y, or None."""
        if self.rows is None:
            return None
        tops, height = self._row_edges()
        row = int(np.searchsorted(tops, y, side="right")) - 1
        return row if row >= 0 and y < tops[row] + height else None

    def span_at(self, point: QPointF) -> WarpSpan | None:
        """Return the state of the warp at a point, or None."""
        row = self.row_at(point.y())
        if self.rows is None or row is None or point.x() < self._left:
            return None
        return self.rows.span_at(int(self.rows.warps[row]), floor(self.cycle_at(point.x())))

    # --- painting

    def _restyle(self) -> None:
        self._small_lettering = Lettering(resize_font(self.font(), look().small_px))
        self._code_lettering = Lettering(code_font(look().px(10)))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.rows is None or self.width() <= self._left + 8:
            return
        painter = QPainter(self)
        ratio = self.devicePixelRatioF()
        key = (self.rows, self.first_cycle, self.scale, self.width(), self.height(), ratio, look())
        painter.drawPixmap(QPointF(0, 0), self._pictures.find_or_paint(key, lambda: self._picture(ratio)))
        theme = look().theme
        tops, height = self._row_edges()
        if self.picked is not None:
            row = self.rows.row_of[self.picked]
            painter.setPen(QPen(QColor(theme.text), 1.5))
            painter.drawRect(QRectF(self._left - 1, tops[row] - 0.5, self.width() - self._left, max(height, 3)))
        x = self.x_of(self.cycle)
        if self._left <= x <= self.width():
            self._paint_cursor(painter, x)
        painter.end()

    def _paint_cursor(self, painter: QPainter, x: float) -> None:
        theme = look().theme
        cycle_width = max(self.scale, 1.0)
        ink = QColor(theme.text)
        painter.setPen(QPen(ink, 1.5))
        painter.drawLine(QPointF(x, self._top - 3), QPointF(x, self.height()))
        if cycle_width >= _MIN_GAP_WIDTH:
            painter.drawLine(QPointF(x + cycle_width, self._top - 3), QPointF(x + cycle_width, self.height()))
        text = format_count(self.cycle)
        painter.setFont(self._small_lettering.font)
        room = self._small_lettering.width(text) + 10
        box = QRectF(min(max(x - room / 2, self._left), self.width() - room), 0, room, self._top - 3)
        for _, tick_box, _ in self._ticks():
            if tick_box.intersects(box):  # do not leave half of a number visible
                painter.fillRect(tick_box, QColor(theme.surface))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        painter.drawRoundedRect(box, 3, 3)
        painter.setPen(QColor(theme.surface))
        self._small_lettering.paint_centered(painter, box, text)

    def _picture(self, ratio: float) -> QPixmap:
        """Paint everything except cursor and highlight."""
        assert self.rows is not None
        picture = QPixmap(ceil(self.width() * ratio), ceil(self.height() * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(look().theme.surface))
        painter = QPainter(picture)
        tops, height = self._row_edges()
        pixels = self._pixel_colors(tops, height, ratio)
        image = _image(pixels, ratio)
        painter.drawImage(QPointF(self._left, 0), image)
        if self.scale >= _MIN_GAP_WIDTH and height > self._code_lettering.font.pixelSize():
            self._paint_instructions(painter, tops, height)
        self._paint_axis(painter)
        self._paint_names(painter, tops, height)
        painter.end()
        return picture

    def _pixel_colors(self, tops: Array, height: float, ratio: float) -> Array:
        """Return the colors of all pixels; each column shows the longest state of a warp in its cycles."""
        assert self.rows is not None
        columns = max(int((self.width() - self._left) * ratio), 1)
        states = self._column_states(columns, ratio)
        colors = np.concatenate((palette_of(look().theme)[states], np.full((1, columns), palette_of(look().theme)[-1])))
        lines = np.full(max(int(self.height() * ratio), 1), self.rows.count)
        gap = 1 if height * ratio >= 4 else 0
        for row, top in enumerate(tops):
            lines[round(top * ratio) : max(round((top + height) * ratio) - gap, round(top * ratio) + 1)] = row
        return colors.take(lines, axis=0)

    def _column_states(self, columns: int, ratio: float) -> Array:
        """Return the states by row and pixel column, reusing the last painted columns after scrolling."""
        assert self.rows is not None
        width, key = 1 / (self.scale * ratio), (self.rows, self.scale, ratio, columns)
        moved, states = columns, np.empty((self.rows.count, columns), np.uint8)
        if self._columns is not None and self._columns[0] == key:
            _, first, before = self._columns
            shift = (self.first_cycle - first) / width
            if abs(shift - round(shift)) < 0.01 and abs(shift) < columns:
                moved = round(shift)
                if moved > 0:
                    states[:, :-moved] = before[:, moved:]
                else:
                    states[:, -moved:] = before[:, : columns + moved]
        new_columns = slice(columns - moved, columns) if moved > 0 else slice(0, -moved)
        if moved:
            states[:, new_columns] = self._compute_states(
                self.first_cycle + new_columns.start * width, width, abs(moved)
            )
        self._columns = key, self.first_cycle, states
        return states

    def _compute_states(self, first: float, width: float, columns: int) -> Array:
        """Return the states of columns `width` cycles wide; at a large scale, with gaps between instructions."""
        assert self.rows is not None
        states = self.rows.columns(first, width, columns)
        if self.scale >= _MIN_GAP_WIDTH:
            # A gap after each instruction, so that consecutive ones of a warp can be distinguished.
            rows, ends = self.rows.ends_within(first, first + (columns + 1) * width)
            at = np.floor((ends - first) / width + 0.5).astype(np.int64) - 1
            visible = (at >= 0) & (at < columns)
            states[rows[visible], at[visible]] = len(WarpState)
        return states

    def _paint_instructions(self, painter: QPainter, tops: Array, height: float) -> None:
        """Paint opcodes and source lines where they fit."""
        assert self.rows is not None
        first, last = self.visible_range
        theme = look().theme
        painter.setFont(self._code_lettering.font)
        written = 0
        for row, warp in enumerate(self.rows.warps):
            for begin, end, number, _, _, state in self.rows.spans_between(int(warp), first, last).tolist():
                left, right = max(self.x_of(begin), self._left), min(self.x_of(end), self.width())
                operation = self.rows.launch.operations[number]
                opcode = parse_opcode(operation.text)
                texts = (f"{operation.line}: {opcode}" if operation.line else opcode, str(operation.line or ""))
                text = next(
                    (each for each in texts if each and self._code_lettering.width(each) < right - left - 6), ""
                )
                if not text:
                    continue
                ground = state_color(theme, state)
                painter.setPen(QColor("#0b0f14" if ground.lightnessF() > 0.42 else "#ffffff"))
                self._code_lettering.paint_left(painter, QRectF(left + 3, tops[row], right - left, height - 1), text)
                written += 1
                if written >= _MAX_LABELS:
                    return

    def _paint_axis(self, painter: QPainter) -> None:
        theme = look().theme
        painter.setFont(self._small_lettering.font)
        for x, box, text in self._ticks():
            painter.setPen(QColor(theme.border))
            painter.drawLine(QPointF(x, self._top - 5), QPointF(x, self._top - 1))
            painter.setPen(QColor(theme.muted))
            if box.right() < self.width():
                self._small_lettering.paint_centered(painter, box, text)

    def _ticks(self) -> Iterator[tuple[float, QRectF, str]]:
        """Yield the x, box and text of each number on the axis."""
        first, last = self.visible_range
        step = _round_step(look().px(90) / self.scale)
        for cycle in range(ceil(first / step) * step, floor(last) + 1, step):
            x, text = self.x_of(cycle), format_count(cycle)
            width = self._small_lettering.width(text) + 2
            yield x, QRectF(x - width / 2, 0, width, self._top - 5), text

    def _paint_names(self, painter: QPainter, tops: Array, height: float) -> None:
        """Paint the names of the schedulers, and of the warps if they fit."""
        assert self.rows is not None
        theme, schedulers = look().theme, self.rows.schedulers
        single = height >= self._small_lettering.font.pixelSize()
        painter.setFont(self._small_lettering.font)
        line = float(look().px(15))
        for row, warp in enumerate(self.rows.warps.tolist()):
            begins = row == 0 or schedulers[row] != schedulers[row - 1]
            if begins:
                painter.setPen(QColor(theme.text))
                box = QRectF(look().px(8), tops[row], self._left, height if single else line)
                self._small_lettering.paint_left(painter, box, f"S{schedulers[row]}")
            if single:
                painter.setPen(QColor(theme.text if warp == self.picked else theme.muted))
                box = QRectF(0, tops[row] + (height - line) / 2, self._left - look().px(6), line)
                self._small_lettering.paint_right(painter, box, f"w{warp}")

    # --- mouse

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.button() == Qt.MouseButton.LeftButton and self.rows is not None:
            row = self.row_at(event.position().y())
            if row is not None:
                self.warp_picked.emit(int(self.rows.warps[row]))
            self._scrub(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._scrub(event.position().x())
            return
        now = self.span_at(event.position())
        QToolTip.showText(event.globalPosition().toPoint(), describe_span(now) if now else "", self)

    def _scrub(self, x: float) -> None:
        if self.rows is not None and x >= self._left:
            self.cycle_requested.emit(min(max(floor(self.cycle_at(min(x, self.width() - 1))), 0), self.rows.end))

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent):
            return True  # already shown when the mouse moved
        return super().event(event)

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None or self.rows is None:
            return
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.0015 ** angle.y(), event.position().x())
        else:
            self.scroll_by((angle.x() or angle.y()) * 0.6)
        event.accept()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        was_fitted = self.rows is not None and event is not None and self._was_fitted(event.oldSize().width())
        super().resizeEvent(event)
        self.fit() if was_fitted else self._clamp()

    def _was_fitted(self, width: int) -> bool:
        """Return whether all cycles were visible at a former width."""
        assert self.rows is not None
        available = max(width - self._left - look().px(8), 1)
        return self.scale <= 1.01 * available / max(self.rows.end, 1)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_event_type(event, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self._restyle()
            self._clamp()


def _round_step(minimum: float) -> int:
    """Return the first of 1, 2, 5, 10, 20, ... that is at least `least`."""
    power = 10 ** max(floor(log10(max(minimum, 1))), 0)
    return next(int(each * power) for each in (1, 2, 5, 10) if each * power >= minimum)


def _image(pixels: Array, ratio: float) -> QImage:
    """Return an image that shares the memory of `pixels`; the caller must keep the array alive."""
    height, width = pixels.shape
    memory: Any = voidptr(pixels.ctypes.data)  # the stubs declare a different voidptr
    image = QImage(memory, width, height, 4 * width, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    return image
