"""Which values of a row are written where, when there is not room for all: what was made comes first.

A value that is wider than its column reaches over its neighbors; where these have values too, every second one stands
a line lower. Where fewer than half of those that a row made have room, what each warp made is told in a few words
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from PyQt6.QtCore import QRectF

from gpu.declaration.pattern import Array
from gui.step_view.dataflow.layout import Cells

_AROUND = 4.0
"""Pixels that a value keeps around it within its box."""
_LEAST = 9
"""The size of print below which there are no two lines in a cell."""
_ENOUGH = 0.5
"""The part of what was made that has to have room."""

Advance = Callable[[int], float]
"""Returns how wide a character is in print of a size: all are alike."""


@dataclass(frozen=True)
class Written:
    """Texts of a row: of some cells, and of what warps made together.

    Parameters
    ----------
    px : int
        The size of the print.
    boxes : dict of int to QRectF
        Where the value of a cell is written.
    texts : dict of int to str
        The values.
    together : tuple of (QRectF, str, int)
        What a warp made: where, in words, and the number of its color.
    """

    px: int = 0
    boxes: dict[int, QRectF] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    together: tuple[tuple[QRectF, str, int], ...] = ()


class Room:
    """The room that is left in a row, in whole pixels from `left` to `right`."""

    def __init__(self, left: float, right: float) -> None:
        self._left, self._right = left, right
        self._taken = np.zeros(max(int(right - left) + 2, 1), bool)

    def take(self, middle: float, width: float) -> float | None:
        """Take some room around a middle, within the ends; return where it begins, None where another is there."""
        if width > self._right - self._left:
            return None
        left = min(max(middle - width / 2, self._left), self._right - width)
        first = int(left - self._left)
        here = self._taken[first : int(left - self._left + width) + 1]
        if here.any():
            return None
        here[:] = True
        return left


def written(
    row: Cells, cells: Array, texts: Sequence[str], rects: Callable[[int], QRectF], ends: tuple[float, float],
    warps: Array, name: Callable[[int], str], sizes: Sequence[int], least: int, advance: Advance, *,
    covering: bool = False,
) -> Written:  # fmt: skip
    """Return what is written of cells of a row.

    Parameters
    ----------
    cells : int array
        Which ones, ascending.
    texts : sequence of str
        The values of all cells of the row.
    rects : callable
        The number of a cell -> where it lies.
    ends : (float, float)
        The x where the row begins and ends.
    warps : int array
        The number of each of these cells' warps, by which it is colored.
    name : callable
        The number of a warp -> how it is called.
    sizes : sequence of int
        The sizes of print in which all may be written, largest first.
    least : int
        The size where there is not room for all.
    covering : bool
        Whether what a warp made is told across all of its cells: in the middle of framed ones it would seem a cell.
    """
    if not cells.size:
        return Written()
    made = bool(row.made[cells].any())
    letters = np.array([len(texts[cell]) for cell in cells.tolist()])
    first = rects(int(cells[0]))
    room = ends[1] - ends[0]
    middles = np.array([rects(cell).center().x() for cell in cells.tolist()])

    def widths(size: int, lines: int) -> Array:
        return np.maximum(letters * advance(size) + _AROUND / lines, first.width() if lines == 1 else 0)

    found: dict[int, QRectF] = {}
    px, lines = least, 1
    highest = int(first.height() / 2)  # digits are lower than their print
    for size, among in (*((size, 1) for size in sizes), *((size, 2) for size in sizes if _LEAST <= size <= highest)):
        wide = widths(size, among)
        apart = middles[among:] - middles[:-among]
        if wide.sum() <= among * room and (apart >= (wide[among:] + wide[:-among]) / 2).all():
            found = _placed(cells, texts, rects, ends, wide, among)
            if len(found) == cells.size:
                px, lines = size, among
                break
    wide = widths(px, lines)
    enough = int(np.ceil(_ENOUGH * cells.size))
    if len(found) < cells.size and (not made or np.sort(wide)[:enough].sum() <= room):
        found = _placed(cells, texts, rects, ends, wide, 1)
    if made and len(found) < enough:
        told = _together(row, cells, rects, ends, warps, name, px, advance, covering)
        if told:
            return Written(px, together=told)
    if made and not found:
        found = _placed(cells, texts, rects, ends, wide, 1)
    return Written(px, found, {cell: texts[cell] for cell in found})


def _placed(
    cells: Array, texts: Sequence[str], rects: Callable[[int], QRectF], ends: tuple[float, float], widths: Array,
    lines: int,
) -> dict[int, QRectF]:  # fmt: skip
    """Return the boxes of those cells whose values have room, the leftmost first, on so many lines in turn."""
    rooms, found = [Room(*ends) for _ in range(lines)], {}
    for place, (cell, wide) in enumerate(zip(cells.tolist(), widths.tolist(), strict=True)):
        rect, line = rects(cell), place % lines
        high = rect.height() / lines
        if texts[cell] and (left := rooms[line].take(rect.center().x(), wide)) is not None:
            found[cell] = QRectF(left, rect.top() + line * high, wide, high)
    return found


def _together(
    row: Cells, cells: Array, rects: Callable[[int], QRectF], ends: tuple[float, float], warps: Array,
    name: Callable[[int], str], px: int, advance: Advance, covering: bool,
) -> tuple[tuple[QRectF, str, int], ...]:  # fmt: skip
    """Return what each warp made, where all have room for that; else what all made."""
    several = np.unique(warps).tolist()
    groups = [(warp, cells[warps == warp]) for warp in several]
    for chosen in (groups, [(several[0], cells)]) if len(several) > 1 else (groups,):
        room, found = Room(*ends), []
        for warp, mine in chosen:
            first, last = rects(int(mine[0])), rects(int(mine[-1]))
            whose = name(warp) if len(chosen) == len(several) else f"{len(several)} warps"
            what = f"× {row.operator[0]}" if len(row.operator) == 1 and row.operator != ("?:",) else "values"
            text = f"{whose}: {mine.size} {what}"
            wide = len(text) * advance(px) + 2 * _AROUND
            if covering:
                wide = max(wide, last.right() - first.left())
            left = room.take((first.left() + last.right()) / 2, wide)
            if left is None:
                break
            found.append((QRectF(left, first.top(), wide, first.height()), text, warp))
        else:
            return tuple(found)
    return ()
