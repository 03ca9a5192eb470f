"""The queue between the window and an engine's process: one request at a time, events as Qt signals on the main thread.

Requests wait in channels. A channel holds one request: a newer one replaces it. A slider that is dragged thus shows the
newest value that was ready in time, and requests do not pile up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Progress
from gpu.distributed.asked import Asked
from gpu.engines.base import Device
from gpu.messages.distributed import WorkerStatus
from gpu.messages.requests import Event, Failure, Halted, Ready, Request, Result
from gpu.messages.shared_arrays import SharedFolder
from gui.qt.background import in_background
from gui.qt.later import queue


def spelled(progress: Progress) -> str:
    """Return a sentence about work of unknown progress, or "" if the progress is known."""
    unknown = progress.fraction is None and progress.message
    return f"{progress.message[0].upper()}{progress.message[1:]}…" if unknown else ""


Deliver = Callable[[int, Event], None]
Done = Callable[[Result | Failure], None]


class Host(Protocol):
    """The interface of `gpu.process.host.EngineHost`. It calls `deliver` on its own thread."""

    folder: SharedFolder

    def start(self) -> None: ...
    def submit(self, request: Request) -> int: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...


HostFactory = Callable[[str | Asked, Deliver], Host]


def engine_host(engine: str | Asked, deliver: Deliver) -> Host:
    """Create the host of a real engine's process."""
    from gpu.process.host import EngineHost

    return EngineHost(engine, deliver=deliver)


@dataclass(frozen=True)
class _QueuedRequest:
    channel: str
    request: Request
    done: Done
    progressed: Callable[[Progress], None] | None
    priority: int


class Jobs(QObject):
    """The queue in front of one engine host.

    Parameters
    ----------
    factory : callable
        Creates the host of an engine, from the engine's name and a function that receives its events.
    """

    ready = pyqtSignal(object)
    """Device: the engine's process is ready."""
    noted = pyqtSignal(str)
    """A warning of the engine's process about the user's folders, reported once."""
    broken = pyqtSignal(object)
    """Failure: the engine's process cannot work."""
    halted = pyqtSignal(object)
    """Process id of an engine process that was suspended from outside; None once it continues."""
    busy_changed = pyqtSignal(bool)
    _arrived = pyqtSignal(int, int, object)

    def __init__(self, factory: HostFactory = engine_host, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._host: Host | None = None
        self._generation = 0
        self._running: tuple[int, _QueuedRequest] | None = None
        self._since = 0.0
        self._waiting: dict[str, _QueuedRequest] = {}
        self._busy = False
        self._notes: list[str] = []
        self.device: Device | None = None
        """The engine's device, once its process is ready."""
        self.workers: tuple[WorkerStatus, ...] = ()
        """The workers of a cluster, once it is ready."""
        self.dashboard = ""
        """Address of the cluster's Dask dashboard, or ""."""
        queue(self._arrived, self._on_event)

    @property
    def folder(self) -> SharedFolder:
        """The folder for arrays that the engine reads."""
        assert self._host is not None, "the engine has not been started"
        return self._host.folder

    @property
    def started(self) -> bool:
        """Whether the engine's process has been started."""
        return self._host is not None

    @property
    def busy(self) -> bool:
        """Whether a request runs or waits."""
        return self._running is not None or bool(self._waiting)

    def start(self, engine: str | Asked) -> None:
        """Start the process of an engine or cluster; the previous one ends, and its requests are dropped."""
        previous, self._host = self._host, None
        self.close()
        if previous is not None:
            in_background(previous.close)  # a process takes a while to end, a cluster longer
        self._generation += 1
        self.device = None
        self.workers, self.dashboard = (), ""
        self._host = self._factory(engine, partial(self._deliver, self._generation))
        self._host.start()
        self._advance()

    def close(self) -> None:
        """End the engine's process."""
        host, self._host = self._host, None
        self._running = None
        self._waiting.clear()
        if host is not None:
            host.close()
        self._report_busy()

    def post(
        self,
        channel: str,
        request: Request,
        done: Done,
        progressed: Callable[[Progress], None] | None = None,
        priority: int = 0,
    ) -> None:
        """Queue a request; it replaces a waiting request of its channel.

        Parameters
        ----------
        channel : str
        request : Request
        done : callable
            Receives the Result or Failure.
        progressed : callable or None
            Receives each Progress.
        priority : int
            The waiting request of highest priority runs first; among equals, the channel that has waited longest.
            Negative for background requests, which `stop` keeps.
        """
        self._waiting[channel] = _QueuedRequest(channel, request, done, progressed, priority)
        self._advance()

    def drop(self, channel: str) -> None:
        """Remove the waiting request of a channel; one that runs continues."""
        self._waiting.pop(channel, None)

    def waits(self, channel: str) -> bool:
        """Return whether a request of the channel waits or runs."""
        return channel in self._waiting or (self._running is not None and self._running[1].channel == channel)

    def age(self, channel: str) -> float:
        """Return for how many seconds a request of the channel has been running; 0 if none is."""
        return time.monotonic() - self._since if self._running and self._running[1].channel == channel else 0.0

    def stop(self) -> None:
        """Stop the running request at once, and drop waiting ones except background requests (priority below 0).

        The engine's process is killed, and a new one is started.
        """
        self._waiting = {channel: job for channel, job in self._waiting.items() if job.priority < 0}
        if self._host is not None and self._running is not None:
            self._host.cancel()

    def _advance(self) -> None:
        if self._host is not None and self._running is None and self._waiting:
            # max() returns the first of equals, and a dict keeps insertion order.
            job = max(self._waiting.values(), key=lambda waiting: waiting.priority)
            del self._waiting[job.channel]
            self._running = (self._host.submit(job.request), job)
            self._since = time.monotonic()
        self._report_busy()

    def _report_busy(self) -> None:
        busy = self._running is not None
        if busy != self._busy:
            self._busy = busy
            self.busy_changed.emit(busy)

    def _deliver(self, generation: int, number: int, event: Event) -> None:
        """Receive an event on the host's reader thread; the signal passes it to the main thread."""
        self._arrived.emit(generation, number, event)

    def _on_event(self, generation: int, number: int, event: Event) -> None:
        if generation != self._generation or self._host is None:
            return
        if number == 0:
            if isinstance(event, Ready):
                self.device = event.device
                self.workers, self.dashboard = event.workers, event.dashboard
                if event.note not in ("", *self._notes):
                    self._notes.append(event.note)
                    self.noted.emit(event.note)
                self.ready.emit(event.device)
            elif isinstance(event, Failure):
                self.broken.emit(event)
            elif isinstance(event, Halted):
                self.halted.emit(event.process)
            return
        if self._running is None or self._running[0] != number:
            return
        job = self._running[1]
        if isinstance(event, Progress):
            if job.progressed is not None:
                job.progressed(event)
        elif isinstance(event, Result | Failure):
            self._running = None
            try:
                job.done(event)
            finally:
                self._advance()
