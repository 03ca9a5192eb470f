"""Between the engine's process and the window: one request at a time, events as Qt signals on the main thread.

Requests wait in channels, and a channel holds one: a newer request takes the place of the one that waits. So a slider
that is dragged always shows the newest value that was ready in time, and nothing piles up.
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
    """Return what is said of work that cannot tell how far it is, "" of work that can."""
    unknown = progress.fraction is None and progress.message
    return f"{progress.message[0].upper()}{progress.message[1:]}…" if unknown else ""


Deliver = Callable[[int, Event], None]
Done = Callable[[Result | Failure], None]


class Host(Protocol):
    """What `gpu.process.host.EngineHost` offers. Only `deliver` is called on a thread of its own."""

    folder: SharedFolder

    def start(self) -> None: ...
    def submit(self, request: Request) -> int: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...


HostFactory = Callable[[str | Asked, Deliver], Host]


def engine_host(engine: str | Asked, deliver: Deliver) -> Host:
    """Return the host of a real engine's process."""
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
        Makes the host of an engine from its name and a function that takes its events.
    """

    ready = pyqtSignal(object)
    """Device: the engine's process is up."""
    noted = pyqtSignal(str)
    """A sentence of the engine's process on this user's folders, when it is heard first."""
    broken = pyqtSignal(object)
    """Failure: the engine's process cannot work."""
    halted = pyqtSignal(object)
    """The number of the engine's process, which was stopped from outside and waits; None when that is over."""
    busy_changed = pyqtSignal(bool)
    _arrived = pyqtSignal(int, int, object)

    def __init__(self, factory: HostFactory = engine_host, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._host: Host | None = None
        self._generation = 0
        self._flying: tuple[int, _QueuedRequest] | None = None
        self._since = 0.0
        self._waiting: dict[str, _QueuedRequest] = {}
        self._busy = False
        self._notes: list[str] = []
        self.device: Device | None = None
        """What the engine runs on, once its process is up."""
        self.workers: tuple[WorkerStatus, ...] = ()
        """Of a cluster, once it is up."""
        self.dashboard = ""
        """Where Dask's own page on that is; "" where it has none."""
        queue(self._arrived, self._take)

    @property
    def folder(self) -> SharedFolder:
        """Return the folder that arrays for the engine are put into."""
        assert self._host is not None, "the engine has not been started"
        return self._host.folder

    @property
    def started(self) -> bool:
        """Whether there is an engine's process."""
        return self._host is not None

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return self._flying is not None or bool(self._waiting)

    def start(self, engine: str | Asked) -> None:
        """Start an engine's process, or a cluster's; the one before it ends, and what it had to do is forgotten."""
        before, self._host = self._host, None
        self.close()
        if before is not None:
            in_background(before.close)  # a process takes a while to end, a cluster's longer
        self._generation += 1
        self.device = None
        self.workers, self.dashboard = (), ""
        self._host = self._factory(engine, partial(self._deliver, self._generation))
        self._host.start()
        self._advance()

    def close(self) -> None:
        """End the engine's process."""
        host, self._host = self._host, None
        self._flying = None
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
        """Ask for `request`; `done` gets its Result or Failure. It replaces one that waits in the same channel.

        Of those that wait, the one of highest `priority` goes first, then the one whose channel has waited longest.
        """
        self._waiting[channel] = _QueuedRequest(channel, request, done, progressed, priority)
        self._advance()

    def drop(self, channel: str) -> None:
        """Forget what waits in a channel; what already runs goes on."""
        self._waiting.pop(channel, None)

    def waits(self, channel: str) -> bool:
        """Whether a request of that channel waits or runs."""
        return channel in self._waiting or (self._flying is not None and self._flying[1].channel == channel)

    def age(self, channel: str) -> float:
        """Return for how many seconds a request of that channel has been running; 0 where none is."""
        return time.monotonic() - self._since if self._flying and self._flying[1].channel == channel else 0.0

    def stop(self) -> None:
        """Stop what runs, at once, and forget what waits but for the background's (a priority below 0).

        The engine's process is killed, and a new one takes over.
        """
        self._waiting = {channel: job for channel, job in self._waiting.items() if job.priority < 0}
        if self._host is not None and self._flying is not None:
            self._host.cancel()

    def _advance(self) -> None:
        if self._host is not None and self._flying is None and self._waiting:
            # max() returns the first of equals, and a dict keeps the order in which its keys came.
            job = max(self._waiting.values(), key=lambda waiting: waiting.priority)
            del self._waiting[job.channel]
            self._flying = (self._host.submit(job.request), job)
            self._since = time.monotonic()
        self._report_busy()

    def _report_busy(self) -> None:
        busy = self._flying is not None
        if busy != self._busy:
            self._busy = busy
            self.busy_changed.emit(busy)

    def _deliver(self, generation: int, number: int, event: Event) -> None:
        """Take an event on the host's reader thread; the signal carries it to the main one."""
        self._arrived.emit(generation, number, event)

    def _take(self, generation: int, number: int, event: Event) -> None:
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
        if self._flying is None or self._flying[0] != number:
            return
        job = self._flying[1]
        if isinstance(event, Progress):
            if job.progressed is not None:
                job.progressed(event)
        elif isinstance(event, Result | Failure):
            self._flying = None
            try:
                job.done(event)
            finally:
                self._advance()
