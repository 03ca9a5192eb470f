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

_MOST_FILES = 4096

# Numbers of Linux's own interface, the same on every processor that it runs on.
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION = 1
_FIRST_WITH_NETWORK = 4
_BIND_TCP, _CONNECT_TCP = 1, 2


class _Rules(ctypes.Structure):
    """Source: `struct landlock_ruleset_attr` of linux/landlock.h."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


def confine() -> None:
    """Give up core dumps, many open files, other users' rights, and on Linux TCP.

    A namespace without any network would do more, but takes a new user namespace: in that, files of other users look
    like those of one user, which is what the machine code in the cache folder is refused by.
    """
    _lower("RLIMIT_CORE", 0)  # it would hold the user's arrays, and nobody reads it
    _lower("RLIMIT_NOFILE", _MOST_FILES)
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _leave_the_network(system)


def limit_memory() -> None:
    """Let an allocation fail that is larger than the machine's memory, before the system looks for whom to kill.

    Not where CUDA runs: it reserves more addresses than there is memory.
    """
    if sys.platform == "win32":
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


def _leave_the_network(system: ctypes.CDLL) -> None:
    """Let this thread, and all that it starts, have no TCP any more (Landlock, from Linux 6.7)."""
    if system.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION) < _FIRST_WITH_NETWORK:
        return
    rules = _Rules(0, _BIND_TCP | _CONNECT_TCP)
    handle = system.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if handle >= 0:
        system.syscall(_RESTRICT_SELF, handle, 0)
        os.close(handle)
