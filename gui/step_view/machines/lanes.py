"""Timeline of workers: one lane per worker, with its tasks and the transfers from other workers."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QPen, QWheelEvent

from gpu.distributed.task_layout import format_short_time
from gpu.messages.runs.distributed_run import TaskRecord
from gui.painting.colors import mix_colors, warp_color
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look
from gui.step_view.machines.canvas import LABEL_WIDTH, TaskCanvas
from gui.step_view.machines.moments import MachineMoments

_LANE, _BAR, _AXIS = 34, 20, 20
_MIN_TASK_WIDTH = 2.0
"""Minimum width of a task in pixels."""
_RIGHT_MARGIN = 10
_MIN_SECONDS_PER_PIXEL = 1e-5
"""Seconds per pixel at the maximum zoom."""
KINDS = ("upload", "kernels", "download", "other")
"""Parts of a task's time in painting order; their actual order within the task is not recorded."""


def kind_colors(worker: QColor) -> tuple[QColor, ...]:
    """Return the colors of `KINDS` in a worker's lane."""
    theme = look().theme
    return QColor(theme.faint), worker, QColor(theme.muted), mix_colors(worker.name(), theme.surface, 0.3)


class WorkerLanes(TaskCanvas):
    """Lanes of workers over time, each by its machine's clock."""

    def __init__(self) -> None:
        super().__init__("Timeline of workers")
        self.first_time = 0.0
        """Time at the left edge, in seconds since the start of the first task."""
        self.zoom_factor = 1.0
        """Zoom factor relative to the fitted run."""

    def open(self, moments: MachineMoments) -> None:
        super().open(moments)
        self.fit()
        self.setMinimumHeight(look().px(_AXIS + _LANE * max(len(moments.run.workers), 1)))

    def sizeHint(self) -> QSize:
        lanes = 1 if self.moments is None else len(self.moments.run.workers)
        return QSize(look().px(520), look().px(_AXIS + _LANE * lanes))

    # --- visible range

    def show_moment(self, moment: int) -> None:
        super().show_moment(moment)
        if self.moments is not None and self.zoom_factor > 1:
            clock, visible = self.moments.elapsed_time(moment), self._visible_duration
            if not self.first_time <= clock <= self.first_time + visible:
                # Scroll a page, so that the following tasks are visible.
                self._scroll_to(clock - (0.1 if clock > self.first_time else 0.9) * visible)

    def fit(self) -> None:
        """Show the whole run."""
        self.first_time, self.zoom_factor = 0.0, 1.0
        self.update()

    def zoom(self, factor: float, x: float | None = None) -> None:
        """Zoom by a factor around the position `x`, or around the current moment."""
        if self.moments is None:
            return
        x = self.x_of(self.moments.elapsed_time(self.moment)) if x is None else max(x, look().px(LABEL_WIDTH))
        at = self.time_at(x)
        max_zoom = max(self._duration / (_MIN_SECONDS_PER_PIXEL * self._lane_width), 1.0)
        self.zoom_factor = min(max(self.zoom_factor * factor, 1.0), max_zoom)
        self._scroll_to(at - (x - look().px(LABEL_WIDTH)) / self._lane_width * self._visible_duration)

    def _scroll_to(self, first_time: float) -> None:
        self.first_time = min(max(first_time, 0.0), self._duration - self._visible_duration)
        self.update()

    @property
    def _duration(self) -> float:
        assert self.moments is not None
        return max(self.moments.end_time - self.moments.begin_time, 1e-9)

    @property
    def _visible_duration(self) -> float:
        return self._duration / self.zoom_factor

    @property
    def _lane_width(self) -> float:
        return max(self.width() - look().px(LABEL_WIDTH) - _RIGHT_MARGIN, 1)

    # --- positions

    def x_of(self, time: float) -> float:
        """Return the x of a time, in seconds since the start of the first task."""
        return look().px(LABEL_WIDTH) + (time - self.first_time) / self._visible_duration * self._lane_width

    def time_at(self, x: float) -> float:
        """Return the time at an x, in seconds since the start of the first task."""
        return self.first_time + (x - look().px(LABEL_WIDTH)) / self._lane_width * self._visible_duration

    def bar(self, record: TaskRecord) -> QRectF | None:
        """Return the box of a task, or None if its worker no longer exists."""
        assert self.moments is not None
        lane = self.moments.workers.get(record.worker)
        if lane is None:
            return None
        x, end = (self.x_of(time - self.moments.begin_time) for time in (record.begin, record.end))
        top = look().px(_AXIS) + lane * look().px(_LANE) + look().px(_LANE - _BAR) / 2
        return QRectF(x, top, max(end - x, _MIN_TASK_WIDTH), look().px(_BAR))

    def task_at(self, point: QPointF) -> str | None:
        if point.x() < look().px(LABEL_WIDTH):
            return None
        for record in reversed(self.moments.run.tasks if self.moments is not None else ()):
            bar = self.bar(record)
            if bar is not None and bar.adjusted(-1, 0, 1, 0).contains(point):
                return record.task
        return None

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.moments is None:
            return
        painter = create_smooth_painter(self)
        self._paint_lanes(painter)
        clock = self.moments.elapsed_time(self.moment)
        # Clip lanes at the edge of their names.
        painter.setClipRect(QRectF(look().px(LABEL_WIDTH) - 2, 0, self._lane_width + 4, self.height()))
        for record in self.moments.run.tasks:
            self._paint_task(painter, record, is_future=record.end - self.moments.begin_time > clock + 1e-9)
        x = self.x_of(clock)
        painter.setPen(QPen(QColor(look().theme.text), 1.5))
        painter.drawLine(QPointF(x, look().px(_AXIS) - 4), QPointF(x, self.height()))
        painter.end()

    def _paint_lanes(self, painter: QPainter) -> None:
        assert self.moments is not None
        theme, left = look().theme, look().px(LABEL_WIDTH)
        painter.setFont(self._small_lettering.font)
        metrics = painter.fontMetrics()
        painter.setPen(QColor(theme.muted))
        axis = QRectF(left, 0, self._lane_width, look().px(_AXIS))
        begin, until = (
            format_short_time(each) if each else "0"
            for each in (self.first_time, self.first_time + self._visible_duration)
        )
        self._small_lettering.paint_left(painter, axis, begin)
        self._small_lettering.paint_centered(
            painter, axis, "Ctrl+wheel: zoom" if self.zoom_factor == 1 else "wheel: scroll  ·  F: fit"
        )
        self._small_lettering.paint_left(
            painter, axis.adjusted(axis.width() - self._small_lettering.width(until), 0, 0, 0), until
        )
        for number, worker in enumerate(self.moments.run.workers):
            top = look().px(_AXIS) + number * look().px(_LANE)
            box = QRectF(0, top, left - 8, look().px(_LANE))
            painter.setPen(QColor(theme.text))
            name = f"{self.moments.name_worker(worker.address)} · {worker.device.name}"
            room = int(box.width())
            self._small_lettering.paint_left(painter, box, metrics.elidedText(name, Qt.TextElideMode.ElideRight, room))
            lane = QRectF(left, top + look().px(_LANE - _BAR) / 2, self._lane_width, look().px(_BAR))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mix_colors(theme.border, theme.surface, 0.4))
            painter.drawRoundedRect(lane, 3, 3)

    def _paint_task(self, painter: QPainter, record: TaskRecord, *, is_future: bool) -> None:
        assert self.moments is not None
        bar, theme = self.bar(record), look().theme
        if bar is None:
            return
        *shares, rest = kind_colors(warp_color(theme, self.moments.workers[record.worker]))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setOpacity(0.3 if is_future else 1.0)
        # Transfers may overlap in time: each gets a separate line.
        line_height = min(4.0, (look().px(_LANE - _BAR) - 3) / max(len(record.transfers), 1))
        for line, transfer in enumerate(sorted(record.transfers, key=lambda fetch: fetch.begin)):
            source = self.moments.workers.get(transfer.source)
            painter.setBrush(QColor(theme.muted) if source is None else warp_color(theme, source))
            x, end = (self.x_of(time - self.moments.begin_time) for time in (transfer.begin, transfer.end))
            x = max(x, look().px(LABEL_WIDTH))
            painter.drawRect(
                QRectF(x, bar.bottom() + 1 + line * line_height, max(end - x, _MIN_TASK_WIDTH), line_height)
            )
        painter.setBrush(rest)
        painter.drawRoundedRect(bar, 2, 2)
        x, duration = bar.x(), max(record.end - record.begin, 1e-9)
        times = record.times
        for ms, color in zip((times.upload, times.kernel, times.download), shares, strict=True):
            width = min(ms / 1e3 / duration * bar.width(), bar.right() - x)
            painter.setBrush(color)
            painter.drawRect(QRectF(x, bar.y(), width, bar.height()))
            x += width
        painter.setOpacity(1.0)
        if record.task == self.picked:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRoundedRect(bar.adjusted(-1, -1, 1, 1), 3, 3)

    # --- the pointer

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is None or self.moments is None:
            return
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.0015 ** angle.y(), event.position().x())
        else:
            self._scroll_to(
                self.first_time - (angle.x() or angle.y()) * 0.6 / self._lane_width * self._visible_duration
            )
        event.accept()
