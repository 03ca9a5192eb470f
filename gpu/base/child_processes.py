"""Child processes that outlive Ctrl+C in the terminal, so that their parent can end them."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator


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
