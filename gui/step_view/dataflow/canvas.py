"""The dataflow on screen; painted rows are kept as pictures."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt, QTimer
from PyQt6.QtGui import QColor, QPainter

from gui.painting.theme import look
from gui.step_view.dataflow.bright import BrightPictures
from gui.step_view.dataflow.layout import FlowLayout
from gui.step_view.dataflow.paint import FlowPainter
from gui.step_view.dataflow.port import FlowPort
from gui.step_view.dataflow.tiles import TILE, Tiles

_BUDGET_S, _LEAST_S = 0.003, 0.0015
"""How long the frame of a move may paint rows anew, and where it comes late; what is left comes with the next."""
_LATE_S = 0.007
"""How long after a move its frame comes late."""
_MORE_S = 0.006
"""How long the frames after it may."""

_MOST_BRIGHT = 4
"""How many times as large as the view a picture of the moment's operations may be."""

Cell = tuple[int, int]


class FlowCanvas(FlowPort):
    """Rows of time with an element a column.

    Parameters
    ----------
    whole : bool
        Whether all columns are to be seen at once even where that leaves no room for all of their values.
    """

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self.setAccessibleName("Dataflow")
        self.setMinimumSize(240, 160)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.selected: Cell | None = None
        self.lit: dict[int, list[int]] = {}
        self.followed: tuple[int, int] | None = None
        self.differing: Cell | None = None
        self._warps: Sequence[int] = (1,)
        self._several = False
        self._painter: FlowPainter | None = None
        self._tiles: Tiles | None = None
        self._bright: BrightPictures | None = None
        self._moved = -math.inf
        # A timer, which lets keys and the mouse go first.
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self.update)

    # --- what is shown

    def open(self, layout: FlowLayout | None, warps: Sequence[int], *, several_blocks: bool) -> None:
        """Show another dataflow; `warps` are those of a block, by launch."""
        self._warps, self._several = warps, several_blocks
        self.selected, self.lit, self.followed, self.differing = None, {}, None, None
        self._take(layout)

    def show_moment(self, moment: int) -> None:
        """Show the picture as it is just before a moment."""
        self.moment, self._moved = moment, time.perf_counter()
        self._follow()
        self.update()

    def select(self, cell: Cell | None) -> None:
        """Light up a cell with all that it was made from; None lights up nothing."""
        self.selected, self.lit = cell, {}
        if cell is not None and self.layout_ is not None:
            for row, number in self.layout_.dataflow.ancestry(*cell) | {cell}:
                self.lit.setdefault(int(row), []).append(int(number))
        self.update()

    def show_differing(self, cell: Cell | None) -> None:
        """Mark a cell as one that another order of the warps gives another value."""
        self.differing = cell
        self.update()

    def follow_thread(self, thread: tuple[int, int] | None) -> None:
        """Mark the operations of one thread of one block."""
        self.followed = thread
        self.update()

    # --- painting

    def _forget(self) -> None:
        super()._forget()
        self._painter = self._tiles = self._bright = None

    def _ready(self) -> FlowPainter:
        assert self.layout_ is not None
        if self._painter is None:
            self._painter = FlowPainter(self.layout_, self.sizes, look(), self._warps, self._several)
        return self._painter

    def _ready_tiles(self) -> Tiles:
        if self._tiles is None:
            self._tiles = Tiles(self._ready(), self.devicePixelRatioF())
        return self._tiles

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(look().theme.surface))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        deadline = self._deadline()
        if self.layout_ is None or not self.layout_.rows:
            painter.setPen(QColor(look().theme.muted))
            if self.layout_ is not None:
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No operation on data was recorded.")
            painter.end()
            return
        flow, tiles, origin, sizes = self._ready(), self._ready_tiles(), self._origin(), self.sizes
        tiles.deadline, tiles.late = deadline, False
        rows = self._rows_in_view(self._offset)
        current = self.current_row
        if current >= 0:
            flow.labels.paint_band(painter, current, origin.y(), self.width())
        painter.setOpacity(0.35 if self.selected is not None else 1.0)
        painter.save()
        painter.setClipRect(QRectF(sizes.label, 0, self.width() - sizes.label, self.height()))
        stretches = self._stretches(self._offset)
        # What counts now comes first, if time should run out.
        nearest = sorted(rows, key=lambda row: abs(row - current))
        painted = {row: [tiles.at(row, tile, self.moment) for tile in stretches] for row in nearest}
        for row in rows:
            top = origin.y() + sizes.top(row) - (sizes.pitch - sizes.cell)
            for tile, picture in zip(stretches, painted[row], strict=True):
                if picture is not None:
                    painter.drawPixmap(QPointF(origin.x() + tile * TILE, top), picture)
        painter.setOpacity(1.0)
        painter.translate(origin)
        self._paint_overlay(painter, flow, rows)
        painter.restore()
        flow.labels.paint(painter, rows, self.moment, current, origin.y(), self.width())
        painter.end()
        if tiles.late:
            self._later.start()

    def _deadline(self) -> float:
        """Return the time of `time.perf_counter` from which older pictures of rows have to do."""
        now, moved, self._moved = time.perf_counter(), self._moved, -math.inf
        if self.patient:
            return math.inf
        if moved < 0:
            return now + _MORE_S
        if self.current_row >= 0 and not self._ready_bright().knows(self.moment):
            return now + _LEAST_S  # what counts takes its time too
        return min(now + _BUDGET_S, max(now + _LEAST_S, moved + _LATE_S))

    def prepare(self, moment: int) -> bool:
        """Paint a part of what will be in view at a moment; return whether all has been painted."""
        if self.layout_ is None or not self.layout_.rows:
            return True
        row, goal, tiles = self._row_at(moment), self._goal_at(moment), self._ready_tiles()
        if row >= 0 and self._ready_bright().prepare(row, self._current_cells(row, moment), moment):
            return False
        # What counts then comes first, if the next move should come before all is painted.
        nearest = sorted(self._rows_in_view(goal), key=lambda each: abs(each - row))
        missing = tiles.missing(nearest, self._stretches(goal), moment)
        if missing is not None:
            tiles.prepare(*missing, moment)
        return missing is None

    def _paint_current(self, painter: QPainter, flow: FlowPainter, row: int) -> None:
        """Paint the operations of the moment, from the picture that has been made of them where there is one."""
        cells = self._current_cells(row, self.moment)
        if not cells.size:
            return
        picture = None if self.patient else self._ready_bright().at(row, cells, self.moment)
        if picture is None:
            flow.paint_bright(painter, row, cells.tolist())
        else:
            painter.drawPixmap(picture[0], picture[1])

    def _ready_bright(self) -> BrightPictures:
        if self._bright is None:
            most = _MOST_BRIGHT * self.width() * self.height()
            self._bright = BrightPictures(self._ready(), self.devicePixelRatioF(), most)
        return self._bright

    def _paint_overlay(self, painter: QPainter, flow: FlowPainter, rows: range) -> None:
        assert self.layout_ is not None
        if self.selected is not None:
            for row, cells in self.lit.items():
                if rows.start - 1 <= row <= rows.stop:
                    flow.paint_bright(painter, row, cells)
        else:
            row = self.current_row
            if row >= 0:
                self._paint_current(painter, flow, row)
        if self.differing is not None:
            flow.paint_differing(painter, *self.differing)
        if self.followed is not None:
            block, thread = self.followed
            for row in rows:
                each = self.layout_.rows[row]
                mine = each.made & (each.block == block) & (each.thread == thread) & (each.moment < self.moment)
                for cell in np.flatnonzero(mine).tolist():
                    flow.paint_ring(painter, row, cell)
