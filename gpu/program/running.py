"""A program that was compiled, run in this process: its `main` is called, and its routines are answered."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gpu.errors import InputError
from gpu.program.runtime import ENTRY, ProgramUnit, Runtime

NO_MAIN = "The program has no function main."


class _ProgramOutput(io.TextIOBase):
    """Writes through the program's own stream, so that what kernels print stands between what the program does."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._print = library.lockstep_print if hasattr(library, "lockstep_print") else None

    def write(self, text: str) -> int:
        data = text.encode(errors="replace")
        if self._print is not None:
            self._print(ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
        return len(text)


def run_main(
    shared_object: Path, units: Sequence[ProgramUnit], words: Sequence[str], on_launch: Callable[[bool], None]
) -> int:
    """Load a program and call its `main`; return what that returns. `exit` in the program ends this process.

    Parameters
    ----------
    shared_object : Path
    units : sequence of ProgramUnit
        Its files, by number.
    words : sequence of str
        The program's name, and its arguments.
    on_launch : callable
        As `Runtime` takes it.

    Raises
    ------
    InputError
        It has no `main`.
    """
    runtime = Runtime(units, on_launch)
    entry = ENTRY(runtime.answer)
    os.environ["LOCKSTEP_ENTRY"] = str(ctypes.cast(entry, ctypes.c_void_p).value)
    # As in any program of its own: Ctrl+C ends it, also while it computes, and so does a pipe that nobody reads.
    for each in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(each, signal.SIG_DFL)
    library = ctypes.CDLL(str(shared_object), mode=ctypes.RTLD_GLOBAL)
    if not hasattr(library, "main"):
        raise InputError(NO_MAIN, advice="`simulate` runs a kernel of a file without one.")
    sys.stdout = _ProgramOutput(library)
    given = [os.fsencode(word) for word in words]
    argv = (ctypes.c_char_p * (len(given) + 1))(*given, None)
    code = library.main(len(given), argv, ctypes.cast(ctypes.CDLL(None).environ, ctypes.c_void_p))
    ctypes.CDLL(None).exit(code & 0xFF)
    return int(code)
