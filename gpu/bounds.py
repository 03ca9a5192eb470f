"""How much time and memory reading and running a stranger's kernel may take, and what ends it where nothing else can.

Clang is one long call: neither Python nor Ctrl+C has a say until it returns. The system has: it ends a process that
computes for too long, whatever that does. Only a process that somebody watches is ended so.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 5.0
"""What reading a text may take, and its blocks that are simulated together, before they are taken for endless."""
MEMORY = 1 << 30
"""Bytes that reading or running may add to what the process has."""

WAITING = 8.0
"""Seconds by the clock after which somebody has waited long enough, where so much computing is allowed at most."""

_LEAST_TO_READ = 6.0
"""Seconds by the clock that reading a text may last at least, as nobody sees how much of it is computing."""

_ended_alone = False
_awaited_since = -math.inf


def allow_ending(awaited_since: float = -math.inf) -> None:
    """Let `bounded` end this process: somebody watches it, and says what happened.

    Parameters
    ----------
    awaited_since : float
        When, by `time.monotonic`, somebody began to wait for the first answer of this process, where it gives only one.
    """
    global _ended_alone, _awaited_since
    _ended_alone, _awaited_since = True, awaited_since


def waiting(seconds: float) -> float:
    """Return the seconds by the clock that may pass for so many of computing."""
    return max(WAITING, 1.6 * seconds)


def first_waiting(seconds: float, least: float = 3.0) -> float:
    """Return what of them is left for what comes first, as starting this process has taken its part, but some time."""
    begun = time.monotonic() - _awaited_since
    return max(waiting(seconds) - begun, least) if begun < math.inf else waiting(seconds)


@contextlib.contextmanager
def bounded(seconds: float | None = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Hold what is done within to time and memory; one within another does not loosen that.

    Time that is up ends the process by SIGPROF, or by SIGALRM where it only waits; memory raises MemoryError, and is
    what clang gives up for. Nothing is held where nobody watches this process, or where the system does not offer it.

    Parameters
    ----------
    seconds : float or None
        Of computing, by all threads of the process; None for any.
    memory : int
        Bytes, beyond those that the process has.
    """
    if not _ended_alone:
        yield
        return
    with contextlib.ExitStack() as held:
        held.enter_context(_memory(memory))
        if seconds is not None and hasattr(signal, "setitimer"):
            held.enter_context(_timer(signal.ITIMER_PROF, seconds))
            held.enter_context(_timer(signal.ITIMER_REAL, first_waiting(seconds, _LEAST_TO_READ)))
        yield


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """Take no time off what `bounded` gives, for what is done once and is nobody's doing."""
    if not _ended_alone or not hasattr(signal, "setitimer"):
        yield
        return
    left = {which: signal.setitimer(which, 0)[0] for which in (signal.ITIMER_PROF, signal.ITIMER_REAL)}
    try:
        yield
    finally:
        for which, seconds in left.items():
            signal.setitimer(which, seconds)


@contextlib.contextmanager
def _timer(which: int, seconds: float) -> Iterator[None]:
    clock = time.process_time if which == signal.ITIMER_PROF else time.monotonic
    before, start = signal.getitimer(which)[0], clock()
    signal.setitimer(which, min(seconds, before or seconds))
    try:
        yield
    finally:
        # What ran before runs on, with what is left of it.
        signal.setitimer(which, max(before - (clock() - start), 1e-3) if before else 0)


@contextlib.contextmanager
def _memory(most: int) -> Iterator[None]:
    before = hold_memory(most)
    try:
        yield
    finally:
        if before is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, before)


def hold_memory(most: int) -> tuple[int, int] | None:
    """Hold this process to so many bytes more than it has; return what it was held to, None where that is not known."""
    taken = _taken()
    if taken is None:
        return None
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    limits = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([taken + most, *limits]), before[1]))
    return before


def _taken() -> int | None:
    """Return the bytes of addresses that this process has; None where the system does not say."""
    try:
        import resource

        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return None
