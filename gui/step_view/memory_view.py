"""Arrays as grids of values, with what the statement reads and writes: for images, tiles and their halos."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PyQt6.QtWidgets import QToolTip, QWidget

from gpu.pattern import Array
from gui.step_view.colours import warp_colour
from gui.step_view.flow_lines import squares
from gui.step_view.flow_words import who
from gui.step_view.memory_paint import Grid, Panel
from gui.step_view.values import as_text
from gui.theme import look

if TYPE_CHECKING:
    from gui.step_view.models import Models

_WRAP = 32
_MOST = 4096
_GAP = 22


@dataclass(frozen=True, eq=False)
class Touched:
    """What one event does to an array: elements, and by which block and thread each."""

    number: int
    writes: bool
    elements: Array
    blocks: Array
    threads: Array


def touched(trace: Any, event: int) -> list[Touched]:
    """Return what an event reads and writes, by array."""
    if not 0 <= event < len(trace.events):
        return []
    found = []
    each = trace.events[event]
    for access in each.accesses:
        blocks = trace.block_of(each.gang, access.lanes)
        threads = access.lanes % trace.lanes_per_block
        for number in np.unique(access.arrays).tolist():
            if trace.arrays[number].space == "local":
                continue
            own = access.arrays == number
            found.append(Touched(number, access.action != "read", access.elements[own], blocks[own], threads[own]))
    return found


def written(trace: Any, array: Any, step: int) -> Array:
    """Return which elements of an array the launch has written before a step."""
    memory, log = trace.about["memories"][array.memory], trace.log(array.memory)
    start = (array.number - trace.first_array[array.memory]) * memory["stride"]
    places = (start + np.arange(array.count) * array.dtype.itemsize) // log.unit
    found: Array = log.last_write(places, trace.writes_before(array.memory, step)) >= 0
    return found


def panels(
    trace: Any, shapes: Any, step: int, block: int, touches: list[Touched], given: Collection[str]
) -> list[Panel]:
    """Return the arrays to show at a step of a launch: those of the launch, and the shared ones of a block.

    `given` are the names of those that held something before.
    """
    made = []
    for array in trace.arrays:
        if array.space == "local" or (array.block is not None and array.block != block) or not array.count:
            continue
        if array.space == "constant" and not trace.touches(array.memory):
            continue
        shape = tuple(shapes[array.number]) if shapes is not None and shapes[array.number] else (array.count,)
        values = trace.array(array.number, step)[: array.count]
        there = np.ones(array.count, bool)
        if array.space != "constant" and array.name not in given:
            there = written(trace, array, step)
        first, where = 0, ""
        if len(shape) > 2:
            # One plane of several: the one that is touched.
            plane = int(np.prod(shape[-2:]))
            own = [touch.elements for touch in touches if touch.number == array.number and touch.elements.size]
            index = int(own[0][0]) // plane if own else 0
            first, where = index * plane, f"  plane {index}" if values.size > plane else ""
            values, there, shape = values[first : first + plane], there[first : first + plane], shape[-2:]
        if values.size > _MOST:
            continue
        if len(shape) < 2 or shape[0] == 1:
            width = min(max(values.size, 1), _WRAP)
            shape = (-(-values.size // width), width)
        padded, known = np.zeros(shape[0] * shape[1], values.dtype), np.zeros(shape[0] * shape[1], bool)
        padded[: values.size], known[: values.size] = values, there
        space = "shared" if array.space == "shared" else array.space
        made.append(
            Panel(array.number, f"{array.name}  {space}{where}", first, padded.reshape(shape), known.reshape(shape))
        )
    return made


@lru_cache(maxsize=256)
def _shelves(
    shapes: tuple[tuple[int, int], ...], titles: tuple[int, ...], width: int, height: int, title: int
) -> tuple[float, Any]:
    """Return the largest cell with which all grids fit, their titles beside each other, and where each then begins."""
    for cell in (44, 40, 36, 32, 29, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 5, 4, 3, 2):
        x = y = _GAP
        low = 0
        places = []
        for (rows, columns), least in zip(shapes, titles, strict=True):
            wide, high = max(columns * cell, least), rows * cell + title
            if x > _GAP and x + wide > width - _GAP:
                x, y, low = _GAP, y + low + _GAP // 2, 0
            places.append((x, y))
            x, low = x + wide + _GAP, max(low, high)
            if wide > width - 2 * _GAP:
                low = height
        if y + low <= height - 4:
            return cell, tuple(places)
    return 2, tuple(places)


class MemoryView(QWidget):
    """The arrays of the launch that runs."""

    thread_clicked = pyqtSignal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Arrays")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.models: Models | None = None
        self.moment = 0
        self.block = 0
        self.followed: tuple[int, int] | None = None
        self.panels: list[Panel] = []
        self.touches: list[Touched] = []
        self.hidden_too = False
        self._ranges: dict[tuple[int, str], tuple[float, float]] = {}
        self._grids: dict[str, Grid] = {}
        self._seen: set[int] = set()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def open(self, models: Models | None) -> None:
        """Show another recording."""
        self.models, self.followed, self.moment = models, None, 0
        self.panels, self.touches, self._ranges, self._grids, self._seen = [], [], {}, {}, set()
        self.update()

    def show_moment(self, moment: int, block: int, followed: tuple[int, int] | None) -> None:
        """Show the arrays as the event before a moment left them, and what that event touched."""
        self.moment, self.block, self.followed = moment, block, followed
        if self.models is None or not (self.isVisible() or self.hidden_too):
            return
        launch, event = self.models.recording.at(max(moment - 1, 0))
        trace = launch.trace
        self.touches = touched(trace, event) if moment else []
        step = min(event + 1, len(trace.events)) if moment else 0
        given = self.models.given(launch.number)
        self.panels = panels(trace, launch.shapes, step, block, self.touches, given)
        if launch.number not in self._seen:
            # Shades that mean the same from the first step to the last are those of what is there in the end.
            self._seen.add(launch.number)
            for panel in panels(trace, launch.shapes, len(trace.events), block, [], given):
                self._widen(launch.number, panel)
        for panel in self.panels:
            self._widen(launch.number, panel)
        self.update()

    def _widen(self, launch: int, panel: Panel) -> None:
        """Let the shades of an array reach from the least to the greatest value that it has had."""
        finite = panel.values[panel.known].astype(float)
        finite = finite[np.isfinite(finite) & (np.abs(finite) < 1e30)]
        if finite.size:
            low, high = self._ranges.get((launch, panel.title), (0.0, 0.0))
            self._ranges[launch, panel.title] = min(low, float(finite.min())), max(high, float(finite.max()))

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self.show_moment(self.moment, self.block, self.followed)

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() == event.Type.StyleChange:
            self._grids = {}

    # --- painting

    def _title_height(self) -> int:
        return look().px(22)

    def _arranged(self) -> tuple[float, Any]:
        shapes = tuple(panel.shape for panel in self.panels)
        measure = QFontMetrics(self._title_font()).horizontalAdvance
        titles = tuple(measure(panel.title) for panel in self.panels)
        return _shelves(shapes, titles, self.width(), self.height(), self._title_height())

    def _title_font(self) -> QFont:
        font = QFont(self.font())
        font.setPixelSize(look().small_px)
        return font

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(look().theme.surface))
        if self.models is None or not self.panels:
            painter.end()
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cell, places = self._arranged()
        launch = self.models.recording.at(max(self.moment - 1, 0))[0]
        for panel, place in zip(self.panels, places, strict=True):
            self._paint_panel(painter, panel, QPointF(*place), cell, self._ranges.get((launch.number, panel.title)))
        painter.end()

    def _paint_panel(
        self, painter: QPainter, panel: Panel, at: QPointF, cell: float, values: tuple[float, float] | None
    ) -> None:
        theme = look().theme
        painter.setFont(self._title_font())
        painter.setPen(QColor(theme.muted))
        painter.drawText(QPointF(at.x(), at.y() + look().px(13)), panel.title)
        rows, columns = panel.shape
        area = QRectF(at.x(), at.y() + self._title_height(), columns * cell, rows * cell)
        grid = self._grids.get(panel.title)
        if grid is None or (grid.shape, grid.cell) != (panel.shape, cell):
            grid = self._grids[panel.title] = Grid(panel.shape, cell, self.devicePixelRatioF())
        grid.paint(painter, panel, area, values)
        for places, writes in self._paint_touches(painter, panel, area, cell):
            grid.letter(painter, panel, area, places, dark=writes)

    def _paint_touches(
        self, painter: QPainter, panel: Panel, area: QRectF, cell: float
    ) -> Iterator[tuple[Array, bool]]:
        """Paint over the cells that are touched; tell which they are, and whether they are written."""
        assert self.models is not None
        theme, (rows, columns) = look().theme, panel.shape
        warps = self.models.warps[self.models.recording.at(max(self.moment - 1, 0))[0].number]
        for touch in self.touches:
            if touch.number != panel.number:
                continue
            places = touch.elements - panel.first
            inside = (places >= 0) & (places < rows * columns)
            mine = np.ones(places.size, bool)
            if self.followed is not None:
                mine = (touch.blocks == self.followed[0]) & (touch.threads == self.followed[1])
            warp_of = touch.blocks * warps + touch.threads // 32
            # Several threads that touch a cell look like one; those that are not followed lie below.
            size, count = rows * columns, int(warp_of.max(initial=0)) + 1
            looks = np.unique((mine[inside] * count + warp_of[inside]) * size + places[inside])
            groups, cells = looks // size, looks % size
            found, starts = np.unique(groups, return_index=True)
            boxes = squares(
                area.left() + cells % columns * cell + 0.5, area.top() + cells // columns * cell + 0.5, cell - 1.5
            )
            for group, start, end in zip(
                found.tolist(), starts.tolist(), [*starts[1:].tolist(), cells.size], strict=True
            ):
                own, warp = divmod(group, count)
                colour = QColor(warp_colour(theme, warp))
                strong = bool(own) or self.followed is None
                tint = QColor(colour)
                tint.setAlphaF((0.62 if touch.writes else 0.18) * (1.0 if strong else 0.25))
                colour.setAlphaF(1.0 if strong else 0.25)
                painter.setPen(QPen(colour, 2 if strong and cell >= 10 else 1))
                painter.setBrush(tint)
                painter.drawRects(boxes[start:end])
            yield np.unique(cells), touch.writes

    # --- mouse

    def _element_at(self, point: QPointF) -> tuple[Panel, int] | None:
        if not self.panels:
            return None
        cell, places = self._arranged()
        for panel, (x, y) in zip(self.panels, places, strict=True):
            column = int((point.x() - x) // cell)
            row = int((point.y() - y - self._title_height()) // cell)
            if 0 <= column < panel.shape[1] and 0 <= row < panel.shape[0]:
                place = row * panel.shape[1] + column
                return (panel, place) if panel.known.reshape(-1)[place] else None
        return None

    def mouseMoveEvent(self, event: Any) -> None:
        found = self._element_at(event.position())
        if found is None or self.models is None:
            QToolTip.hideText()
            return
        panel, place = found
        row, column = divmod(place, panel.shape[1])
        where = f"[{row}][{column}]" if panel.shape[0] > 1 else f"[{column}]"
        lines = [f"{panel.title.split()[0]}{where} = {as_text(panel.values.reshape(-1)[place].item())}"]
        for touch in self.touches:
            if touch.number == panel.number:
                at = np.flatnonzero(touch.elements - panel.first == place)
                several = self.models.several_blocks
                names = [
                    who(int(touch.blocks[each]), int(touch.threads[each]), several_blocks=several) for each in at[:4]
                ]
                if names:
                    more = f" and {at.size - 4} more" if at.size > 4 else ""
                    lines.append(f"{'written' if touch.writes else 'read'} by {', '.join(names)}{more}")
        QToolTip.showText(event.globalPosition().toPoint(), "\n".join(lines), self)

    def mousePressEvent(self, event: Any) -> None:
        found = self._element_at(event.position())
        if found is None:
            return
        panel, place = found
        for touch in sorted(self.touches, key=lambda touch: not touch.writes):
            at = np.flatnonzero(touch.elements - panel.first == place)
            if touch.number == panel.number and at.size:
                self.thread_clicked.emit(int(touch.blocks[at[0]]), int(touch.threads[at[0]]))
                return
