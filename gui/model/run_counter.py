"""Count the operations of simulated runs on a small part of their input, and cache the counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from PyQt6.QtCore import QObject

from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModelPattern
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.pattern_runs import CountPattern, RunPattern
from gui.model.request_queue import RequestQueue

_CHANNEL = "count run"

CountsCallback = Callable[[RunCounts | Failure], None]


class RunCounter(QObject):
    """Count runs in the simulator's side process, at low priority.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    """

    def __init__(self, jobs: Callable[[], RequestQueue], parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._counts: dict[Hashable, RunCounts] = {}
        self._pending: RunPattern | None = None

    @property
    def under_way(self) -> bool:
        """Whether counts are pending."""
        return self._pending is not None

    def find_cached_counts(self, run: RunPattern) -> RunCounts | None:
        """Return the cached counts of an equal run, or None."""
        return self._counts.get(compute_run_key(run))

    def count_run(self, run: RunPattern, on_counts: CountsCallback) -> None:
        """Count a run; an earlier request that has not started yet is replaced."""
        self._pending = run

        def on_result(event: RunCounts | Failure) -> None:
            if self._pending is run:
                self._pending = None
            if isinstance(event, RunCounts):
                self._counts[compute_run_key(run)] = event
            on_counts(event)

        request = CountPattern(run.pattern, run.variant, run.params, run.inputs, run.seed, run.sources)
        self._jobs().post(_CHANNEL, request, on_result, priority=-1)

    def cancel_pending_count(self) -> None:
        """Cancel the pending request: the engine has changed."""
        if self._pending is not None:
            self._pending = None
            self._jobs().drop(_CHANNEL)


def compute_run_key(run: RunPattern | ModelPattern) -> Hashable:
    """Return a cache key that equal runs share."""
    inputs = tuple((name, handle.path) for name, handle in run.inputs.items())
    return run.pattern, run.variant, freeze_params(run.params), run.seed, inputs, tuple(run.sources.items())


def freeze_params(params: Mapping[str, Any]) -> Hashable:
    """Return a key that equal parameters share."""
    return tuple((name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in params.items())
