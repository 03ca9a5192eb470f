"""The fastest variants compared with their peers over sizes: a table and a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu.base.drawing import THEMES, format_svg, format_text
from gpu.bench.measurement import Measurement
from gpu.declaration.benchmark import SizeComparison

_COLUMNS, _PANEL_WIDTH, _PANEL_HEIGHT, _GAP, _MARGIN, _HEAD = 3, 300, 150, 64, 56, 76
_MIN_SPEEDUP, _MAX_SPEEDUP = 0.25, 8.0
"""Range of the plot, as multiples of the best peer's rate; values outside are drawn at the border."""
_STYLE = (
    ".rule,.level,.line{fill:none;stroke-width:1}.level{stroke-width:1.6;stroke-dasharray:5 4}.line{stroke-width:2}"
)


@dataclass(frozen=True)
class SizePoint:
    """The fastest variant and the fastest peer at one size.

    Parameters
    ----------
    size : int or str
        A text for a shape.
    """

    size: int | str
    ours: Measurement
    peer: Measurement

    @property
    def speedup(self) -> float:
        """Our rate divided by the peer's; rates, since a peer may have done a part of the work."""
        return _rate(self.ours) / _rate(self.peer)


@dataclass(frozen=True)
class SpeedupCurve:
    """Measurements of one kind of work over sizes.

    Parameters
    ----------
    comparison : SizeComparison
        The declared comparison.
    points : tuple of SizePoint
        In the order of the sizes, without sizes at which ours or every peer failed.
    """

    comparison: SizeComparison
    points: tuple[SizePoint, ...]


def build_speedup_curves(comparisons: Iterable[SizeComparison], rows: Sequence[Measurement]) -> list[SpeedupCurve]:
    """Group measurements by work and size; a peer that does a part of the work counts as if it did all of it."""
    by_work: dict[str, list[Measurement]] = {}
    for row in rows:
        if row.times_ms and row.rate:
            by_work.setdefault(row.work, []).append(row)
    curves = []
    for comparison in comparisons:
        points = []
        for size, case in comparison.cases.items():
            group = by_work.get(case.work, [])
            ours = [row for row in group if row.is_variant]
            peers = [row for row in group if not row.is_variant]
            if ours and peers:
                points.append(SizePoint(size, min(ours, key=_ms), max(peers, key=_rate)))
        curves.append(SpeedupCurve(comparison, tuple(points)))
    return curves


def format_table(curves: Sequence[SpeedupCurve]) -> str:
    """Return a Markdown table with one row per size."""
    lines = [
        "| work | size | ours | median ms | rate | best peer | median ms | speedup over the peer |",
        "|---|--:|---|--:|--:|---|--:|--:|",
    ]
    for curve in curves:
        for at in curve.points:
            ours, peer = at.ours, at.peer
            ours_cells = f"**{ours.name}** | {_ms(ours):.4f} | {_rate(ours):.4g} {ours.unit}"
            peer_cells = f"{peer.name} | {_ms(peer):.4f}"
            first_cells = f"{curve.comparison.work} | {_format_size(at.size)}"
            lines.append(f"| {first_cells} | {ours_cells} | {peer_cells} | {at.speedup:.2f} x |")
    return "\n".join(lines)


def format_summary(curves: Sequence[SpeedupCurve]) -> str:
    """Return a Markdown table: for each work, at how many sizes ours is as fast as the peer, and the worst size."""
    lines = [
        "| work | sizes | as fast or faster at | geometric mean | worst | at |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for curve in curves:
        if not curve.points:
            lines.append(f"| {curve.comparison.work} | 0 | | | | |")
            continue
        worst = min(curve.points, key=lambda at: at.speedup)
        ahead = sum(at.speedup >= 1 for at in curve.points)
        mean = math.exp(sum(math.log(at.speedup) for at in curve.points) / len(curve.points))
        lines.append(
            f"| {curve.comparison.work} | {len(curve.points)} | {ahead} | {mean:.2f} x | {worst.speedup:.2f} x | "
            f"{_format_size(worst.size)} {curve.comparison.unit} |"
        )
    return "\n".join(lines)


def draw_speedup_plot(curves: Sequence[SpeedupCurve], title: str) -> str:
    """Plot the speedup over the best peer, with one panel per work."""
    shown = [curve for curve in curves if curve.points]
    rows = -(-len(shown) // _COLUMNS)
    width = 2 * _MARGIN + _COLUMNS * _PANEL_WIDTH + (_COLUMNS - 1) * _GAP
    height = _HEAD + rows * (_PANEL_HEIGHT + _GAP) + 12
    parts = [
        format_text(_MARGIN, 34, title, "title"),
        format_text(_MARGIN, 54, "Speedup over the best peer, by size. Dashed line: equally fast.", "small"),
    ]
    for number, curve in enumerate(shown):
        row, column = divmod(number, _COLUMNS)
        left, top = _MARGIN + column * (_PANEL_WIDTH + _GAP), _HEAD + 22 + row * (_PANEL_HEIGHT + _GAP)
        parts += _draw_panel(curve, left, top)
    return format_svg(width, height, title, parts, _STYLE, _format_theme_css)


def _draw_panel(curve: SpeedupCurve, left: float, top: float) -> Iterator[str]:
    # Shapes are placed at equal distances.
    places = [
        index if isinstance(point.size, str) else math.log2(point.size) for index, point in enumerate(curve.points)
    ]

    def x(position: float) -> float:
        return left + (position - places[0]) / max(places[-1] - places[0], 1e-9) * _PANEL_WIDTH

    def y(speedup: float) -> float:
        clamped = min(max(speedup, _MIN_SPEEDUP), _MAX_SPEEDUP)
        return top + math.log2(_MAX_SPEEDUP / clamped) / math.log2(_MAX_SPEEDUP / _MIN_SPEEDUP) * _PANEL_HEIGHT

    yield format_text(left, top - 10, curve.comparison.work, "name")
    level = _MIN_SPEEDUP
    while level <= _MAX_SPEEDUP:
        kind = "level" if level == 1 else "rule"
        yield f'<path class="{kind}" d="M{left:g} {y(level):.1f}H{left + _PANEL_WIDTH:g}"/>'
        yield format_text(left - 6, y(level) + 4, f"{level:g}", "small end")
        level *= 2
    begin, end = curve.points[0].size, curve.points[-1].size
    if isinstance(begin, str):
        yield format_text(left + _PANEL_WIDTH, top + _PANEL_HEIGHT + 18, f"{len(curve.points)} shapes", "small end")
    else:
        yield format_text(left, top + _PANEL_HEIGHT + 18, _format_size(begin), "small")
        yield format_text(
            left + _PANEL_WIDTH, top + _PANEL_HEIGHT + 18, f"{_format_size(end)} {curve.comparison.unit}", "small end"
        )
        path = "L".join(
            f"{x(x_value):.1f} {y(point.speedup):.1f}" for x_value, point in zip(places, curve.points, strict=True)
        )
        yield f'<path class="line" d="M{path}"/>'
    for x_value, point in zip(places, curve.points, strict=True):
        kind = "ahead" if point.speedup >= 1 else "behind"
        tooltip = f"{_format_size(point.size)} {curve.comparison.unit}: {point.speedup:.2f} x {point.peer.name}"
        center = f'cx="{x(x_value):.1f}" cy="{y(point.speedup):.1f}"'
        yield f'<circle class="{kind}" {center} r="4"><title>{tooltip}</title></circle>'


def _format_theme_css(theme: str) -> str:
    t = THEMES[theme]
    behind: Mapping[str, str] = {"light": "#a8520e", "dark": "#f2a66a"}
    return (
        f".rule{{stroke:{t['border']}}}.level{{stroke:{t['muted']}}}.line{{stroke:{t['accent']}}}"
        f".ahead{{fill:{t['accent']}}}.behind{{fill:{behind[theme]}}}"
    )


def _format_size(size: int | str) -> str:
    return f"2^{size.bit_length() - 1}" if isinstance(size, int) and size.bit_count() == 1 else f"{size}"


def _ms(row: Measurement) -> float:
    return row.median_ms or math.inf


def _rate(row: Measurement) -> float:
    return row.rate or 0.0
