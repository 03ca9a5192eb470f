"""Painter of an array as a grid of cells with values; it repaints only the cells that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPixmap

from gpu.declaration.pattern import Array
from gui.painting.lettering import Lettering
from gui.painting.pixmaps import Pixmaps
from gui.painting.shapes import rectangles
from gui.painting.theme import code_font, look
from gui.painting.values import format_values
from gui.step_view.arrays.panels import Panel
from gui.step_view.arrays.shades import Mark, Shades, ValueRange, are_light, blend_marks

MIN_READABLE_CELL = 17
"""Minimum size in pixels of a cell that shows its value."""
MAX_SHORT_LENGTH = 4
"""Maximum number of characters of a value that needs no extra space to the next cell."""
_MARGIN = 4
"""Pixels left and right of a value, together."""
_MAX_TEXT_SCALE = 1.3
"""Maximum font size of values as a multiple of the text size."""
_DIGIT_WIDTH = 0.62
"""Width of a digit as a share of the font size."""
FLOAT_CHARACTERS = 7
"""Number of characters of floats for which there should be room."""
_MIN_FONT_SIZE = 7
"""Minimum font size in pixels."""
_DARK_TEXT, _LIGHT_TEXT = "#0b0f14", "#f2f5f9"


class ValueGrid:
    """The cells of one array, large enough for values.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    cell : float
        Height of a cell in pixels.
    ratio : float
        Device pixel ratio.
    characters : int
        Number of characters of the longest value; few make the text larger.
    column : float
        Width of a cell in pixels; 0 for squares.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        cell: float,
        ratio: float,
        characters: int = FLOAT_CHARACTERS,
        column: float = 0,
    ) -> None:
        self.shape, self.cell, self.column = shape, cell, column or cell
        self._shades = Shades(shape)
        self._picture = QPixmap(round(shape[1] * self.column * ratio), round(shape[0] * cell * ratio))
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(Qt.GlobalColor.transparent)
        self._cells = Pixmaps()
        # Long values, which fill their cells, need the margin of another digit.
        needed = characters if characters <= MAX_SHORT_LENGTH else characters + 1
        width_limit = int((self.column - _MARGIN) / (_DIGIT_WIDTH * needed))
        larger_size = min(round(cell * 0.55), width_limit, round(look().text_px * _MAX_TEXT_SCALE))
        size = max(8, min(look().small_px, round(cell * 0.4)), larger_size)
        font = code_font(size)
        self._lettering = Lettering(font)
        self._narrow_lettering = Lettering(_find_narrow_font(self.column, size))
        digit_width = QFontMetricsF(font).horizontalAdvance("0")
        room = int((self.column - 3) / digit_width)
        self._max_characters = max(
            1, room if room <= MAX_SHORT_LENGTH else int((self.column - digit_width) / digit_width)
        )

    def paint(
        self, painter: QPainter, panel: Panel, corner: QPointF, value_range: ValueRange | None, marks: Sequence[Mark]
    ) -> None:
        """Paint an array with marks on accessed cells.

        Parameters
        ----------
        panel : Panel
            The array; its shape is that of the grid.
        corner : QPointF
            Position of the grid's top left corner.
        value_range : (float, float) or None
            Values with the darkest and the lightest shade; None for 0 and 1.
        """
        changed = self._shades.update_panel(panel, value_range)
        if changed.any():
            self._repaint_cells(panel, changed)
        painter.drawPixmap(corner, self._picture)
        for mark in marks:
            rows, columns = np.divmod(mark.cells, self.shape[1])
            painter.setPen(QPen(mark.frame_color, 2 if mark.strong else 1))
            painter.setBrush(mark.fill_color)
            painter.drawRects(
                rectangles(
                    corner.x() + columns * self.column + 0.5,
                    corner.y() + rows * self.cell + 0.5,
                    self.column - 1.5,
                    self.cell - 1.5,
                )
            )
        if marks:
            self._paint_values(painter, panel, corner, marks)
            self._paint_outside(painter, panel, corner, marks)

    def _repaint_cells(self, panel: Panel, changed: Array) -> None:
        painter = QPainter(self._picture)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
        places = np.flatnonzero(changed.reshape(-1))
        has_value = panel.has_value.reshape(-1)[places]
        texts = self._format_values(panel.values.reshape(-1)[places])
        shown_texts = [text if is_known else "" for text, is_known in zip(texts, has_value.tolist(), strict=True)]
        colors, light = (each.reshape(-1)[places].tolist() for each in (self._shades.colors, self._shades.light))
        rows, columns = divmod(places, self.shape[1])
        tops, lefts = rows * self.cell, columns * self.column
        looks = list(zip(colors, shown_texts, light, strict=True))
        # Values repeat often, so their cells are cached.
        cells = {each: self._cells.find_or_paint(each, partial(self._paint_cell, *each)) for each in set(looks)}
        for left, top, each in zip(lefts.tolist(), tops.tolist(), looks, strict=True):
            painter.drawPixmap(QPointF(left, top), cells[each])
        painter.end()

    def _paint_cell(self, color: int, text: str, on_light: bool) -> QPixmap:
        ratio = self._picture.devicePixelRatio()
        picture = QPixmap(round(self.column * ratio), round(self.cell * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(look().theme.surface))
        painter = QPainter(picture)
        box = QRectF(0, 0, self.column, self.cell)
        painter.fillRect(box.adjusted(0.5, 0.5, -0.5, -0.5), QColor.fromRgb(color))
        if text:
            painter.setPen(QColor(_DARK_TEXT if on_light else _LIGHT_TEXT))
            self._paint_text(painter, box, text)
        painter.end()
        return picture

    def _format_values(self, values: Array) -> list[str]:
        """Return the values' texts; a value without a text would look like an element that was never written."""
        texts = format_values(values, self._max_characters)
        if "" in texts:
            narrow = QFontMetricsF(self._narrow_lettering.font)
            missing = [index for index, text in enumerate(texts) if not text]
            longer_texts = format_values(values[missing], MAX_SHORT_LENGTH)
            for index, text in zip(missing, longer_texts, strict=True):
                fits = 0 < narrow.horizontalAdvance(text) <= self.column - 2
                texts[index] = text if fits else "…"
        return texts

    def _paint_text(self, painter: QPainter, box: QRectF, text: str) -> None:
        lettering = self._lettering if len(text) <= self._max_characters else self._narrow_lettering
        painter.setFont(lettering.font)
        lettering.paint_centered(painter, box, text)

    def _paint_values(self, painter: QPainter, panel: Panel, at: QPointF, marks: Sequence[Mark]) -> None:
        """Paint the values of marked cells over the marks, dark on light colors."""
        places = np.unique(np.concatenate([mark.cells for mark in marks]))
        places = places[panel.has_value.reshape(-1)[places]]
        on_light = are_light(blend_marks(self._shades.colors.reshape(-1), marks)[places])
        for color, cells in ((_DARK_TEXT, places[on_light]), (_LIGHT_TEXT, places[~on_light])):
            painter.setPen(QColor(color))
            shown_texts = self._format_values(panel.values.reshape(-1)[cells])
            for cell, text in zip(cells.tolist(), shown_texts, strict=True):
                row, column = divmod(cell, self.shape[1])
                box = QRectF(at.x() + column * self.column, at.y() + row * self.cell, self.column, self.cell)
                self._paint_text(painter, box, text)

    def _paint_outside(self, painter: QPainter, panel: Panel, at: QPointF, marks: Sequence[Mark]) -> None:
        """Paint the indices of marked elements out of bounds, which have no values, where they fit."""
        marked = np.concatenate([mark.cells for mark in marks])
        painter.setPen(QColor(look().theme.text))
        for cell, element in zip(panel.outside_cells.tolist(), panel.outside, strict=True):
            text = f"[{element}]"
            if cell in marked and len(text) <= self._max_characters:
                row, column = divmod(cell, self.shape[1])
                box = QRectF(at.x() + column * self.column, at.y() + row * self.cell, self.column, self.cell)
                self._paint_text(painter, box, text)


def compute_needed_width(characters: int) -> float:
    """Return the width in pixels of a cell in which an integer of `characters` characters is readable; 0 if any."""
    if characters <= MAX_SHORT_LENGTH:
        return 0
    return math.ceil((characters + 1) * QFontMetricsF(code_font(look().small_px)).horizontalAdvance("0")) + _MARGIN


def _find_narrow_font(width: float, size: int) -> QFont:
    """Return the largest font, at most `size` pixels high, in which a value of four characters fits a cell."""
    digits = "0" * MAX_SHORT_LENGTH
    fonts = (code_font(each) for each in range(size, _MIN_FONT_SIZE, -1))
    return next(
        (font for font in fonts if QFontMetricsF(font).horizontalAdvance(digits) <= width - 2),
        code_font(_MIN_FONT_SIZE),
    )
