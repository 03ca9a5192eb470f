"""Plot of throughput over problem size, one curve per variant, with a cursor to read values."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QPen

from gpu.declaration.pattern import Array
from gui.painting.colors import warp_color
from gui.painting.theme import code_font, look
from gui.plots.axes import FigureAxis, dress
from gui.plots.plot import Plot, label_axis

_COLORS = 8
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def variant_pen(number: int, width: float = 2.0) -> QPen:
    """Return the pen of a variant by its position in the ladder, dashed from the ninth on."""
    dashed = Qt.PenStyle.DashLine if number >= _COLORS else Qt.PenStyle.SolidLine
    return QPen(pg.mkPen(warp_color(look().theme, number), width=width, style=dashed))


def as_power(n: int) -> str:
    """Return a power of two as text, such as 2¹⁰."""
    return "2" + str(n.bit_length() - 1).translate(_SUPERSCRIPT)


class ThroughputPlot(Plot):
    """Throughput over the number of `of`, such as elements; sizes are powers of two.

    An axis without a unit (an empty `of` for the sizes) has no label. Modeled curves are dotted, with rings for dots.
    """

    def __init__(self, of: str = "elements") -> None:
        super().__init__(f"Throughput over the number of {of}", FigureAxis("left"), keys=False)
        self.setMinimumSize(200, 160)
        self.box.setMouseEnabled(x=False, y=False)
        self._quantity = of
        self.points: dict[int, dict[int, float]] = {}
        self.modeled: dict[int, dict[int, float]] = {}
        """Modeled values by variant number and size."""
        self._curves: dict[int, pg.PlotDataItem] = {}
        self._modeled_curves: dict[int, pg.PlotDataItem] = {}
        self._sizes: list[int] = []
        self._unit = ""
        self._logarithmic = True
        self._emphasized: int | None = None
        self.set_logarithmic(True)

    def name_sizes(self, of: str) -> None:
        """Set the quantity that the sizes count, such as elements."""
        self._quantity = of
        self.setAccessibleName(f"Throughput over the number of {of}")
        self._label()

    def begin(self, sizes: list[int], unit: str) -> None:
        """Remove all points, and set the sizes of the points to come and their unit."""
        self._sizes, self._unit = sorted(sizes), unit
        self.points = {}
        self.show_modeled({})
        for item in self._curves.values():
            self.plot.removeItem(item)
        self._curves = {}
        exponents = [size.bit_length() - 1 for size in self._sizes]
        self.bottom.setTicks([[(exponent, as_power(2**exponent)) for exponent in exponents]])
        if exponents:
            self.plot.setXRange(exponents[0], max(exponents[-1], exponents[0] + 1), padding=0.03)
        self._label()

    def show_points(self, points: dict[int, dict[int, float]], unit: str) -> None:
        """Show values by variant number and size."""
        self._unit = unit
        self._label()
        for number in list(self._curves):
            if number not in points:
                self.plot.removeItem(self._curves.pop(number))
        self.points = points
        for number in points:
            self._draw(number)

    def show_modeled(self, modeled: dict[int, dict[int, float]]) -> None:
        """Show modeled values as dotted curves, in the unit of the measured ones."""
        for number in list(self._modeled_curves):
            if number not in modeled:
                self.plot.removeItem(self._modeled_curves.pop(number))
        self.modeled = modeled
        for number in modeled:
            self._draw_modeled(number)

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Set a logarithmic or linear scale for the values."""
        self._logarithmic = logarithmic
        self._draw_all()
        self.plot.setLogMode(x=False, y=logarithmic)
        self.box.enableAutoRange(axis="y")

    def emphasize(self, number: int | None) -> None:
        """Highlight one variant's curve."""
        before, self._emphasized = self._emphasized, number
        for each in {before, number}:
            if each in self._curves:
                self._draw(each)
            if each in self._modeled_curves:
                self._draw_modeled(each)

    def _draw_all(self) -> None:
        for number in self._curves:
            self._draw(number)
        for number in self._modeled_curves:
            self._draw_modeled(number)

    def _where(self, figures: dict[int, float]) -> tuple[Array, Array]:
        # A value may be 0, which a logarithmic scale cannot show.
        points = [each for each in sorted(figures.items()) if each[1] > 0 or not self._logarithmic]
        return np.log2([size for size, _ in points]), np.array([figure for _, figure in points])

    def _draw_modeled(self, number: int) -> None:
        places, heights = self._where(self.modeled[number])
        strong = number == self._emphasized
        pen = variant_pen(number, 3 if strong else 1.5)
        pen.setStyle(Qt.PenStyle.DotLine)
        ring = pg.mkPen(pen.color(), width=2 if strong else 1.5)
        item = self._modeled_curves.get(number)
        if item is None:
            item = self._modeled_curves[number] = self.plot.plot([], [])
        item.setData(places, heights, pen=pen, symbol="o", symbolSize=8 if strong else 6, symbolPen=ring,
                     symbolBrush=look().theme.surface, antialias=True)  # fmt: skip
        item.setZValue(1 if strong else 0)

    def _draw(self, number: int) -> None:
        places, heights = self._where(self.points[number])
        strong = number == self._emphasized
        pen = variant_pen(number, 4 if strong else 2)
        item = self._curves.get(number)
        if item is None:
            item = self._curves[number] = self.plot.plot([], [])
        item.setData(places, heights, pen=pen, symbol="o", symbolSize=8 if strong else 6, symbolPen=None,
                     symbolBrush=pen.color(), antialias=True)  # fmt: skip
        item.setZValue(1 if strong else 0)

    def _label(self) -> None:
        for axis, text in ((self.left, self._unit), (self.bottom, self._quantity)):
            label_axis(axis, text)
            axis.showLabel(bool(text))
        self.left.setWidth(look().px(72 if self._unit else 44))

    def restyle(self) -> None:
        self.plot.showGrid(x=True, y=True, alpha=0.14)
        dress(self.left, tickFont=code_font(max(11, look().small_px)), maxTickLevel=2, autoExpandTextSpace=True)
        # Superscript digits are spaced correctly in the text font only.
        dress(self.bottom, tickFont=self.font(), maxTickLevel=2, autoExpandTextSpace=True)
        self.line.setPen(pg.mkPen(look().theme.faint, width=1, style=Qt.PenStyle.DotLine))
        self._label()
        self._draw_all()

    # --- reading at a size

    def number_at(self, x: float) -> int | None:
        exponent = round(x)
        return 2**exponent if 0 <= exponent < 64 and 2**exponent in self._sizes else None

    def place_of(self, number: int) -> float:
        return number.bit_length() - 1
