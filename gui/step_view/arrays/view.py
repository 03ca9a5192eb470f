"""View of the arrays as grids of values, with the elements that the current statement reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QToolTip, QWidget

from gpu.base.warp import WARP
from gpu.stepping.moment.array_accesses import ArrayAccess, find_array_accesses
from gui.painting.colors import warp_color
from gui.painting.theme import look, resize_font
from gui.painting.values import format_value
from gui.qt.events import StyleListener
from gui.step_view.arrays.panels import Panel, build_panels, wrap_shape
from gui.step_view.arrays.shades import Mark, ValueRange
from gui.step_view.arrays.tinted_grid import TintedGrid
from gui.step_view.arrays.value_grid import FLOAT_CHARACTERS, MIN_READABLE_CELL, ValueGrid, compute_needed_width
from gui.step_view.dataflow.descriptions import describe_race
from gui.step_view.dataflow.finding_picture import FindingPainter, FindingPicture, choose_picture
from gui.widgets.basic import wrap_tip

if TYPE_CHECKING:
    from gpu.stepping.findings import FaultyElements, LocatedFinding
    from gpu.stepping.races import Race
    from gui.step_view.recording.models import RecordingModels

_GAP = 22
_ROW_LENGTHS = (32, 64, 128, 16)
"""Row lengths for one-dimensional arrays, in order of preference among those with the largest cells."""
_SHORT_ROW_LENGTHS = (8, 4)
"""Row lengths for one-dimensional arrays whose cells would otherwise be too small for the text size or the values."""
_MIN_CELL = 26
"""Size in pixels, at the normal text size, below which cells are too small for values that a class can read."""


def _choose_column(cell: float, needed_width: float) -> float:
    """Return the width of a grid's cells, which are `cell` pixels high; without values they are squares."""
    return max(cell, needed_width) if cell >= MIN_READABLE_CELL else cell


@lru_cache(maxsize=256)
def _pack_shelves(
    shapes: tuple[tuple[int, int], ...],
    titles: tuple[int, ...],
    width: int,
    height: int,
    title_height: int,
    needed_widths: tuple[float, ...] = (),
) -> tuple[float, Any]:
    """Return the largest cell height at which all grids and their titles fit, and the position of each grid.

    Cells are as wide as high, or as their values need.
    """
    for cell in (64, 58, 52, 48, 44, 40, 36, 32, 29, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 5, 4, 3, 2):
        x: float = _GAP
        y, low = _GAP, 0
        places = []
        for (rows, columns), title_width, needed in zip(
            shapes, titles, needed_widths or (0,) * len(shapes), strict=True
        ):
            grid_width = max(columns * _choose_column(cell, needed), title_width)
            grid_height = rows * cell + title_height
            if x > _GAP and x + grid_width > width - _GAP:
                x, y, low = _GAP, y + low + _GAP // 2, 0
            places.append((x, y))
            x, low = x + grid_width + _GAP, max(low, grid_height)
            if grid_width > width - 2 * _GAP:
                low = height
        if y + low <= height - 4:
            return cell, tuple(places)
    return 2, tuple(places)


@lru_cache(maxsize=256)
def _find_best_wrap(
    shapes: tuple[tuple[int, int], ...],
    titles: tuple[int, ...],
    width: int,
    height: int,
    title_height: int,
    needed_widths: tuple[float, ...],
    min_cell: float,
) -> int:
    """Return the row length for one-dimensional arrays that makes the cells largest.

    Rows are short only if all others make cells smaller than `min_cell` pixels, or too narrow for their values.
    """

    def find_cell(wrap: int, widths: tuple[float, ...]) -> float:
        wrapped = tuple(wrap_shape(shape, wrap) for shape in shapes)
        return float(_pack_shelves(wrapped, titles, width, height, title_height, widths)[0])

    if any(needed_widths):
        wide = {wrap: find_cell(wrap, needed_widths) for wrap in (*_ROW_LENGTHS, *_SHORT_ROW_LENGTHS)}
        if max(wide.values()) >= min_cell:
            return max(wide, key=wide.__getitem__)
    sizes = {wrap: find_cell(wrap, ()) for wrap in (*_ROW_LENGTHS, _SHORT_ROW_LENGTHS[0])}
    long_rows = max(_ROW_LENGTHS, key=sizes.__getitem__)
    is_readable = sizes[long_rows] >= min_cell
    short_row = _SHORT_ROW_LENGTHS[0]
    return long_rows if is_readable or sizes[short_row] <= sizes[long_rows] else short_row


def _count_characters(panel: Panel, value_range: ValueRange | None) -> int:
    """Return the number of characters of the longest integer of an array, or those that floats need."""
    if value_range is None or not np.issubdtype(panel.values.dtype, np.integer):
        return FLOAT_CHARACTERS
    return max(len(str(int(bound))) for bound in value_range)


@dataclass(frozen=True)
class PickedElements:
    """Highlighted elements of an array, or of one block's copy of a shared array, in the color named `color`."""

    array: str
    block: int
    elements: frozenset[int]
    color: str


class MemoryView(StyleListener, QWidget):
    """The arrays of the current launch."""

    thread_clicked = pyqtSignal(int, int)
    element_clicked = pyqtSignal(int, int)
    """The number of an array in the current launch, and an element of it."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Arrays")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.models: RecordingModels | None = None
        self.moment = 0
        self.block = 0
        self.followed: tuple[int, int] | None = None
        self.panels: list[Panel] = []
        # Races of the current launch, by array number and element.
        self._races: dict[tuple[int, int], Race] = {}
        # Findings of the current launch with faulty elements.
        self._findings: list[LocatedFinding] = []
        self._findings_visible = True
        self._pictures: Sequence[FindingPicture] = ()
        self._finding_painter = FindingPainter()
        self.touches: list[ArrayAccess] = []
        self.updates_when_hidden = False
        self._highlighted: tuple[PickedElements, ...] = ()
        self._launch = 0
        self._ranges: dict[tuple[int, str], tuple[float, float]] = {}
        self._grids: dict[str, tuple[tuple[Any, ...], ValueGrid | TintedGrid]] = {}
        # Names of the arrays with values before each launch, for the launches shown so far.
        self._initialized: dict[int, frozenset[str]] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def open(self, models: RecordingModels | None) -> None:
        """Set the recording."""
        self.models, self.followed, self.moment, self._pictures = models, None, 0, ()
        self.panels, self.touches, self._ranges, self._grids, self._initialized = [], [], {}, {}, {}
        self.update()

    def show_moment(self, moment: int, block: int, followed: tuple[int, int] | None) -> None:
        """Show the arrays at a moment, and the elements that the event before it accessed."""
        self.moment, self.block, self.followed = moment, block, followed
        if self.models is None or not (self.isVisible() or self.updates_when_hidden):
            return
        launch, event = self.models.recording.locate_moment(max(moment - 1, 0))
        trace, self._launch = launch.trace, launch.number
        races, findings = (self.models.data.races, self.models.data.findings) if self._findings_visible else ((), ())
        self._races = {(race.array, race.element): race for race in races if race.launch == launch.number}
        self._findings = [each for each in findings if each.faulty and each.launch == launch.number]
        self.touches = find_array_accesses(trace, event) if moment else []
        step = min(event + 1, len(trace.events)) if moment else 0
        if launch.number not in self._initialized:
            before = self._initialized[launch.number] = self.models.initialized_arrays(launch.number)
            # The final values determine the range of shades, so that a shade means the same at every step.
            for panel in build_panels(trace, launch.shapes, len(trace.events), block, [], before):
                self._extend_range(launch.number, panel)
        # The cells of elements out of bounds exist from the start, so that no step moves the arrays.
        outside = {
            each.faulty.array: each.faulty.find_outside(trace.arrays[each.faulty.array].count)
            for each in self._findings
            if each.faulty is not None
        }
        visible = build_panels(
            trace, launch.shapes, step, block, self.touches, self._initialized[launch.number], outside
        )
        space = self._shelf_arguments(visible)[:-1]
        wrap = _find_best_wrap(*space, self._needed_widths(visible), look().px(_MIN_CELL))
        self.panels = [panel.wrap_rows(wrap) for panel in visible]
        for panel in self.panels:
            self._extend_range(launch.number, panel)
        self.update()

    def show_findings(self, pictures: Sequence[FindingPicture]) -> None:
        """Show the pictures of findings that are about lanes instead of elements, by event, below the arrays."""
        self._pictures = [picture for picture in pictures if picture.lanes is not None]
        self.show_moment(self.moment, self.block, self.followed)

    @property
    def _strip(self) -> QRectF:
        """Return the place of the pictures of findings."""
        height = max((picture.height for picture in self._pictures), default=0) if self._findings_visible else 0
        height = min(height, self.height() // 2)
        return QRectF(0, self.height() - height, self.width(), height)

    def set_findings_visible(self, visible: bool) -> None:
        """Show or hide the marks of findings."""
        self._findings_visible = visible
        self.show_moment(self.moment, self.block, self.followed)

    def _extend_range(self, launch: int, panel: Panel) -> None:
        """Extend an array's range of shades to its minimum and maximum so far."""
        finite = panel.values[panel.has_value].astype(float)
        finite = finite[np.isfinite(finite) & (np.abs(finite) < 1e30)]
        if finite.size:
            low, high = self._ranges.get((launch, panel.title), (0.0, 0.0))
            self._ranges[launch, panel.title] = min(low, float(finite.min())), max(high, float(finite.max()))

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.show_moment(self.moment, self.block, self.followed)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.show_moment(self.moment, self.block, self.followed)

    def _restyle(self) -> None:
        self._grids = {}
        self.show_moment(self.moment, self.block, self.followed)

    # --- painting

    def _title_height(self) -> int:
        return look().px(22)

    def _arrange_grids(self) -> tuple[float, Any]:
        return _pack_shelves(*self._shelf_arguments(self.panels))

    def _shelf_arguments(self, visible_panels: Sequence[Panel]) -> tuple[Any, ...]:
        """Return the arguments of `_pack_shelves`: shapes, title widths, the available space, and widths of cells."""
        shapes = tuple(panel.shape for panel in visible_panels)
        measure = QFontMetrics(self._title_font()).horizontalAdvance
        titles = tuple(measure(panel.title + self._describe_outside(panel)) for panel in visible_panels)
        height = self.height() - int(self._strip.height())
        arguments = shapes, titles, self.width(), height, self._title_height()
        widths = self._needed_widths(visible_panels)
        # Wide cells where there is room for them: elsewhere high ones, of which most values are readable, are better.
        has_room = not any(widths) or _pack_shelves(*arguments, widths)[0] >= look().px(_MIN_CELL)
        return *arguments, widths if has_room else (0.0,) * len(widths)

    def _needed_widths(self, visible_panels: Sequence[Panel]) -> tuple[float, ...]:
        """Return the width in pixels that the longest integer of each panel needs; 0 for floats."""
        return tuple(
            compute_needed_width(_count_characters(panel, self._ranges.get((self._launch, panel.title))))
            if np.issubdtype(panel.values.dtype, np.integer)
            else 0.0
            for panel in visible_panels
        )

    def _columns(self) -> dict[str, float]:
        """Return the width of the cells of each panel, by title."""
        cell, _ = self._arrange_grids()
        widths = self._shelf_arguments(self.panels)[-1]
        return {panel.title: _choose_column(cell, needed) for panel, needed in zip(self.panels, widths, strict=True)}

    def _title_font(self) -> QFont:
        return resize_font(self.font(), look().small_px)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(look().theme.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        strip = self._strip
        if strip.height() > 0:
            painter.save()
            self._finding_painter.paint(painter, strip, choose_picture(self._pictures, self.moment), self.moment)
            painter.restore()
        if self.models is None or not self.panels:
            painter.end()
            return
        (cell, places), columns = self._arrange_grids(), self._columns()
        launch = self.models.recording.locate_moment(max(self.moment - 1, 0))[0].number
        painter.setFont(self._title_font())
        for panel, (x, y) in zip(self.panels, places, strict=True):
            at = QPointF(x, y + look().px(13))
            painter.setPen(QColor(look().theme.muted))
            painter.drawText(at, panel.title)
            if self._finding_at(panel, panel.outside):
                painter.setPen(QColor(look().theme.bad))
                offset = QPointF(painter.fontMetrics().horizontalAdvance(panel.title), 0)
                painter.drawText(at + offset, self._describe_outside(panel))
        for panel, (x, y) in zip(self.panels, places, strict=True):
            at = QPointF(x, y + self._title_height())
            marks = self._build_marks(panel, self.models.recording.warps[launch])
            value_range = self._ranges.get((launch, panel.title))
            grid = self._grid(panel, cell, value_range, columns[panel.title])
            grid.paint(painter, panel, at, value_range, marks)
        painter.end()

    def _grid(
        self, panel: Panel, cell: float, value_range: ValueRange | None, column: float = 0
    ) -> ValueGrid | TintedGrid:
        """Return the painter of a panel, which caches its last picture."""
        has_text = cell >= MIN_READABLE_CELL
        key = panel.shape, cell, _count_characters(panel, value_range) if has_text else 0, column
        known_key, grid = self._grids.get(panel.title, (None, None))
        if grid is None or known_key != key:
            ratio = self.devicePixelRatioF()
            grid = (
                ValueGrid(panel.shape, cell, ratio, key[2], column)
                if has_text
                else TintedGrid(panel.shape, cell, ratio)
            )
            self._grids[panel.title] = key, grid
        return grid

    def _build_marks(self, panel: Panel, warps: int) -> list[Mark]:
        """Return the marks on a panel's accessed cells, one per warp; later marks cover earlier ones."""
        marks = []
        for touch in self.touches:
            if touch.array_number != panel.number:
                continue
            places = panel.find_cells(touch.elements)
            inside = places >= 0
            is_followed = np.ones(places.size, bool)
            if self.followed is not None:
                is_followed = (touch.blocks == self.followed[0]) & (touch.threads == self.followed[1])
            warp_of = touch.blocks * warps + touch.threads // WARP
            # Threads that access the same cell share a mark; marks of threads not followed come first, to lie below.
            size, count = panel.values.size, int(warp_of.max(initial=0)) + 1
            looks = np.unique((is_followed[inside] * count + warp_of[inside]) * size + places[inside])
            groups, starts = np.unique(looks // size, return_index=True)
            for group, cells in zip(groups.tolist(), np.split(looks % size, starts[1:]), strict=True):
                followed, warp = divmod(group, count)
                strong = bool(followed) or self.followed is None
                marks.append(Mark(cells, warp_color(look().theme, warp), strong, touch.is_write))
        marks += self._build_highlight_marks(panel)
        raced_elements = [element for number, element in self._races if number == panel.number]
        places = panel.find_cells(np.array(raced_elements, np.int64)).tolist()
        racing = [place for place in places if place >= 0 and self._race_at(panel, place)]
        if racing:
            marks.append(Mark(np.array(racing), QColor(look().theme.bad), strong=True, writes=False))
        return marks + self._build_finding_marks(panel)

    def _build_finding_marks(self, panel: Panel) -> list[Mark]:
        """Return the marks on elements with a finding; those of the followed thread, or out of bounds, are filled."""
        marks = []
        for _, faulty in self._find_faulty(panel):
            places = panel.find_cells(np.array(faulty.elements, np.int64))
            is_followed = np.array([thread == self.followed for thread in faulty.threads])
            is_filled = is_followed if is_followed.any() else ~panel.is_inside[places]
            for filled in (False, True):
                cells = np.unique(places[(places >= 0) & (is_filled == filled)])
                if cells.size:
                    marks.append(Mark(cells, QColor(look().theme.bad), strong=True, writes=filled))
        return marks

    def _find_faulty(self, panel: Panel) -> Iterator[tuple[LocatedFinding, FaultyElements]]:
        """Yield the findings about elements of a panel's array that have happened by the current moment."""
        for each in self._findings:
            if each.faulty is not None and each.faulty.array == panel.number and each.moment < self.moment:
                yield each, each.faulty

    def _build_highlight_marks(self, panel: Panel) -> list[Mark]:
        marks: list[Mark] = []
        if self.models is None or not self._highlighted:
            return marks
        array = self.models.recording.locate_moment(max(self.moment - 1, 0))[0].trace.arrays[panel.number]
        for picked in self._highlighted:
            if picked.array == array.name and array.block in (None, picked.block):
                places = panel.find_cells(np.array(sorted(picked.elements), np.int64))
                marks.append(Mark(places[places >= 0], QColor(picked.color), strong=True, writes=False))
        return marks

    def highlight_elements(self, elements: tuple[PickedElements, ...]) -> None:
        """Highlight elements, independent of accesses."""
        if elements != self._highlighted:
            self._highlighted = elements
            self.update()

    def _race_at(self, panel: Panel, cell: int) -> Race | None:
        """Return the race for a cell, if it has happened by the current moment."""
        element = panel.element_at(cell)
        race = self._races.get((panel.number, element)) if element is not None else None
        return race if race is not None and race.second.moment < self.moment else None

    def _finding_at(self, panel: Panel, elements: Collection[int | None]) -> LocatedFinding | None:
        """Return the finding for any of some elements of a panel, if it has happened by the current moment."""
        found = (each for each, faulty in self._find_faulty(panel) if set(elements).intersection(faulty.elements))
        return next(found, None)

    @staticmethod
    def _describe_outside(panel: Panel) -> str:
        """Return the addition to the title of a panel with elements out of bounds, such as "  [16] out of bounds"."""
        if not panel.outside:
            return ""
        first, last = panel.outside[0], panel.outside[-1]
        return f"  [{first}]{f' to [{last}]' if last > first else ''} out of bounds"

    # --- mouse

    def _element_at(self, point: QPointF) -> tuple[Panel, int] | None:
        if not self.panels:
            return None
        (cell, places), columns = self._arrange_grids(), self._columns()
        for panel, (x, y) in zip(self.panels, places, strict=True):
            column = int((point.x() - x) // columns[panel.title])
            row = int((point.y() - y - self._title_height()) // cell)
            if 0 <= column < panel.shape[1] and 0 <= row < panel.shape[0]:
                cell_index = row * panel.shape[1] + column
                return (panel, cell_index)
        return None

    def _value_at(self, point: QPointF) -> tuple[Panel, int] | None:
        """Return the panel and cell under a point, if the cell has a value or a finding."""
        hit = self._element_at(point)
        if hit is None:
            return None
        panel, cell = hit
        has_finding = self._finding_at(panel, [panel.element_at(cell)]) is not None
        return hit if has_finding or panel.has_value.reshape(-1)[cell] else None

    def box_at(self, point: QPointF) -> QRectF | None:
        """Return the box of the cell under a point, or None."""
        hit = self._value_at(point)
        if hit is None:
            return None
        cell, places = self._arrange_grids()
        row, column = divmod(hit[1], hit[0].shape[1])
        x, y = next(position for panel, position in zip(self.panels, places, strict=True) if panel is hit[0])
        width = self._columns()[hit[0].title]
        return QRectF(x + column * width, y + self._title_height() + row * cell, width, cell)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        hit = self._value_at(event.position())
        if hit is None or self.models is None:
            QToolTip.hideText()
            return
        (panel, cell), recording = hit, self.models.recording
        lines = [f"{panel.title.split()[0]}{panel.format_index(cell)}"]
        if panel.has_value.reshape(-1)[cell]:
            lines[0] += f" = {format_value(panel.values.reshape(-1)[cell].item())}"
        for touch in self.touches:
            if touch.array_number == panel.number:
                hits = np.flatnonzero(touch.elements == panel.element_at(cell))
                launch = recording.locate_moment(max(self.moment - 1, 0))[0].number
                pairs = zip(touch.blocks[hits[:4]].tolist(), touch.threads[hits[:4]].tolist(), strict=True)
                names = [recording.name_thread(launch, *pair) for pair in pairs]
                if names:
                    more = f" and {hits.size - 4} more" if hits.size > 4 else ""
                    by_threads = ("; " if any("," in name for name in names) else ", ").join(names)
                    lines.append(f"{'written' if touch.is_write else 'read'} by {by_threads}{more}")
        if (race := self._race_at(panel, cell)) is not None:
            lines.append(describe_race(recording, race))
        if (found := self._finding_at(panel, [panel.element_at(cell)])) is not None:
            lines.append(wrap_tip(found.finding.message))
        QToolTip.showText(event.globalPosition().toPoint(), "\n".join(lines), self)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        assert event is not None
        lane = self._finding_painter.thread_at(event.position()) if self._strip.contains(event.position()) else None
        if lane is not None:
            self.thread_clicked.emit(*lane)
            return
        hit = self._element_at(event.position())
        if hit is None:
            return
        panel, cell = hit
        element = panel.element_at(cell)
        if element is None:
            return
        found = self._finding_at(panel, [element])
        if found is not None and found.faulty is not None:
            self.thread_clicked.emit(*found.faulty.threads[found.faulty.elements.index(element)])
            return
        self.element_clicked.emit(panel.number, element)
        for touch in sorted(self.touches, key=lambda touch: not touch.is_write):
            hits = np.flatnonzero(touch.elements == panel.element_at(cell))
            if touch.array_number == panel.number and hits.size:
                self.thread_clicked.emit(int(touch.blocks[hits[0]]), int(touch.threads[hits[0]]))
                return
