"""Orders of one program that may differ: which ones are tried, and the smallest size at which two of them do."""

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
"""How many orders of a kind are tried to find one that makes a difference."""
MOST_APART = 12_000
"""Statements of single lanes up to which lanes are let go on their own: each is then an event."""


def threads(models: Models) -> int:
    """Return how many threads the largest launch has."""
    return max(int(np.prod(launch.grid) * np.prod(launch.block)) for each in models.recording.launches
               for launch in each.trace.launches)  # fmt: skip


def other_orders(schedule: str, models: Models) -> list[str]:
    """Return the schedules that may differ from that of a recording, in the order in which they are tried."""
    several_warps = any(np.prod(launch.trace.grid) * warps > 1
                        for launch, warps in zip(models.recording.launches, models.warps, strict=True))  # fmt: skip
    lanes = sum(launch.trace.lane_events for launch in models.recording.launches)
    kinds = {"shuffle": several_warps, "lanes": lanes <= MOST_APART, "cached": True}
    found = [ROUND_ROBIN] if schedule != ROUND_ROBIN else []
    for seed in range(MOST_SEEDS):
        # With the first seed all that may be kept in registers is.
        tried = [Schedule(KINDS[name], seed + (name != "cached")) for name, useful in kinds.items() if useful]
        found += [str(each) for each in tried if str(each) != schedule]
    return found


class Comparison(QObject):
    """Compares recordings in the background."""

    found = pyqtSignal(int, object, object)
    """The number of a comparison, and where the two first differ and at the end: a Difference each, or None."""

    def start(self, number: int, first: Models, second: Models) -> None:
        """Compare two."""

        def compare() -> None:
            from gpu.stepping.dataflow.compare import difference_at_the_end, first_difference

            flows = (first.layout.dataflow, second.layout.dataflow)
            self.found.emit(number, first_difference(*flows), difference_at_the_end(*flows))

        in_background(compare)


class SmallestSearch(QObject):
    """Looks for the smallest size at which an order differs from another, recording after recording.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator that records.
    channel : str
        Where its requests wait.
    """

    found = pyqtSignal(object)
    """The request that makes the difference visible."""
    ended = pyqtSignal()
    """No more is tried."""

    def __init__(self, jobs: Callable[[], Jobs], channel: str, parent: QObject) -> None:
        super().__init__(parent)
        self._stepper = Stepper(jobs, channel, self, priority=0)
        self._comparison = Comparison(self)
        self._requests: list[RunRequest] = []
        self._schedules: list[str] = []
        self._left: list[str] = []
        self._first: Models | None = None
        self._number = 0
        self.running = False
        self._stepper.loaded.connect(self._take)
        self._stepper.failed.connect(self._skip)
        self._comparison.found.connect(self._compared)

    def start(self, requests: Sequence[RunRequest], schedules: Sequence[str]) -> None:
        """Try some requests, the smallest first, each against some orders of it."""
        self.stop()
        self._requests, self._schedules, self.running = list(requests), list(schedules), True
        self._next_size()

    def stop(self) -> None:
        """Look no further."""
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
        self._left = list(self._schedules)
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
        if not self._left:
            self._requests.pop(0)
            self._next_size()
            return
        self._stepper.record(replace(self._requests[0], schedule=self._left.pop(0)))

    def _skip(self, failure: Failure) -> None:
        """A size that the pattern does not take is none."""
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
