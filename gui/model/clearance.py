"""Check edited kernels in the simulator: before a run on a GPU, and alongside a run in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.requests import CheckPattern, Failure, Result, RunPattern
from gpu.messages.verdicts import Check, mistakes_in_words
from gui.model.jobs import Jobs
from gui.model.records import FinishedRun

_BEFORE, _ALONGSIDE = "check before", "check alongside"


@dataclass(frozen=True)
class Refusal:
    """The reason why an edited kernel does not run on the GPU: findings, or the failure of the check itself."""

    request: RunPattern
    check: Check
    failure: Failure | None = None

    @property
    def message(self) -> str:
        """The reason in a sentence."""
        if self.failure is not None:
            return f"The simulator cannot check the edited kernel: {self.failure.message}"
        finding = mistakes_in_words(self.check.mistakes)
        reason = finding or f"gives a wrong result in another schedule ({self.check.differing[0]})"
        return f"The edited kernel {reason}. It did not run on the GPU."

    @property
    def detail(self) -> str:
        """All findings, one per line."""
        if self.failure is not None:
            return self.failure.detail
        return "\n".join(f"line {each.line}: {each.message}" for each in self.check.diagnostics)


class Clearance(QObject):
    """Check edited kernels, and cache the results.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    run : callable
        Runs a request that has passed its check.
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
        self._pending: RunPattern | None = None
        self._checks: dict[Hashable, Check] = {}
        self._accepted: set[Hashable] = set()

    @property
    def under_way(self) -> bool:
        """Whether a run waits for its check."""
        return self._pending is not None

    def known(self, run: RunPattern | FinishedRun) -> Check | None:
        """Return the cached check of a run's sources, or None."""
        return self._checks.get(_key(run)) if run.sources else None

    def holds(self, request: RunPattern) -> bool:
        """Return whether a request may run on a GPU without a further check."""
        texts = tuple(request.sources.items())
        check = self.known(request)
        return not texts or texts in self._accepted or (check is not None and check.clean)

    def ask(self, request: RunPattern) -> None:
        """Check a request, and run it if there are no findings."""
        self._set_pending(request)
        self._post(_BEFORE, request, self._on_check)

    def follow(self, request: RunPattern) -> None:
        """Check a request that has already run; nothing waits for the result."""
        self._post(_ALONGSIDE, request, self._on_check_alongside)

    def _post(self, channel: str, request: RunPattern, take: Callable[[RunPattern, Result | Failure], None]) -> None:
        check = CheckPattern(
            request.pattern, request.variant, request.params, request.inputs, request.seed, request.sources
        )
        self._jobs().post(channel, check, lambda event: take(request, event), priority=2)

    def accept(self, request: RunPattern) -> None:
        """Allow a request's sources to run from now on, whatever the findings."""
        self._accepted.add(tuple(request.sources.items()))

    def forget(self) -> None:
        """Cancel the run that waits for its check."""
        self._set_pending(None)

    def stop(self) -> None:
        """Cancel the run that waits for its check, and stop the check."""
        if self.under_way:
            self.forget()
            if self._jobs().waits(_BEFORE):
                self._jobs().stop()

    def _set_pending(self, request: RunPattern | None) -> None:
        before, self._pending = self.under_way, request
        if before != self.under_way:
            self.changed.emit(self.under_way)

    def _store(self, request: RunPattern, check: Check) -> None:
        self._checks[_key(request)] = check
        self.checked.emit(request, check)

    def _on_check(self, request: RunPattern, event: Result | Failure) -> None:
        if isinstance(event, Result):
            assert event.check is not None
            self._store(request, event.check)
        if request is not self._pending:
            return
        self._set_pending(None)
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.refused.emit(Refusal(request, Check(failure=event.message), event))
        elif self.holds(request):
            self._run(request)
        else:
            self.refused.emit(Refusal(request, self._checks[_key(request)]))

    def _on_check_alongside(self, request: RunPattern, event: Result | Failure) -> None:
        if isinstance(event, Result):
            assert event.check is not None
            self._store(request, event.check)
        elif event.kind != "cancelled":
            self.checked.emit(request, Check(failure=event.message))


def _key(run: RunPattern | FinishedRun) -> Hashable:
    """Return the cache key of a check, which does not depend on the input image."""
    params = tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in run.params.items()
    )
    return run.pattern, run.variant, params, tuple(run.sources.items())


def with_check(run: FinishedRun, request: RunPattern, check: Check) -> FinishedRun | None:
    """Return a run with the check of its sources, or None if the check belongs to something else."""
    return replace(run, check=check) if _key(run) == _key(request) else None
