"""Privileges that the engine's process drops because it does not need them: it reads and runs untrusted texts.

A simulated kernel can access only its own arrays. As a second line of defense, the process drops the
privileges that the system lets an unprivileged process drop. If that fails, it runs with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

from gpu.base.resource_limits import lower_limit
from gpu.process.network import disable_network
from gpu.process.windows_job import limit_process_memory

_MAX_OPEN_FILES = 4096

_PR_SET_NO_NEW_PRIVS = 38  # of Linux, the same on every processor


def drop_privileges(*, network: bool = False) -> None:
    """Disable core dumps, many open files, other users' rights, and on Linux the network unless it is needed.

    A namespace without a network would be stricter, but needs a new user namespace, in which all other users' files
    seem to belong to one user; the check of machine code in the cache folder depends on owners.
    """
    lower_limit("RLIMIT_CORE", 0, 0)  # a dump would contain the user's arrays
    lower_limit("RLIMIT_NOFILE", _MAX_OPEN_FILES, _MAX_OPEN_FILES)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if not network:
            disable_network()


def limit_memory() -> None:
    """Make an allocation beyond the machine's memory fail, before the system kills a process.

    Not for CUDA, which reserves more addresses than there is memory.
    """
    if sys.platform == "win32":
        import psutil

        limit_process_memory(psutil.virtual_memory().total, ctypes.WinDLL("kernel32"))
        return
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # the value may be "max"; outside containers there is no file
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    lower_limit("RLIMIT_DATA", most, most)
