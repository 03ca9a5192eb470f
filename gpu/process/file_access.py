"""Restriction of a process to certain files, by Landlock on Linux, without privileges."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

# Constants of Linux. Source: linux/landlock.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
_FILE_RIGHTS = 0b100000000000111
"""Rights that apply to a file that is not a folder: execute, write, read, truncate."""
_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""Rights that each version of Landlock can restrict; later versions add only those for devices."""

_PR_SET_NO_NEW_PRIVS = 38


class _FileRules(ctypes.Structure):
    """Source: `struct landlock_ruleset_attr` of linux/landlock.h, version 1."""

    _fields_ = (("files", ctypes.c_uint64),)


class _PathRule(ctypes.Structure):
    """Source: `struct landlock_path_beneath_attr` of linux/landlock.h."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def is_supported() -> bool:
    """Return whether the system supports this restriction."""
    if sys.platform != "linux":
        return False
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)) >= 1


def find_python_folders() -> set[Path]:
    """Return the folders of Python and of the packages that Lockstep needs, which may be the user's own.

    They are not all folders of `sys.path`, which can have a teacher's files.
    """
    import clang
    import llvmlite
    import numpy as np
    import platformdirs

    packages = {Path(module.__path__[0]).parent for module in (clang, llvmlite, np, platformdirs)}
    return {Path(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)} | packages


def restrict_file_access(readable: Iterable[Path], writable: Iterable[Path] = ()) -> bool:
    """Restrict this process, and those that it starts, to certain files; return whether the system supports that.

    Parameters
    ----------
    readable, writable : iterable of Path
        Files, and folders with their contents; missing ones are ignored.
    """
    if not is_supported():
        return False
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    all_rights = _RIGHTS_BY_VERSION[min(version, max(_RIGHTS_BY_VERSION))]
    rules = _FileRules(all_rights)
    handle = system.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if handle < 0:
        return False
    try:
        for path in readable:
            _allow_path(system, handle, path, _EXECUTE | _READ_FILE | _READ_FOLDER)
        for path in writable:
            _allow_path(system, handle, path, all_rights)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(system.syscall(_RESTRICT_SELF, handle, 0) == 0)
    finally:
        os.close(handle)


def _allow_path(system: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            beneath = _PathRule(rights if path.is_dir() else rights & _FILE_RIGHTS, descriptor)
            system.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
        finally:
            os.close(descriptor)
