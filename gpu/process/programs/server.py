"""Process that compiles a program, and runs it on inputs in confined child processes: run it by `python -m`.

It reads lines of JSON from its standard input and answers each on its standard output. The first is the program; the
others are its runs. Only the children execute the program's host code.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.base import resource_limits
from gpu.base.errors import CompileError, EngineUnavailableError, LockstepError
from gpu.base.schedules import ROUND_ROBIN
from gpu.hosts.driver.journal import Journal, set_current_journal
from gpu.hosts.driver.launches import LoadedModule
from gpu.hosts.driver.memory import total_memory
from gpu.hosts.program.host_compiler import HostOptions, compile_program, find_compiler_paths
from gpu.hosts.program.main_runner import call_main
from gpu.hosts.program.program_units import ProgramUnit
from gpu.process.file_access import find_python_folders
from gpu.process.programs.confinement import MAX_OUTPUT_BYTES, confine_process
from gpu.process.programs.watched_runtime import REPORT, WatchedRuntime
from gpu.simulator.frontend.clang.parsing import confine_includes

_COMPILE_CPU_LIMIT_S = 30
_WALL_LIMIT_S = 20.0
"""Seconds of wall time after which a run is killed."""
_POLL_INTERVAL_S = 0.002
_INTERNAL_ERROR = 70
_COMPILER_ERROR = re.compile(r"(?:^|[ /])(?P<file>[^/: ]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)")
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+(?=[^\s/:]+:)")
"""Folders before a file's name and a colon."""


def main() -> None:
    """Compile the program that standard input describes, and run it until standard input closes."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    if hasattr(select, "poll"):  # elsewhere no program is compiled
        threading.Thread(target=_end_with_parent, daemon=True).start()
    request = json.loads(sys.stdin.readline())
    resource_limits.allow_termination(counts_clock=False)
    resource_limits.lower_limit("RLIMIT_CPU", _COMPILE_CPU_LIMIT_S, _COMPILE_CPU_LIMIT_S + 1)
    folder = Path(request["folder"])
    os.chdir(folder)  # texts with the file's name would differ in each folder, and no cache would have the program
    program: _Program | None = None
    try:
        program, answer = _compile(request, folder), {}
    except CompileError as error:
        answer = {"detail": error.detail, **_locate_error(error, file_name=request["name"])}
    except EngineUnavailableError as error:
        answer = {"unavailable": f"{error.message} {error.advice}".strip()}
    print(json.dumps(answer), file=output, flush=True)
    for line in sys.stdin:
        if program is not None:
            print(json.dumps(program.run(json.loads(line))), file=output, flush=True)


def _end_with_parent() -> None:
    """End this process, its compiler and its run when standard input closes, which happens however the grader ends."""
    input_end = select.poll()
    input_end.register(0, 0)  # of all events, only the end is reported
    input_end.poll()
    os.killpg(0, signal.SIGKILL)


def _compile(request: Mapping[str, Any], folder: Path) -> _Program:
    file = Path(request["name"])
    file.write_text(request["text"], encoding="utf-8")
    confine_includes(folder)
    unit = ProgramUnit(file, {}, ())
    shared_object = compile_program([file], HostOptions(), folder)
    module = unit.load()
    _prepare_runs(module)
    return _Program(shared_object, unit, module)


def _prepare_runs(module: LoadedModule) -> None:
    """Load what most runs need once, before they are forked: modules of Python, and the program's kernels."""
    import numpy.ctypeslib  # noqa: F401  # NumPy imports it at the first access

    total_memory()  # imports psutil
    find_python_folders()  # imports llvmlite
    find_compiler_paths()  # starts the compiler, which the confined children cannot
    for name in module.module.kernels:
        with suppress(LockstepError):  # the launch reports it
            module.module.kernel(name).prepare_launch()


def _locate_error(error: CompileError, *, file_name: str) -> dict[str, Any]:
    """Return an error's message without the program's temporary file, and its line; None if it is in no line of it."""
    if error.position is not None:
        return {"error": error.message, "line": error.position.line}
    found = _COMPILER_ERROR.search(error.message)
    if found is not None and found["file"] == file_name:
        return {"error": found["message"], "line": int(found["line"])}
    return {"error": _FOLDERS.sub("", error.message), "line": None}


@dataclass
class _Program:
    """A compiled program."""

    shared_object: Path
    unit: ProgramUnit
    module: LoadedModule

    def run(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Run the program in a child process.

        Parameters
        ----------
        case : mapping
            "input", the text of its standard input; "streams", "immediate", "compared" (immediate, with a search for
            races between operations) or an order of `DelayedStreams`; "schedule".
            Optional: "results", numbers to find in device memory after each launch; "launches_withheld", whether no
            launch runs, and the numbers are sought before each; "withheld_stream" of `DelayedStreams`; "failing", a
            kind of operation ("allocation", "copy", "launch" or "kernel") and the number of the one that fails, from 1.

        Returns
        -------
        dict
            "code", its exit code, negative for a signal; "output" and "errors", its output; "launches"; "allocations",
            the number of allocations that it did not free; "used_streams", the number of streams with operations, if
            they were late; "launching_streams", the number of streams with launches, and "default_launches", the number
            of launches in the legacy default stream, which does not count as one of them; "found", the indices of the
            results that were in device memory; "failed", whether an operation has failed as demanded; "overrun", the
            most bytes that a copy accessed past the end of a block from `new`; "timeout"; "unsupported", why the
            system cannot confine it; "internal", the traceback of an error of Lockstep; "refused", why the first launch
            with an invalid configuration failed.
        """
        with (
            tempfile.TemporaryFile(dir=self.unit.path.parent) as given,
            tempfile.TemporaryFile(dir=self.unit.path.parent) as written,
            tempfile.TemporaryFile(dir=self.unit.path.parent) as errors,
            tempfile.TemporaryFile(dir=self.unit.path.parent) as journal,
            mmap.mmap(-1, REPORT.size) as shared,
        ):
            given.write(case["input"].encode())
            given.seek(0)
            child = os.fork()
            if child == 0:
                self._run_child(case, (given, written, errors), journal, shared)
            code, is_timeout = _wait_for(child)
            return {
                "code": code,
                "timeout": is_timeout,
                "output": _read(written),
                "errors": _read(errors),
                **_parse_journal(_read(journal)),
                **_unpack_report(shared),
            }

    def _run_child(
        self, case: Mapping[str, Any], streams: tuple[IO[bytes], ...], journal_file: IO[bytes], shared: mmap.mmap
    ) -> None:
        """Confine this process, call the program's `main` and end."""
        channel = journal_file.fileno()

        def report_internal_error(trace: str) -> None:
            _write_line(channel, {"internal": trace})

        def report_refused_launch(reason: str) -> None:
            _write_line(channel, {"refused": reason})

        try:
            for number, stream in enumerate(streams):
                os.dup2(stream.fileno(), number)
            channel = os.dup2(journal_file.fileno(), 3, inheritable=False)
            os.closerange(4, os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 1 << 12)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            os.environ.pop("LOCKSTEP_CACHE", None)  # the program need not know the user's folders
            if reason := confine_process(self.unit.path.parent):
                _write_line(channel, {"unsupported": reason})
                os._exit(_INTERNAL_ERROR)
            journal = Journal(checked=True, schedule=case["schedule"] or ROUND_ROBIN, should_record=lambda *_: False)
            set_current_journal(journal)
            sent = 0

            def send_launches(refused: bool) -> None:
                nonlocal sent
                for entry in journal.entries[sent:]:
                    findings = [asdict(finding) for finding in entry.findings]
                    launch = {"kernel": entry.kernel, "threads": math.prod(entry.block), "findings": findings}
                    _write_line(channel, launch)
                for number in sorted(journal.changed_entries):
                    if number < sent:  # a later copy races with this launch
                        findings = [asdict(finding) for finding in journal.entries[number].findings]
                        _write_line(channel, {"changed": number, "findings": findings})
                journal.changed_entries.clear()
                sent = len(journal.entries)
                if runtime.found.any():
                    _write_line(channel, {"found": np.flatnonzero(runtime.found).tolist()})

            runtime = WatchedRuntime(
                [self.unit], journal, send_launches, shared, case, report_internal_error, report_refused_launch
            )
            runtime.add_module(0, self.module)
            call_main(self.shared_object, runtime, [self.unit.path.stem])
        except LockstepError as error:
            os.write(2, error.message.encode())
        except Exception:
            report_internal_error(traceback.format_exc())
        finally:
            os._exit(_INTERNAL_ERROR)


def _parse_journal(text: str) -> dict[str, Any]:
    """Return the launches of a run, what it found in device memory, and why it failed, if it did."""
    lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    launches = [each for each in lines if "kernel" in each]
    for each in lines:
        if "changed" in each:
            launches[each["changed"]]["findings"] = each["findings"]
    reasons = ("unsupported", "internal", "refused")
    return {
        "launches": launches,
        "found": next((each["found"] for each in reversed(lines) if "found" in each), []),
        **{reason: next((each[reason] for each in lines if reason in each), "") for reason in reasons},
    }


def _unpack_report(shared: mmap.mmap) -> dict[str, Any]:
    names = ("allocations", "used_streams", "launching_streams", "default_launches", "failed", "overrun")
    report = dict(zip(names, REPORT.unpack_from(shared, 0), strict=True))
    return {**report, "failed": bool(report["failed"])}


def _wait_for(child: int) -> tuple[int, bool]:
    """Return a child's exit code, and whether it was killed because it ran too long."""
    end = time.monotonic() + _WALL_LIMIT_S
    while time.monotonic() < end:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return os.waitstatus_to_exitcode(status), False
        time.sleep(_POLL_INTERVAL_S)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL, True


def _write_line(channel: int, entry: Mapping[str, Any]) -> None:
    os.write(channel, f"{json.dumps(entry)}\n".encode())


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MAX_OUTPUT_BYTES).decode(errors="replace")


if __name__ == "__main__":
    main()
