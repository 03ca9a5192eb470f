"""Many lines or squares at once, from arrays of numbers: Qt's objects are not made one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6 import sip
from PyQt6.QtCore import QLineF, QRectF

from gpu.declaration.pattern import Array

Coordinates = Array | float
"""One for each shape, or one that all have in common."""


def lines_between(x0: Array, y0: Coordinates, x1: Coordinates, y1: Coordinates) -> sip.array[QLineF | None]:
    """Return lines from points to points."""
    made: sip.array[QLineF | None] = _of_four(QLineF, x0.size, (x0, y0, x1, y1))
    return made


def squares(lefts: Array, tops: Array, side: float) -> sip.array[QRectF | None]:
    """Return squares by their left upper corners."""
    made: sip.array[QRectF | None] = _of_four(QRectF, lefts.size, (lefts, tops, side, side))
    return made


def _of_four(kind: type, count: int, columns: tuple[Coordinates, ...]) -> Any:
    """Return objects of Qt's that are four float64 each."""
    make: Any = sip.array  # its stubs know nothing of what it is made of
    made = make(kind, count)
    memory: Any = sip.voidptr(made, count * 32)
    fields = np.frombuffer(memory, np.float64).reshape(count, 4)
    for number, column in enumerate(columns):
        fields[:, number] = column
    return made
