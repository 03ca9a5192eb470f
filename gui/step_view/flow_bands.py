"""Lines of a crowded dataflow as bands: threads that do alike are one area, from where they read to what they make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu.pattern import Array
from gui.step_view.flow_layout import Cells, Edges


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


def bands(number: int, row: Cells, edges: Edges, warps: Array) -> list[Band]:
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
