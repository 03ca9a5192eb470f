"""Run a program in a child process; report its output and launches as they arrive."""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from gpu.base.child_processes import end_process, start_python
from gpu.base.errors import CompileError, InputError, SourcePosition
from gpu.declaration.pattern import Progress
from gpu.hosts.driver.journal import Journal, append_received_entries
from gpu.messages.programs import ProgramEnd, ProgramProgress, RunProgram, WholeProgram
from gpu.run.programs.child import CURRENT_LAUNCH_FILE, FAILURE_FILE, JOURNAL_FILE, REQUEST_FILE
from gpu.run.programs.launch_messages import LaunchConverter

SLOW_LAUNCH_S = 1.0
"""Seconds until a launch is reported as still running."""
_POLL_INTERVAL_S = 0.05
"""Seconds between two polls of the child's output and news."""
MAX_REPORT_CHARACTERS = 1 << 15
"""Characters of output that are reported per poll; if there is more in the long run, the newest are reported."""
MAX_PENDING_CHARACTERS = 1 << 20
"""Characters of output that may wait to be reported; beyond this the oldest are dropped."""
_PAUSE_S = 0.002
"""Seconds to sleep after a full chunk, so that a program that floods its output leaves others some time."""
_READ_BYTES = 1 << 16
_OUTPUT_TIMEOUT_S = 0.5
"""Seconds to wait for output after the program's end: a child of the program may still hold its output open."""


def run_program(request: RunProgram, report_progress: Callable[[Progress], None]) -> ProgramEnd:
    """Run a program; return its exit code, number of launches and duration.

    Raises
    ------
    EngineUnavailableError
        PyCUDA's Python files, or a C++ compiler, are not installed.
    CompileError
        The C++ compiler rejects the program.
    InputError
        The program cannot be run on this machine.
    """
    _check_requirements(request.program, lambda line: report_progress(ProgramProgress(output=f"{line}\n")))
    folder = Path(request.folder)
    child_request = {
        "path": request.program.path,
        "text": request.program.text,
        "words": request.program.arguments,
        "include_dirs": request.program.options.include_dirs,
        "defines": dict(request.program.options.defines),
        "script": request.program.is_script,
        "schedule": request.schedule,
        "only": request.recorded_launch,
        "gpu": request.gpu,
    }
    (folder / REQUEST_FILE).write_text(json.dumps(child_request), encoding="utf-8")
    start = time.monotonic()
    module = "-u", "-m", "gpu.run.programs.child"
    process = start_python(*module, str(folder), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        launches = _report_until_end(process, request, folder, report_progress)
    finally:
        end_process(process)
    with suppress(FileNotFoundError):
        failure = json.loads((folder / FAILURE_FILE).read_text(encoding="utf-8"))
        if not failure["compile"]:
            raise InputError(failure["message"], advice=failure["advice"], detail=failure["detail"])
        raise CompileError(
            failure["message"],
            advice=failure["advice"],
            detail=failure["detail"],
            position=_find_error_position(failure["detail"], Path(request.program.path).name),
        )
    return ProgramEnd(process.returncode, launches, time.monotonic() - start)


def _check_requirements(program: WholeProgram, report: Callable[[str], None]) -> None:
    if program.is_script:
        from gpu.hosts.pycuda import driver
        from gpu.hosts.script import find_libraries

        if find_libraries(program.text) != ("cupy",):
            driver.fetch_missing_files(report)
        return
    from gpu.hosts.program.host_compiler import find_compiler

    if not hasattr(os, "fork"):
        raise InputError(
            "The host code of a program runs on Linux and macOS only.",
            advice="On Windows, use WSL; single kernels run here.",
        )
    find_compiler()


def _find_error_position(log: str, name: str) -> SourcePosition | None:
    """Return the position of the first error in a compiler's log, if it is in the program's file."""
    match = re.search(rf"^(?:.*/)?{re.escape(name)}:(\d+):(?:(\d+):)? (?:fatal )?error: ", log, re.MULTILINE)
    return SourcePosition(name, int(match[1]), int(match[2] or 0)) if match else None


def _report_until_end(
    process: subprocess.Popen[bytes], request: RunProgram, folder: Path, report_progress: Callable[[Progress], None]
) -> int:
    """Report output and launches until the program has ended; return the number of launches."""
    assert process.stdout is not None
    output = _Output(process.stdout)
    journal, teller = Journal(), LaunchConverter(request.program)
    rest, read = b"", 0
    ended_at = None
    slow = _SlowLaunch(folder)
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_INTERVAL_S)
        if ended_at is None and process.returncode is not None:
            ended_at = time.monotonic()
        with suppress(FileNotFoundError), (folder / JOURNAL_FILE).open("rb") as file:
            file.seek(read)
            new = file.read()
            read += len(new)
            rest += new
        consumed, _ = append_received_entries(journal, rest)
        rest = rest[consumed:]
        text, launches = output.next_text(), teller.convert_new_launches(journal)
        under_way = slow.next_report(len(journal.entries))
        if text or launches or under_way:
            report_progress(ProgramProgress(output=text, launches=launches, current_launch=under_way))
        if (
            ended_at is not None
            and output.is_empty
            and (output.is_closed or time.monotonic() > ended_at + _OUTPUT_TIMEOUT_S)
        ):
            return len(journal.entries)
        if ended_at is not None:
            time.sleep(_POLL_INTERVAL_S / 5)


class _SlowLaunch:
    """The running launch, reported once it has run for a while, since it may never end."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / CURRENT_LAUNCH_FILE
        self._current = self._reported = ""
        self._since = 0.0

    def next_report(self, finished_count: int) -> str:
        """Return the running launch when it is to be reported, else ""; `finished_count` launches have finished."""
        with suppress(OSError):
            seen = self._file.read_text(encoding="utf-8")
            if seen != self._current:
                self._current, self._since = seen, time.monotonic()
        slow = (
            self._current.startswith(f"launch {finished_count + 1}:") and time.monotonic() - self._since > SLOW_LAUNCH_S
        )
        if not slow or self._current == self._reported:
            return ""
        self._reported = self._current
        return self._reported


class _Output:
    """Output of a program, read on a separate thread, so that the program never blocks for long."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._pending = ""
        self._omitted_count = 0
        self.is_closed = False
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def is_empty(self) -> bool:
        """Whether all output that was read has been reported."""
        return not self._pending

    def next_text(self) -> str:
        """Return the text to report next."""
        with self._lock:
            text, self._pending = self._pending[:MAX_REPORT_CHARACTERS], self._pending[MAX_REPORT_CHARACTERS:]
            left_out, self._omitted_count = self._omitted_count, 0
        return f"\n… {left_out:,} characters omitted here …\n{text}" if left_out else text

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with self._stream:
            while data := os.read(self._stream.fileno(), _READ_BYTES):
                self._add_text(decoder.decode(data))
                if len(data) == _READ_BYTES:
                    time.sleep(_PAUSE_S)
        self._add_text(decoder.decode(b"", final=True))
        self.is_closed = True

    def _add_text(self, text: str) -> None:
        with self._lock:
            self._pending += text
            if (over := len(self._pending) - MAX_PENDING_CHARACTERS) > 0:
                # Of a flood of output, the newest part is the most useful.
                self._pending = self._pending[over:]
                self._omitted_count += over
