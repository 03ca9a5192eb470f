"""What the tests of the engine's process share: a host whose events can be waited for."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from gpu.declaration.pattern import Progress
from gpu.messages.events import Event, Failure
from gpu.messages.runs.pattern_runs import RunPattern
from gpu.messages.shared_arrays import SharedArray
from gpu.process.engine_host import EngineHost

PATIENCE = 30.0


class Listener:
    """Keeps a host's events."""

    def __init__(self, engine: str) -> None:
        self._events: queue.Queue[tuple[int, Event]] = queue.Queue()
        self.host = EngineHost(engine, deliver=lambda number, event: self._events.put((number, event)))

    def next_event(self, *, progress: bool = False, patience: float = PATIENCE) -> tuple[int, Event]:
        """Wait for the next event; a Progress only counts where `progress` says so."""
        deadline = time.monotonic() + patience
        while True:
            number, event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            if progress or not isinstance(event, Progress):
                return number, event

    def failure(self) -> tuple[int, Failure]:
        number, event = self.next_event()
        assert isinstance(event, Failure), event
        return number, event

    def wait_for_progress(self, message: str) -> None:
        while True:
            _, event = self.next_event(progress=True)
            if isinstance(event, Progress) and event.message == message:
                return

    def is_silent(self, seconds: float = 0.3) -> bool:
        try:
            self.next_event(patience=seconds)
        except queue.Empty:
            return True
        return False

    def image(self) -> SharedArray:
        return self.host.folder.put(np.arange(12, dtype=np.uint8).reshape(3, 4))

    def run_action(self, deed: str, image: SharedArray | None = None) -> int:
        """Submit a run of the fake pattern."""
        return self.host.submit(RunPattern("fake", "only", {"deed": deed}, {"image": image or self.image()}))


@contextmanager
def listening(engine: str) -> Iterator[Listener]:
    listener = Listener(engine)
    try:
        yield listener
    finally:
        listener.host.close()


def wait_until(true: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait until `true()`; return whether that came."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


EARLIER_CHILDREN: set[int] = set()
"""Children of this process when the running test began, such as a cluster's workers that other tests keep."""


def children() -> list[int]:
    """Return the pids of the processes that the running test has started."""
    started = [process.pid for process in multiprocessing.active_children() if process.pid]
    return [pid for pid in started if pid not in EARLIER_CHILDREN]


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits to be counted does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self").exists()  # it is just gone, or this system has no such files


def list_guards(folder: str | Path) -> list[str]:
    """The guards of a folder that run; none on a system without /proc."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command.read_text().split("\0")
            found += [command.parent.name] if str(folder) in words else []
    return found
