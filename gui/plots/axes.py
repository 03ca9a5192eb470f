"""Plot axes with readable numbers in the theme's colors, optimized for fast painting."""

from __future__ import annotations

import math
from typing import Any

import pyqtgraph as pg
from PyQt6.QtGui import QFont

from gui.painting.theme import code_font, look
from gui.widgets.basic import format_count


def tick_font() -> QFont:
    """Return the font of an axis's numbers."""
    return code_font(max(10, look().small_px - 1))


def style_axis(axis: pg.AxisItem, **own: Any) -> None:
    """Apply the theme's colors and text size to an axis; `own` overrides pyqtgraph styles.

    By default the finest grid lines are omitted, since they are hardly visible but take half the painting time, and
    the axis does not resize itself to its numbers, since that would paint it twice.
    """
    theme = look().theme
    axis.setPen(pg.mkPen(theme.border))
    axis.setTextPen(pg.mkPen(theme.muted))
    shared = {"tickFont": tick_font(), "maxTickLevel": 1, "autoExpandTextSpace": False}
    axis.setStyle(tickLength=-4, tickTextHeight=look().px(18), **(shared | own))


def _format_tick(value: float, spacing: float = 1.0) -> str:
    """Return a tick's number, such as 0.1, 10 or 1 000 000, with the decimals of the distance to the next tick."""
    if not 1000 <= abs(value) < 1e15:
        return f"{value:g}"
    digits = max(0, math.ceil(-math.log10(spacing)))
    whole, point, decimals = f"{value:.{digits}f}".partition(".")
    return format_count(int(whole)) + point + decimals


class CountAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis that writes whole numbers with thousands separators: 262 144."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.enableAutoSIPrefix(False)

    def setRange(self, mn: float, mx: float) -> None:
        if [mn, mx] != getattr(self, "range", None):
            super().setRange(mn, mx)

    def tickStrings(self, values: Any, scale: float, spacing: float) -> Any:
        is_whole = spacing >= 1 and all(abs(value) < 1e8 for value in values)
        return (
            [format_count(round(value)) for value in values]
            if is_whole
            else super().tickStrings(values, scale, spacing)
        )

    def tickSpacing(self, low: float, high: float, size: float) -> list[tuple[float, float]]:
        levels: list[tuple[float, float]] = super().tickSpacing(low, high, size)
        # pyqtgraph ignores the size of the numbers: on a short axis they would overlap.
        lines = 1.3 if self.orientation == "left" else 0.62 * (len(format_count(max(abs(low), abs(high)))) + 2)
        min_step = lines * look().small_px * abs(high - low) / max(size, 1.0)
        if readable := [level for level in levels if level[0] >= min_step]:
            return readable
        if not levels:
            return levels
        power = 10.0 ** math.floor(math.log10(min_step))
        return [(next(step * power for step in (1, 2, 5, 10) if step * power >= min_step), 0)]

    def updateAutoSIPrefix(self) -> None:
        """Do nothing: pyqtgraph would divide large numbers by 10^9 even when the SI prefix is disabled."""


class FigureAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """A linear or logarithmic axis that writes 0.1, 1, 1 000 000."""

    def tickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return [_format_tick(value, spacing) for value in values]
        # Within a decade, only 1, 2 and 5 have room for their numbers.
        return [_format_tick(10**value) if round(10 ** (value % 1)) in (1, 2, 5, 10) else "" for value in values]

    def logTickValues(self, *args: Any) -> Any:
        # The base class repeats whole decades among the minor ticks, which would paint their numbers twice.
        levels = super().logTickValues(*args)
        decades = {value for spacing, values in levels[:-1] for value in values}
        return [*levels[:-1], (levels[-1][0], [value for value in levels[-1][1] if value not in decades])]

    def logTickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        return self.tickStrings(values, scale, spacing)
