"""Streams and events; all work runs in call order and is complete when the call returns."""

from __future__ import annotations

import itertools
import time

from gpu.hosts.driver.faults import build_logic_error
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.names import export

_handles = itertools.count(0x2000, 0x10)


@export("Stream")
class SimulatedStream:
    """Queue of work, which is always empty."""

    def __init__(self, flags: int = 0) -> None:
        current_context("cuStreamCreate")
        self.handle = next(_handles)

    def synchronize(self) -> None:
        """Do nothing: all work is complete."""
        current_context("cuStreamSynchronize")

    def is_done(self) -> bool:
        """Return whether all work is complete."""
        return True

    def wait_for_event(self, event: SimulatedEvent) -> None:
        """Do nothing: events are complete when they are recorded."""


@export("Event")
class SimulatedEvent:
    """Point in time. Differences are times of this CPU, not of a GPU."""

    def __init__(self, flags: int = 0) -> None:
        current_context("cuEventCreate")
        self._recorded_s: float | None = None

    def record(self, stream: SimulatedStream | None = None) -> SimulatedEvent:
        """Record the current time."""
        self._recorded_s = time.perf_counter()
        return self

    def synchronize(self) -> SimulatedEvent:
        """Do nothing: the event is complete."""
        return self

    def query(self) -> bool:
        """Return whether the event is complete."""
        return True

    def time_since(self, event: SimulatedEvent) -> float:
        """Return the milliseconds from another event to this one."""
        return 1e3 * (self._get_time("cuEventElapsedTime") - event._get_time("cuEventElapsedTime"))

    def time_till(self, event: SimulatedEvent) -> float:
        """Return the milliseconds from this event to another one."""
        return event.time_since(self)

    def ipc_handle(self) -> bytes:
        """Raise an error: other processes cannot access events."""
        raise build_logic_error(
            "cuIpcGetEventHandle", "operation not supported", "other processes cannot access the simulator's events"
        )

    def _get_time(self, routine: str) -> float:
        if self._recorded_s is None:
            raise build_logic_error(routine, "invalid resource handle", "an event that was never recorded")
        return self._recorded_s


@export("initialize_profiler")
def initialize_profiler(config: str, output: str, mode: int) -> None:
    """Do nothing: `--check` and `--report` show what launches cost."""


@export("start_profiler")
def start_profiler() -> None:
    """Do nothing."""


@export("stop_profiler")
def stop_profiler() -> None:
    """Do nothing."""
