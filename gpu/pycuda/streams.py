"""Streams and events: all is done in the order in which it is asked for, and when the call returns."""

from __future__ import annotations

import itertools
import time

from gpu.driver.faults import wrong
from gpu.pycuda.devices import current
from gpu.pycuda.names import exported

_handles = itertools.count(0x2000, 0x10)


@exported("Stream")
class SimulatedStream:
    """A queue of work, which is empty whenever somebody looks."""

    def __init__(self, flags: int = 0) -> None:
        current("cuStreamCreate")
        self.handle = next(_handles)

    def synchronize(self) -> None:
        """Wait until all is done."""
        current("cuStreamSynchronize")

    def is_done(self) -> bool:
        """Whether all is done."""
        return True

    def wait_for_event(self, event: SimulatedEvent) -> None:
        """Let what comes later wait for an event."""


@exported("Event")
class SimulatedEvent:
    """A moment. Between two lies the time that this machine's processor took: no GPU's."""

    def __init__(self, flags: int = 0) -> None:
        current("cuEventCreate")
        self._at: float | None = None

    def record(self, stream: SimulatedStream | None = None) -> SimulatedEvent:
        """Take the time."""
        self._at = time.perf_counter()
        return self

    def synchronize(self) -> SimulatedEvent:
        """Wait until the event has happened."""
        return self

    def query(self) -> bool:
        """Whether the event has happened."""
        return True

    def time_since(self, event: SimulatedEvent) -> float:
        """Return the milliseconds from another event to this one."""
        return 1e3 * (self._time("cuEventElapsedTime") - event._time("cuEventElapsedTime"))

    def time_till(self, event: SimulatedEvent) -> float:
        """Return the milliseconds from this event to another one."""
        return event.time_since(self)

    def ipc_handle(self) -> bytes:
        """Refuse: no other process sees it."""
        raise wrong("cuIpcGetEventHandle", "operation not supported", "the simulator's events are its process's own")

    def _time(self, routine: str) -> float:
        if self._at is None:
            raise wrong(routine, "invalid resource handle", "an event that was never recorded")
        return self._at


@exported("initialize_profiler")
def initialize_profiler(config: str, output: str, mode: int) -> None:
    """Do nothing: `--check` and `--report` say what launches cost."""


@exported("start_profiler")
def start_profiler() -> None:
    """Do nothing."""


@exported("stop_profiler")
def stop_profiler() -> None:
    """Do nothing."""
