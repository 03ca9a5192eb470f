"""Observation of accesses by the host code of a program: the first one to each watched page raises a signal.

Its handler runs in the thread that accesses the page, on Linux for x86-64 and AArch64; elsewhere nothing is watched.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpu.base.errors import SourcePosition

IS_SUPPORTED = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")

_SIGSEGV, _SA_SIGINFO = 11, 4
_ADDRESS_OFFSET = 16
"""Of `si_addr` in `siginfo_t`."""
_ERROR_OFFSET, _WRITE_BIT = 40 + 8 * 19, 2
"""Of the page fault's error code in `ucontext_t` of x86-64, and the bit that a write sets there."""
_MAX_FRAMES = 64

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _SignalAction(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class _SymbolInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class WatchedRange:
    """Whole pages to watch.

    Parameters
    ----------
    address : int
        The first page's address.
    size : int
        Bytes.
    watches_reads : bool
        Whether reads are watched too; otherwise only writes.
    """

    address: int
    size: int
    watches_reads: bool


def build_range(address: int, size: int, watches_reads: bool) -> WatchedRange:
    """Return the pages that contain some bytes."""
    first = address // mmap.PAGESIZE * mmap.PAGESIZE
    end = -(-(address + size) // mmap.PAGESIZE) * mmap.PAGESIZE
    return WatchedRange(first, end - first, watches_reads)


class PageWatch:
    """Calls a function before the first access of the process to each watched page.

    Parameters
    ----------
    on_access : callable
        Called with the address, and whether the access is a write. In its call no page is watched; afterwards the
        accessed page is no longer watched.
    """

    def __init__(self, on_access: Callable[[int, bool], None]) -> None:
        self._on_access = on_access
        self._ranges: list[WatchedRange] = []
        self._open_pages: set[int] = set()
        self._libc = ctypes.CDLL(None)
        self._libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._find_error_number = getattr(self._libc, "__errno_location")
        self._find_error_number.restype = ctypes.POINTER(ctypes.c_int)
        self._handler = _Handler(self._handle_signal)
        self._previous: _SignalAction | None = None

    def watch(self, ranges: Iterable[WatchedRange]) -> None:
        """Watch pages, all of them again."""
        self._ranges = list(ranges)
        self._open_pages.clear()
        if self._ranges:
            # Each time: libclang installs a handler of its own, which would raise the signal again without an address.
            action = _SignalAction(ctypes.cast(self._handler, ctypes.c_void_p), flags=_SA_SIGINFO)
            replaced = _SignalAction()
            self._libc.sigaction(_SIGSEGV, ctypes.byref(action), ctypes.byref(replaced))
            self._previous = self._previous or replaced
        for each in self._ranges:
            self._protect(each)

    def pause(self) -> None:
        """Watch nothing until the next call of `watch`."""
        for each in self._ranges:
            self._libc.mprotect(each.address, each.size, mmap.PROT_READ | mmap.PROT_WRITE)
        self._ranges = []

    def _protect(self, watched: WatchedRange) -> None:
        self._libc.mprotect(watched.address, watched.size, 0 if watched.watches_reads else mmap.PROT_READ)

    def _handle_signal(self, number: int, info: int, context: int) -> None:
        error_number = self._find_error_number().contents.value
        address = ctypes.c_size_t.from_address(info + _ADDRESS_OFFSET).value
        watched = next((each for each in self._ranges if 0 <= address - each.address < each.size), None)
        page = address // mmap.PAGESIZE * mmap.PAGESIZE
        if watched is None or page in self._open_pages:
            # An error of the program: the instruction is executed again, and ends the process.
            self._libc.sigaction(_SIGSEGV, ctypes.byref(self._previous or _SignalAction()), None)
            return
        writes = not watched.watches_reads
        if platform.machine() == "x86_64":
            writes = bool(ctypes.c_ulong.from_address(context + _ERROR_OFFSET).value & _WRITE_BIT)
        ranges, pages = self._ranges, {*self._open_pages, page}
        self.pause()
        self._on_access(address, writes)
        self._ranges, self._open_pages = ranges, pages
        for each in ranges:
            self._protect(each)
        for open_page in pages:
            self._libc.mprotect(open_page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
        self._find_error_number().contents.value = error_number


def find_host_line(shared_object: str) -> SourcePosition | None:
    """Return the line of a program that is being executed, called in `PageWatch`'s function; None if it is unknown."""
    libc = ctypes.CDLL(None)
    frames = (ctypes.c_void_p * _MAX_FRAMES)()
    for frame in frames[: libc.backtrace(frames, _MAX_FRAMES)]:
        found = _SymbolInfo()
        is_found = frame and libc.dladdr(ctypes.c_void_p(frame), ctypes.byref(found)) and found.file
        if is_found and found.file.decode() == shared_object:
            return _find_line(shared_object, frame - found.base)
    return None


@cache
def _find_line(shared_object: str, offset: int) -> SourcePosition | None:
    command = ["addr2line", "-e", shared_object, hex(offset)]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    file, _, rest = output.strip().rpartition(":")
    line = rest.split(" ")[0]
    return SourcePosition(Path(file).name, int(line)) if line.isdigit() and int(line) else None
