"""The parent's side of the engine's process: starts it, hands it one request at a time, ends it, starts it again."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from gpu.declaration.pattern import Progress
from gpu.distributed.asked import Asked
from gpu.messages.requests import Event, Failure, Halted, Ready, Request, Result
from gpu.messages.shared_arrays import SharedFolder
from gpu.process import worker
from gpu.process.crash import describe_death
from gpu.process.guard import Guard
from gpu.process.halt import is_halted

MAX_FUTILE_STARTS = 3
"""Processes in a row that may die without having served a job, before the host gives up."""

STOP_S = 3.0
"""Seconds that a cluster has to stop a run by itself, before its process is ended."""

LOOK_S = 1.0
"""Seconds between two looks at whether a process that has something to do was stopped from outside."""

_CANCELLED = Failure("cancelled", "Stopped.")
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class _Job:
    number: int
    payload: bytes
    request: Request  # its arrays live as long as it does


@dataclass
class _Stopping:
    """A run that is to stop by itself, and until when."""

    number: int
    until: float
    told: bool = False


@dataclass
class _Child:
    process: SpawnProcess
    connection: Connection
    label: str
    ready: bool = field(default=False)
    halted: bool = field(default=False)

    def kill(self) -> None:
        """End the process, and the compilers and such that it has started."""
        with contextlib.suppress(OSError, ValueError):
            if hasattr(os, "killpg") and self.process.pid is not None:
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError, ValueError):
            self.process.kill()


class EngineHost:
    """An engine in a process of its own, which can be stopped in the middle of anything and cannot take us with it.

    Parameters
    ----------
    engine : str or Asked
        As `gpu.engines.create` takes it, or several devices.
    deliver : callable
        Called with (job, event) on a thread of the host's; it must return soon. Job 0 stands for the engine itself:
        Ready after every start, Failure of kind "engine" when it cannot start; the next `submit` or `start` tries
        again. Halted where it was stopped from outside while it had something to do, and when that is over.

    Attributes
    ----------
    folder : SharedFolder
        Where a request's arrays must be. The files of a result's arrays go when their handles do.
    """

    def __init__(self, engine: str | Asked = "auto", *, deliver: Callable[[int, Event], None]) -> None:
        self.folder = SharedFolder()
        self._engine = engine
        self._deliver = deliver
        self._numbers = itertools.count(1)
        self._labels = (f"engine{number}" for number in itertools.count(1))
        self._thread = threading.Thread(target=self._supervise, name="engine-host", daemon=True)
        self._alarm, self._bell = _SPAWN.Pipe(duplex=False)
        self._guard: Guard | None = None

        self._lock = threading.Lock()  # guards everything below
        self._queue: deque[_Job] = deque()
        self._running: _Job | None = None
        self._cancelled: list[_Job] = []
        self._child: _Child | None = None
        self._wanted = False
        self._restart = False
        self._stopping: _Stopping | None = None
        self._closing = False
        self._rung = False
        self._futile_starts = 0
        atexit.register(self.close)

    def start(self) -> None:
        """Start the engine's process; it answers with Ready or Failure for job 0. Does nothing where it runs."""
        with self._lock:
            self._want()
        self._ring()

    def submit(self, request: Request) -> int:
        """Queue a request and return its number, which its events carry; the process is started if need be."""
        payload = pickle.dumps(request)
        with self._lock:
            job = _Job(next(self._numbers), payload, request)
            self._want()
            self._queue.append(job)
        self._ring()
        return job.number

    def cancel(self) -> None:
        """Kill the process and start another: every unfinished job fails with kind "cancelled", then Ready comes.

        A cluster is asked to stop first, and stays where it does: its workers take longer to start than most runs.
        """
        with self._lock:
            if not self._wanted:
                return
            running, self._running = self._running, None
            self._cancelled += [running] if running else []
            self._cancelled += self._queue
            self._queue.clear()
            if isinstance(self._engine, Asked) and running and self._child and self._stopping is None:
                self._stopping = _Stopping(running.number, time.monotonic() + STOP_S)
            else:
                self._restart = True
                if self._child:
                    self._child.kill()
        self._ring()

    def close(self) -> None:
        """End the process and remove the shared folder; nothing is delivered any more once this returns."""
        with self._lock:
            first, self._closing = not self._closing, True
            if self._child:
                self._child.kill()
            started = self._thread.ident is not None
        self._ring()
        if started and threading.current_thread() is not self._thread:
            self._thread.join(10)
        if first:
            atexit.unregister(self.close)
            self.folder.close()
            with self._lock:
                self._alarm.close()
                self._bell.close()

    def _want(self) -> None:
        if self._closing:
            raise RuntimeError("this engine host is closed")
        if not self._wanted:
            self._wanted = True
            self._futile_starts = 0
        if self._thread.ident is None:
            self._thread.start()

    def _ring(self) -> None:
        """Wake the supervisor."""
        with self._lock:
            if not self._rung and not self._bell.closed:
                self._rung = True
                self._bell.send_bytes(b"!")

    def _tell(self, number: int, event: Event) -> None:
        with self._lock:
            if self._closing:
                return
        try:
            self._deliver(number, event)
        except Exception:  # the receiver's mistake must not end the thread that keeps the engine
            logging.getLogger(__name__).exception("an event of job %d was not taken", number)

    # The rest runs on the supervisor's thread.

    def _supervise(self) -> None:
        _shield_children_from_ctrl_c()
        self._guard = Guard(self.folder.path)
        while not self._closing:
            self._restart_if_asked()
            child = self._child or self._spawn()
            if child:
                self._hand_over(child)
                self._listen(child)
            else:
                self._sleep([])
        if self._child:
            self._bury(self._child)
        self._guard.dismiss()

    def _restart_if_asked(self) -> None:
        with self._lock:
            asked, self._restart = self._restart, False
            cancelled, self._cancelled = self._cancelled, []
            if self._stopping is not None and self._stopping.until < time.monotonic():
                asked = True
            child = self._child if asked else None
            if asked:
                self._stopping = None
                self._futile_starts = 0
        for job in cancelled:
            self._tell(job.number, _CANCELLED)
        if child:
            self._bury(child)

    def _spawn(self) -> _Child | None:
        with self._lock:
            if not self._wanted or self._closing:
                return None
        label = next(self._labels)
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=worker.main,
            args=(theirs, self.folder.path, label, self._engine),
            name=f"lockstep-{label}",
            # A daemon may have no children, which a cluster's workers are; the guard ends them all with us.
            daemon=not isinstance(self._engine, Asked),
        )
        try:
            process.start()
        except OSError as error:
            ours.close()
            self._give_up(Failure("engine", f"The engine's process cannot be started: {error}."))
            return None
        finally:
            theirs.close()
        child = _Child(process, ours, label)
        if self._guard:
            self._guard.watch(process.pid)
        with self._lock:
            self._child = child
        return child

    def _hand_over(self, child: _Child) -> None:
        stopping = self._stopping
        if stopping is not None and not stopping.told:
            stopping.told = True
            with contextlib.suppress(OSError):
                child.connection.send((stopping.number, None))
        with self._lock:
            if self._restart or self._stopping or not child.ready or self._running or not self._queue:
                return
            job = self._running = self._queue.popleft()
        with contextlib.suppress(OSError):  # it is dying; its end of the connection will tell
            child.connection.send((job.number, job.payload))

    def _listen(self, child: _Child) -> None:
        with self._lock:
            busy = self._running is not None or bool(self._queue) or self._stopping is not None
        come = self._sleep([child.connection, child.process.sentinel], LOOK_S if busy or child.halted else None)
        if child.halted or not come:
            self._look_at(child)
        try:
            while child.connection.poll():
                number, event, leaving = child.connection.recv()
                self._take(child, number, event)
                if leaving:
                    self._bury(child)
                    return
        except (EOFError, OSError, pickle.UnpicklingError):
            self._mourn(child)
            return
        # Asking the process itself would free its number, which `kill` still needs to find those it started.
        if wait([child.process.sentinel], 0) and not child.connection.poll():
            self._mourn(child)

    def _sleep(self, others: list[Any], seconds: float | None = None) -> bool:
        """Wait until there is something to do; return False where nothing came in so many seconds."""
        come = wait([self._alarm, *others], seconds)
        if self._alarm in come:
            with self._lock:
                self._alarm.recv_bytes()
                self._rung = False
        return bool(come)

    def _look_at(self, child: _Child) -> None:
        """Tell whether a silent process has been stopped from outside, which looks like work otherwise."""
        process = child.process.pid
        halted = process is not None and is_halted(process)
        if halted != child.halted:
            child.halted = halted
            self._tell(0, Halted(process if halted else None))

    def _take(self, child: _Child, number: int, event: Event) -> None:
        if number == 0:
            child.ready = isinstance(event, Ready)
            if isinstance(event, Failure):
                self._give_up(event)
            else:
                self._tell(0, event)
            return
        with self._lock:
            current = self._running is not None and self._running.number == number
            if not isinstance(event, Progress):
                if current:
                    self._running = None
                    self._futile_starts = 0
                elif self._stopping is not None and self._stopping.number == number:
                    self._stopping = None
        if isinstance(event, Result):
            event = replace(event, arrays={name: self.folder.adopt(array) for name, array in event.arrays.items()})
        if current:
            self._tell(number, event)

    def _mourn(self, child: _Child) -> None:
        """Account for a process that died by itself."""
        exit_code, stack = self._bury(child)
        message, advice = describe_death(exit_code)
        with self._lock:
            if self._restart or self._closing:
                return
            job, self._running = self._running, None
            self._futile_starts = 0 if job else self._futile_starts + 1
            hopeless = self._futile_starts >= MAX_FUTILE_STARTS
        if job:
            self._tell(job.number, Failure("crash", message, advice, stack))
        elif hopeless:
            self._give_up(
                Failure(
                    "engine",
                    f"The engine does not start: {message}",
                    "Choose another engine, or see what `python main.py devices` says.",
                    stack,
                )
            )

    def _give_up(self, failure: Failure) -> None:
        with self._lock:
            self._wanted = False
            jobs = tuple(self._queue)
            self._queue.clear()
        self._tell(0, failure)
        for job in jobs:
            self._tell(job.number, failure)

    def _bury(self, child: _Child) -> tuple[int | None, str]:
        """End a process for good and remove what it left; return its exit code and its last stack."""
        with self._lock:
            self._child = self._stopping = None
            child.kill()
        child.connection.close()
        child.process.join(5)
        if child.halted:
            self._tell(0, Halted(None))
        if self._guard:
            self._guard.watch(None)
        stack = ""
        report = worker.crash_report(self.folder.path, child.label)
        with contextlib.suppress(OSError):
            stack = report.read_text(errors="replace")
        self.folder.sweep(child.label)
        return child.process.exitcode, stack


def _shield_children_from_ctrl_c() -> None:
    """Block the terminal's interrupt on this thread: a child inherits that for the moment until it ignores it."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        # Of a cluster that is ended at once it has things to tidy up, and would complain of each to the terminal.
        sys.warnoptions.append("ignore:resource_tracker:UserWarning")
        resource_tracker.ensure_running()  # starting it later would lift the block
        sys.warnoptions.pop()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
