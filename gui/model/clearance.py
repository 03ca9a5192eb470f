"""Edited kernels are checked by the simulator: before they run on a GPU, and beside their run on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.requests import CheckPattern, Failure, Result, RunPattern
from gpu.messages.verdicts import Check, mistakes_in_words
from gui.model.jobs import Jobs
from gui.model.records import FinishedRun

_BEFORE, _BESIDE = "check before", "check beside"


@dataclass(frozen=True)
class Refusal:
    """Why an edited kernel does not run on the GPU: what was found, or the failure of the check itself."""

    request: RunPattern
    check: Check
    failure: Failure | None = None

    @property
    def message(self) -> str:
        """Return it in a sentence."""
        if self.failure is not None:
            return f"The simulator cannot check the edited kernel: {self.failure.message}"
        what = mistakes_in_words(self.check.mistakes) or f"is wrong in another order ({self.check.differing[0]})"
        return f"The edited kernel {what}. It did not run on the GPU."

    @property
    def detail(self) -> str:
        """Return all that was found."""
        if self.failure is not None:
            return self.failure.detail
        return "\n".join(f"line {each.line}: {each.message}" for each in self.check.diagnostics)


class Clearance(QObject):
    """Has edited kernels checked, and remembers what came of it.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    run : callable
        Runs a request that has passed.
    """

    refused = pyqtSignal(object)
    """Refusal"""
    checked = pyqtSignal(object, object)
    """RunPattern, and its Check."""
    changed = pyqtSignal(bool)
    """Whether a run waits for its check."""

    def __init__(self, jobs: Callable[[], Jobs], run: Callable[[RunPattern], None], parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._run = run
        self._wanted: RunPattern | None = None
        self._known: dict[Hashable, Check] = {}
        self._accepted: set[Hashable] = set()

    @property
    def under_way(self) -> bool:
        """Whether a run waits for its check."""
        return self._wanted is not None

    def known(self, run: RunPattern | FinishedRun) -> Check | None:
        """Return what is known of a run's texts."""
        return self._known.get(_key(run)) if run.sources else None

    def holds(self, request: RunPattern) -> bool:
        """Whether a request may run on a GPU as it is."""
        texts = tuple(request.sources.items())
        known = self.known(request)
        return not texts or texts in self._accepted or (known is not None and known.clean)

    def ask(self, request: RunPattern) -> None:
        """Check a request, and run it if nothing is found."""
        self._want(request)
        self._post(_BEFORE, request, self._take)

    def follow(self, request: RunPattern) -> None:
        """Check what has run; nothing waits for it."""
        self._post(_BESIDE, request, self._take_beside)

    def _post(self, channel: str, request: RunPattern, take: Callable[[RunPattern, Result | Failure], None]) -> None:
        check = CheckPattern(
            request.pattern, request.variant, request.params, request.inputs, request.seed, request.sources
        )
        self._jobs().post(channel, check, lambda event: take(request, event), priority=2)

    def accept(self, request: RunPattern) -> None:
        """Let a request's texts run from now on, whatever is found."""
        self._accepted.add(tuple(request.sources.items()))

    def forget(self) -> None:
        """Drop the check that a run waits for; the run does not come."""
        self._want(None)

    def stop(self) -> None:
        """End the check that a run waits for, at once."""
        if self.under_way:
            self.forget()
            if self._jobs().waits(_BEFORE):
                self._jobs().stop()

    def _want(self, request: RunPattern | None) -> None:
        before, self._wanted = self.under_way, request
        if before != self.under_way:
            self.changed.emit(self.under_way)

    def _keep(self, request: RunPattern, check: Check) -> None:
        self._known[_key(request)] = check
        self.checked.emit(request, check)

    def _take(self, request: RunPattern, event: Result | Failure) -> None:
        if isinstance(event, Result):
            assert event.check is not None
            self._keep(request, event.check)
        if request is not self._wanted:
            return
        self._want(None)
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.refused.emit(Refusal(request, Check(failure=event.message), event))
        elif self.holds(request):
            self._run(request)
        else:
            self.refused.emit(Refusal(request, self._known[_key(request)]))

    def _take_beside(self, request: RunPattern, event: Result | Failure) -> None:
        if isinstance(event, Result):
            assert event.check is not None
            self._keep(request, event.check)
        elif event.kind != "cancelled":
            self.checked.emit(request, Check(failure=event.message))


def _key(run: RunPattern | FinishedRun) -> Hashable:
    """Return what a check was of; another image is no other check."""
    params = tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in run.params.items()
    )
    return run.pattern, run.variant, params, tuple(run.sources.items())


def with_check(run: FinishedRun, request: RunPattern, check: Check) -> FinishedRun | None:
    """Return a run with what its text's check found; None where the check was of something else."""
    return replace(run, check=check) if _key(run) == _key(request) else None
