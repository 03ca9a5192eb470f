"""Detection of a process that was stopped from outside.

The system reports the state, not the process: one that waits for a kernel, or holds Python's lock for long, does not
answer either, and a debugger stops a process in another way.
"""

from __future__ import annotations


def is_halted(process_id: int) -> bool:
    """Return whether a process was stopped, as by SIGSTOP, and has not been continued."""
    import psutil  # imports modules that exist on Unix only

    try:
        return bool(psutil.Process(process_id).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
