"""A run that was right, run again for its time: warm, as its first run pays for what no later one does."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from gpu.engines.base import Engine, PhaseTimes

REPETITIONS = 9
FEWEST = 3
BUDGET_S = 1.0
"""Seconds after which no further repetition begins; a run that took longer by itself is not repeated."""


def repeat(
    engine: Engine, once: Callable[[], object], first: PhaseTimes, *, clock: Callable[[], float] = time.perf_counter
) -> tuple[list[PhaseTimes], PhaseTimes | None]:
    """Run a host program again, and return the times of each repetition.

    Parameters
    ----------
    engine : Engine
    once : callable
        Runs the host program to its end; what comes of it is not looked at.
    first : PhaseTimes
        Of the run whose result was looked at: the only one where that took long.
    clock : callable
        Returns seconds.

    Returns
    -------
    list of PhaseTimes
        Each launch timed apart.
    PhaseTimes or None
        Of one more repetition whose launches follow each other, where there are several.
    """
    if first.upload + first.kernel + first.download > 1e3 * BUDGET_S:
        return [first], None
    begun = clock()
    warm: list[PhaseTimes] = []
    while len(warm) < FEWEST or (len(warm) < REPETITIONS and clock() - begun < BUDGET_S):
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
    """Return each phase's median."""
    return PhaseTimes(
        median(times.upload for times in warm),
        median(times.kernel for times in warm),
        median(times.download for times in warm),
        warm[0].launches,
    )
