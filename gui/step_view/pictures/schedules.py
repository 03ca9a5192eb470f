"""Two schedules side by side: the same run in lockstep and in another schedule, and their first difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QBoxLayout, QWidget

from gpu.base.schedules import KINDS, Schedule
from gpu.declaration.pattern import Integer, Parameter, Params, find_by_role
from gpu.declaration.roles import Role
from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.painting.values import format_value
from gui.qt.events import StyleListener
from gui.step_view.dataflow.view import FlowView
from gui.step_view.pictures.schedule_search import (
    MAX_SEEDS,
    ScheduleComparison,
    SmallestSearch,
    count_threads,
    list_other_schedules,
)
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import RunRequest, list_smaller_requests
from gui.step_view.recording.stepper import Stepper
from gui.widgets.basic import button, column, label, row

if TYPE_CHECKING:
    from gpu.stepping.schedule_comparison import Difference

_HEAD_HEIGHT, _TITLE_HEIGHT = 28, 24
"""Pixels of the line above the pictures, and of a picture's title, at the normal text size."""
ONE_THREAD_MESSAGE = "There is only one thread, so no schedule can differ."


class SchedulesView(StyleListener, QWidget):
    """The current dataflow side by side with that of another schedule.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the recording simulator.
    channel : str
        The queue's channel for this view's requests.
    """

    moment_requested = pyqtSignal(int)
    params_requested = pyqtSignal(dict)
    """Parameters to record instead: a smaller size at which schedules differ too."""

    def __init__(self, jobs: Callable[[], RequestQueue], channel: str) -> None:
        super().__init__()
        self.stepper = Stepper(jobs, channel, self)
        self.views = (FlowView(fits_all=True), FlowView())
        self.titles = (label("", "card-title", name="First schedule"), label("", "card-title", name="Second schedule"))
        self.verdict = label("", "muted", wrap=True, name="First difference of the schedules")
        self.models: tuple[RecordingModels | None, RecordingModels | None] = (None, None)
        self.difference: Difference | None = None
        self.settled = False
        self._other_schedule = ""
        self._request: RunRequest | None = None
        self.parameters: tuple[Parameter, ...] = ()
        """Parameters of the pattern; one of them has the size role."""
        self._remaining: list[str] = []
        self._tried_count = 0
        self._comparison_number = 0
        self._moment = 0
        self._comparison = ScheduleComparison(self)
        self.search = SmallestSearch(jobs, f"{channel}, smallest", self)
        self._smallest_params: Params = {}
        self._sides = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._sides.setSpacing(4)
        for title, view in zip(self.titles, self.views, strict=True):
            view.setMinimumSize(120, 90)  # two views side by side must not squeeze the source
            title.setContentsMargins(14, 0, 0, 0)
            title.setMinimumWidth(1)  # a long title must not push the other side out
            self._sides.addLayout(column(title, view, spacing=2, stretch=1), 1)
        self.smallest_button = button("", tip="Record the smallest size at which these schedules differ")
        self.smallest_button.setProperty("small", True)
        self.smallest_button.clicked.connect(lambda: self.params_requested.emit(self._smallest_params))
        self.smallest_button.hide()
        head = row(self.verdict, self.smallest_button, margins=(14, 0, 14, 0), stretch=0)
        self.setLayout(column(head, self._sides, spacing=4, stretch=1))
        self.stepper.loaded.connect(self._receive_recording)
        self.stepper.failed.connect(self._show_failure)
        self._comparison.finished.connect(self._show_difference)
        self.search.difference_found.connect(self._offer_smallest)

    def start_comparison(self, request: RunRequest, models: RecordingModels) -> None:
        """Show the current recording, and record other schedules until one differs."""
        self._request, self.models = request, (models, None)
        self.difference, self.settled = None, False
        self.views[0].open(models.layout)
        self.views[1].open(None)
        self.titles[0].setText(Schedule.parse(request.schedule).title)
        self.titles[1].setText("")
        self._arrange_views()
        self.search.stop()
        self.smallest_button.hide()
        self._remaining, self._tried_count = list_other_schedules(request.schedule, models), 0
        has_several_threads = count_threads(models) > 1
        for second in (self.titles[1], self.views[1]):
            second.setVisible(has_several_threads)
        if not has_several_threads:
            self.settled = True
            self.verdict.setText(ONE_THREAD_MESSAGE)
            return
        self._record()

    def _arrange_views(self) -> None:
        """Place the pictures side by side, or one above the other where their cells are larger so."""
        port, width, height = self.views[0].viewport, self.width(), self.height() - look().px(_HEAD_HEIGHT)
        title = look().px(_TITLE_HEIGHT)
        beside, above = (
            port.fitted_cell_area(width / 2, height - title),
            port.fitted_cell_area(width, height / 2 - title),
        )
        is_beside = port.fits_values(width / 2) and beside >= above
        self._sides.setDirection(QBoxLayout.Direction.LeftToRight if is_beside else QBoxLayout.Direction.TopToBottom)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._arrange_views()

    def _record(self) -> None:
        assert self._request is not None
        schedule = self._remaining.pop(0)
        self._tried_count += 1
        self.verdict.setText(f"Recording another schedule: {Schedule.parse(schedule).title}…")
        self.stepper.record(replace(self._request, schedule=schedule))

    def _receive_recording(self, request: RunRequest, models: RecordingModels) -> None:
        first = self.models[0]
        assert first is not None
        self.models = (first, models)
        self.titles[1].setText(Schedule.parse(request.schedule).title)
        self._other_schedule = request.schedule
        self.views[1].open(models.layout)
        self.show_moment(self._moment)
        self._comparison_number += 1
        self._comparison.start(self._comparison_number, first, models)

    def _show_difference(self, number: int, difference: Difference | None, result: Difference | None) -> None:
        first = self.models[0]
        if number != self._comparison_number or self.models[1] is None or first is None or self._request is None:
            return
        self.difference = difference
        if difference is None:
            if self._remaining:
                self._record()
                return
            self.settled = True
            races = any(finding.kind == "race" for _, finding in first.recording.findings)
            self.verdict.setText(
                f"No difference: {self._tried_count} other schedules give the same values everywhere."
                + (" But there is a race: further schedules may differ." if races else "")
            )
            if races:
                self.search.start(
                    list_smaller_requests(self._request, self.parameters),
                    list_other_schedules(self._request.schedule, first),
                )
            return
        self.settled = True
        self.search.start(list_smaller_requests(self._request, self.parameters), self._similar_schedules())
        for view, number_of_row, cell in zip(self.views, difference.rows, difference.cells, strict=True):
            view.mark_difference((number_of_row, cell) if number_of_row is not None and cell is not None else None)
        self.verdict.setText(self._describe_difference(difference))
        if result is not None:
            for title, schedule, value in zip(
                self.titles, (self._request.schedule, self._other_schedule), result.values, strict=True
            ):
                value_text = "no value" if value is None else format_value(value.item())
                title.setText(f"{Schedule.parse(schedule).title} → {result.name}[{result.element}] = {value_text}")
        rows = difference.rows
        if rows[0] is not None:
            self.moment_requested.emit(first.layout.rows[rows[0]].last + 1)

    def _similar_schedules(self) -> list[str]:
        """Return schedules of the kind that differs, this one first; with shuffled warps, also independent lanes.

        Independent lanes may differ at a smaller size, within one warp.
        """
        schedule = Schedule.parse(self._other_schedule)
        if not schedule.kind.seeded:
            return [self._other_schedule]
        kinds = [KINDS["lanes"]] if schedule.kind.name == "shuffle" else []
        seeds = dict.fromkeys((schedule.seed, *range(MAX_SEEDS)))
        return [str(Schedule(kind, seed)) for kind in (*kinds, schedule.kind) for seed in seeds]

    def _offer_smallest(self, request: StepPattern) -> None:
        """Offer to record the smallest size at which schedules differ."""
        size = find_by_role(self.parameters, Role.SIZE)
        assert isinstance(size, Integer)
        self._smallest_params = {
            parameter.name: request.params[parameter.name]
            for parameter in self.parameters
            if parameter.role in (Role.SIZE, Role.BLOCK)
        }
        self.smallest_button.setText(f"Smallest example: {request.params[size.name]} {size.unit}".rstrip())
        self.smallest_button.show()

    def _describe_difference(self, difference: Difference) -> str:
        values = ["no value" if value is None else format_value(value.item()) for value in difference.values]
        writers = []
        for each, models, place in zip(difference.writers, self.models, difference.rows, strict=True):
            if each is None or models is None:
                writers.append("")
                continue
            launch = 0 if place is None else models.layout.rows[place].launch
            thread = models.recording.name_thread(launch, each.block, each.thread)
            writers.append(f" by {thread}, line {each.line}")
        if writers[0] == writers[1]:
            writers = ["", writers[0]]
        first, second = (value + writer for value, writer in zip(values, writers, strict=True))
        return f"First difference at {difference.name}[{difference.element}]: {first}; in the other schedule {second}."

    def _show_failure(self, failure: Failure) -> None:
        if self._remaining and failure.kind != "cancelled":
            self._record()  # some schedules do not support every kernel, such as a grid barrier
            return
        self.settled = True
        self.verdict.setText(failure.message)

    def show_moment(self, moment: int) -> None:
        """Show the first schedule at a moment, and the other one at the same row."""
        self._moment = moment
        first, second = self.models
        if first is None:
            return
        self.views[0].show_moment(moment)
        if second is None or not second.layout.rows:
            return
        row = self.views[0].current_row
        rows = second.layout.rows
        if moment >= first.recording.event_count or row >= len(rows):
            self.views[1].show_moment(second.recording.event_count)
        else:
            self.views[1].show_moment(0 if row < 0 or moment == 0 else max(each.last for each in rows[: row + 1]) + 1)

    def _restyle(self) -> None:
        self.verdict.setMinimumHeight(look().px(22))
