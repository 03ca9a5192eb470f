"""Arrays of Qt lines or rectangles, created from NumPy arrays without a Python loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6 import sip
from PyQt6.QtCore import QLineF, QRectF

from gpu.declaration.pattern import Array

Coordinates = Array | float
"""One coordinate per shape, or one for all shapes."""


def lines_between(x0: Array, y0: Coordinates, x1: Coordinates, y1: Coordinates) -> sip.array[QLineF | None]:
    """Return lines from (x0, y0) to (x1, y1).

    Parameters
    ----------
    x0 : array of shape (n,)
        The x coordinates of the lines' starts; it determines the number of lines.
    y0, x1, y1 : float or array of shape (n,)
        The other coordinates, one for all lines or one per line.
    """
    lines: sip.array[QLineF | None] = _create_qt_array(QLineF, x0.size, (x0, y0, x1, y1))
    return lines


def rectangles(lefts: Array, tops: Array, width: float, height: float) -> sip.array[QRectF | None]:
    """Return rectangles of one size with the given top left corners."""
    boxes: sip.array[QRectF | None] = _create_qt_array(QRectF, lefts.size, (lefts, tops, width, height))
    return boxes


def _create_qt_array(kind: type, count: int, columns: tuple[Coordinates, ...]) -> Any:
    """Return a sip array of Qt objects that consist of four float64 fields."""
    make: Any = sip.array  # the stubs lack its constructor
    objects = make(kind, count)
    memory: Any = sip.voidptr(objects, count * 32)
    fields = np.frombuffer(memory, np.float64).reshape(count, 4)
    for number, column in enumerate(columns):
        fields[:, number] = column
    return objects
