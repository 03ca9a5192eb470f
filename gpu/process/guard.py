"""Small process that outlives a killed window, to end the engine's process and remove the shared folder.

The engine's process also watches its parent, but on a thread, and a driver that waits for a kernel may block all its
threads. The window writes the number of the engine's process to the guard's input, one per line; if the input ends
without a farewell, the window was killed. Only the standard library is imported, for a fast start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys

FAREWELL = "goodbye"


class Guard:
    """The window's side of the guard: starts it and sends what to end.

    Parameters
    ----------
    folder : str
        The folder to remove.
    """

    def __init__(self, folder: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        if getattr(sys, "frozen", False):
            return  # a frozen application has no interpreter to run this file
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # ignore the terminal's Ctrl+C and its end
                creationflags=flags,
            )

    def watch(self, process_id: int | None) -> None:
        """Set the process to end; None for none."""
        self._write(str(process_id or 0))

    def dismiss(self) -> None:
        """End the guard without ending the process."""
        if self._process is None:
            return
        self._write(FAREWELL)
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, line: str) -> None:
        if self._process and self._process.stdin:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()


def run_guard(folder: str) -> None:
    """Read from standard input which process to end, and end it when the input closes."""
    watched = 0
    for line in sys.stdin:
        if line.strip() == FAREWELL:
            return
        watched = int(line)
    if watched:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(watched, signal.SIGKILL)
            else:
                os.kill(watched, signal.SIGTERM)
    for _ in range(3):  # the process may have been adding files as it ended
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run_guard(sys.argv[1])
