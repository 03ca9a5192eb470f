"""Removal of network access from the engine's process on Linux, without privileges."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Sequence

# Constants of Linux.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION = 1
_FIRST_NETWORK_VERSION = 4
_BIND_TCP, _CONNECT_TCP = 1, 2

_PR_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL, _PROCESSOR, _FIRST_ARGUMENT = 0, 4, 16
_IO_URING_SETUP = 425
_FIRST_X32_CALL = 0x40000000

_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By processor: its identifier in a system call, and the number of `socket`. Source: linux/audit.h, asm/unistd.h."""

_UNIX, _NETLINK = 1, 16
"""Socket families for communication between local processes, and between libraries and the kernel."""


class _Rules(ctypes.Structure):
    """Source: `struct landlock_ruleset_attr` of linux/landlock.h."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _Instruction(ctypes.Structure):
    """Source: `struct sock_filter` of linux/filter.h."""

    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    """Source: `struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


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
        (_LOAD, 0, 0, _PROCESSOR),
        (_EQUAL, 2, refuse, processor),
        (_LOAD, 0, 0, _CALL),
        (_AT_LEAST, refuse, 4, _FIRST_X32_CALL),
        (_EQUAL, refuse, 5, _IO_URING_SETUP),
        (_EQUAL, 6, allow, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, allow, 8, _UNIX),
        (_EQUAL, allow, refuse, _NETLINK),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )
    install_filter(steps)


def install_filter(steps: Sequence[tuple[int, int, int, int]]) -> bool:
    """Install a seccomp filter for this thread and those that it starts; return whether the system supports that.

    Parameters
    ----------
    steps : sequence of tuple of int
        Instructions of `struct sock_filter`: code, target if true, target if false, operand. A target is the number of
        a step, from 0; 0 is the next step.
    """
    system = ctypes.CDLL(None)
    program = (_Instruction * len(steps))()
    for index, (code, yes, no, operand) in enumerate(steps):
        # Jump targets are encoded as the number of instructions to skip.
        skipped = [to - index - 1 if to else 0 for to in (yes, no)]
        program[index] = _Instruction(code, *skipped, operand)
    return bool(system.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(steps), program)), 0, 0) == 0)
