"""Pictures of stretches of a dataflow's rows, painted once for each state that they come to."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPixmap

from gpu.declaration.pattern import Array
from gui.step_view.dataflow.paint import FlowPainter

TILE = 512
"""The width of a stretch in pixels."""
_KEPT_BYTES = 96 * 2**20


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
        self._painted: OrderedDict[tuple[Any, ...], QPixmap] = OrderedDict()
        self._latest: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._bytes = 0
        self._phases: tuple[int, Array, Array] = (-1, np.zeros(0, int), np.zeros(0, bool))
        self._states: dict[int, bytes] = {}
        self._through = {row: np.array(targets) for row, targets in flow.layout.through.items()}
        self.deadline = math.inf
        """The time of `time.perf_counter` from which an older picture has to do."""
        self.late = False
        """Whether an older one had to do since this was last set to False."""

    def _phases_at(self, moment: int) -> tuple[Array, Array]:
        """Return `FlowLayout.phases`."""
        if self._phases[0] != moment:
            self._phases = (moment, *self._flow.layout.phases(moment))
            self._states = {}
        return self._phases[1:]

    def at(self, row: int, tile: int, moment: int) -> QPixmap | None:
        """Return the picture of stretch `tile` of a row: from the circles above the row to its lower edge.

        After the deadline it is an older one; None where there is none either.
        """
        key = self._key(row, tile, moment)
        found = self._painted.get(key)
        if found is not None:
            self._painted.move_to_end(key)
            self._latest[row, tile] = key
            return found
        if time.perf_counter() > self.deadline:
            self.late = True
            latest = self._latest.get((row, tile))
            return self._painted.get(latest) if latest is not None else None
        self._latest[row, tile] = key
        return self._paint(row, tile, moment, key)

    def missing(self, rows: Sequence[int], tiles: range, moment: int) -> tuple[int, int] | None:
        """Return a row and a stretch that have not been painted as they are at a moment; None where all have been."""
        for row in rows:
            for tile in tiles:
                if self._key(row, tile, moment) not in self._painted:
                    return row, tile
        return None

    def prepare(self, row: int, tile: int, moment: int) -> None:
        """Paint a stretch for later."""
        self._paint(row, tile, moment, self._key(row, tile, moment))

    def _key(self, row: int, tile: int, moment: int) -> tuple[int, int, bytes]:
        """Return what a stretch looks like by: how far its row is, and which rows are done that lines pass it to."""
        phases, done = self._phases_at(moment)
        if row not in self._states:
            through = self._through.get(row)
            passing = done[through].tobytes() if through is not None else b""
            self._states[row] = int(phases[row]).to_bytes(8, "little", signed=True) + passing
        return row, tile, self._states[row]

    def _paint(self, row: int, tile: int, moment: int, key: tuple[Any, ...]) -> QPixmap:
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
        self._painted[key] = made
        self._bytes += made.width() * made.height() * 4
        while self._bytes > _KEPT_BYTES:
            _, oldest = self._painted.popitem(last=False)
            self._bytes -= oldest.width() * oldest.height() * 4
        return made
