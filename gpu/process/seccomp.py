"""Filters of system calls, by seccomp of Linux.

Source of the constants and structures: linux/seccomp.h, linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

_PR_SET_SECCOMP, _FILTER = 22, 2
ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
"""Results of a filter; a refused call fails with EPERM, a missing one with ENOSYS."""
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Codes of instructions."""
CALL, PROCESSOR, FIRST_ARGUMENT = 0, 4, 16
"""What LOAD reads: offsets in `struct seccomp_data`."""


class _Instruction(ctypes.Structure):
    """Source: `struct sock_filter` of linux/filter.h."""

    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    """Source: `struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


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
