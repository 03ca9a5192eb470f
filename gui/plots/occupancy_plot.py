"""Bar plot of resident warps over threads per block, colored by the limiting resource."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PyQt6.QtGui import QColor

from gpu.timing.occupancy import Occupancy
from gui.painting.colors import mixed, warp_color
from gui.painting.theme import code_font, look
from gui.plots.axes import dress
from gui.plots.plot import Plot, label_axis

LIMITED_BY = ("registers", "shared memory", "warps", "blocks")


class OccupancyPlot(Plot):
    """Resident warps for block sizes in multiples of 32 threads; the selected block size is highlighted."""

    def __init__(self) -> None:
        super().__init__("Resident warps over threads per block", keys=False)
        self.setMinimumSize(200, 110)
        self.box.setMouseEnabled(x=False, y=False)
        self.held: dict[int, Occupancy] = {}
        """Occupancy by threads per block."""
        self._threads = 0
        self._max_warps = 64
        self._bar_items: list[object] = []

    def show_held(self, held: dict[int, Occupancy], threads: int, most: int) -> None:
        """Show the occupancy of each block size.

        Parameters
        ----------
        held : dict of int to Occupancy
            Occupancy by threads per block.
        threads : int
            The selected block size.
        most : int
            Warps that a multiprocessor holds at most.
        """
        self.held, self._threads, self._max_warps = held, threads, most
        self._draw()

    def _draw(self) -> None:
        for item in self._bar_items:
            self.plot.removeItem(item)
        self._bar_items = []
        for limit in {each.limited_by for each in self.held.values()}:
            self._bars(limit, [threads for threads, each in self.held.items() if each.limited_by == limit])
        self.plot.setXRange(0, 1056, padding=0.0)
        self.plot.setYRange(0, self._max_warps * 1.05, padding=0.0)
        self.bottom.setTicks([[(each, str(each)) for each in (32, 128, 256, 384, 512, 640, 768, 896, 1024)]])
        self.left.setTicks([[(share * self._max_warps / 4, str(share * self._max_warps // 4)) for share in range(5)]])

    def _bars(self, limit: str, threads: Sequence[int]) -> None:
        color, theme = limit_color(limit), look().theme
        brushes = [
            pg.mkBrush(color if each == self._threads else mixed(color.name(), theme.surface, 0.45)) for each in threads
        ]
        heights = [self.held[each].warps for each in threads]
        bars = pg.BarGraphItem(x=list(threads), height=heights, width=24, brushes=brushes, pen=None)
        self.plot.addItem(bars)
        self._bar_items.append(bars)

    def restyle(self) -> None:
        self.plot.showGrid(x=False, y=True, alpha=0.14)
        for axis in (self.left, self.bottom):
            dress(axis, tickFont=code_font(max(10, look().small_px - 1)))
        label_axis(self.left, "resident warps")
        label_axis(self.bottom, "threads per block")
        self.left.setWidth(look().px(60))
        self._draw()

    def number_at(self, x: float) -> int | None:
        threads = 32 * max(1, min(32, round(x / 32)))
        return threads if threads in self.held else None


def limit_color(limit: str) -> QColor:
    """Return the color of a limiting resource."""
    return warp_color(look().theme, LIMITED_BY.index(limit) if limit in LIMITED_BY else len(LIMITED_BY))
