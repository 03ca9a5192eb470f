"""Handout: a printable strip of a recording's phases, each with picture, source lines and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtCore import QBuffer, QIODevice, QMarginsF, QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QPageLayout, QPageSize, QPainter, QPdfWriter, QPen

from gpu.files.file_access import write_file
from gui.painting.theme import FONT_SIZES, LIGHT, Look, code_font
from gui.qt.exported_files import write_svg
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.labels import label_font, label_width
from gui.step_view.dataflow.layout import DataflowLayout, compute_metrics
from gui.step_view.export.files import Caption
from gui.step_view.recording.models import RecordingModels
from gui.widgets.basic import format_count

if TYPE_CHECKING:
    from gpu.stepping.phases import Phase
    from gpu.stepping.tally import Counts

WIDTH = 1000
"""Default width of a strip, in its own units."""
SIDE, _GAP = 14, 16
_MAX_COLUMN_WIDTH = 52.0
_MAX_LINES = 3
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

Paint = Callable[[QPainter], None]


@dataclass(frozen=True)
class StripPart:
    """A part of a strip that is not split between pages: its height, and a function that paints it at the origin."""

    height: float
    paint: Paint


@dataclass(frozen=True)
class _TextStyle:
    size: int = 12
    """Font size in the strip's units."""
    bold: bool = False
    muted: bool = False
    right: bool = False
    code: bool = False


_TITLE = _TextStyle(17, bold=True)
_PHASE_TITLE = _TextStyle(15, bold=True)
_NOTE = _TextStyle(muted=True)
_RIGHT_NOTE = _TextStyle(muted=True, right=True)
_CODE = _TextStyle(code=True)


class Handout:
    """The handout of a recording, always in the light theme.

    Parameters
    ----------
    layout : DataflowLayout
        The recording's dataflow, with values or symbols as texts.
    width : int
        Width of the strip in its own units: a narrower strip has larger text in the same figure.
    """

    def __init__(self, layout: DataflowLayout, models: RecordingModels, caption: Caption, width: int = WIDTH) -> None:
        self.width = width
        self._look = Look(LIGHT, FONT_SIZES["normal"])
        self._layout, self._models, self._caption = layout, models, caption
        label = label_width(layout, self._look, 180)
        column = min(_MAX_COLUMN_WIDTH, (self.width - label - 2 * SIDE) / max(layout.columns, 1))
        sizes = compute_metrics(self._look, column, label)
        self._flow = FlowPainter(layout, sizes, self._look)
        self.panels = [
            self._make_head(),
            *(self._make_panel(number, phase) for number, phase in enumerate(self.phases, 1)),
        ]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Return the phases to show: named ones if there are any, else the segments between barriers."""
        from gpu.stepping.phases import Phase

        named = tuple(phase for phase in self._models.data.phases.intervals if phase.name)
        return named or tuple(
            Phase(segment.first, segment.last, segment.label or "…", segment.launch)
            for segment in self._models.data.segments
        )

    # --- parts

    def _make_head(self) -> StripPart:
        def paint(painter: QPainter) -> None:
            middle = self.width / 2
            self._draw_text(painter, QRectF(SIDE, 0, middle, 34), self._caption.title, _TITLE)
            self._draw_text(painter, QRectF(middle, 0, middle - SIDE, 34), self._caption.settings, _RIGHT_NOTE)
            counts = self._models.data.tally.counts_at(self._models.recording.event_count)
            self._draw_text(painter, self._line_box(32, 20), f"Total: {_format_counts(counts)}", _NOTE)

        return StripPart(60, paint)

    def _line_box(self, top: float, height: float) -> QRectF:
        """Return the box of a line of text, as wide as the strip inside its margins."""
        return QRectF(SIDE, top, self.width - 2 * SIDE, height)

    def _phase_rows(self, phase: Phase) -> range:
        """Return the rows that a phase wrote and the row before them; if it wrote none, the current row."""
        written = [number for number, row in enumerate(self._layout.rows)
                if row.computed.any() and phase.first <= row.first < phase.last]  # fmt: skip
        if written:
            return range(max(written[0] - 1, 0), written[-1] + 1)
        latest = max(self._layout.row_at(phase.last), 0)
        return range(latest, latest + 1) if self._layout.rows else range(0)

    def _make_panel(self, number: int, phase: Phase) -> StripPart:
        rows, sizes = self._phase_rows(phase), self._flow.sizes
        figure = len(rows) * sizes.pitch - (sizes.pitch - sizes.cell) + self._operations_height + 6
        lines = self._phase_lines(phase, rows)
        below = 20 * (len(lines) + 1)
        counts = self._models.data.tally.counts_between(phase.first, phase.last)
        steps = f"steps {phase.first + 1} to {phase.last}"

        def paint(painter: QPainter) -> None:
            painter.save()
            painter.translate(0, 34)
            self._paint_rows(painter, rows, phase.last)
            painter.restore()
            # SVG drawings are not clipped: hide the lines to the first row behind the title.
            painter.fillRect(QRectF(0, 0, self.width, 34), QColor(LIGHT.surface))
            painter.setPen(QPen(QColor(LIGHT.border), 1))
            painter.drawLine(QPointF(SIDE, 0), QPointF(self.width - SIDE, 0))
            title = f"{number}   {phase.name}"
            self._draw_text(painter, self._line_box(6, 24), title, _PHASE_TITLE)
            self._draw_text(painter, self._line_box(6, 24), steps, _RIGHT_NOTE)
            top = 34 + figure
            for index, line in enumerate(lines):
                self._draw_text(painter, self._line_box(top + 20 * index, 20), line, _CODE)
            self._draw_text(painter, self._line_box(top + 20 * len(lines), 20), _format_counts(counts), _NOTE)

        return StripPart(34 + figure + below + _GAP, paint)

    @property
    def _operations_height(self) -> float:
        """Return the height of the operations above a picture's first row."""
        return min(self._flow.sizes.pitch - self._flow.sizes.cell, 17.0)

    def _phase_lines(self, phase: Phase, rows: range) -> list[str]:
        """Return the numbered source lines that wrote a phase's values, or else its first line."""
        recording, models = self._models.recording, self._models
        events = [int(self._layout.rows[row].first) for row in rows if self._layout.rows[row].first >= phase.first]
        lines_by_text: dict[str, None] = {}
        for event in events or range(phase.first, min(phase.first + 1, phase.last)):
            text, line = recording.text(models.files[event]).split("\n"), int(models.lines[event])
            if 0 < line <= len(text):
                lines_by_text[f"{line}  {text[line - 1].strip()}"] = None
        return list(lines_by_text)[:_MAX_LINES]

    def _paint_rows(self, painter: QPainter, rows: range, moment: int) -> None:
        if not rows:
            return
        flow, layout = self._flow, self._layout
        sizes = flow.sizes
        gap = sizes.pitch - sizes.cell
        top = sizes.top(rows.start) - self._operations_height
        painter.translate(0, -top)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        flow.labels.paint(painter, rows, moment, -1, 0, self.width)
        painter.translate(sizes.label, 0)
        phases, done = layout.all_progress(moment)
        right = layout.width(sizes)
        for number in rows:
            painter.save()
            # The sources of lines to the first row are outside of the picture.
            above = self._operations_height if number == rows.start else gap
            painter.setClipRect(QRectF(-2, sizes.top(number) - above, right + 4, sizes.cell + above + 1))
            flow.paint_row(painter, number, int(phases[number]), done, 0, right)
            painter.restore()

    def _draw_text(self, painter: QPainter, box: QRectF, text: str, style: _TextStyle) -> None:
        font = code_font(style.size) if style.code else QFont(label_font(self._look))
        font.setPixelSize(style.size)
        font.setBold(style.bold)
        painter.setFont(font)
        painter.setPen(QColor(LIGHT.muted if style.muted else LIGHT.text))
        painter.drawText(box, _RIGHT if style.right else _LEFT, text)

    # --- files

    @property
    def size(self) -> QSize:
        """Return the size of the whole strip."""
        return QSize(self.width, round(sum(panel.height for panel in self.panels)) + _GAP)

    def paint(self, painter: QPainter) -> None:
        """Paint the whole strip."""
        painter.fillRect(QRectF(0, 0, self.size.width(), self.size.height()), QColor(LIGHT.surface))
        self._paint_panels(painter, self.panels)

    @staticmethod
    def _paint_panels(painter: QPainter, panels: list[StripPart]) -> None:
        top = float(_GAP) / 2
        for panel in panels:
            painter.save()
            painter.translate(0, top)
            panel.paint(painter)
            painter.restore()
            top += panel.height

    def pages(self, height: float) -> Iterator[list[StripPart]]:
        """Yield the panels of each page, given its height in the strip's units; a higher panel gets a separate page."""
        page: list[StripPart] = []
        for panel in self.panels:
            if page and sum(each.height for each in page) + panel.height + _GAP > height:
                yield page
                page = []
            page.append(panel)
        yield page

    def write(self, path: Path) -> None:
        """Write an .svg drawing or a .pdf document with pages; raise InputError if that fails."""
        if path.suffix.lower() == ".svg":
            write_svg(path, self.size, self.paint)
            return
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        document = QPdfWriter(buffer)
        document.setTitle(self._caption.title)
        document.setCreator("Lockstep")
        document.setPageLayout(
            QPageLayout(QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, QMarginsF(12, 12, 12, 12),
                        QPageLayout.Unit.Millimeter)
        )  # fmt: skip
        document.setResolution(144)
        room = document.pageLayout().paintRectPixels(144)
        scale = room.width() / self.width
        painter = QPainter(document)
        for number, page in enumerate(self.pages(room.height() / scale)):
            if number:
                document.newPage()
            painter.save()
            shrink = min(1.0, room.height() / scale / (sum(panel.height for panel in page) + _GAP))
            painter.scale(scale * shrink, scale * shrink)
            self._paint_panels(painter, page)
            painter.restore()
        painter.end()
        write_file(path, buffer.data().data())


def _format_counts(counts: Counts) -> str:
    """Return counts as text, omitting zeros except for steps and operations."""
    parts = [_format_quantity(counts.steps, "step"), _format_quantity(counts.operations, "operation")]
    if counts.idle_fraction is not None and counts.operations:
        parts.append(f"{counts.idle_fraction:.0%} idle lanes")
    parts += [
        _format_quantity(number, name)
        for number, name in (
            (counts.barriers, "barrier"), (counts.divergent_branches, "divergent branch"), (counts.sectors, "sector"),
            (counts.bank_conflicts, "bank conflict"),
        )
        if number
    ]  # fmt: skip
    return "  ·  ".join(parts)


def _format_quantity(number: int, name: str) -> str:
    return f"{format_count(number)} {name}{'' if number == 1 else 'es' if name.endswith('ch') else 's'}"
