"""Say in plain words how a process died."""

from __future__ import annotations

import signal

_SMALLER = "Use a smaller input, or close other programs."
_ENDLESS = "Look for a macro, a template or an expression that grows without end."
_ENDLESS_OR_BUSY = f"{_ENDLESS} Where there is none, try again when this machine is less busy."
_REPORT = "The engine was started again. If it happens again, please report it with the details."

_WINDOWS_CRASHES = {0xC0000005: "read or wrote memory that is not its own", 0xC00000FD: "ran out of stack"}


def describe_death(exit_code: int | None) -> tuple[str, str]:
    """Return what happened to the engine's process, as a sentence, and advice.

    Parameters
    ----------
    exit_code : int or None
        As `multiprocessing.Process.exitcode` gives it: a negative signal number where a signal ended the process.
    """
    if exit_code is None:
        return "The engine's process no longer answers.", _REPORT
    if exit_code < 0:
        return _describe_signal(-exit_code)
    what = _WINDOWS_CRASHES.get(exit_code % 2**32)
    if what:
        return f"The engine's process {what} and was ended.", _REPORT
    return f"The engine's process ended by itself, with code {exit_code}.", _REPORT


def _describe_signal(number: int) -> tuple[str, str]:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    match name:
        case "SIGPROF":
            return "Reading the kernel's text took too long, and was ended.", _ENDLESS
        case "SIGALRM":
            return "Reading the kernel's text took too long by the clock, and was ended.", _ENDLESS_OR_BUSY
        case "SIGKILL":
            return "The engine's process was killed by the system, most likely because memory ran out.", _SMALLER
        case "SIGSEGV" | "SIGBUS":
            return f"The engine's process touched memory that it must not ({name}).", _REPORT
        case "SIGABRT":
            return "The engine's process gave up after an error that it could not handle (SIGABRT).", _REPORT
        case "SIGILL":
            return "The engine's process met an instruction that this processor does not have (SIGILL).", _REPORT
    return f"The engine's process was ended from outside ({name}).", _REPORT
