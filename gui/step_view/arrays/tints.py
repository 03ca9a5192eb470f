"""Paints an array of many elements as a grid of small cells without values: pixel by pixel, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PyQt6.QtCore import QPointF
from PyQt6.QtGui import QColor, QImage, QPainter
from PyQt6.sip import voidptr

from gpu.declaration.pattern import Array
from gui.painting.theme import look
from gui.step_view.arrays.panels import Panel
from gui.step_view.arrays.shades import Mark, Range, Shades, laid_over

_GAPPED, _WIDE = 7, 10
"""Pixels of a cell from which there is a gap to the next one, and from which its frame is two pixels wide."""


class TintedGrid:
    """The cells of one array, too small for values.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    cell : float
        Pixels of a cell.
    ratio : float
        Pixels of the screen for each of the picture.
    """

    def __init__(self, shape: tuple[int, int], cell: float, ratio: float) -> None:
        self.shape, self.cell = shape, cell
        self._shades = Shades(shape)
        self._ratio = ratio
        self._looks = _looks(shape, cell, ratio)
        self._colors: Array = np.zeros(0, np.uint32)
        self._pixels: Array = np.zeros(self._looks.shape, np.uint32)

    def paint(self, painter: QPainter, panel: Panel, at: QPointF, values: Range | None, marks: Sequence[Mark]) -> None:
        """Paint an array, dark for the least of a pair of values, light for the greatest, and what is touched of it."""
        self._shades.take(panel, values)
        plain = self._shades.colors.reshape(-1)
        filled, framed = laid_over(plain, marks), laid_over(plain, marks, frames=True)
        colors = np.concatenate((filled, framed, np.array([QColor(look().theme.surface).rgb()], np.uint32)))
        if not np.array_equal(colors, self._colors):
            self._colors = colors
            np.take(colors, self._looks, out=self._pixels, mode="clip")
        rows, columns = self._pixels.shape
        # The image looks at the array's memory, which stays where it is until the image has been painted.
        memory: Any = voidptr(self._pixels.ctypes.data)  # the stubs know another voidptr
        image = QImage(memory, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(self._ratio)
        painter.drawImage(at, image)


def _looks(shape: tuple[int, int], cell: float, ratio: float) -> Array:
    """Return what each pixel shows: a cell's filling, by its number, or after all of those its frame, or last a gap."""
    frame = ratio * (2 if cell >= _WIDE else 1)
    gap = ratio if cell >= _GAPPED else 0.0
    (row, row_edge, row_gap), (column, column_edge, column_gap) = (
        _along(count, cell * ratio, frame, gap) for count in shape
    )
    numbers = row[:, np.newaxis] * shape[1] + column
    edge, between = (one[:, np.newaxis] | other for one, other in ((row_edge, column_edge), (row_gap, column_gap)))
    cells = shape[0] * shape[1]
    found: Array = np.where(between, 2 * cells, np.where(edge, cells + numbers, numbers))
    return found


def _along(count: int, cell: float, frame: float, gap: float) -> tuple[Array, Array, Array]:
    """Return of each pixel in one direction: its cell, whether it is at the cell's edge, and whether it is between."""
    middle = np.arange(round(count * cell)) + 0.5
    number = np.minimum((middle / cell).astype(int), count - 1)
    within = middle - number * cell
    between = within > cell - gap
    return number, (within < frame) | (within > cell - gap - frame), between
