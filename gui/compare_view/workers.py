"""Speedup of a variant over the number of workers of a cluster, compared with the ideal speedup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QGridLayout, QLabel, QWidget

from gpu.messages.requests import Failure, Report, Result, RunPattern
from gui.model.jobs import Jobs
from gui.plots.scaling_plot import ScalingPlot
from gui.widgets.basic import Badge, Card, ElidedLabel, as_figure, label

CHANNEL = "workers"
REPEATS = 3
_ALL = 8
"""Up to this many workers every number is measured; beyond, only powers of two."""
_SIMULATED = "Simulators share this machine's cores: this does not predict GPUs."
_MEASURED = "From the first task's submission to the last result, including transfers to and from the devices."


def counts_of(workers: int) -> list[int]:
    """Return the numbers of workers to measure, out of `workers`."""
    if workers <= _ALL:
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
            ms = as_figure(1e3 * seconds[count]) if measured else "–"
            times = f"{as_figure(seconds[1] / seconds[count])} ×" if measured else "–"
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
    jobs : Jobs
        The cluster's queue.
    """

    busy_changed = pyqtSignal(bool)
    failed = pyqtSignal(str, str)
    """A problem, and advice."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__("Speedup over workers", margins=(12, 8, 12, 6))
        self._jobs = jobs
        self._request: RunPattern | None = None
        self._todo: list[int] = []
        self._turn = 0
        self._seconds: dict[int, list[float]] = {}
        self._of = ""
        self.badge = Badge()
        self.head.addWidget(self.badge)
        self.about = ElidedLabel("caption", "Measured run", right=True)
        self.head.addWidget(self.about, 1)
        self.plot = ScalingPlot()
        self.body.addWidget(self.plot, 1)
        self.words = label("", "muted", wrap=True, name="Speedup at a number of workers")
        self.body.addWidget(self.words)
        self.figures = WorkersFigures()
        self.plot.hovered.connect(self._read)

    @property
    def busy(self) -> bool:
        """Whether runs are pending."""
        return bool(self._todo)

    @property
    def seconds(self) -> dict[int, float]:
        """The median seconds of a run by number of workers."""
        return {count: median(times) for count, times in self._seconds.items()}

    def start(self, request: RunPattern, of: str) -> None:
        """Start measuring a run; `of` describes it."""
        self.forget()
        counts = counts_of(len(self._jobs.workers))
        self._request, self._of = request, of
        # First a warm-up on all workers: compiling the kernels is not part of the measurement.
        self._todo = [counts[-1], *(count for count in counts for _ in range(REPEATS))]
        self.about.say(of)
        self.busy_changed.emit(True)
        self._request_next(counts=False)

    def stop(self) -> None:
        """Stop measuring."""
        if not self.busy:
            return
        self._turn += 1
        self._todo = []
        self._jobs.drop(CHANNEL)
        if self._jobs.age(CHANNEL):
            self._jobs.stop()
        self.busy_changed.emit(False)

    def forget(self) -> None:
        """Clear the measurements, which belong to another cluster or run."""
        self.stop()
        self._seconds = {}
        self.say_figures()
        self.badge.say("", "neutral")
        self.about.say("")
        self.words.setText("")

    def _request_next(self, *, counts: bool) -> None:
        turn, request = self._turn, self._request
        assert request is not None

        def on_result(event: Result | Failure) -> None:
            if turn == self._turn:
                self._on_result(event, counts=counts)

        self._jobs.post(CHANNEL, replace(request, chunks=(self._todo[0],)), on_result)

    def _on_result(self, event: Result | Failure, *, counts: bool) -> None:
        if isinstance(event, Failure):
            self.stop()
            if event.kind != "cancelled":
                self.failed.emit(event.message, event.advice)
            return
        assert event.report is not None
        assert event.distributed is not None
        if not event.report.verified:
            self.stop()
            self.failed.emit("The result is wrong, so its time is not shown.", "")
            return
        count = self._todo.pop(0)
        if counts:
            self._seconds.setdefault(count, []).append(event.distributed.wall_s)
            self._show(event.report)
        if self._todo:
            self._request_next(counts=True)
        else:
            self._turn += 1
            self.busy_changed.emit(False)

    def _show(self, report: Report) -> None:
        one = self.seconds[1]
        self.plot.show_speeds({count: one / seconds for count, seconds in self.seconds.items()})
        kind, tip = ("simulated", _SIMULATED) if report.simulated else ("measured", _MEASURED)
        self.badge.say(kind, "warn" if report.simulated else "neutral", tip)
        self.about.say(f"{self._of}, {report.device}")
        self.say_figures()
        self._read(None)

    def say_figures(self) -> None:
        """Show the figures for all numbers of workers; without measurements, draw the empty axes."""
        counts = counts_of(max(len(self._jobs.workers), 1))
        self.figures.show_times(counts, self.seconds)
        if not self._seconds:
            self.plot.begin(counts[-1])

    def _read(self, count: int | None) -> None:
        """Show the speedup at a number of workers, by default at the largest measured number."""
        seconds = self.seconds
        if not seconds:
            return
        count = count if count in seconds else max(seconds)
        runs = self._seconds[count]
        simulated = f" {_SIMULATED}" if self.badge.text() == "simulated" else ""
        self.words.setText(
            f"{count} worker{'s' if count > 1 else ''}: speedup {as_figure(seconds[1] / seconds[count])}; "
            f"{as_figure(1e3 * seconds[count])} ms, median of {len(runs)}, dashed: ideal.{simulated}"
        )
