"""Where texts stand beside points of a plot, so that no text lies on a point or on another text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from PyQt6.QtCore import QPointF, QRectF, QSizeF

_GAP = 6.0
"""Pixels between a point and a text, and between texts."""
_LINES, _PLACES = 8, 14
"""How far from its point a text may be: lines up and down, texts to the right."""
_ASIDE = 1.4
"""How much farther it is to another line than along one: a text in its point's line needs nothing that leads to it."""


def places_beside(
    points: Sequence[QPointF], sizes: Sequence[QSizeF], taken: Sequence[QRectF], within: QRectF
) -> list[QRectF]:
    """Return a place for each point's text, the nearest that is free, right of its point.

    Parameters
    ----------
    points : sequence of QPointF
        In pixels.
    sizes : sequence of QSizeF
        The texts'.
    taken : sequence of QRectF
        Where no text may be: what is painted of points and others.
    within : QRectF
        What texts may not reach beyond.

    Returns
    -------
    list of QRectF
        Where nothing is free, beside the point all the same.
    """
    full, places = list(taken), {}
    for number in sorted(range(len(points)), key=lambda each: (round(points[each].y() / sizes[each].height()), each)):
        point, size = points[number], sizes[number]
        first = QRectF(QPointF(point.x() + _GAP, point.y() - size.height() / 2), size)
        near = sorted(
            product(range(_PLACES), range(-_LINES, _LINES + 1)),
            key=lambda way: way[0] * size.width() + abs(way[1]) * size.height() * _ASIDE,
        )
        moved = (first.translated(right * (size.width() + _GAP), down * size.height()) for right, down in near)
        free = (each for each in moved if within.contains(each) and not any(each.intersects(other) for other in full))
        places[number] = next(free, first)
        full.append(places[number])
    return [places[number] for number in range(len(points))]
