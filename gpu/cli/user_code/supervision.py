"""Run a command in a child process, and report with a message however the child ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from gpu.base import resource_limits
from gpu.base.child_processes import signal_name
from gpu.cli import interrupts
from gpu.cli.exit_codes import REFUSED, STOPPED

_CPU_LIMIT_MESSAGE = (
    "Parsing the kernel exceeded the limit of CPU time: look for a macro, a template or an expression that expands "
    "without end. If it does end, raise --max-seconds."
)
_ENDING_MESSAGES = {
    "SIGPROF": _CPU_LIMIT_MESSAGE,
    "SIGALRM": "Parsing the kernel exceeded the time limit: an included file never ends or expands without end, or "
    "this machine is busy. If it does end, raise --max-seconds.",
    "SIGSEGV": "Clang crashed on the kernel's text: its nesting is too deep, or it is too long. Split its longest "
    "expressions and statements.",
    "SIGKILL": "The process was killed, most likely because memory ran out. Use a smaller input.",
}


def run_supervised(command: Callable[[], int]) -> int:
    """Run a command in a child process; return the command's exit code, or `REFUSED` if a signal killed the child.

    Call this before threads start. Where processes cannot be forked, the command runs in this process.
    """
    if not hasattr(os, "fork"):
        return command()
    began = time.monotonic()
    child_end, parent_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(parent_end)
        threading.Thread(target=end_with_parent, args=(child_end,), daemon=True).start()
        resource_limits.allow_termination(began)
        try:
            return command()
        except KeyboardInterrupt:  # during the imports of the command
            print(interrupts.STOPPED_MESSAGE, file=sys.stderr)
            return STOPPED
    os.close(child_end)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _stop_child(child)
    if code >= 0:
        return code
    print(f"lockstep: {_describe_ending(signal_name(code))}", file=sys.stderr)
    return REFUSED


def end_with_parent(child_end: int) -> None:
    """Exit this process when the other end of a pipe closes, which happens however the parent exits."""
    os.read(child_end, 1)  # the parent's end closes with it
    os._exit(1)


def _stop_child(child: int) -> int:
    """Stop a child after Ctrl+C, which may have reached it too: wait for it briefly, then kill it."""
    end = time.monotonic() + interrupts.GRACE_S
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else STOPPED
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(interrupts.STOPPED_MESSAGE, file=sys.stderr)
    return STOPPED


def _describe_ending(name: str) -> str:
    if name in ("SIGBUS", "SIGABRT", "SIGILL", "SIGTRAP"):
        name = "SIGSEGV"
    return _ENDING_MESSAGES.get(name, f"The process was killed by a signal ({name}).")
