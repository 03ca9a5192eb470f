"""Task graph of a run on several devices: tasks as cells, from the input down, and lines to their operands."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QPainter, QPainterPath, QPaintEvent, QPen

from gpu.distributed.task_layout import TaskCell, TaskEdge, format_short_bytes, format_short_time
from gui.painting.colors import mix_colors, warp_color
from gui.painting.lettering import Lettering
from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look, resize_font
from gui.step_view.machines.canvas import LABEL_WIDTH, TaskCanvas
from gui.step_view.machines.moments import MachineMoments
from gui.widgets.basic import format_count

_MAX_CELL_WIDTH, _GAP = 150, 26
_MIN_ROW_HEIGHT, _MAX_ROW_HEIGHT, _MAX_CELL_HEIGHT = 44, 96, 46


class TaskGraph(TaskCanvas):
    """Rows of Dask tasks; unfinished tasks are outlines."""

    def __init__(self) -> None:
        super().__init__("Tasks of several devices")

    def open(self, moments: MachineMoments) -> None:
        super().open(moments)
        self.setMinimumHeight(look().px(_MIN_ROW_HEIGHT) * (len(moments.layout.steps) + 1))

    def sizeHint(self) -> QSize:
        rows = 1 if self.moments is None else len(self.moments.layout.steps) + 1
        return QSize(look().px(520), look().px(72) * rows)

    # --- positions

    @property
    def _row_height(self) -> float:
        assert self.moments is not None
        return min(self.height() / (len(self.moments.layout.steps) + 1), look().px(_MAX_ROW_HEIGHT))

    def box(self, cell: TaskCell) -> QRectF:
        """Return the box of a cell."""
        assert self.moments is not None
        left, columns = look().px(LABEL_WIDTH), self.moments.layout.columns
        column = min((self.width() - left - 8) / columns, look().px(_MAX_CELL_WIDTH + _GAP))
        width, height = (
            column * _MAX_CELL_WIDTH / (_MAX_CELL_WIDTH + _GAP),
            min(self._row_height * 0.6, look().px(_MAX_CELL_HEIGHT)),
        )
        return QRectF(left + cell.column * column, 2 + cell.row * self._row_height, width, height)

    def task_at(self, point: QPointF) -> str | None:
        """Return the task under a point; for a chunk of the input, the task that reads it."""
        if self.moments is not None:
            layout = self.moments.layout
            for cells in (layout.tasks, layout.inputs):
                for name, cell in cells.items():
                    if self.box(cell).contains(point):
                        return name
        return None

    # --- painting

    def _restyle(self) -> None:
        super()._restyle()
        strong = resize_font(self.font(), look().text_px)
        strong.setWeight(QFont.Weight.DemiBold)
        self._bold_lettering = Lettering(strong)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.moments is None:
            return
        painter = create_smooth_painter(self)
        self._paint_labels(painter)
        layout, moments_by_task = self.moments.layout, self.moments.end_moments
        for name, cell in layout.inputs.items():
            if moments_by_task[name] <= self.moment:
                self._paint_line(painter, self.box(cell), self.box(layout.tasks[name]), moved=False, share=0.7)
        for edge in layout.edges:
            if moments_by_task[edge.target] <= self.moment:
                self._paint_edge(painter, edge)
        for cell in layout.inputs.values():
            self._paint_input(painter, cell)
        for name, cell in layout.tasks.items():
            self._paint_task(painter, name, cell)
        painter.end()

    def _paint_labels(self, painter: QPainter) -> None:
        assert self.moments is not None
        theme, layout = look().theme, self.moments.layout
        texts = [("input", "elements of each chunk")]
        for step, moved in zip(layout.steps, layout.transferred_bytes, strict=True):
            texts.append((step, f"{format_short_bytes(moved)} from others" if moved else "nothing from others"))
        height = min(self._row_height * 0.6, look().px(_MAX_CELL_HEIGHT)) / 2
        for row, (name, about) in enumerate(texts):
            box = QRectF(0, 2 + row * self._row_height, look().px(LABEL_WIDTH), height)
            painter.setFont(self._bold_lettering.font)
            painter.setPen(QColor(theme.text))
            self._bold_lettering.paint_left(painter, box, name)
            painter.setFont(self._small_lettering.font)
            painter.setPen(QColor(theme.muted))
            self._small_lettering.paint_left(painter, box.translated(0, height), about)

    def _paint_edge(self, painter: QPainter, edge: TaskEdge) -> None:
        assert self.moments is not None
        tasks = self.moments.layout.tasks
        newest = self.moments.task_ending_at(self.moment)
        focus = self.picked or (newest.task if newest is not None else None)
        is_highlighted = focus in (edge.target, edge.source) if self.picked else focus == edge.target
        share = 1.0 if is_highlighted else 0.45
        self._paint_line(
            painter, self.box(tasks[edge.source]), self.box(tasks[edge.target]), moved=edge.crosses_workers, share=share
        )

    def _paint_line(self, painter: QPainter, above: QRectF, below: QRectF, *, moved: bool, share: float) -> None:
        theme = look().theme
        begin, end = QPointF(above.center().x(), above.bottom()), QPointF(below.center().x(), below.top())
        bend = (end.y() - begin.y()) / 2
        path = QPainterPath(begin)
        path.cubicTo(begin + QPointF(0, bend), end - QPointF(0, bend), end)
        color = mix_colors(theme.accent if moved else theme.muted, theme.surface, share)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(color, 2.2 if moved else 1.3))
        painter.drawPath(path)

    def _paint_input(self, painter: QPainter, cell: TaskCell) -> None:
        theme, box = look().theme, self.box(cell)
        first, behind = cell.record.elements or (0, 0)
        painter.setBrush(QColor(theme.surface))
        painter.setPen(QPen(QColor(theme.muted), 1.2))
        painter.drawRoundedRect(box, 6, 6)
        self._draw_cell_text(
            painter, box, format_count(behind - first), f"from {format_count(first)}", theme.text, theme.muted
        )

    def _paint_task(self, painter: QPainter, name: str, cell: TaskCell) -> None:
        assert self.moments is not None
        theme, box, record = look().theme, self.box(cell), cell.record
        ended, newest = self.moments.end_moments[name] <= self.moment, self.moments.end_moments[name] == self.moment
        number = self.moments.workers.get(record.worker)
        color = QColor(theme.muted) if number is None else warp_color(theme, number)
        painter.setBrush(
            mix_colors(color.name(), theme.surface, 0.42 if newest else 0.2) if ended else QColor(theme.surface)
        )
        edge = QPen(color if ended else QColor(theme.border), 2.0 if newest else 1.4)
        if name == self.picked:
            edge = QPen(QColor(theme.text), 2.4)
        painter.setPen(edge)
        painter.drawRoundedRect(box, 6, 6)
        if ended:
            size = format_short_bytes(sum(size for _, size in record.result_parts))
            about = f"{size} · {format_short_time(record.end - record.begin)}"
            self._draw_cell_text(painter, box, self.moments.name_worker(record.worker), about, theme.text, theme.muted)

    def _draw_cell_text(
        self, painter: QPainter, box: QRectF, name: str, details: str, name_color: str, details_color: str
    ) -> None:
        """Write two lines if they fit, else the first line, else its last word."""
        line_height, width = self._small_lettering.font.pixelSize() + 4, box.width() - 6
        fits_both = box.height() >= 2 * line_height and self._small_lettering.width(details) <= width
        name = next((each for each in (name, name.rpartition(" ")[2]) if self._bold_lettering.width(each) <= width), "")
        upper = QRectF(box.x(), box.y(), box.width(), box.height() / 2 + 2) if fits_both else box
        painter.setFont(self._bold_lettering.font)
        painter.setPen(QColor(name_color))
        self._bold_lettering.paint_centered(painter, upper, name)
        if fits_both:
            painter.setFont(self._small_lettering.font)
            painter.setPen(QColor(details_color))
            lower = QRectF(box.x(), box.center().y() - 1, box.width(), box.height() / 2 - 2)
            self._small_lettering.paint_centered(painter, lower, details)
