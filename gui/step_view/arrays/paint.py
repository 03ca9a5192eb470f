"""Painter of an array as a grid of cells with values; it repaints only the cells that changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PyQt6.QtCore import QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPixmap

from gpu.declaration.pattern import Array
from gui.painting.lettering import Lettering
from gui.painting.pixmaps import Pixmaps
from gui.painting.shapes import squares
from gui.painting.theme import code_font, look
from gui.painting.values import texts
from gui.step_view.arrays.panels import Panel
from gui.step_view.arrays.shades import Mark, Range, Shades, are_light, laid_over

READABLE = 17
"""Minimum size in pixels of a cell that shows its value."""
_SHORT = 4
"""Maximum number of characters of a value that needs no extra space to the next cell."""
_DARK_TEXT, _LIGHT_TEXT = "#0b0f14", "#f2f5f9"


class ValueGrid:
    """The cells of one array, large enough for values.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    cell : float
        Pixels of a cell.
    ratio : float
        Device pixel ratio.
    """

    def __init__(self, shape: tuple[int, int], cell: float, ratio: float) -> None:
        self.shape, self.cell = shape, cell
        self._shades = Shades(shape)
        self._picture = QPixmap(round(shape[1] * cell * ratio), round(shape[0] * cell * ratio))
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(Qt.GlobalColor.transparent)
        self._cells = Pixmaps()
        font = code_font(max(8, min(look().small_px, round(cell * 0.4))))
        self._lettering = Lettering(font)
        digit_width = QFontMetricsF(font).horizontalAdvance("0")
        room = int((cell - 3) / digit_width)
        # Long values, which fill their cells, need a margin.
        self._room = max(1, room if room <= _SHORT else int((cell - digit_width) / digit_width))

    def paint(self, painter: QPainter, panel: Panel, at: QPointF, values: Range | None, marks: Sequence[Mark]) -> None:
        """Paint an array with marks on accessed cells.

        Parameters
        ----------
        painter : QPainter
        panel : Panel
            The array; its shape is that of the grid.
        at : QPointF
            Position of the grid's top left corner.
        values : (float, float) or None
            Values with the darkest and the lightest shade; None for 0 and 1.
        marks : sequence of Mark
        """
        changed = self._shades.take(panel, values)
        if changed.any():
            self._update(panel, changed)
        painter.drawPixmap(at, self._picture)
        for mark in marks:
            rows, columns = np.divmod(mark.cells, self.shape[1])
            painter.setPen(QPen(mark.frame, 2 if mark.strong else 1))
            painter.setBrush(mark.filling)
            painter.drawRects(
                squares(at.x() + columns * self.cell + 0.5, at.y() + rows * self.cell + 0.5, self.cell - 1.5)
            )
        if marks:
            self._letter(painter, panel, at, marks)

    def _update(self, panel: Panel, changed: Array) -> None:
        painter = QPainter(self._picture)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
        places = np.flatnonzero(changed.reshape(-1))
        has_value = panel.known.reshape(-1)[places]
        shown_texts = [text if is_known else "" for text, is_known in
                 zip(texts(panel.values.reshape(-1)[places], self._room), has_value.tolist(), strict=True)]  # fmt: skip
        colors, light = (each.reshape(-1)[places].tolist() for each in (self._shades.colors, self._shades.light))
        tops, lefts = (each * self.cell for each in divmod(places, self.shape[1]))
        looks = list(zip(colors, shown_texts, light, strict=True))
        # Values repeat often, so their cells are cached.
        cells = {each: self._cells.at(each, partial(self._cell, *each)) for each in set(looks)}
        for left, top, each in zip(lefts.tolist(), tops.tolist(), looks, strict=True):
            painter.drawPixmap(QPointF(left, top), cells[each])
        painter.end()

    def _cell(self, color: int, text: str, on_light: bool) -> QPixmap:
        """Return a painted cell."""
        ratio = self._picture.devicePixelRatio()
        picture = QPixmap(round(self.cell * ratio), round(self.cell * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(look().theme.surface))
        painter = QPainter(picture)
        box = QRectF(0, 0, self.cell, self.cell)
        painter.fillRect(box.adjusted(0.5, 0.5, -0.5, -0.5), QColor.fromRgb(color))
        if text:
            painter.setFont(self._lettering.font)
            painter.setPen(QColor(_DARK_TEXT if on_light else _LIGHT_TEXT))
            self._lettering.center(painter, box, text)
        painter.end()
        return picture

    def _letter(self, painter: QPainter, panel: Panel, at: QPointF, marks: Sequence[Mark]) -> None:
        """Paint the values of marked cells over the marks, dark on light colors."""
        places = np.unique(np.concatenate([mark.cells for mark in marks]))
        places = places[panel.known.reshape(-1)[places]]
        on_light = are_light(laid_over(self._shades.colors.reshape(-1), marks)[places])
        painter.setFont(self._lettering.font)
        for color, cells in ((_DARK_TEXT, places[on_light]), (_LIGHT_TEXT, places[~on_light])):
            painter.setPen(QColor(color))
            shown_texts = texts(panel.values.reshape(-1)[cells], self._room)
            for place, text in zip(cells.tolist(), shown_texts, strict=True):
                row, column = divmod(place, self.shape[1])
                box = QRectF(at.x() + column * self.cell, at.y() + row * self.cell, self.cell, self.cell)
                self._lettering.center(painter, box, text)
