"""Host of the engine's process: starts and restarts it, sends it one request at a time, and ends it."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import multiprocessing
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from gpu.base.child_processes import kill_group, shield_children_from_ctrl_c
from gpu.base.installation import COMMAND
from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.messages.events import EngineHalt, Event, Failure, Ready
from gpu.messages.requests import ArrayResult, Request
from gpu.messages.shared_arrays import SharedFolder
from gpu.process import engine_process
from gpu.process.crash import describe_death
from gpu.process.guard import Guard
from gpu.process.halt import is_halted

MAX_FUTILE_STARTS = 3
"""Processes in a row that may die without completing a job before the host gives up."""

STOP_S = 3.0
"""Seconds that a cluster has to stop a run before its process is killed."""

HALT_CHECK_INTERVAL_S = 1.0
"""Seconds between two checks whether a busy process was stopped from outside."""

_CANCELED = Failure("cancelled", "Stopped.")
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class _Job:
    number: int
    payload: bytes
    request: Request[Any]  # keeps its arrays alive


@dataclass
class _StopRequest:
    """Request to stop a run, with its deadline."""

    number: int
    deadline: float
    sent: bool = False


@dataclass
class _Child:
    process: SpawnProcess
    connection: Connection
    label: str
    ready: bool = field(default=False)
    halted: bool = field(default=False)

    def kill(self) -> None:
        """End the process and its child processes, such as compilers."""
        with contextlib.suppress(OSError, ValueError):
            kill_group(self.process.pid)
            self.process.kill()


class EngineHost:
    """An engine in its own process, which can be stopped at any time and cannot crash this one.

    Parameters
    ----------
    engine : str or ClusterSettings
        As for `gpu.engines.create_engine`, or a cluster.
    deliver : callable
        Called with (job, event) on the host's thread; it must return soon. Job 0 is the engine itself: Ready after
        every start, Failure of kind "engine" if it cannot start, after which the next `submit` or `start` retries;
        EngineHalt if it was stopped from outside while busy, and again when that is over.

    Attributes
    ----------
    folder : SharedFolder
        Must contain a request's arrays. A result's array file is deleted with its handle.
    """

    def __init__(self, engine: str | ClusterSettings = "auto", *, deliver: Callable[[int, Event], None]) -> None:
        self.folder = SharedFolder()
        self._engine = engine
        self._event_callback = deliver
        self._job_numbers = itertools.count(1)
        self._labels = (f"engine{number}" for number in itertools.count(1))
        self._thread = threading.Thread(target=self._supervise, name="engine-host", daemon=True)
        self._wake_receiver, self._wake_sender = _SPAWN.Pipe(duplex=False)
        self._guard: Guard | None = None

        self._lock = threading.Lock()  # guards everything below
        self._queue: deque[_Job] = deque()
        self._running: _Job | None = None
        self._canceled_jobs: list[_Job] = []
        self._child: _Child | None = None
        self._is_started = False
        self._restart_requested = False
        self._stop_request: _StopRequest | None = None
        self._closing = False
        self._wake_pending = False
        self._futile_starts = 0
        atexit.register(self.close)

    def start(self) -> None:
        """Start the engine's process, which answers with Ready or Failure for job 0; do nothing if it runs."""
        with self._lock:
            self._ensure_started()
        self._wake()

    def submit(self, request: Request[Any]) -> int:
        """Queue a request and return its number, which its events have; start the process if necessary."""
        payload = pickle.dumps(request)
        with self._lock:
            job = _Job(next(self._job_numbers), payload, request)
            self._ensure_started()
            self._queue.append(job)
        self._wake()
        return job.number

    def cancel(self) -> None:
        """Kill and restart the process; every unfinished job fails with kind "cancelled", then Ready follows.

        A cluster is requested to stop first and kept if it does: starting its workers takes longer than most runs.
        """
        with self._lock:
            if not self._is_started:
                return
            running, self._running = self._running, None
            self._canceled_jobs += [running] if running else []
            self._canceled_jobs += self._queue
            self._queue.clear()
            if isinstance(self._engine, ClusterSettings) and running and self._child and self._stop_request is None:
                self._stop_request = _StopRequest(running.number, time.monotonic() + STOP_S)
            else:
                self._restart_requested = True
                if self._child:
                    self._child.kill()
        self._wake()

    def close(self) -> None:
        """End the process and remove the shared folder; no event is delivered after this returns."""
        with self._lock:
            first, self._closing = not self._closing, True
            if self._child:
                self._child.kill()
            started = self._thread.ident is not None
        self._wake()
        if started and threading.current_thread() is not self._thread:
            self._thread.join(10)
        if first:
            atexit.unregister(self.close)
            self.folder.close()
            with self._lock:
                self._wake_receiver.close()
                self._wake_sender.close()

    def _ensure_started(self) -> None:
        if self._closing:
            raise RuntimeError("this engine host is closed")
        if not self._is_started:
            self._is_started = True
            self._futile_starts = 0
        if self._thread.ident is None:
            self._thread.start()

    def _wake(self) -> None:
        """Wake the supervisor thread."""
        with self._lock:
            if not self._wake_pending and not self._wake_sender.closed:
                self._wake_pending = True
                self._wake_sender.send_bytes(b"!")

    def _deliver_event(self, number: int, event: Event) -> None:
        with self._lock:
            if self._closing:
                return
        try:
            self._event_callback(number, event)
        except Exception:  # a receiver's error must not end the supervisor thread
            logging.getLogger(__name__).exception("the receiver of an event of job %d failed", number)

    # The following methods run on the supervisor's thread.

    @shield_children_from_ctrl_c()
    def _supervise(self) -> None:
        self._guard = Guard(self.folder.path)
        while not self._closing:
            self._restart_if_requested()
            child = self._child or self._spawn()
            if child:
                self._send_job(child)
                self._receive_events(child)
            else:
                self._wait_for_work([])
        if self._child:
            self._clean_up(self._child)
        self._guard.dismiss()

    def _restart_if_requested(self) -> None:
        with self._lock:
            restart, self._restart_requested = self._restart_requested, False
            cancelled, self._canceled_jobs = self._canceled_jobs, []
            if self._stop_request is not None and self._stop_request.deadline < time.monotonic():
                restart = True
            child = self._child if restart else None
            if restart:
                self._stop_request = None
                self._futile_starts = 0
        for job in cancelled:
            self._deliver_event(job.number, _CANCELED)
        if child:
            self._clean_up(child)

    def _spawn(self) -> _Child | None:
        with self._lock:
            if not self._is_started or self._closing:
                return None
        label = next(self._labels)
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=engine_process.main,
            args=(theirs, self.folder.path, label, self._engine),
            name=f"lockstep-{label}",
            # A daemon must not have children, such as a cluster's workers; the guard ends them all with this process.
            daemon=not isinstance(self._engine, ClusterSettings),
        )
        try:
            process.start()
        except OSError as error:
            ours.close()
            self._fail_all_jobs(Failure("engine", f"The engine's process cannot be started: {error}."))
            return None
        finally:
            theirs.close()
        child = _Child(process, ours, label)
        if self._guard and process.pid is not None:
            self._guard.watch(process.pid)
        with self._lock:
            self._child = child
        return child

    def _send_job(self, child: _Child) -> None:
        stopping = self._stop_request
        if stopping is not None and not stopping.sent:
            stopping.sent = True
            with contextlib.suppress(OSError):
                child.connection.send((stopping.number, None))
        with self._lock:
            if self._restart_requested or self._stop_request or not child.ready or self._running or not self._queue:
                return
            job = self._running = self._queue.popleft()
        with contextlib.suppress(OSError):  # a dying process is detected when its connection is read
            child.connection.send((job.number, job.payload))

    def _receive_events(self, child: _Child) -> None:
        with self._lock:
            busy = self._running is not None or bool(self._queue) or self._stop_request is not None
        ready = self._wait_for_work(
            [child.connection, child.process.sentinel], HALT_CHECK_INTERVAL_S if busy or child.halted else None
        )
        if child.halted or not ready:
            self._check_halted(child)
        try:
            while child.connection.poll():
                number, event, leaving = child.connection.recv()
                self._handle_event(child, number, event)
                if leaving:
                    self._clean_up(child)
                    return
        except (EOFError, OSError, pickle.UnpicklingError):
            self._handle_death(child)
            return
        # Polling the process itself would free its number, which `kill` still needs to find its child processes.
        if wait([child.process.sentinel], 0) and not child.connection.poll():
            self._handle_death(child)

    def _wait_for_work(self, connections: list[Any], seconds: float | None = None) -> bool:
        """Wait for something to do; return False after a timeout."""
        ready = wait([self._wake_receiver, *connections], seconds)
        if self._wake_receiver in ready:
            with self._lock:
                self._wake_receiver.recv_bytes()
                self._wake_pending = False
        return bool(ready)

    def _check_halted(self, child: _Child) -> None:
        """Report whether a silent process was stopped from outside, which otherwise looks like work."""
        process = child.process.pid
        halted = process is not None and is_halted(process)
        if halted != child.halted:
            child.halted = halted
            self._deliver_event(0, EngineHalt(process if halted else None))

    def _handle_event(self, child: _Child, number: int, event: Event) -> None:
        if number == 0:
            child.ready = isinstance(event, Ready)
            if isinstance(event, Failure):
                self._fail_all_jobs(event)
            else:
                self._deliver_event(0, event)
            return
        with self._lock:
            current = self._running is not None and self._running.number == number
            if not isinstance(event, Progress):
                if current:
                    self._running = None
                    self._futile_starts = 0
                elif self._stop_request is not None and self._stop_request.number == number:
                    self._stop_request = None
        if isinstance(event, ArrayResult):
            event = replace(event, arrays={name: self.folder.adopt(array) for name, array in event.arrays.items()})
        if current:
            self._deliver_event(number, event)

    def _handle_death(self, child: _Child) -> None:
        """Report the job of a process that died unexpectedly."""
        exit_code, stack = self._clean_up(child)
        message, advice = describe_death(exit_code)
        with self._lock:
            if self._restart_requested or self._closing:
                return
            job, self._running = self._running, None
            self._futile_starts = 0 if job else self._futile_starts + 1
            hopeless = self._futile_starts >= MAX_FUTILE_STARTS
        if job:
            self._deliver_event(job.number, Failure("crash", message, advice, stack))
        elif hopeless:
            self._fail_all_jobs(
                Failure(
                    "engine",
                    f"The engine does not start: {message}",
                    f"Choose another engine, or check `{COMMAND} devices`.",
                    stack,
                )
            )

    def _fail_all_jobs(self, failure: Failure) -> None:
        with self._lock:
            self._is_started = False
            jobs = tuple(self._queue)
            self._queue.clear()
        self._deliver_event(0, failure)
        for job in jobs:
            self._deliver_event(job.number, failure)

    def _clean_up(self, child: _Child) -> tuple[int | None, str]:
        """Kill a process and remove its files; return its exit code and the stack of a crash."""
        with self._lock:
            self._child = self._stop_request = None
            child.kill()
        child.connection.close()
        child.process.join(5)
        if child.halted:
            self._deliver_event(0, EngineHalt(None))
        if self._guard:
            self._guard.watch()
        stack = ""
        report = engine_process.crash_report_path(self.folder.path, child.label)
        with contextlib.suppress(OSError):
            stack = report.read_text(errors="replace")
        self.folder.sweep(child.label)
        return child.process.exitcode, stack
