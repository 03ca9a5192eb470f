"""Curves of throughput over n, one a variant, with a read-out at a size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import QPointF, Qt, pyqtSignal
from PyQt6.QtGui import QPen
from PyQt6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gui.painting.colors import warp_color
from gui.painting.theme import Look, code_font, look

_COLORS = 8
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def variant_pen(number: int, width: float = 2.0) -> QPen:
    """Return the pen of a variant, by its place in the ladder: past the eighth it is dashed."""
    dashed = Qt.PenStyle.DashLine if number >= _COLORS else Qt.PenStyle.SolidLine
    return pg.mkPen(warp_color(look().theme, number), width=width, style=dashed)


def as_power(n: int) -> str:
    """Return a power of two as 2¹⁰."""
    return "2" + str(n.bit_length() - 1).translate(_SUPERSCRIPT)


class FigureAxis(pg.AxisItem):
    """An axis that writes 0.1, 1, 10, whether it is logarithmic or not."""

    def tickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return [f"{value:g}" for value in values]
        # Of a decade's lines 1, 2 and 5 have room for their figures.
        return [f"{10**value:g}" if round(10 ** (value % 1)) in (1, 2, 5, 10) else "" for value in values]

    def logTickValues(self, *args: Any) -> Any:
        # The base class gives whole decades again among the lines between them: their figures were painted twice.
        levels = super().logTickValues(*args)
        decades = {value for spacing, values in levels[:-1] for value in values}
        return [*levels[:-1], (levels[-1][0], [value for value in levels[-1][1] if value not in decades])]

    def logTickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        return self.tickStrings(values, scale, spacing)


class Curves(QWidget):
    """The plot. Sizes count what `of` says; those that `begin` is told are powers of two, and can be pointed at.

    Without a unit, and where `of` is empty, nothing stands beside the axes.
    """

    hovered = pyqtSignal(object)
    """The size under the pointer, or None."""

    def __init__(self, of: str = "elements") -> None:
        super().__init__()
        self._of = of
        self.setAccessibleName(f"Throughput against the number of {of}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(200, 160)
        self.plot = pg.PlotWidget(parent=self, axisItems={"left": FigureAxis("left")}, enableMenu=False)
        self.plot.hideButtons()
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.getViewBox().setMouseEnabled(x=False, y=False)
        self.points: dict[int, dict[int, float]] = {}
        self._drawn: dict[int, pg.PlotDataItem] = {}
        self._sizes: list[int] = []
        self._unit = ""
        self._strong: int | None = None
        self._styled: Look | None = None
        self._line = pg.InfiniteLine(angle=90, movable=False)
        self._line.hide()
        self.plot.addItem(self._line, ignoreBounds=True)
        self.plot.scene().sigMouseMoved.connect(self._moved)
        self.plot.viewport().installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.set_logarithmic(True)

    def begin(self, sizes: list[int], unit: str) -> None:
        """Forget all points; sizes to come, and the unit of their figures."""
        self._sizes, self._unit = sorted(sizes), unit
        self.points = {}
        for item in self._drawn.values():
            self.plot.removeItem(item)
        self._drawn = {}
        axis = self.plot.getAxis("bottom")
        exponents = [size.bit_length() - 1 for size in self._sizes]
        axis.setTicks([[(exponent, as_power(2**exponent)) for exponent in exponents]])
        if exponents:
            self.plot.setXRange(exponents[0], max(exponents[-1], exponents[0] + 1), padding=0.03)
        self._label()

    def show_points(self, points: dict[int, dict[int, float]], unit: str) -> None:
        """Show figures by variant's number and size."""
        self._unit = unit
        self._label()
        for number in list(self._drawn):
            if number not in points:
                self.plot.removeItem(self._drawn.pop(number))
        self.points = points
        for number in points:
            self._draw(number)

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Choose the scale of the figures."""
        self.plot.setLogMode(x=False, y=logarithmic)
        self.plot.getViewBox().enableAutoRange(axis="y")

    def emphasize(self, number: int | None) -> None:
        """Draw one variant's curve stronger."""
        before, self._strong = self._strong, number
        for each in {before, number} & set(self._drawn):
            self._draw(each)  # type: ignore[arg-type]

    def _draw(self, number: int) -> None:
        of_variant = sorted(self.points[number].items())
        places = np.log2([size for size, _ in of_variant])
        heights = np.array([figure for _, figure in of_variant])
        strong = number == self._strong
        pen = variant_pen(number, 4 if strong else 2)
        item = self._drawn.get(number)
        if item is None:
            item = self._drawn[number] = self.plot.plot([], [])
        item.setData(places, heights, pen=pen, symbol="o", symbolSize=8 if strong else 6, symbolPen=None,
                     symbolBrush=pen.color(), antialias=True)  # fmt: skip
        item.setZValue(1 if strong else 0)

    def _label(self) -> None:
        style = {"color": look().theme.muted, "font-size": f"{look().small_px}px"}
        for side, text in (("left", self._unit), ("bottom", self._of)):
            self.plot.getAxis(side).setLabel(text, **style)
            self.plot.getAxis(side).showLabel(bool(text))
        self.plot.getAxis("left").setWidth(look().px(72 if self._unit else 44))

    def _restyle(self) -> None:
        if self._styled == look():
            return
        self._styled = look()
        theme = look().theme
        self.plot.setBackground(theme.surface)
        self.plot.showGrid(x=True, y=True, alpha=0.14)
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(theme.border))
            axis.setTextPen(pg.mkPen(theme.muted))
            # Superscripts stand close together in the text's font only.
            font = code_font(max(11, look().small_px)) if side == "left" else self.font()
            axis.setStyle(tickFont=font, tickLength=-4, autoExpandTextSpace=True)
            axis.enableAutoSIPrefix(False)
        self._line.setPen(pg.mkPen(theme.faint, width=1, style=Qt.PenStyle.DotLine))
        self._label()
        for number in self._drawn:
            self._draw(number)

    def changeEvent(self, event: Any) -> None:
        super().changeEvent(event)
        if event.type() == event.Type.StyleChange and self.isVisible():
            self._restyle()

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self._restyle()

    def eventFilter(self, watched: Any, event: Any) -> bool:
        if event.type() == event.Type.Leave:
            self._hover(None)
        return False

    def _moved(self, position: QPointF) -> None:
        box = self.plot.getViewBox()
        exponent = round(box.mapSceneToView(position).x())
        inside = box.sceneBoundingRect().contains(position)
        self._hover(2**exponent if inside and 0 <= exponent < 64 and 2**exponent in self._sizes else None)

    def _hover(self, size: int | None) -> None:
        self._line.setVisible(size is not None)
        if size is not None:
            self._line.setPos(size.bit_length() - 1)
        self.hovered.emit(size)
