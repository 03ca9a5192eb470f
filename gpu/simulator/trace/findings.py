"""Observer that assigns the checkers' findings to events while a launch is recorded."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.recording.data import TraceFinding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access, HeapCall, Observer, WarpSync
from gpu.simulator.trace.recorder import Recorder


class FindingEvents(Observer):
    """Records the event of each finding; among the observers it has to follow the checkers and the recorder."""

    def __init__(self, recorder: Recorder, checkers: Sequence[Checker]) -> None:
        self._recorder = recorder
        self._events: list[tuple[Checker, list[int]]] = [(checker, []) for checker in checkers]

    def access(self, batch: BlockBatch, access: Access) -> None:
        self._assign_events()

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        self._assign_events()

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        self._assign_events()

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        self._assign_events()

    def _assign_events(self) -> None:
        """Assign the running event to new findings."""
        for checker, events in self._events:
            new = len(checker.findings) - len(events)
            if new:
                events += [self._recorder.running_event] * new

    @property
    def findings(self) -> list[TraceFinding]:
        """The findings, by event."""
        self._assign_events()  # for findings from the end of the launch
        findings = [
            TraceFinding(event, finding)
            for checker, events in self._events
            for event, finding in zip(events, checker.findings, strict=True)
        ]
        return sorted(findings, key=lambda each: each.event)
