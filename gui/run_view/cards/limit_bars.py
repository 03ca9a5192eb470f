"""Bars of limits that overlap in time: each begins at 0, and the full width is the modeled time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtCore import QRectF
from PyQt6.QtGui import QColor, QPainter, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.painting.theme import look
from gui.run_view.cards.share_bar import Colors

_HEIGHT = 14
"""Height in pixels of all bars together."""


class LimitBars(QWidget):
    """A thin bar per limit, the longest first.

    Parameters
    ----------
    colors : callable
        Returns one color per name.
    max_bars : int
        The number of limits that have a bar.
    """

    def __init__(self, names: Sequence[str], colors: Colors, max_bars: int) -> None:
        super().__init__()
        self._names, self._colors, self._max_bars = tuple(names), colors, max_bars
        self.shares: dict[str, float] = {}
        """The length of each bar as a share of the modeled time, by the limit's name."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(_HEIGHT)

    def show_limits(self, limits: Mapping[str, float], time: float) -> None:
        """Show the largest limits of a modeled time; without limits, an empty bar."""
        largest = sorted((name for name in limits if limits[name] > 0), key=lambda name: -limits[name])
        self.shares = {name: min(limits[name] / time, 1.0) for name in largest[: self._max_bars]} if time > 0 else {}
        self.setAccessibleName(", ".join(f"{name} alone {share:.0%}" for name, share in self.shares.items()))
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, colors = QPainter(self), self._colors()
        pitch = self.height() / max(len(self.shares), 1)
        track = QColor(look().theme.raised)
        for number, name in enumerate(self.shares or ("",)):
            line = QRectF(0, number * pitch, self.width(), pitch - 1)
            painter.fillRect(line, track)
            if name:
                line.setWidth(max(self.shares[name] * self.width(), 1.0))
                painter.fillRect(line, QColor(colors[self._names.index(name)]))
        painter.end()
