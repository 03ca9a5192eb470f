"""Recordings from files are opened by a process with limits first, before the window uses what is in them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from gpu.errors import InputError
from gpu.files.opening import name_of, read_bytes
from gpu.stepping.player_file import within

_ROOT = Path(__file__).parents[2]
_TOO_LONG = getattr(signal, "SIGXCPU", 0)
"""What ends a process that has computed for as long as it may."""

_PATIENCE = 6
"""How many times as long as it may compute a process may take on a machine that is busy."""


class Inspector:
    """Reads recordings that were found sound by a process that nothing else depends on.

    Starting that takes longer than most recordings do, so that one is started ahead where one will be wanted.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: subprocess.Popen[bytes] | None = None
        self._busy: set[subprocess.Popen[bytes]] = set()

    def prepare(self) -> None:
        """Start a process for the next recording, unless one waits for it."""
        with self._lock:
            if self._waiting is None:
                self._waiting = _start()

    def read(self, path: Path) -> bytes:
        """Return the bytes of a recording's file, or of a page's own; what was read is what was looked at.

        Raises
        ------
        InputError
            With one sentence, where it cannot be read, is no recording, is damaged, or takes more memory or time than
            one of its size.
        """
        self.prepare()
        # Only here, while the process starts: a window that opens no recording does without.
        from gpu.simulator.trace.file import MOST_BYTES

        data = within(read_bytes(path, MOST_BYTES))
        with self._lock:
            process, self._waiting = self._waiting or _start(), None
            self._busy.add(process)
        try:
            message, advice = _ask(process, data, name_of(path))
        finally:
            with self._lock:
                self._busy.discard(process)
            _end(process)
        if message:
            raise InputError(message, advice=advice)
        return data

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            processes = [*self._busy, *filter(None, [self._waiting])]
            self._waiting = None
        for process in processes:
            _end(process)


def _start() -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    return subprocess.Popen(
        [sys.executable, "-m", "gpu.stepping.inspection"],
        cwd=_ROOT,
        # More threads only take more memory.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a terminal's Ctrl+C is for the window, whose end is the end of this
        creationflags=flags,
    )


def _ask(process: subprocess.Popen[bytes], data: bytes, name: str) -> tuple[str, str]:
    """Return what a process says of a file: a message and advice, empty where it is sound."""
    from gpu.stepping.inspection import BYTES_PER_S, MOST_S
    from gpu.stepping.recording import damaged

    header = json.dumps([name, len(data)]).encode() + b"\n"
    seconds = MOST_S + len(data) // BYTES_PER_S
    too_slow = f"{name} takes longer to read than the {seconds} s that one of its size may.", "Record fewer statements."
    with contextlib.suppress(OSError, ValueError, TypeError):
        try:
            said, _ = process.communicate(header + data, _PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            return too_slow
        if process.returncode == -_TOO_LONG:
            return too_slow
        message, advice = json.loads(said)
        return str(message), str(advice)
    error = damaged(name)
    return error.message, error.advice


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
