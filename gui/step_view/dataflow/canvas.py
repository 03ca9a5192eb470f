"""Canvas that paints the visible part of a dataflow at a moment from cached pictures of its rows."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QPainter

from gui.painting.pixmaps import MAX_PAINTING_S
from gui.painting.theme import look
from gui.step_view.dataflow.descriptions import CellFinding
from gui.step_view.dataflow.flow_painter import FlowPainter
from gui.step_view.dataflow.picture_caches import HighlightPictures, Tiles
from gui.step_view.dataflow.viewport import TILE, Cell, Viewport

_MAX_HIGHLIGHT_SHARE = 4
"""Maximum size of a cached picture of a moment's operations, relative to the view."""


@dataclass
class Marks:
    """Highlights in addition to the operations of the moment.

    Parameters
    ----------
    selected : Cell or None
        The selected cell; while there is one, the operations of the moment are not highlighted.
    highlighted : dict
        The selected cell and all cells that it was computed from, or that depend on it, by row.
    forward : bool
        Whether the highlighted cells are those that depend on the selected one.
    followed : (int, int) or None
        Block and thread that is followed.
    difference : Cell or None
        A cell with another value in another schedule.
    findings : mapping
        Cells with a finding, highlighted from the event that shows it.
    """

    selected: Cell | None = None
    highlighted: dict[int, list[int]] = field(default_factory=dict)
    forward: bool = False
    followed: tuple[int, int] | None = None
    difference: Cell | None = None
    findings: Mapping[Cell, CellFinding] = field(default_factory=dict)


class Canvas:
    """Painter of a viewport's contents.

    Parameters
    ----------
    complete_frames : bool
        Paint everything in each frame, however long that takes.
    """

    def __init__(self, viewport: Viewport, *, complete_frames: bool) -> None:
        self._viewport, self._complete_frames = viewport, complete_frames
        self._flow: FlowPainter | None = None
        self._ratio = 1.0
        self._tiles: Tiles | None = None
        self._highlights: HighlightPictures | None = None

    @property
    def flow(self) -> FlowPainter:
        """Return the row painter for the current layout, sizes and look."""
        layout, sizes = self._viewport.layout, self._viewport.sizes
        assert layout is not None
        painter = self._flow
        if painter is None or painter.layout is not layout or painter.sizes != sizes or painter.look != look():
            painter = self._flow = FlowPainter(layout, sizes, look())
            self._tiles = self._highlights = None
        return painter

    def _picture_caches(self, ratio: float) -> tuple[FlowPainter, Tiles, HighlightPictures]:
        flow = self.flow
        if self._tiles is None or self._highlights is None or self._ratio != ratio:
            self._ratio = ratio
            self._tiles, self._highlights = Tiles(flow, ratio), HighlightPictures(flow, ratio)
        return flow, self._tiles, self._highlights

    @property
    def _max_highlight_area(self) -> float:
        """Return the maximum size in square pixels of a cached picture of a moment's operations."""
        return _MAX_HIGHLIGHT_SHARE * self._viewport.width * self._viewport.height

    def paint(self, painter: QPainter, moment: int, marks: Marks, ratio: float) -> bool:
        """Paint the viewport at a moment; return false if parts are left for the next frame.

        Parameters
        ----------
        marks : Marks
            Additional highlights.
        ratio : float
            Device pixel ratio.
        """
        began, port, width, height = time.perf_counter(), self._viewport, self._viewport.width, self._viewport.height
        painter.fillRect(QRectF(0, 0, width, height), QColor(look().theme.surface))
        if port.layout is None or not port.layout.rows:
            painter.setPen(QColor(look().theme.muted))
            if port.layout is not None:
                box = QRectF(0, 0, width, height).adjusted(16, 0, -16, 0)
                centered = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                failed = port.layout.dataflow.recording.failure
                text = "No operation on data was recorded" + (" before the error: see Arrays." if failed else ".")
                painter.drawText(box, int(centered), text)
            return True
        flow, tiles, bright = self._picture_caches(ratio)
        origin, sizes, rows = port.origin(), port.sizes, port.rows_in_view(port.offset)
        tiles.deadline, tiles.used_outdated = math.inf if self._complete_frames else began + MAX_PAINTING_S, False
        current = port.layout.row_at(moment)
        if current >= 0:
            flow.labels.paint_band(painter, current, origin.y(), width)
        painter.setOpacity(0.35 if marks.selected is not None else 1.0)
        painter.save()
        painter.setClipRect(QRectF(sizes.label, 0, width - sizes.label, height))
        visible_tiles = port.tiles_in_view(port.offset)
        # Rows near the current one come first, in case time runs out.
        nearest = sorted(rows, key=lambda row: abs(row - current))
        painted = {row: [tiles.get_picture(row, tile, moment) for tile in visible_tiles] for row in nearest}
        for row in rows:
            top = origin.y() + sizes.top(row) - (sizes.pitch - sizes.cell)
            for tile, picture in zip(visible_tiles, painted[row], strict=True):
                if picture is not None:
                    painter.drawPixmap(QPointF(origin.x() + tile * TILE, top), picture)
        painter.setOpacity(1.0)
        painter.translate(origin)
        if marks.selected is not None:
            self._paint_selection(painter, flow, rows, moment, marks)
        elif current >= 0:
            # A saved picture is painted only once, so caching parts of it does not pay.
            bright.paint(painter, current, moment, 0.0 if self._complete_frames else self._max_highlight_area)
        self._paint_marks(painter, flow, rows, moment, marks)
        painter.restore()
        flow.labels.paint(painter, rows, moment, current, origin.y(), width)
        flow.labels.paint_indices(painter, origin, width)
        flow.paint_scrolled_names(painter, origin, width)
        return not tiles.used_outdated

    @staticmethod
    def _paint_selection(painter: QPainter, flow: FlowPainter, rows: range, moment: int, marks: Marks) -> None:
        """Highlight the selected cell and those that it leads to; of the latter, those that have their values."""
        reached = {row: np.array(cells) for row, cells in marks.highlighted.items()}
        reached = {row: cells[flow.layout.rows[row].moment[cells] < moment] for row, cells in reached.items()}
        columns = {row: flow.layout.rows[row].column[cells] for row, cells in reached.items()}
        for row, cells in reached.items():
            if cells.size and rows.start - 1 <= row <= rows.stop and flow.layout.row_progress(row, moment) >= 0:
                flow.paint_highlight(painter, row, cells.tolist(), columns if marks.forward else None)

    @staticmethod
    def _paint_marks(painter: QPainter, flow: FlowPainter, rows: range, moment: int, marks: Marks) -> None:
        for (place, cell), found in marks.findings.items():
            if place in rows and found.moment < moment:
                flow.paint_warning_frame(painter, place, cell)
        if marks.difference is not None:
            flow.paint_warning_frame(painter, *marks.difference)
        if marks.followed is not None:
            block, thread = marks.followed
            for number in rows:
                row = flow.layout.rows[number]
                is_followed = row.computed & (row.block == block) & (row.thread == thread) & (row.moment < moment)
                for cell in np.flatnonzero(is_followed).tolist():
                    flow.paint_ring(painter, number, cell)

    def prepare(self, moment: int, ratio: float) -> bool:
        """Paint a part of the pictures of a moment into the caches; return whether the caches now have all of them."""
        port = self._viewport
        if port.layout is None or not port.layout.rows:
            return True
        row, goal, (_, tiles, bright) = port.layout.row_at(moment), port.goal_at(moment), self._picture_caches(ratio)
        if row >= 0 and not bright.prepare(row, moment, self._max_highlight_area):
            return False
        # Rows near the moment's row come first, in case the moment is shown before all are painted.
        nearest = sorted(port.rows_in_view(goal), key=lambda each: abs(each - row))
        return tiles.prepare(nearest, port.tiles_in_view(goal), moment)
