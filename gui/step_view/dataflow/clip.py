"""What is left out when lines are painted: the cells that they pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from PyQt6.QtCore import QPoint, QRect, QRectF, Qt
from PyQt6.QtGui import QPainter, QRegion

_FAR = 100_000
"""Pixels beyond which nothing is painted."""


def outside(region: QRegion) -> QRegion | None:
    """Return all but a region; None for everything."""
    if region.isEmpty():
        return None
    return QRegion(region.boundingRect().adjusted(-_FAR, -_FAR, _FAR, _FAR)) - region


@contextmanager
def clipped_to(painter: QPainter, region: QRegion | None) -> Iterator[None]:
    """Paint in a region alone; None is everywhere."""
    if region is None:
        yield
        return
    painter.save()
    painter.setClipRegion(region, Qt.ClipOperation.IntersectClip)
    yield
    painter.restore()


def region_of(boxes: Sequence[QRectF]) -> QRegion:
    """Return boxes of one line, from left to right, as a region of whole pixels."""
    made = QRegion()
    inner = [
        QRect(QPoint(math.ceil(box.left()), math.ceil(box.top())), QPoint(int(box.right()) - 1, int(box.bottom()) - 1))
        for box in boxes
    ]
    made.setRects([box for box in inner if box.isValid()])
    return made
