"""Plot of throughput over problem size, one curve per variant, with a cursor to read values."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QPen

from gpu.declaration.pattern import Array
from gui.painting.colors import warp_color
from gui.painting.theme import code_font, look
from gui.plots.axes import FigureAxis, style_axis
from gui.plots.plot import Plot, label_axis

_COLOR_COUNT = 8
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def variant_pen(number: int, width: float = 2.0) -> QPen:
    """Return the pen of a variant by its position in the ladder, dashed from the ninth on."""
    dashed = Qt.PenStyle.DashLine if number >= _COLOR_COUNT else Qt.PenStyle.SolidLine
    return QPen(pg.mkPen(warp_color(look().theme, number), width=width, style=dashed))


def format_power(n: int) -> str:
    """Return a power of two as text, such as 2¹⁰."""
    return "2" + str(n.bit_length() - 1).translate(_SUPERSCRIPT)


class ThroughputPlot(Plot):
    """Throughput over the number of `quantity`, such as elements; sizes are powers of two.

    An axis without a unit (an empty `quantity` for sizes) has no label. Modeled curves are dotted, with rings for dots.
    """

    def __init__(self, quantity: str = "elements") -> None:
        super().__init__(f"Throughput over the number of {quantity}", FigureAxis("left"), keys=False)
        self.setMinimumSize(200, 160)
        self.box.setMouseEnabled(x=False, y=False)
        self._quantity = quantity
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

    def set_size_quantity(self, quantity: str) -> None:
        """Set the quantity that the sizes count, such as elements."""
        self._quantity = quantity
        self.setAccessibleName(f"Throughput over the number of {quantity}")
        self._update_labels()

    def clear_points(self, sizes: list[int], unit: str) -> None:
        """Remove all points, and set the sizes of the points to come and their unit."""
        self._sizes, self._unit = sorted(sizes), unit
        self.points = {}
        self.show_modeled({})
        for item in self._curves.values():
            self.plot.removeItem(item)
        self._curves = {}
        exponents = [size.bit_length() - 1 for size in self._sizes]
        self.bottom.setTicks([[(exponent, format_power(2**exponent)) for exponent in exponents]])
        if exponents:
            self.plot.setXRange(exponents[0], max(exponents[-1], exponents[0] + 1), padding=0.03)
        self._update_labels()

    def show_points(self, points: dict[int, dict[int, float]], unit: str) -> None:
        """Show values by variant number and size."""
        self._unit = unit
        self._update_labels()
        self._remove_others(self._curves, points)
        self.points = points
        for number in points:
            self._draw_curve(number)
        self._fit_values()

    def show_modeled(self, modeled: dict[int, dict[int, float]]) -> None:
        """Show modeled values as dotted curves, in the unit of the measured ones."""
        self._remove_others(self._modeled_curves, modeled)
        self.modeled = modeled
        for number in modeled:
            self._draw_modeled(number)
        self._fit_values()

    def _remove_others(self, curves: dict[int, pg.PlotDataItem], shown: Collection[int]) -> None:
        """Remove the curves of variants that are not among the shown ones."""
        for number in curves.keys() - shown:
            self.plot.removeItem(curves.pop(number))

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Set a logarithmic or linear scale for the values."""
        self._logarithmic = logarithmic
        self._draw_all()
        self.plot.setLogMode(x=False, y=logarithmic)
        self._fit_values()

    def _fit_values(self) -> None:
        """Show all values; a linear axis begins at 0, as equal values would otherwise get ticks of tiny differences."""
        values = [
            each for curves in (self.points, self.modeled) for curve in curves.values() for each in curve.values()
        ]
        self.left.setTicks(None if values else [[]])  # without values, ticks would be of an arbitrary range
        if self._logarithmic:
            self.box.enableAutoRange(axis="y")
        else:
            self.plot.setYRange(0, max(values, default=0) or 1, padding=0.05)

    def emphasize(self, number: int | None) -> None:
        """Highlight one variant's curve."""
        before, self._emphasized = self._emphasized, number
        for each in {before, number}:
            if each in self._curves:
                self._draw_curve(each)
            if each in self._modeled_curves:
                self._draw_modeled(each)

    def _draw_all(self) -> None:
        for number in self._curves:
            self._draw_curve(number)
        for number in self._modeled_curves:
            self._draw_modeled(number)

    def _compute_positions(self, figures: dict[int, float]) -> tuple[Array, Array]:
        # A value may be 0, which a logarithmic scale cannot show.
        points = [each for each in sorted(figures.items()) if each[1] > 0 or not self._logarithmic]
        return np.log2([size for size, _ in points]), np.array([figure for _, figure in points])

    def _draw_modeled(self, number: int) -> None:
        places, heights = self._compute_positions(self.modeled[number])
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

    def _draw_curve(self, number: int) -> None:
        places, heights = self._compute_positions(self.points[number])
        strong = number == self._emphasized
        pen = variant_pen(number, 4 if strong else 2)
        item = self._curves.get(number)
        if item is None:
            item = self._curves[number] = self.plot.plot([], [])
        item.setData(places, heights, pen=pen, symbol="o", symbolSize=8 if strong else 6, symbolPen=None,
                     symbolBrush=pen.color(), antialias=True)  # fmt: skip
        item.setZValue(1 if strong else 0)

    def _update_labels(self) -> None:
        for axis, text in ((self.left, self._unit), (self.bottom, self._quantity)):
            label_axis(axis, text)
            axis.showLabel(bool(text))
        self.left.setWidth(look().px(72 if self._unit else 44))

    def restyle(self) -> None:
        self.plot.showGrid(x=True, y=True, alpha=0.14)
        style_axis(self.left, tickFont=code_font(max(11, look().small_px)), maxTickLevel=2, autoExpandTextSpace=True)
        # Superscript digits are spaced correctly in the text font only.
        style_axis(self.bottom, tickFont=self.font(), maxTickLevel=2, autoExpandTextSpace=True)
        self.line.setPen(pg.mkPen(look().theme.faint, width=1, style=Qt.PenStyle.DotLine))
        self._update_labels()
        self._draw_all()

    # --- reading at a size

    def find_number(self, x: float) -> int | None:
        exponent = round(x)
        return 2**exponent if 0 <= exponent < 64 and 2**exponent in self._sizes else None

    def position_of(self, number: int) -> float:
        return number.bit_length() - 1
