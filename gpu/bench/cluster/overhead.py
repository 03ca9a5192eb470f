"""What a run costs on a cluster that fits one device: beside the same run without Dask, from request to verdict."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu import engines
from gpu.declaration.arrays import present_error
from gpu.declaration.pattern import Inputs, Params, Pattern, Progress, Variant
from gpu.declaration.presentation import ArrayPresentation
from gpu.distributed.cluster import Cluster
from gpu.distributed.run import run_distributed
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run import verify
from gpu.run.execute import run_pattern


@dataclass(frozen=True)
class OverheadRow:
    """A run that fits one device.

    Parameters
    ----------
    work : str
    plain_s : float
        Seconds without Dask, on one device.
    one_s, all_s : float
        Seconds on a cluster's first worker, and on all.
    right : bool
    """

    work: str
    plain_s: float
    one_s: float
    all_s: float
    right: bool


OverheadWork = tuple[str, str, Mapping[str, Any], Inputs]
"""A pattern, a variant, values of parameters, inputs where the pattern does not make them."""


def works(n: int) -> tuple[OverheadWork, ...]:
    """Return what is run, of about n elements."""
    side = int(n**0.5)
    image = np.random.default_rng(n).integers(0, 256, (side, side), np.uint8)
    return (
        ("scan", "look-back", {"dtype": "int32", "n": n}, {}),
        ("sort", "onesweep", {"dtype": "int32", "n": n}, {}),
        ("convolution", "peak", {}, {"image": image, "maxval": np.array(255, np.uint8)}),
        ("matmul", "peak", {"n": side // 2}, {}),
    )


def measure(cluster: Cluster, given: Sequence[OverheadWork], repetitions: int, kind: str) -> Iterator[OverheadRow]:
    """Run works on an engine of a kind in this process, and on the cluster; yield a row for each."""
    with closing(engines.create(kind)) as engine:
        for name, variant, params, inputs in given:
            pattern = find_pattern(name)
            checked = pattern.check(params)
            made = pattern.inputs(inputs, checked, 1)
            yield _row(cluster, engine, pattern, pattern.variant(variant), made, checked, repetitions)


def _row(
    cluster: Cluster,
    engine: Engine,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    repetitions: int,
) -> OverheadRow:
    right: list[bool] = []

    def plain() -> None:
        outcome = run_pattern(engine, pattern, variant, inputs, params, _quiet, with_reference=False)
        ours, exact = verify.comparable(pattern, variant, inputs, params, outcome.outputs)
        if isinstance(pattern.presentation, ArrayPresentation):
            present_error(ours, exact)
        right.append(verify.compare(ours, exact, pattern.tolerance(inputs, params))[1])

    def on(workers: int) -> Callable[[], None]:
        def run() -> None:
            part = cluster.first(workers)
            outcome, _ = run_distributed(part, pattern, variant, inputs, params, _quiet)
            right.append(bool(outcome.report.verified))

        return run

    elements = next(iter(inputs.values())).size
    plain_s, one_s, all_s = (_seconds(each, repetitions) for each in (plain, on(1), on(len(cluster.workers))))
    return OverheadRow(f"{pattern.title}, {elements} elements", plain_s, one_s, all_s, all(right))


def _seconds(run: Callable[[], None], repetitions: int) -> float:
    """Return the median, after one that compiles."""
    run()
    times = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _quiet(progress: Progress) -> None:
    pass
