"""Repeat a verified run for its time: warm, since the first run includes one-time costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from gpu.engines.base import Engine, PhaseTimes

REPETITIONS = 9
FEWEST = 3
BUDGET_S = 1.0
"""Seconds after which no repetition starts; a run that took longer than this is not repeated."""


def repeat(
    engine: Engine, once: Callable[[], object], first: PhaseTimes, *, clock: Callable[[], float] = time.perf_counter
) -> tuple[list[PhaseTimes], PhaseTimes | None]:
    """Run a host program again, and return the times of each repetition.

    Parameters
    ----------
    engine : Engine
    once : callable
        Runs the host program to its end; the result is ignored.
    first : PhaseTimes
        Times of the verified run; returned alone if that took long.
    clock : callable
        Returns seconds.

    Returns
    -------
    list of PhaseTimes
        Each launch timed separately.
    PhaseTimes or None
        One more repetition without gaps between launches, if there are several.
    """
    if first.upload + first.kernel + first.download > 1e3 * BUDGET_S:
        return [first], None
    start = clock()
    warm: list[PhaseTimes] = []
    while len(warm) < FEWEST or (len(warm) < REPETITIONS and clock() - start < BUDGET_S):
        engine.take_times()
        once()
        warm.append(engine.take_times())
    if warm[0].launches < 2:
        return warm, None
    engine.apart = False
    try:
        once()
        return warm, engine.take_times()
    finally:
        engine.apart = True


def phases_of(warm: list[PhaseTimes]) -> PhaseTimes:
    """Return the median of each phase."""
    return PhaseTimes(
        median(times.upload for times in warm),
        median(times.kernel for times in warm),
        median(times.download for times in warm),
        warm[0].launches,
    )
