"""Plot of the speedup over the number of workers, with the ideal linear speedup."""

from __future__ import annotations

import pyqtgraph as pg
from PyQt6.QtCore import Qt

from gui.painting.theme import code_font, look
from gui.plots.axes import FigureAxis, style_axis
from gui.plots.plot import Plot, label_axis


class ScalingPlot(Plot):
    """One dot per number of workers, and a dashed line for linear speedup."""

    def __init__(self) -> None:
        super().__init__("Speedup over the number of workers", FigureAxis("left"))
        self.setMinimumSize(200, 160)
        self.box.setMouseEnabled(x=False, y=False)
        self.speedups: dict[int, float] = {}
        """Speedup over one worker, by number of workers."""
        self._max_workers = 1
        self._ideal = self.plot.plot([], [])
        self._curve = self.plot.plot([], [])

    def clear_dots(self, max_workers: int) -> None:
        """Remove all dots; `max_workers` is the largest number of workers to come."""
        self._max_workers, self.speedups = max_workers, {}
        self.show_cursor(None)
        self.restyle()
        self.fit()

    def show_speedups(self, speeds: dict[int, float]) -> None:
        """Show the speedup over one worker for each number of workers."""
        self.speedups = dict(sorted(speeds.items()))
        self.restyle()
        self.fit()

    @property
    def count(self) -> int:
        return self._max_workers + 1

    def find_number(self, x: float) -> int | None:
        return min(self.speedups, key=lambda number: abs(number - x), default=None)

    def fit(self) -> None:
        top = max(self._max_workers, *self.speedups.values()) if self.speedups else self._max_workers
        self.box.setRange(xRange=(0, self._max_workers * 1.06), yRange=(0, top * 1.06), padding=0)
        self.bottom.setTicks([[(number, str(number)) for number in self._tick_numbers]])

    @property
    def _tick_numbers(self) -> range:
        return range(0, self._max_workers + 1, max(1, self._max_workers // 8))

    def restyle(self) -> None:
        theme = look().theme
        self.plot.showGrid(x=True, y=True, alpha=0.14)
        for axis in (self.left, self.bottom):
            style_axis(axis, tickFont=code_font(max(11, look().small_px)), maxTickLevel=1, autoExpandTextSpace=True)
        label_axis(self.left, "speedup over one worker")
        label_axis(self.bottom, "workers")
        self.left.setWidth(look().px(60))
        ideal = pg.mkPen(theme.muted, width=1.5, style=Qt.PenStyle.DashLine)
        self._ideal.setData([0, self._max_workers], [0, self._max_workers], pen=ideal, antialias=True)
        pen = pg.mkPen(theme.accent, width=2.5)
        self._curve.setData(
            [*self.speedups], [*self.speedups.values()], pen=pen, symbol="o", symbolSize=9, symbolPen=None,
            symbolBrush=theme.accent, antialias=True,
        )  # fmt: skip
