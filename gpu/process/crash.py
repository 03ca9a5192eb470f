"""Explanations of how a process died."""

from __future__ import annotations

from gpu.base.child_processes import signal_name

_MEMORY_ADVICE = "Use a smaller input, or close other programs."
_EXPANSION_ADVICE = "Look for a macro, a template or an expression that expands without end."
_TIMEOUT_ADVICE = f"{_EXPANSION_ADVICE} If there is none, try again when this machine is less busy."
_REPORT_ADVICE = "The engine was restarted. If it happens again, please report it with the details."

_WINDOWS_CRASHES = {0xC0000005: "accessed invalid memory", 0xC00000FD: "ran out of stack"}


def describe_death(exit_code: int | None) -> tuple[str, str]:
    """Return a sentence about the death of the engine's process, and advice.

    Parameters
    ----------
    exit_code : int or None
        As in `multiprocessing.Process.exitcode`: a negative signal number if a signal ended the process.
    """
    if exit_code is None:
        return "The engine's process no longer answers.", _REPORT_ADVICE
    if exit_code < 0:
        return _describe_signal(signal_name(exit_code))
    what = _WINDOWS_CRASHES.get(exit_code % 2**32)
    if what:
        return f"The engine's process {what} and was ended.", _REPORT_ADVICE
    return f"The engine's process exited unexpectedly with code {exit_code}.", _REPORT_ADVICE


def _describe_signal(name: str) -> tuple[str, str]:
    match name:
        case "SIGPROF":
            return "Parsing the kernel exceeded the limit of CPU time and was ended.", _EXPANSION_ADVICE
        case "SIGALRM":
            return "Parsing the kernel exceeded the time limit and was ended.", _TIMEOUT_ADVICE
        case "SIGKILL":
            return "The engine's process was killed by the system, most likely because memory ran out.", _MEMORY_ADVICE
        case "SIGSEGV" | "SIGBUS":
            return f"The engine's process accessed invalid memory ({name}).", _REPORT_ADVICE
        case "SIGABRT":
            return "The engine's process aborted after an error (SIGABRT).", _REPORT_ADVICE
        case "SIGILL":
            return (
                "The engine's process executed an instruction that this CPU does not support (SIGILL).",
                _REPORT_ADVICE,
            )
    return f"The engine's process was ended by a signal from outside ({name}).", _REPORT_ADVICE
