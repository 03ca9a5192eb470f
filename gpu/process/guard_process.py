"""Process that ends the engine's process and removes the shared folder if the window is killed.

`gpu.process.guard` starts it: python guard_process.py FOLDER. The window writes the number of the engine's process to
its input, one per line; if the input ends without a farewell, the window was killed. Only the standard library is
imported, for a fast start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

FAREWELL = "goodbye"


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
