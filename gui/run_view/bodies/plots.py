"""Plots of a simulation over time: conserved quantities and the speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PyQt6.QtCore import QEvent, QPointF, QRect, QRectF, Qt
from PyQt6.QtGui import QColor, QFont, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gpu.declaration.pattern import Array
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.bodies import BodyFigures
from gui.painting.colors import warp_color
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import Theme, code_font, look, resize_font
from gui.plots.axes import tick_font
from gui.qt.timers import create_repeating_timer
from gui.run_view.bodies.time_series import TimeSeries

_AXIS_WIDTH = 58
_GAP = 10
_REPAINT_INTERVAL_MS = 20
"""Interval between the repaints of two strips: repainting all at once would take longer than a frame."""
_MIN_TIME_SPAN = 1e-9
_MIN_VALUE_RANGE = 1e-6
"""Minimum range of an axis around zero, so that float32 rounding shows as a flat line."""


@dataclass(frozen=True)
class Curve:
    """A column of a time series, with its name and color."""

    name: str
    column: int
    color: str


@dataclass(frozen=True)
class StripPlot:
    """A plot of one or more curves.

    Parameters
    ----------
    history : int
        The index of its time series.
    zero_centered : bool
        Whether zero is in the middle of the axis.
    shows_peak : bool
        Whether the device's peak is shown for comparison.
    """

    title: str
    history: int
    curves: tuple[Curve, ...]
    zero_centered: bool = False
    shows_peak: bool = False


_AXIS_COLORS = ("red", "green", "blue")
STRIPS = (
    StripPlot("Energy", 0, (Curve("kinetic", 0, "first"), Curve("potential", 1, "second"), Curve("total", 2, "text"))),
    StripPlot("Energy drift", 0, (Curve("", 3, "text"),), zero_centered=True),
    StripPlot("Momentum", 0, tuple(Curve(n, 4 + i, _AXIS_COLORS[i]) for i, n in enumerate("xyz")), zero_centered=True),
    StripPlot("Angular momentum", 0, tuple(Curve(n, 7 + i, _AXIS_COLORS[i]) for i, n in enumerate("xyz"))),
    StripPlot("GFLOP/s", 1, (Curve("", 0, "accent"),), shows_peak=True),
)


class Plots(QWidget):
    """All plots below each other; the pointer reads them at one time."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Energy, drift, momentum, angular momentum and speed over time")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(240, 260)
        self.setMouseTracking(True)
        self.histories = (TimeSeries(10), TimeSeries(1))
        self.kernel = ""
        """The kernel that moves the bodies; changes are marked by labeled lines."""
        self.kernel_changes: list[tuple[float, str]] = []
        self.cursor_time: float | None = None
        self.peak = 0.0
        """The device's peak in GFLOP/s; 0 if unknown."""
        self.simulated = False
        """Whether the speed is that of a simulating CPU."""
        self._pending_strips: list[int] = []
        self._repaint_timer = create_repeating_timer(_REPAINT_INTERVAL_MS, self._repaint_next_strip, self)

    def clear(self) -> None:
        """Clear all plots."""
        for history in self.histories:
            history.clear()
        self.kernel_changes.clear()
        self.cursor_time = None
        self.update()

    def change_kernel(self, name: str) -> None:
        """Mark the time at which another kernel takes over; the first kernel has no mark."""
        before, self.kernel = self.kernel, name
        times = [history.times[-1] for history in self.histories if len(history.times)]
        if not times or name == before:
            return
        now = float(max(times))
        self.kernel_changes = [kernel_change for kernel_change in self.kernel_changes if kernel_change[0] < now] + (
            [(now, name)] if now > 0 else []
        )
        self.update()

    def add(self, figures: BodyFigures) -> None:
        """Add the figures of a time step."""
        conserved = figures.conserved
        if conserved is not None:
            row = (
                conserved.kinetic,
                conserved.potential,
                conserved.total,
                conserved.drift,
                *conserved.momentum,
                *conserved.angular_momentum,
            )
            self.histories[0].add(figures.time, row)
        if figures.gflops > 0:
            self.histories[1].add(figures.time, (figures.gflops,))
        if conserved is not None:
            # A few repaints per second suffice, and leave the time to the bodies.
            self._pending_strips = self._pending_strips or [*range(len(STRIPS) + 1)]
            self._repaint_timer.start()

    def _repaint_next_strip(self) -> None:
        self.update(_dirty_rect(self._compute_boxes()[self._pending_strips.pop(0)]))
        if not self._pending_strips:
            self._repaint_timer.stop()

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        assert event is not None
        painter = create_smooth_painter(self)
        first, last = self._compute_time_span()
        *boxes, foot = self._compute_boxes()
        for strip, box in zip(STRIPS, boxes, strict=True):
            if event.region().intersects(_dirty_rect(box)):
                self._paint_strip(painter, strip, box, first, last)
        self._paint_time_axis(painter, foot, first, last)
        painter.end()

    def _compute_boxes(self) -> list[QRectF]:
        """Return the rectangles of the strips and of the time axis."""
        foot = look().px(20)
        height = (self.height() - foot) / len(STRIPS)
        strips = [QRectF(0, number * height, self.width(), height - _GAP) for number in range(len(STRIPS))]
        return [*strips, QRectF(0, self.height() - foot, self.width(), foot)]

    def _compute_time_span(self) -> tuple[float, float]:
        ends = [history.times[[0, -1]] for history in self.histories if len(history.times)]
        first, last = min((a for a, _ in ends), default=0.0), max((b for _, b in ends), default=1.0)
        return first, max(last, first + _MIN_TIME_SPAN)

    @property
    def _axis_width(self) -> int:
        return look().px(_AXIS_WIDTH)

    def _paint_strip(self, painter: QPainter, strip: StripPlot, box: QRectF, first: float, last: float) -> None:
        theme = look().theme
        history = self.histories[strip.history]
        head = look().px(19)
        self._paint_head(painter, strip, history, QRectF(box.left(), box.top(), box.width(), head))
        plot = QRectF(
            self._axis_width, box.top() + head + 2, box.width() - self._axis_width - 1, box.height() - head - 2
        )
        columns = [curve.column for curve in strip.curves]
        low, high = compute_axis_range(history.rows[:, columns], zero_centered=strip.zero_centered)
        # A peak far above the curve would flatten it; the title shows the curve's share of the peak instead.
        roof = self.peak if strip.shows_peak and 0 < self.peak <= 2.5 * high else 0.0
        high = max(high, round_up_to_nice_number(roof))
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.drawLine(plot.bottomLeft(), plot.bottomRight())
        painter.drawLine(plot.topLeft(), plot.topRight())
        scale = plot.height() / (high - low)
        if low < 0 < high:
            level = round(plot.bottom() + low * scale) + 0.5
            painter.setPen(QPen(QColor(theme.border), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(plot.left(), level), QPointF(plot.right(), level))
        if roof:
            level = plot.bottom() - (roof - low) * scale
            painter.setPen(QPen(QColor(theme.warn), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(plot.left(), level), QPointF(plot.right(), level))
        self._paint_scale(painter, plot, low, high, empty=not len(history.times))
        if not len(history.times):
            return
        x = plot.left() + (history.times - first) / (last - first) * plot.width()
        for curve in strip.curves:
            y = plot.bottom() - (history.rows[:, curve.column] - low) * scale
            painter.setPen(QPen(_resolve_color(theme, curve.color), 1.6))
            _paint_curve(painter, x, y)
        self._paint_kernel_changes(painter, plot, (first, last), (x, y) if strip is STRIPS[-1] else None)
        if self.cursor_time is not None:
            at = plot.left() + (self.cursor_time - first) / (last - first) * plot.width()
            painter.setPen(QPen(QColor(theme.faint), 1))
            painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()))

    def _paint_kernel_changes(
        self, painter: QPainter, plot: QRectF, span: tuple[float, float], curve: tuple[Array, Array] | None
    ) -> None:
        """Paint a line at each change of the kernel; with a curve, also the new kernel's name up to the next line."""
        theme, (first, last) = look().theme, span
        painter.setFont(tick_font())
        places = [plot.left() + (time - first) / (last - first) * plot.width() for time, _ in self.kernel_changes]
        for at, after, (_, name) in zip(places, [*places, plot.right()][1:], self.kernel_changes, strict=True):
            painter.setPen(QPen(QColor(theme.accent), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()))
            if curve is not None:
                room, metrics = max(0.0, after - at - 6), painter.fontMetrics()
                text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, round(room)) if room > 8 else ""
                box = QRectF(at + 4, plot.top(), metrics.horizontalAdvance(text), plot.height())
                painter.setPen(QColor(theme.accent))
                painter.drawText(QPointF(box.left(), find_name_baseline(box, metrics.height(), *curve)), text)

    def _paint_head(self, painter: QPainter, strip: StripPlot, history: TimeSeries, box: QRectF) -> None:
        theme = look().theme
        middle = Qt.AlignmentFlag.AlignVCenter
        font = resize_font(self.font(), look().small_px)
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        title = f"{strip.title} {SIMULATION_TIME_LABEL}" if strip.shows_peak and self.simulated else strip.title
        title = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, int(box.width()))
        painter.drawText(box, middle | Qt.AlignmentFlag.AlignLeft, title)
        row = len(history.times) - 1 if self.cursor_time is None else history.find_nearest_row(self.cursor_time)
        if row is None or row < 0:
            return
        room = box.width() - painter.fontMetrics().horizontalAdvance(title) - look().px(10)
        painter.setFont(code_font(look().small_px))
        measure = painter.fontMetrics().horizontalAdvance
        gap = look().px(10)
        long, short = format_title_figures(strip, history.rows[row], self.peak)
        least = [text[:3] for text in short]
        versions = (long, short, least)
        texts = next(
            (version for version in versions if sum(map(measure, version)) + gap * (len(version) - 1) <= room), least
        )
        right = box.right()
        for curve, text in zip(reversed(strip.curves), reversed(texts), strict=True):
            width = measure(text)
            painter.setPen(_resolve_color(theme, curve.color))
            painter.drawText(QRectF(right - width - 1, box.top(), width + 2, box.height()), middle, text)
            right -= width + gap

    def _paint_scale(self, painter: QPainter, plot: QRectF, low: float, high: float, *, empty: bool) -> None:
        if empty:
            return
        painter.setFont(tick_font())
        painter.setPen(QColor(look().theme.muted))
        line = painter.fontMetrics().height()
        room = self._axis_width - look().px(6)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for value, y in ((high, plot.top() + line / 2 - 2), (low, plot.bottom() - line / 2 + 2)):
            painter.drawText(QRectF(0, y - line / 2, room, line), right, format_signed(value))

    def _paint_time_axis(self, painter: QPainter, box: QRectF, first: float, last: float) -> None:
        if not any(len(history.times) for history in self.histories):
            return
        painter.setFont(tick_font())
        painter.setPen(QColor(look().theme.muted))
        inner = box.adjusted(self._axis_width, 0, 0, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignLeft, f"{first:.4g}")
        if last - first > _MIN_TIME_SPAN:
            painter.drawText(inner, middle | Qt.AlignmentFlag.AlignRight, f"{last:.4g}")
        at = "time" if self.cursor_time is None else f"time {self.cursor_time:.4g}"
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignHCenter, at)

    # --- pointer

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        first, last = self._compute_time_span()
        share = (event.position().x() - self._axis_width) / max(1, self.width() - self._axis_width - 1)
        is_inside = 0 <= share <= 1 and any(len(history.times) for history in self.histories)
        self.cursor_time = first + share * (last - first) if is_inside else None
        self.update()

    def leaveEvent(self, event: QEvent | None) -> None:
        super().leaveEvent(event)
        self.cursor_time = None
        self.update()


def _dirty_rect(box: QRectF) -> QRect:
    """Return the area to repaint for a strip; its lowest line extends below its box by half of the line's width."""
    return box.adjusted(0, 0, 0, _GAP / 2).toAlignedRect()


def format_title_figures(strip: StripPlot, figures: Array, peak: float) -> tuple[list[str], list[str]]:
    """Return the texts for each curve in a title line: long with figures, and short with names only.

    The short version keeps the names because they explain the colors.
    """
    values = [format_signed(figures[curve.column]) for curve in strip.curves]
    long = [f"{curve.name} {value}".strip() for curve, value in zip(strip.curves, values, strict=True)]
    short = [curve.name or value for curve, value in zip(strip.curves, values, strict=True)]
    if strip.shows_peak and peak:
        long = [f"{value}, {figures[0] / peak:.1%} of modeled peak {format_signed(peak)}" for value in values]
    return long, short


def compute_axis_range(rows: Array, *, zero_centered: bool) -> tuple[float, float]:
    """Return the range of an axis that contains all rows and zero."""
    finite = rows[np.isfinite(rows)]
    low, high = (min(0.0, float(finite.min())), max(0.0, float(finite.max()))) if finite.size else (0.0, 1.0)
    if zero_centered:
        high = round_up_to_nice_number(max(high, -low, _MIN_VALUE_RANGE))
        return -high, high
    return (-round_up_to_nice_number(-low), round_up_to_nice_number(high)) if low < high else (0.0, 1.0)


def round_up_to_nice_number(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 3, 5, 7 times a power of ten that is at least `value`; 0 for 0."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(float(f"{step * power:.3g}") for step in (1, 1.5, 2, 3, 5, 7, 10) if step * power >= value * (1 - 1e-9))


def format_signed(value: float) -> str:
    """Format a figure with three digits, with a minus sign as wide as a digit."""
    size = abs(value)
    if not math.isfinite(value):
        text = "∞" if math.isinf(value) else "not a number"
    elif size == 0:
        text = "0"
    elif size >= 1e5 or size < 1e-3:
        mantissa, exponent = f"{size:.1e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    elif size >= 100:
        text = f"{size:.0f}"
    else:
        text = f"{size:.3g}"
    return ("−" if value < 0 else "") + text


def find_name_baseline(box: QRectF, height: float, x: Array, y: Array) -> float:
    """Return the baseline of a name at the bottom of a box, or at its top where a curve passes the bottom.

    Parameters
    ----------
    box : QRectF
        The part of the plot with the name's left end and width.
    x, y : arrays of shape (points,)
        The curve in pixels.
    """
    below = np.interp(np.linspace(box.left(), box.right(), 16), x, y).max() > box.bottom() - height - 4
    return float(box.top() + height if below else box.bottom() - 4)


def _resolve_color(theme: Theme, name: str) -> QColor:
    match name:
        case "first":
            return warp_color(theme, 3)
        case "second":
            return warp_color(theme, 1)
        case "red" | "green" | "blue":
            return QColor(theme.channels[_AXIS_COLORS.index(name)])
    return QColor(getattr(theme, name))


def _paint_curve(painter: QPainter, x: Array, y: Array) -> None:
    """Paint a line through the finite points; a single point is a dot."""
    finite = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], finite, [False]]).astype(np.int8)))
    for start, end in edges.reshape(-1, 2):
        points = [QPointF(a, b) for a, b in zip(x[start:end].tolist(), y[start:end].tolist(), strict=True)]
        if len(points) == 1:
            painter.drawEllipse(points[0], 1.5, 1.5)
        else:
            painter.drawPolyline(QPolygonF(points))
