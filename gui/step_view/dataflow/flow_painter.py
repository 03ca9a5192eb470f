"""Painter of a dataflow's rows: cells with values, operations with threads, and lines from their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen, QRegion

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors, warp_color
from gui.painting.lettering import Lettering
from gui.painting.shapes import Coordinates, lines_between
from gui.painting.theme import Look, code_font
from gui.step_view.dataflow.bands import BandGroup, build_bands, group_bands
from gui.step_view.dataflow.clip import build_region, clip_painter, invert_region
from gui.step_view.dataflow.labels import FlowLabels
from gui.step_view.dataflow.layout import MAX_TEXT_SHARE, MIN_FRAMED_WIDTH, MIN_TEXT_WIDTH, DataflowLayout, Metrics
from gui.step_view.dataflow.lines import FAR, FILLED, NEAR, UNCHANGED, FlowLines
from gui.step_view.dataflow.text_placement import RowValues, TextPlacement

if TYPE_CHECKING:
    from gpu.stepping.dataflow.rows import Row

_MIN_FONT_SIZE = 8
_MIN_BAR_HEIGHT = 0.22
"""Height of the bar of the smallest value, relative to a cell's height."""
_MAX_SOURCES = 96
"""Maximum number of operands for writing values over their neighbors."""
_MAX_CLIPPED_CELLS = 256
_MIN_TEXT_RADIUS = 5
"""Minimum radius in pixels of an operation that shows its thread."""
_CORNER_RADIUS = 4
_MAX_PASSING_TARGETS = 8
"""Maximum number of target rows for drawing lines across a row of narrow columns."""


class FlowPainter:
    """Painter of a layout's rows at one size and look; the origin is the top left of column 0."""

    def __init__(self, layout: DataflowLayout, sizes: Metrics, look: Look) -> None:
        self.layout, self.sizes, self.look = layout, sizes, look
        self.theme = look.theme
        self._several_blocks = layout.dataflow.recording.has_several_blocks
        self.labels = FlowLabels(layout, sizes, look)
        self._texts: dict[int, list[str]] = {}
        self._thread_names: dict[int, list[str]] = {}
        self._font_sizes: dict[int, int] = {}
        self._letterings: dict[tuple[int, bool], Lettering] = {}
        small = code_font(max(_MIN_FONT_SIZE, round(self._circle_radius * 1.25)))
        small.setBold(True)
        self.thread_lettering = Lettering(small)
        self._rects: dict[int, list[QRectF]] = {}
        self._regions: dict[int, QRegion] = {}
        self._ovals: dict[int, list[tuple[QRectF, bool]]] = {}
        self._bands: dict[int, list[BandGroup]] = {}
        self._placements: dict[int, TextPlacement | None] = {}
        self._digit_widths: dict[int, float] = {}
        self._full_text_cache: dict[int, list[str]] = {}
        self._highlight_cache: tuple[int, bytes, list[tuple[int, Array, TextPlacement]]] = (-1, b"", [])
        self._lines = FlowLines(layout, sizes, self._circle_radius * 0.75)

    # --- sizes

    @cached_property
    def _circle_radius(self) -> float:
        """Return the radius of an operation's circle."""
        return min(self.look.px(9), self.sizes.column * 0.34, (self.sizes.pitch - self.sizes.cell) * 0.36)

    @property
    def shows_text(self) -> bool:
        """Return whether cells have room for text."""
        return self.sizes.column >= MIN_TEXT_WIDTH

    def _lettering(self, number: int, *, bold: bool) -> Lettering:
        """Return the font of a row's values, as large as its longest value allows."""
        if number not in self._font_sizes:
            longest = "0" * max(map(len, self.row_texts(number)), default=1)
            room = self.sizes.column - (5 if self.sizes.column > 24 else 3)
            pixels = round(
                min(self.look.text_px * max(1.0, (self.sizes.column / 40) ** 0.5), MAX_TEXT_SHARE * self.sizes.cell)
            )
            while pixels > _MIN_FONT_SIZE and QFontMetricsF(code_font(pixels)).horizontalAdvance(longest) > room:
                pixels -= 1
            self._font_sizes[number] = pixels
        key = (self._font_sizes[number], bold)
        if key not in self._letterings:
            font = code_font(key[0])
            font.setBold(bold)
            self._letterings[key] = Lettering(font)
        return self._letterings[key]

    def row_texts(self, number: int) -> list[str]:
        """Return the texts of a row's cells."""
        if number not in self._texts:
            room = int((self.sizes.column - 4) / (_MIN_FONT_SIZE * 0.61))
            self._texts[number] = self.layout.texts(number, max(room, 1)) if self.shows_text else []
        return self._texts[number]

    def thread_names(self, number: int) -> list[str]:
        """Return the thread names that a row's operations show, one per cell."""
        if number not in self._thread_names:
            row = self.layout.rows[number]
            self._thread_names[number] = [
                f"{block}.{thread}" if self._several_blocks else str(thread)
                for block, thread in zip(row.block.tolist(), row.thread.tolist(), strict=True)
            ]
        return self._thread_names[number]

    def cell_rect(self, number: int, cell: int) -> QRectF:
        """Return the box of a cell."""
        if number not in self._rects:
            self._rects[number] = [
                self._column_rect(number, column) for column in self.layout.rows[number].column.tolist()
            ]
        return self._rects[number][cell]

    def _column_rect(self, number: int, column: int) -> QRectF:
        sizes = self.sizes
        if sizes.column < MIN_FRAMED_WIDTH:
            return QRectF(sizes.left(column), sizes.top(number), sizes.column, sizes.cell)
        gap = 1.5 if sizes.column >= 20 else 1.0
        return QRectF(sizes.left(column) + gap, sizes.top(number), sizes.column - 2 * gap, sizes.cell)

    def circle_at(self, number: int, cell: int) -> QPointF:
        """Return the center of the operation above a cell."""
        rect = self.cell_rect(number, cell)
        return QPointF(rect.center().x(), rect.top() - self._circle_radius * 0.75)

    # --- rows

    def paint_row(
        self, painter: QPainter, number: int, progress: int, complete_rows: Array, left: float, right: float
    ) -> None:
        """Paint a row between two x, with the lines that end at it and those that pass it.

        Parameters
        ----------
        progress : int
            `DataflowLayout.progress` of the row.
        complete_rows : bool array
            True for complete rows.
        left, right : float
            Range of x.
        """
        if self.sizes.column < MIN_FRAMED_WIDTH:
            passing: Sequence[int] = self.layout.passing_targets.get(number, ())
            if len(passing) > _MAX_PASSING_TARGETS:
                # Hundreds of passing lines are indistinguishable: paint only those that end within a few rows.
                passing = [target for target in passing if target <= number + _MAX_PASSING_TARGETS]
            for target in (*passing, number):
                self._paint_bands(painter, target, left, right, complete=bool(complete_rows[target]))
        else:
            for kind, warp, lines in self._lines.groups(number, left, right, complete_rows):
                painter.setPen(self._line_pen(kind, warp))
                painter.drawLines(lines)
        columns = self.layout.rows[number].column
        first, last = np.searchsorted(columns, (int(left / self.sizes.column), int(right / self.sizes.column) + 1))
        self._paint_cells(painter, number, range(int(first), min(int(last) + 1, columns.size)), progress)
        plan = self.text_placement(number)
        if plan is not None:
            self._paint_placement(painter, number, plan, self._has_value(number, progress), left, right)

    def _line_pen(self, kind: int, warp: int) -> QPen:
        if kind == UNCHANGED:
            return QPen(QColor(self.theme.border), 1)
        # Lines to future cells are only hints, and fainter where they cross other rows.
        share = {FILLED: 0.75, NEAR: 0.28, FAR: 0.09}[kind]
        return QPen(mix_colors(warp_color(self.theme, warp).name(), self.theme.surface, share), 1.3)

    def _paint_bands(self, painter: QPainter, number: int, left: float, right: float, *, complete: bool) -> None:
        row, edges, sizes = self.layout.rows[number], self.layout.edges[number], self.sizes
        if number not in self._bands:
            self._bands[number] = group_bands(number, build_bands(number, row, edges, row.warp[edges.cell]), sizes)
        y1 = sizes.top(number)
        for each in self._bands[number]:
            if each.max_x < left or each.min_x > right:
                continue
            kind = 0 if complete else 1 if each.near else 2
            if kind == 2 and not each.is_lines:
                continue  # areas from far rows to future cells would only be a haze
            color = QColor(warp_color(self.theme, each.warp))
            color.setAlphaF((0.75, 0.2, 0.1)[kind] if each.is_lines else (0.2, 0.06)[kind])
            if each.is_lines:
                visible = (np.minimum(each.x0, each.x1) <= right + 1) & (np.maximum(each.x0, each.x1) >= left - 1)
                self._draw_lines(painter, QPen(color, 1), each.x0[visible], each.y0[visible], each.x1[visible], y1)
                continue
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            (from_left, from_right), (to_left, to_right), y0 = each.x0.tolist(), each.x1.tolist(), float(each.y0[0])
            painter.drawPolygon(
                QPointF(from_left, y0), QPointF(from_right, y0), QPointF(to_right, y1), QPointF(to_left, y1)
            )

    @staticmethod
    def _draw_lines(painter: QPainter, pen: QPen, x0: Array, y0: Coordinates, x1: Array, y1: float) -> None:
        painter.setPen(pen)
        painter.drawLines(lines_between(x0, y0, x1, y1))

    def _paint_cells(self, painter: QPainter, number: int, cells: range, progress: int) -> None:
        row, theme = self.layout.rows[number], self.theme
        has_value = self._has_value(number, progress)
        if self.sizes.column < MIN_FRAMED_WIDTH:
            self._paint_bars(painter, number, cells, has_value)
            return
        inside = np.arange(cells.start, cells.stop)
        values, plan = self.row_texts(number), self.text_placement(number)
        is_input = not row.computed.any()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(mix_colors(theme.border, theme.surface, 0.75), 1))
        self._paint_boxes(painter, number, inside[~has_value[inside]].tolist())
        unchanged = inside[has_value[inside] & ~row.computed[inside]].tolist()
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.raised) if is_input else mix_colors(theme.raised, theme.surface, 0.5))
        self._paint_boxes(painter, number, unchanged)
        self._paint_names(painter, number)
        if values and (plan is None or not is_input):
            lettering = self._lettering(number, bold=False)
            painter.setFont(lettering.font)
            painter.setPen(QColor(theme.text if is_input else theme.faint))
            for cell in unchanged if plan is None else self._find_uncovered(number, plan, unchanged):
                lettering.paint_centered(painter, self.cell_rect(number, cell), values[cell])
        written = inside[has_value[inside] & row.computed[inside]]
        warps = row.warp[written]
        for warp in np.unique(warps).tolist():
            color = warp_color(theme, warp)
            of_warp = written[warps == warp].tolist()
            painter.setPen(QPen(mix_colors(color.name(), theme.surface, 0.7), 1.2))
            painter.setBrush(mix_colors(color.name(), theme.surface, 0.2))
            self._paint_boxes(painter, number, of_warp)
            self._paint_writes(painter, number, of_warp, color)
        if values and plan is None:
            self._paint_values(painter, number, written)

    def _paint_boxes(self, painter: QPainter, number: int, cells: Sequence[int]) -> None:
        for cell in cells:
            painter.drawRoundedRect(self.cell_rect(number, cell), _CORNER_RADIUS, _CORNER_RADIUS)

    def _paint_values(self, painter: QPainter, number: int, cells: Array) -> None:
        """Paint values in their written cells."""
        values, lettering = self.row_texts(number), self._lettering(number, bold=True)
        painter.setFont(lettering.font)
        painter.setPen(QColor(self.theme.text))
        for cell in cells.tolist():
            lettering.paint_centered(painter, self.cell_rect(number, cell), values[cell])

    def _has_value(self, number: int, progress: int) -> Array:
        """Return which cells of a row have values; that depends only on `progress`, so a painted row can be cached."""
        row = self.layout.rows[number]
        newest = row.sorted_moments[progress - 1] if progress > 0 else -2
        has_value: Array = (row.moment <= newest) & (progress >= 0)
        return has_value

    # --- values that do not fit their cells

    def text_placement(self, number: int) -> TextPlacement | None:
        """Return the text placement of a row if not all values fit their cells; else None."""
        if number not in self._placements:
            row = self.layout.rows[number]
            first = np.flatnonzero(row.computed) if row.computed.any() else np.arange(row.computed.size)
            texts = self.row_texts(number)
            full = not self.shows_text or not all(texts[cell] for cell in first.tolist())
            self._placements[number] = (
                self._place_texts(number, first) if full or self._prefers_larger_text(number) else None
            )
            plan = self._placements[number]
            if (
                not full
                and plan is not None
                and (len(plan.boxes) < first.size or plan.px <= self._font_sizes[number] + 1)
            ):
                self._placements[number] = None
        return self._placements[number]

    def _prefers_larger_text(self, number: int) -> bool:
        """Return whether a row's results are more readable in larger print beyond their cells, if all of them fit."""
        self._lettering(number, bold=True)
        has_results = bool(self.layout.rows[number].computed.any())
        return self.layout.symbols is not None or (has_results and self._font_sizes[number] < self.look.small_px)

    def _place_texts(self, number: int, cells: Array) -> TextPlacement:
        row, sizes = self.layout.rows[number], self.sizes
        tallest = round(min(self.look.text_px, MAX_TEXT_SHARE * sizes.cell))
        min_px = min(max(self.look.small_px - 2, 9), tallest)
        values = RowValues(
            row, cells, self._full_texts(number), lambda cell: self.cell_rect(number, cell),
            (0.0, self.layout.width(sizes)), row.warp[cells], lambda warp: self._warp_name(row, warp),
            self._digit_width,
        )  # fmt: skip
        return values.place(range(tallest, _MIN_FONT_SIZE, -1), min_px, covering=sizes.column >= MIN_FRAMED_WIDTH)

    def _full_texts(self, number: int) -> list[str]:
        """Return the texts of a row's values where they may overlap neighboring columns."""
        if number not in self._full_text_cache:
            length = self.layout.max_text_length
            if self.layout.rows[number].value.dtype.kind in "iu":
                # 2000099912 and 2000199875 are both 2e9 in a few characters, so integers take the room of their column.
                readable_px = max(round(0.75 * self.look.small_px), _MIN_FONT_SIZE)
                length = max(length, int((self.sizes.column - 5) / self._digit_width(readable_px)))
            self._full_text_cache[number] = self.layout.texts(number, length)
        return self._full_text_cache[number]

    def _digit_width(self, px: int) -> float:
        if px not in self._digit_widths:
            self._digit_widths[px] = QFontMetricsF(self._bold_lettering(px).font).horizontalAdvance("0")
        return self._digit_widths[px]

    def _bold_lettering(self, px: int) -> Lettering:
        """Return the bold font of a size."""
        if (px, True) not in self._letterings:
            font = code_font(px)
            font.setBold(True)
            self._letterings[px, True] = Lettering(font)
        return self._letterings[px, True]

    def _warp_name(self, row: Row, warp: int) -> str:
        block, within = divmod(warp, self.layout.dataflow.recording.warps[row.launch])
        return f"warp {block}.{within}" if self._several_blocks else f"warp {within}"

    def _find_uncovered(self, number: int, placement: TextPlacement, cells: list[int]) -> list[int]:
        """Return the unchanged cells that no placed text overlaps."""
        covered = self._find_covered_pixels(placement)
        rects = ((cell, self.cell_rect(number, cell)) for cell in cells)
        return [cell for cell, rect in rects if not covered[int(rect.left()) : int(rect.right()) + 1].any()]

    def _find_covered_pixels(self, placement: TextPlacement) -> Array:
        """Return for each pixel of a row's width whether a placed text covers it."""
        covered = np.zeros(int(self.layout.width(self.sizes)) + 2, bool)
        for box in (*placement.boxes.values(), *(summary[0] for summary in placement.summaries)):
            covered[int(box.left()) : int(box.right()) + 1] = True
        return covered

    def _paint_placement(
        self, painter: QPainter, number: int, placement: TextPlacement, has_value: Array, left: float, right: float
    ) -> None:
        row, theme = self.layout.rows[number], self.theme
        if not placement.px:
            return
        is_input = not row.computed.any()
        boxes = [
            (box, placement.texts[cell], int(row.warp[cell]), bool(row.computed[cell]))
            for cell, box in placement.boxes.items()
            if has_value[cell] and box.right() >= left and box.left() <= right
        ]
        if placement.summaries and has_value[row.computed].all():
            boxes += [(box, text, warp, True) for box, text, warp in placement.summaries]
        letters = self._bold_lettering(placement.px)
        painter.setFont(letters.font)
        for box, text, warp, is_written in boxes:
            color = warp_color(theme, warp).name() if is_written else theme.raised
            painter.setPen(QPen(mix_colors(color, theme.surface, 0.7) if is_written else QColor(theme.border), 1))
            painter.setBrush(mix_colors(color, theme.surface, 0.3) if is_written else QColor(theme.raised))
            if not is_input or self.sizes.column < MIN_FRAMED_WIDTH:
                painter.drawRoundedRect(box.adjusted(0.5, 0, -0.5, 0), _CORNER_RADIUS, _CORNER_RADIUS)
            painter.setPen(QColor(theme.text))
            letters.paint_centered(painter, box, text)

    def _highlight_placements(self, number: int, cells: Array) -> list[tuple[int, Array, TextPlacement]]:
        """Return the text placements of highlighted cells and their operands: row, cells and placement of each."""
        if self._highlight_cache[:2] != (number, cells.tobytes()):
            self._highlight_cache = (number, cells.tobytes(), self._place_highlights(number, cells))
        return self._highlight_cache[2]

    def _place_highlights(self, number: int, cells: Array) -> list[tuple[int, Array, TextPlacement]]:
        plans = []
        if self.text_placement(number) is not None:
            plan = self._place_texts(number, cells)
            computed = cells[self.layout.rows[number].computed[cells]]
            if plan.summaries and computed.size:
                plan = self._place_texts(number, computed)  # at the places of the summaries below
            plans.append((number, cells, plan))
        edges = self.layout.edges[number]
        leads_here = np.isin(edges.cell, cells) & (edges.row != number)
        if np.count_nonzero(leads_here) > _MAX_SOURCES:
            return plans
        for start in np.unique(edges.row[leads_here]).tolist():
            columns = self.layout.rows[start].column
            sources = np.searchsorted(columns, np.unique(edges.column[leads_here & (edges.row == start)]))
            sources = sources[sources < columns.size]
            if sources.size and self.text_placement(start) is not None:
                plans.append((start, sources, self._place_texts(start, sources)))
        return plans

    def _paint_highlight_texts(self, painter: QPainter, number: int, cells: Array) -> None:
        theme = self.theme
        for number_of_row, highlighted, plan in self._highlight_placements(number, cells):
            if not plan.px:
                continue
            row, letters = self.layout.rows[number_of_row], self._bold_lettering(plan.px)
            painter.setFont(letters.font)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.labels.band_color if number_of_row == number else QColor(theme.surface))
            for cell, box in plan.boxes.items():
                if box.height() < self.sizes.cell:  # hide the text in the cell, which the box only partly covers
                    painter.drawRect(self.cell_rect(number_of_row, cell))
            for box in self._find_partly_covered(number_of_row, plan):
                painter.drawRect(box)
            warps = dict(zip(highlighted.tolist(), row.warp[highlighted].tolist(), strict=True))
            boxes = [(box, plan.texts[cell], warps[cell], row.computed[cell]) for cell, box in plan.boxes.items()]
            for box, text, warp, is_written in [*boxes, *((*summary, True) for summary in plan.summaries)]:
                color = warp_color(theme, warp) if is_written else QColor(theme.muted)
                painter.setPen(QPen(color, 2 if number_of_row == number else 1.2))
                painter.setBrush(mix_colors(color.name(), theme.surface, 0.42 if number_of_row == number else 0.2))
                painter.drawRoundedRect(box, _CORNER_RADIUS, _CORNER_RADIUS)
                painter.setPen(QColor(theme.text))
                letters.paint_centered(painter, box, text)

    def _find_partly_covered(self, number: int, highlights: TextPlacement) -> list[QRectF]:
        """Return the boxes of a row's other texts that the texts of highlighted cells cover, perhaps only partly."""
        placement, covered = self.text_placement(number), self._find_covered_pixels(highlights)
        others = placement.boxes.items() if placement is not None else ()
        return [
            box
            for cell, box in others
            if cell not in highlights.boxes and covered[int(box.left()) : int(box.right()) + 1].any()
        ]

    def _place_names(self, number: int) -> list[tuple[QRectF, str]]:
        """Return the boxes above a row's cells with their names; empty without names, or if there is no room."""
        names = self.layout.names(number) if self.shows_text else ()
        height = QFontMetricsF(self._name_lettering.font).height() if names else 0.0
        placed = []
        for cell, full_name in enumerate(names):
            name = _range_start(full_name) if self._shortens_names else full_name
            rect, width = self.cell_rect(number, cell), self._name_lettering.width(name)
            left = rect.left() if cell == len(names) - 1 else rect.center().x() - width / 2
            placed.append((QRectF(left, rect.top() - height - 1, width, height), name))
        return placed

    def _paint_names(self, painter: QPainter, number: int) -> None:
        """Paint the names of a row's cells above them; the lines to the cells pass behind all of them."""
        placed = self._place_names(number)
        if placed:
            painter.fillRect(placed[0][0].united(placed[-1][0]), QColor(self.theme.surface))
            self._letter_names(painter, placed)

    def _letter_names(self, painter: QPainter, placed: Sequence[tuple[QRectF, str]]) -> None:
        painter.setFont(self._name_lettering.font)
        painter.setPen(QColor(self.theme.muted))
        for box, name in placed:
            self._name_lettering.paint_centered(painter, box, name)

    def paint_scrolled_names(self, painter: QPainter, origin: QPointF, width: float) -> None:
        """Paint the names of cells at the top of a view, where they have scrolled out of it.

        Parameters
        ----------
        origin : QPointF
            The position of column 0 and the dataflow's top in the view.
        width : float
            The view's width.
        """
        top = self.sizes.head if self.labels.list_indices(0, self.layout.width(self.sizes)) else 0.0
        placed: list[tuple[QRectF, str]] = []
        for number in range(len(self.layout.rows)):
            boxes = self._place_names(number)
            if boxes and boxes[0][0].top() + origin.y() < top:
                placed = boxes
        if not placed:
            return
        strip = QRectF(self.sizes.label, top, width - self.sizes.label, placed[0][0].height() + 1)
        painter.save()
        painter.setClipRect(strip)
        painter.fillRect(strip, QColor(self.theme.surface))
        painter.translate(origin.x(), top - placed[0][0].top())
        self._letter_names(painter, placed)
        painter.restore()

    @cached_property
    def _shortens_names(self) -> bool:
        """Return whether names in legible print are too long for a column, so that only their starts are painted."""
        return self._find_name_font(str) < self.look.small_px - 2

    def _find_name_font(self, shorten: Callable[[str], str]) -> int:
        """Return the font size in which all names fit a column, except the last, which has space to its right."""
        every = [shorten(name) for number in range(len(self.layout.rows)) for name in self.layout.names(number)[:-1]]
        longest, pixels = max(every, key=len, default=""), self.look.small_px
        while pixels > _MIN_FONT_SIZE and QFontMetricsF(code_font(pixels)).horizontalAdvance(longest) > (
            self.sizes.column - 3
        ):
            pixels -= 1
        return pixels

    @cached_property
    def _name_lettering(self) -> Lettering:
        """Return the font of names."""
        return Lettering(code_font(self._find_name_font(_range_start if self._shortens_names else str)))

    def _paint_writes(self, painter: QPainter, number: int, cells: list[int], color: QColor) -> None:
        """Paint an operation above each cell with a computed value, and a hollow circle above each moved value."""
        has_operation = self.layout.rows[number].has_operation
        self._paint_operations(painter, number, [cell for cell in cells if has_operation[cell]], color)
        self._paint_moves(painter, number, [cell for cell in cells if not has_operation[cell]], color)

    def _paint_operations(self, painter: QPainter, number: int, cells: list[int], color: QColor) -> None:
        """Paint the operations above cells, with their threads if they fit."""
        radius = self._circle_radius
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        if not self.shows_text or radius < _MIN_TEXT_RADIUS:
            for cell in cells:
                painter.drawEllipse(self.circle_at(number, cell), min(radius, 3.5), min(radius, 3.5))
            return
        ovals, names = self._ovals_of_row(number), self.thread_names(number)
        for cell in cells:
            painter.drawRoundedRect(ovals[cell][0], radius, radius)
        painter.setFont(self.thread_lettering.font)
        painter.setPen(QColor(self.theme.on_accent))
        for cell in cells:
            box, fits = ovals[cell]
            if fits:
                self.thread_lettering.paint_centered(painter, box, names[cell])

    def _ovals_of_row(self, number: int) -> list[tuple[QRectF, bool]]:
        """Return the box of each operation of a row, and whether its thread's name fits."""
        if number in self._ovals:
            return self._ovals[number]
        ovals, radius = self._ovals.setdefault(number, []), self._circle_radius
        for cell, name in enumerate(self.thread_names(number)):
            middle, width = self.circle_at(number, cell), self.thread_lettering.width(name)
            half = min(max(radius, width / 2 + 3), self.sizes.column / 2 - 0.5)
            ovals.append((QRectF(middle.x() - half, middle.y() - radius, 2 * half, 2 * radius), width <= 2 * half))
        return ovals

    def _paint_moves(self, painter: QPainter, number: int, cells: list[int], color: QColor) -> None:
        """Paint a hollow circle above cells with a value that was moved, not computed."""
        painter.setPen(QPen(color, 1.5))
        painter.setBrush(QColor(self.theme.surface))
        for cell in cells:
            painter.drawEllipse(
                self.circle_at(number, cell), min(self._circle_radius, 4.0), min(self._circle_radius, 4.0)
            )

    def _paint_bars(self, painter: QPainter, number: int, cells: range, has_value: Array) -> None:
        """Paint narrow cells as bars; their heights show the values."""
        if not len(cells):
            return
        row, theme = self.layout.rows[number], self.theme
        inside = np.arange(cells.start, cells.stop)
        levels = np.where(has_value[inside], self.layout.levels(number)[inside], 1.0)
        colors = np.full(inside.size, mix_colors(theme.raised, theme.surface, 0.35).rgb(), np.uint32)
        colors[has_value[inside]] = QColor(theme.border).rgb()
        done = has_value[inside] & row.computed[inside]
        warps = row.warp[inside]
        for warp in np.unique(warps[done]).tolist():
            colors[done & (warps == warp)] = mix_colors(warp_color(theme, warp).name(), theme.surface, 0.75).rgb()
        self._paint_bar_image(painter, number, inside, colors, done, levels)

    def _paint_bar_image(
        self, painter: QPainter, number: int, cells: Array, colors: Array, foreground: Array, levels: Array
    ) -> None:
        """Paint ascending cells as colored bars in one image.

        Parameters
        ----------
        colors : uint32 array
            Color of each cell as QRgb.
        foreground : bool array
            Cells that are painted over others that share their pixel.
        levels : array
            Height of each bar, from 0 to 1.
        """
        columns, width = self.layout.rows[number].column[cells], self.sizes.column
        left, height = int(columns[0] * width), max(round(self.sizes.cell), 1)
        line = np.zeros(max(1, math.ceil((columns[-1] + 1) * width) - left), np.uint32)
        bars = np.zeros(line.size)
        for group in (~foreground, foreground):
            for shift in range(max(1, math.ceil(width))):
                at = np.minimum((columns[group] * width + min(shift, width)).astype(int) - left, line.size - 1)
                line[at], bars[at] = colors[group], levels[group]
        above = np.arange(height)[:, None] < np.floor((1 - _MIN_BAR_HEIGHT) * (1 - bars) * height)
        # The image shares these bytes, which must stay alive until it is painted.
        pixels = np.where(above, np.uint32(0), line).tobytes()
        image = QImage(pixels, line.size, height, 4 * line.size, QImage.Format.Format_ARGB32)
        painter.drawImage(QRectF(left, self.sizes.top(number), line.size, self.sizes.cell), image)

    def _paint_highlight_bars(self, painter: QPainter, number: int, cells: Sequence[int]) -> None:
        row, inside = self.layout.rows[number], np.unique(np.asarray(cells, np.int64))
        colors = np.full(inside.size, QColor(self.theme.muted).rgb(), np.uint32)
        warps = row.warp[inside]
        for warp in np.unique(warps[row.computed[inside]]).tolist():
            colors[row.computed[inside] & (warps == warp)] = warp_color(self.theme, warp).rgb()
        if inside.size:
            self._paint_bar_image(
                painter, number, inside, colors, row.computed[inside], self.layout.levels(number)[inside]
            )

    # --- highlights

    def highlight_area(self, number: int, cells: Array) -> QRectF:
        """Return the bounding box of what `paint_highlight` paints."""
        row, sizes = self.layout.rows[number], self.sizes
        columns, rows = [row.column[cells]], [np.array([number])]
        for each in (self.layout.edges[number], self.layout.unchanged_edges[number]):
            here = np.isin(each.cell, cells)
            columns.append(each.column[here])
            rows.append(each.row[here])
        every = np.concatenate(columns)
        left, right = int(every.min()), int(every.max())
        top = sizes.top(int(np.concatenate(rows).min())) - self._circle_radius * 2
        around = 3.0
        area = QRectF(
            sizes.left(left) - around, top - around, sizes.left(right + 1 - left) + 2 * around,
            sizes.top(number) + sizes.cell - top + 2 * around,
        )  # fmt: skip
        for number_of_row, _, plan in self._highlight_placements(number, cells):
            hidden = self._find_partly_covered(number_of_row, plan)
            for box in (*plan.boxes.values(), *(summary[0] for summary in plan.summaries), *hidden):
                area = area.united(box.adjusted(-around, -around, around, around))
        return area

    def paint_highlight(
        self, painter: QPainter, number: int, cells: Sequence[int], starts: Mapping[int, Array] | None = None
    ) -> None:
        """Paint some cells of a row as current, with the lines to them and the sources of those lines.

        Parameters
        ----------
        number : int
            Number of the row.
        starts : mapping of int to array, optional
            Columns by row at which lines to the cells may start; by default all.
        """
        chosen = np.asarray(cells, np.int64)
        self._paint_highlight_lines(painter, number, self._find_highlight_edges(number, chosen, starts))
        if self.sizes.column < MIN_FRAMED_WIDTH:
            self._paint_highlight_bars(painter, number, cells)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_highlight_texts(painter, number, chosen)
            return
        self._paint_origins(painter, number, chosen)
        self._paint_highlight_cells(painter, number, chosen)
        self._paint_highlight_texts(painter, number, chosen)
        if self.row_texts(number) and self.text_placement(number) is None:
            self._paint_values(painter, number, chosen)

    def _find_highlight_edges(self, number: int, cells: Array, starts: Mapping[int, Array] | None) -> Array:
        """Return which edges of a row lead from other rows to some cells, starting at `starts` if that is not None."""
        edges = self.layout.edges[number]
        leads_here: Array = np.isin(edges.cell, cells) & (edges.row != number)
        if starts is not None:
            for start in np.unique(edges.row[leads_here]).tolist():
                leads_here &= (edges.row != start) | np.isin(edges.column, starts.get(start, ()))
        return leads_here

    def _paint_highlight_lines(self, painter: QPainter, number: int, chosen: Array) -> None:
        """Paint the chosen edges of a row as lines in the colors of their warps, and frame their sources."""
        row, edges, sizes = self.layout.rows[number], self.layout.edges[number], self.sizes
        warps = row.warp[edges.cell]
        x0, x1 = (edges.column + 0.5) * sizes.column, (row.column[edges.cell] + 0.5) * sizes.column
        y0 = sizes.head + edges.row * sizes.pitch + sizes.cell
        y1 = sizes.top(number) - self._circle_radius * 0.75
        narrow = sizes.column < MIN_FRAMED_WIDTH
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, not narrow)
        above = int(edges.row[chosen].min(initial=number))
        visible = None if narrow else invert_region(self._region_between(above, number))
        for warp in np.unique(warps[chosen]).tolist():
            of_warp = chosen & (warps == warp)
            pen = QPen(warp_color(self.theme, warp), 1 if narrow else 2)
            with clip_painter(painter, visible):
                self._draw_lines(painter, pen, x0[of_warp], y0[of_warp], x1[of_warp], y1)
            if not narrow:
                painter.setPen(pen)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                # Many lines may share a source.
                for start, column in set(zip(edges.row[of_warp].tolist(), edges.column[of_warp].tolist(), strict=True)):
                    painter.drawRoundedRect(self._column_rect(start, column), _CORNER_RADIUS, _CORNER_RADIUS)

    def _paint_origins(self, painter: QPainter, number: int, cells: Array) -> None:
        """Paint vertical lines from the rows in which some unchanged values were written."""
        origins, sizes = self.layout.unchanged_edges[number], self.sizes
        listed = np.isin(origins.cell, cells)
        x = (origins.column[listed] + 0.5) * sizes.column
        y = sizes.head + origins.row[listed] * sizes.pitch + sizes.cell
        self._draw_lines(painter, QPen(QColor(self.theme.faint), 1.4), x, y, x, sizes.top(number))

    def _paint_highlight_cells(self, painter: QPainter, number: int, cells: Array) -> None:
        """Paint unchanged cells in gray, then written cells with their operations in the colors of their warps."""
        row, theme = self.layout.rows[number], self.theme
        colors = np.where(row.computed[cells], row.warp[cells], -1)
        for warp in np.unique(colors).tolist():
            color = QColor(theme.muted) if warp < 0 else warp_color(theme, warp)
            of_warp = cells[colors == warp].tolist()
            painter.setPen(QPen(color, 2))
            painter.setBrush(mix_colors(color.name(), theme.surface, 0.2 if warp < 0 else 0.42))
            self._paint_boxes(painter, number, of_warp)
            if warp >= 0:
                self._paint_writes(painter, number, of_warp, color)

    def _region_between(self, above: int, below: int) -> QRegion:
        """Return the region of cells and operations in the rows between two rows, which lines pass below.

        With very many cells, return an empty region: clipping around all of them takes longer than a frame.
        """
        region = QRegion()
        between = range(above + 1, below)
        if sum(self.layout.rows[number].column.size for number in between) <= _MAX_CLIPPED_CELLS:
            for number in between:
                if number not in self._regions:
                    self._regions[number] = self._region_of_row(number)
                region += self._regions[number]
        return region

    def _region_of_row(self, number: int) -> QRegion:
        row = self.layout.rows[number]
        cells = build_region([self.cell_rect(number, cell) for cell in range(row.column.size)])
        if names := self._place_names(number):
            cells += build_region([names[0][0].united(names[-1][0])])
        if not self.shows_text or self._circle_radius < _MIN_TEXT_RADIUS:
            return cells
        ovals = self._ovals_of_row(number)
        return cells + build_region(
            [ovals[cell][0] for cell in np.flatnonzero(row.computed & row.has_operation).tolist()]
        )

    def paint_warning_frame(self, painter: QPainter, number: int, cell: int) -> None:
        """Frame a cell with a race, or with another value in another schedule."""
        painter.setPen(QPen(QColor(self.theme.bad), 2.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(
            self.cell_rect(number, cell).adjusted(-2, -2, 2, 2), _CORNER_RADIUS + 1, _CORNER_RADIUS + 1
        )

    def paint_ring(self, painter: QPainter, number: int, cell: int) -> None:
        """Mark an operation of the followed thread."""
        painter.setPen(QPen(QColor(self.theme.text), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        radius = max(self._circle_radius, 4.0) + 1.5
        painter.drawEllipse(self.circle_at(number, cell), radius, radius)


def _range_start(name: str) -> str:
    """Return the start of a range's name: "a" for "a–d"."""
    return name.partition("–")[0] or name
