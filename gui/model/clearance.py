"""What keeps an edited kernel from the GPU until the simulator's checkers, or the user, said that it may run there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.errors import Diagnostic
from gpu.messages.requests import CheckPattern, Failure, Result, RunPattern
from gui.model.jobs import Jobs

CHANNEL = "clearance"


@dataclass(frozen=True)
class Refusal:
    """Why an edited kernel does not run on the GPU: findings, or the failure of the check itself."""

    request: RunPattern
    found: tuple[Diagnostic, ...]
    failure: Failure | None

    @property
    def message(self) -> str:
        """Return it in a sentence."""
        if self.failure is not None:
            return f"The simulator cannot check the edited kernel: {self.failure.message}"
        lines = {each.line for each in self.found}
        where = f"line {min(lines)}" if len(lines) == 1 else f"{len(lines)} lines"
        return f"The simulator finds mistakes in the edited kernel, in {where}: it did not run on the GPU."

    @property
    def detail(self) -> str:
        """Return all that was found."""
        if self.failure is not None:
            return self.failure.detail
        return "\n".join(f"line {each.line}: {each.message}" for each in self.found)


class Clearance(QObject):
    """Has edited kernels checked before they run on a GPU, and remembers what passed.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    run : callable
        Runs a request that has passed.
    """

    refused = pyqtSignal(object)
    """Refusal"""
    changed = pyqtSignal(bool)
    """Whether a check is under way."""

    def __init__(self, jobs: Callable[[], Jobs], run: Callable[[RunPattern], None], parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._run = run
        self._wanted: RunPattern | None = None
        self._passed: set[Hashable] = set()
        self._accepted: set[Hashable] = set()

    @property
    def under_way(self) -> bool:
        """Whether a check is under way."""
        return self._wanted is not None

    def holds(self, request: RunPattern) -> bool:
        """Whether a request may run on a GPU as it is."""
        texts = tuple(request.sources.items())
        return not texts or texts in self._accepted or _key(request) in self._passed

    def ask(self, request: RunPattern) -> None:
        """Check a request, and run it if nothing is found."""
        self._want(request)
        check = CheckPattern(
            request.pattern, request.variant, request.params, request.inputs, request.seed, request.sources
        )
        self._jobs().post(CHANNEL, check, lambda event: self._take(request, event), priority=2)

    def accept(self, request: RunPattern) -> None:
        """Let a request's texts run from now on, whatever is found."""
        self._accepted.add(tuple(request.sources.items()))

    def forget(self) -> None:
        """Drop the check that is under way; a run that waits for it does not come."""
        self._want(None)

    def stop(self) -> None:
        """End the check that is under way, at once."""
        if self.under_way:
            self.forget()
            if self._jobs().waits(CHANNEL):
                self._jobs().stop()

    def _want(self, request: RunPattern | None) -> None:
        before, self._wanted = self.under_way, request
        if before != self.under_way:
            self.changed.emit(self.under_way)

    def _take(self, request: RunPattern, event: Result | Failure) -> None:
        if request is not self._wanted:
            return
        self._want(None)
        if isinstance(event, Result) and not event.diagnostics:
            self._passed.add(_key(request))
            self._run(request)
        elif isinstance(event, Result):
            self.refused.emit(Refusal(request, event.diagnostics, None))
        elif event.kind != "cancelled":
            self.refused.emit(Refusal(request, (), event))


def _key(request: RunPattern) -> Hashable:
    """Return what a check was of; another image is no other check."""
    params = tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in request.params.items()
    )
    return request.pattern, request.variant, params, tuple(request.sources.items())
