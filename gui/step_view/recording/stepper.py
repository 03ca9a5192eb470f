"""Requests for recordings to the simulator's process; results are read in the background."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import LockstepError
from gpu.declaration.pattern import CountedText
from gpu.messages.events import Failure
from gpu.messages.runs.recordings import RecordingFile
from gui.model.request_queue import RequestQueue
from gui.qt.background import run_in_background
from gui.step_view.recording import models
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import ReadRecording, RunRequest, StepRequest

STALE_S = 2.0
"""Seconds after which a recording that is no longer needed is stopped."""


class Stepper(QObject):
    """Recorder of one page's runs; a newer request replaces older ones.

    Parameters
    ----------
    jobs : callable
        Returns the job queue of the simulator's process, and starts the process at the first call.
    channel : str
        The queue's channel for this recorder's requests.
    priority : int
        Priority of the requests.
    """

    loaded = pyqtSignal(object, object)
    """A StepRequest, and the Models of its recording."""
    failed = pyqtSignal(object)
    busy_changed = pyqtSignal(bool)
    _read = pyqtSignal(int, object, object)

    def __init__(
        self, jobs: Callable[[], RequestQueue], channel: str, parent: QObject | None = None, *, priority: int = 1
    ) -> None:
        super().__init__(parent)
        self._jobs, self._channel, self._priority = jobs, channel, priority
        self._last_number = 0
        self.busy = False
        self.path = ""
        self._handles: object = None
        self._read.connect(self._receive_models)

    @property
    def jobs(self) -> RequestQueue:
        """Return the job queue, after starting its process."""
        return self._jobs()

    def record(self, request: StepRequest, text: CountedText | None = None, first_moment: int = 0) -> None:
        """Record a run, or read a saved recording; this replaces the previous request.

        Parameters
        ----------
        text : CountedText or None
            For a histogram of a text, the names of its arrays and bins.
        first_moment : int
            The moment that is probably shown first, which is prepared in the background.
        """
        self._last_number += 1
        number = self._last_number
        self._set_busy(True)
        if isinstance(request, ReadRecording):
            path, checked = request.path, request.read_checked

            def read() -> RecordingModels:
                return models.load_checked_models(checked(path), path)

            run_in_background(lambda: self._emit_read(number, request, (_try_load(read), str(path), None)))
            return
        if self.jobs.age(self._channel) > STALE_S:
            # A request that is no longer needed may be a kernel that never ends.
            self.jobs.stop()
        self.jobs.post(
            self._channel,
            request,
            lambda event: self._read_result(number, request, text, first_moment, event),
            priority=self._priority,
        )

    def warm_up(self, request: RunRequest) -> None:
        """Record and read a run at low priority to warm up the process, and discard the result."""

        def read(event: RecordingFile | Failure) -> None:
            if isinstance(event, RecordingFile):
                run_in_background(lambda: _try_load(lambda: models.load_models(event.path)))

        self.jobs.post(f"{self._channel}, rehearsed", request, read, priority=-1)

    def forget(self) -> None:
        """Drop the current request; no signal is emitted for it."""
        self._last_number += 1
        self.jobs.drop(self._channel)
        self._set_busy(False)

    def stop(self) -> bool:
        """Stop the current recording; return whether there was one."""
        if self.busy and self.jobs.has_request(self._channel):
            self.jobs.stop()
            return True
        return False

    def _read_result(
        self,
        number: int,
        request: StepRequest,
        text: CountedText | None,
        first_moment: int,
        event: RecordingFile | Failure,
    ) -> None:
        if number != self._last_number:
            return
        if isinstance(event, Failure):
            self._set_busy(False)
            self.failed.emit(event)
            return

        # The handles keep the file alive while it is read.
        handles = event.arrays

        def read() -> RecordingModels:
            loaded = models.add_text(models.load_models(event.path), text)
            loaded.prepare(first_moment)
            return loaded

        run_in_background(lambda: self._emit_read(number, request, (_try_load(read), event.path, handles)))

    def _emit_read(self, number: int, request: StepRequest, answer: tuple[object, str, object]) -> None:
        with suppress(RuntimeError):  # the page may have been deleted in the meantime
            self._read.emit(number, request, answer)

    def _receive_models(self, number: int, request: StepRequest, answer: tuple[object, str, object]) -> None:
        if number != self._last_number:
            return
        self._set_busy(False)
        result, self.path, self._handles = answer
        if isinstance(result, Failure):
            self.failed.emit(result)
        else:
            self.loaded.emit(request, result)

    def _set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.busy = busy
            self.busy_changed.emit(busy)


def _try_load(read: Callable[[], RecordingModels]) -> object:
    """Return the Models of a recording, or a Failure."""
    try:
        return read()
    except LockstepError as error:
        return Failure("input", error.message, error.advice)
    except Exception as error:
        # An exception on this thread would be lost, and the page would wait forever.
        return Failure("bug", f"Cannot show the recording: {error!r}.", detail=traceback.format_exc())
