"""The occupancy calculator: resident blocks of a kernel, and modeled times over block sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu.messages.modeled_time import KernelTime, describe_missing_blocks, format_duration
from gpu.timing.gpus import GpuDescription
from gpu.timing.occupancy import compute_occupancy
from gui.painting.theme import look
from gui.plots.occupancy_plot import OccupancyPlot
from gui.plots.throughput_plot import ThroughputPlot
from gui.qt.timers import connect_queued
from gui.widgets.basic import label, row
from gui.widgets.glossary_tip import add_definition
from gui.widgets.number_box import NumberBox
from gui.widgets.wrapping import WrappingLayout

_BLOCK_SIZES = tuple(range(32, 1025, 32))
_MAX_SHARED_BYTES = 232448
_UNIT = "µs, modeled"
_MIN_LINES_FOR_BOTH_PLOTS = 24
"""Minimum height for both plots, in lines of text."""


class OccupancyView(QWidget):
    """Fields for registers and shared memory, a plot of resident warps over block sizes, and one of modeled times."""

    def __init__(self) -> None:
        super().__init__()
        self.registers = NumberBox(16, 255)
        self.shared = NumberBox(0, _MAX_SHARED_BYTES, 256)
        self.threads = NumberBox(32, 1024, 32)
        for box, name in (
            (self.registers, "Registers per thread"),
            (self.shared, "Shared bytes per block"),
            (self.threads, "Threads per block"),
        ):
            box.setAccessibleName(name)
            connect_queued(box.valueChanged, self._recompute)
        self.occupancy_label = label("", wrap=True, name="Occupancy")
        add_definition(self.occupancy_label, "occupancy")
        self.plot = OccupancyPlot()
        self.times = ThroughputPlot("threads per block")
        self.times.set_logarithmic(False)
        self.times_label = label("", "caption", wrap=True, name="Modeled time over block sizes")
        self.plot.hovered.connect(self._show_block_size)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        fields = WrappingLayout(across=12, down=4)
        for name, box in (("Threads", self.threads), ("Registers", self.registers), ("Shared bytes", self.shared)):
            field, line = QWidget(), row(label(name, "caption"), box)
            # Fixed to the width of its digits: a field without room moves to the next line.
            line.setSizeConstraint(QHBoxLayout.SizeConstraint.SetFixedSize)
            field.setLayout(line)
            fields.addWidget(field)
        layout.addLayout(fields)
        layout.addWidget(self.occupancy_label)
        layout.addWidget(self.plot, 3)
        layout.addWidget(self.times_label)
        layout.addWidget(self.times, 2)
        self._has_times = False
        self._gpu: GpuDescription | None = None
        self._kernel: KernelTime | None = None

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._update_visibility()

    def _update_visibility(self) -> None:
        """Hide the second plot where large text leaves no room for both."""
        for part in (self.times_label, self.times):
            part.setVisible(self._has_times and self.height() >= _MIN_LINES_FOR_BOTH_PLOTS * look().text_px)

    def show_kernel(self, gpu: GpuDescription, kernel: KernelTime) -> None:
        """Show the occupancy of a kernel on a GPU."""
        if (gpu, kernel) == (self._gpu, self._kernel):
            return
        self._gpu, self._kernel = gpu, kernel
        for box, value in (
            (self.registers, kernel.registers),
            (self.shared, kernel.shared_bytes),
            (self.threads, kernel.threads),
        ):
            box.blockSignals(True)
            box.setValue(value)
            box.blockSignals(False)
        self._recompute()

    def show_times(self, number: int, title: str, times: Mapping[int, float], blocks: tuple[int, ...]) -> None:
        """Plot modeled times over block sizes.

        Parameters
        ----------
        number : int
            The variant's number, which determines the curve's color.
        times : mapping
            Microseconds by threads per block, as far as known.
        blocks : tuple of int
            All block sizes, including pending ones; the plot is hidden if empty.
        """
        self._has_times = bool(blocks)
        self._update_visibility()
        self.times.clear_points(list(blocks), _UNIT)
        self.times.show_points({number: dict(times)} if times else {}, _UNIT)
        best = min(times, key=lambda each: times[each], default=0)
        fastest = f"; fastest: {best} threads, {format_duration(times[best])}" if len(times) > 1 else ""
        self.times_label.setText(f"{title}: modeled time over threads per block{fastest}")

    def _recompute(self) -> None:
        if self._gpu is None:
            return
        registers, shared, threads = self.registers.value(), self.shared.value(), self.threads.value()
        if not (0 < threads <= _BLOCK_SIZES[-1] and 0 < registers <= 255 and 0 <= shared <= self._gpu.shared_bytes):
            self.occupancy_label.setText("This block exceeds the GPU's limits.")
            self.plot.show_occupancies({}, 0, self._gpu.warps)
            return
        occupancies = {size: compute_occupancy(self._gpu, size, registers, shared) for size in _BLOCK_SIZES}
        self.plot.show_occupancies(occupancies, -(-threads // 32) * 32, self._gpu.warps)
        self._show_occupancy(threads)

    def _show_occupancy(self, threads: int) -> None:
        assert self._gpu is not None
        result = compute_occupancy(self._gpu, threads, self.registers.value(), self.shared.value())
        missing = ""
        if self._kernel is not None and threads == self._kernel.threads:
            missing = describe_missing_blocks(math.prod(self._kernel.grid), result.blocks, result.warps, self._gpu)
        share = f"{result.warps / self._gpu.warps:.0%}"
        self.occupancy_label.setText(
            f"up to {result.blocks} blocks of {threads} threads: {result.warps} of {self._gpu.warps} warps at once "
            f"({share}), limited by {result.limiting_resource}{missing}"
        )

    def _show_block_size(self, threads: int | None) -> None:
        if self._gpu is not None and self.plot.occupancies:
            self._show_occupancy(self.threads.value() if threads is None else threads)
