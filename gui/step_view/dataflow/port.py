"""What of a dataflow is seen: fitted, zoomed, scrolled to what happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import QPointF, QTimer
from PyQt6.QtGui import QFontMetricsF
from PyQt6.QtWidgets import QWidget

from gui.painting.theme import code_font, look
from gui.painting.values import texts
from gui.step_view.dataflow.labels import label_width
from gui.step_view.dataflow.layout import LABELLED, NARROWEST, FlowLayout, Metrics, metrics
from gui.step_view.dataflow.tiles import TILE

_WIDEST = 110.0
_GLIDE_MS = 16
_MOST_READ = 128
"""Columns up to which a picture keeps its text, if need be by scrolling."""
_SMALL_PRINT, _PRINT = 9, 11
"""Pixels of values that are all to be seen at once, and of those that are scrolled."""


class FlowPort(QWidget):
    """A view of a dataflow that follows the moment.

    Parameters
    ----------
    whole : bool
        Whether all columns are to be seen at once even where that leaves no room for all of their values.
    """

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__()
        self.layout_: FlowLayout | None = None
        self.moment = 0
        self.patient = False
        """Whether there is time for each picture, as where it is saved."""
        self._whole = whole
        self._longest = 1
        self._column = 34.0
        self._fitted = True
        self._known_sizes: Metrics | None = None
        self._offset = QPointF(0, 0)
        self._goal: QPointF | None = None
        self._glide = QTimer(self, interval=_GLIDE_MS)
        self._glide.timeout.connect(self._glide_on)

    def _take(self, layout: FlowLayout | None) -> None:
        """Look at another dataflow, from its beginning."""
        self.layout_, self.moment = layout, 0
        rows = () if layout is None else layout.rows
        self._longest = max((len(text) for row in rows for text in texts(row.value, 6)), default=1)
        self._offset = QPointF(0, 0)
        self._glide.stop()
        self.fit()

    def _forget(self) -> None:
        """Drop what depends on the sizes."""
        self._known_sizes = None
        self.update()

    @property
    def sizes(self) -> Metrics:
        """The sizes at the zoom that is on."""
        assert self.layout_ is not None
        if self._known_sizes is None:
            # All rows at once, where that is possible without crowding them.
            pitch = (self.height() - look().px(26)) / max(len(self.layout_.rows), 1) if self._fitted else None
            self._known_sizes = metrics(look(), self._column, self._label_width(self.width()), pitch)
        return self._known_sizes

    @property
    def current_row(self) -> int:
        """The row of the statement that has just been executed; -1 where there is none."""
        return self._row_at(self.moment)

    def _row_at(self, moment: int) -> int:
        if self.layout_ is None or not self.layout_.rows or moment <= 0:
            return -1
        return int(self.layout_.dataflow.row_at(moment))

    # --- sizes

    def _label_width(self, width: float) -> float:
        assert self.layout_ is not None
        return label_width(self.layout_, look(), 0.28 * width)

    def _room(self, width: float) -> float:
        """Return what is left to the columns of a picture's width."""
        return width - self._label_width(width) - look().px(14)

    def holds_values(self, width: float) -> bool:
        """Return whether a picture of that width shows all columns with their values."""
        return self.layout_ is None or self._room(width) / self.layout_.columns >= self._readable()

    def _readable(self, print_px: int = _SMALL_PRINT) -> float:
        """Return the width of a column that holds its values in print of a size."""
        metric = QFontMetricsF(code_font(print_px))
        return max(metric.horizontalAdvance("0" * self._longest) + 4, LABELLED)

    def _lower(self, column: float) -> float:
        """Return the width of column at which all rows are seen too, where they stay readable."""
        assert self.layout_ is not None
        least = min(self._readable(), column)
        while column > least and self.layout_.height(metrics(look(), column, 0.0, 0.0)) > self.height():
            column = max(column - 1, least)
        return column

    def fit(self) -> None:
        """Make all columns fit, as long as that leaves them readable."""
        self._fitted = True
        if self.layout_ is not None:
            room = self._room(self.width())
            # So many columns that no text fits are shown all at once; fewer are scrolled rather than unreadable.
            seen = self._whole or self.layout_.columns > _MOST_READ
            print_px = _SMALL_PRINT if self.holds_values(self.width()) else _PRINT
            least = NARROWEST if seen else min(self._readable(print_px), room)
            self._column = min(max(room / self.layout_.columns, least), look().px(72 if self.patient else 52))
            if self._whole:
                self._column = self._lower(self._column)
        self._forget()
        self._offset.setX(0)
        self._follow(at_once=True)

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Make columns wider by a factor; the point `at` stays where it is."""
        if self.layout_ is None:
            return
        at = at or QPointF(self.width() / 2, self.height() / 2)
        old, origin = self.sizes, self._origin()
        place = (at.x() - origin.x()) / old.column, (at.y() - origin.y()) / old.pitch
        self._fitted = False
        self._column = min(max(old.column * factor, NARROWEST), _WIDEST)
        self._forget()
        new = self.sizes
        self._glide.stop()
        self._offset = QPointF(new.label + place[0] * new.column - at.x(), place[1] * new.pitch - at.y())
        self._offset = self._within(self._offset)
        self.update()

    def scroll_by(self, way: QPointF) -> None:
        """Move what is seen, as far as there is more to see."""
        if self.layout_ is None:
            return
        self._glide.stop()
        self._offset -= way
        self._offset = self._within(self._offset)
        self.update()

    # --- where it is scrolled to

    def _origin(self, offset: QPointF | None = None) -> QPointF:
        """Return where column 0 and the top of the picture are in the widget; a narrow picture stands in the middle.

        `offset` is how far it is scrolled, where that is not as it is.
        """
        assert self.layout_ is not None
        sizes = self.sizes
        room = self.width() - sizes.label
        spare = max(0.0, (room - self.layout_.width(sizes)) / 2) if self._fitted else 0.0
        offset = self._offset if offset is None else offset
        return QPointF(sizes.label + min(spare, look().px(40)) - offset.x(), -offset.y())

    def _within(self, offset: QPointF) -> QPointF:
        """Return where the picture can be scrolled to of where it should be."""
        assert self.layout_ is not None
        sizes = self.sizes
        widest = max(0.0, self.layout_.width(sizes) - (self.width() - sizes.label - look().px(10)))
        highest = max(0.0, self.layout_.height(sizes) - self.height())
        return QPointF(min(max(offset.x(), 0), widest), min(max(offset.y(), 0), highest))

    def _stretches(self, offset: QPointF) -> range:
        """Return the numbers of the tiles of a row that are in view of a picture that is scrolled so far."""
        assert self.layout_ is not None
        sizes, origin = self.sizes, self._origin(offset)
        left = max(0, int((sizes.label - origin.x()) // TILE))
        width = self.layout_.width(sizes)
        return range(left, int(min(self.width() - origin.x(), width + 2 * sizes.column) // TILE) + 1)

    def _rows_in_view(self, offset: QPointF) -> range:
        assert self.layout_ is not None
        sizes = self.sizes
        first = max(0, int((offset.y() - sizes.head) // sizes.pitch))
        last = min(len(self.layout_.rows) - 1, int((offset.y() + self.height() - sizes.head) // sizes.pitch) + 1)
        return range(first, last + 1)

    def _follow(self, *, at_once: bool = False) -> None:
        """Bring the current row into the middle part of the picture, and its operations into its width."""
        if self.layout_ is None or not self.layout_.rows:
            return
        goal = self._goal_at(self.moment)
        if at_once or not self.isVisible():
            self._glide.stop()
            self._offset = goal
        elif goal != self._offset:
            self._goal = goal
            self._glide.start()
        self.update()

    def _goal_at(self, moment: int) -> QPointF:
        """Return where the picture is to be scrolled to at a moment: where it is, if what counts is seen there."""
        assert self.layout_ is not None
        row, sizes = max(self._row_at(moment), 0), self.sizes
        before = QPointF(self._goal if self._goal is not None and self._glide.isActive() else self._offset)
        goal = QPointF(before)
        top = sizes.top(row)
        if not before.y() + 0.12 * self.height() < top < before.y() + 0.72 * self.height() - sizes.pitch:
            goal.setY(top - 0.45 * self.height())
        if row == 0:
            goal.setY(0)
        room = self.width() - sizes.label
        cells = self._current_cells(row, moment)
        if cells.size and self.layout_.width(sizes) > room:
            left, right = self._extent(row, cells)
            if right - left > 0.9 * room:
                left, right = self._extent(row, cells, sources=False)
            if left < before.x() or right > before.x() + room:
                goal.setX(left - 0.15 * room if right - left > 0.7 * room else (left + right - room) / 2)
        return self._within(goal)

    def _extent(self, row: int, cells: Any, *, sources: bool = True) -> tuple[float, float]:
        """Return where cells of a row, and what they were made of, begin and end, from column 0."""
        assert self.layout_ is not None
        columns, edges = self.layout_.rows[row].column[cells], self.layout_.edges[row]
        if sources:
            columns = np.concatenate((columns, edges.column[np.isin(edges.cell, cells)]))
        return self.sizes.left(int(columns.min())), self.sizes.left(int(columns.max()) + 1)

    def _glide_on(self) -> None:
        assert self._goal is not None
        way = self._goal - self._offset
        if abs(way.x()) + abs(way.y()) < 1.5:
            self._offset = self._goal
            self._glide.stop()
        else:
            self._offset += way * 0.3
        self.update()

    def _current_cells(self, row: int, moment: int) -> Any:
        assert self.layout_ is not None
        return np.flatnonzero(self.layout_.rows[row].moment == moment - 1) if moment else np.zeros(0, int)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        if self._fitted:
            self.fit()
        elif self.layout_ is not None:
            self._offset = self._within(self._offset)

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() in (event.Type.StyleChange, event.Type.FontChange):
            self._forget()
            if self._fitted:
                self.fit()
