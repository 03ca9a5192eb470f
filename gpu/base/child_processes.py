"""Child processes: start them, shield them from Ctrl+C, end them, and describe how they ended."""

from __future__ import annotations

import contextlib
import os
import signal
import site
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from gpu.base.paths import ROOT

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment of a process with a memory limit: more threads would only need more memory."""


def keep_user_packages() -> dict[str, str]:
    """Return the environment variable by which a child with another home folder finds the user's own packages."""
    return {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}


def start_python(
    *arguments: str,
    stdin: int | IO[bytes] = subprocess.PIPE,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    inherited: Collection[str] | None = None,
    folder: Path | None = ROOT,
    own_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start this Python, without a console window.

    `environment` is added to this process's, of which `inherited` names the variables to pass on; None passes all. The
    child's current folder is the program's, or this process's if `folder` is None. The terminal's Ctrl+C does not reach
    a process with `own_session`.
    """
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | (subprocess.CREATE_NEW_PROCESS_GROUP if own_session else 0)
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **{name: text for name, text in os.environ.items() if inherited is None or name in inherited},
            **(environment or {}),
        },
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=own_session,
        creationflags=flags,
    )


def end_process(process: subprocess.Popen[Any], grace_s: float = 0.0) -> None:
    """Give a child some seconds to end; then kill it, with its group if it leads one, and wait for its end."""
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.kill()
        process.wait()


def kill_group(leader: int | None) -> None:
    """Kill a process and the processes that it started, such as compilers; do nothing if it does not lead a group."""
    if hasattr(os, "killpg") and leader is not None:
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)


def signal_name(exit_code: int) -> str:
    """Return the name of the signal that ended a process, such as "SIGKILL"; "" if none did."""
    if exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def last_line(stderr: str, default: str) -> str:
    """Return the last line of a failed process's error output, such as Python's exception; `default` if it is empty."""
    return (stderr.strip().splitlines() or [default])[-1]


@contextlib.contextmanager
def shield_children_from_ctrl_c() -> Iterator[None]:
    """Block the terminal's interrupt on this thread; processes and threads that it starts meanwhile inherit that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # After a cluster is killed, the tracker would print a warning for each leftover to the terminal.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    resource_tracker.ensure_running()  # starting it later would lift the block
    sys.warnoptions.pop()
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
