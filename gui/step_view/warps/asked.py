"""Requests for modeled timelines to the simulator's process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.errors import InputError
from gpu.messages.requests import Failure, Result, TimelineKernel, TimelinePattern
from gpu.messages.timelines import RunTimelines
from gui.model.jobs import Jobs
from gui.model.modeling import Modeling

TimelineRequest = TimelinePattern | TimelineKernel


@dataclass(frozen=True)
class Timed:
    """The subject of a timeline.

    Parameters
    ----------
    modeling : Modeling
        Provides the selected GPU.
    request : callable
        Returns the request for a GPU's key, a launch (None for the longest) and the threads per block (0 for the Run
        tab's); raises InputError if there is no timeline.
    blocks : callable
        Returns the possible numbers of threads per block, and the Run tab's; empty if they are fixed.
    """

    modeling: Modeling
    request: Callable[[str, int | None, int], TimelineRequest]
    blocks: Callable[[], tuple[Sequence[int], int]]


class TimelineJobs(QObject):
    """Requests timelines; a newer request replaces older ones, and an unchanged one is not repeated.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the simulator's process.
    channel : str
        The queue's channel for these requests.
    timed : Timed
    """

    found = pyqtSignal(object)
    """The RunTimelines of the last request."""
    failed = pyqtSignal(object)
    """The Failure of the last request."""
    busy_changed = pyqtSignal(bool)

    def __init__(self, jobs: Callable[[], Jobs], channel: str, timed: Timed, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs, self._channel, self._timed = jobs, channel, timed
        self._requested = b""
        self._threads = 0
        self.busy = False

    @property
    def modeling(self) -> Modeling:
        """Return the object that provides the selected GPU."""
        return self._timed.modeling

    @property
    def blocks(self) -> tuple[Sequence[int], int]:
        """Return the possible numbers of threads per block, and the Run tab's."""
        return self._timed.blocks()

    @property
    def threads(self) -> int:
        """Return the threads per block selected here; 0 for the Run tab's."""
        sizes, run_threads = self.blocks
        return self._threads if self._threads in sizes and self._threads != run_threads else 0

    def choose_block(self, threads: int) -> None:
        """Set the threads per block, and request timelines."""
        self._threads = threads
        self.ask()

    def ask(self, launch: int | None = None) -> None:
        """Request timelines for the current settings, unless they are the last requested ones."""
        try:
            request = self._timed.request(self._timed.modeling.gpu, launch, self.threads)
        except InputError as error:
            self.forget()
            self.failed.emit(Failure("input", error.message, error.advice))
            return
        key = pickle.dumps(request)
        if key == self._requested:
            return
        self._requested = key
        self._set_busy(True)
        self._jobs().post(self._channel, request, lambda event: self._take(key, event), priority=1)

    def forget(self) -> None:
        """Forget the last request, so that the next one is always sent."""
        self._requested = b""
        self._set_busy(False)

    def stop(self) -> bool:
        """Stop the current request; return whether there was one."""
        if self.busy and self._jobs().waits(self._channel):
            self._jobs().stop()
            return True
        return False

    def _take(self, key: bytes, event: Result | Failure) -> None:
        if key != self._requested:
            return
        self._set_busy(False)
        if isinstance(event, Failure):
            self._requested = b""
            self.failed.emit(event)
            return
        assert event.timelines is not None
        timelines: RunTimelines = event.timelines.together(event.arrays)
        self.found.emit(timelines)

    def _set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.busy = busy
            self.busy_changed.emit(busy)
