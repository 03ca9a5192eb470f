"""Pictures of stretches of a dataflow's rows, painted once for each state that they come to."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np
from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gpu.declaration.pattern import Array
from gui.painting.pixmaps import Pixmaps
from gui.step_view.dataflow.paint import FlowPainter
from gui.step_view.dataflow.viewport import TILE

Key = tuple[int, int, bytes]
"""Of a row's stretch: the row's number, the stretch's, and the state that it is in."""


class Tiles:
    """The painted stretches of one picture.

    Parameters
    ----------
    flow : FlowPainter
    ratio : float
        Pixels of the screen for each of the picture.
    """

    def __init__(self, flow: FlowPainter, ratio: float) -> None:
        self._flow, self._ratio = flow, ratio
        self._kept = Pixmaps()
        self._latest: dict[tuple[int, int], Key] = {}
        self._phases: tuple[int, Array, Array] = (-1, np.zeros(0, int), np.zeros(0, bool))
        self._states: dict[int, bytes] = {}
        self._through = {row: np.array(targets) for row, targets in flow.layout.through.items()}
        self.deadline = math.inf
        """The time of `time.perf_counter` from which an older picture has to do."""
        self.late = False
        """Whether an older one had to do since this was last set to False."""

    def _phases_at(self, moment: int) -> tuple[Array, Array]:
        """Return `DataflowLayout.phases`."""
        if self._phases[0] != moment:
            self._phases = (moment, *self._flow.layout.phases(moment))
            self._states = {}
        return self._phases[1:]

    def at(self, row: int, tile: int, moment: int) -> QPixmap | None:
        """Return the picture of stretch `tile` of a row: from the circles above the row to its lower edge.

        After the deadline it is an older one; None where there is none either.
        """
        key = self._key(row, tile, moment)
        found = self._kept.find(key)
        if found is None and time.perf_counter() > self.deadline:
            self.late = True
            latest = self._latest.get((row, tile))
            return self._kept.find(latest) if latest is not None else None
        self._latest[row, tile] = key
        return found or self._kept.keep(key, self._painted(row, tile, moment))

    def prepare(self, rows: Iterable[int], tiles: range, moment: int) -> bool:
        """Paint for later the first of some stretches that is not there; return whether all are."""
        for row in rows:
            for tile in tiles:
                key = self._key(row, tile, moment)
                if key not in self._kept:
                    self._kept.keep(key, self._painted(row, tile, moment))
                    return False
        return True

    def _key(self, row: int, tile: int, moment: int) -> Key:
        """Return what a stretch looks like by: how far its row is, and which rows are done that lines pass it to."""
        phases, done = self._phases_at(moment)
        if row not in self._states:
            through = self._through.get(row)
            passing = done[through].tobytes() if through is not None else b""
            self._states[row] = int(phases[row]).to_bytes(8, "little", signed=True) + passing
        return row, tile, self._states[row]

    def _painted(self, row: int, tile: int, moment: int) -> QPixmap:
        sizes, ratio = self._flow.sizes, self._ratio
        made = QPixmap(QSize(round(TILE * ratio), round((sizes.pitch + 2) * ratio)))
        made.setDevicePixelRatio(ratio)
        made.fill(Qt.GlobalColor.transparent)
        painter = QPainter(made)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(-tile * TILE, -(sizes.top(row) - (sizes.pitch - sizes.cell)))
        phases, done = self._phases_at(moment)
        self._flow.paint_row(painter, row, int(phases[row]), done, tile * TILE, (tile + 1) * TILE)
        painter.end()
        return made
