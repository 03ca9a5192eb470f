"""Task graph of a run on several devices: tasks as cells, from the input down, and lines to their operands."""

from __future__ import annotations

from PyQt6.QtCore import QPointF, QRectF, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QPainter, QPainterPath, QPaintEvent, QPen

from gpu.distributed.layout import TaskCell, TaskEdge, short_bytes, short_time
from gui.painting.colors import mixed, warp_color
from gui.painting.lettering import Lettering
from gui.painting.theme import look
from gui.step_view.machines.canvas import LABELS, TaskCanvas
from gui.step_view.machines.moments import MachineMoments
from gui.widgets.basic import as_count

_WIDEST, _GAP = 150, 26
_LEAST_ROW, _MOST_ROW, _HIGHEST = 44, 96, 46


class TaskGraph(TaskCanvas):
    """Rows of Dask tasks; unfinished tasks are outlines."""

    def __init__(self) -> None:
        super().__init__("Tasks of several devices")

    def open(self, moments: MachineMoments) -> None:
        super().open(moments)
        self.setMinimumHeight(look().px(_LEAST_ROW) * (len(moments.layout.steps) + 1))

    def sizeHint(self) -> QSize:
        rows = 1 if self.moments is None else len(self.moments.layout.steps) + 1
        return QSize(look().px(520), look().px(72) * rows)

    # --- positions

    @property
    def _row(self) -> float:
        assert self.moments is not None
        return min(self.height() / (len(self.moments.layout.steps) + 1), look().px(_MOST_ROW))

    def box(self, cell: TaskCell) -> QRectF:
        """Return the box of a cell."""
        assert self.moments is not None
        left, columns = look().px(LABELS), self.moments.layout.columns
        column = min((self.width() - left - 8) / columns, look().px(_WIDEST + _GAP))
        width, height = column * _WIDEST / (_WIDEST + _GAP), min(self._row * 0.6, look().px(_HIGHEST))
        return QRectF(left + cell.column * column, 2 + cell.row * self._row, width, height)

    def task_at(self, place: QPointF) -> str | None:
        """Return the task under a point; for a chunk of the input, the task that reads it."""
        if self.moments is not None:
            layout = self.moments.layout
            for cells in (layout.tasks, layout.inputs):
                for name, cell in cells.items():
                    if self.box(cell).contains(place):
                        return name
        return None

    # --- painting

    def _restyle(self) -> None:
        super()._restyle()
        strong = QFont(self.font())
        strong.setPixelSize(look().text_px)
        strong.setWeight(QFont.Weight.DemiBold)
        self._strong = Lettering(strong)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.moments is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_labels(painter)
        layout, place = self.moments.layout, self.moments.place
        for name, cell in layout.inputs.items():
            if place[name] <= self.moment:
                self._paint_line(painter, self.box(cell), self.box(layout.tasks[name]), moved=False, share=0.7)
        for edge in layout.edges:
            if place[edge.to] <= self.moment:
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
        for step, moved in zip(layout.steps, layout.moved, strict=True):
            texts.append((step, f"{short_bytes(moved)} from others" if moved else "nothing from others"))
        height = min(self._row * 0.6, look().px(_HIGHEST)) / 2
        for row, (name, about) in enumerate(texts):
            box = QRectF(0, 2 + row * self._row, look().px(LABELS), height)
            painter.setFont(self._strong.font)
            painter.setPen(QColor(theme.text))
            self._strong.left(painter, box, name)
            painter.setFont(self._small.font)
            painter.setPen(QColor(theme.muted))
            self._small.left(painter, box.translated(0, height), about)

    def _paint_edge(self, painter: QPainter, edge: TaskEdge) -> None:
        assert self.moments is not None
        tasks = self.moments.layout.tasks
        newest = self.moments.now(self.moment)
        focus = self.picked or (newest.task if newest is not None else None)
        is_highlighted = focus in (edge.to, edge.source) if self.picked else focus == edge.to
        share = 1.0 if is_highlighted else 0.45
        self._paint_line(painter, self.box(tasks[edge.source]), self.box(tasks[edge.to]), moved=edge.moved, share=share)

    def _paint_line(self, painter: QPainter, above: QRectF, below: QRectF, *, moved: bool, share: float) -> None:
        theme = look().theme
        begin, end = QPointF(above.center().x(), above.bottom()), QPointF(below.center().x(), below.top())
        bend = (end.y() - begin.y()) / 2
        path = QPainterPath(begin)
        path.cubicTo(begin + QPointF(0, bend), end - QPointF(0, bend), end)
        color = mixed(theme.accent if moved else theme.muted, theme.surface, share)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(color, 2.2 if moved else 1.3))
        painter.drawPath(path)

    def _paint_input(self, painter: QPainter, cell: TaskCell) -> None:
        theme, box = look().theme, self.box(cell)
        first, behind = cell.record.elements or (0, 0)
        painter.setBrush(QColor(theme.surface))
        painter.setPen(QPen(QColor(theme.muted), 1.2))
        painter.drawRoundedRect(box, 6, 6)
        self._write(painter, box, as_count(behind - first), f"from {as_count(first)}", theme.text, theme.muted)

    def _paint_task(self, painter: QPainter, name: str, cell: TaskCell) -> None:
        assert self.moments is not None
        theme, box, record = look().theme, self.box(cell), cell.record
        ended, newest = self.moments.place[name] <= self.moment, self.moments.place[name] == self.moment
        number = self.moments.workers.get(record.worker)
        color = QColor(theme.muted) if number is None else warp_color(theme, number)
        painter.setBrush(
            mixed(color.name(), theme.surface, 0.42 if newest else 0.2) if ended else QColor(theme.surface)
        )
        edge = QPen(color if ended else QColor(theme.border), 2.0 if newest else 1.4)
        if name == self.picked:
            edge = QPen(QColor(theme.text), 2.4)
        painter.setPen(edge)
        painter.drawRoundedRect(box, 6, 6)
        if ended:
            size = short_bytes(sum(size for _, size in record.made))
            about = f"{size} · {short_time(record.end - record.begin)}"
            self._write(painter, box, self.moments.who(record.worker), about, theme.text, theme.muted)

    def _write(self, painter: QPainter, box: QRectF, name: str, about: str, ink: str, faint: str) -> None:
        """Write two lines if they fit, else the first line, else its last word."""
        line_height, width = self._small.font.pixelSize() + 4, box.width() - 6
        fits_both = box.height() >= 2 * line_height and self._small.width(about) <= width
        name = next((each for each in (name, name.rpartition(" ")[2]) if self._strong.width(each) <= width), "")
        upper = QRectF(box.x(), box.y(), box.width(), box.height() / 2 + 2) if fits_both else box
        painter.setFont(self._strong.font)
        painter.setPen(QColor(ink))
        self._strong.center(painter, upper, name)
        if fits_both:
            painter.setFont(self._small.font)
            painter.setPen(QColor(faint))
            lower = QRectF(box.x(), box.center().y() - 1, box.width(), box.height() / 2 - 2)
            self._small.center(painter, lower, about)
