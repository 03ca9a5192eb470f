"""The picture of a timeline: a row a warp, cycles across, and a cursor at one of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import ceil, floor, log10
from typing import Any

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import (
    QColor,
    QFont,
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
from gui.painting.theme import code_font, look
from gui.qt.events import is_of
from gui.step_view.warps.rows import WarpNow, WarpRows
from gui.step_view.warps.states import NAMES, palette_of, state_color
from gui.widgets.basic import as_count

_NEAREST = 40.0
"""Pixels of a cycle, at most."""
_PARTED = 4.0
"""Pixels of a cycle from which instructions are parted from each other."""
_MOST_WORDS = 600


def words_of(now: WarpNow) -> str:
    """Return what there is to say of a warp in a cycle."""
    line = f"line {now.line}" if now.line else "no line of the file"
    span = f"cycles {as_count(floor(now.begin))} to {as_count(ceil(now.end))}"
    return f"Warp {now.warp}, block {now.block}: {NAMES[now.state]}, {span}\n{line}: {now.text}"


def opcode_of(text: str) -> str:
    """Return the opcode of an instruction, without its guard."""
    return next((word for word in text.split() if not word.startswith("@")), "")


class WarpCanvas(QWidget):
    """Warps over cycles."""

    cycle_wanted = pyqtSignal(int)
    warp_picked = pyqtSignal(int)
    """A warp whose row was clicked."""
    moved = pyqtSignal()
    """What is seen is another part, or nearer, or farther."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Timeline of warps")
        self.setMouseTracking(True)
        self.setMinimumSize(240, 120)
        self.rows: WarpRows | None = None
        self.first = 0.0
        """The cycle at the left edge."""
        self.scale = 1.0
        """Pixels of a cycle."""
        self.cycle = 0
        self.picked: int | None = None
        self._pictures = Pixmaps()
        self._columns: tuple[Hashable, float, Array] | None = None
        """The states that were painted last: what they go by besides their first cycle, that, and they."""
        self._restyle()

    # --- what is shown

    def open(self, rows: WarpRows | None, *, keep: bool = False) -> None:
        """Show other rows, all their cycles, or with cycles as wide as before: what is shorter is seen to be."""
        if rows is None:
            self._pictures.clear()
        self.rows = rows
        if rows is None or (self.picked is not None and self.picked >= rows.count):
            self.picked = None
        if keep:
            self._hold()
        else:
            self.fit()

    def show_cycle(self, cycle: int) -> None:
        """Put the cursor at a cycle, and bring it into view."""
        before, self.cycle = self.x_of(self.cycle), cycle
        x, wide = self.x_of(cycle), self.width() - self._left
        if not self._left <= x <= self.width() - 2:
            # A page on, so that what follows is seen.
            ahead = 0.1 if x > self.width() - 2 else 0.9
            self.first = cycle - ahead * wide / self.scale
            self._hold()
        else:
            for each in (before, x):
                self.update(int(each) - 100, 0, 200, self.height())

    def pick(self, warp: int | None) -> None:
        """Let a warp's row stand out."""
        self.picked = warp
        self.update()

    def fit(self) -> None:
        """Let all cycles be seen."""
        if self.rows is not None:
            self.first = 0.0
            self.scale = self._farthest
        self._hold()

    def zoom(self, factor: float, x: float | None = None) -> None:
        """Make a cycle wider by a factor; where `x` is, else the cursor if it is seen, or the middle, stays."""
        if x is None:
            x = self.x_of(self.cycle)
            x = x if self._left <= x <= self.width() else (self._left + self.width()) / 2
        at = self.cycle_at(x)
        self.scale = min(max(self.scale * factor, self._least), max(_NEAREST, self._farthest))
        self.first = at - (x - self._left) / self.scale
        self._hold()

    def scroll_by(self, pixels: float) -> None:
        """Move what is seen to the right."""
        self.first -= pixels / self.scale
        self._hold()

    @property
    def _farthest(self) -> float:
        wide = max(self.width() - self._left - look().px(8), 1)
        return wide / max(self.rows.end if self.rows is not None else 1, 1)

    @property
    def _least(self) -> float:
        """The scale at which the longest of the launch's timelines would be seen as a whole."""
        longest = max(each.until for each in self.rows.found.timelines) if self.rows is not None else 1.0
        return self._farthest * (self.rows.end if self.rows is not None else 1) / max(longest, 1.0)

    def _hold(self) -> None:
        """Keep what is seen within what there is."""
        if self.rows is not None:
            self.scale = max(self.scale, min(self._least, _NEAREST))
            seen = (self.width() - self._left - look().px(8)) / self.scale
            # Whole pixels: what was painted is moved with what is seen.
            pixel = self.scale * self.devicePixelRatioF()
            self.first = round(min(max(self.first, 0.0), max(self.rows.end - seen, 0.0)) * pixel) / pixel
        self.moved.emit()
        self.update()

    @property
    def seen(self) -> tuple[float, float]:
        """The cycles at the edges."""
        return self.first, self.cycle_at(self.width())

    # --- where

    def x_of(self, cycle: float) -> float:
        """Return where a cycle begins."""
        return self._left + (cycle - self.first) * self.scale

    def cycle_at(self, x: float) -> float:
        """Return the cycle at an x."""
        return self.first + (x - self._left) / self.scale

    @property
    def _left(self) -> int:
        return look().px(58)

    @property
    def _top(self) -> int:
        return look().px(20)

    def _edges(self) -> tuple[Array, float]:
        """Return where each row begins, those of a scheduler together and a gap behind them, and how high one is."""
        assert self.rows is not None
        gap = look().px(6)
        _, groups = np.unique(self.rows.schedulers, return_inverse=True)
        here = int(groups.max(initial=-1)) + 1
        room = self.height() - self._top - gap * here
        high = min(room / max(self.rows.count, 1), look().px(26))
        return self._top + np.arange(self.rows.count) * high + groups * gap, high

    def row_at(self, y: float) -> int | None:
        """Return the row at a height."""
        if self.rows is None:
            return None
        tops, high = self._edges()
        row = int(np.searchsorted(tops, y, side="right")) - 1
        return row if row >= 0 and y < tops[row] + high else None

    def now_at(self, place: QPointF) -> WarpNow | None:
        """Return what the warp under a point does there."""
        row = self.row_at(place.y())
        if self.rows is None or row is None or place.x() < self._left:
            return None
        return self.rows.now(int(self.rows.warps[row]), floor(self.cycle_at(place.x())))

    # --- painting

    def _restyle(self) -> None:
        self._small = Lettering(self._font(look().small_px))
        self._code = Lettering(code_font(look().px(10)))

    def _font(self, px: int) -> QFont:
        font = self.font()
        font.setPixelSize(px)
        return font

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.rows is None or self.width() <= self._left + 8:
            return
        painter = QPainter(self)
        ratio = self.devicePixelRatioF()
        key = (self.rows, self.first, self.scale, self.width(), self.height(), ratio, look())
        painter.drawPixmap(QPointF(0, 0), self._pictures.at(key, lambda: self._picture(ratio)))
        theme = look().theme
        tops, high = self._edges()
        if self.picked is not None:
            row = self.rows.row_of[self.picked]
            painter.setPen(QPen(QColor(theme.text), 1.5))
            painter.drawRect(QRectF(self._left - 1, tops[row] - 0.5, self.width() - self._left, max(high, 3)))
        x = self.x_of(self.cycle)
        if self._left <= x <= self.width():
            self._paint_cursor(painter, x)
        painter.end()

    def _paint_cursor(self, painter: QPainter, x: float) -> None:
        theme = look().theme
        wide = max(self.scale, 1.0)
        ink = QColor(theme.text)
        painter.setPen(QPen(ink, 1.5))
        painter.drawLine(QPointF(x, self._top - 3), QPointF(x, self.height()))
        if wide >= _PARTED:
            painter.drawLine(QPointF(x + wide, self._top - 3), QPointF(x + wide, self.height()))
        text = as_count(self.cycle)
        painter.setFont(self._small.font)
        room = self._small.width(text) + 10
        box = QRectF(min(max(x - room / 2, self._left), self.width() - room), 0, room, self._top - 3)
        for _, beside, _ in self._ticks():
            if beside.intersects(box):  # no half of a number beside it
                painter.fillRect(beside, QColor(theme.surface))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        painter.drawRoundedRect(box, 3, 3)
        painter.setPen(QColor(theme.surface))
        self._small.center(painter, box, text)

    def _picture(self, ratio: float) -> QPixmap:
        """Return all but what moves."""
        assert self.rows is not None
        made = QPixmap(ceil(self.width() * ratio), ceil(self.height() * ratio))
        made.setDevicePixelRatio(ratio)
        made.fill(QColor(look().theme.surface))
        painter = QPainter(made)
        tops, high = self._edges()
        pixels = self._cells(tops, high, ratio)
        image = _image(pixels, ratio)
        painter.drawImage(QPointF(self._left, 0), image)
        if self.scale >= _PARTED and high > self._code.font.pixelSize():
            self._paint_words(painter, tops, high)
        self._paint_axis(painter)
        self._paint_names(painter, tops, high)
        painter.end()
        return made

    def _cells(self, tops: Array, high: float, ratio: float) -> Array:
        """Return the colors of the states: of each column of pixels that which a warp is in for longest."""
        assert self.rows is not None
        columns = max(int((self.width() - self._left) * ratio), 1)
        states = self._states(columns, ratio)
        colors = np.concatenate((palette_of(look().theme)[states], np.full((1, columns), palette_of(look().theme)[-1])))
        lines = np.full(max(int(self.height() * ratio), 1), self.rows.count)
        gap = 1 if high * ratio >= 4 else 0
        for row, top in enumerate(tops):
            lines[round(top * ratio) : max(round((top + high) * ratio) - gap, round(top * ratio) + 1)] = row
        return colors.take(lines, axis=0)

    def _states(self, columns: int, ratio: float) -> Array:
        """Return the states by row and column of pixels; where they were seen before, only those beside are new."""
        assert self.rows is not None
        width, key = 1 / (self.scale * ratio), (self.rows, self.scale, ratio, columns)
        moved, states = columns, np.empty((self.rows.count, columns), np.uint8)
        if self._columns is not None and self._columns[0] == key:
            _, first, before = self._columns
            by = (self.first - first) / width
            if abs(by - round(by)) < 0.01 and abs(by) < columns:
                moved = round(by)
                if moved > 0:
                    states[:, :-moved] = before[:, moved:]
                else:
                    states[:, -moved:] = before[:, : columns + moved]
        new = slice(columns - moved, columns) if moved > 0 else slice(0, -moved)
        if moved:
            states[:, new] = self._new_states(self.first + new.start * width, width, abs(moved))
        self._columns = key, self.first, states
        return states

    def _new_states(self, first: float, width: float, columns: int) -> Array:
        """Return the states of columns so many cycles wide; near enough, instructions are parted from each other."""
        assert self.rows is not None
        states = self.rows.columns(first, width, columns)
        if self.scale >= _PARTED:
            # A gap behind each, so that those of a warp that follow each other are counted.
            rows, ends = self.rows.ends_within(first, first + (columns + 1) * width)
            at = np.floor((ends - first) / width + 0.5).astype(np.int64) - 1
            seen = (at >= 0) & (at < columns)
            states[rows[seen], at[seen]] = len(WarpState)
        return states

    def _paint_words(self, painter: QPainter, tops: Array, high: float) -> None:
        """Write what is issued, and the line that waits, where there is room."""
        assert self.rows is not None
        first, last = self.seen
        theme = look().theme
        painter.setFont(self._code.font)
        written = 0
        for row, warp in enumerate(self.rows.warps):
            for begin, end, number, _, _, state in self.rows.within(int(warp), first, last).tolist():
                left, right = max(self.x_of(begin), self._left), min(self.x_of(end), self.width())
                operation = self.rows.found.operations[number]
                opcode = opcode_of(operation.text)
                texts = (f"{operation.line}: {opcode}" if operation.line else opcode, str(operation.line or ""))
                text = next((each for each in texts if each and self._code.width(each) < right - left - 6), "")
                if not text:
                    continue
                ground = state_color(theme, state)
                painter.setPen(QColor("#0b0f14" if ground.lightnessF() > 0.42 else "#ffffff"))
                self._code.left(painter, QRectF(left + 3, tops[row], right - left, high - 1), text)
                written += 1
                if written >= _MOST_WORDS:
                    return

    def _paint_axis(self, painter: QPainter) -> None:
        theme = look().theme
        painter.setFont(self._small.font)
        for x, box, text in self._ticks():
            painter.setPen(QColor(theme.border))
            painter.drawLine(QPointF(x, self._top - 5), QPointF(x, self._top - 1))
            painter.setPen(QColor(theme.muted))
            if box.right() < self.width():
                self._small.center(painter, box, text)

    def _ticks(self) -> Iterator[tuple[float, QRectF, str]]:
        """Yield where the axis has a number, the room of that, and the number."""
        first, last = self.seen
        step = _round_step(look().px(90) / self.scale)
        for cycle in range(ceil(first / step) * step, floor(last) + 1, step):
            x, text = self.x_of(cycle), as_count(cycle)
            wide = self._small.width(text) + 2
            yield x, QRectF(x - wide / 2, 0, wide, self._top - 5), text

    def _paint_names(self, painter: QPainter, tops: Array, high: float) -> None:
        """Name the schedulers, and the warps where there is room."""
        assert self.rows is not None
        theme, schedulers = look().theme, self.rows.schedulers
        single = high >= self._small.font.pixelSize()
        painter.setFont(self._small.font)
        line = float(look().px(15))
        for row, warp in enumerate(self.rows.warps.tolist()):
            begins = row == 0 or schedulers[row] != schedulers[row - 1]
            if begins:
                painter.setPen(QColor(theme.text))
                box = QRectF(look().px(8), tops[row], self._left, high if single else line)
                self._small.left(painter, box, f"S{schedulers[row]}")
            if single:
                painter.setPen(QColor(theme.text if warp == self.picked else theme.muted))
                box = QRectF(0, tops[row] + (high - line) / 2, self._left - look().px(6), line)
                self._small.right(painter, box, f"w{warp}")

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
        now = self.now_at(event.position())
        QToolTip.showText(event.globalPosition().toPoint(), words_of(now) if now else "", self)

    def _scrub(self, x: float) -> None:
        if self.rows is not None and x >= self._left:
            self.cycle_wanted.emit(min(max(floor(self.cycle_at(min(x, self.width() - 1))), 0), self.rows.end))

    def event(self, event: QEvent | None) -> bool:
        if isinstance(event, QHelpEvent):
            return True  # it has been shown while the mouse moved
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
        whole = self.rows is not None and event is not None and self._was_whole(event.oldSize().width())
        super().resizeEvent(event)
        self.fit() if whole else self._hold()

    def _was_whole(self, width: int) -> bool:
        """Whether all cycles were seen when the picture was so wide."""
        assert self.rows is not None
        wide = max(width - self._left - look().px(8), 1)
        return self.scale <= 1.01 * wide / max(self.rows.end, 1)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self._restyle()
            self._hold()


def _round_step(least: float) -> int:
    """Return the first of 1, 2, 5, 10, 20 ... that is not less."""
    power = 10 ** max(floor(log10(max(least, 1))), 0)
    return next(int(each * power) for each in (1, 2, 5, 10) if each * power >= least)


def _image(pixels: Array, ratio: float) -> QImage:
    """Return an image that looks at the memory of colors; the caller keeps them alive."""
    height, width = pixels.shape
    memory: Any = voidptr(pixels.ctypes.data)  # the stubs know another voidptr
    made = QImage(memory, width, height, 4 * width, QImage.Format.Format_RGB32)
    made.setDevicePixelRatio(ratio)
    return made
