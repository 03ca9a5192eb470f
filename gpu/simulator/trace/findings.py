"""The mistakes that checkers find while a launch is recorded, each with its event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.observe import Access, Observer
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.types import TraceFinding


class Checker(Protocol):
    """What finds mistakes by looking at accesses."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far, in the order in which it was."""


class FindingEvents(Observer):
    """Notes in which event checkers find something; among the observers it comes after them and the recorder.

    Parameters
    ----------
    recorder : Recorder
    checkers : sequence of Checker
    """

    def __init__(self, recorder: Recorder, checkers: Sequence[Checker]) -> None:
        self._recorder = recorder
        self._events: list[tuple[Checker, list[int]]] = [(checker, []) for checker in checkers]

    def access(self, batch: BlockBatch, access: Access) -> None:
        for checker, events in self._events:
            new = len(checker.findings) - len(events)
            if new:
                events += [self._recorder.running_event] * new

    @property
    def findings(self) -> list[TraceFinding]:
        """What was found, by event."""
        found = [
            TraceFinding(event, finding)
            for checker, events in self._events
            for event, finding in zip(events, checker.findings, strict=True)
        ]
        return sorted(found, key=lambda each: each.event)
