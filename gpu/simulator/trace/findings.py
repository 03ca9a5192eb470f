"""The mistakes that checkers find while a launch is recorded, each with its event."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import Access, HeapCall, Observer, WarpMeeting
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.types import TraceFinding


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
        self._look()

    def warp_meets(self, batch: BlockBatch, meeting: WarpMeeting) -> None:
        self._look()

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        self._look()

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        self._look()

    def _look(self) -> None:
        """Date what is new."""
        for checker, events in self._events:
            new = len(checker.findings) - len(events)
            if new:
                events += [self._recorder.running_event] * new

    @property
    def findings(self) -> list[TraceFinding]:
        """What was found, by event."""
        self._look()  # what the end of the launch has brought to light
        found = [
            TraceFinding(event, finding)
            for checker, events in self._events
            for event, finding in zip(events, checker.findings, strict=True)
        ]
        return sorted(found, key=lambda each: each.event)
