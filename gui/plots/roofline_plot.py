"""Roofline plot: a GPU's peak rate over arithmetic intensity, with launches as dots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import QPointF, QRectF, QSizeF, Qt, pyqtSignal
from PyQt6.QtGui import QFontMetricsF

from gui.painting.theme import code_font, look
from gui.plots.axes import FigureAxis, style_axis
from gui.plots.label_placement import place_labels
from gui.plots.plot import Plot, label_axis
from gui.plots.throughput_plot import variant_pen
from gui.widgets.basic import format_count, format_figure, label

LEGEND = "●  per byte of DRAM, below the solid roof    ○  per byte of L2, below the dashed roof"


@dataclass(frozen=True)
class RooflineDot:
    """A launch on the plot.

    Parameters
    ----------
    number : int
        Index of the launch, which determines its color and its label.
    memory_intensity, cache_intensity : float
        Operations per byte of DRAM traffic, and of L2 traffic.
    rate : float
        Operations per nanosecond.
    """

    number: int
    memory_intensity: float
    cache_intensity: float
    rate: float


@dataclass(frozen=True)
class Roofs:
    """A GPU's peak rates: bytes per nanosecond of DRAM and of L2, and operations per nanosecond."""

    memory: float
    cache: float
    operations: float


class RooflinePlot(Plot):
    """A roofline with logarithmic axes: a filled dot at each launch's DRAM intensity, a ring at its L2 intensity."""

    picked = pyqtSignal(int)
    """The number of a dot that was clicked."""

    def __init__(self) -> None:
        super().__init__("Roofline", FigureAxis("left"), FigureAxis("bottom"), keys=False)
        self.setMinimumSize(200, 160)
        self.box.setMouseEnabled(x=False, y=False)
        self.plot.setLogMode(x=True, y=True)
        legend = label(LEGEND, "caption", wrap=True, name="Legend")
        legend.setContentsMargins(look().px(8), 0, look().px(8), 0)
        layout = self.layout()
        assert layout is not None
        layout.addWidget(legend)
        self.box.sigResized.connect(self._label_dots)
        self.dots: tuple[RooflineDot, ...] = ()
        self.roofs: Roofs | None = None
        self.names: dict[int, QRectF] = {}
        """The box of each dot's label, in pixels of the plot."""
        self._label_items: list[pg.GraphicsObject] = []
        self._roof_labels: dict[pg.TextItem, tuple[float, float, tuple[float, float]]] = {}
        """The preferred position and anchor of each roof's label."""
        self._items: list[pg.GraphicsObject] = []
        self._emphasized: int | None = None

    def show_dots(self, dots: Sequence[RooflineDot], roofs: Roofs, emphasized: int | None = None) -> None:
        """Show dots below the roofs; the dot with number `emphasized` is larger than the others."""
        state = (tuple(dots), roofs, emphasized)
        if state != (self.dots, self.roofs, self._emphasized):
            self.dots, self.roofs, self._emphasized = state
            self._draw()

    def _add_item(self, item: pg.GraphicsObject) -> None:
        # The view's range is set explicitly, so items' bounds need not be computed.
        self.box.addItem(item, ignoreBounds=True)
        self._items.append(item)

    def _draw(self) -> None:
        for item in self._items:
            self.box.removeItem(item)
        self._items, self._roof_labels = [], {}
        if self.roofs is None:
            return
        roofs, theme = self.roofs, look().theme
        intensities = [place for dot in self.dots for place in (dot.memory_intensity, dot.cache_intensity) if place > 0]
        ridge = roofs.operations / roofs.memory
        low = math.floor(math.log10(min([*intensities, ridge]) / 1.5))
        high = math.ceil(math.log10(max([*intensities, ridge]) * 1.5))
        across = np.linspace(low, high, 200)
        for slope, style in ((roofs.memory, Qt.PenStyle.SolidLine), (roofs.cache, Qt.PenStyle.DashLine)):
            heights = np.minimum(np.log10(slope) + across, np.log10(roofs.operations))
            self._add_item(
                pg.PlotCurveItem(across, heights, pen=pg.mkPen(theme.muted, width=2, style=style), antialias=True)
            )
        rates = [dot.rate for dot in self.dots]
        floor = math.floor(math.log10(min([*rates, roofs.memory * 10**low]) / 1.5))
        top = math.log10(roofs.operations) + 0.35
        self.plot.setXRange(low, high, padding=0.0)
        self.plot.setYRange(floor, top, padding=0.0)
        self._label_roofs(roofs, low, high, floor)
        self._draw_dots()
        self._label_dots()

    def _label_roofs(self, roofs: Roofs, low: float, high: float, floor: float) -> None:
        names = (
            (f"DRAM {format_count(round(roofs.memory))} GB/s", roofs.memory, (0.0, 0.0)),
            (f"L2 {format_count(round(roofs.cache))} GB/s", roofs.cache, (1.0, 1.0)),
        )
        for text, slope, anchor in names:
            start = max(low, floor - math.log10(slope))
            end = math.log10(roofs.operations / slope)
            label_x = start + 0.55 * (min(end, high) - start)
            self._add_label(text, label_x, math.log10(slope) + label_x, anchor)
        self._add_label(
            f"{format_figure(roofs.operations / 1000)} Top/s", high, math.log10(roofs.operations), (1.0, 1.0)
        )

    def _add_label(self, text: str, x: float, y: float, anchor: tuple[float, float]) -> None:
        item = pg.TextItem(text, color=look().theme.muted, anchor=anchor)
        item.setFont(code_font(look().small_px))
        item.setPos(x, y)
        self._add_item(item)
        self._roof_labels[item] = x, y, anchor

    def _place_roof_labels(self, metrics: QFontMetricsF, pixel: Callable[[float, float], QPointF]) -> list[QRectF]:
        """Move a label that would begin left of the plot to the flat part of its roof; return the labels' boxes."""
        assert self.roofs is not None
        boxes = []
        for item, (x, y, anchor) in self._roof_labels.items():
            size = metrics.size(0, item.toPlainText())
            if pixel(x, y).x() - anchor[0] * size.width() < 0:
                # Along the steep part, y - x is the logarithm of the roof's slope.
                height = math.log10(self.roofs.operations)
                x, y, anchor = height - (y - x), height, (0.0, 1.0)
            item.setPos(x, y)
            item.setAnchor(anchor)
            boxes.append(QRectF(pixel(x, y) - QPointF(anchor[0] * size.width(), anchor[1] * size.height()), size))
        return boxes

    def _label_dots(self) -> None:
        """Label each dot at a free position, with a leader line if that is not directly next to the dot."""
        for item in self._label_items:
            self.box.removeItem(item)
        self._label_items, self.names = [], {}
        pixels = self.box.rect()
        if not self.dots or pixels.width() < 2 or pixels.height() < 2:
            return
        (left, right), (low, high) = self.box.viewRange()
        across, down = pixels.width() / (right - left), pixels.height() / (high - low)

        def pixel(x: float, y: float) -> QPointF:
            return QPointF((x - left) * across, (high - y) * down)

        font = code_font(look().small_px)
        metrics, radius = QFontMetricsF(font), look().px(15) / 2
        spots = []
        for dot in self.dots:
            height = math.log10(dot.rate)
            spots.append(
                (pixel(math.log10(dot.memory_intensity), height), pixel(math.log10(dot.cache_intensity), height))
            )
        circle = QSizeF(2 * radius, 2 * radius)
        occupied = [QRectF(at - QPointF(radius, radius), circle) for spot in spots for at in spot]
        # A line connects a dot's two spots.
        occupied += [QRectF(start, end).normalized().adjusted(0, -1, 0, 1) for start, end in spots]
        occupied += self._place_roof_labels(metrics, pixel)
        texts = [str(dot.number + 1) for dot in self.dots]
        sizes = [QSizeF(metrics.horizontalAdvance(text) + look().px(5), metrics.height() * 0.9) for text in texts]
        places = place_labels([at + QPointF(radius, 0) for at, _ in spots], sizes, occupied, pixels)
        for dot, text, place, (at, _) in zip(self.dots, texts, places, spots, strict=True):
            self.names[dot.number] = place
            color = variant_pen(dot.number).color()
            middle = place.center()
            if abs(middle.y() - at.y()) > 1:
                ends = (at, QPointF(place.left() - 2, middle.y()))
                xs = [left + end.x() / across for end in ends]
                ys = [high - end.y() / down for end in ends]
                self._add_dot_label(pg.PlotCurveItem(xs, ys, pen=pg.mkPen(color, width=1), antialias=True))
            item = pg.TextItem(text, color=color.name(), anchor=(0.5, 0.5))
            item.setFont(font)
            item.setPos(left + middle.x() / across, high - middle.y() / down)
            self._add_dot_label(item)

    def _add_dot_label(self, item: pg.GraphicsObject) -> None:
        self.box.addItem(item, ignoreBounds=True)
        self._label_items.append(item)

    def _draw_dots(self) -> None:
        """Draw all dots as one item and all rings as another, since items are expensive."""
        rings, disks = [], []
        for dot in sorted(self.dots, key=lambda each: each.number == self._emphasized):
            is_emphasized = dot.number == self._emphasized
            color = variant_pen(dot.number).color()
            size = look().px(15 if is_emphasized else 10)
            height = math.log10(dot.rate)
            ends = [math.log10(dot.cache_intensity), math.log10(dot.memory_intensity)]
            self._add_item(
                pg.PlotCurveItem(ends, [height, height], pen=pg.mkPen(color, width=2 if is_emphasized else 1))
            )
            ring = {"pen": pg.mkPen(color, width=2), "brush": pg.mkBrush(look().theme.surface), "size": size * 0.8}
            rings.append({"pos": (ends[0], height), "data": dot.number, **ring})
            filled = {"pen": pg.mkPen(None), "brush": pg.mkBrush(color), "size": size}
            disks.append({"pos": (ends[1], height), "data": dot.number, **filled})
        for spots in (rings, disks):
            item = pg.ScatterPlotItem(spots)
            item.setZValue(1)
            item.sigClicked.connect(lambda _, clicked: self.picked.emit(clicked[0].data()))
            self._add_item(item)

    def restyle(self) -> None:
        self.plot.showGrid(x=True, y=True, alpha=0.14)
        for axis in (self.left, self.bottom):
            style_axis(axis, tickFont=code_font(max(11, look().small_px)), maxTickLevel=2, autoExpandTextSpace=True)
        label_axis(self.left, "operations per ns (Gop/s)")
        label_axis(self.bottom, "operations per byte")
        self.left.setWidth(look().px(72))
        self._draw()

    def find_number(self, x: float) -> int | None:
        return None
