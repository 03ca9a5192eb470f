"""Check edited kernels in the simulator: before a run on a GPU, and alongside a run in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import CheckPattern, RunPattern
from gpu.messages.verdicts import Check, describe_mistakes
from gui.model.records import FinishedRun
from gui.model.request_queue import RequestQueue
from gui.model.run_counter import freeze_params

_BLOCKING_CHANNEL, _BACKGROUND_CHANNEL = "check before", "check alongside"


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
        finding = describe_mistakes(self.check.mistakes)
        if finding or self.check.wrong_input:
            reason = finding or f"wrong result for {self.check.wrong_input}"
        else:
            reason = f"wrong result in another schedule ({self.check.differing[0]})"
        return f"The edited kernel did not run on the GPU: {reason}."

    @property
    def detail(self) -> str:
        """All findings, one per line."""
        if self.failure is not None:
            return self.failure.detail
        return "\n".join(f"line {diagnostic.line}: {diagnostic.message}" for diagnostic in self.check.diagnostics)


class Clearance(QObject):
    """Check edited kernels, and cache the results.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    run_request : callable
        Runs a request that has passed its check.
    """

    refused = pyqtSignal(object)
    """Refusal"""
    checked = pyqtSignal(object, object)
    """RunPattern, and its Check."""
    pending_changed = pyqtSignal(bool)
    """Whether a run waits for its check."""

    def __init__(
        self, jobs: Callable[[], RequestQueue], run_request: Callable[[RunPattern], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._run_request = run_request
        self._pending: RunPattern | None = None
        self._checks: dict[Hashable, Check] = {}
        self._accepted_sources: set[Hashable] = set()

    @property
    def under_way(self) -> bool:
        """Whether a run waits for its check."""
        return self._pending is not None

    def find_cached_check(self, run: RunPattern | FinishedRun) -> Check | None:
        """Return the cached check of a run's sources, or None."""
        return self._checks.get(_compute_key(run)) if run.sources else None

    def is_cleared(self, request: RunPattern) -> bool:
        """Return whether a request may run on a GPU without a further check."""
        texts = tuple(request.sources.items())
        check = self.find_cached_check(request)
        return not texts or texts in self._accepted_sources or (check is not None and check.clean)

    def check_and_run(self, request: RunPattern) -> None:
        """Check a request, and run it if there are no findings."""
        self._set_pending(request)
        self._post_check(_BLOCKING_CHANNEL, request, self._on_check)

    def check_in_background(self, request: RunPattern) -> None:
        """Check a request that has already run; nothing waits for the result."""
        self._post_check(_BACKGROUND_CHANNEL, request, self._on_background_check)

    def _post_check(
        self, channel: str, request: RunPattern, on_check: Callable[[RunPattern, Check | Failure], None]
    ) -> None:
        check = CheckPattern(
            request.pattern, request.variant, request.params, request.inputs, request.seed, request.sources
        )
        self._jobs().post(channel, check, lambda event: on_check(request, event), priority=2)

    def accept_sources(self, request: RunPattern) -> None:
        """Allow a request's sources to run from now on, whatever the findings."""
        self._accepted_sources.add(tuple(request.sources.items()))

    def cancel_pending_run(self) -> None:
        """Cancel the run that waits for its check."""
        self._set_pending(None)

    def stop(self) -> None:
        """Cancel the run that waits for its check, and stop the check."""
        if self.under_way:
            self.cancel_pending_run()
            if self._jobs().has_request(_BLOCKING_CHANNEL):
                self._jobs().stop()

    def _set_pending(self, request: RunPattern | None) -> None:
        before, self._pending = self.under_way, request
        if before != self.under_way:
            self.pending_changed.emit(self.under_way)

    def _store_check(self, request: RunPattern, check: Check) -> None:
        self._checks[_compute_key(request)] = check
        self.checked.emit(request, check)

    def _on_check(self, request: RunPattern, event: Check | Failure) -> None:
        if isinstance(event, Check):
            self._store_check(request, event)
        if request is not self._pending:
            return
        self._set_pending(None)
        if isinstance(event, Failure):
            if event.kind != "cancelled":
                self.refused.emit(Refusal(request, Check(failure=event.message), event))
        elif self.is_cleared(request):
            self._run_request(request)
        else:
            self.refused.emit(Refusal(request, self._checks[_compute_key(request)]))

    def _on_background_check(self, request: RunPattern, event: Check | Failure) -> None:
        if isinstance(event, Check):
            self._store_check(request, event)
        elif event.kind != "cancelled":
            self.checked.emit(request, Check(failure=event.message))


def _compute_key(run: RunPattern | FinishedRun) -> Hashable:
    """Return the cache key of a check, which does not depend on the input image."""
    return run.pattern, run.variant, freeze_params(run.params), tuple(run.sources.items())


def attach_check(run: FinishedRun, request: RunPattern, check: Check) -> FinishedRun | None:
    """Return a run with the check of its sources, or None if the check belongs to something else."""
    return replace(run, check=check) if _compute_key(run) == _compute_key(request) else None
