"""Guard of processes such as the engine's: a small process that outlives a killed window or command.

The engine's process also watches its parent, but on a thread, and a driver that waits for a kernel may block all its
threads.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys

from gpu.base.child_processes import end_process, start_python
from gpu.process import guard_process


class Guard:
    """The side of the guard in the window or command: starts it and sends what to end.

    Parameters
    ----------
    folder : str
        The folder to remove.
    """

    def __init__(self, folder: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if getattr(sys, "frozen", False):
            return  # a frozen application has no interpreter to run this file
        with contextlib.suppress(OSError):
            self._process = start_python(
                "-I", "-S", guard_process.__file__, folder, stdout=subprocess.DEVNULL, own_session=True
            )

    def watch(self, *process_ids: int) -> None:
        """Set the processes to end, each with its group, instead of those before."""
        self._write(" ".join(map(str, process_ids)))

    def dismiss(self) -> None:
        """End the guard without ending the processes."""
        if self._process is None:
            return
        self._write(guard_process.FAREWELL)
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        end_process(self._process, grace_s=2)

    def _write(self, line: str) -> None:
        if self._process and self._process.stdin:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()
