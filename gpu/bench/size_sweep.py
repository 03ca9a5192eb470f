"""Measure every variant of every pattern on a GPU over sizes, within a time limit: verify, then time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator

from gpu.base.errors import CompileError, LaunchError
from gpu.bench.device_records import RecordedRun
from gpu.bench.ladder import prepare_case, verify_and_time
from gpu.declaration.benchmark import Case, random_image
from gpu.declaration.pattern import Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import Engine, PhaseTimes
from gpu.run.pattern_run import compute_throughput

LIMIT_S = 180.0
"""Time limit in seconds for all patterns together, without their smallest sizes, where kernels are compiled."""

MIN_SIZES = 3
"""Sizes of each pattern that are measured regardless of the time limit: fewer are not a curve."""

SLOW_MS = 50.0
"""Kernel time from which a variant is not measured at larger sizes."""


def run(
    engine: Engine,
    patterns: Iterable[Pattern],
    seed: int,
    repetitions: int,
    *,
    report: Callable[[str], None],
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[RecordedRun]:
    """Measure each variant at each size, and yield the results; a wrong variant is not timed.

    The remaining time is shared among the remaining patterns; a pattern's larger sizes are skipped if its share would
    not suffice.

    Parameters
    ----------
    report : callable
        Called with a sentence for each variant that does not run.
    clock : callable
        Returns seconds.
    """
    end = clock() + limit_s
    remaining = list(patterns)
    for index, pattern in enumerate(remaining):
        start = clock()
        share = (end - start) / (len(remaining) - index)
        durations: list[float] = []
        slow: set[str] = set()
        for size in pattern.benchmark.curve.sizes:
            if len(durations) >= MIN_SIZES and clock() - start + _expected_duration(durations) > share:
                break
            size_start = clock()
            for each in _measure_size(engine, pattern, size, slow, seed, repetitions, report):
                if each.median_ms > SLOW_MS:
                    slow.add(each.variant)
                yield each
            durations.append(clock() - size_start)
            if len(durations) == 1:
                start, end = start + durations[0], end + durations[0]


def _expected_duration(durations: list[float]) -> float:
    """Estimate the duration of the next size, as each takes longer than the one before."""
    return durations[-1] * max(1.0, durations[-1] / durations[-2] if durations[-2] > 0 else 1.0)


def _measure_size(
    engine: Engine,
    pattern: Pattern,
    size: int,
    skipped: set[str],
    seed: int,
    repetitions: int,
    report: Callable[[str], None],
) -> Iterator[RecordedRun]:
    curve = pattern.benchmark.curve
    image = pattern.is_image_pattern
    changed_params = {**curve.params, **({} if image else pattern.params_for_role(Role.SIZE, size))}
    make_inputs = random_image(size, size) if image else None
    case = Case(str(size), changed_params, make_inputs, restores_inputs=curve.restores_inputs)
    prepared = prepare_case(pattern, case, seed)
    inputs, params = prepared.inputs, prepared.params
    work, cost = pattern.work(inputs, params), pattern.cost(inputs, params)
    for variant in pattern.variants:
        if variant.deliberate_error or variant.name in skipped or variant.obstacle(inputs, params):
            continue
        if variant.unsupported_reason(engine.device):
            continue
        try:
            verified, times = verify_and_time(engine, variant, prepared, repetitions)
        except (CompileError, LaunchError) as error:
            report(f"{pattern.name} {variant.name} {size}: {error.message}")
            continue
        times = times or (0.0,)
        median = statistics.median(times)
        rate = compute_throughput(work, PhaseTimes(kernel=median))
        yield RecordedRun(
            pattern.name,
            variant.name,
            size,
            dict(curve.params),
            round(median, 6),
            round(min(times), 6),
            round(max(times), 6),
            len(times),
            float(f"{rate.value:.6g}"),
            rate.unit,
            cost.bytes_read + cost.bytes_written,
            verified,
        )
