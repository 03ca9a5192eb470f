"""A command in a process of its own, so that whatever ends it ends with a sentence."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from gpu import bounds
from gpu.cli import interrupts
from gpu.cli.exit_codes import REFUSED, STOPPED

_TOO_LONG = (
    "Reading the kernel's text took too long: look for a macro, a template or an expression that grows without end. "
    "If it does end, --max-seconds allows more."
)
_ENDINGS = {
    "SIGPROF": _TOO_LONG,
    "SIGALRM": "Reading the kernel's text took too long by the clock: it includes what does not come to an end, grows "
    "without end, or this machine is busy. If it does end, --max-seconds allows more.",
    "SIGSEGV": "Clang failed over the kernel's text: it is nested too deep, or too long. Divide its longest "
    "expressions and statements.",
    "SIGKILL": "The process was killed, most likely because memory ran out. Use a smaller input.",
}


def supervised(command: Callable[[], int]) -> int:
    """Run a command, which returns the exit code, in a child of this process; return that code, or one for its death.

    Call it before threads are started. Where processes cannot be forked, the command runs in this one.
    """
    if not hasattr(os, "fork"):
        return command()
    began = time.monotonic()
    watched, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        threading.Thread(target=end_with_parent, args=(watched,), daemon=True).start()
        bounds.allow_ending(began)
        try:
            return command()
        except KeyboardInterrupt:  # while the command was still being imported
            print(interrupts.SENTENCE, file=sys.stderr)
            return STOPPED
    os.close(watched)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _stop(child)
    if code >= 0:
        return code
    print(f"lockstep: {_how_it_died(-code)}", file=sys.stderr)
    return REFUSED


def end_with_parent(watched: int) -> None:
    """End this process when the other end of a pipe is closed, as its parent's is however that ends."""
    os.read(watched, 1)  # the parent's end closes with it
    os._exit(1)


def _stop(child: int) -> int:
    """End a child that the terminal's interrupt has reached too, or not: in good order where that takes no time."""
    end = time.monotonic() + interrupts.GRACE
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else STOPPED
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(interrupts.SENTENCE, file=sys.stderr)
    return STOPPED


def _how_it_died(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name in ("SIGBUS", "SIGABRT", "SIGILL", "SIGTRAP"):
        name = "SIGSEGV"
    return _ENDINGS.get(name, f"The process was ended from outside ({name}).")
