"""Removal of network access from the engine's process on Linux, without privileges."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

from gpu.process import seccomp

# Constants of Linux.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION = 1
_FIRST_NETWORK_VERSION = 4
_BIND_TCP, _CONNECT_TCP = 1, 2

_IO_URING_SETUP = 425
_FIRST_X32_CALL = 0x40000000

_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By processor: its identifier in a system call, and the number of `socket`. Source: linux/audit.h, asm/unistd.h."""

_UNIX, _NETLINK = 1, 16
"""Socket families for communication between local processes, and between libraries and the kernel."""


class _Rules(ctypes.Structure):
    """Source: `struct landlock_ruleset_attr` of linux/landlock.h."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


def disable_network() -> None:
    """Prevent this thread, and processes that it starts, from making connections, as far as the system supports that.

    The process must have given up new privileges. Sockets between local processes still work.
    """
    if sys.platform != "linux":
        return
    system = ctypes.CDLL(None)
    _refuse_tcp(system)
    _refuse_sockets()


def _refuse_tcp(system: ctypes.CDLL) -> None:
    """Use Landlock, since Linux 6.7: applies to existing sockets too, but only to TCP."""
    if system.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION) < _FIRST_NETWORK_VERSION:
        return
    rules = _Rules(0, _BIND_TCP | _CONNECT_TCP)
    handle = system.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if handle >= 0:
        system.syscall(_RESTRICT_SELF, handle, 0)
        os.close(handle)


def _refuse_sockets() -> None:
    """Use a seccomp filter: `socket` fails with EPERM for all but local families.

    System calls of another processor's interface, and io_uring, which opens sockets without a call, are refused
    completely: neither a driver nor a compiler needs them.
    """
    if platform.machine() not in _SOCKET_CALLS or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    processor, socket = _SOCKET_CALLS[platform.machine()]
    allow, refuse = 9, 10
    steps = (
        (seccomp.LOAD, 0, 0, seccomp.PROCESSOR),
        (seccomp.EQUAL, 2, refuse, processor),
        (seccomp.LOAD, 0, 0, seccomp.CALL),
        (seccomp.AT_LEAST, refuse, 4, _FIRST_X32_CALL),
        (seccomp.EQUAL, refuse, 5, _IO_URING_SETUP),
        (seccomp.EQUAL, 6, allow, socket),
        (seccomp.LOAD, 0, 0, seccomp.FIRST_ARGUMENT),
        (seccomp.EQUAL, allow, 8, _UNIX),
        (seccomp.EQUAL, allow, refuse, _NETLINK),
        (seccomp.RETURN, 0, 0, seccomp.ALLOW),
        (seccomp.RETURN, 0, 0, seccomp.REFUSE),
    )
    seccomp.install_filter(steps)
