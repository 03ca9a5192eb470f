"""Layout of a dataflow's cells and edges: time runs down in rows, elements are columns. It paints nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpu.declaration.pattern import Array, CountedText
from gui.painting.theme import Look
from gui.painting.values import format_values

if TYPE_CHECKING:
    from gpu.stepping.dataflow.dataflow import Dataflow
    from gpu.stepping.dataflow.rows import Row
    from gpu.stepping.symbols import Symbols

MIN_FRAMED_WIDTH = 8.0
"""Column width in pixels below which a cell is a colored bar without a frame."""
MIN_COLUMN_WIDTH = 0.2
"""Minimum column width in pixels: five columns share a pixel."""
_MAX_GAP = 1.6
"""Maximum gap between rows, relative to the usual gap."""
_MIN_GAP = 0.7
"""Minimum gap between rows, relative to a cell's height."""
_TWO_LINE_WIDTH = 22.0
"""Column width in pixels below which two lines of values take precedence over space for operations above."""
_MIN_TWO_LINE_GAP = 0.45
_MIN_CELL_HEIGHT = 12
"""Minimum cell height in pixels."""
MAX_TEXT_SHARE = 0.8
"""Maximum font size of a value, relative to its cell's height."""
_MAX_VALUE_LENGTH, _MAX_SYMBOL_LENGTH = 7, 12
"""Maximum number of characters of a value, and of a symbol, that may overlap neighboring columns."""
MIN_TEXT_WIDTH = 13.0
"""Minimum column width in pixels for text in operations and cells."""

_NO_INCREMENTS = np.zeros((0, 5), np.int64)


@dataclass(frozen=True)
class LaidOutEdges:
    """Lines to the cells of one row, one entry per line.

    Parameters
    ----------
    cell : array
        The cell of the row at which the line ends.
    row, column : array
        Row and column at which the line starts: the last row that shows the source's value.
    """

    cell: Array
    row: Array
    column: Array


@dataclass(frozen=True)
class Metrics:
    """Sizes in pixels: column width, row pitch, cell height, width of the labels, and margin above the first row."""

    column: float
    pitch: float
    cell: float
    label: float
    head: float

    def left(self, column: float) -> float:
        """Return the x of a column's left edge."""
        return column * self.column

    def top(self, row: int) -> float:
        """Return the y of the top of a row's cells."""
        return self.head + row * self.pitch


def compute_metrics(
    look: Look, column: float, label: float, pitch: float | None = None, *, min_gap: float = 0.0
) -> Metrics:
    """Return the sizes for a column width: narrow cells are lower, but never too low for text.

    Parameters
    ----------
    column, label : float
        Widths in pixels of a column and of the labels.
    pitch : float, optional
        Preferred row height. Cells shrink to it, but not below small text, and rows keep space for operations.
    min_gap : float
        Minimum pixels between rows, for names above cells.
    """
    column = max(column, MIN_COLUMN_WIDTH)
    cell = look.px(26) * min(1.0, max(0.55, column / 34) ** 0.5) if column < 34 else look.px(26) * (column / 34) ** 0.5
    gap = cell * (1.05 if column >= MIN_FRAMED_WIDTH else 0.8)
    if pitch is not None:
        # Narrow cells grow higher where there is space, since their values overlap their neighbors.
        least_gap = _MIN_GAP if column >= _TWO_LINE_WIDTH else _MIN_TWO_LINE_GAP
        lowest = max(look.px(_MIN_CELL_HEIGHT), look.small_px / MAX_TEXT_SHARE if look.is_enlarged else 0)
        room = min(pitch / (1 + least_gap), pitch - min_gap)
        cell = min(max(cell, min(pitch / 2, look.px(26))), max(room, lowest))
        gap = min(max(pitch - cell, cell * least_gap), max(gap, cell) * _MAX_GAP)
    return Metrics(column, cell + max(gap, min_gap), cell, label, look.px(14))


class DataflowLayout:
    """The rows and lines of a dataflow; each line starts at the last row that shows its source.

    Parameters
    ----------
    text : CountedText or None
        For a histogram of a text, the names of the arrays of characters and of bins.
    increments : int array, shape (elements, 5)
        Event, character, bin, block and thread of each increment, drawn as a line from the character to the bin.
    """

    def __init__(self, dataflow: Dataflow, text: CountedText | None = None, increments: Array = _NO_INCREMENTS) -> None:
        self.dataflow, self._text, self._increments = dataflow, text, increments
        self.symbols: Symbols | None = None
        """Symbols to show instead of values, or None."""
        self.rows = dataflow.rows
        for row in self.rows:
            row.preload()
        self.columns = 1 + max((int(row.column.max(initial=0)) for row in self.rows), default=0)
        self.edges: list[LaidOutEdges] = []
        self.unchanged_edges: list[LaidOutEdges] = []
        last_of_storage: dict[object, int] = {}
        through: dict[int, set[int]] = defaultdict(set)
        for number, row in enumerate(self.rows):
            before = last_of_storage.get(row.storage)
            self.edges.append(self._build_edges(number, row, last_of_storage))
            self.unchanged_edges.append(self._build_unchanged_edges(number, row, before))
            last_of_storage[row.storage] = number
            for edges in (self.edges[number], self.unchanged_edges[number]):
                for start in np.unique(edges.row):
                    for between in range(int(start) + 1, number):
                        through[between].add(number)
        self.passing_targets = {row: tuple(sorted(targets)) for row, targets in through.items()}
        self._firsts = np.array([row.first for row in self.rows], np.int64)
        moments = [row.sorted_moments for row in self.rows]
        of_rows = np.repeat(np.arange(len(moments)), [moment.size for moment in moments])
        moments_of_all = np.concatenate([np.zeros(0, np.int64), *moments])
        by_time = np.argsort(moments_of_all, kind="stable")
        self._moments, self._rows_by_moment = moments_of_all[by_time], of_rows[by_time]
        self._sizes = np.array([moment.size for moment in moments], np.int64)

    def _build_edges(self, number: int, row: Row, last_of_storage: dict[object, int]) -> LaidOutEdges:
        cell, source_row, source_cell = row.sources.T
        column = np.empty_like(cell)
        start = source_row.copy()
        for origin in np.unique(source_row):
            from_origin = source_row == origin
            columns = self.rows[origin].column[source_cell[from_origin]]
            column[from_origin] = columns
            latest = last_of_storage.get(self.rows[origin].storage, -1)
            if origin < latest < number:
                # A later row of the same array may still show the value: start the line at the latest such row.
                is_unchanged = self._is_unchanged(self.rows[latest], columns)
                start[from_origin] = np.where(is_unchanged, latest, origin)
        return self._add_character_lines(row, LaidOutEdges(cell, start, column))

    def _add_character_lines(self, row: Row, edges: LaidOutEdges) -> LaidOutEdges:
        """Return the lines to a row, adding lines from characters if it is a row of bins."""
        text = self._text
        if text is None or row.storage.name not in text.bins:
            return edges
        origin = next((n for n, each in enumerate(self.rows) if each.storage.name == text.characters), None)
        if origin is None:
            return edges
        elements = self.rows[origin].cells
        bins = {int(bin_): cell for cell, bin_ in enumerate(row.cells)}
        # Increments are sorted by event.
        first, last = np.searchsorted(self._increments[:, 0], (row.first, row.last + 1))
        lines = [
            (bins[bin_], origin, self.rows[origin].column[np.searchsorted(elements, element)])
            for event, element, bin_, *thread in self._increments[first:last].tolist()
            if bin_ in bins and row.computed[cell_of_bin := bins[bin_]]
            if [row.moment[cell_of_bin], row.block[cell_of_bin], row.thread[cell_of_bin]] == [event, *thread]
        ]
        cell, start, column = np.array(lines, np.int64).reshape(-1, 3).T
        return LaidOutEdges(
            np.concatenate((edges.cell, cell)),
            np.concatenate((edges.row, start)),
            np.concatenate((edges.column, column)),
        )

    def with_symbols(self, symbols: Symbols | None) -> DataflowLayout:
        """Return a copy that shows symbols instead of values, or values if `symbols` is None."""
        result = copy(self)
        result.symbols = symbols
        result.__dict__.pop("text_lengths", None)
        return result

    @cached_property
    def text_lengths(self) -> tuple[int, int]:
        """Return the maximum numbers of characters of a cell's text and of a bin's name."""
        rows = range(len(self.rows))
        values = max((len(text) for row in rows for text in self.texts(row, 6)), default=1)
        return values, max((len(name) for row in rows for name in self.names(row)[:-1]), default=1)

    @property
    def max_text_length(self) -> int:
        """Return the maximum number of characters of a text that overlaps neighboring columns."""
        return _MAX_VALUE_LENGTH if self.symbols is None else _MAX_SYMBOL_LENGTH

    def texts(self, number: int, max_length: int) -> list[str]:
        """Return a row's values in at most `max_length` characters each if possible; a text's characters as letters."""
        row = self.rows[number]
        if self.symbols is not None:
            return [symbol.format_text(max_length) for symbol in self.symbols.find_row_symbols(number)]
        if self._text is not None and row.storage.name == self._text.characters:
            return [chr(value) if value > ord(" ") else "␣" for value in row.value.tolist()]
        return format_values(row.value, max_length)

    @cached_property
    def _value_ranges(self) -> dict[object, tuple[float, float]]:
        """Return the minimum and maximum value of each storage over the whole recording."""
        spans: dict[object, tuple[float, float]] = {}
        for row in self.rows:
            values = row.value.astype(float) if row.value.dtype.kind in "iufb" else np.zeros(0)
            values = values[np.isfinite(values)]
            if values.size:
                low, high = spans.get(row.storage, (math.inf, -math.inf))
                spans[row.storage] = min(low, float(values.min())), max(high, float(values.max()))
        return spans

    def levels(self, number: int) -> Array:
        """Return a row's values scaled to 0 to 1 by the minimum and maximum of their storage; NaN becomes 1."""
        row = self.rows[number]
        low, high = self._value_ranges.get(row.storage, (0.0, 0.0))
        if row.value.dtype.kind not in "iufb" or high <= low:
            return np.ones(row.value.size)
        return np.clip(np.nan_to_num((row.value.astype(float) - low) / (high - low), nan=1.0), 0.0, 1.0)

    def names(self, number: int) -> tuple[str, ...]:
        """Return the names of the bins for the first row of bins, or an empty tuple."""
        row = self.rows[number]
        if self._text is None or row.storage.name not in self._text.bins or not row.computed.size or row.computed.any():
            return ()
        return self._text.names if row.value.size == len(self._text.names) else ()

    @staticmethod
    def _is_unchanged(row: Row, columns: Array) -> Array:
        index = np.minimum(np.searchsorted(row.column, columns), max(row.column.size - 1, 0))
        if not row.column.size:
            return np.zeros(columns.size, bool)
        unchanged: Array = (row.column[index] == columns) & ~row.computed[index]
        return unchanged

    def _build_unchanged_edges(self, number: int, row: Row, source_row: int | None) -> LaidOutEdges:
        """Return the lines to unchanged cells, from the same array's last row or else from the row above."""
        none = np.zeros(0, np.int64)
        if source_row is None:
            source_row = number - 1
            if source_row < 0 or self.rows[source_row].launch != row.launch:
                return LaidOutEdges(none, none, none)
        above = self.rows[source_row]
        unchanged = np.flatnonzero(~row.computed & np.isin(row.column, above.column))
        if above.storage != row.storage:
            values_above = above.value[np.searchsorted(above.column, row.column[unchanged])]
            unchanged = unchanged[values_above == row.value[unchanged]]
        return LaidOutEdges(unchanged, np.full(unchanged.size, source_row), row.column[unchanged])

    def row_at(self, moment: int) -> int:
        """Return the row of the last statement executed before a moment; -1 if there is none."""
        return int(self.dataflow.row_at(moment)) if self.rows and moment > 0 else -1

    def cells_at(self, number: int, moment: int) -> Array:
        """Return the cells of a row that the event just before a moment wrote."""
        return np.flatnonzero(self.rows[number].moment == moment - 1) if moment else np.zeros(0, int)

    def row_progress(self, number: int, moment: int) -> int:
        """Return a row's progress at a moment: -1 if not begun, else the number of its cells that have their values."""
        row = self.rows[number]
        return -1 if moment <= row.first else int(np.searchsorted(row.sorted_moments, moment))

    def all_progress(self, moment: int) -> tuple[Array, Array]:
        """Return the progress of all rows at a moment as in `row_progress`, and which rows are complete."""
        past = self._rows_by_moment[: np.searchsorted(self._moments, moment)]
        phases = np.where(self._firsts >= moment, -1, np.bincount(past, minlength=len(self.rows)))
        return phases, phases == self._sizes

    def height(self, sizes: Metrics) -> float:
        """Return the height of the whole picture."""
        return sizes.top(max(len(self.rows), 1)) - (sizes.pitch - sizes.cell) + sizes.head * 0.6

    def width(self, sizes: Metrics) -> float:
        """Return the width of all columns, without the labels."""
        return self.columns * sizes.column
