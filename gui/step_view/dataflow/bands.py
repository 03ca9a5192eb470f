"""Bands: bundles of a crowded dataflow's lines, drawn as one area from a warp's sources to its results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpu.declaration.pattern import Array
from gui.step_view.dataflow.layout import LaidOutEdges, Metrics

if TYPE_CHECKING:
    from gpu.stepping.dataflow.rows import Row

_MIN_DISTANCE = 5.0
"""Minimum distance in pixels at which lines are drawn separately, where columns are narrow."""


class Band(NamedTuple):
    """Lines of one warp from columns `left` to `right` of one row to columns `to_left` to `to_right` of another.

    `start` and `end` are the first and last column of each line.
    """

    warp: int
    row: int
    left: int
    right: int
    to_left: int
    to_right: int
    start: Array
    end: Array


def build_bands(number: int, row: Row, edges: LaidOutEdges, warps: Array) -> list[Band]:
    """Return the bands that lead to a row from other rows.

    The first, second, ... operands of the operations form separate bands, since operands that are read far from each
    other would become one wide area.

    Parameters
    ----------
    number : int
        Number of the row.
    edges : LaidOutEdges
        Lines to the row's cells.
    warps : int array
        The warp of each line.
    """
    chosen = np.flatnonzero(edges.row != number)
    order = chosen[np.lexsort((edges.column[chosen], edges.row[chosen], edges.cell[chosen]))]
    cells = edges.cell[order]
    fresh = np.flatnonzero(np.diff(cells, prepend=-1))
    # The number of the operand that each line comes from: the first, the second, ...
    rank = np.arange(order.size) - np.repeat(fresh, np.diff(fresh, append=order.size))
    keys = np.stack((warps[order], edges.row[order], rank))
    groups = np.lexsort((row.column[cells], *keys[::-1]))
    keys, order = keys[:, groups], order[groups]
    starts = np.flatnonzero((np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0))
    if not starts.size:
        return []
    start, end = edges.column[order], row.column[edges.cell[order]]
    extents = [extreme.reduceat(each, starts).tolist() for each in (start, end) for extreme in (np.minimum, np.maximum)]
    heads = keys[:2, starts].tolist()
    lines = (np.split(each, starts[1:]) for each in (start, end))
    return [Band(*each) for each in zip(*heads, *extents, *lines, strict=True)]


class BandGroup(NamedTuple):
    """Bands to a row that are painted together: the lines of several bands, or one band as an area.

    Parameters
    ----------
    near : bool
        True if the bands come from the row just above.
    is_lines : bool
        True for separate lines, false for an area.
    min_x, max_x : float
        Minimum and maximum x.
    x0, y0, x1 : arrays
        Starts and ends of lines; of an area, its left and right edge.
    """

    warp: int
    near: bool
    is_lines: bool
    min_x: float
    max_x: float
    x0: Array
    y0: Array
    x1: Array


def group_bands(number: int, bands_to_row: Sequence[Band], sizes: Metrics) -> list[BandGroup]:
    """Return the groups in which the bands to row `number` are painted at the given sizes.

    Bands with enough space between their lines are drawn as lines, consecutive ones of a warp as one group.
    """

    def classify_band(band: Band) -> tuple[int, bool, bool]:
        is_sparse = sizes.left(band.to_right - band.to_left) > _MIN_DISTANCE * band.end.size
        return band.warp, band.row >= number - 1, is_sparse

    groups = []
    for look, consecutive in groupby(bands_to_row, classify_band):
        same_look = list(consecutive)
        if look[2]:
            rows = np.repeat([band.row for band in same_look], [band.start.size for band in same_look])
            columns = zip(*((band.start, band.end) for band in same_look), strict=True)
            starts, ends = (np.concatenate(column) + 0.5 for column in columns)
            groups.append(_make_group(look, sizes, rows, starts, ends))
            continue
        for band in same_look:
            edges = np.array([[band.left, band.right + 1.0], [band.to_left, band.to_right + 1.0]])
            groups.append(_make_group(look, sizes, np.full(2, band.row), *edges))
    return groups


def _make_group(look: tuple[int, bool, bool], sizes: Metrics, rows: Array, starts: Array, ends: Array) -> BandGroup:
    x0, x1 = starts * sizes.column, ends * sizes.column
    x_min, x_max = np.minimum(x0, x1), np.maximum(x0, x1)
    y0 = sizes.head + rows * sizes.pitch + sizes.cell
    return BandGroup(*look, float(x_min.min()), float(x_max.max()), x0, y0, x1)
