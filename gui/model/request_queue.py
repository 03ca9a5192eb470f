"""The queue between the window and an engine's process: one request at a time, events as Qt signals on the main thread.

Requests wait in channels. A channel holds one request: a newer one replaces it. A slider that is dragged thus shows the
newest value that was ready in time, and requests do not pile up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.engines.base import Device
from gpu.messages.events import EngineHalt, Event, Failure, Ready
from gpu.messages.requests import R, Request
from gpu.messages.runs.distributed_run import WorkerStatus
from gpu.messages.shared_arrays import SharedFolder
from gui.qt.background import run_in_background
from gui.qt.timers import connect_queued


def describe_progress(progress: Progress) -> str:
    """Return a sentence about work of unknown progress, or "" if the progress is known."""
    unknown = progress.fraction is None and progress.message
    return f"{progress.message[0].upper()}{progress.message[1:]}…" if unknown else ""


EventReceiver = Callable[[int, Event], None]


class Host(Protocol):
    """The interface of `gpu.process.engine_host.EngineHost`. It calls `deliver` on its own thread."""

    folder: SharedFolder

    def start(self) -> None: ...
    def submit(self, request: Request[Any]) -> int: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...


HostFactory = Callable[[str | ClusterSettings, EventReceiver], Host]


def create_engine_host(engine: str | ClusterSettings, deliver: EventReceiver) -> Host:
    """Create the host of a real engine's process."""
    from gpu.process.engine_host import EngineHost

    return EngineHost(engine, deliver=deliver)


@dataclass(frozen=True)
class _QueuedRequest(Generic[R]):
    channel: str
    request: Request[R]
    on_done: Callable[[R | Failure], None]
    on_progress: Callable[[Progress], None] | None
    priority: int


class RequestQueue(QObject):
    """The queue in front of one engine host.

    Parameters
    ----------
    factory : callable
        Creates the host of an engine, from the engine's name and a function that receives its events.
    """

    ready = pyqtSignal(object)
    """Device: the engine's process is ready."""
    warning_reported = pyqtSignal(str)
    """A warning of the engine's process about the user's folders, reported once."""
    engine_failed = pyqtSignal(object)
    """Failure: the engine's process cannot work."""
    halted = pyqtSignal(object)
    """Process id of an engine process that was suspended from outside; None once it continues."""
    busy_changed = pyqtSignal(bool)
    _event_received = pyqtSignal(int, int, object)

    def __init__(self, factory: HostFactory = create_engine_host, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._host: Host | None = None
        self._generation = 0
        self._running: tuple[int, _QueuedRequest[Any]] | None = None
        self._start_time = 0.0
        self._is_ready = self._is_cluster = False
        self._queued: dict[str, _QueuedRequest[Any]] = {}
        self._busy = False
        self._reported_warnings: list[str] = []
        self.device: Device | None = None
        """The engine's device, once its process is ready."""
        self.workers: tuple[WorkerStatus, ...] = ()
        """The workers of a cluster, once it is ready."""
        self.dashboard = ""
        """Address of the cluster's Dask dashboard, or ""."""
        connect_queued(self._event_received, self._on_event)

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
        return self._running is not None or bool(self._queued)

    def start(self, engine: str | ClusterSettings) -> None:
        """Start the process of an engine or cluster; the previous one ends, and its requests are dropped."""
        previous, self._host = self._host, None
        self.close()
        if previous is not None:
            run_in_background(previous.close)  # a process takes a while to end, a cluster longer
        self._generation += 1
        self._is_ready, self._is_cluster = False, isinstance(engine, ClusterSettings)
        self.device = None
        self.workers, self.dashboard = (), ""
        self._host = self._factory(engine, partial(self._forward_event, self._generation))
        self._host.start()
        self._start_next_request()

    def close(self) -> None:
        """End the engine's process."""
        host, self._host = self._host, None
        self._running = None
        self._queued.clear()
        if host is not None:
            host.close()
        self._report_busy()

    def post(
        self,
        channel: str,
        request: Request[R],
        on_done: Callable[[R | Failure], None],
        on_progress: Callable[[Progress], None] | None = None,
        priority: int = 0,
    ) -> None:
        """Queue a request; it replaces a waiting request of its channel.

        Parameters
        ----------
        on_done : callable
            Receives the request's result or a Failure.
        on_progress : callable or None
            Receives each Progress.
        priority : int
            The waiting request of highest priority runs first; among equals, the channel that has waited longest.
            Negative for background requests, which `stop` keeps.
        """
        self._queued[channel] = _QueuedRequest(channel, request, on_done, on_progress, priority)
        self._start_next_request()

    def drop(self, channel: str) -> None:
        """Remove the waiting request of a channel; one that runs continues."""
        self._queued.pop(channel, None)

    def has_request(self, channel: str) -> bool:
        """Return whether a request of the channel waits or runs."""
        return channel in self._queued or (self._running is not None and self._running[1].channel == channel)

    def age(self, channel: str) -> float:
        """Return for how many seconds a request of the channel has been running; 0 if none is.

        The start of the process does not count: whoever stops old requests would restart a slow process for ever.
        """
        runs = self._running is not None and self._running[1].channel == channel
        return time.monotonic() - self._start_time if runs and self._is_ready else 0.0

    def stop(self) -> None:
        """Stop the running request at once, and drop waiting ones except background requests (priority below 0).

        The engine's process is killed, and a new one is started.
        """
        self._queued = {channel: job for channel, job in self._queued.items() if job.priority < 0}
        self.interrupt()

    def interrupt(self) -> None:
        """Stop the running request at once, as `stop` does; waiting requests run in the new process."""
        if self._host is not None and self._running is not None:
            self._is_ready &= self._is_cluster  # which stops a run without a restart
            self._host.cancel()

    def _start_next_request(self) -> None:
        if self._host is not None and self._running is None and self._queued:
            # max() returns the first of equals, and a dict keeps insertion order.
            job = max(self._queued.values(), key=lambda waiting: waiting.priority)
            del self._queued[job.channel]
            self._running = (self._host.submit(job.request), job)
            self._start_time = time.monotonic()
        self._report_busy()

    def _report_busy(self) -> None:
        busy = self._running is not None
        if busy != self._busy:
            self._busy = busy
            self.busy_changed.emit(busy)

    def _forward_event(self, generation: int, number: int, event: Event) -> None:
        """Receive an event on the host's reader thread; the signal passes it to the main thread."""
        self._event_received.emit(generation, number, event)

    def _on_event(self, generation: int, number: int, event: Event) -> None:
        if generation != self._generation or self._host is None:
            return
        if number == 0:
            if isinstance(event, Ready):
                self._is_ready = True
                self._start_time = time.monotonic()
                self.device = event.device
                self.workers, self.dashboard = event.workers, event.dashboard
                if event.note not in ("", *self._reported_warnings):
                    self._reported_warnings.append(event.note)
                    self.warning_reported.emit(event.note)
                self.ready.emit(event.device)
            elif isinstance(event, Failure):
                self.engine_failed.emit(event)
            elif isinstance(event, EngineHalt):
                self.halted.emit(event.process)
            return
        if self._running is None or self._running[0] != number:
            return
        job = self._running[1]
        if isinstance(event, Progress):
            if job.on_progress is not None:
                job.on_progress(event)
        else:
            self._running = None
            try:
                job.on_done(event)
            finally:
                self._start_next_request()
