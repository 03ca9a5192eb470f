"""The Atomics tab of the histogram: how many atomics want one address, what that costs, and what a race loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QBoxLayout, QDoubleSpinBox, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from gpu.declaration.pattern import Pattern
from gpu.engines.base import TO_SIMULATE
from gpu.messages.atomics import (
    MOST_ELEMENTS,
    VARIANTS,
    AtomicCounts,
    AtomicsStudy,
    Contended,
    Latencies,
    chain_in_words,
    model,
)
from gpu.messages.requests import Failure, Result, RunPattern, StudyAtomics
from gpu.patterns.histogram.counted import letters_of
from gui.atomics_view.lost_updates import LostUpdates
from gui.model.jobs import Jobs
from gui.model.records import OpenImage
from gui.painting.theme import look
from gui.qt.later import after
from gui.widgets.basic import Card, ElidedLabel, as_count, as_figure, label

_COUNTED = {
    "atomics": "Of single threads",
    "addresses": "Addresses that had any; each block's shared memory has its own",
    "hottest": "The most atomics on one address",
    "warp queue": "The most threads of a warp that want one address at once",
    "block queue": "The most threads of a block that want one address at once",
}
_TIMES = ("modeled", "measured", "waits longest at")
_CHANNEL = "atomics"
_WAIT_MS = 250
_ORDERS = 260
"""Pixels, at the normal size of text, of the orders' height where they stand below the tables."""


class AtomicsTab(QWidget):
    """Counts on the simulator's process, measures on the engine that is chosen.

    Parameters
    ----------
    pattern : Pattern
        The histogram.
    side : callable
        Returns the queue of the simulator that counts.
    engine : Jobs
        The queue of the engine that measures.
    params : callable
        Returns what is chosen on the Run tab.
    """

    failed = pyqtSignal(str, str)
    """What is the matter, and what to do."""
    succeeded = pyqtSignal()
    """Atomics were counted."""

    def __init__(
        self, pattern: Pattern, side: Callable[[], Jobs], engine: Jobs, params: Callable[[], Mapping[str, Any]]
    ) -> None:
        super().__init__()
        self._pattern, self._side, self._engine, self._params = pattern, side, engine, params
        self._image: OpenImage | None = None
        self.study: AtomicsStudy | None = None
        self.times: dict[str, float] = {}
        self._stale = True
        self._turn = 0
        self._soon = after(_WAIT_MS, self.measure, self)
        self.about = ElidedLabel("caption", "What was counted")
        self.device = ElidedLabel("caption", "What was measured on", right=True)
        self.measured = label("measured", "caption", name="What the times are of")
        self.counted: dict[tuple[str, str, str], QLabel] = {}
        self.timed: dict[tuple[str, str], QLabel] = {}
        default = Latencies()
        self.clock = _box("GHz", default.clock_ghz, 0.1, 10, 0.1, "Clock of the model")
        self.to_global = _box("cycles", default.global_cycles, 1, 2000, 10, "Cycles to global memory, one way")
        self.to_shared = _box("cycles", default.shared_cycles, 1, 200, 1, "Cycles to shared memory, one way")
        self.rate = label("", "caption", wrap=True, name="Atomics a second on one address")
        self.chain = [(label("", "code", name=f"Chain, figure {n}"), label("", "caption")) for n in range(1, 7)]
        self.lost = LostUpdates()
        self._lay_out()
        for box in (self.clock, self.to_global, self.to_shared):
            box.valueChanged.connect(lambda _: self._show_times())
        self._show_times()

    def _lay_out(self) -> None:
        contention = Card("Atomics by address, counted", margins=(12, 8, 12, 8))
        contention.setToolTip("Exact numbers, counted by the simulator: neither measured nor modeled")
        contention.head.addWidget(self.about, 1)
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        for column, (name, what) in enumerate(_COUNTED.items(), 2):
            head = label(name, "caption")
            head.setToolTip(what)
            grid.addWidget(head, 0, column, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(column, 1)
        for number, variant in enumerate(VARIANTS):
            first = 3 * number + 1
            grid.addWidget(label(self._pattern.variant(variant).title), first, 0)
            grid.setRowStretch(first + 2, 1)
            for line, space in enumerate(("global", "shared"), first):
                grid.addWidget(label(space, "caption"), line, 1)
                for column, name in enumerate(_COUNTED, 2):
                    cell = label("–", "code", name=f"{name}, {variant}, {space} memory")
                    self.counted[variant, space, name] = cell
                    grid.addWidget(cell, line, column, Qt.AlignmentFlag.AlignRight)
        contention.body.addLayout(grid, 1)

        cost = Card("What queues cost", margins=(12, 8, 12, 10))
        cost.head.addWidget(self.device, 1)
        settings = QGridLayout()
        settings.setHorizontalSpacing(16)
        settings.setVerticalSpacing(2)
        for column, (text, box) in enumerate(
            (("Clock", self.clock), ("Global memory, one way", self.to_global), ("Shared, one way", self.to_shared))
        ):
            heading = label(text, "caption")
            heading.setBuddy(box)
            settings.addWidget(heading, 0, column)
            settings.addWidget(box, 1, column)
        settings.setColumnStretch(3, 1)
        cost.body.addLayout(settings)
        cost.body.addWidget(self.rate)
        followed = QGridLayout()
        followed.setHorizontalSpacing(8)
        followed.setVerticalSpacing(2)
        for number, (figure, of_figure) in enumerate(self.chain):
            column, line = divmod(number, 3)
            followed.addWidget(figure, line, 2 * column, Qt.AlignmentFlag.AlignRight)
            followed.addWidget(of_figure, line, 2 * column + 1)
            followed.setColumnStretch(2 * column + 1, 1)
        cost.body.addLayout(followed)
        table = QGridLayout()
        table.setHorizontalSpacing(14)
        table.setVerticalSpacing(2)
        for column, name in enumerate(_TIMES, 1):
            head = self.measured if name == "measured" else label(name, "caption")
            table.addWidget(head, 0, column, Qt.AlignmentFlag.AlignRight)
            table.setColumnStretch(column, 1)
        for line, variant in enumerate(VARIANTS, 1):
            table.addWidget(label(self._pattern.variant(variant).title), line, 0)
            table.setRowStretch(line, 1)
            for column, name in enumerate(_TIMES, 1):
                cell = label("–", "code", name=f"{name}, {variant}")
                self.timed[variant, name] = cell
                table.addWidget(cell, line, column, Qt.AlignmentFlag.AlignRight)
        cost.body.addLayout(table, 1)

        self._tables = QVBoxLayout()
        self._tables.setSpacing(8)
        # What height is left over keeps the variants apart in both tables.
        self._tables.addWidget(contention, 7)
        self._tables.addWidget(cost, 6)
        cards = QWidget()
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight, cards)
        self._cards.setContentsMargins(0, 0, 0, 0)
        self._cards.setSpacing(8)
        self._cards.addLayout(self._tables, 1)
        self._cards.addWidget(self.lost)
        # Figures and verdicts keep their size: in a window too small for them they are scrolled.
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(cards)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.area)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Put the orders beside the tables or, where they would have to be scrolled to there, below them."""
        self.lost.make_room()
        bar = self.area.verticalScrollBar()
        wide = self._tables.minimumSize().width() + self._cards.spacing() + self.lost.minimumSizeHint().width()
        beside = wide + (bar.sizeHint().width() if bar is not None else 0) <= self.width()
        ways = QBoxLayout.Direction
        self._cards.setDirection(ways.LeftToRight if beside else ways.TopToBottom)
        self.lost.setMinimumHeight(0 if beside else look().px(_ORDERS))

    # --- asking

    def show_image(self, image: OpenImage) -> None:
        """Study another image."""
        self._image = image
        self.study_soon()

    def study_soon(self) -> None:
        """Count and measure in a moment; where the tab is not seen, when it is."""
        self._stale = True
        if self.isVisible():
            self._soon.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._arrange()
        if self._stale:
            self._soon.start()

    def measure(self) -> None:
        """Count the atomics of what is open, and measure the variants."""
        params = dict(self._params())
        of_image = self._pattern.takes(params) == "image"
        if of_image and self._image is None:
            self.about.say("Open an image: its atomics are counted.")
            return
        self._soon.stop()
        self._stale = False
        self._turn += 1
        self.times.clear()
        self._show_times()
        self.about.say("counting…")
        inputs = self._image.inputs if of_image and self._image is not None else {}
        turn, side = self._turn, self._side()
        side.post(_CHANNEL, StudyAtomics(params, self._cut(side) if of_image else {}), lambda e: self._take(turn, e))
        for variant in VARIANTS:
            request = RunPattern(self._pattern.name, variant, letters_of(params), dict(inputs), verify=False)
            # Twice: what is made for the first run is there for the second.
            for again in ("first", "again"):
                self._engine.post(f"{_CHANNEL} {variant} {again}", request, partial(self._take_time, turn, variant))

    def _cut(self, side: Jobs) -> dict[str, Any]:
        """Return the image's top rows, as many as are counted, in the simulator's folder."""
        assert self._image is not None
        values = self._image.values
        rows = max(1, MOST_ELEMENTS // (values.size // len(values)))
        arrays = {"image": np.ascontiguousarray(values[:rows]), "maxval": np.asarray(self._image.maxval, np.uint32)}
        handles = {name: side.folder.put(array) for name, array in arrays.items()}
        for handle in handles.values():
            side.folder.adopt(handle)
        return handles

    def _take(self, turn: int, event: Result | Failure) -> None:
        if turn != self._turn:
            return
        if isinstance(event, Failure):
            self.about.say("")
            if event.kind != "cancelled":
                self.failed.emit(event.message, event.advice)
            return
        assert event.atomics is not None
        self.study = event.atomics
        self.succeeded.emit()
        self.lost.show_study(self.study)
        self._arrange()
        for counts in self.study.counts:
            self._show_counts(counts)
        self._say_about(self.study)
        self._show_times()

    def _take_time(self, turn: int, variant: str, event: Result | Failure) -> None:
        if turn != self._turn or isinstance(event, Failure) or event.report is None:
            return
        self.times[variant] = event.report.time_ms.kernel
        simulated = event.report.simulated
        self.measured.setText(TO_SIMULATE if simulated else "measured")
        self.device.say(f"{'simulated' if simulated else 'measured'} on {event.report.device}, kernel time")
        self._show_times()

    # --- showing

    def _say_about(self, study: AtomicsStudy) -> None:
        counted = study.counts[0].elements
        whole = study.elements
        if self._pattern.takes(self._params()) == "image" and self._image is not None:
            whole = self._image.values.size
            what = f"pixel values of {self._image.path.name}"
        else:
            what = "letters" if self._pattern.takes(self._params()) == "text" else "numbers"
        part = "" if counted == whole else f" of {as_count(whole)}"
        left_out = f", {as_count(study.ignored)} other left out" if study.ignored else ""
        self.about.say(f"{as_count(counted)}{part} {what}{left_out}")

    def _show_counts(self, counts: AtomicCounts) -> None:
        for space, found in (("global", counts.of_global), ("shared", counts.of_shared)):
            for name, value in zip(_COUNTED, _figures(found), strict=True):
                self.counted[counts.variant, space, name].setText(as_count(value) if found.operations else "–")

    def _show_times(self) -> None:
        latencies = Latencies(self.clock.value(), self.to_global.value(), self.to_shared.value())
        each = [latencies.per_second(cycles) / 1e6 for cycles in (latencies.global_cycles, latencies.shared_cycles)]
        self.rate.setText(
            f"Modeled: an address takes one atomic at a time, there and back: {as_figure(each[0])} million a second "
            f"in global memory, {as_figure(each[1])} in shared."
        )
        for place in self.chain:
            for word in place:
                word.setText("")
        if self.study is not None:
            words = chain_in_words(self.study.of_memory, latencies)
            for (figure, what), (value, about) in zip(self.chain, words, strict=False):
                figure.setText(value)
                what.setText(about)
        by_variant = {counts.variant: counts for counts in self.study.counts} if self.study is not None else {}
        for variant in VARIANTS:
            if variant in by_variant:
                found = model(by_variant[variant], latencies)
                self.timed[variant, "modeled"].setText(_milliseconds(found.time_ms))
                self.timed[variant, "waits longest at"].setText(f"{found.bound_by} memory" if found.bound_by else "–")
            time = self.times.get(variant)
            self.timed[variant, "measured"].setText("–" if time is None else _milliseconds(time))


def _figures(found: Contended) -> tuple[int, ...]:
    return found.operations, found.addresses, found.hottest, found.warp_queue, found.block_queue


def _milliseconds(value: float) -> str:
    return f"{value * 1e3:.3g} µs" if value < 0.1 else f"{as_figure(value)} ms"


def _box(unit: str, value: float, low: float, high: float, step: float, name: str) -> QDoubleSpinBox:
    made = QDoubleSpinBox()
    made.setDecimals(1 if step < 1 else 0)
    made.setRange(low, high)
    made.setSingleStep(step)
    made.setValue(value)
    made.setSuffix(f" {unit}")
    made.setAccessibleName(name)
    return made
