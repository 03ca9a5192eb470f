"""What of a dataflow is seen: fitted, zoomed, scrolled to what happens. It knows no widget."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import QPointF
from PyQt6.QtGui import QFontMetricsF

from gpu.declaration.pattern import Array
from gui.painting.theme import code_font, look
from gui.step_view.dataflow.labels import label_width
from gui.step_view.dataflow.layout import LABELLED, NARROWEST, Cells, DataflowLayout, Metrics, metrics

TILE = 512
"""The width in pixels of the stretches in which rows are painted."""
_WIDEST = 110.0
_SMALL_PRINT = 9
"""Pixels of values that are all to be seen at once."""

Cell = tuple[int, int]
"""A row's number, and that of a cell in it."""


class Viewport:
    """The part of a dataflow that is seen in `width` x `height` pixels, and how large.

    Parameters
    ----------
    widest : int
        Pixels of a column at most where all columns are fitted, with text of the usual size.
    """

    def __init__(self, *, widest: int) -> None:
        self.layout: DataflowLayout | None = None
        self.width = self.height = 0
        self.offset = QPointF(0, 0)
        """How far it is scrolled."""
        self.fitted = True
        self.widest = widest
        """Pixels of a column at most where all columns are fitted, with text of the usual size."""
        self._longest = 1
        self._column = 34.0
        self._sizes: Metrics | None = None
        self._goal: QPointF | None = None

    def open(self, layout: DataflowLayout | None) -> None:
        """Look at another dataflow, from its beginning."""
        self.show_layout(layout)
        self.offset, self._goal = QPointF(0, 0), None
        self.fit(0)

    def show_layout(self, layout: DataflowLayout | None) -> None:
        """Look at the same dataflow with other texts."""
        self.layout = layout
        rows = range(0 if layout is None else len(layout.rows))
        self._longest = max((len(text) for row in rows if layout for text in layout.texts(row, 6)), default=1)

    def resize(self, width: int, height: int, moment: int) -> None:
        """See it in another size."""
        self.width, self.height = width, height
        if self.fitted:
            self.fit(moment)
        else:
            self.offset = self._within(self.offset)

    def restyle(self, moment: int) -> None:
        """Take the look that is on."""
        self._sizes = None
        if self.fitted:
            self.fit(moment)

    # --- sizes

    @property
    def sizes(self) -> Metrics:
        """The sizes at the zoom that is on."""
        assert self.layout is not None
        if self._sizes is None:
            # All rows at once, where that is possible without crowding them.
            pitch = (self.height - look().px(26)) / max(len(self.layout.rows), 1) if self.fitted else None
            self._sizes = metrics(look(), self._column, self._label_width(self.width), pitch)
        return self._sizes

    def _label_width(self, width: float) -> float:
        assert self.layout is not None
        return label_width(self.layout, look(), 0.28 * width)

    def _room(self, width: float) -> float:
        """Return what is left to the columns of a picture's width."""
        return width - self._label_width(width) - look().px(14)

    def holds_values(self, width: float) -> bool:
        """Return whether a picture of that width shows all columns with their values."""
        return self.layout is None or self._room(width) / self.layout.columns >= self._readable()

    def _readable(self) -> float:
        """Return the width of a column that holds its values in small print."""
        metric = QFontMetricsF(code_font(_SMALL_PRINT))
        return max(metric.horizontalAdvance("0" * self._longest) + 4, LABELLED)

    def fit(self, moment: int) -> None:
        """Make all columns fit, and all rows where they stay high enough, and show what happens at a moment."""
        self.fitted = True
        if self.layout is not None:
            room = self._room(self.width)
            self._column = min(max(room / self.layout.columns, NARROWEST), look().px(self.widest))
        self._sizes = None
        self.offset = QPointF(0, self.offset.y())
        self.follow(moment, at_once=True)

    def zoom(self, factor: float, at: QPointF) -> None:
        """Make columns wider by a factor; the point `at` stays where it is."""
        if self.layout is None:
            return
        old, origin = self.sizes, self.origin()
        place = (at.x() - origin.x()) / old.column, (at.y() - origin.y()) / old.pitch
        self.fitted = False
        self._column = min(max(old.column * factor, NARROWEST), _WIDEST)
        self._sizes = None
        new = self.sizes
        self._goal = None
        self.offset = self._within(
            QPointF(new.label + place[0] * new.column - at.x(), place[1] * new.pitch - at.y()),
        )

    # --- where it is scrolled to

    def scroll_by(self, way: QPointF) -> None:
        """Move what is seen, as far as there is more to see."""
        if self.layout is not None:
            self._goal = None
            self.offset = self._within(self.offset - way)

    def follow(self, moment: int, *, at_once: bool) -> None:
        """Bring the row of a moment into the middle part of the picture, and its operations into its width.

        What is not done at once is done by `glide`.
        """
        if self.layout is None or not self.layout.rows:
            return
        goal = self.goal_at(moment)
        if at_once:
            self.offset = goal
        self._goal = goal if goal != self.offset else None

    @property
    def gliding(self) -> bool:
        """Whether it is on its way to where it follows a moment to."""
        return self._goal is not None

    def glide(self) -> None:
        """Go a part of the way."""
        assert self._goal is not None
        way = self._goal - self.offset
        if abs(way.x()) + abs(way.y()) < 1.5:
            self.offset, self._goal = self._goal, None
        else:
            self.offset = self.offset + way * 0.3

    def goal_at(self, moment: int) -> QPointF:
        """Return where the picture is to be scrolled to at a moment: where it is, if what counts is seen there."""
        assert self.layout is not None
        row, sizes = max(self.layout.row_at(moment), 0), self.sizes
        before = self.offset if self._goal is None else self._goal
        goal = QPointF(before)
        top = sizes.top(row)
        if not before.y() + 0.12 * self.height < top < before.y() + 0.72 * self.height - sizes.pitch:
            goal.setY(top - 0.45 * self.height)
        if row == 0:
            goal.setY(0)
        room = self.width - sizes.label
        cells = self.layout.cells_at(row, moment)
        if cells.size and self.layout.width(sizes) > room:
            left, right = self._extent(row, cells)
            if right - left > 0.9 * room:
                left, right = self._extent(row, cells, sources=False)
            if left < before.x() or right > before.x() + room:
                goal.setX(left - 0.15 * room if right - left > 0.7 * room else (left + right - room) / 2)
        return self._within(goal)

    def _extent(self, row: int, cells: Array, *, sources: bool = True) -> tuple[float, float]:
        """Return where cells of a row, and what they were made of, begin and end, from column 0."""
        assert self.layout is not None
        columns, edges = self.layout.rows[row].column[cells], self.layout.edges[row]
        if sources:
            columns = np.concatenate((columns, edges.column[np.isin(edges.cell, cells)]))
        return self.sizes.left(int(columns.min())), self.sizes.left(int(columns.max()) + 1)

    def _within(self, offset: QPointF) -> QPointF:
        """Return where the picture can be scrolled to of where it should be."""
        if self.layout is None:
            return offset
        sizes = self.sizes
        widest = max(0.0, self.layout.width(sizes) - (self.width - sizes.label - look().px(10)))
        highest = max(0.0, self.layout.height(sizes) - self.height)
        return QPointF(min(max(offset.x(), 0), widest), min(max(offset.y(), 0), highest))

    # --- what is where

    def origin(self, offset: QPointF | None = None) -> QPointF:
        """Return where column 0 and the top of the dataflow are in the picture; a narrow one stands in the middle.

        `offset` is how far it is scrolled, where that is not as it is.
        """
        assert self.layout is not None
        sizes = self.sizes
        room = self.width - sizes.label
        spare = max(0.0, (room - self.layout.width(sizes)) / 2) if self.fitted else 0.0
        offset = self.offset if offset is None else offset
        return QPointF(sizes.label + min(spare, look().px(40)) - offset.x(), -offset.y())

    def tiles_in_view(self, offset: QPointF) -> range:
        """Return the numbers of the stretches of a row that are seen when it is scrolled so far."""
        assert self.layout is not None
        sizes, origin = self.sizes, self.origin(offset)
        left = max(0, int((sizes.label - origin.x()) // TILE))
        width = self.layout.width(sizes)
        return range(left, int(min(self.width - origin.x(), width + 2 * sizes.column) // TILE) + 1)

    def rows_in_view(self, offset: QPointF) -> range:
        """Return the numbers of the rows that are seen when it is scrolled so far."""
        assert self.layout is not None
        sizes = self.sizes
        first = max(0, int((offset.y() - sizes.head) // sizes.pitch))
        last = min(len(self.layout.rows) - 1, int((offset.y() + self.height - sizes.head) // sizes.pitch) + 1)
        return range(first, last + 1)

    def cell_at(self, point: QPointF, moment: int) -> tuple[Cell | None, bool]:
        """Return the cell under a point that is there at a moment, and whether its operation is under the point."""
        found, within = self._place_at(point)
        if found is None or self._is_empty(found, moment):
            return None, False
        sizes, (number, cell) = self.sizes, found
        gap = sizes.pitch - sizes.cell
        above = within < gap
        made = bool(self._cells(number).made[cell])
        on_circle = within > gap * 0.35 and sizes.column >= LABELLED and made
        return (found, above) if not above or on_circle else (None, False)

    def empty_cell_at(self, point: QPointF, moment: int) -> Cell | None:
        """Return the cell under a point that has no value yet at a moment."""
        found, within = self._place_at(point)
        on_cell = found is not None and within >= self.sizes.pitch - self.sizes.cell
        return found if found is not None and on_cell and self._is_empty(found, moment) else None

    def _cells(self, number: int) -> Cells:
        assert self.layout is not None
        return self.layout.rows[number]

    def _is_empty(self, cell: Cell, moment: int) -> bool:
        assert self.layout is not None
        return bool(self._cells(cell[0]).moment[cell[1]] >= moment) or self.layout.phase(cell[0], moment) < 0

    def _place_at(self, point: QPointF) -> tuple[Cell | None, float]:
        """Return the cell in whose row and column a point is, and how far down in them it is."""
        if self.layout is None or not self.layout.rows:
            return None, 0.0
        sizes, origin = self.sizes, self.origin()
        x, y = point.x() - origin.x(), point.y() - origin.y() - sizes.head
        gap = sizes.pitch - sizes.cell
        number = int((y + gap) // sizes.pitch)
        if point.x() < sizes.label or not 0 <= number < len(self.layout.rows):
            return None, 0.0
        row = self.layout.rows[number]
        cell = int(np.searchsorted(row.column, int(x // sizes.column))) if row.column.size else 0
        if x < 0 or cell >= row.column.size or row.column[cell] != int(x // sizes.column):
            return None, 0.0
        return (number, cell), y + gap - number * sizes.pitch
