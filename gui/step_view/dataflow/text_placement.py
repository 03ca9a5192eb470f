"""Placement of a row's values when not all of them fit: values that the row wrote come first.

A value wider than its column overlaps its neighbors; if these have values too, the values alternate between two lines.
If fewer than half of the written values fit, a short summary per warp replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QRectF

from gpu.declaration.pattern import Array

if TYPE_CHECKING:
    from gpu.stepping.dataflow.rows import Row

_TEXT_PADDING = 4.0
"""Horizontal padding in pixels of a value in its box."""
_MIN_TWO_LINE_FONT = 9
"""Minimum font size in pixels for two lines in a cell."""
_MIN_PLACED_SHARE = 0.5
"""Minimum share of the written values that must fit."""


@dataclass(frozen=True)
class TextPlacement:
    """Placed texts of a row: values of cells, or one summary per warp.

    Parameters
    ----------
    px : int
        Font size.
    boxes : dict of int to QRectF
        Box of each placed cell's value.
    texts : dict of int to str
        Values of the placed cells.
    summaries : tuple of (QRectF, str, int)
        Box, text and warp number of each summary.
    """

    px: int = 0
    boxes: dict[int, QRectF] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    summaries: tuple[tuple[QRectF, str, int], ...] = ()


class FreeSpace:
    """The free space of a row between `left` and `right`, in whole pixels."""

    def __init__(self, left: float, right: float) -> None:
        self._left, self._right = left, right
        self._occupied = np.zeros(max(int(right - left) + 2, 1), bool)

    def reserve(self, middle: float, width: float) -> float | None:
        """Reserve space around `middle`, moved inside the ends; return its left edge, or None if it is occupied."""
        if width > self._right - self._left:
            return None
        left = min(max(middle - width / 2, self._left), self._right - width)
        first = int(left - self._left)
        span = self._occupied[first : int(left - self._left + width) + 1]
        if span.any():
            return None
        span[:] = True
        return left


@dataclass(frozen=True)
class RowValues:
    """Values of some cells of a row, to be placed.

    Parameters
    ----------
    cells : int array
        Numbers of the cells, ascending.
    texts : sequence of str
        Values of all cells of the row.
    cell_rect : callable
        Returns the box of a cell by its number.
    ends : (float, float)
        The x of the row's start and end.
    warps : int array
        Warp number of each of the cells, which determines its color.
    warp_name : callable
        Returns a warp's name by its number.
    digit_width : callable
        Returns the width of a character at a font size; the font has a fixed width.
    """

    row: Row
    cells: Array
    texts: Sequence[str]
    cell_rect: Callable[[int], QRectF]
    ends: tuple[float, float]
    warps: Array
    warp_name: Callable[[int], str]
    digit_width: Callable[[int], float]

    def place(self, sizes: Sequence[int], fallback_size: int, *, covering: bool = False) -> TextPlacement:
        """Return boxes for the values that fit, or for summaries.

        Parameters
        ----------
        sizes : sequence of int
            Font sizes to try for placing all values, largest first.
        fallback_size : int
            Font size if not all values fit.
        covering : bool
            Extend a warp's summary across all of its cells; amid framed cells, a short one would look like a cell.
        """
        cells, room = self.cells, self.ends[1] - self.ends[0]
        if not cells.size:
            return TextPlacement()
        has_results = bool(self.row.computed[cells].any())
        middles = np.array([self.cell_rect(cell).center().x() for cell in cells.tolist()])
        boxes: dict[int, QRectF] = {}
        px, lines = fallback_size, 1
        highest = int(self.cell_rect(int(cells[0])).height() / 2)  # digits are lower than the font's height
        for size, count in (
            *((size, 1) for size in sizes),
            *((size, 2) for size in sizes if _MIN_TWO_LINE_FONT <= size <= highest),
        ):
            widths = self._measure_widths(size, count)
            distances = middles[count:] - middles[:-count]
            needed = (widths[count:] + widths[:-count]) / 2
            if widths.sum() <= count * room and (distances >= needed).all():
                boxes = self._place_values(widths, count)
                if len(boxes) == cells.size:
                    px, lines = size, count
                    break
        widths = self._measure_widths(px, lines)
        enough = int(np.ceil(_MIN_PLACED_SHARE * cells.size))
        if len(boxes) < cells.size and (not has_results or np.sort(widths)[:enough].sum() <= room):
            boxes = self._place_values(widths, 1)
        if has_results and len(boxes) < enough:
            summaries = self._place_summaries(px, covering=covering)
            if summaries:
                return TextPlacement(px, summaries=summaries)
        if has_results and not boxes:
            boxes = self._place_values(widths, 1)
        return TextPlacement(px, boxes, {cell: self.texts[cell] for cell in boxes})

    def _measure_widths(self, size: int, lines: int) -> Array:
        min_width = self.cell_rect(int(self.cells[0])).width() if lines == 1 else 0
        widths: Array = np.maximum(self._lengths * self.digit_width(size) + _TEXT_PADDING / lines, min_width)
        return widths

    @cached_property
    def _lengths(self) -> Array:
        """Return the number of characters of each value."""
        return np.array([len(self.texts[cell]) for cell in self.cells.tolist()])

    def _place_values(self, widths: Array, lines: int) -> dict[int, QRectF]:
        """Return boxes for the values that fit, from left to right, alternating between `lines` lines."""
        rooms, boxes = [FreeSpace(*self.ends) for _ in range(lines)], {}
        for index, (cell, width) in enumerate(zip(self.cells.tolist(), widths.tolist(), strict=True)):
            rect, line = self.cell_rect(cell), index % lines
            line_height = rect.height() / lines
            if self.texts[cell] and (left := rooms[line].reserve(rect.center().x(), width)) is not None:
                boxes[cell] = QRectF(left, rect.top() + line * line_height, width, line_height)
        return boxes

    def _place_summaries(self, px: int, *, covering: bool) -> tuple[tuple[QRectF, str, int], ...]:
        """Return a summary for each warp if all of them fit, else one for all warps."""
        warp_numbers, operators = np.unique(self.warps).tolist(), self.row.operators
        groups = [(warp, self.cells[self.warps == warp]) for warp in warp_numbers]
        noun = f"× {operators[0]}" if len(operators) == 1 and operators != ("?:",) else "values"
        for chosen in (groups, [(warp_numbers[0], self.cells)]) if len(warp_numbers) > 1 else (groups,):
            room, summaries = FreeSpace(*self.ends), []
            for warp, own_cells in chosen:
                first, last = self.cell_rect(int(own_cells[0])), self.cell_rect(int(own_cells[-1]))
                owner = self.warp_name(warp) if len(chosen) == len(warp_numbers) else f"{len(warp_numbers)} warps"
                text = f"{owner}: {own_cells.size} {noun}"
                width = len(text) * self.digit_width(px) + 2 * _TEXT_PADDING
                if covering:
                    width = max(width, last.right() - first.left())
                left = room.reserve((first.left() + last.right()) / 2, width)
                if left is None:
                    break
                summaries.append((QRectF(left, first.top(), width, first.height()), text, warp))
            else:
                return tuple(summaries)
        return ()
