"""What the engine's process gives up, because nothing that it does needs it: it reads and runs texts of strangers.

A kernel on the simulator touches its own arrays and nothing else. This is for the day when that is not so: where the
system lets a process without rights give something up, it is given up; elsewhere the process works as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

from gpu.process.job import hold_to
from gpu.process.network import leave_the_network

_MOST_FILES = 4096

_PR_SET_NO_NEW_PRIVS = 38  # of Linux, the same on every processor


def confine(*, network: bool = False) -> None:
    """Give up core dumps, many open files, other users' rights, and on Linux the network, but where that is wanted.

    A namespace without any network would do more, but takes a new user namespace: in that, files of other users look
    like those of one user, which is what the machine code in the cache folder is refused by.
    """
    _lower("RLIMIT_CORE", 0)  # it would hold the user's arrays, and nobody reads it
    _lower("RLIMIT_NOFILE", _MOST_FILES)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if not network:
            leave_the_network()


def limit_memory() -> None:
    """Let an allocation fail that is larger than the machine's memory, before the system looks for whom to kill.

    Not where CUDA runs: it reserves more addresses than there is memory.
    """
    if sys.platform == "win32":
        import psutil

        hold_to(psutil.virtual_memory().total, ctypes.WinDLL("kernel32"))
        return
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # such as "max"; there is no such file outside of a container
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    _lower("RLIMIT_DATA", most)


def _lower(name: str, most: int) -> None:
    """Lower a limit, which can never be raised again, where it is higher."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # this system has none
        import resource

        kind = getattr(resource, name)
        limits = (most if limit == resource.RLIM_INFINITY else min(limit, most) for limit in resource.getrlimit(kind))
        soft, hard = limits
        resource.setrlimit(kind, (soft, hard))
