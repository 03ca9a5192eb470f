"""Painter of a large array as a grid of small cells without values, as one image computed with NumPy."""

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
from gui.step_view.arrays.shades import Mark, Shades, ValueRange, blend_marks

_GAPPED, _WIDE = 7, 10
"""Minimum cell sizes in pixels for a gap between cells, and for a frame two pixels wide."""


class TintedGrid:
    """The cells of one array, too small for values.

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
        self._ratio = ratio
        self._indices = _color_indices(shape, cell, ratio)
        self._colors: Array = np.zeros(0, np.uint32)
        self._pixels: Array = np.zeros(self._indices.shape, np.uint32)

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
        self._shades.update_panel(panel, value_range)
        plain = self._shades.colors.reshape(-1)
        filled, framed = blend_marks(plain, marks), blend_marks(plain, marks, frames=True)
        colors = np.concatenate((filled, framed, np.array([QColor(look().theme.surface).rgb()], np.uint32)))
        if not np.array_equal(colors, self._colors):
            self._colors = colors
            np.take(colors, self._indices, out=self._pixels, mode="clip")
        rows, columns = self._pixels.shape
        # The image shares the array's memory, which outlives the painting.
        memory: Any = voidptr(self._pixels.ctypes.data)  # the stubs declare a different voidptr
        image = QImage(memory, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(self._ratio)
        painter.drawImage(corner, image)


def _color_indices(shape: tuple[int, int], cell: float, ratio: float) -> Array:
    """Return each pixel's index into the colors: n cell fills, then n cell frames, then the gap's color."""
    frame = ratio * (2 if cell >= _WIDE else 1)
    gap = ratio if cell >= _GAPPED else 0.0
    (row, row_edge, row_gap), (column, column_edge, column_gap) = (
        _split_axis(count, cell * ratio, frame, gap) for count in shape
    )
    numbers = row[:, np.newaxis] * shape[1] + column
    edge, between = (down[:, np.newaxis] | across for down, across in ((row_edge, column_edge), (row_gap, column_gap)))
    cells = shape[0] * shape[1]
    indices: Array = np.where(between, 2 * cells, np.where(edge, cells + numbers, numbers))
    return indices


def _split_axis(count: int, cell: float, frame: float, gap: float) -> tuple[Array, Array, Array]:
    """Return, for each pixel along an axis, its cell, whether it is on the cell's frame, and whether it is in a gap."""
    middle = np.arange(round(count * cell)) + 0.5
    number = np.minimum((middle / cell).astype(int), count - 1)
    within = middle - number * cell
    between = within > cell - gap
    return number, (within < frame) | (within > cell - gap - frame), between
