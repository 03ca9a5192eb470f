"""What plots of many elements have in common: axes that are quick to paint, and painting once."""

from __future__ import annotations

import pyqtgraph as pg

from gui.painting.theme import code_font, look


def dress(axis: pg.AxisItem) -> None:
    """Give an axis the theme's colors and the text's size.

    Its finer lines, which are hardly seen behind what is plotted, take half the time to paint; and an axis that makes
    room for its figures while it is painted is painted twice.
    """
    theme = look().theme
    axis.setPen(pg.mkPen(theme.border))
    axis.setTextPen(pg.mkPen(theme.muted))
    axis.setStyle(
        tickFont=code_font(max(10, look().small_px - 1)),
        tickLength=-4,
        maxTickLevel=1,
        autoExpandTextSpace=False,
        tickTextHeight=look().px(18),
    )


def settle(box: pg.ViewBox) -> None:
    """Work out where things are: a plot that finds out while it is painted is painted once more."""
    box.prepareForPaint()
