"""Ctrl+C handling that works even while the main thread waits for a kernel."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from gpu.cli.exit_codes import STOPPED

STOPPED_MESSAGE = "lockstep: Stopped."
GRACE_S = 1.0
"""Seconds that a KeyboardInterrupt has to end the command cleanly."""


@contextlib.contextmanager
def end_on_ctrl_c() -> Iterator[None]:
    """End the process on Ctrl+C even where Python cannot raise KeyboardInterrupt, as while it waits for a GPU.

    Python raises KeyboardInterrupt on the main thread, between two bytecodes; a call that waits for an endless kernel
    never reaches the next one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    over = threading.Event()
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_after_grace, args=(receiver, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        sender.close()


def _end_after_grace(receiver: socket.socket, ended: threading.Event) -> None:
    with receiver:
        while received := receiver.recv(1):
            if received[0] == signal.SIGINT:
                if not ended.wait(GRACE_S):
                    _kill_children()
                    print(STOPPED_MESSAGE, file=sys.stderr, flush=True)
                    os._exit(STOPPED)
                return


def _kill_children() -> None:
    """Kill Dask's workers and other processes of `multiprocessing`, which this process has no time left to end."""
    if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
        for child in multiprocessing.active_children():
            child.kill()
