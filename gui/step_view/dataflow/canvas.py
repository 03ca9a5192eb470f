"""Paints what is seen of a dataflow at a moment, from pictures of its rows that are kept."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QPainter

from gui.painting.pixmaps import WORK_S
from gui.painting.theme import look
from gui.step_view.dataflow.bright import BrightPictures
from gui.step_view.dataflow.paint import FlowPainter
from gui.step_view.dataflow.tiles import Tiles
from gui.step_view.dataflow.viewport import TILE, Cell, Viewport

if TYPE_CHECKING:
    from gpu.stepping.races import Race

_MOST_BRIGHT = 4
"""How many times as large as the view a picture of the moment's operations may be."""


@dataclass
class Marks:
    """What stands out beside the operations of the moment.

    Parameters
    ----------
    selected : Cell or None
        The cell that is chosen; while there is one, the operations of the moment do not stand out.
    lit : dict
        The cells that it was made from and itself, by row.
    followed : (int, int) or None
        A block and a thread.
    differing : Cell or None
        A cell that another order of the warps gives another value.
    racing : mapping
        The cells that threads race for; they stand out from the second access on.
    """

    selected: Cell | None = None
    lit: dict[int, list[int]] = field(default_factory=dict)
    followed: tuple[int, int] | None = None
    differing: Cell | None = None
    racing: Mapping[Cell, Race] = field(default_factory=dict)


class Canvas:
    """Paints what a viewport shows.

    Parameters
    ----------
    viewport : Viewport
    patient : bool
        Whether all is painted at once, however long that takes.
    """

    def __init__(self, viewport: Viewport, *, patient: bool) -> None:
        self._viewport, self._patient = viewport, patient
        self._warps: Sequence[int] = (1,)
        self._several_blocks = False
        self._flow: FlowPainter | None = None
        self._ratio = 1.0
        self._tiles: Tiles | None = None
        self._bright: BrightPictures | None = None

    def open(self, warps: Sequence[int], *, several_blocks: bool) -> None:
        """Paint another dataflow, the viewport's; `warps` are those of a block, by launch."""
        self._warps, self._several_blocks = warps, several_blocks

    @property
    def flow(self) -> FlowPainter:
        """What paints the rows as they are seen now."""
        layout, sizes = self._viewport.layout, self._viewport.sizes
        assert layout is not None
        made = self._flow
        if made is None or made.layout is not layout or made.sizes != sizes or made.look != look():
            made = self._flow = FlowPainter(layout, sizes, look(), self._warps, self._several_blocks)
            self._tiles = self._bright = None
        return made

    def _pictures(self, ratio: float) -> tuple[FlowPainter, Tiles, BrightPictures]:
        flow = self.flow
        if self._tiles is None or self._bright is None or self._ratio != ratio:
            self._ratio = ratio
            self._tiles, self._bright = Tiles(flow, ratio), BrightPictures(flow, ratio)
        return flow, self._tiles, self._bright

    @property
    def _most_bright(self) -> float:
        """The most square pixels of a picture of a moment's operations."""
        return _MOST_BRIGHT * self._viewport.width * self._viewport.height

    def paint(self, painter: QPainter, moment: int, marks: Marks, ratio: float) -> bool:
        """Paint the viewport at a moment; return whether nothing of it is left for another turn.

        `ratio` is how many pixels of the screen there are for each of the picture.
        """
        began, port, width, height = time.perf_counter(), self._viewport, self._viewport.width, self._viewport.height
        painter.fillRect(QRectF(0, 0, width, height), QColor(look().theme.surface))
        if port.layout is None or not port.layout.rows:
            painter.setPen(QColor(look().theme.muted))
            if port.layout is not None:
                box = QRectF(0, 0, width, height)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "No operation on data was recorded.")
            return True
        flow, tiles, bright = self._pictures(ratio)
        origin, sizes, rows = port.origin(), port.sizes, port.rows_in_view(port.offset)
        tiles.deadline, tiles.late = math.inf if self._patient else began + WORK_S, False
        current = port.layout.row_at(moment)
        if current >= 0:
            flow.labels.paint_band(painter, current, origin.y(), width)
        painter.setOpacity(0.35 if marks.selected is not None else 1.0)
        painter.save()
        painter.setClipRect(QRectF(sizes.label, 0, width - sizes.label, height))
        stretches = port.tiles_in_view(port.offset)
        # What counts now comes first, if time should run out.
        nearest = sorted(rows, key=lambda row: abs(row - current))
        painted = {row: [tiles.at(row, tile, moment) for tile in stretches] for row in nearest}
        for row in rows:
            top = origin.y() + sizes.top(row) - (sizes.pitch - sizes.cell)
            for tile, picture in zip(stretches, painted[row], strict=True):
                if picture is not None:
                    painter.drawPixmap(QPointF(origin.x() + tile * TILE, top), picture)
        painter.setOpacity(1.0)
        painter.translate(origin)
        if marks.selected is not None:
            for row, cells in marks.lit.items():
                if rows.start - 1 <= row <= rows.stop:
                    flow.paint_bright(painter, row, cells)
        elif current >= 0:
            # What is painted once is not worth a picture of its own.
            bright.paint(painter, current, moment, 0.0 if self._patient else self._most_bright)
        self._paint_marks(painter, flow, rows, moment, marks)
        painter.restore()
        flow.labels.paint(painter, rows, moment, current, origin.y(), width)
        return not tiles.late

    @staticmethod
    def _paint_marks(painter: QPainter, flow: FlowPainter, rows: range, moment: int, marks: Marks) -> None:
        for (place, raced_for), race in marks.racing.items():
            if place in rows and race.second.moment < moment:
                flow.paint_differing(painter, place, raced_for)
        if marks.differing is not None:
            flow.paint_differing(painter, *marks.differing)
        if marks.followed is not None:
            block, thread = marks.followed
            for number in rows:
                row = flow.layout.rows[number]
                mine = row.made & (row.block == block) & (row.thread == thread) & (row.moment < moment)
                for cell in np.flatnonzero(mine).tolist():
                    flow.paint_ring(painter, number, cell)

    def prepare(self, moment: int, ratio: float) -> bool:
        """Paint a part of what will be in view at a moment; return whether all has been painted."""
        port = self._viewport
        if port.layout is None or not port.layout.rows:
            return True
        row, goal, (_, tiles, bright) = port.layout.row_at(moment), port.goal_at(moment), self._pictures(ratio)
        if row >= 0 and not bright.prepare(row, moment, self._most_bright):
            return False
        # What counts then comes first, if the next move should come before all is painted.
        nearest = sorted(port.rows_in_view(goal), key=lambda each: abs(each - row))
        return tiles.prepare(nearest, port.tiles_in_view(goal), moment)
