"""Schedules of one program that may differ, and the search for the smallest size at which two of them do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.schedules import KINDS, ROUND_ROBIN, Schedule
from gpu.messages.events import Failure
from gui.model.request_queue import RequestQueue
from gui.qt.background import run_in_background
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import RunRequest
from gui.step_view.recording.stepper import Stepper

if TYPE_CHECKING:
    from gpu.stepping.schedule_comparison import Difference

MAX_SEEDS = 3
"""Number of seeds tried for each kind of schedule."""
MAX_LANE_EVENTS = 12_000
"""Maximum number of recorded lane statements for trying independent lanes, where each of them is an event."""


def count_threads(models: RecordingModels) -> int:
    """Return the number of threads of the largest launch."""
    return max(int(np.prod(launch.grid) * np.prod(launch.block)) for each in models.recording.launches
               for launch in each.trace.launches)  # fmt: skip


def list_other_schedules(schedule: str, models: RecordingModels) -> list[str]:
    """Return the schedules to compare with that of a recording, in the order in which they are tried."""
    recording = models.recording
    several_warps = recording.has_several_blocks or max(recording.warps, default=0) > 1
    lanes = sum(launch.trace.lane_events for launch in recording.launches)
    kinds = {"shuffle": several_warps, "lanes": lanes <= MAX_LANE_EVENTS, "cached": True}
    result = [ROUND_ROBIN] if schedule != ROUND_ROBIN else []
    for seed in range(MAX_SEEDS):
        # With seed 0, everything that may stay in registers does.
        tried = [Schedule(KINDS[name], seed + (name != "cached")) for name, useful in kinds.items() if useful]
        result += [str(each) for each in tried if str(each) != schedule]
    return result


class ScheduleComparison(QObject):
    """Background comparison of two recordings."""

    finished = pyqtSignal(int, object, object)
    """The number of a comparison, its first difference, and its difference at the end; a Difference or None each."""

    def start(self, number: int, first: RecordingModels, second: RecordingModels) -> None:
        """Compare two recordings, and emit `finished` with `number`."""

        def compare() -> None:
            from gpu.stepping.schedule_comparison import find_final_difference, find_first_difference

            flows = (first.layout.dataflow, second.layout.dataflow)
            self.finished.emit(number, find_first_difference(*flows), find_final_difference(*flows))

        run_in_background(compare)


class SmallestSearch(QObject):
    """Search for the smallest size at which two schedules differ, by recording one size after the other.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the recording simulator.
    channel : str
        The queue's channel for this search's requests.
    """

    difference_found = pyqtSignal(object)
    """The request that shows the difference."""
    exhausted = pyqtSignal()
    """The search ended without a result."""

    def __init__(self, jobs: Callable[[], RequestQueue], channel: str, parent: QObject) -> None:
        super().__init__(parent)
        self._stepper = Stepper(jobs, channel, self, priority=0)
        self._comparison = ScheduleComparison(self)
        self._requests: list[RunRequest] = []
        self._schedules: list[str] = []
        self._remaining: list[str] = []
        self._first: RecordingModels | None = None
        self._number = 0
        self.running = False
        self._stepper.loaded.connect(self._receive_recording)
        self._stepper.failed.connect(self._skip_size)
        self._comparison.finished.connect(self._receive_comparison)

    def start(self, requests: Sequence[RunRequest], schedules: Sequence[str]) -> None:
        """Record each request, smallest first, in its schedule and the given ones until two differ."""
        self.stop()
        self._requests, self._schedules, self.running = list(requests), list(schedules), True
        self._record_next_size()

    def stop(self) -> None:
        """Stop the search."""
        self._number += 1
        if self.running:
            self.running = False
            self._stepper.forget()

    def _record_next_size(self) -> None:
        self._first = None
        if not self._requests:
            self.running = False
            self.exhausted.emit()
            return
        self._remaining = list(self._schedules)
        self._stepper.record(self._requests[0])

    def _receive_recording(self, request: RunRequest, models: RecordingModels) -> None:
        if not self.running:
            return
        if self._first is None:
            self._first = models
            self._record_next_schedule()
            return
        self._number += 1
        self._comparison.start(self._number, self._first, models)

    def _record_next_schedule(self) -> None:
        if not self._remaining:
            self._requests.pop(0)
            self._record_next_size()
            return
        self._stepper.record(replace(self._requests[0], schedule=self._remaining.pop(0)))

    def _skip_size(self, failure: Failure) -> None:
        """Skip a size that the pattern does not support."""
        if self.running:
            self._requests.pop(0)
            self._record_next_size()

    def _receive_comparison(self, number: int, difference: Difference | None, result: Difference | None) -> None:
        if number != self._number or not self.running:
            return
        if difference is None:
            self._record_next_schedule()
            return
        self.running = False
        self.difference_found.emit(self._requests[0])
