"""Asks the simulator's own process for recordings, and reads them in the background."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import CountedText
from gpu.errors import LockstepError
from gpu.messages.requests import Failure, Result
from gui.model.jobs import Jobs
from gui.qt.background import in_background
from gui.step_view.recording import models
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import ReadRecording, RunRequest, StepRequest

STALE_S = 2.0
"""Seconds after which a recording that nobody waits for any more is stopped."""


class Stepper(QObject):
    """Records runs of one page, the newest that is wanted.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process, which starts when it is first asked for.
    channel : str
        Where its requests wait.
    priority : int
        How urgent they are.
    """

    loaded = pyqtSignal(object, object)
    """StepRequest and the Models of its recording."""
    failed = pyqtSignal(object)
    busy_changed = pyqtSignal(bool)
    _read = pyqtSignal(int, object, object)

    def __init__(
        self, jobs: Callable[[], Jobs], channel: str, parent: QObject | None = None, *, priority: int = 1
    ) -> None:
        super().__init__(parent)
        self._jobs, self._channel, self._priority = jobs, channel, priority
        self._newest = 0
        self.busy = False
        self.path = ""
        self._handle: object = None
        self._read.connect(self._take)

    @property
    def jobs(self) -> Jobs:
        """The queue, its process started."""
        return self._jobs()

    def record(self, request: StepRequest, text: CountedText | None = None) -> None:
        """Record a run, or read what was recorded; what was asked for before is forgotten.

        `text` says how a text is counted, where one is.
        """
        self._newest += 1
        number = self._newest
        self._set_busy(True)
        if isinstance(request, ReadRecording):
            path, checked = request.path, request.checked

            def read() -> Models:
                return models.load_checked(checked(path), path)

            in_background(lambda: self._tell(number, request, (_loaded(read), str(path), None)))
            return
        if self.jobs.age(self._channel) > STALE_S:
            # What nobody waits for any more may be a kernel that never ends.
            self.jobs.stop()
        self.jobs.post(self._channel, request, lambda event: self._answer(number, request, text, event),
                       priority=self._priority)  # fmt: skip

    def rehearse(self, request: RunRequest) -> None:
        """Record and read a run that nobody looks at, after all that somebody waits for."""

        def read(event: Result | Failure) -> None:
            if isinstance(event, Result):
                in_background(lambda: _loaded(lambda: models.load(event.path)))

        self.jobs.post(f"{self._channel}, rehearsed", request, read, priority=-1)

    def forget(self) -> None:
        """Tell nobody of what was asked for."""
        self._newest += 1
        self.jobs.drop(self._channel)
        self._set_busy(False)

    def stop(self) -> bool:
        """Stop what is being recorded; return whether there was anything."""
        if self.busy and self.jobs.waits(self._channel):
            self.jobs.stop()
            return True
        return False

    def _answer(self, number: int, request: StepRequest, text: CountedText | None, event: Result | Failure) -> None:
        if number != self._newest:
            return
        if isinstance(event, Failure):
            self._set_busy(False)
            self.failed.emit(event)
            return

        # The handles keep the file for as long as it is read.
        handles = event.arrays

        def read() -> Models:
            return models.with_text(models.load(event.path), text)

        in_background(lambda: self._tell(number, request, (_loaded(read), event.path, handles)))

    def _tell(self, number: int, request: StepRequest, answer: tuple[object, str, object]) -> None:
        with suppress(RuntimeError):  # the page may have gone in the meantime
            self._read.emit(number, request, answer)

    def _take(self, number: int, request: StepRequest, answer: tuple[object, str, object]) -> None:
        if number != self._newest:
            return
        self._set_busy(False)
        found, self.path, self._handle = answer
        if isinstance(found, Failure):
            self.failed.emit(found)
        else:
            self.loaded.emit(request, found)

    def _set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.busy = busy
            self.busy_changed.emit(busy)


def _loaded(read: Callable[[], Models]) -> object:
    """Return the Models of a recording, or why they cannot be."""
    try:
        return read()
    except LockstepError as error:
        return Failure("input", error.message, error.advice)
    except Exception as error:
        # On a thread of its own nobody else would hear of it, and the page would wait for ever.
        return Failure("bug", f"The recording cannot be shown: {error!r}.", detail=traceback.format_exc())
