"""The Atomics tab of the histogram: contention counted by address, its textbook and measured cost, lost updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QBoxLayout, QDoubleSpinBox, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gpu.declaration.pattern import Pattern
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.events import Failure
from gpu.messages.runs.atomics import (
    MAX_ELEMENTS,
    VARIANTS,
    AtomicCounts,
    AtomicsStudy,
    ContentionCounts,
    Latencies,
    StudyAtomics,
    compute_textbook_time,
    describe_latency_chain,
)
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gui.compare_view.lost_updates import LostUpdates
from gui.model.records import OpenImage
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.qt.timers import create_single_shot_timer
from gui.widgets.basic import Card, ElidedLabel, format_count, format_figure, label, row, wrap_tip

_COUNT_COLUMNS = {
    "atomics": "Atomic operations, counted per thread",
    "addresses": "Addresses with atomic operations; each block's shared memory counts separately",
    "hottest": "The largest number of atomic operations on one address",
    "warp queue": "The largest number of threads of a warp that access one address at once",
    "block queue": "The largest number of threads of a block that access one address at once",
}
_TIME_COLUMNS = ("textbook", "measured", "limited by")
_TEXTBOOK_TIP = "Time if only queues at single addresses took time. Compare shows the times modeled for a GPU."
_CHANNEL = "atomics"
_DELAY_MS = 250
_INTERLEAVINGS_HEIGHT = 260
"""Height of the interleavings in pixels, at the normal text size, when they are placed below the tables."""


class AtomicsTab(QWidget):
    """Count atomic operations in the simulator's process, and measure on the selected engine.

    Parameters
    ----------
    pattern : Pattern
        The histogram.
    get_side_jobs : callable
        Returns the queue of the simulator that counts.
    engine : RequestQueue
        The queue of the engine that measures.
    params : callable
        Returns the parameters selected on the Run tab.
    """

    failed = pyqtSignal(str, str)
    """A problem, and advice."""
    succeeded = pyqtSignal()
    """Atomic operations were counted."""

    def __init__(
        self,
        pattern: Pattern,
        get_side_jobs: Callable[[], RequestQueue],
        engine: RequestQueue,
        params: Callable[[], Mapping[str, Any]],
    ) -> None:
        super().__init__()
        self._pattern, self._get_side_jobs, self._engine, self._params = pattern, get_side_jobs, engine, params
        self._image: OpenImage | None = None
        self.study: AtomicsStudy | None = None
        self.times: dict[str, float] = {}
        self._stale = True
        self._request_number = 0
        self._measure_timer = create_single_shot_timer(_DELAY_MS, self.measure, self)
        self.input_label = ElidedLabel("caption", "Counted input")
        self.device = ElidedLabel("caption", "Device of the measurements", right=True)
        self.time_kind_label = label("measured", "caption", name="Kind of time")
        self.count_labels: dict[tuple[str, str, str], QLabel] = {}
        self.time_labels: dict[tuple[str, str], QLabel] = {}
        default = Latencies()
        self.clock = _create_number_box("GHz", default.clock_ghz, 0.1, 10, 0.1, "Clock of the textbook example")
        self.global_latency = _create_number_box(
            "cycles", default.global_cycles, 1, 2000, 10, "Cycles to global memory, one way"
        )
        self.shared_latency = _create_number_box(
            "cycles", default.shared_cycles, 1, 200, 1, "Cycles to shared memory, one way"
        )
        self.rate = label("", "caption", wrap=True, name="Atomic operations per second on one address")
        self.chain = [(label("", "code", name=f"Chain, figure {n}"), label("", "caption")) for n in range(1, 7)]
        self.lost_updates = LostUpdates()
        self._lay_out()
        for box in (self.clock, self.global_latency, self.shared_latency):
            box.valueChanged.connect(lambda _: self._show_times())
        self._show_times()

    def _lay_out(self) -> None:
        self._tables = QVBoxLayout()
        self._tables.setSpacing(8)
        # Extra height increases the distance between the variants in both tables.
        self._tables.addWidget(self._create_count_card(), 7)
        self._tables.addWidget(self._create_cost_card(), 6)
        cards = QWidget()
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight, cards)
        self._cards.setContentsMargins(0, 0, 0, 0)
        self._cards.setSpacing(8)
        self._cards.addLayout(self._tables, 1)
        self._cards.addWidget(self.lost_updates)
        # Figures and verdicts keep their size; a window that is too small for them scrolls.
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(cards)
        self.setLayout(row(self.area))

    def _create_count_card(self) -> Card:
        card = Card("Atomics by address, counted", margins=(12, 8, 12, 8))
        card.setToolTip("Exact numbers, counted by the simulator, not measured or modeled")
        card.head.addWidget(self.input_label, 1)
        grid = _create_grid(8)
        for column, (name, meaning) in enumerate(_COUNT_COLUMNS.items(), 2):
            head = label(name, "caption")
            head.setToolTip(meaning)
            grid.addWidget(head, 0, column, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(column, 1)
        for number, variant in enumerate(VARIANTS):
            first = 3 * number + 1
            grid.addWidget(label(self._pattern.variant(variant).title), first, 0)
            grid.setRowStretch(first + 2, 1)
            for line, space in enumerate(("global", "shared"), first):
                grid.addWidget(label(space, "caption"), line, 1)
                for column, name in enumerate(_COUNT_COLUMNS, 2):
                    cell = label("–", "code", name=f"{name}, {variant}, {space} memory")
                    self.count_labels[variant, space, name] = cell
                    grid.addWidget(cell, line, column, Qt.AlignmentFlag.AlignRight)
        card.body.addLayout(grid, 1)
        return card

    def _create_cost_card(self) -> Card:
        card = Card("Cost of contention", margins=(12, 8, 12, 10))
        card.head.addWidget(self.device, 1)
        card.body.addLayout(self._create_latency_form())
        card.body.addWidget(self.rate)
        card.body.addLayout(self._create_chain_grid())
        card.body.addLayout(self._create_time_table(), 1)
        return card

    def _create_latency_form(self) -> QGridLayout:
        form = _create_grid(16)
        boxes = {
            "Clock": self.clock,
            "Global memory, one way": self.global_latency,
            "Shared, one way": self.shared_latency,
        }
        for column, (text, box) in enumerate(boxes.items()):
            heading = label(text, "caption")
            heading.setBuddy(box)
            form.addWidget(heading, 0, column)
            form.addWidget(box, 1, column)
        form.setColumnStretch(len(boxes), 1)
        return form

    def _create_chain_grid(self) -> QGridLayout:
        grid = _create_grid(8)
        for number, (figure, description) in enumerate(self.chain):
            column, line = divmod(number, 3)
            grid.addWidget(figure, line, 2 * column, Qt.AlignmentFlag.AlignRight)
            grid.addWidget(description, line, 2 * column + 1)
            grid.setColumnStretch(2 * column + 1, 1)
        return grid

    def _create_time_table(self) -> QGridLayout:
        table = _create_grid(14)
        for column, name in enumerate(_TIME_COLUMNS, 1):
            head = self.time_kind_label if name == "measured" else label(name, "caption")
            if name == "textbook":
                head.setToolTip(wrap_tip(_TEXTBOOK_TIP))
            table.addWidget(head, 0, column, Qt.AlignmentFlag.AlignRight)
            table.setColumnStretch(column, 1)
        for line, variant in enumerate(VARIANTS, 1):
            table.addWidget(label(self._pattern.variant(variant).title), line, 0)
            table.setRowStretch(line, 1)
            for column, name in enumerate(_TIME_COLUMNS, 1):
                cell = label("–", "code", name=f"{name}, {variant}")
                self.time_labels[variant, name] = cell
                table.addWidget(cell, line, column, Qt.AlignmentFlag.AlignRight)
        return table

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the interleavings next to the tables if they fit there, else below."""
        self.lost_updates.update_minimum_width()
        bar = self.area.verticalScrollBar()
        required_width = (
            self._tables.minimumSize().width() + self._cards.spacing() + self.lost_updates.minimumSizeHint().width()
        )
        fits_beside_tables = required_width + (bar.sizeHint().width() if bar is not None else 0) <= self.width()
        directions = QBoxLayout.Direction
        self._cards.setDirection(directions.LeftToRight if fits_beside_tables else directions.TopToBottom)
        self.lost_updates.setMinimumHeight(0 if fits_beside_tables else look().px(_INTERLEAVINGS_HEIGHT))

    # --- requests

    def show_image(self, image: OpenImage) -> None:
        """Study another image."""
        self._image = image
        self.study_soon()

    def study_soon(self) -> None:
        """Count and measure after a short delay; a hidden tab does so when it is shown."""
        self._stale = True
        if self.isVisible():
            self._measure_timer.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._arrange()
        if self._stale:
            self._measure_timer.start()

    def measure(self) -> None:
        """Count the atomic operations on the open input, and measure the variants."""
        params = dict(self._params())
        is_image = self._pattern.input_kind(params) == "image"
        if is_image and self._image is None:
            self.input_label.show_text("Open an image to count its atomic operations.")
            return
        self._measure_timer.stop()
        self._stale = False
        self._request_number += 1
        self.times.clear()
        self._show_times()
        self.input_label.show_text("counting…")
        inputs = self._image.inputs if is_image and self._image is not None else {}
        request_number, side = self._request_number, self._get_side_jobs()
        side.post(
            _CHANNEL,
            StudyAtomics(params, self._put_counted_rows(side) if is_image else {}),
            lambda e: self._on_study(request_number, e),
        )
        for variant in VARIANTS:
            request = RunPattern(self._pattern.name, variant, params, dict(inputs), verify=False)
            # Run twice: the first run includes one-time work such as compiling.
            for again in ("first", "again"):
                self._engine.post(
                    f"{_CHANNEL} {variant} {again}", request, partial(self._on_time, request_number, variant)
                )

    def _put_counted_rows(self, side_jobs: RequestQueue) -> dict[str, Any]:
        """Put the image's top rows, as many as are counted, into the simulator's folder."""
        assert self._image is not None
        values = self._image.values
        rows = max(1, MAX_ELEMENTS // (values.size // len(values)))
        arrays = {"image": np.ascontiguousarray(values[:rows]), "maxval": np.asarray(self._image.maxval, np.uint32)}
        handles = {name: side_jobs.folder.put(array) for name, array in arrays.items()}
        for handle in handles.values():
            side_jobs.folder.adopt(handle)
        return handles

    def _on_study(self, request_number: int, event: AtomicsStudy | Failure) -> None:
        if request_number != self._request_number:
            return
        if isinstance(event, Failure):
            self.input_label.show_text("")
            if event.kind != "cancelled":
                self.failed.emit(event.message, event.advice)
            return
        self.study = event
        self.succeeded.emit()
        self.lost_updates.show_study(self.study)
        self._arrange()
        for counts in self.study.counts:
            self._show_counts(counts)
        self._describe_input(self.study)
        self._show_times()

    def _on_time(self, request_number: int, variant: str, event: RunResult | Failure) -> None:
        if request_number != self._request_number or isinstance(event, Failure):
            return
        self.times[variant] = event.report.time_ms.kernel
        simulated = event.report.simulated
        self.time_kind_label.setText(SIMULATION_TIME_LABEL if simulated else "measured")
        self.device.show_text(f"{'simulated' if simulated else 'measured'} on {event.report.device}, kernel time")
        self._show_times()

    # --- showing

    def _describe_input(self, study: AtomicsStudy) -> None:
        counted = study.counts[0].elements
        total = study.elements
        if self._pattern.input_kind(self._params()) == "image" and self._image is not None:
            total = self._image.values.size
            noun = f"pixel values of {self._image.path.name}"
        else:
            noun = "characters" if self._pattern.input_kind(self._params()) == "text" else "numbers"
        part = "" if counted == total else f" of {format_count(total)}"
        self.input_label.show_text(f"{format_count(counted)}{part} {noun}")

    def _show_counts(self, counts: AtomicCounts) -> None:
        for space, contended in (("global", counts.global_counts), ("shared", counts.shared_counts)):
            for name, value in zip(_COUNT_COLUMNS, _list_counts(contended), strict=True):
                self.count_labels[counts.variant, space, name].setText(
                    format_count(value) if contended.operations else "–"
                )

    def _show_times(self) -> None:
        latencies = Latencies(self.clock.value(), self.global_latency.value(), self.shared_latency.value())
        rates = [latencies.per_second(cycles) / 1e6 for cycles in (latencies.global_cycles, latencies.shared_cycles)]
        self.rate.setText(
            f"Textbook example: atomics in DRAM, unlike on present GPUs. An address executes {format_figure(rates[0])} "
            f"million per second in global memory, {format_figure(rates[1])} million in shared memory."
        )
        for place in self.chain:
            for word in place:
                word.setText("")
        if self.study is not None:
            words = describe_latency_chain(self.study.textbook_counts, latencies)
            for (figure, description), (value, meaning) in zip(self.chain, words, strict=False):
                figure.setText(value)
                description.setText(meaning)
        by_variant = {counts.variant: counts for counts in self.study.counts} if self.study is not None else {}
        for variant in VARIANTS:
            if variant in by_variant:
                textbook = compute_textbook_time(by_variant[variant], latencies)
                self.time_labels[variant, "textbook"].setText(_format_milliseconds(textbook.time_ms))
                limit = f"{textbook.bound_by} memory" if textbook.bound_by else "–"
                self.time_labels[variant, "limited by"].setText(limit)
            time = self.times.get(variant)
            self.time_labels[variant, "measured"].setText("–" if time is None else _format_milliseconds(time))


def _list_counts(contended: ContentionCounts) -> tuple[int, ...]:
    return (
        contended.operations,
        contended.addresses,
        contended.hottest,
        contended.warp_queue,
        contended.block_queue,
    )


def _format_milliseconds(value: float) -> str:
    return f"{value * 1e3:.3g} µs" if value < 0.1 else f"{format_figure(value)} ms"


def _create_grid(gap: int) -> QGridLayout:
    """Return a grid with a horizontal gap in pixels between its columns."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(gap)
    grid.setVerticalSpacing(2)
    return grid


def _create_number_box(unit: str, value: float, low: float, high: float, step: float, name: str) -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setDecimals(1 if step < 1 else 0)
    box.setRange(low, high)
    box.setSingleStep(step)
    box.setValue(value)
    box.setSuffix(f" {unit}")
    box.setAccessibleName(name)
    return box
