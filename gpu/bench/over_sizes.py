"""Every variant of every pattern on a GPU over sizes, within a time: verified, then timed, and kept as data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from gpu.bench.ladder import Exact, timed
from gpu.bench.recorded import RecordedRun
from gpu.declaration.benchmark import random_image
from gpu.declaration.pattern import Pattern
from gpu.declaration.roles import Role
from gpu.engines.base import Engine, PhaseTimes
from gpu.errors import CompileError, LaunchError
from gpu.run.execute import throughput

LIMIT_S = 180.0
"""Seconds that all patterns may take together, beside their smallest sizes, for which kernels are compiled."""

FEWEST_SIZES = 3
"""So many sizes of each pattern are measured however long they take: fewer make no curve."""

SLOW_MS = 50.0
"""Kernel time from which a variant is not measured at larger sizes."""


def run(
    engine: Engine,
    patterns: Iterable[Pattern],
    seed: int,
    repetitions: int,
    *,
    tell: Callable[[str], None],
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[RecordedRun]:
    """Measure, and yield each variant at each size as it comes; one that is wrong is not timed.

    `tell` is given a sentence for each that does not run. What is left of the time is shared among the patterns that
    are left; a pattern's larger sizes are left out where its share would not suffice.
    """
    end = clock() + limit_s
    chosen = list(patterns)
    for place, pattern in enumerate(chosen):
        begun = clock()
        share = (end - begun) / (len(chosen) - place)
        took: list[float] = []
        slow: set[str] = set()
        for size in pattern.benchmark.curve.sizes:
            if len(took) >= FEWEST_SIZES and clock() - begun + _next(took) > share:
                break
            start = clock()
            for each in _at(engine, pattern, size, slow, seed, repetitions, tell):
                if each.median_ms > SLOW_MS:
                    slow.add(each.variant)
                yield each
            took.append(clock() - start)
            if len(took) == 1:
                begun, end = begun + took[0], end + took[0]


def _next(took: list[float]) -> float:
    """Return how long the next size may take, as each takes longer than the one before."""
    return took[-1] * max(1.0, took[-1] / took[-2] if took[-2] > 0 else 1.0)


def _at(
    engine: Engine,
    pattern: Pattern,
    size: int,
    left_out: set[str],
    seed: int,
    repetitions: int,
    tell: Callable[[str], None],
) -> Iterator[RecordedRun]:
    curve = pattern.benchmark.curve
    image = pattern.of_images
    changed = {**curve.params, **({} if image else pattern.with_value(Role.SIZE, size))}
    params = pattern.check(changed)
    given = random_image(size, size)(np.random.default_rng(seed)) if image else {}
    inputs = pattern.inputs(given, params, seed)
    exact = Exact.of(pattern, inputs, params)
    work, cost = pattern.work(inputs, params), pattern.cost(inputs, params)
    for variant in pattern.variants:
        if variant.cautionary or variant.name in left_out or variant.obstacle(inputs, params):
            continue
        if variant.missing(engine.device):
            continue
        try:
            verified, times = timed(
                engine, pattern, variant, inputs, params, exact, repetitions=repetitions, anew=curve.anew
            )
        except (CompileError, LaunchError) as error:
            tell(f"{pattern.name} {variant.name} {size}: {error.message}")
            continue
        times = times or (0.0,)
        median = statistics.median(times)
        rate = throughput(work, PhaseTimes(kernel=median))
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
