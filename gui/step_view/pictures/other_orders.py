"""Schedules of one program that may differ, and the search for the smallest size at which two of them do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.requests import Failure
from gpu.schedules import KINDS, ROUND_ROBIN, Schedule
from gui.model.jobs import Jobs
from gui.qt.background import in_background
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import RunRequest
from gui.step_view.recording.stepper import Stepper

if TYPE_CHECKING:
    from gpu.stepping.dataflow.compare import Difference

MOST_SEEDS = 3
"""Number of seeds tried for each kind of schedule."""
MOST_APART = 12_000
"""Maximum number of recorded lane statements for trying independent lanes, where each of them is an event."""


def threads(models: Models) -> int:
    """Return the number of threads of the largest launch."""
    return max(int(np.prod(launch.grid) * np.prod(launch.block)) for each in models.recording.launches
               for launch in each.trace.launches)  # fmt: skip


def other_orders(schedule: str, models: Models) -> list[str]:
    """Return the schedules to compare with that of a recording, in the order in which they are tried."""
    several_warps = any(np.prod(launch.trace.grid) * warps > 1
                        for launch, warps in zip(models.recording.launches, models.warps, strict=True))  # fmt: skip
    lanes = sum(launch.trace.lane_events for launch in models.recording.launches)
    kinds = {"shuffle": several_warps, "lanes": lanes <= MOST_APART, "cached": True}
    result = [ROUND_ROBIN] if schedule != ROUND_ROBIN else []
    for seed in range(MOST_SEEDS):
        # With seed 0, everything that may stay in registers does.
        tried = [Schedule(KINDS[name], seed + (name != "cached")) for name, useful in kinds.items() if useful]
        result += [str(each) for each in tried if str(each) != schedule]
    return result


class Comparison(QObject):
    """Background comparison of two recordings."""

    found = pyqtSignal(int, object, object)
    """The number of a comparison, its first difference, and its difference at the end; a Difference or None each."""

    def start(self, number: int, first: Models, second: Models) -> None:
        """Compare two recordings, and emit `found` with `number`."""

        def compare() -> None:
            from gpu.stepping.dataflow.compare import difference_at_the_end, first_difference

            flows = (first.layout.dataflow, second.layout.dataflow)
            self.found.emit(number, first_difference(*flows), difference_at_the_end(*flows))

        in_background(compare)


class SmallestSearch(QObject):
    """Search for the smallest size at which two schedules differ, by recording one size after the other.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the recording simulator.
    channel : str
        The queue's channel for this search's requests.
    """

    found = pyqtSignal(object)
    """The request that shows the difference."""
    ended = pyqtSignal()
    """The search ended without a result."""

    def __init__(self, jobs: Callable[[], Jobs], channel: str, parent: QObject) -> None:
        super().__init__(parent)
        self._stepper = Stepper(jobs, channel, self, priority=0)
        self._comparison = Comparison(self)
        self._requests: list[RunRequest] = []
        self._schedules: list[str] = []
        self._remaining: list[str] = []
        self._first: Models | None = None
        self._number = 0
        self.running = False
        self._stepper.loaded.connect(self._take)
        self._stepper.failed.connect(self._skip)
        self._comparison.found.connect(self._compared)

    def start(self, requests: Sequence[RunRequest], schedules: Sequence[str]) -> None:
        """Record each request, smallest first, in its schedule and the given ones until two differ."""
        self.stop()
        self._requests, self._schedules, self.running = list(requests), list(schedules), True
        self._next_size()

    def stop(self) -> None:
        """Stop the search."""
        self._number += 1
        if self.running:
            self.running = False
            self._stepper.forget()

    def _next_size(self) -> None:
        self._first = None
        if not self._requests:
            self.running = False
            self.ended.emit()
            return
        self._remaining = list(self._schedules)
        self._stepper.record(self._requests[0])

    def _take(self, request: RunRequest, models: Models) -> None:
        if not self.running:
            return
        if self._first is None:
            self._first = models
            self._next_order()
            return
        self._number += 1
        self._comparison.start(self._number, self._first, models)

    def _next_order(self) -> None:
        if not self._remaining:
            self._requests.pop(0)
            self._next_size()
            return
        self._stepper.record(replace(self._requests[0], schedule=self._remaining.pop(0)))

    def _skip(self, failure: Failure) -> None:
        """Skip a size that the pattern does not support."""
        if self.running:
            self._requests.pop(0)
            self._next_size()

    def _compared(self, number: int, difference: Difference | None, result: Difference | None) -> None:
        if number != self._number or not self.running:
            return
        if difference is None:
            self._next_order()
            return
        self.running = False
        self.found.emit(self._requests[0])
