"""Clip regions that keep lines from being painted over the cells that they pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from PyQt6.QtCore import QPoint, QRect, QRectF, Qt
from PyQt6.QtGui import QPainter, QRegion

_MAX_EXTENT = 100_000
"""Distance in pixels beyond which nothing is painted."""


def invert_region(region: QRegion) -> QRegion | None:
    """Return the complement of a region; None, meaning everywhere, for an empty region."""
    if region.isEmpty():
        return None
    return QRegion(region.boundingRect().adjusted(-_MAX_EXTENT, -_MAX_EXTENT, _MAX_EXTENT, _MAX_EXTENT)) - region


@contextmanager
def clip_painter(painter: QPainter, region: QRegion | None) -> Iterator[None]:
    """Clip a painter to a region within the context; None does not clip."""
    if region is None:
        yield
        return
    painter.save()
    painter.setClipRegion(region, Qt.ClipOperation.IntersectClip)
    yield
    painter.restore()


def build_region(boxes: Sequence[QRectF]) -> QRegion:
    """Return the whole pixels inside boxes of one row, sorted from left to right, as a region."""
    region = QRegion()
    inner = [
        QRect(QPoint(math.ceil(box.left()), math.ceil(box.top())), QPoint(int(box.right()) - 1, int(box.bottom()) - 1))
        for box in boxes
    ]
    region.setRects([box for box in inner if box.isValid()])
    return region
