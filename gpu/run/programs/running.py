"""Runs a program in a child of this process, and tells of its output and its launches as they come."""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from gpu.declaration.pattern import Progress
from gpu.driver.journal import Journal, take_down
from gpu.errors import CompileError, EngineUnavailableError, InputError, SourcePosition
from gpu.messages.programs import ProgramEnd, ProgramNews
from gpu.messages.requests import RunProgram
from gpu.run.programs.child import ASKED, FAILED, NEWS, UNDER_WAY
from gpu.run.programs.told import Teller

_ROOT = Path(__file__).parents[3]
SLOW_S = 1.0
"""Seconds that a launch takes before it is told which one is under way."""
_LOOK_S = 0.05
"""Seconds between two looks at what has come."""
MOST_AT_ONCE = 1 << 15
"""Characters of output that are told in one look; where it is more in the long run, the newest."""
MOST_WAITING = 1 << 20
"""Characters of output that wait to be told before what is in the middle is left out."""
_PAUSE_S = 0.002
"""Seconds after so much output that a program which floods it leaves others some time."""
_CHUNK = 1 << 16
_LAST_S = 0.5
"""Seconds that output is waited for after the end: a child of the program's may hold it open."""


def run_program(request: RunProgram, tell: Callable[[Progress], None]) -> ProgramEnd:
    """Run a program; return how it ended.

    Raises
    ------
    EngineUnavailableError
        PyCUDA's Python files, or a C++ compiler, are not here.
    CompileError
        What the C++ compiler rejects.
    InputError
        The program cannot be run here.
    """
    _check_possible(request.program.is_script)
    folder = Path(request.folder)
    asked = {
        "path": request.program.path,
        "text": request.program.text,
        "words": request.program.words,
        "include_dirs": request.program.options.include_dirs,
        "defines": dict(request.program.options.defines),
        "script": request.program.is_script,
        "schedule": request.schedule,
        "only": request.only,
        "gpu": request.gpu,
    }
    (folder / ASKED).write_text(json.dumps(asked), encoding="utf-8")
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "gpu.run.programs.child", str(folder)],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        launches = _follow(process, request, folder, tell)
    finally:
        process.kill()
        process.wait()
    with suppress(FileNotFoundError):
        said = json.loads((folder / FAILED).read_text(encoding="utf-8"))
        if not said["compile"]:
            raise InputError(said["message"], advice=said["advice"], detail=said["detail"])
        raise CompileError(
            said["message"],
            advice=said["advice"],
            detail=said["detail"],
            position=_place(said["detail"], Path(request.program.path).name),
        )
    return ProgramEnd(process.returncode, launches, time.monotonic() - begun)


def _check_possible(is_script: bool) -> None:
    if is_script:
        from gpu.pycuda import driver

        if reason := driver.complaint():
            raise EngineUnavailableError(reason, advice="`make setup` fetches them from PyPI.")
        return
    from gpu.program.host_compiler import compiler

    if not hasattr(os, "fork"):
        raise InputError(
            "A program's host code runs on Linux and macOS.",
            advice="On Windows run it in WSL; its kernels run alone.",
        )
    compiler()


def _place(log: str, name: str) -> SourcePosition | None:
    """Return where the first error of a compiler's log is, if it is in the program's file."""
    found = re.search(rf"^(?:.*/)?{re.escape(name)}:(\d+):(?:(\d+):)? (?:fatal )?error: ", log, re.MULTILINE)
    return SourcePosition(name, int(found[1]), int(found[2] or 0)) if found else None


def _follow(
    process: subprocess.Popen[bytes], request: RunProgram, folder: Path, tell: Callable[[Progress], None]
) -> int:
    """Tell what comes until the program has ended; return how many launches there were."""
    assert process.stdout is not None
    output = _Output(process.stdout)
    journal, teller = Journal(), Teller(request.program)
    rest, read = b"", 0
    ended_at = None
    slow = _SlowLaunch(folder)
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)
        if ended_at is None and process.returncode is not None:
            ended_at = time.monotonic()
        with suppress(FileNotFoundError), (folder / NEWS).open("rb") as file:
            file.seek(read)
            new = file.read()
            read += len(new)
            rest += new
        taken, _ = take_down(journal, rest)
        rest = rest[taken:]
        said, launches = output.taken(), teller.news(journal)
        under_way = slow.news(len(journal.entries))
        if said or launches or under_way:
            tell(ProgramNews(output=said, launches=launches, under_way=under_way))
        if ended_at is not None and output.empty and (output.closed or time.monotonic() > ended_at + _LAST_S):
            return len(journal.entries)
        if ended_at is not None:
            time.sleep(_LOOK_S / 5)


class _SlowLaunch:
    """The launch that is under way, once it has been for a while: it may be one that never ends."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / UNDER_WAY
        self._seen = self._told = ""
        self._since = 0.0

    def news(self, ended: int) -> str:
        """Return which it is, when that is to be told; `ended` is how many launches have ended."""
        with suppress(OSError):
            seen = self._file.read_text(encoding="utf-8")
            if seen != self._seen:
                self._seen, self._since = seen, time.monotonic()
        slow = self._seen.startswith(f"launch {ended + 1}:") and time.monotonic() - self._since > SLOW_S
        if not slow or self._seen == self._told:
            return ""
        self._told = self._seen
        return self._told


class _Output:
    """What a program writes, read on a thread of its own, so that it never waits for long."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._waiting = ""
        self._left_out = 0
        self.closed = False
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def empty(self) -> bool:
        """Whether all that was read is told."""
        return not self._waiting

    def taken(self) -> str:
        """Return what is to be told next."""
        with self._lock:
            said, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            left_out, self._left_out = self._left_out, 0
        return f"\n… {left_out:,} characters are left out here …\n{said}" if left_out else said

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with self._stream:
            while data := os.read(self._stream.fileno(), _CHUNK):
                self._add(decoder.decode(data))
                if len(data) == _CHUNK:
                    time.sleep(_PAUSE_S)
        self._add(decoder.decode(b"", final=True))
        self.closed = True

    def _add(self, text: str) -> None:
        with self._lock:
            self._waiting += text
            if (over := len(self._waiting) - MOST_WAITING) > 0:
                # The newest is what somebody wants to see of a flood.
                self._waiting = self._waiting[over:]
                self._left_out += over
