"""Places for names in a row below the spans that they name: each name is whole, or has no place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_MAX_NAMES = 300
"""Names that are tried, as trying one takes time for each that has a place."""
Span = tuple[float, float]
"""The left and right end of an interval, in pixels."""


@dataclass(frozen=True)
class PlacedName:
    """A name, or the number at its end, with its position."""

    text: str
    left: float
    width: float

    @property
    def right(self) -> float:
        """The right end of the text."""
        return self.left + self.width

    def overlaps(self, other: PlacedName, gap: float) -> bool:
        """Return whether two names are closer to each other than a gap."""
        return self.left < other.right + gap and other.left < self.right + gap


def place_name(name: str, span: Span, width: float, room: Span) -> PlacedName:
    """Place one name at the middle of its span, as far as it stays in the room."""
    left = (span[0] + span[1] - width) / 2
    return PlacedName(name, max(room[0], min(left, room[1] - width)), width)


def place_names(
    names: Sequence[str], spans: Sequence[Span], measure: Callable[[str], float], room: Span, gap: float
) -> list[PlacedName | None]:
    """Place names at their spans, also beyond the ends of a span where the names of its neighbors leave room.

    Where one of several names that differ only in a number at their end has no place, all have only their number.

    Parameters
    ----------
    names : sequence of str
        Empty names have no place.
    measure : callable
        Returns the width of a text in pixels.
    room : (float, float)
        The ends of the row.
    gap : float
        The least distance between names.

    Returns
    -------
    list of PlacedName or None
        For each name, or None if it has no place.
    """
    places = _place_all(names, spans, measure, room, gap)
    parts = [re.fullmatch(r"(.*\D)(\d+)", name) for name in names]
    lacking = {part[1] for part, place in zip(parts, places, strict=True) if part is not None and place is None}
    if not lacking:
        return places
    shorter = [
        part[2] if part is not None and part[1] in lacking else name for part, name in zip(parts, names, strict=True)
    ]
    return _place_all(shorter, spans, measure, room, gap)


def _place_all(
    names: Sequence[str], spans: Sequence[Span], measure: Callable[[str], float], room: Span, gap: float
) -> list[PlacedName | None]:
    widths = {name: measure(name) for name in dict.fromkeys(names) if name}
    rooms = [last - first for first, last in spans]
    lacks = {index: widths[name] + gap - rooms[index] for index, name in enumerate(names) if name}
    # Those that fit below their own spans come first, then those that need the least of their neighbors' room.
    order = sorted(lacks, key=lambda each: max(lacks[each], 0.0))
    kept: list[int] = []
    packed: list[PlacedName] = []
    for index in order[:_MAX_NAMES]:
        chosen = sorted((*kept, index))
        places = _pack([(names[each], spans[each], widths[names[each]]) for each in chosen], room, gap)
        if places is not None:
            kept, packed = chosen, places
    placed = dict(zip(kept, packed, strict=True))
    return [placed.get(index) for index in range(len(names))]


def _pack(named: Sequence[tuple[str, Span, float]], room: Span, gap: float) -> list[PlacedName] | None:
    """Place names side by side, each over the middle of its span and as near to it as possible; None if impossible."""
    rightmost, end = [], room[1] + gap
    for _, (first, last), width in reversed(named):
        end = min((first + last) / 2, end - gap - width)
        rightmost.append(end)
    places: list[PlacedName] = []
    start = room[0]
    for (name, span, width), limit in zip(named, reversed(rightmost), strict=True):
        least = max(start, (span[0] + span[1]) / 2 - width)
        if least > limit:
            return None
        places.append(PlacedName(name, max(least, min((span[0] + span[1] - width) / 2, limit)), width))
        start = places[-1].right + gap
    return places
