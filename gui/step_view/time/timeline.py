"""Timeline of a recording: segments between barriers, phases, findings, and the current moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent
from PyQt6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu.declaration.pattern import Array
from gpu.stepping.segments import Segment
from gui.painting.colors import mix_colors
from gui.painting.painters import create_smooth_painter
from gui.painting.pixmaps import Pixmaps, paint_pixmap
from gui.painting.theme import look, resize_font
from gui.qt.events import StyleListener
from gui.step_view.time.name_places import PlacedName, Span, place_name, place_names

if TYPE_CHECKING:
    from gpu.stepping.phases import Phase

_MIN_SEGMENT_WIDTH = 26.0
_MIN_GAP = 12
"""Minimum distance in pixels between adjacent names, at the normal text size."""
_MIN_CHARACTERS = 3
"""Minimum number of characters of an elided word."""
_SEGMENT_MARGIN = 6
"""Pixels left and right of a segment's name, together."""


def shorten_label(label: str, metric: QFontMetricsF, max_width: float) -> str:
    """Return a label elided to `max_width` pixels; of "distance = 64", only the number is kept."""
    if metric.horizontalAdvance(label) <= max_width:
        return label
    text = metric.elidedText(label.rpartition(" = ")[2], Qt.TextElideMode.ElideRight, max_width)
    visible_part = text.removesuffix("…").strip()
    return text if visible_part == text or visible_part.isdigit() or len(visible_part) >= _MIN_CHARACTERS else ""


class Timeline(StyleListener, QWidget):
    """A slider over moments, controlled by clicks and drags."""

    moment_requested = pyqtSignal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Timeline of the recording")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.segments: tuple[Segment, ...] = ()
        self.findings: tuple[tuple[int, str], ...] = ()
        self.moment = 0
        self.phases: tuple[Phase, ...] = ()
        self._names: tuple[str, ...] = ()
        self._segment_names: list[str] | None = None
        self._phase_places: list[PlacedName | None] | None = None
        self._pictures = Pixmaps()
        self._borders: Array = np.zeros(1)
        self._cached_edges: Array | None = None

    def open(
        self,
        segments: Sequence[Segment],
        findings: Sequence[tuple[int, str]],
        names: Sequence[str],
        phases: Sequence[Phase] = (),
    ) -> None:
        """Set the recording.

        Parameters
        ----------
        segments : sequence of Segment
            Segments between barriers.
        findings : sequence of (int, str)
            Moments and texts of findings.
        names : sequence of str
            Kernel of each launch.
        phases : sequence of Phase
            Named phases.
        """
        self.segments, self.findings, self._names = tuple(segments), tuple(findings), tuple(names)
        self.phases = tuple(phases)
        self.moment = 0
        self._borders = np.array([*(segment.first for segment in segments), segments[-1].last if segments else 0])
        self._pictures.clear()
        self._invalidate()
        self.updateGeometry()

    def show_moment(self, moment: int) -> None:
        """Show the current moment."""
        self.moment = moment
        self.setAccessibleDescription(f"step {moment}")
        self.update()

    def _invalidate(self) -> None:
        self._segment_names = self._phase_places = None
        self._cached_edges = None
        self.update()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._invalidate()

    def _restyle(self) -> None:
        self._invalidate()

    def sizeHint(self) -> QSize:
        captions = look().px(16) * (bool(self.phases) + (len(self._names) > 1))
        return QSize(300, look().px(42) + captions + (self._caption_offset if captions else 0))

    @property
    def _caption_offset(self) -> int:
        """Return the vertical offset of phases and kernel names, which leaves space for findings above them."""
        return look().px(6) if self.findings else 0

    @property
    def _names_offset(self) -> int:
        """Return the offset of the kernel names below the segments, which leaves space for the phases."""
        return 5 + self._caption_offset + (look().px(16) if self.phases else 0)

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.sizeHint().height())

    # --- positions

    def _edges(self) -> Array:
        """Return the x of every border; widths grow with the square root of the length, above a minimum."""
        if self._cached_edges is not None:
            return self._cached_edges
        lengths = np.array([segment.last - segment.first for segment in self.segments], float)
        room = self.width() - 2.0 * look().px(4)
        min_width = min(_MIN_SEGMENT_WIDTH, 0.6 * room / max(lengths.size, 1))
        # The square root keeps short segments readable next to long ones.
        shares = np.sqrt(np.maximum(lengths, 1))
        widths = min_width + shares / shares.sum() * (room - min_width * lengths.size)
        self._cached_edges = look().px(4) + np.concatenate([[0.0], np.cumsum(widths)])
        return self._cached_edges

    def x_of(self, moment: float) -> float:
        """Return the x of a moment."""
        if not self.segments:
            return 0.0
        return float(np.interp(moment, self._borders, self._edges()))

    def moment_at(self, x: float) -> int:
        """Return the moment at an x."""
        if not self.segments:
            return 0
        return round(float(np.interp(x, self._edges(), self._borders)))

    # --- painting

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if not self.segments:
            return
        painter = create_smooth_painter(self)
        theme, edges = look().theme, self._edges()
        top, height = look().px(11), look().px(26)
        # Past and future are painted once each; the current moment determines the border between them.
        before = self._picture("past", partial(self._paint_segments, passed=True))
        after = self._picture("future", partial(self._paint_segments, passed=False))
        marks = self._picture("marks", partial(self._paint_marks, edges=edges))
        number = max(0, int(np.searchsorted(self._borders[:-1], self.moment)) - 1)
        if self.moment:
            left, right = edges[number], edges[number + 1]
            past = QRectF(0, 0, left, self.height())
            painter.drawPixmap(past.topLeft(), before, QRectF(0, 0, left * self._ratio, self.height() * self._ratio))
            future = QRectF(right * self._ratio, 0, (self.width() - right) * self._ratio, self.height() * self._ratio)
            painter.drawPixmap(QPointF(right, 0), after, future)
            self._paint_segment(painter, number, left, right, passed=True, current=True)
        else:
            painter.drawPixmap(0, 0, after)
        painter.drawPixmap(0, 0, marks)
        for phase in self.phases:
            if phase.name and phase.first < self.moment <= phase.last:
                self._paint_current_phase(painter, phase)
        x = self.x_of(self.moment)
        painter.setPen(QPen(QColor(theme.text), 2))
        painter.drawLine(QPointF(x, top - 3), QPointF(x, top + height + 3))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.text))
        painter.drawEllipse(QPointF(x, top - 5), 5, 5)
        painter.end()

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    def _picture(self, name: str, paint: Callable[[QPainter], None]) -> QPixmap:
        """Return a cached picture of the timeline's size, painted if size or look changed."""
        key = (name, self.width(), self.height(), self._ratio, look())
        return self._pictures.find_or_paint(key, lambda: paint_pixmap(self.size() * self._ratio, self._ratio, paint))

    def _paint_segments(self, painter: QPainter, *, passed: bool) -> None:
        for number, (left, right) in enumerate(pairwise(self._edges().tolist())):
            self._paint_segment(painter, number, left, right, passed=passed, current=False)

    def _paint_marks(self, painter: QPainter, edges: Array) -> None:
        """Paint the launches, phases and findings."""
        bottom = look().px(11) + look().px(26)
        self._paint_phases(painter)
        self._paint_launches(painter, edges, bottom)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look().theme.bad))
        for moment, _ in self.findings:
            x = self.x_of(moment + 1)
            painter.drawPolygon(QPointF(x - 6, bottom + 9), QPointF(x + 6, bottom + 9), QPointF(x, bottom))

    def _paint_segment(
        self, painter: QPainter, number: int, left: float, right: float, *, passed: bool, current: bool
    ) -> None:
        theme = look().theme
        single = len(self.segments) > 60
        box = QRectF(left, look().px(11), max(right - left - (0 if single else 2), 1), look().px(26))
        ground = mix_colors(theme.accent, theme.surface, 0.16 if passed else 0.0)
        if single:
            painter.fillRect(box, ground if not current else mix_colors(theme.accent, theme.surface, 0.4))
            return
        painter.setPen(QPen(QColor(theme.accent if current else theme.border), 1))
        painter.setBrush(ground)
        painter.drawRoundedRect(box, 4, 4)
        elapsed = QRectF(box.left() + 1, box.top() + 1, self.x_of(self.moment) - box.left() - 2, box.height() - 2)
        if current and elapsed.width() > 2:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mix_colors(theme.accent, theme.surface, 0.36))
            painter.drawRoundedRect(elapsed, 3, 3)
        font = resize_font(self.font(), look().small_px)
        painter.setFont(font)
        painter.setPen(QColor(theme.text if passed else theme.muted))
        metric = QFontMetricsF(font)
        label = shorten_label(self.segment_names(metric)[number], metric, box.width() - _SEGMENT_MARGIN)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)

    def segment_names(self, metric: QFontMetricsF) -> list[str]:
        """Return the segments' names: of "distance = 64" only the number in all of them, if one of them lacks room."""
        if self._segment_names is None:
            rooms = (np.diff(self._edges()) - 2 - _SEGMENT_MARGIN).tolist()
            lacks_room = any(
                " = " in each.label and metric.horizontalAdvance(each.label) > room
                for each, room in zip(self.segments, rooms, strict=True)
            )
            self._segment_names = [
                each.label.rpartition(" = ")[2] if lacks_room else each.label for each in self.segments
            ]
        return self._segment_names

    def _paint_phases(self, painter: QPainter) -> None:
        """Paint the phases' lines below the segments, and their names below these."""
        for phase in self.phases:
            self._paint_phase_line(painter, phase, look().theme.border)
        painter.setFont(self._small_font())
        painter.setPen(QColor(look().theme.muted))
        for place in self._place_phase_names():
            if place is not None:
                self._paint_phase_name(painter, place)

    def _paint_current_phase(self, painter: QPainter, phase: Phase) -> None:
        """Paint the current phase's line and its whole name, instead of other names that are in its way."""
        theme, font = look().theme, self._small_font()
        self._paint_phase_line(painter, phase, theme.accent)
        width = QFontMetricsF(font).horizontalAdvance(phase.name)
        current = place_name(phase.name, self._phase_span(phase), width, self._row)
        for place in (current, *self._place_phase_names()):
            if place is not None and place.overlaps(current, look().px(_MIN_GAP)):
                painter.fillRect(self._name_box(place).adjusted(-1, 0, 1, 0), QColor(theme.surface))
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        self._paint_phase_name(painter, current)

    def _paint_phase_line(self, painter: QPainter, phase: Phase, color: str) -> None:
        left, right = self._phase_span(phase)
        if phase.name and right - left >= 1:
            painter.fillRect(QRectF(left, self._phases_top, right - left, 2), QColor(color))

    def _paint_phase_name(self, painter: QPainter, place: PlacedName) -> None:
        flags = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip)
        painter.drawText(self._name_box(place), flags, place.text)

    def _name_box(self, place: PlacedName) -> QRectF:
        return QRectF(place.left, self._phases_top + 2, place.width, look().px(16) - 2)

    def _phase_span(self, phase: Phase) -> Span:
        return self.x_of(phase.first), self.x_of(phase.last) - 2

    def _small_font(self) -> QFont:
        return resize_font(self.font(), look().small_px)

    @property
    def _phases_top(self) -> int:
        return look().px(11) + look().px(26) + 3 + self._caption_offset

    @property
    def _row(self) -> Span:
        """The left and right end of the row of names."""
        return float(look().px(4)), float(self.width() - look().px(4))

    def _place_phase_names(self) -> list[PlacedName | None]:
        if self._phase_places is None:
            metric = QFontMetricsF(self._small_font())
            names, spans = [each.name for each in self.phases], [self._phase_span(each) for each in self.phases]
            gap = float(look().px(_MIN_GAP))
            self._phase_places = place_names(names, spans, metric.horizontalAdvance, self._row, gap)
        return self._phase_places

    @property
    def shown_phase_names(self) -> list[str]:
        """The text below each phase while it is not the current one: its name, its number or nothing."""
        return ["" if place is None else place.text for place in self._place_phase_names()]

    def _paint_launches(self, painter: QPainter, edges: Array, bottom: float) -> None:
        if len(self._names) < 2:
            return
        font = resize_font(self.font(), look().small_px)
        painter.setFont(font)
        metric = QFontMetricsF(font)
        for number, segment in enumerate(self.segments):
            if number and segment.launch == self.segments[number - 1].launch:
                continue
            last = max(other for other, each in enumerate(self.segments) if each.launch == segment.launch)
            left, right = edges[number], edges[last + 1]
            box = QRectF(left, bottom + self._names_offset, right - left - look().px(_MIN_GAP), look().px(15))
            painter.setPen(QColor(look().theme.muted))
            text = metric.elidedText(self._names[segment.launch], Qt.TextElideMode.ElideRight, box.width())
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            if number:
                painter.setPen(QPen(QColor(look().theme.faint), 1))
                painter.drawLine(
                    QPointF(left - 1, bottom - look().px(28)),
                    QPointF(left - 1, bottom + self._names_offset + look().px(11)),
                )

    # --- mouse

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        self.moment_requested.emit(self.moment_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        if event.buttons():
            self.moment_requested.emit(self.moment_at(event.position().x()))
            return
        near = [text for moment, text in self.findings if abs(self.x_of(moment + 1) - event.position().x()) < 6]
        moment_here = self.moment_at(event.position().x())
        names = [segment.label for segment in self.segments if segment.first <= moment_here < segment.last]
        names += [phase.name for phase in self.phases if phase.first <= moment_here < phase.last]
        text = "\n".join(near or [": ".join((f"step {moment_here}", *(name for name in names[::-1] if name)))])
        QToolTip.showText(event.globalPosition().toPoint(), text, self)
