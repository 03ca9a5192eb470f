"""Execution of a compiled program in this process: call its `main` and serve its runtime API calls."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gpu.base.errors import InputError
from gpu.hosts.driver.journal import current_journal
from gpu.hosts.program.overlaps import OverlapChecker
from gpu.hosts.program.program_units import ProgramUnit
from gpu.hosts.program.runtime import ENTRY_TYPE, Runtime
from gpu.hosts.program.stream_order import OrderedStreams

NO_MAIN = "The program has no function main."


class _ProgramOutput(io.TextIOBase):
    """Standard output through the program's own stream, so that kernels' and host code's output keep their order."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._print = library.lockstep_print if hasattr(library, "lockstep_print") else None

    def write(self, text: str) -> int:
        data = text.encode(errors="replace")
        if self._print is not None:
            self._print(ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
        return len(text)


def run_main(
    shared_object: Path, units: Sequence[ProgramUnit], command_line: Sequence[str], on_launch: Callable[[bool], None]
) -> int:
    """Run a program as `call_main` does, with a new runtime for its files, by number."""
    journal = current_journal()
    if not journal.checked:
        return call_main(shared_object, Runtime(units, on_launch), command_line)
    streams = OrderedStreams()
    journal.watcher = overlaps = OverlapChecker(streams, journal)
    return call_main(shared_object, Runtime(units, on_launch, streams, overlaps), command_line)


def call_main(shared_object: Path, runtime: Runtime, command_line: Sequence[str]) -> int:
    """Load a program, call its `main` and return the result; `exit` in the program ends this process.

    Parameters
    ----------
    command_line : sequence of str
        The program's name and arguments.

    Raises
    ------
    InputError
        If the program has no `main`.
    """
    entry = ENTRY_TYPE(runtime.execute_routine)
    os.environ["LOCKSTEP_ENTRY"] = str(ctypes.cast(entry, ctypes.c_void_p).value)
    # Default signal actions, as in any program: Ctrl+C ends it during computations too, and so does a closed pipe.
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    library = ctypes.CDLL(str(shared_object), mode=ctypes.RTLD_GLOBAL)
    if not hasattr(library, "main"):
        raise InputError(NO_MAIN, advice="To run a kernel of a file without `main`, use `simulate`.")
    if not hasattr(library, "lockstep_has_thrust"):  # its algorithms, which streams order, run as host code
        runtime.watch_host(str(shared_object))
    sys.stdout = _ProgramOutput(library)
    arguments = [os.fsencode(word) for word in command_line]
    argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    code = library.main(len(arguments), argv, ctypes.cast(ctypes.CDLL(None).environ, ctypes.c_void_p))
    ctypes.CDLL(None).exit(code & 0xFF)
    return int(code)
