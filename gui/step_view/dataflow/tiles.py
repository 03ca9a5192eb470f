"""Cached tiles: pictures of a row's sections, painted once per state of the row."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np
from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gpu.declaration.pattern import Array
from gui.painting.pixmaps import Pixmaps
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.viewport import TILE

Key = tuple[int, int, bytes]
"""Number of the row, number of the tile, and state of the row."""


class Tiles:
    """The tile cache of one picture.

    Parameters
    ----------
    flow : FlowPainter
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
        picture = QPixmap(QSize(round(TILE * ratio), round((sizes.pitch + 2) * ratio)))
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(-tile * TILE, -(sizes.top(row) - (sizes.pitch - sizes.cell)))
        phases, done = self._progress_at(moment)
        self._flow.paint_row(painter, row, int(phases[row]), done, tile * TILE, (tile + 1) * TILE)
        painter.end()
        return picture
