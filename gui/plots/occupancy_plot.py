"""Bar plot of resident warps over threads per block, colored by the limiting resource."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PyQt6.QtGui import QColor

from gpu.timing.occupancy import Occupancy
from gui.painting.colors import mix_colors, warp_color
from gui.painting.theme import code_font, look
from gui.plots.axes import style_axis
from gui.plots.plot import Plot, label_axis

LIMITING_RESOURCES = ("registers", "shared memory", "warps", "blocks")


class OccupancyPlot(Plot):
    """Resident warps for block sizes in multiples of 32 threads; the selected block size is highlighted."""

    def __init__(self) -> None:
        super().__init__("Resident warps over threads per block", keys=False)
        self.setMinimumSize(200, 110)
        self.box.setMouseEnabled(x=False, y=False)
        self.occupancies: dict[int, Occupancy] = {}
        """Occupancy by threads per block."""
        self._threads = 0
        self._max_warps = 64
        self._bar_items: list[object] = []

    def show_occupancies(self, occupancies: dict[int, Occupancy], threads: int, max_warps: int) -> None:
        """Show the occupancy of each block size.

        Parameters
        ----------
        occupancies : dict of int to Occupancy
            Occupancy by threads per block.
        threads : int
            The selected block size.
        max_warps : int
            Warps that a multiprocessor holds at most.
        """
        self.occupancies, self._threads, self._max_warps = occupancies, threads, max_warps
        self._draw_occupancies()

    def _draw_occupancies(self) -> None:
        for item in self._bar_items:
            self.plot.removeItem(item)
        self._bar_items = []
        for limit in {occupancy.limiting_resource for occupancy in self.occupancies.values()}:
            self._draw_bars(
                limit,
                [threads for threads, occupancy in self.occupancies.items() if occupancy.limiting_resource == limit],
            )
        self.plot.setXRange(0, 1056, padding=0.0)
        self.plot.setYRange(0, self._max_warps * 1.05, padding=0.0)
        self.bottom.setTicks([[(each, str(each)) for each in (32, 128, 256, 384, 512, 640, 768, 896, 1024)]])
        self.left.setTicks([[(share * self._max_warps / 4, str(share * self._max_warps // 4)) for share in range(5)]])

    def _draw_bars(self, limit: str, threads: Sequence[int]) -> None:
        color, theme = limit_color(limit), look().theme
        brushes = [
            pg.mkBrush(color if thread == self._threads else mix_colors(color.name(), theme.surface, 0.45))
            for thread in threads
        ]
        heights = [self.occupancies[thread].warps for thread in threads]
        bars = pg.BarGraphItem(x=list(threads), height=heights, width=24, brushes=brushes, pen=None)
        self.plot.addItem(bars)
        self._bar_items.append(bars)

    def restyle(self) -> None:
        self.plot.showGrid(x=False, y=True, alpha=0.14)
        for axis in (self.left, self.bottom):
            style_axis(axis, tickFont=code_font(max(10, look().small_px - 1)))
        label_axis(self.left, "resident warps")
        label_axis(self.bottom, "threads per block")
        self.left.setWidth(look().px(60))
        self._draw_occupancies()

    def find_number(self, x: float) -> int | None:
        threads = 32 * max(1, min(32, round(x / 32)))
        return threads if threads in self.occupancies else None


def limit_color(limit: str) -> QColor:
    """Return the color of a limiting resource."""
    return warp_color(
        look().theme, LIMITING_RESOURCES.index(limit) if limit in LIMITING_RESOURCES else len(LIMITING_RESOURCES)
    )
