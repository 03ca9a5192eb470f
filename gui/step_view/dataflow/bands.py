"""Lines of a crowded dataflow as bands: threads that do alike are one area, from where they read to what they make."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpu.declaration.pattern import Array
from gui.step_view.dataflow.layout import Cells, LaidOutEdges, Metrics

_APART = 5.0
"""Pixels between lines from which they are seen one by one, where columns are narrow."""


class Band(NamedTuple):
    """Lines of one warp from one row: columns `left` to `right` of that row lead to columns `to_left` to `to_right`.

    `start` and `end` are the columns of each line.
    """

    warp: int
    row: int
    left: int
    right: int
    to_left: int
    to_right: int
    start: Array
    end: Array


def bands(number: int, row: Cells, edges: LaidOutEdges, warps: Array) -> list[Band]:
    """Return the bands that lead to a row from others.

    Each source of an operation is a band of its own, so that what is read far apart does not become one wide area.

    Parameters
    ----------
    number : int
        The row's.
    warps : int array
        The warp of each line.
    """
    chosen = np.flatnonzero(edges.row != number)
    order = chosen[np.lexsort((edges.column[chosen], edges.row[chosen], edges.cell[chosen]))]
    cells = edges.cell[order]
    fresh = np.flatnonzero(np.diff(cells, prepend=-1))
    # Which source of its operation each line comes from: the first, the second, ...
    rank = np.arange(order.size) - np.repeat(fresh, np.diff(fresh, append=order.size))
    keys = np.stack((warps[order], edges.row[order], rank))
    groups = np.lexsort((row.column[cells], *keys[::-1]))
    keys, order = keys[:, groups], order[groups]
    starts = np.flatnonzero((np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0))
    if not starts.size:
        return []
    start, end = edges.column[order], row.column[edges.cell[order]]
    extents = [least.reduceat(each, starts).tolist() for each in (start, end) for least in (np.minimum, np.maximum)]
    heads = keys[:2, starts].tolist()
    lines = (np.split(each, starts[1:]) for each in (start, end))
    return [Band(*each) for each in zip(*heads, *extents, *lines, strict=True)]


class BandGroup(NamedTuple):
    """What is painted in one go of the bands to a row: the lines of some, or one of them as an area.

    Parameters
    ----------
    near : bool
        Whether it comes from the row just above.
    least, most : float
        The x between which it lies.
    x0, y0, x1 : arrays
        Where lines begin, and where they end; of an area its left edge and its right one.
    """

    warp: int
    near: bool
    is_lines: bool
    least: float
    most: float
    x0: Array
    y0: Array
    x1: Array


def band_groups(number: int, found: Sequence[Band], sizes: Metrics) -> list[BandGroup]:
    """Return the bands to row `number` as they are painted at a size.

    Those with so few lines that each is seen for itself are lines; such bands that follow each other are one group.
    """

    def look_of(band: Band) -> tuple[int, bool, bool]:
        apart = sizes.left(band.to_right - band.to_left) > _APART * band.end.size
        return band.warp, band.row >= number - 1, apart

    made = []
    for look, several in groupby(found, look_of):
        own = list(several)
        if look[2]:
            rows = np.repeat([band.row for band in own], [band.start.size for band in own])
            starts, ends = (np.concatenate(each) + 0.5 for each in zip(*((b.start, b.end) for b in own), strict=True))
            made.append(_group(look, sizes, rows, starts, ends))
            continue
        for band in own:
            edges = np.array([[band.left, band.right + 1.0], [band.to_left, band.to_right + 1.0]])
            made.append(_group(look, sizes, np.full(2, band.row), *edges))
    return made


def _group(look: tuple[int, bool, bool], sizes: Metrics, rows: Array, starts: Array, ends: Array) -> BandGroup:
    x0, x1 = starts * sizes.column, ends * sizes.column
    least, most = np.minimum(x0, x1), np.maximum(x0, x1)
    y0 = sizes.head + rows * sizes.pitch + sizes.cell
    return BandGroup(*look, float(least.min()), float(most.max()), x0, y0, x1)
