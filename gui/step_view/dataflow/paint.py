"""Paints a dataflow: cells with their values, operations with their threads, lines from what they were made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen, QRegion

from gpu.declaration.pattern import Array
from gpu.warp import WARP
from gui.painting.colors import mixed, warp_color
from gui.painting.lettering import Lettering
from gui.painting.shapes import Coordinates, lines_between
from gui.painting.theme import Look, code_font
from gui.step_view.dataflow.bands import BandGroup, band_groups, bands
from gui.step_view.dataflow.clip import clipped_to, outside, region_of
from gui.step_view.dataflow.labels import FlowLabels
from gui.step_view.dataflow.layout import AGGREGATED, LABELLED, Cells, DataflowLayout, Metrics
from gui.step_view.dataflow.lines import DONE, FAR, KEPT, NEAR, FlowLines
from gui.step_view.dataflow.values import Written, written

_SMALLEST_TEXT = 8
_LOWEST_BAR = 0.22
"""Of a cell's height, the bar of the least value."""
_MOST_SOURCES = 96
"""Values that some were made of, which are written where others give way."""
_MOST_PASSED = 256
_LETTERED = 5
"""Pixels of an operation's radius from which its thread is written in it."""
_ROUND = 4
_MOST_PASSING = 8
"""Rows whose lines may pass a row of narrow columns."""


class FlowPainter:
    """Paints rows of a layout at one size and look. Coordinates begin at the top left of column 0.

    Parameters
    ----------
    layout : DataflowLayout
    sizes : Metrics
    look : Look
    warps : sequence of int
        The warps of a block, by launch: they number the colors.
    several_blocks : bool
        Whether an operation says its block too.
    """

    def __init__(self, layout: DataflowLayout, sizes: Metrics, look: Look, warps: Sequence[int], several_blocks: bool):
        self.layout, self.sizes, self.look, self.warps = layout, sizes, look, warps
        self.theme = look.theme
        self.several_blocks = several_blocks
        self.labels = FlowLabels(layout, sizes, look)
        self._texts: dict[int, list[str]] = {}
        self._whos: dict[int, list[str]] = {}
        self._pixels: dict[int, int] = {}
        self._letterings: dict[tuple[int, bool], Lettering] = {}
        small = code_font(max(_SMALLEST_TEXT, round(self._circle * 1.25)))
        small.setBold(True)
        self.small = Lettering(small)
        self._rects: dict[int, list[QRectF]] = {}
        self._taken: dict[int, QRegion] = {}
        self._ovals: dict[int, list[tuple[QRectF, bool]]] = {}
        self._bands: dict[int, list[BandGroup]] = {}
        self._written: dict[int, Written | None] = {}
        self._advances: dict[int, float] = {}
        self._full: dict[int, list[str]] = {}
        self._bright: tuple[int, bytes, list[tuple[int, Array, Written]]] = (-1, b"", [])
        self._lines = FlowLines(layout, sizes, tuple(warps), self._circle * 0.75)

    # --- sizes

    @cached_property
    def _circle(self) -> float:
        """The radius of an operation."""
        return min(self.look.px(9), self.sizes.column * 0.34, (self.sizes.pitch - self.sizes.cell) * 0.36)

    @property
    def labelled(self) -> bool:
        """Whether there is room for text in the cells."""
        return self.sizes.column >= LABELLED

    def _lettering(self, number: int, *, bold: bool) -> Lettering:
        """Return the font of a row's values: as large as its longest value allows."""
        if number not in self._pixels:
            longest = "0" * max(map(len, self.row_texts(number)), default=1)
            room = self.sizes.column - (5 if self.sizes.column > 24 else 3)
            pixels = round(min(self.look.text_px * max(1.0, (self.sizes.column / 40) ** 0.5), 0.8 * self.sizes.cell))
            while pixels > _SMALLEST_TEXT and QFontMetricsF(code_font(pixels)).horizontalAdvance(longest) > room:
                pixels -= 1
            self._pixels[number] = pixels
        key = (self._pixels[number], bold)
        if key not in self._letterings:
            font = code_font(key[0])
            font.setBold(bold)
            self._letterings[key] = Lettering(font)
        return self._letterings[key]

    def row_texts(self, number: int) -> list[str]:
        """Return the values of a row as the cells show them."""
        if number not in self._texts:
            room = int((self.sizes.column - 4) / (_SMALLEST_TEXT * 0.61))
            self._texts[number] = self.layout.texts(number, max(room, 1)) if self.labelled else []
        return self._texts[number]

    def whos(self, number: int) -> list[str]:
        """Return the thread of each cell of a row, as the operations show it."""
        if number not in self._whos:
            row = self.layout.rows[number]
            several = self.several_blocks
            self._whos[number] = [
                f"{block}.{thread}" if several else str(thread)
                for block, thread in zip(row.block.tolist(), row.thread.tolist(), strict=True)
            ]
        return self._whos[number]

    def warp_of(self, row: Cells, cell: int) -> int:
        """Return the number through the grid of the warp that made a cell."""
        return int(row.block[cell]) * self.warps[row.launch] + int(row.thread[cell]) // WARP

    def cell_rect(self, number: int, cell: int) -> QRectF:
        """Return where a cell lies."""
        if number not in self._rects:
            self._rects[number] = [self._rect(number, column) for column in self.layout.rows[number].column.tolist()]
        return self._rects[number][cell]

    def _rect(self, number: int, column: int) -> QRectF:
        sizes = self.sizes
        if sizes.column < AGGREGATED:
            return QRectF(sizes.left(column), sizes.top(number), sizes.column, sizes.cell)
        gap = 1.5 if sizes.column >= 20 else 1.0
        return QRectF(sizes.left(column) + gap, sizes.top(number), sizes.column - 2 * gap, sizes.cell)

    def circle_at(self, number: int, cell: int) -> QPointF:
        """Return the middle of the operation above a cell."""
        rect = self.cell_rect(number, cell)
        return QPointF(rect.center().x(), rect.top() - self._circle * 0.75)

    # --- rows

    def paint_row(self, painter: QPainter, number: int, phase: int, done: Array, left: float, right: float) -> None:
        """Paint a row, the lines that lead to it and those that pass it, between two x.

        Parameters
        ----------
        phase : int
            `DataflowLayout.phase` of the row.
        done : bool array
            Which rows have all of their values.
        """
        if self.sizes.column < AGGREGATED:
            passing: Sequence[int] = self.layout.through.get(number, ())
            if len(passing) > _MOST_PASSING:
                # Where hundreds pass nobody sees one: those are painted that end soon, and the others when they do.
                passing = [target for target in passing if target <= number + _MOST_PASSING]
            for target in (*passing, number):
                self._paint_bands(painter, target, left, right, done=bool(done[target]))
        else:
            for kind, warp, lines in self._lines.groups(number, left, right, done):
                painter.setPen(self._line_pen(kind, warp))
                painter.drawLines(lines)
        columns = self.layout.rows[number].column
        first, last = np.searchsorted(columns, (int(left / self.sizes.column), int(right / self.sizes.column) + 1))
        self._paint_cells(painter, number, range(int(first), min(int(last) + 1, columns.size)), phase)
        plan = self.written(number)
        if plan is not None:
            self._paint_written(painter, number, plan, self._shown(number, phase), left, right)

    def _line_pen(self, kind: int, warp: int) -> QPen:
        if kind == KEPT:
            return QPen(QColor(self.theme.border), 1)
        # What is to come is a hint, and less than that where it crosses other rows.
        share = {DONE: 0.75, NEAR: 0.28, FAR: 0.09}[kind]
        return QPen(mixed(warp_color(self.theme, warp).name(), self.theme.surface, share), 1.3)

    def _paint_bands(self, painter: QPainter, number: int, left: float, right: float, *, done: bool) -> None:
        row, edges, sizes = self.layout.rows[number], self.layout.edges[number], self.sizes
        if number not in self._bands:
            self._bands[number] = band_groups(number, bands(number, row, edges, self._warps_of(row, edges.cell)), sizes)
        y1 = sizes.top(number)
        for each in self._bands[number]:
            if each.most < left or each.least > right:
                continue
            kind = 0 if done else 1 if each.near else 2
            if kind == 2 and not each.is_lines:
                continue  # of what is to come, and far away, only a haze would be seen
            color = QColor(warp_color(self.theme, each.warp))
            color.setAlphaF((0.75, 0.2, 0.1)[kind] if each.is_lines else (0.2, 0.06)[kind])
            if each.is_lines:
                here = (np.minimum(each.x0, each.x1) <= right + 1) & (np.maximum(each.x0, each.x1) >= left - 1)
                self._draw_lines(painter, QPen(color, 1), each.x0[here], each.y0[here], each.x1[here], y1)
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

    def _paint_cells(self, painter: QPainter, number: int, cells: range, phase: int) -> None:
        row, theme = self.layout.rows[number], self.theme
        shown = self._shown(number, phase)
        if self.sizes.column < AGGREGATED:
            self._paint_patches(painter, number, cells, shown)
            return
        inside = np.arange(cells.start, cells.stop)
        values, whos, plan = self.row_texts(number), self.whos(number), self.written(number)
        given = not row.made.any()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(mixed(theme.border, theme.surface, 0.75), 1))
        for cell in inside[~shown[inside]].tolist():
            painter.drawRoundedRect(self.cell_rect(number, cell), _ROUND, _ROUND)
        kept = inside[shown[inside] & ~row.made[inside]].tolist()
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.raised) if given else mixed(theme.raised, theme.surface, 0.5))
        for cell in kept:
            painter.drawRoundedRect(self.cell_rect(number, cell), _ROUND, _ROUND)
        self._paint_names(painter, number)
        if values and (plan is None or not given):
            lettering = self._lettering(number, bold=False)
            painter.setFont(lettering.font)
            painter.setPen(QColor(theme.text if given else theme.faint))
            for cell in kept if plan is None else self._beside(number, plan, kept):
                lettering.center(painter, self.cell_rect(number, cell), values[cell])
        made = inside[shown[inside] & row.made[inside]]
        warps = self._warps_of(row, made)
        for warp in np.unique(warps).tolist():
            color = warp_color(theme, warp)
            mine = made[warps == warp].tolist()
            painter.setPen(QPen(mixed(color.name(), theme.surface, 0.7), 1.2))
            painter.setBrush(mixed(color.name(), theme.surface, 0.2))
            for cell in mine:
                painter.drawRoundedRect(self.cell_rect(number, cell), _ROUND, _ROUND)
            self._paint_whos(painter, number, [cell for cell in mine if row.worked[cell]], whos, color)
            self._paint_moves(painter, number, [cell for cell in mine if not row.worked[cell]], color)
        if values and plan is None:
            lettering = self._lettering(number, bold=True)
            painter.setFont(lettering.font)
            painter.setPen(QColor(theme.text))
            for cell in made.tolist():
                lettering.center(painter, self.cell_rect(number, cell), values[cell])

    def _shown(self, number: int, phase: int) -> Array:
        """Return which cells of a row are there; that follows from the phase alone, so a painted row can be kept."""
        row = self.layout.rows[number]
        newest = row.order[phase - 1] if phase > 0 else -2
        there: Array = (row.moment <= newest) & (phase >= 0)
        return there

    # --- values that have no room in their cells

    def written(self, number: int) -> Written | None:
        """Return what is written of a row whose values do not all have room in their cells; None where they have."""
        if number not in self._written:
            row = self.layout.rows[number]
            first = np.flatnonzero(row.made) if row.made.any() else np.arange(row.made.size)
            texts = self.row_texts(number)
            full = not self.labelled or not all(texts[cell] for cell in first.tolist())
            self._written[number] = self._plan(number, first) if full or self._in_small_print(number) else None
            plan = self._written[number]
            if not full and plan is not None and (len(plan.boxes) < first.size or plan.px <= self._pixels[number] + 1):
                self._written[number] = None
        return self._written[number]

    def _in_small_print(self, number: int) -> bool:
        """Return whether what a row made is told better beyond its cells, if there is room for all of it."""
        self._lettering(number, bold=True)
        made = bool(self.layout.rows[number].made.any())
        return self.layout.symbols is not None or (made and self._pixels[number] < self.look.small_px)

    def _plan(self, number: int, cells: Array) -> Written:
        row, sizes = self.layout.rows[number], self.sizes
        tallest = round(min(self.look.text_px, 0.8 * sizes.cell))
        least = min(max(self.look.small_px - 2, 9), tallest)
        return written(
            row, cells, self._full_texts(number), lambda cell: self.cell_rect(number, cell),
            (0.0, self.layout.width(sizes)), self._warps_of(row, cells), lambda warp: self._warp_name(row, warp),
            range(tallest, _SMALLEST_TEXT, -1), least, self._advance, covering=sizes.column >= AGGREGATED,
        )  # fmt: skip

    def _full_texts(self, number: int) -> list[str]:
        """Return the values of a row as they are written where they reach over their neighbors."""
        if number not in self._full:
            self._full[number] = self.layout.texts(number, self.layout.longest)
        return self._full[number]

    def _advance(self, px: int) -> float:
        if px not in self._advances:
            self._advances[px] = QFontMetricsF(self._print(px).font).horizontalAdvance("0")
        return self._advances[px]

    def _print(self, px: int) -> Lettering:
        """Return bold print of a size."""
        if (px, True) not in self._letterings:
            font = code_font(px)
            font.setBold(True)
            self._letterings[px, True] = Lettering(font)
        return self._letterings[px, True]

    def _warp_name(self, row: Cells, warp: int) -> str:
        block, within = divmod(warp, self.warps[row.launch])
        return f"warp {block}.{within}" if self.several_blocks else f"warp {within}"

    def _beside(self, number: int, plan: Written, kept: list[int]) -> list[int]:
        """Return those of kept cells over which nothing else is written."""
        taken = np.zeros(int(self.layout.width(self.sizes)) + 2, bool)
        for box in (*plan.boxes.values(), *(each[0] for each in plan.together)):
            taken[int(box.left()) : int(box.right()) + 1] = True
        rects = ((cell, self.cell_rect(number, cell)) for cell in kept)
        return [cell for cell, rect in rects if not taken[int(rect.left()) : int(rect.right()) + 1].any()]

    def _paint_written(
        self, painter: QPainter, number: int, plan: Written, shown: Array, left: float, right: float
    ) -> None:
        row, theme = self.layout.rows[number], self.theme
        if not plan.px:
            return
        given = not row.made.any()
        boxes = [
            (box, plan.texts[cell], self.warp_of(row, cell), bool(row.made[cell]))
            for cell, box in plan.boxes.items()
            if shown[cell] and box.right() >= left and box.left() <= right
        ]
        if plan.together and shown[row.made].all():
            boxes += [(box, text, warp, True) for box, text, warp in plan.together]
        letters = self._print(plan.px)
        painter.setFont(letters.font)
        for box, text, warp, made in boxes:
            color = warp_color(theme, warp).name() if made else theme.raised
            painter.setPen(QPen(mixed(color, theme.surface, 0.7) if made else QColor(theme.border), 1))
            painter.setBrush(mixed(color, theme.surface, 0.3) if made else QColor(theme.raised))
            if not given or self.sizes.column < AGGREGATED:
                painter.drawRoundedRect(box.adjusted(0.5, 0, -0.5, 0), _ROUND, _ROUND)
            painter.setPen(QColor(theme.text))
            letters.center(painter, box, text)

    def _bright_plans(self, number: int, cells: Array) -> list[tuple[int, Array, Written]]:
        """Return what is written of cells that count now, and of what they were made: rows, cells and texts."""
        if self._bright[:2] != (number, cells.tobytes()):
            self._bright = (number, cells.tobytes(), self._plans_of(number, cells))
        return self._bright[2]

    def _plans_of(self, number: int, cells: Array) -> list[tuple[int, Array, Written]]:
        found = []
        if self.written(number) is not None:
            found.append((number, cells, self._plan(number, cells)))
        edges = self.layout.edges[number]
        wanted = np.isin(edges.cell, cells) & (edges.row != number)
        if np.count_nonzero(wanted) > _MOST_SOURCES:
            return found
        for start in np.unique(edges.row[wanted]).tolist():
            columns = self.layout.rows[start].column
            here = np.searchsorted(columns, np.unique(edges.column[wanted & (edges.row == start)]))
            here = here[here < columns.size]
            if here.size and self.written(start) is not None:
                found.append((start, here, self._plan(start, here)))
        return found

    def _paint_bright_plans(self, painter: QPainter, number: int, cells: Array) -> None:
        theme = self.theme
        for at, chosen, plan in self._bright_plans(number, cells):
            if not plan.px:
                continue
            row, letters = self.layout.rows[at], self._print(plan.px)
            painter.setFont(letters.font)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface))
            for cell, box in plan.boxes.items():
                if box.height() < self.sizes.cell:  # what is written in the cell is not to be seen below it
                    painter.drawRect(self.cell_rect(at, cell))
            warps = dict(zip(chosen.tolist(), self._warps_of(row, chosen).tolist(), strict=True))
            boxes = [(box, plan.texts[cell], warps[cell], row.made[cell]) for cell, box in plan.boxes.items()]
            for box, text, warp, made in [*boxes, *((*each, True) for each in plan.together)]:
                color = warp_color(theme, warp) if made else QColor(theme.muted)
                painter.setPen(QPen(color, 2 if at == number else 1.2))
                painter.setBrush(mixed(color.name(), theme.surface, 0.42 if at == number else 0.2))
                painter.drawRoundedRect(box, _ROUND, _ROUND)
                painter.setPen(QColor(theme.text))
                letters.center(painter, box, text)

    def _paint_names(self, painter: QPainter, number: int) -> None:
        """Paint what the cells of a row are called above them, where there is room."""
        names = self.layout.names(number) if self.labelled else ()
        if not names:
            return
        lettering = self._names
        high = QFontMetricsF(lettering.font).height()
        painter.setFont(lettering.font)
        painter.setPen(QColor(self.theme.muted))
        for cell, name in enumerate(names):
            rect = self.cell_rect(number, cell)
            wide = lettering.width(name)
            left = rect.left() if cell == len(names) - 1 else rect.center().x() - wide / 2
            box = QRectF(left, rect.top() - high - 1, wide, high)
            # Lines to the cells end behind it.
            painter.fillRect(box, QColor(self.theme.surface))
            lettering.center(painter, box, name)

    @cached_property
    def _names(self) -> Lettering:
        """The font of names: all but the last, which has room beside it, are as narrow as a column."""
        every = [name for number in range(len(self.layout.rows)) for name in self.layout.names(number)[:-1]]
        longest, pixels = max(every, key=len, default=""), self.look.small_px
        while pixels > _SMALLEST_TEXT and QFontMetricsF(code_font(pixels)).horizontalAdvance(longest) > (
            self.sizes.column - 3
        ):
            pixels -= 1
        return Lettering(code_font(pixels))

    def _warps_of(self, row: Cells, cells: Array) -> Array:
        warps: Array = row.block[cells] * self.warps[row.launch] + row.thread[cells] // WARP
        return warps

    def _paint_whos(self, painter: QPainter, number: int, cells: list[int], whos: list[str], color: QColor) -> None:
        """Paint the operations above cells, with the thread in them where there is room."""
        radius = self._circle
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        if not self.labelled or radius < _LETTERED:
            for cell in cells:
                painter.drawEllipse(self.circle_at(number, cell), min(radius, 3.5), min(radius, 3.5))
            return
        ovals = self._ovals_of_row(number)
        for cell in cells:
            painter.drawRoundedRect(ovals[cell][0], radius, radius)
        painter.setFont(self.small.font)
        painter.setPen(QColor(self.theme.on_accent))
        for cell in cells:
            box, fits = ovals[cell]
            if fits:
                self.small.center(painter, box, whos[cell])

    def _ovals_of_row(self, number: int) -> list[tuple[QRectF, bool]]:
        """Return where the operations of a row are, and whether their threads have room there."""
        if number in self._ovals:
            return self._ovals[number]
        found, radius = self._ovals.setdefault(number, []), self._circle
        for cell, who in enumerate(self.whos(number)):
            middle, wide = self.circle_at(number, cell), self.small.width(who)
            half = min(max(radius, wide / 2 + 3), self.sizes.column / 2 - 0.5)
            found.append((QRectF(middle.x() - half, middle.y() - radius, 2 * half, 2 * radius), wide <= 2 * half))
        return found

    def _paint_moves(self, painter: QPainter, number: int, cells: list[int], color: QColor) -> None:
        """Paint above cells that a value was only moved there."""
        painter.setPen(QPen(color, 1.5))
        painter.setBrush(QColor(self.theme.surface))
        for cell in cells:
            painter.drawEllipse(self.circle_at(number, cell), min(self._circle, 4.0), min(self._circle, 4.0))

    def _paint_patches(self, painter: QPainter, number: int, cells: range, shown: Array) -> None:
        """Paint narrow cells as bars that are as high as their values are large."""
        if not len(cells):
            return
        row, theme = self.layout.rows[number], self.theme
        inside = np.arange(cells.start, cells.stop)
        levels = np.where(shown[inside], self.layout.levels(number)[inside], 1.0)
        colors = np.full(inside.size, mixed(theme.raised, theme.surface, 0.35).rgb(), np.uint32)
        colors[shown[inside]] = QColor(theme.border).rgb()
        done = shown[inside] & row.made[inside]
        warps = self._warps_of(row, inside)
        for warp in np.unique(warps[done]).tolist():
            colors[done & (warps == warp)] = mixed(warp_color(theme, warp).name(), theme.surface, 0.75).rgb()
        self._paint_pixels(painter, number, inside, colors, done, levels)

    def _paint_pixels(
        self, painter: QPainter, number: int, cells: Array, colors: Array, last: Array, levels: Array
    ) -> None:
        """Paint ascending cells in colors, a uint32 each, as bars of a height from 0 to 1, at once.

        Those of `last` lie over the others in a shared pixel.
        """
        columns, width = self.layout.rows[number].column[cells], self.sizes.column
        left, high = int(columns[0] * width), max(round(self.sizes.cell), 1)
        line = np.zeros(max(1, math.ceil((columns[-1] + 1) * width) - left), np.uint32)
        bars = np.zeros(line.size)
        for group in (~last, last):
            for shift in range(max(1, math.ceil(width))):
                at = np.minimum((columns[group] * width + min(shift, width)).astype(int) - left, line.size - 1)
                line[at], bars[at] = colors[group], levels[group]
        above = np.arange(high)[:, None] < np.floor((1 - _LOWEST_BAR) * (1 - bars) * high)
        # The image looks at these bytes for as long as it is painted.
        pixels = np.where(above, np.uint32(0), line).tobytes()
        image = QImage(pixels, line.size, high, 4 * line.size, QImage.Format.Format_ARGB32)
        painter.drawImage(QRectF(left, self.sizes.top(number), line.size, self.sizes.cell), image)

    def _paint_bright_patches(self, painter: QPainter, number: int, cells: Sequence[int]) -> None:
        row, inside = self.layout.rows[number], np.unique(np.asarray(cells, np.int64))
        colors = np.full(inside.size, QColor(self.theme.muted).rgb(), np.uint32)
        warps = self._warps_of(row, inside)
        for warp in np.unique(warps[row.made[inside]]).tolist():
            colors[row.made[inside] & (warps == warp)] = warp_color(self.theme, warp).rgb()
        if inside.size:
            self._paint_pixels(painter, number, inside, colors, row.made[inside], self.layout.levels(number)[inside])

    # --- what stands out

    def bright_area(self, number: int, cells: Array) -> QRectF:
        """Return where `paint_bright` paints."""
        row, sizes = self.layout.rows[number], self.sizes
        columns, rows = [row.column[cells]], [np.array([number])]
        for each in (self.layout.edges[number], self.layout.kept[number]):
            here = np.isin(each.cell, cells)
            columns.append(each.column[here])
            rows.append(each.row[here])
        every = np.concatenate(columns)
        left, right = int(every.min()), int(every.max())
        top = sizes.top(int(np.concatenate(rows).min())) - self._circle * 2
        around = 3.0
        area = QRectF(
            sizes.left(left) - around, top - around, sizes.left(right + 1 - left) + 2 * around,
            sizes.top(number) + sizes.cell - top + 2 * around,
        )  # fmt: skip
        for _, _, plan in self._bright_plans(number, cells):
            for box in (*plan.boxes.values(), *(each[0] for each in plan.together)):
                area = area.united(box.adjusted(-around, -around, around, around))
        return area

    def paint_bright(self, painter: QPainter, number: int, cells: Sequence[int]) -> None:
        """Paint some cells of a row, the lines that lead to them and where those begin, as those that count now."""
        row, theme, sizes = self.layout.rows[number], self.theme, self.sizes
        edges = self.layout.edges[number]
        wanted = np.isin(edges.cell, cells) & (edges.row != number)
        warps = self._warps_of(row, edges.cell)
        x0, x1 = (edges.column + 0.5) * sizes.column, (row.column[edges.cell] + 0.5) * sizes.column
        y0 = sizes.head + edges.row * sizes.pitch + sizes.cell
        y1 = sizes.top(number) - self._circle * 0.75
        narrow = sizes.column < AGGREGATED
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, not narrow)
        above = int(edges.row[wanted].min(initial=number))
        seen = None if narrow else outside(self._cells_between(above, number))
        for warp in np.unique(warps[wanted]).tolist():
            mine = wanted & (warps == warp)
            pen = QPen(warp_color(theme, warp), 1 if narrow else 2)
            with clipped_to(painter, seen):
                self._draw_lines(painter, pen, x0[mine], y0[mine], x1[mine], y1)
            if not narrow:
                painter.setPen(pen)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                # Many read one source.
                for start, column in set(zip(edges.row[mine].tolist(), edges.column[mine].tolist(), strict=True)):
                    painter.drawRoundedRect(self._rect(start, column), _ROUND, _ROUND)
        if narrow:
            self._paint_bright_patches(painter, number, cells)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_bright_plans(painter, number, np.asarray(cells, np.int64))
            return
        kept = self.layout.kept[number]
        here = np.isin(kept.cell, cells)
        x, y = (kept.column[here] + 0.5) * sizes.column, sizes.head + kept.row[here] * sizes.pitch + sizes.cell
        self._draw_lines(painter, QPen(QColor(theme.faint), 1.4), x, y, x, sizes.top(number))
        chosen = np.asarray(cells, np.int64)
        made = row.made[chosen]
        # The color of those that were only kept, then those of the warps.
        colors = np.where(made, self._warps_of(row, chosen), -1)
        values, whos = self.row_texts(number), self.whos(number)
        for warp in np.unique(colors).tolist():
            color = QColor(theme.muted) if warp < 0 else warp_color(theme, warp)
            mine = chosen[colors == warp].tolist()
            painter.setPen(QPen(color, 2))
            painter.setBrush(mixed(color.name(), theme.surface, 0.2 if warp < 0 else 0.42))
            for cell in mine:
                painter.drawRoundedRect(self.cell_rect(number, cell), _ROUND, _ROUND)
            if warp >= 0:
                self._paint_whos(painter, number, [cell for cell in mine if row.worked[cell]], whos, color)
                self._paint_moves(painter, number, [cell for cell in mine if not row.worked[cell]], color)
        self._paint_bright_plans(painter, number, chosen)
        if values and self.written(number) is None:
            lettering = self._lettering(number, bold=True)
            painter.setFont(lettering.font)
            painter.setPen(QColor(theme.text))
            for cell in chosen.tolist():
                lettering.center(painter, self.cell_rect(number, cell), values[cell])

    def _cells_between(self, above: int, below: int) -> QRegion:
        """Return where the cells and the operations of the rows between two are: lines pass below them.

        Of very many it returns nothing: to paint around all of them takes longer than a frame.
        """
        found = QRegion()
        between = range(above + 1, below)
        if sum(self.layout.rows[number].column.size for number in between) <= _MOST_PASSED:
            for number in between:
                if number not in self._taken:
                    self._taken[number] = self._region_of_row(number)
                found += self._taken[number]
        return found

    def _region_of_row(self, number: int) -> QRegion:
        row = self.layout.rows[number]
        cells = region_of([self.cell_rect(number, cell) for cell in range(row.column.size)])
        if not self.labelled or self._circle < _LETTERED:
            return cells
        ovals = self._ovals_of_row(number)
        return cells + region_of([ovals[cell][0] for cell in np.flatnonzero(row.made & row.worked).tolist()])

    def paint_differing(self, painter: QPainter, number: int, cell: int) -> None:
        """Frame a cell that is not the same in another order, or that threads race for."""
        painter.setPen(QPen(QColor(self.theme.bad), 2.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(self.cell_rect(number, cell).adjusted(-2, -2, 2, 2), _ROUND + 1, _ROUND + 1)

    def paint_ring(self, painter: QPainter, number: int, cell: int) -> None:
        """Mark an operation of the thread that is followed."""
        painter.setPen(QPen(QColor(self.theme.text), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        radius = max(self._circle, 4.0) + 1.5
        painter.drawEllipse(self.circle_at(number, cell), radius, radius)
