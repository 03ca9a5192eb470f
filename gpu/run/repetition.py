"""Repeat a verified run for its time: warm, since the first run includes one-time costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from gpu.engines.base import Engine, PhaseTimes

MAX_REPETITIONS = 9
MIN_REPETITIONS = 3
MAX_RUN_MS = 1000.0
"""A run whose first execution took more milliseconds on the device is not repeated."""
BUDGET_S = 0.06
"""Seconds after which no repetition starts: the window shows the result only afterwards."""


def repeat_run(
    engine: Engine,
    run_once: Callable[[], object],
    first_times: PhaseTimes,
    *,
    begin_run: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[PhaseTimes], PhaseTimes | None]:
    """Run a host program again, and return the times of each repetition.

    Parameters
    ----------
    run_once : callable
        Runs the host program to its end; the result is ignored.
    first_times : PhaseTimes
        Times of the verified run; returned alone if that took long.
    begin_run : callable
        Called before each repetition, as `RepeatingEngine.reuse_transfers` requires.
    clock : callable
        Returns seconds.

    Returns
    -------
    list of PhaseTimes
        Each launch timed separately.
    PhaseTimes or None
        One more repetition without gaps between launches, if there are several.
    """
    if first_times.upload + first_times.kernel + first_times.download > MAX_RUN_MS:
        return [first_times], None
    start = clock()
    warm: list[PhaseTimes] = []
    while len(warm) < MIN_REPETITIONS or (len(warm) < MAX_REPETITIONS and clock() - start < BUDGET_S):
        engine.take_times()
        begin_run()
        run_once()
        warm.append(engine.take_times())
    if warm[0].launches < 2:
        return warm, None
    engine.isolates_launches = False
    try:
        begin_run()
        run_once()
        return warm, engine.take_times()
    finally:
        engine.isolates_launches = True


def compute_median_times(first_times: PhaseTimes, warm_times: list[PhaseTimes]) -> PhaseTimes:
    """Return the median of the repetitions' kernel times, and the times of the first run's copies."""
    kernel = median(times.kernel for times in warm_times)
    return PhaseTimes(first_times.upload, kernel, first_times.download, warm_times[0].launches)
