"""Label placement next to the points of a plot, without overlapping points or other labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from PyQt6.QtCore import QPointF, QRectF, QSizeF

_GAP = 6.0
"""Pixels between a point and a label, and between labels."""
_MAX_LINES, _MAX_COLUMNS = 8, 14
"""Maximum distance of a label from its point: lines up and down, label widths to the right."""
_LINE_COST = 1.4
"""Cost of a vertical offset relative to a horizontal one: a label on its point's line needs no leader line."""


def place_labels(
    points: Sequence[QPointF], sizes: Sequence[QSizeF], occupied_areas: Sequence[QRectF], bounds: QRectF
) -> list[QRectF]:
    """Return the nearest free box to the right of each point for its label.

    Parameters
    ----------
    points : sequence of QPointF
        Positions in pixels.
    occupied_areas : sequence of QRectF
        Occupied areas, such as points and other texts.
    bounds : QRectF
        Area that labels must not leave.

    Returns
    -------
    list of QRectF
        One box per point; directly next to the point if no box is free.
    """
    occupied, places = list(occupied_areas), {}
    for number in sorted(range(len(points)), key=lambda each: (round(points[each].y() / sizes[each].height()), each)):
        point, size = points[number], sizes[number]
        first = QRectF(QPointF(point.x() + _GAP, point.y() - size.height() / 2), size)
        near = sorted(
            product(range(_MAX_COLUMNS), range(-_MAX_LINES, _MAX_LINES + 1)),
            key=lambda step: step[0] * size.width() + abs(step[1]) * size.height() * _LINE_COST,
        )
        moved = (first.translated(right * (size.width() + _GAP), down * size.height()) for right, down in near)
        free = (box for box in moved if bounds.contains(box) and not any(box.intersects(other) for other in occupied))
        places[number] = next(free, first)
        occupied.append(places[number])
    return [places[number] for number in range(len(points))]
