"""Lines of a dataflow at one size: which of them cross a row, and their looks there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PyQt6 import sip
from PyQt6.QtCore import QLineF

from gpu.declaration.pattern import Array
from gui.painting.shapes import lines_between
from gui.step_view.dataflow.layout import DataflowLayout, Metrics

if TYPE_CHECKING:
    from gpu.stepping.dataflow.rows import Row

UNCHANGED, FAR, NEAR, FILLED = range(4)
"""Looks of a line, in painting order: to an unchanged cell; to a future cell, from far rows or from the row just above;
to a cell that has its value."""


class _Lines(NamedTuple):
    """Lines, sorted by the rows at which they end."""

    target: Array
    start: Array
    warp: Array
    look: Array
    filled: Array
    x0: Array
    y0: Array
    x1: Array
    y1: Array


class FlowLines:
    """The lines of a layout.

    Parameters
    ----------
    operation_distance : float
        Distance from a cell to the operation above it, at which its lines end.
    """

    def __init__(self, layout: DataflowLayout, sizes: Metrics, operation_distance: float) -> None:
        self._layout, self._sizes, self._operation_distance = layout, sizes, operation_distance

    def groups(
        self, number: int, left: float, right: float, complete_rows: Array
    ) -> Iterator[tuple[int, int, sip.array[QLineF | None]]]:
        """Return the lines that cross a row between two x, in groups of one warp and look, in painting order.

        Parameters
        ----------
        number : int
            Number of the row.
        left, right : float
            Range of x.
        complete_rows : bool array
            True for complete rows.
        """
        lines = self._all_lines
        behind = slice(int(np.searchsorted(lines.target, number)), None)
        x0, x1 = lines.x0[behind], lines.x1[behind]
        # Lines that start below the row belong to the next one, and must not affect this row's picture.
        crossing = (lines.start[behind] < number) & (np.minimum(x0, x1) <= right) & (np.maximum(x0, x1) >= left)
        visible = np.flatnonzero(crossing) + behind.start
        is_done = (lines.look[visible] != UNCHANGED) & lines.filled[visible] & complete_rows[lines.target[visible]]
        warps = int(lines.warp.max(initial=0)) + 1
        keys = np.where(is_done, FILLED, lines.look[visible]) * warps + lines.warp[visible]
        for key in np.unique(keys).tolist():
            group = visible[keys == key]
            look, warp = divmod(key, warps)
            yield look, warp, lines_between(lines.x0[group], lines.y0[group], lines.x1[group], lines.y1[group])

    @cached_property
    def _all_lines(self) -> _Lines:
        lines = [self._lines_to_row(number, row) for number, row in enumerate(self._layout.rows)]
        return _Lines(*(np.concatenate([np.zeros(0, int), *column]) for column in zip(*lines, strict=True)))

    def _lines_to_row(self, number: int, row: Row) -> _Lines:
        edges, kept, sizes = self._layout.edges[number], self._layout.unchanged_edges[number], self._sizes
        from_other_row = edges.row != number
        cell = np.concatenate((kept.cell, edges.cell[from_other_row]))
        start = np.concatenate((kept.row, edges.row[from_other_row]))
        column = np.concatenate((kept.column, edges.column[from_other_row]))
        is_kept = np.arange(cell.size) < kept.cell.size
        look = np.where(is_kept, UNCHANGED, np.where(start >= number - 1, NEAR, FAR))
        return _Lines(
            target=np.full(cell.size, number),
            start=start,
            warp=np.where(is_kept, 0, row.warp[cell]),
            look=look,
            filled=row.moment[cell] >= 0,
            x0=(column + 0.5) * sizes.column,
            y0=sizes.head + start * sizes.pitch + sizes.cell,
            x1=(row.column[cell] + 0.5) * sizes.column,
            y1=sizes.top(number) - np.where(is_kept, 0, self._operation_distance),
        )
