"""Throughput over size, one point per run; for simulated runs the simulation time instead."""

from __future__ import annotations

import math

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QSizePolicy

from gpu.declaration.pattern import Pattern
from gpu.engines.base import SIMULATION_TIME_LABEL
from gui.model.records import FinishedRun
from gui.painting.theme import look
from gui.plots.throughput_plot import ThroughputPlot, variant_pen
from gui.qt.events import StyleListener
from gui.widgets.basic import Card, format_figure, label

_MIN_EXPONENT, _MAX_EXPONENT = 7, 10
"""Initial range of the size axis, as powers of two."""


class RatesCard(StyleListener, Card):
    """A card with a curve per variant that has been run; another engine starts new curves."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__("", margins=(12, 8, 12, 6))
        self.setToolTip("A point for each run of square matrices; the Compare tab measures all sizes.")
        self._pattern = pattern
        self._measured_on: tuple[str, str, str] | None = None
        self.points: dict[int, dict[int, float]] = {}
        self._axis_range = (0, 0)
        self._current_variant = 0
        self._unit = ""
        self.curves = ThroughputPlot("")
        self.curves.setMinimumSize(120, 70)
        self.legend = label("", "caption", name="Variants run so far")
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.legend.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.title.setWordWrap(True)
        self.head.setStretch(0, 3)
        self.head.addWidget(self.legend, 1)
        self.body.setSpacing(4)
        self.body.addWidget(self.curves, 1)

    def add_run(self, outcome: FinishedRun, size: int | None) -> None:
        """Add a run's throughput (or simulation time) at a size.

        Runs without a size or with a wrong result are not plotted.
        """
        report = outcome.report
        measured_on = (report.engine, report.executor, report.device)
        if measured_on != self._measured_on:
            self._measured_on, self.points = measured_on, {}
            self._set_axis_range(_MIN_EXPONENT, _MAX_EXPONENT)
        self._unit = f"ms {SIMULATION_TIME_LABEL}," if report.simulated else report.throughput.unit
        self.setAccessibleName(f"{self._unit} over n")
        self._show_title()
        figure = report.time_ms.kernel if report.simulated else report.throughput.value
        names = [variant.name for variant in self._pattern.variants]
        self._current_variant = names.index(outcome.variant)
        if size is not None and report.verified is not False:
            self.points.setdefault(self._current_variant, {})[size] = figure
            low, high = self._axis_range
            self._set_axis_range(min(low, math.floor(math.log2(size))), max(high, math.ceil(math.log2(size))))
        self.curves.show_points(self.points, "")
        self.curves.emphasize(self._current_variant)
        self._show_legend()

    def _set_axis_range(self, low: int, high: int) -> None:
        """Set the axis range, in powers of two."""
        if (low, high) != self._axis_range:
            self._axis_range = (low, high)
            self.curves.clear_points([2**index for index in range(low, high + 1)], "")

    def _show_legend(self) -> None:
        """List the variants' numbers in their curves' colors, with their figures in the tooltip."""
        named = []
        for number in sorted(self.points):
            color = variant_pen(number).color().name()
            strong = f"<b>{number + 1}</b>" if number == self._current_variant else str(number + 1)
            named.append(f'<span style="color:{color}">●</span> {strong}')
        self.legend.setText("&nbsp;&nbsp; ".join(named))
        self.legend.setToolTip(
            "\n".join(
                f"{number + 1}  {self._pattern.variants[number].title}: "
                + ", ".join(f"{format_figure(value)} at {size}" for size, value in sorted(self.points[number].items()))
                for number in sorted(self.points)
            )
        )

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._show_title()

    def _show_title(self) -> None:
        """Show the title, shortened in a narrow card."""
        brief = "simulated ms" if SIMULATION_TIME_LABEL in self._unit and self.width() < look().px(200) else self._unit
        self.title.setText(f"{brief} over n" if self._unit else "")
        self.title.setToolTip(self.accessibleName())

    def _restyle(self) -> None:
        if self.points:
            self._show_legend()
