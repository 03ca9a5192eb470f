"""A bar that shows shares of a total, and the dots of its legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PyQt6.QtCore import QRectF, Qt
from PyQt6.QtGui import QColor, QPainterPath, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look

Colors = Callable[[], Sequence[str]]
"""Returns the colors of the parts in the current theme."""


class ShareBar(QWidget):
    """The shares of a total, side by side.

    Parameters
    ----------
    colors : callable
        Returns one color per name.
    """

    def __init__(self, names: Sequence[str], colors: Colors) -> None:
        super().__init__()
        self._names, self._colors = names, colors
        self.shares: tuple[float, ...] = (0.0,) * len(names)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(8)

    def show_amounts(self, amounts: Mapping[str, float]) -> None:
        """Show amounts by name, as shares of their sum."""
        total = sum(amounts.values())
        self.shares = tuple(amounts[name] / total if total > 0 else 0.0 for name in self._names)
        self.setAccessibleName(
            ", ".join(f"{name} {share:.0%}" for name, share in zip(self._names, self.shares, strict=True))
        )
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), 4, 4)
        painter.setClipPath(outline)
        painter.fillRect(self.rect(), QColor(look().theme.raised))
        left = 0.0
        for share, color in zip(self.shares, self._colors(), strict=True):
            width = share * self.width()
            painter.fillRect(QRectF(left, 0, max(0.0, width - 1), self.height()), QColor(color))
            left += width
        painter.end()


class Dot(QWidget):
    """The legend dot of one part."""

    def __init__(self, part: int, colors: Colors) -> None:
        super().__init__()
        self.part = part
        self._colors = colors
        self.setFixedSize(9, 9)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = create_smooth_painter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._colors()[self.part]))
        painter.drawEllipse(QRectF(0.5, 0.5, 8, 8))
        painter.end()
