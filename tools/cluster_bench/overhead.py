"""Overhead of a cluster for runs that fit one device: the same run with and without Dask, verification included."""

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
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.declaration.presentation import ArrayPresentation
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.distributed_run import run_distributed
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run import verification
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload


@dataclass(frozen=True)
class OverheadRow:
    """Times of a run that fits one device.

    Parameters
    ----------
    local_s : float
        Seconds without Dask, on one device.
    one_worker_s, all_workers_s : float
        Seconds on a cluster's first worker, and on all.
    correct : bool
        Whether all results are correct.
    """

    work: str
    local_s: float
    one_worker_s: float
    all_workers_s: float
    correct: bool


OverheadWork = tuple[str, str, Mapping[str, Any], Inputs]
"""Pattern, variant, parameters, and inputs that the pattern does not generate."""


def make_overhead_works(n: int) -> tuple[OverheadWork, ...]:
    """Return the runs to measure, with about n elements each."""
    side = int(n**0.5)
    image = np.random.default_rng(n).integers(0, 256, (side, side), np.uint8)
    return (
        ("scan", "look-back", {"dtype": "int32", "n": n}, {}),
        ("sort", "onesweep", {"dtype": "int32", "n": n}, {}),
        ("convolution", "peak", {}, {"image": image, "maxval": np.array(255, np.uint8)}),
        ("matmul", "peak", {"n": side // 2}, {}),
    )


def measure(
    cluster: Cluster, overhead_works: Sequence[OverheadWork], repetitions: int, kind: str
) -> Iterator[OverheadRow]:
    """Run works on an engine of a kind in this process, and on the cluster; yield their rows.

    Parameters
    ----------
    cluster : Cluster
        The cluster; its first worker is also measured alone.
    overhead_works : sequence of OverheadWork
        The runs to measure, such as those of `make_overhead_works`.
    repetitions : int
        Timed runs of each work in each of the three ways.
    kind : str
        The name of the engine in this process, as for `gpu.engines.create_engine`.
    """
    with closing(engines.create_engine(kind)) as engine:
        for name, variant, params, inputs in overhead_works:
            pattern = find_pattern(name)
            all_params = pattern.check(params)
            arrays = pattern.prepare_inputs(inputs, all_params, 1)
            yield _row(cluster, engine, pattern, pattern.variant(variant), arrays, all_params, repetitions)


def _row(
    cluster: Cluster,
    engine: Engine,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    repetitions: int,
) -> OverheadRow:
    verdicts: list[bool] = []

    def run_plain() -> None:
        outcome = run_pattern(
            engine, Workload(pattern, variant, inputs, params), lambda progress: None, with_reference=False
        )
        result, reference = verification.prepare_comparison(pattern, variant, inputs, params, outcome.outputs)
        if isinstance(pattern.presentation, ArrayPresentation):
            present_error(result, reference)
        verdicts.append(verification.compare_results(result, reference, pattern.tolerance(inputs, params))[1])

    def runner_on(workers: int) -> Callable[[], None]:
        def run() -> None:
            part = cluster.limit_workers(workers)
            outcome, _ = run_distributed(part, Workload(pattern, variant, inputs, params), lambda progress: None)
            verdicts.append(bool(outcome.report.verified))

        return run

    elements = next(iter(inputs.values())).size
    runs = (run_plain, runner_on(1), runner_on(len(cluster.workers)))
    plain_s, one_s, all_s = (_measure_seconds(each, repetitions) for each in runs)
    return OverheadRow(f"{pattern.title}, {elements} elements", plain_s, one_s, all_s, all(verdicts))


def _measure_seconds(run: Callable[[], None], repetitions: int) -> float:
    """Return the median of the repetitions, after one run that compiles."""
    run()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
