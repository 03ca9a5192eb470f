"""Cached pictures of a dataflow: tiles, which are sections of its rows, and highlighted operations over them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np
from PyQt6.QtCore import QPointF, QRect, QSize
from PyQt6.QtGui import QPainter, QPixmap

from gpu.declaration.pattern import Array
from gui.painting.pixmaps import Pixmaps, paint_pixmap
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.viewport import TILE

Key = tuple[int, int, bytes]
"""Number of the row, number of the tile, and state of the row."""


class Tiles:
    """The tiles of one dataflow, each painted once per state of its row.

    Parameters
    ----------
    ratio : float
        Device pixel ratio.
    """

    def __init__(self, flow: FlowPainter, ratio: float) -> None:
        self._flow, self._ratio = flow, ratio
        self._pixmaps = Pixmaps()
        self._last_keys: dict[tuple[int, int], Key] = {}
        self._progress: tuple[int, Array, Array] = (-1, np.zeros(0, int), np.zeros(0, bool))
        self._states: dict[int, bytes] = {}
        self._passing_targets = {row: np.array(targets) for row, targets in flow.layout.passing_targets.items()}
        self.deadline = math.inf
        """The time of `time.perf_counter` after which outdated tiles are used instead of painting new ones."""
        self.used_outdated = False
        """Whether an outdated tile was used since this was last set to False."""

    def _progress_at(self, moment: int) -> tuple[Array, Array]:
        """Return `DataflowLayout.phases` of a moment, computed once per moment."""
        if self._progress[0] != moment:
            self._progress = (moment, *self._flow.layout.all_progress(moment))
            self._states = {}
        return self._progress[1:]

    def get_picture(self, row: int, tile: int, moment: int) -> QPixmap | None:
        """Return the picture of a row's tile, from the circles above the row to its lower edge.

        After the deadline, return an outdated picture, or None if there is none.
        """
        key = self._key(row, tile, moment)
        picture = self._pixmaps.find(key)
        if picture is None and time.perf_counter() > self.deadline:
            self.used_outdated = True
            latest = self._last_keys.get((row, tile))
            return self._pixmaps.find(latest) if latest is not None else None
        self._last_keys[row, tile] = key
        return picture or self._pixmaps.insert(key, self._paint_tile(row, tile, moment))

    def prepare(self, rows: Iterable[int], tiles: range, moment: int) -> bool:
        """Paint the first of some tiles that is not cached; return whether all are cached."""
        for row in rows:
            for tile in tiles:
                key = self._key(row, tile, moment)
                if key not in self._pixmaps:
                    self._pixmaps.insert(key, self._paint_tile(row, tile, moment))
                    return False
        return True

    def _key(self, row: int, tile: int, moment: int) -> Key:
        """Return a tile's cache key: its row's progress, and which targets of the lines passing it are complete."""
        phases, done = self._progress_at(moment)
        if row not in self._states:
            through = self._passing_targets.get(row)
            passing = done[through].tobytes() if through is not None else b""
            self._states[row] = int(phases[row]).to_bytes(8, "little", signed=True) + passing
        return row, tile, self._states[row]

    def _paint_tile(self, row: int, tile: int, moment: int) -> QPixmap:
        sizes, ratio = self._flow.sizes, self._ratio
        phases, done = self._progress_at(moment)

        def paint(painter: QPainter) -> None:
            painter.translate(-tile * TILE, -(sizes.top(row) - (sizes.pitch - sizes.cell)))
            self._flow.paint_row(painter, row, int(phases[row]), done, tile * TILE, (tile + 1) * TILE)

        return paint_pixmap(QSize(round(TILE * ratio), round((sizes.pitch + 2) * ratio)), ratio, paint)


class HighlightPictures:
    """A cache of pictures of the operations executed at each moment.

    Parameters
    ----------
    ratio : float
        Device pixel ratio.
    """

    def __init__(self, flow: FlowPainter, ratio: float) -> None:
        self._flow, self._ratio = flow, ratio
        self._pixmaps = Pixmaps()
        self._boxes: dict[int, QRect] = {}

    def paint(self, painter: QPainter, row: int, moment: int, max_area: float) -> None:
        """Paint the operations of a moment.

        Parameters
        ----------
        painter : QPainter
            A painter in the coordinates of the dataflow's picture.
        row : int
            The number of the row that the moment belongs to.
        max_area : float
            The largest area in square pixels of a picture to cache; larger ones are painted each time.
        """
        area = self._highlight_box(row, moment)
        if area.width() * area.height() > max_area:
            self._flow.paint_highlight(painter, row, self._flow.layout.cells_at(row, moment).tolist())
        elif not area.isEmpty():
            picture = self._pixmaps.find_or_paint(moment, lambda: self._paint_picture(row, moment))
            painter.drawPixmap(QPointF(area.topLeft()), picture)

    def prepare(self, row: int, moment: int, max_area: float) -> bool:
        """Add the picture of a moment to the cache; return whether there was nothing to do."""
        area = self._highlight_box(row, moment)
        if moment in self._pixmaps or area.isEmpty() or area.width() * area.height() > max_area:
            return True
        self._pixmaps.insert(moment, self._paint_picture(row, moment))
        return False

    def _highlight_box(self, row: int, moment: int) -> QRect:
        """Return the bounding box of a moment's operations and the lines to them; empty if there are none."""
        if moment not in self._boxes:
            cells = self._flow.layout.cells_at(row, moment)
            self._boxes[moment] = self._flow.highlight_area(row, cells).toAlignedRect() if cells.size else QRect()
        return self._boxes[moment]

    def _paint_picture(self, row: int, moment: int) -> QPixmap:
        area = self._highlight_box(row, moment)

        def paint(painter: QPainter) -> None:
            painter.translate(QPointF(-area.topLeft()))
            self._flow.paint_highlight(painter, row, self._flow.layout.cells_at(row, moment).tolist())

        return paint_pixmap(area.size() * self._ratio, self._ratio, paint)
