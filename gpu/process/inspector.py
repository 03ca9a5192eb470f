"""Inspection of recordings from files by a limited process before the window uses their content."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from pathlib import Path

from gpu.base.child_processes import ONE_THREAD, end_process, start_python
from gpu.base.errors import InputError
from gpu.files.file_access import format_path, read_bytes
from gpu.recording.player_file import extract_recording

_CPU_LIMIT_SIGNAL = getattr(signal, "SIGXCPU", 0)
"""Signal that ends a process at its limit of CPU time."""

_WALL_TIME_FACTOR = 6
"""Factor of the CPU time limit after which a process is ended by wall time, on a busy machine."""


class Inspector:
    """Reader of recordings that another process has found valid.

    Starting that process takes longer than inspecting most recordings, so one can be started in advance.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle_process: subprocess.Popen[bytes] | None = None
        self._busy_processes: set[subprocess.Popen[bytes]] = set()

    def prepare(self) -> None:
        """Start a process for the next recording unless one is already waiting."""
        with self._lock:
            if self._idle_process is None:
                self._idle_process = _start_process()

    def read(self, path: Path) -> bytes:
        """Return the bytes of a recording's file, or of a page that contains one; these bytes were inspected.

        Raises
        ------
        InputError
            If the file cannot be read, is not a recording, is damaged, or needs more memory or time than its size
            allows.
        """
        self.prepare()
        # Imported only now, while the process starts: a window without recordings does not need it.
        from gpu.recording.file import MAX_BYTES

        data = extract_recording(read_bytes(path, MAX_BYTES))
        with self._lock:
            process, self._idle_process = self._idle_process or _start_process(), None
            self._busy_processes.add(process)
        try:
            message, advice = _inspect_recording(process, data, format_path(path))
        finally:
            with self._lock:
                self._busy_processes.discard(process)
            _end_process(process)
        if message:
            raise InputError(message, advice=advice)
        return data

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            processes = [*self._busy_processes, *filter(None, [self._idle_process])]
            self._idle_process = None
        for process in processes:
            _end_process(process)


def _start_process() -> subprocess.Popen[bytes]:
    # The window handles Ctrl+C and ends this process.
    return start_python("-m", "gpu.stepping.inspection", environment=ONE_THREAD, own_session=True)


def _inspect_recording(process: subprocess.Popen[bytes], data: bytes, name: str) -> tuple[str, str]:
    """Return the process's message and advice about a file; empty if it is valid."""
    from gpu.recording.recording import build_damage_error
    from gpu.stepping.inspection import FILE_BYTES_PER_CPU_S, MAX_CPU_S

    header = json.dumps([name, len(data)]).encode() + b"\n"
    seconds = MAX_CPU_S + len(data) // FILE_BYTES_PER_CPU_S
    too_slow = f"{name} exceeds the {seconds} s that reading a file of its size may take.", "Record fewer statements."
    with contextlib.suppress(OSError, ValueError, TypeError):
        try:
            answer, _ = process.communicate(header + data, _WALL_TIME_FACTOR * seconds)
        except subprocess.TimeoutExpired:
            return too_slow
        if process.returncode == -_CPU_LIMIT_SIGNAL:
            return too_slow
        message, advice = json.loads(answer)
        return str(message), str(advice)
    error = build_damage_error(name)
    return error.message, error.advice


def _end_process(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError), process:
        end_process(process)
