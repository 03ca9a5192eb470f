"""Tell a process that was stopped from outside from one that works.

The system is asked, not the process: one that waits for a kernel, or holds Python's lock for long, answers nothing
either, and a debugger that looks at it stops it in another way.
"""

from __future__ import annotations


def is_halted(process: int) -> bool:
    """Whether a process was stopped, as by SIGSTOP, and does nothing until it is told to go on."""
    import psutil  # asks for Unix's modules where there are some

    try:
        return bool(psutil.Process(process).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
