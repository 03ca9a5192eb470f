"""The workers of a run in time: a lane each, with what it was busy with and what came to it from others."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QPen

from gpu.distributed.layout import short_time
from gpu.messages.distributed import TaskRecord
from gui.painting.colors import mixed, warp_color
from gui.painting.theme import look
from gui.step_view.machines.canvas import LABELS, TaskCanvas
from gui.step_view.machines.moments import MachineMoments

_LANE, _BAR, _AXIS = 34, 20, 20
_LEAST = 2.0
"""Pixels of a task, at least."""
KINDS = ("upload", "kernels", "download", "all else")
"""What a task's time went to, in this order; when in the task, is not recorded."""


def kind_colors(worker: QColor) -> tuple[QColor, ...]:
    """Return the colors of `KINDS` in a worker's lane."""
    theme = look().theme
    return QColor(theme.faint), worker, QColor(theme.muted), mixed(worker.name(), theme.surface, 0.3)


class WorkerLanes(TaskCanvas):
    """Time to the right, by each machine's own clock."""

    def __init__(self) -> None:
        super().__init__("Timeline of workers")

    def open(self, moments: MachineMoments) -> None:
        super().open(moments)
        self.setMinimumHeight(look().px(_AXIS + _LANE * max(len(moments.run.workers), 1)))

    def sizeHint(self) -> QSize:
        lanes = 1 if self.moments is None else len(self.moments.run.workers)
        return QSize(look().px(520), look().px(_AXIS + _LANE * lanes))

    # --- where

    def x_of(self, time: float) -> float:
        """Return where a time is, given in seconds since the first task began."""
        assert self.moments is not None
        left, long = look().px(LABELS), max(self.moments.until - self.moments.begin, 1e-9)
        return left + time / long * (self.width() - left - 10)

    def bar(self, record: TaskRecord) -> QRectF | None:
        """Return where a task is; None of a worker that is gone."""
        assert self.moments is not None
        lane = self.moments.workers.get(record.worker)
        if lane is None:
            return None
        x, end = (self.x_of(time - self.moments.begin) for time in (record.begin, record.end))
        top = look().px(_AXIS) + lane * look().px(_LANE) + look().px(_LANE - _BAR) / 2
        return QRectF(x, top, max(end - x, _LEAST), look().px(_BAR))

    def task_at(self, place: QPointF) -> str | None:
        """Return the task under a point."""
        for record in reversed(self.moments.run.tasks if self.moments is not None else ()):
            bar = self.bar(record)
            if bar is not None and bar.adjusted(-1, 0, 1, 0).contains(place):
                return record.task
        return None

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.moments is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_lanes(painter)
        clock = self.moments.clock(self.moment)
        for record in self.moments.run.tasks:
            self._paint_task(painter, record, ahead=record.end - self.moments.begin > clock + 1e-9)
        x = self.x_of(clock)
        painter.setPen(QPen(QColor(look().theme.text), 1.5))
        painter.drawLine(QPointF(x, look().px(_AXIS) - 4), QPointF(x, self.height()))
        painter.end()

    def _paint_lanes(self, painter: QPainter) -> None:
        assert self.moments is not None
        theme, left = look().theme, look().px(LABELS)
        painter.setFont(self._small.font)
        metrics, long = painter.fontMetrics(), self.moments.until - self.moments.begin
        painter.setPen(QColor(theme.muted))
        axis = QRectF(left, 0, self.width() - left - 10, look().px(_AXIS))
        self._small.left(painter, axis, "0")
        end = self._small.width(short_time(long))
        self._small.left(painter, axis.adjusted(axis.width() - end, 0, 0, 0), short_time(long))
        for number, worker in enumerate(self.moments.run.workers):
            top = look().px(_AXIS) + number * look().px(_LANE)
            box = QRectF(0, top, left - 8, look().px(_LANE))
            painter.setPen(QColor(theme.text))
            name = f"{self.moments.who(worker.address)} · {worker.device.name}"
            room = int(box.width())
            self._small.left(painter, box, metrics.elidedText(name, Qt.TextElideMode.ElideRight, room))
            lane = QRectF(left, top + look().px(_LANE - _BAR) / 2, self.width() - left - 10, look().px(_BAR))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mixed(theme.border, theme.surface, 0.4))
            painter.drawRoundedRect(lane, 3, 3)

    def _paint_task(self, painter: QPainter, record: TaskRecord, *, ahead: bool) -> None:
        assert self.moments is not None
        bar, theme = self.bar(record), look().theme
        if bar is None:
            return
        *shares, rest = kind_colors(warp_color(theme, self.moments.workers[record.worker]))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setOpacity(0.3 if ahead else 1.0)
        # Several come at once: each has a line of its own.
        high = min(4.0, (look().px(_LANE - _BAR) - 3) / max(len(record.fetched), 1))
        for line, each in enumerate(sorted(record.fetched, key=lambda fetch: fetch.begin)):
            source = self.moments.workers.get(each.source)
            painter.setBrush(QColor(theme.muted) if source is None else warp_color(theme, source))
            x, end = (self.x_of(time - self.moments.begin) for time in (each.begin, each.end))
            x = max(x, look().px(LABELS))
            painter.drawRect(QRectF(x, bar.bottom() + 1 + line * high, max(end - x, _LEAST), high))
        painter.setBrush(rest)
        painter.drawRoundedRect(bar, 2, 2)
        x, long = bar.x(), max(record.end - record.begin, 1e-9)
        times = record.times
        for ms, color in zip((times.upload, times.kernel, times.download), shares, strict=True):
            wide = min(ms / 1e3 / long * bar.width(), bar.right() - x)
            painter.setBrush(color)
            painter.drawRect(QRectF(x, bar.y(), wide, bar.height()))
            x += wide
        painter.setOpacity(1.0)
        if record.task == self.picked:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRoundedRect(bar.adjusted(-1, -1, 1, 1), 3, 3)
