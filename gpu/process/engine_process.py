"""Main function of the engine's process: its main thread owns the engine and executes one request at a time."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu.base import resource_limits
from gpu.base.errors import EngineLostError, LockstepError
from gpu.base.installation import COMMAND
from gpu.declaration.pattern import Progress
from gpu.messages.events import Event, Failure, Ready
from gpu.messages.programs import ProgramProgress
from gpu.messages.requests import Request
from gpu.messages.shared_arrays import SharedFolder
from gpu.process.privileges import drop_privileges, limit_memory
from gpu.process.temporary_files import set_temporary_folder

if TYPE_CHECKING:
    from gpu.distributed.cluster.settings import ClusterSettings  # most processes do not need it

PROGRESS_INTERVAL_S = 0.05
"""Smallest number of seconds between two Progress events."""


class StopRequestedError(Exception):
    """The host canceled the run; the process continues, since its workers take long to start."""


def main(connection: Any, folder_path: str, label: str, engine_choice: str | ClusterSettings) -> None:
    """Serve requests until the connection closes.

    Every message to the host is (job, event, leaving); `leaving` means that this process ends and must be replaced.

    Parameters
    ----------
    connection : Connection
        The process's end of the connection to the host.
    folder_path : str
        The folder for shared arrays, temporary files and crash reports. It disappears when the host ends.
    label : str
        A name that is unique in the folder, with which this process's files begin.
    engine_choice : str or ClusterSettings
        The name of an engine, as for `gpu.engines.create_engine`, or the cluster to run on.
    """
    _detach_from_terminal()
    drop_privileges(network=not isinstance(engine_choice, str))
    resource_limits.allow_termination()  # the host reports the reason
    threading.Thread(target=_end_with_parent, args=(folder_path,), daemon=True).start()
    try:
        _run_process(connection, folder_path, label, engine_choice)
    except OSError:
        if Path(folder_path).exists():
            raise
        # The window and its folder disappeared while this process started: there is no receiver for the error.


def _run_process(connection: Any, folder_path: str, label: str, engine_choice: str | ClusterSettings) -> None:
    with open(crash_report_path(folder_path, label), "wb") as report, contextlib.suppress(BrokenPipeError):
        faulthandler.enable(report)
        set_temporary_folder(_create_temporary_folder(folder_path, label))
        _serve_requests(connection, SharedFolder(folder_path, label=label), engine_choice)
        faulthandler.disable()


def crash_report_path(folder_path: str, label: str) -> Path:
    """Return the file to which a crashing process writes its stack."""
    return Path(folder_path, f"{label}-crash.txt")


def _create_temporary_folder(folder_path: str, label: str) -> str:
    """Create and return this process's folder for temporary files."""
    path = Path(folder_path, f"{label}-temporary")
    path.mkdir()
    return str(path)


def _serve_requests(connection: Any, folder: SharedFolder, engine_choice: str | ClusterSettings) -> None:
    with contextlib.ExitStack() as stack:
        try:
            from gpu.lessons import handlers  # noqa: F401 - registers them
            from gpu.run.handlers.execution import to_failure

            opened = _open_engine(engine_choice) if isinstance(engine_choice, str) else _open_cluster(engine_choice)
            ready, carry_out = stack.enter_context(opened)
        except Exception as error:
            connection.send((0, _to_start_failure(error), True))
            return
        connection.send((0, ready, False))
        while True:
            try:
                job, payload = connection.recv()
            except EOFError:
                return
            if payload is None:
                continue  # the run to stop has already ended
            leaving = False
            event: Event
            try:
                event = carry_out(pickle.loads(payload), folder, _Throttle(connection, job))
            except StopRequestedError:
                event = Failure("cancelled", "Stopped.")
            except Exception as error:
                event = to_failure(error)
                # After an unforeseen error, the engine's state is unknown.
                leaving = event.kind == "bug" or isinstance(error, EngineLostError)
            connection.send((job, event, leaving))
            if leaving:
                # Releasing a lost engine's resources can hang; the system releases them when the process ends.
                os._exit(0)


RequestExecutor = Callable[[Request[Any], SharedFolder, "_Throttle"], object]


@contextlib.contextmanager
def _open_engine(name: str) -> Iterator[tuple[Ready, RequestExecutor]]:
    from gpu import engines
    from gpu.run.handlers.bodies import discard_simulation
    from gpu.run.handlers.execution import execute_request
    from gpu.simulator.disk import find_problem

    engine = engines.create_engine(name)
    if engine.device.engine == "simulator":
        limit_memory()
    with contextlib.closing(engine):
        try:
            yield Ready(engine.device, find_problem()), partial(execute_request, engine)
        finally:
            discard_simulation(engine)


@contextlib.contextmanager
def _open_cluster(settings: ClusterSettings) -> Iterator[tuple[Ready, RequestExecutor]]:
    from gpu.distributed.cluster_session import ClusterSession

    with contextlib.closing(ClusterSession(settings)) as session:

        def execute_on_cluster(request: Request[Any], folder: SharedFolder, throttle: _Throttle) -> object:
            return session.execute(request, folder, throttle.forward_or_stop)

        yield session.ready, execute_on_cluster


def _to_start_failure(error: Exception) -> Failure:
    if isinstance(error, LockstepError):
        return Failure("engine", error.message, error.advice, error.detail)
    return Failure(
        "engine",
        f"The engine did not start: {type(error).__name__}: {error}",
        f"Choose another engine, or check `{COMMAND} devices`.",
        traceback.format_exc(),
    )


class _Throttle:
    """Forward Progress events, limited to a rate that a screen needs."""

    def __init__(self, connection: Any, job: int) -> None:
        self._connection = connection
        self._job = job
        self._next = 0.0
        self._phase = ""

    def __call__(self, progress: Progress) -> None:
        if isinstance(progress, ProgramProgress):
            self._connection.send((self._job, progress, False))
            return
        now = time.monotonic()
        # Announce phases without a measure, such as the reference: no further event would follow.
        announced = progress.fraction is None and progress.message != self._phase
        if now < self._next and not announced:
            return
        self._next, self._phase = now + PROGRESS_INTERVAL_S, progress.message
        self._connection.send((self._job, progress, False))

    def forward_or_stop(self, progress: Progress) -> None:
        """Forward progress unless the host canceled the run; while a run executes, the host sends nothing else."""
        if self._connection.poll():
            self._connection.recv()
            raise StopRequestedError
        self(progress)


def _detach_from_terminal() -> None:
    """Ignore Ctrl+C and a closed terminal: they end the window, which ends this process and cleans up.

    A new session also puts this process and its children, such as compilers, in one group that the host can kill.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()


def _end_with_parent(folder_path: str) -> None:
    """Wait for the parent's end, remove the shared folder, and end this process whatever its main thread does.

    The guard does the same; this is for systems on which it could not start.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is the main function of a child process"
    parent.join()
    for _ in range(3):  # the main thread may still be adding files
        shutil.rmtree(folder_path, ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
