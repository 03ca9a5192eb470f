"""Requests for modeled timelines to the simulator's process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import InputError
from gpu.messages.events import Failure
from gpu.messages.timelines import TimelineKernel, TimelinePattern, TimelineResult
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import TimeModeler

TimelineRequest = TimelinePattern | TimelineKernel


@dataclass(frozen=True)
class TimelineSubject:
    """The subject of a timeline.

    Parameters
    ----------
    modeling : TimeModeler
        Provides the selected GPU.
    make_request : callable
        Returns the request for a GPU's key, a launch (None for the longest) and the threads per block (0 for the Run
        tab's); raises InputError if there is no timeline.
    block_sizes : callable
        Returns the possible numbers of threads per block, and the Run tab's; empty if they are fixed.
    """

    modeling: TimeModeler
    make_request: Callable[[str, int | None, int], TimelineRequest]
    block_sizes: Callable[[], tuple[Sequence[int], int]]


class TimelineJobs(QObject):
    """Requests timelines; a newer request replaces older ones, and an unchanged one is not repeated.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the simulator's process.
    channel : str
        The queue's channel for these requests.
    """

    timelines_ready = pyqtSignal(object)
    """The RunTimelines of the last request."""
    failed = pyqtSignal(object)
    """The Failure of the last request."""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self, jobs: Callable[[], RequestQueue], channel: str, subject: TimelineSubject, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._jobs, self._channel, self._subject = jobs, channel, subject
        self._last_request = b""
        self._selected_threads = 0
        self.busy = False

    @property
    def modeling(self) -> TimeModeler:
        """Return the object that provides the selected GPU."""
        return self._subject.modeling

    @property
    def block_sizes(self) -> tuple[Sequence[int], int]:
        """Return the possible numbers of threads per block, and the Run tab's."""
        return self._subject.block_sizes()

    @property
    def threads(self) -> int:
        """Return the threads per block selected here; 0 for the Run tab's."""
        sizes, run_threads = self.block_sizes
        return (
            self._selected_threads if self._selected_threads in sizes and self._selected_threads != run_threads else 0
        )

    def select_block_size(self, threads: int) -> None:
        """Set the threads per block, and request timelines."""
        self._selected_threads = threads
        self.request_timelines()

    def request_timelines(self, launch: int | None = None) -> None:
        """Request timelines for the current settings, unless they are the last requested ones."""
        try:
            request = self._subject.make_request(self._subject.modeling.gpu, launch, self.threads)
        except InputError as error:
            self.forget()
            self.failed.emit(Failure("input", error.message, error.advice))
            return
        key = pickle.dumps(request)
        if key == self._last_request:
            return
        self._last_request = key
        self._set_busy(True)
        self._jobs().post(self._channel, request, lambda event: self._receive_timelines(key, event), priority=1)

    def forget(self) -> None:
        """Forget the last request, so that the next one is always sent."""
        self._last_request = b""
        self._set_busy(False)

    def stop(self) -> bool:
        """Stop the current request; return whether there was one."""
        if self.busy and self._jobs().has_request(self._channel):
            self._jobs().stop()
            return True
        return False

    def _receive_timelines(self, key: bytes, event: TimelineResult | Failure) -> None:
        if key != self._last_request:
            return
        self._set_busy(False)
        if isinstance(event, Failure):
            self._last_request = b""
            self.failed.emit(event)
            return
        self.timelines_ready.emit(event.timelines.join_spans(event.arrays))

    def _set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.busy = busy
            self.busy_changed.emit(busy)
