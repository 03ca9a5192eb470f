"""Two orders of the warps side by side: the same run in lockstep and shuffled, and where they first differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QEvent, QObject, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from gpu.messages.requests import Failure
from gui.model.jobs import Jobs
from gui.painting.theme import look
from gui.painting.values import as_text, thread_name
from gui.qt.background import in_background
from gui.qt.events import is_of
from gui.step_view.dataflow.view import FlowView
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import RunRequest
from gui.step_view.recording.stepper import Stepper
from gui.widgets.basic import ElidedLabel, button, label, row

if TYPE_CHECKING:
    from gpu.stepping.dataflow.compare import Difference

MOST_SEEDS = 6
"""How many shuffled orders are tried to find one that makes a difference."""
ONE_WARP = "There is one warp, so no order can differ."


def may_differ(models: Models) -> bool:
    """Return whether any launch has more than one warp: it is their order that is shuffled."""
    return any(np.prod(launch.trace.grid) * warps > 1
               for launch, warps in zip(models.recording.launches, models.warps, strict=True))  # fmt: skip


class _Comparison(QObject):
    """Compares recordings in the background."""

    found = pyqtSignal(int, object)

    def start(self, number: int, first: Models, second: Models) -> None:
        """Compare two; `found` tells the number and the Difference or None."""

        def compare() -> None:
            from gpu.stepping.dataflow.compare import first_difference

            self.found.emit(number, first_difference(first.layout.dataflow, second.layout.dataflow))

        in_background(compare)


class OrdersView(QWidget):
    """The dataflow as it is played, and beside it that of another order.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator that records.
    channel : str
        Where its requests wait.
    """

    moment_wanted = pyqtSignal(int)
    several_wanted = pyqtSignal()
    """More warps are asked for than there are."""

    def __init__(self, jobs: Callable[[], Jobs], channel: str) -> None:
        super().__init__()
        self.stepper = Stepper(jobs, channel, self)
        self.views = (FlowView(whole=True), FlowView(whole=True))
        self.titles = (label("", "card-title", name="First order"), label("", "card-title", name="Second order"))
        self.verdict = ElidedLabel("muted", "Where the orders first differ")
        self.models: tuple[Models | None, Models | None] = (None, None)
        self.difference: Difference | None = None
        self.settled = False
        self._request: RunRequest | None = None
        self._seed = 0
        self._number = 0
        self._moment = 0
        self.can_take_several = False
        """Whether there is a size with more warps."""
        self._comparison = _Comparison(self)
        self._sides = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._sides.setSpacing(4)
        for title, view in zip(self.titles, self.views, strict=True):
            side = QVBoxLayout()
            side.setSpacing(2)
            title.setContentsMargins(14, 0, 0, 0)
            side.addWidget(title)
            side.addWidget(view, 1)
            self._sides.addLayout(side, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(4)
        self.several = button("Take several warps", tip="So many elements that orders can differ")
        self.several.setProperty("small", True)
        self.several.clicked.connect(self.several_wanted)
        self.several.hide()
        head = row(self.verdict, self.several)
        head.setContentsMargins(14, 0, 14, 0)
        head.setStretch(0, 1)
        whole.addLayout(head)
        whole.addLayout(self._sides, 1)
        self.stepper.loaded.connect(self._take)
        self.stepper.failed.connect(self._fail)
        self._comparison.found.connect(self._show_difference)

    def show_first(self, request: RunRequest, models: Models) -> None:
        """Take what is played, and record other orders of it until one differs."""
        self._request, self.models = request, (models, None)
        self.difference, self.settled = None, False
        self.views[0].open(models.layout, models.warps, several_blocks=models.several_blocks)
        self.views[1].open(None, (1,), several_blocks=False)
        self.titles[0].setText(_spoken(request.schedule))
        self.titles[1].setText("")
        self._place()
        self._seed = 0
        several = may_differ(models)
        self.several.setVisible(not several and self.can_take_several)
        for second in (self.titles[1], self.views[1]):
            second.setVisible(several)
        if not several:
            self.settled = True
            self.verdict.say(ONE_WARP)
            return
        self._record()

    def _place(self) -> None:
        """Put the pictures side by side, or one above the other where half of the width is too narrow for values."""
        beside = self.views[0].viewport.holds_values(self.width() / 2)
        self._sides.setDirection(QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._place()

    def _record(self) -> None:
        assert self._request is not None
        self._seed += 1
        shuffled = self._request.schedule != "round-robin"
        schedule = "round-robin" if shuffled and self._seed == 1 else f"shuffle:{self._seed}"
        self.verdict.say(f"Recording another order: {_spoken(schedule)}…")
        self.stepper.record(replace(self._request, schedule=schedule))

    def _take(self, request: RunRequest, models: Models) -> None:
        first = self.models[0]
        assert first is not None
        self.models = (first, models)
        self.titles[1].setText(_spoken(request.schedule))
        self.views[1].open(models.layout, models.warps, several_blocks=models.several_blocks)
        self.show_moment(self._moment)
        self._number += 1
        self._comparison.start(self._number, first, models)

    def _show_difference(self, number: int, difference: Difference | None) -> None:
        if number != self._number or self.models[1] is None:
            return
        self.difference = difference
        if difference is None:
            if self._seed < MOST_SEEDS:
                self._record()
                return
            self.settled = True
            self.verdict.say(f"No difference: {MOST_SEEDS} other orders give the same values everywhere.")
            return
        self.settled = True
        for view, at, cell in zip(self.views, difference.rows, difference.cells, strict=True):
            view.show_differing((at, cell) if at is not None and cell is not None else None)
        self.verdict.say(self._in_words(difference))
        rows = difference.rows
        if rows[0] is not None and self.models[0] is not None:
            self.moment_wanted.emit(self.models[0].layout.rows[rows[0]].last + 1)

    def _in_words(self, difference: Difference) -> str:
        several = self.models[0] is not None and self.models[0].several_blocks
        parts = []
        for value, writer in zip(difference.values, difference.writers, strict=True):
            text = "nothing" if value is None else as_text(value.item())
            if writer is not None:
                text += f" by {thread_name(writer.block, writer.thread, several_blocks=several)}, line {writer.line}"
            parts.append(text)
        return f"{difference.name}[{difference.element}] differs first: {parts[0]}; in the other order {parts[1]}."

    def _fail(self, failure: Failure) -> None:
        self.settled = True
        self.verdict.say(failure.message)

    def show_moment(self, moment: int) -> None:
        """Show the first order at a moment, and the other one where it has come to the same row."""
        self._moment = moment
        first, second = self.models
        if first is None:
            return
        self.views[0].show_moment(moment)
        if second is None or not second.layout.rows:
            return
        row = self.views[0].current_row
        rows = second.layout.rows
        if moment >= first.recording.moments or row >= len(rows):
            self.views[1].show_moment(second.recording.moments)
        else:
            self.views[1].show_moment(0 if row < 0 or moment == 0 else max(each.last for each in rows[: row + 1]) + 1)

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.StyleChange):
            self.verdict.setMinimumHeight(look().px(22))


def _spoken(schedule: str) -> str:
    """Return an order's name as people say it."""
    name, _, seed = schedule.partition(":")
    return "In lockstep" if name == "round-robin" else f"Shuffled, seed {seed}"
