"""Asks the simulator's process for timelines, the newest that are wanted."""

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
    """What a timeline is of.

    Parameters
    ----------
    modeling : Modeling
        Knows which GPU is chosen.
    request : callable
        The GPU's key, which launch, None for the longest, and the threads of a block, 0 for those of Run -> what is
        asked for; InputError says why there is none.
    blocks : callable
        Returns the threads that a block can have, and those of Run; nothing where that cannot be chosen.
    """

    modeling: Modeling
    request: Callable[[str, int | None, int], TimelineRequest]
    blocks: Callable[[], tuple[Sequence[int], int]]


class TimelineJobs(QObject):
    """Has timelines made, and remembers the last ones.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    channel : str
        Where its requests wait.
    timed : Timed
    """

    found = pyqtSignal(object)
    """RunTimelines"""
    failed = pyqtSignal(object)
    """Failure"""
    busy_changed = pyqtSignal(bool)

    def __init__(self, jobs: Callable[[], Jobs], channel: str, timed: Timed, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs, self._channel, self._timed = jobs, channel, timed
        self._asked = b""
        self._threads = 0
        self.busy = False

    @property
    def modeling(self) -> Modeling:
        """What knows which GPU is chosen."""
        return self._timed.modeling

    @property
    def blocks(self) -> tuple[Sequence[int], int]:
        """The threads that a block can have, and those of Run."""
        return self._timed.blocks()

    @property
    def threads(self) -> int:
        """The threads of a block that were chosen here; 0 for those of Run."""
        sizes, own = self.blocks
        return self._threads if self._threads in sizes and self._threads != own else 0

    def choose_block(self, threads: int) -> None:
        """Ask for the timelines of blocks of so many threads."""
        self._threads = threads
        self.ask()

    def ask(self, launch: int | None = None) -> None:
        """Ask for the timelines of what is chosen now, unless these are the ones that there are."""
        try:
            request = self._timed.request(self._timed.modeling.gpu, launch, self.threads)
        except InputError as error:
            self.forget()
            self.failed.emit(Failure("input", error.message, error.advice))
            return
        key = pickle.dumps(request)
        if key == self._asked:
            return
        self._asked = key
        self._set_busy(True)
        self._jobs().post(self._channel, request, lambda event: self._take(key, event), priority=1)

    def forget(self) -> None:
        """Let the next ones be asked for whatever there is."""
        self._asked = b""
        self._set_busy(False)

    def stop(self) -> bool:
        """Stop what is being made; return whether there was anything."""
        if self.busy and self._jobs().waits(self._channel):
            self._jobs().stop()
            return True
        return False

    def _take(self, key: bytes, event: Result | Failure) -> None:
        if key != self._asked:
            return
        self._set_busy(False)
        if isinstance(event, Failure):
            self._asked = b""
            self.failed.emit(event)
            return
        assert event.timelines is not None
        found: RunTimelines = event.timelines.together(event.arrays)
        self.found.emit(found)

    def _set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.busy = busy
            self.busy_changed.emit(busy)
