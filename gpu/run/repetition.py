"""Repeat a verified run for its time: warm, since the first run includes one-time costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median

from gpu.base.errors import LaunchError
from gpu.engines.base import Engine, PhaseTimes, RepeatingEngine

MAX_REPETITIONS = 9
MIN_REPETITIONS = 3
MAX_RUN_MS = 1000.0
"""A run whose first execution took more milliseconds on the device is not repeated."""
BUDGET_S = 0.15
"""Seconds after which no repetition starts: the window shows the result only afterwards."""


def repeat_run(
    engine: Engine,
    run_once: Callable[[], object],
    first_times: PhaseTimes,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[PhaseTimes], PhaseTimes | None]:
    """Run a host program again, and return the times of each repetition.

    Parameters
    ----------
    engine : Engine
    run_once : callable
        Runs the host program to its end; the result is ignored.
    first_times : PhaseTimes
        Times of the verified run; returned alone if that took long.
    clock : callable
        Returns seconds.

    Returns
    -------
    list of PhaseTimes
        Each launch timed separately. Only the first one has the times of all copies: at a default size they take most
        of a run's time, 30 ms to and 80 ms from an H100 for a scan whose kernels take 0.4 ms.
    PhaseTimes or None
        One more repetition without gaps between launches, if there are several.
    """
    if first_times.upload + first_times.kernel + first_times.download > MAX_RUN_MS:
        return [first_times], None
    if isinstance(engine, RepeatingEngine):
        # Without memory for the arrays that are kept, each repetition copies them.
        with suppress(LaunchError), engine.reuse_transfers():
            return _repeat(engine, run_once, clock)
    return _repeat(engine, run_once, clock)


def _repeat(
    engine: Engine, run_once: Callable[[], object], clock: Callable[[], float]
) -> tuple[list[PhaseTimes], PhaseTimes | None]:
    start = clock()
    warm: list[PhaseTimes] = []
    while len(warm) < MIN_REPETITIONS or (len(warm) < MAX_REPETITIONS and clock() - start < BUDGET_S):
        engine.take_times()
        run_once()
        warm.append(engine.take_times())
    if warm[0].launches < 2:
        return warm, None
    engine.isolates_launches = False
    try:
        run_once()
        return warm, engine.take_times()
    finally:
        engine.isolates_launches = True


def compute_median_times(warm_times: list[PhaseTimes]) -> PhaseTimes:
    """Return the median of the kernel times, and the times of the first repetition's copies."""
    first = warm_times[0]
    return PhaseTimes(first.upload, median(times.kernel for times in warm_times), first.download, first.launches)
