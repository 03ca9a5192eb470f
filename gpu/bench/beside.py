"""The fastest variants compared with their peers over sizes: a table and a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu.bench.measurement import Measurement
from gpu.declaration.benchmark import Beside
from gpu.drawing import THEMES, drawing, text

_COLUMNS, _WIDE, _HIGH, _GAP, _MARGIN, _HEAD = 3, 300, 150, 64, 56, 76
_LEAST, _MOST = 0.25, 8.0
"""Range of the plot, as multiples of the best peer's rate; values outside are drawn at the border."""
_STYLE = (
    ".rule,.level,.line{fill:none;stroke-width:1}.level{stroke-width:1.6;stroke-dasharray:5 4}.line{stroke-width:2}"
)


@dataclass(frozen=True)
class At:
    """The fastest variant and the fastest peer at one size.

    Parameters
    ----------
    size : int or str
        A text for a shape.
    ours, peer : Measurement
    """

    size: int | str
    ours: Measurement
    peer: Measurement

    @property
    def share(self) -> float:
        """Our rate divided by the peer's; rates, since a peer may have done a part of the work."""
        return _rate(self.ours) / _rate(self.peer)


@dataclass(frozen=True)
class OverSizes:
    """Measurements of one kind of work over sizes.

    Parameters
    ----------
    of : Beside
        The declared comparison.
    points : tuple of At
        In the order of the sizes, without sizes at which ours or every peer failed.
    """

    of: Beside
    points: tuple[At, ...]


def curves_of(declared: Iterable[Beside], rows: Sequence[Measurement]) -> list[OverSizes]:
    """Group measurements by work and size; a peer that does a part of the work counts as if it did all of it."""
    by_work: dict[str, list[Measurement]] = {}
    for row in rows:
        if row.times_ms and row.rate:
            by_work.setdefault(row.work, []).append(row)
    curves = []
    for each in declared:
        points = []
        for size, case in each.cases.items():
            group = by_work.get(case.work, [])
            ours = [row for row in group if row.ours]
            peers = [row for row in group if not row.ours]
            if ours and peers:
                points.append(At(size, min(ours, key=_ms), max(peers, key=_rate)))
        curves.append(OverSizes(each, tuple(points)))
    return curves


def table(curves: Sequence[OverSizes]) -> str:
    """Return a Markdown table with one row per size."""
    lines = [
        "| work | size | ours | median ms | rate | best peer | median ms | speedup over the peer |",
        "|---|--:|---|--:|--:|---|--:|--:|",
    ]
    for curve in curves:
        for at in curve.points:
            ours, peer = at.ours, at.peer
            ours_cells = f"**{ours.who}** | {_ms(ours):.4f} | {_rate(ours):.4g} {ours.unit}"
            peer_cells = f"{peer.who} | {_ms(peer):.4f}"
            lines.append(f"| {curve.of.work} | {_size(at.size)} | {ours_cells} | {peer_cells} | {at.share:.2f} x |")
    return "\n".join(lines)


def summary(curves: Sequence[OverSizes]) -> str:
    """Return a Markdown table: for each work, at how many sizes ours is as fast as the peer, and the worst size."""
    lines = [
        "| work | sizes | as fast or faster at | geometric mean | worst | at |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for curve in curves:
        if not curve.points:
            lines.append(f"| {curve.of.work} | 0 | | | | |")
            continue
        worst = min(curve.points, key=lambda at: at.share)
        ahead = sum(at.share >= 1 for at in curve.points)
        mean = math.exp(sum(math.log(at.share) for at in curve.points) / len(curve.points))
        lines.append(
            f"| {curve.of.work} | {len(curve.points)} | {ahead} | {mean:.2f} x | {worst.share:.2f} x | "
            f"{_size(worst.size)} {curve.of.unit} |"
        )
    return "\n".join(lines)


def picture(curves: Sequence[OverSizes], title: str) -> str:
    """Plot the speedup over the best peer, with one panel per work."""
    shown = [curve for curve in curves if curve.points]
    rows = -(-len(shown) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * _WIDE + (_COLUMNS - 1) * _GAP
    height = _HEAD + rows * (_HIGH + _GAP) + 12
    parts = [
        text(_MARGIN, 34, title, "title"),
        text(_MARGIN, 54, "Speedup over the best peer, by size. Dashed line: equally fast.", "small"),
    ]
    for number, curve in enumerate(shown):
        row, column = divmod(number, _COLUMNS)
        left, top = _MARGIN + column * (_WIDE + _GAP), _HEAD + 22 + row * (_HIGH + _GAP)
        parts += _panel(curve, left, top)
    return drawing(width, height, title, parts, _STYLE, _colors)


def _panel(curve: OverSizes, left: float, top: float) -> Iterator[str]:
    # Shapes are placed at equal distances.
    places = [place if isinstance(at.size, str) else math.log2(at.size) for place, at in enumerate(curve.points)]

    def x(place: float) -> float:
        return left + (place - places[0]) / max(places[-1] - places[0], 1e-9) * _WIDE

    def y(share: float) -> float:
        clamped = min(max(share, _LEAST), _MOST)
        return top + math.log2(_MOST / clamped) / math.log2(_MOST / _LEAST) * _HIGH

    yield text(left, top - 10, curve.of.work, "name")
    level = _LEAST
    while level <= _MOST:
        kind = "level" if level == 1 else "rule"
        yield f'<path class="{kind}" d="M{left:g} {y(level):.1f}H{left + _WIDE:g}"/>'
        yield text(left - 6, y(level) + 4, f"{level:g}", "small end")
        level *= 2
    begin, end = curve.points[0].size, curve.points[-1].size
    if isinstance(begin, str):
        yield text(left + _WIDE, top + _HIGH + 18, f"{len(curve.points)} shapes", "small end")
    else:
        yield text(left, top + _HIGH + 18, _size(begin), "small")
        yield text(left + _WIDE, top + _HIGH + 18, f"{_size(end)} {curve.of.unit}", "small end")
        path = "L".join(f"{x(place):.1f} {y(at.share):.1f}" for place, at in zip(places, curve.points, strict=True))
        yield f'<path class="line" d="M{path}"/>'
    for place, at in zip(places, curve.points, strict=True):
        kind = "ahead" if at.share >= 1 else "behind"
        tooltip = f"{_size(at.size)} {curve.of.unit}: {at.share:.2f} x {at.peer.who}"
        center = f'cx="{x(place):.1f}" cy="{y(at.share):.1f}"'
        yield f'<circle class="{kind}" {center} r="4"><title>{tooltip}</title></circle>'


def _colors(theme: str) -> str:
    t = THEMES[theme]
    behind: Mapping[str, str] = {"light": "#a8520e", "dark": "#f2a66a"}
    return (
        f".rule{{stroke:{t['border']}}}.level{{stroke:{t['muted']}}}.line{{stroke:{t['accent']}}}"
        f".ahead{{fill:{t['accent']}}}.behind{{fill:{behind[theme]}}}"
    )


def _size(size: int | str) -> str:
    return f"2^{size.bit_length() - 1}" if isinstance(size, int) and size.bit_count() == 1 else f"{size}"


def _ms(row: Measurement) -> float:
    return row.median_ms or math.inf


def _rate(row: Measurement) -> float:
    return row.rate or 0.0
