"""What a simulated run does is counted beside it, on a small part of its input, and remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from PyQt6.QtCore import QObject

from gpu.messages.counted import RunCounts
from gpu.messages.requests import CountPattern, Failure, ModelPattern, Result, RunPattern
from gui.model.jobs import Jobs

_CHANNEL = "count run"

Take = Callable[[RunCounts | Failure], None]


class Counting(QObject):
    """Has runs counted by the simulator's own process, behind all else that it has to do.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's process.
    """

    def __init__(self, jobs: Callable[[], Jobs], parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._known: dict[Hashable, RunCounts] = {}
        self._asked: RunPattern | None = None

    @property
    def under_way(self) -> bool:
        """Whether counts are to come."""
        return self._asked is not None

    def known(self, run: RunPattern) -> RunCounts | None:
        """Return what was counted of a run like this one."""
        return self._known.get(key_of(run))

    def ask(self, run: RunPattern, take: Take) -> None:
        """Count a run; whoever asked before gets nothing any more unless it is being counted now."""
        self._asked = run

        def done(event: Result | Failure) -> None:
            if self._asked is run:
                self._asked = None
            if isinstance(event, Failure):
                take(event)
                return
            assert event.counts is not None
            self._known[key_of(run)] = event.counts
            take(event.counts)

        counted = CountPattern(run.pattern, run.variant, run.params, run.inputs, run.seed, run.sources)
        self._jobs().post(_CHANNEL, counted, done, priority=-1)

    def forget(self) -> None:
        """Drop what waits to be counted: another engine runs."""
        if self._asked is not None:
            self._asked = None
            self._jobs().drop(_CHANNEL)


def key_of(run: RunPattern | ModelPattern) -> Hashable:
    """Return what makes a run the same as another."""
    params = tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in run.params.items()
    )
    inputs = tuple((name, handle.path) for name, handle in run.inputs.items())
    return run.pattern, run.variant, params, run.seed, inputs, tuple(run.sources.items())
