"""Viewport of a dataflow: fitting, zooming and scrolling, independent of widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QPointF
from PyQt6.QtGui import QFontMetricsF

from gpu.declaration.pattern import Array
from gui.painting.theme import code_font, look
from gui.step_view.dataflow.labels import label_width
from gui.step_view.dataflow.layout import (
    MIN_COLUMN_WIDTH,
    MIN_TEXT_WIDTH,
    DataflowLayout,
    Metrics,
    compute_metrics,
)

if TYPE_CHECKING:
    from gpu.stepping.dataflow.rows import Row

TILE = 512
"""Width in pixels of the tiles in which rows are painted."""
_MAX_COLUMN_WIDTH = 200.0
_MAX_PAGES = 4
"""Maximum width of all columns, relative to the visible part, for which enlarged text widens them."""
_CELL_MARGIN = 6
"""Space in pixels for the frame of a cell and for the gap to the next one."""
_MIN_READABLE_FONT = 9
"""Font size in pixels for values that must all be visible at once."""

Cell = tuple[int, int]
"""Number of a row, and of a cell in it."""


class Viewport:
    """The visible part of a dataflow in `width` x `height` pixels, and its zoom.

    Parameters
    ----------
    max_column_width : int
        Maximum column width in pixels when all columns are fitted, at the normal text size.
    fits_all : bool
        Always fit all columns, even where enlarged text would need more space than there is.
    """

    def __init__(self, *, max_column_width: int, fits_all: bool = False) -> None:
        self.layout: DataflowLayout | None = None
        self.width = self.height = 0
        self.offset = QPointF(0, 0)
        """Scroll offset."""
        self.fitted = True
        self.max_column_width = max_column_width
        """Maximum column width in pixels when all columns are fitted, at the normal text size."""
        self._always_fits_all = self._fits_all = fits_all
        self._max_text_length = self._max_name_length = 1
        self._column = 34.0
        self._sizes: Metrics | None = None
        self._goal: QPointF | None = None

    def open(self, layout: DataflowLayout | None) -> None:
        """Set the dataflow and go to its start."""
        self.show_layout(layout)
        self.offset, self._goal = QPointF(0, 0), None
        self._fits_all = self._always_fits_all
        self.fit(0)

    def show_layout(self, layout: DataflowLayout | None) -> None:
        """Replace the layout by one of this dataflow with other texts."""
        self.layout = layout
        self._max_text_length, self._max_name_length = (1, 1) if layout is None else layout.text_lengths

    def resize(self, width: int, height: int, moment: int) -> None:
        """Set the size of the viewport."""
        self.width, self.height = width, height
        if self.fitted:
            self.fit(moment)
        else:
            self.offset = self._clamp_offset(self.offset)

    def restyle(self, moment: int) -> None:
        """Apply the current look."""
        self._sizes = None
        self._fits_all = self._always_fits_all
        if self.fitted:
            self.fit(moment)

    # --- sizes

    @property
    def sizes(self) -> Metrics:
        """Return the sizes at the current zoom."""
        assert self.layout is not None
        if self._sizes is None:
            self._sizes = self._compute_sizes(self._column, self.width, self.height if self.fitted else None)
        return self._sizes

    def _compute_sizes(self, column: float, width: float, height: float | None) -> Metrics:
        """Return the sizes for a column width; with a height, all rows are fitted where that does not crowd them."""
        assert self.layout is not None
        pitch = (height - look().px(26)) / max(len(self.layout.rows), 1) if height is not None else None
        has_names = self._max_name_length > 1
        min_gap = QFontMetricsF(code_font(look().small_px)).height() + 1 if has_names else 0.0
        return compute_metrics(look(), column, self._label_width(width), pitch, min_gap=min_gap)

    def _label_width(self, width: float) -> float:
        assert self.layout is not None
        return label_width(self.layout, look(), 0.28 * width)

    def _column_space(self, width: float) -> float:
        """Return the part of the width that is available for columns."""
        return width - self._label_width(width) - look().px(14)

    def fits_values(self, width: float) -> bool:
        """Return whether a picture of the given width shows all columns with readable values."""
        return self.layout is None or self._column_space(width) / self.layout.columns >= self._min_readable_width()

    def fitted_cell_area(self, width: float, height: float) -> float:
        """Return the area of a cell in a picture of the given size; 0 if not all of it can be read there."""
        if self.layout is None or not self.fits_values(width):
            return 0.0
        column = min(self._column_space(width) / self.layout.columns, look().px(self.max_column_width))
        sizes = self._compute_sizes(column, width, height)
        return sizes.column * sizes.cell if self.layout.height(sizes) <= height else 0.0

    def _min_readable_width(self) -> float:
        """Return the column width that fits values in small print."""
        metric = QFontMetricsF(code_font(_MIN_READABLE_FONT))
        return max(metric.horizontalAdvance("0" * self._max_text_length) + 4, MIN_TEXT_WIDTH)

    def _enlarged_column_width(self, room: float) -> float:
        """Return the column width for values, and names of cells if possible, in the current text size; else 0.

        It is 0 at the normal text size, and for so many columns that scrolling would replace an overview.
        """
        if self.layout is None or self._fits_all or not look().is_enlarged:
            return 0.0
        metric = QFontMetricsF(code_font(look().small_px))
        lengths = (max(self._max_text_length, self._max_name_length), self._max_text_length)
        widths = (metric.horizontalAdvance("0" * length) + _CELL_MARGIN for length in lengths)
        return next((width for width in widths if width * self.layout.columns <= _MAX_PAGES * room), 0.0)

    def fit_all(self, moment: int) -> None:
        """Fit all columns, whatever the text size, until another dataflow or text size is set."""
        self._fits_all = True
        self.fit(moment)

    def fit(self, moment: int) -> None:
        """Fit all columns, and all rows if they stay high enough, and scroll to a moment.

        Enlarged text needs wider columns, of which only a part may be visible.
        """
        self.fitted = True
        if self.layout is not None:
            room = self._column_space(self.width)
            column = max(room / self.layout.columns, self._enlarged_column_width(room), MIN_COLUMN_WIDTH)
            self._column = min(column, look().px(self.max_column_width))
        self._sizes = None
        self.offset = QPointF(0, self.offset.y())
        self.follow(moment, at_once=True)

    def zoom(self, factor: float, at: QPointF) -> None:
        """Scale the column width by a factor around the point `at`."""
        if self.layout is None:
            return
        old, origin = self.sizes, self.origin()
        cell_position = (at.x() - origin.x()) / old.column, (at.y() - origin.y()) / old.pitch
        self.fitted = False
        self._column = min(max(old.column * factor, MIN_COLUMN_WIDTH), _MAX_COLUMN_WIDTH)
        self._sizes = None
        new = self.sizes
        self._goal = None
        self.offset = self._clamp_offset(
            QPointF(new.label + cell_position[0] * new.column - at.x(), cell_position[1] * new.pitch - at.y()),
        )

    # --- scrolling

    def scroll_by(self, offset: QPointF) -> None:
        """Scroll by an offset, within the picture's ends."""
        if self.layout is not None:
            self._goal = None
            self.offset = self._clamp_offset(self.offset - offset)

    def follow(self, moment: int, *, at_once: bool) -> None:
        """Scroll a moment's row into the middle part of the picture, and its operations into view horizontally.

        Without `at_once`, repeated calls of `glide` animate the scrolling.
        """
        if self.layout is None or not self.layout.rows:
            return
        goal = self.goal_at(moment)
        if at_once:
            self.offset = goal
        self._goal = goal if goal != self.offset else None

    @property
    def gliding(self) -> bool:
        """Return whether the animated scrolling has not reached its goal."""
        return self._goal is not None

    def glide(self) -> None:
        """Scroll a part of the remaining distance to the goal, if a resize has not reached it meanwhile."""
        if self._goal is None:
            return
        remaining = self._goal - self.offset
        if abs(remaining.x()) + abs(remaining.y()) < 1.5:
            self.offset, self._goal = self._goal, None
        else:
            self.offset = self.offset + remaining * 0.3

    def goal_at(self, moment: int) -> QPointF:
        """Return the scroll offset for a moment: the current one if the moment's operations are visible there."""
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
        return self._clamp_offset(goal)

    def _extent(self, row: int, cells: Array, *, sources: bool = True) -> tuple[float, float]:
        """Return the left and right x of some cells of a row, including their operands if `sources` is set."""
        assert self.layout is not None
        columns, edges = self.layout.rows[row].column[cells], self.layout.edges[row]
        if sources:
            columns = np.concatenate((columns, edges.column[np.isin(edges.cell, cells)]))
        return self.sizes.left(int(columns.min())), self.sizes.left(int(columns.max()) + 1)

    def _clamp_offset(self, offset: QPointF) -> QPointF:
        """Return a scroll offset clamped to the picture's ends."""
        if self.layout is None:
            return offset
        sizes = self.sizes
        widest = max(0.0, self.layout.width(sizes) - (self.width - sizes.label - look().px(10)))
        highest = max(0.0, self.layout.height(sizes) - self.height)
        return QPointF(min(max(offset.x(), 0), widest), min(max(offset.y(), 0), highest))

    # --- positions

    def origin(self, offset: QPointF | None = None) -> QPointF:
        """Return the position of column 0 and the dataflow's top in the viewport; a narrow dataflow is centered.

        `offset` is the scroll offset, by default the current one.
        """
        assert self.layout is not None
        sizes = self.sizes
        room = self.width - sizes.label
        spare = max(0.0, (room - self.layout.width(sizes)) / 2) if self.fitted else 0.0
        offset = self.offset if offset is None else offset
        return QPointF(sizes.label + min(spare, look().px(40)) - offset.x(), -offset.y())

    def tiles_in_view(self, offset: QPointF) -> range:
        """Return the numbers of the tiles visible at a scroll offset."""
        assert self.layout is not None
        sizes, origin = self.sizes, self.origin(offset)
        left = max(0, int((sizes.label - origin.x()) // TILE))
        width = self.layout.width(sizes)
        return range(left, int(min(self.width - origin.x(), width + 2 * sizes.column) // TILE) + 1)

    def rows_in_view(self, offset: QPointF) -> range:
        """Return the numbers of the rows visible at a scroll offset."""
        assert self.layout is not None
        sizes = self.sizes
        first = max(0, int((offset.y() - sizes.head) // sizes.pitch))
        last = min(len(self.layout.rows) - 1, int((offset.y() + self.height - sizes.head) // sizes.pitch) + 1)
        return range(first, last + 1)

    def cell_at(self, point: QPointF, moment: int) -> tuple[Cell | None, bool]:
        """Return the cell with a value under a point at a moment, and whether the point is on the cell's operation."""
        cell_found, within = self._find_cell(point)
        if cell_found is None or self._is_empty(cell_found, moment):
            return None, False
        sizes, (number, cell) = self.sizes, cell_found
        gap = sizes.pitch - sizes.cell
        above = within < gap
        is_written = bool(self._cells(number).computed[cell])
        on_circle = within > gap * 0.35 and sizes.column >= MIN_TEXT_WIDTH and is_written
        return (cell_found, above) if not above or on_circle else (None, False)

    def empty_cell_at(self, point: QPointF, moment: int) -> Cell | None:
        """Return the cell under a point that has no value yet at a moment."""
        cell_found, within = self._find_cell(point)
        on_cell = cell_found is not None and within >= self.sizes.pitch - self.sizes.cell
        return cell_found if cell_found is not None and on_cell and self._is_empty(cell_found, moment) else None

    def _cells(self, number: int) -> Row:
        assert self.layout is not None
        return self.layout.rows[number]

    def _is_empty(self, cell: Cell, moment: int) -> bool:
        assert self.layout is not None
        return bool(self._cells(cell[0]).moment[cell[1]] >= moment) or self.layout.row_progress(cell[0], moment) < 0

    def _find_cell(self, point: QPointF) -> tuple[Cell | None, float]:
        """Return the cell at a point's row and column, and the point's y within the row."""
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
