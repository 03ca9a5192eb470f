"""The card of a run's results: measured throughput on a GPU, counts in the simulator, and the error."""

from __future__ import annotations

import math

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QGridLayout, QLabel, QWidget

from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.pattern_runs import Report
from gpu.messages.runs.timing import Timing
from gpu.messages.verdicts import Verdict
from gui.painting.theme import look
from gui.run_view.cards.share_bar import Dot, ShareBar
from gui.run_view.run_counts import RunCountsView
from gui.widgets.basic import Badge, Card, button, column, format_count, format_figure, label, row
from gui.widgets.glossary_tip import add_definition

PHASES = ("upload", "kernel", "download")
_MAX_INLINE_LENGTH = 24
"""Maximum number of characters of a verdict in the title's line."""
_MEASURED_TIP = "Measured on this machine, by device events."
_REPETITIONS_TIP = (
    "Warm repetitions: each launch is timed alone, behind one that keeps the GPU busy and leaves its cache cold."
)
_GAPS_TIP = f"{_REPETITIONS_TIP} The gaps between launches are measured in a separate run without these interruptions."
_COUNTS_TIP = "Counted by the simulator on a small part of the input: exact, and the same on every machine."
_SIMULATED_TIP = "Time this CPU took to simulate the run; it does not predict a GPU's time."
_TONES = {
    "verified": "good",
    "pending": "neutral",
    "unchecked": "warn",
    "flawed": "bad",
    "lucky": "warn",
    "lesson": "warn",
    "wrong": "bad",
}


def phase_colors() -> tuple[str, str, str]:
    """Return the colors of upload, kernel and download; the kernel's is the accent."""
    theme = look().theme
    return theme.faint, theme.accent, theme.muted


class NumbersCard(Card):
    """The report of the newest run."""

    larger_size_requested = pyqtSignal(str, int)
    """A parameter, or "" for the side of an image, and the smallest value at which variants can be compared."""

    def __init__(self) -> None:
        super().__init__("This run")
        self._count_variant = ("", "")
        self.source = Badge()
        self.verdict = Badge()
        self.head.addWidget(self.source)
        self.head.addStretch(1)
        self.head.addWidget(self.verdict)

        self.figure = label("–", "figure", name="Throughput")
        self.unit = label("", "muted")
        figure_row = row(self.figure, self.unit, 0, spacing=8)
        figure_row.setAlignment(self.unit, Qt.AlignmentFlag.AlignBottom)
        self.timing_widget = QWidget()
        self.body.addWidget(self.timing_widget)
        self.counts_view = RunCountsView()
        self.body.addWidget(self.counts_view)
        self.counts_view.hide()
        self.bar = ShareBar(PHASES, phase_colors)

        grid = QGridLayout()
        grid.setHorizontalSpacing(7)
        grid.setVerticalSpacing(0)
        self.times: dict[str, QLabel] = {}
        for index, phase in enumerate(PHASES):
            grid.addWidget(Dot(index, phase_colors), 0, 3 * index, Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(label(phase, "caption"), 0, 3 * index + 1)
            self.times[phase] = label("–", "code", name=f"{phase} time")
            grid.addWidget(self.times[phase], 1, 3 * index + 1)
            grid.setColumnStretch(3 * index + 2, 1)
        self.repetitions_label = label("", "caption", wrap=True, name="Repetitions")
        self.size_warning = label("", wrap=True, name="Limit of the measurement")
        self.larger_button = button("", tip="Smallest size at which variants can be compared on this GPU")
        self.larger_button.clicked.connect(
            lambda: self.larger_size_requested.emit(self._larger_parameter, self._larger_value)
        )
        self._larger_parameter, self._larger_value = "", 0
        for shown in (self.repetitions_label, self.size_warning, self.larger_button):
            shown.hide()
        timed = column(figure_row, self.bar, grid, self.repetitions_label, self.size_warning, self.larger_button)
        self.timing_widget.setLayout(timed)
        self.simulation_time = label("", "caption", wrap=True, name="Time to simulate")
        self.simulation_time.setToolTip(_SIMULATED_TIP)
        self.simulation_time.hide()
        self.body.addWidget(self.simulation_time)
        self.error = label("", "caption", wrap=True, name="Error against the reference")
        add_definition(self.error, "reference result")
        self.body.addWidget(self.error)
        self.verdict.hide()
        self.source.hide()

    def show_report(self, report: Report, verdict: Verdict) -> None:
        """Show a report and the verdict on its result."""
        self.timing_widget.setVisible(not report.simulated)
        for shown in (self.counts_view, self.simulation_time):
            shown.setVisible(report.simulated)
        if report.simulated:
            self._show_simulated(report)
        else:
            self._show_measured(report)
        self.show_verdict(verdict)
        deviation = report.deviation
        if deviation is None:
            self.error.setText("Largest error: not known yet")
        elif deviation.max_abs == 0:
            self.error.setText("Equals the reference result, computed independently on the CPU.")
        elif deviation.max_abs == math.inf:
            self.error.setText("The result has another size than the reference result, or a value that is not finite.")
        else:
            self.error.setText(
                f"Largest error {format_figure(deviation.max_abs)}, relative {format_figure(deviation.max_rel)}, "
                "against the reference result, computed independently on the CPU."
            )

    def _show_measured(self, report: Report) -> None:
        self.figure.setText(format_figure(report.throughput.value) if report.throughput.value else "–")
        self.unit.setText(f"{report.throughput.unit}  kernel time only")
        self.source.show_text("measured", "neutral", _MEASURED_TIP)
        self.bar.show_amounts({phase: getattr(report.time_ms, phase) for phase in PHASES})
        for phase, shown in self.times.items():
            shown.setText(format_time(getattr(report.time_ms, phase)))
        self._show_timing(report.timing)

    def _show_timing(self, timing: Timing | None) -> None:
        """Show how the time was measured, and offer a larger size if this one is too small for comparisons."""
        self.repetitions_label.setVisible(timing is not None)
        self.size_warning.setVisible(timing is not None and bool(timing.sentence))
        self.larger_button.setVisible(timing is not None and timing.recommended_size > 0)
        if timing is None:
            return
        spread = f"Median of {timing.repetitions}: {format_time(timing.minimum)} to {format_time(timing.maximum)}"
        gaps = f"; {format_time(timing.gaps)} of gaps between {timing.launches} launches" if timing.gaps else ""
        self.repetitions_label.setText((spread if timing.repetitions > 1 else "Long run, measured once") + gaps)
        self.repetitions_label.setToolTip(_GAPS_TIP if timing.gaps else _REPETITIONS_TIP)
        self.size_warning.setText(timing.sentence)
        self._larger_parameter, self._larger_value = timing.size_parameter, timing.recommended_size
        side = f"{timing.recommended_size} × {timing.recommended_size} pixels"
        self.larger_button.setText(
            f"Run with {timing.size_parameter} = {format_count(timing.recommended_size)}"
            if timing.size_parameter
            else f"Compare up to {side}"
        )

    def _show_simulated(self, report: Report) -> None:
        """Show the simulation time in small type; `show_counts` shows the counts."""
        times = report.time_ms
        self.simulation_time.setText(f"{format_time(times.kernel)} {SIMULATION_TIME_LABEL}.")
        self.simulation_time.setToolTip(
            f"{_SIMULATED_TIP}\nUpload {format_time(times.upload)}, kernels {format_time(times.kernel)}, "
            f"download {format_time(times.download)}; {format_figure(report.throughput.value)} {report.throughput.unit}"
        )
        variant = report.pattern, report.variant
        if variant != self._count_variant:
            self._count_variant = variant
            self.counts_view.clear_counts()

    def show_counts(self, counts: RunCounts | None, reason: str) -> None:
        """Show a simulated run's counts; without counts, the reason, or "" while they are still being computed."""
        if counts is not None:
            self.counts_view.show_counts(counts)
            self.source.show_text("counted", "neutral", _COUNTS_TIP)
        elif reason:
            self.counts_view.clear_counts()
            self.source.show_text("not counted", "warn", reason)
        else:
            self.source.show_text("counting…", "neutral", _COUNTS_TIP)

    def show_verdict(self, verdict: Verdict) -> None:
        """Show a verdict."""
        self._place_verdict(below=len(verdict.words) > _MAX_INLINE_LENGTH)
        self.verdict.show_text(verdict.words, _TONES[verdict.kind], verdict.sentence)
        if verdict.kind == "verified":
            add_definition(self.verdict, "verified")

    def _place_verdict(self, *, below: bool) -> None:
        """Place the verdict in the title's line, or below it where it would widen the column."""
        if below == (self.body.indexOf(self.verdict) >= 0):
            return
        (self.head if below else self.body).removeWidget(self.verdict)
        if below:
            self.body.insertWidget(1, self.verdict, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self.head.addWidget(self.verdict)

    def clear_verdict(self) -> None:
        """Clear the verdict while the next run is in progress."""
        self.verdict.show_text("", "neutral")

    def mark_outdated(self) -> None:
        """Mark the verdict as outdated: the kernel's source was edited after the run."""
        self.verdict.show_text("edited since", "warn", "The kernel was edited after this run: press F5 to run it.")


def format_time(milliseconds: float) -> str:
    """Format a time in a suitable unit."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.2f} s"
    if milliseconds >= 100:
        return f"{milliseconds:.0f} ms"
    if milliseconds >= 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds >= 1:
        return f"{milliseconds:.2f} ms"
    return f"{milliseconds * 1000:.0f} µs"
