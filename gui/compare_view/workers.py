"""Speedup of a variant over the number of workers of a cluster, compared with the ideal speedup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QGridLayout, QLabel, QWidget

from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import Report, RunPattern, RunResult
from gui.model.request_queue import RequestQueue
from gui.plots.scaling_plot import ScalingPlot
from gui.widgets.basic import Badge, Card, ElidedLabel, format_figure, label

CHANNEL = "workers"
REPEATS = 3
_MAX_CONSECUTIVE_COUNTS = 8
"""Up to this many workers every number is measured; beyond, only powers of two."""
_SIMULATED_TIP = "Simulators share this machine's cores: this does not predict GPUs."
_MEASURED_TIP = "From the first task's submission to the last result, including transfers to and from the devices."


def list_worker_counts(workers: int) -> list[int]:
    """Return the numbers of workers to measure, out of `workers`."""
    if workers <= _MAX_CONSECUTIVE_COUNTS:
        return list(range(1, workers + 1))
    return sorted({*(2**power for power in range(workers.bit_length())), workers})


class WorkersFigures(QWidget):
    """Time and speedup for each number of workers; a dash where it is not measured yet."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setColumnStretch(0, 1)
        self._labels: list[QLabel] = []

    @property
    def texts(self) -> list[str]:
        """The visible texts, row by row."""
        return [each.text() for each in self._labels]

    def show_times(self, counts: Sequence[int], seconds: Mapping[int, float]) -> None:
        """Show the median seconds by number of workers, as far as measured."""
        for each in self._labels:
            self._grid.removeWidget(each)
            each.deleteLater()
        self._labels = []
        for row, count in enumerate(counts, 1):
            measured = count in seconds
            ms = format_figure(1e3 * seconds[count]) if measured else "–"
            times = f"{format_figure(seconds[1] / seconds[count])} ×" if measured else "–"
            self._add_row(row, (f"{count} worker{'s' if count > 1 else ''}", ms, times), "")
        self._add_row(0, ("Workers", "ms", "speedup"), "caption")

    def _add_row(self, row: int, texts: Sequence[str], look: str) -> None:
        for column, text in enumerate(texts):
            cell = label(text, look)
            self._labels.append(cell)
            side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
            self._grid.addWidget(cell, row, column, side)


class WorkersView(Card):
    """Measure one variant on increasing numbers of workers.

    Parameters
    ----------
    jobs : RequestQueue
        The cluster's queue.
    """

    busy_changed = pyqtSignal(bool)
    failed = pyqtSignal(str, str)
    """A problem, and advice."""

    def __init__(self, jobs: RequestQueue) -> None:
        super().__init__("Speedup over workers", margins=(12, 8, 12, 6))
        self._jobs = jobs
        self._request: RunPattern | None = None
        self._todo: list[int] = []
        self._request_number = 0
        self._seconds: dict[int, list[float]] = {}
        self._run_description = ""
        self.badge = Badge()
        self.head.addWidget(self.badge)
        self.run_label = ElidedLabel("caption", "Measured run", right=True)
        self.head.addWidget(self.run_label, 1)
        self.plot = ScalingPlot()
        self.body.addWidget(self.plot, 1)
        self.speedup_label = label("", "muted", wrap=True, name="Speedup at a number of workers")
        self.body.addWidget(self.speedup_label)
        self.figures = WorkersFigures()
        self.plot.hovered.connect(self._show_speedup)

    @property
    def busy(self) -> bool:
        """Whether runs are pending."""
        return bool(self._todo)

    @property
    def seconds(self) -> dict[int, float]:
        """The median seconds of a run by number of workers."""
        return {count: median(times) for count, times in self._seconds.items()}

    def start(self, request: RunPattern, run_description: str) -> None:
        """Start measuring a run; `run_description` describes it."""
        self.clear_measurements()
        counts = list_worker_counts(len(self._jobs.workers))
        self._request, self._run_description = request, run_description
        # First a warm-up on all workers: compiling the kernels is not part of the measurement.
        self._todo = [counts[-1], *(count for count in counts for _ in range(REPEATS))]
        self.run_label.show_text(run_description)
        self.busy_changed.emit(True)
        self._request_next(counts=False)

    def stop(self) -> None:
        """Stop measuring."""
        if not self.busy:
            return
        self._request_number += 1
        self._todo = []
        self._jobs.drop(CHANNEL)
        if self._jobs.has_request(CHANNEL):
            self._jobs.stop()
        self.busy_changed.emit(False)

    def clear_measurements(self) -> None:
        """Clear the measurements, which belong to another cluster or run."""
        self.stop()
        self._seconds = {}
        self.show_figures()
        self.badge.show_text("", "neutral")
        self.run_label.show_text("")
        self.speedup_label.setText("")

    def _request_next(self, *, counts: bool) -> None:
        turn, request = self._request_number, self._request
        assert request is not None

        def on_result(event: RunResult | Failure) -> None:
            if turn == self._request_number:
                self._on_result(event, counts=counts)

        self._jobs.post(CHANNEL, replace(request, chunks=(self._todo[0],)), on_result)

    def _on_result(self, event: RunResult | Failure, *, counts: bool) -> None:
        if isinstance(event, Failure):
            self.stop()
            if event.kind != "cancelled":
                self.failed.emit(event.message, event.advice)
            return
        assert event.distributed is not None
        if not event.report.verified:
            self.stop()
            self.failed.emit("The result is wrong, so its time is not shown.", "")
            return
        count = self._todo.pop(0)
        if counts:
            self._seconds.setdefault(count, []).append(event.distributed.wall_s)
            self._show_report(event.report)
        if self._todo:
            self._request_next(counts=True)
        else:
            self._request_number += 1
            self.busy_changed.emit(False)

    def _show_report(self, report: Report) -> None:
        one = self.seconds[1]
        self.plot.show_speedups({count: one / seconds for count, seconds in self.seconds.items()})
        kind, tip = ("simulated", _SIMULATED_TIP) if report.simulated else ("measured", _MEASURED_TIP)
        self.badge.show_text(kind, "warn" if report.simulated else "neutral", tip)
        self.run_label.show_text(f"{self._run_description}, {report.device}")
        self.show_figures()
        self._show_speedup(None)

    def show_figures(self) -> None:
        """Show the figures for all numbers of workers; without measurements, draw the empty axes."""
        counts = list_worker_counts(max(len(self._jobs.workers), 1))
        self.figures.show_times(counts, self.seconds)
        if not self._seconds:
            self.plot.clear_dots(counts[-1])

    def _show_speedup(self, count: int | None) -> None:
        """Show the speedup at a number of workers, by default at the largest measured number."""
        seconds = self.seconds
        if not seconds:
            return
        count = count if count in seconds else max(seconds)
        runs = self._seconds[count]
        simulated = f" {_SIMULATED_TIP}" if self.badge.text() == "simulated" else ""
        self.speedup_label.setText(
            f"{count} worker{'s' if count > 1 else ''}: speedup {format_figure(seconds[1] / seconds[count])}; "
            f"{format_figure(1e3 * seconds[count])} ms, median of {len(runs)}, dashed: ideal.{simulated}"
        )
