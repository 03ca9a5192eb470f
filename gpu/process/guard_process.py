"""Process that ends child processes and removes a folder if their parent, the window or a command, is killed.

`gpu.process.guard` starts it: python guard_process.py FOLDER. The parent writes a line with the numbers of its child
processes to this process's input whenever they change; if the input ends without a farewell, the parent was killed.
Only the standard library is imported, for a fast start, and most of it only if the parent is killed.
"""

from __future__ import annotations

import os
import sys

FAREWELL = "goodbye"


def run_guard(folder: str) -> None:
    """Read from standard input which processes to end, and end them when the input closes."""
    watched: list[int] = []
    for line in sys.stdin:
        if line.strip() == FAREWELL:
            return
        watched = [int(word) for word in line.split()]
    import contextlib
    import shutil
    import signal

    for process_id in watched:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process_id, signal.SIGKILL)
            else:
                os.kill(process_id, signal.SIGTERM)
    for _ in range(3):  # the processes may have been adding files as they ended
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run_guard(sys.argv[1])
