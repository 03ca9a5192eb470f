"""Time and memory limits for parsing and running untrusted kernels, enforced by the operating system.

Parsing with Clang is one long call, which neither Python nor Ctrl+C can interrupt. The operating system can terminate a
process that exceeds its CPU time. This applies only to a process with a supervisor, see `allow_termination`.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path

CPU_SECONDS = 5.0
"""CPU time limit in seconds for parsing a text, and for one batch of simulated blocks."""
MEMORY_BYTES = 1 << 30
"""Bytes that parsing or running may allocate."""

MIN_WALL_SECONDS = 8.0
"""Smallest wall-clock limit in seconds for work with a CPU time limit."""

_MIN_PARSE_SECONDS = 6.0
"""Smallest wall-clock limit in seconds for parsing a text, as its share of CPU time cannot be observed."""

_is_supervised = False
_supervised_since = -math.inf
_counts_clock = True


def allow_termination(supervised_since: float = -math.inf, *, counts_clock: bool = True) -> None:
    """Allow `limit_resources` to end this process, because a supervisor watches it and reports the reason.

    Parameters
    ----------
    supervised_since : float
        Time by `time.monotonic` at which the supervisor began to wait, for a process that answers only once.
    counts_clock : bool
        False if the process has no limits in wall-clock time, which depend on how busy the machine is.
    """
    global _is_supervised, _supervised_since, _counts_clock
    _is_supervised, _supervised_since, _counts_clock = True, supervised_since, counts_clock


def compute_wall_limit(seconds: float) -> float:
    """Return the wall-clock limit for a CPU time limit, both in seconds; infinity if the clock does not count."""
    return max(MIN_WALL_SECONDS, 1.6 * seconds) if _counts_clock else math.inf


def compute_first_wall_limit(seconds: float, minimum: float = 3.0) -> float:
    """Return the wall-clock limit less the time spent on starting this process, but at least `minimum` seconds."""
    elapsed = time.monotonic() - _supervised_since
    return max(compute_wall_limit(seconds) - elapsed, minimum) if elapsed < math.inf else compute_wall_limit(seconds)


@contextlib.contextmanager
def limit_resources(seconds: float | None = CPU_SECONDS, memory: int = MEMORY_BYTES) -> Iterator[None]:
    """Limit time and memory within the context; a nested context cannot loosen the limits.

    Exceeding the CPU time ends the process by SIGPROF, and exceeding the wall-clock time by SIGALRM; exceeding the
    memory raises MemoryError, or makes Clang fail. Without a supervisor or system support nothing is limited.

    Parameters
    ----------
    seconds : float or None
        CPU time of all threads of the process; None for no limit.
    memory : int
        Bytes in addition to those that the process has.
    """
    if not _is_supervised:
        yield
        return
    with contextlib.ExitStack() as limits:
        limits.enter_context(_memory_limit(memory))
        if seconds is not None and hasattr(signal, "setitimer"):
            limits.enter_context(_time_limit(signal.ITIMER_PROF, seconds))
            wall = compute_first_wall_limit(seconds, _MIN_PARSE_SECONDS)
            if wall < math.inf:
                limits.enter_context(_time_limit(signal.ITIMER_REAL, wall))
        yield


@contextlib.contextmanager
def suspend_time_limits() -> Iterator[None]:
    """Suspend the time limits of `limit_resources`, for one-time work that the kernel does not cause."""
    if not _is_supervised or not hasattr(signal, "setitimer"):
        yield
        return
    left = {timer: signal.setitimer(timer, 0)[0] for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL)}
    try:
        yield
    finally:
        for timer, seconds in left.items():
            signal.setitimer(timer, seconds)


@contextlib.contextmanager
def _time_limit(timer: int, seconds: float) -> Iterator[None]:
    clock = time.process_time if timer == signal.ITIMER_PROF else time.monotonic
    before, start = signal.getitimer(timer)[0], clock()
    signal.setitimer(timer, min(seconds, before or seconds))
    try:
        yield
    finally:
        # Resume the outer timer with its remaining time.
        signal.setitimer(timer, max(before - (clock() - start), 1e-3) if before else 0)


@contextlib.contextmanager
def _memory_limit(max_bytes: int) -> Iterator[None]:
    before = lower_memory_limit(max_bytes)
    try:
        yield
    finally:
        if before is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, before)


def lower_memory_limit(max_bytes: int) -> tuple[int, int] | None:
    """Limit this process to `max_bytes` more than it has; return the previous limits, None if nothing was limited."""
    size = _address_space_bytes()
    return None if size is None else lower_limit("RLIMIT_AS", size + max_bytes)


def lower_limit(name: str, soft: int, hard: int | None = None) -> tuple[int, int] | None:
    """Lower a limit of this process, such as "RLIMIT_CPU", unless it is lower.

    `hard` is the most to which the process may raise it again; without it, the hard limit remains. Return the previous
    limits, None if the system does not support this limit.
    """
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        kind = getattr(resource, name)
        before = resource.getrlimit(kind)
        new = [
            old if limit is None else limit if old == resource.RLIM_INFINITY else min(old, limit)
            for old, limit in zip(before, (soft, hard), strict=True)
        ]
        resource.setrlimit(kind, (new[0], new[1]))
        return before
    return None


def _address_space_bytes() -> int | None:
    """Return the size of this process's address space; None if the system does not report it."""
    try:
        import resource

        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return None
