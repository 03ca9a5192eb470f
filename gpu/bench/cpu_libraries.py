"""Benchmark of CPU libraries on the same inputs as a pattern's variants."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from gpu.bench.interpreter import time_ms
from gpu.bench.ladder import compute_amount, prepare_inputs
from gpu.bench.measurement import Measurement
from gpu.declaration.benchmark import Case, SelfTimedPeer
from gpu.declaration.pattern import Pattern


def run(pattern: Pattern, case: Case, seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure the libraries that do a case's work, and yield their rows.

    Parameters
    ----------
    pattern : Pattern
        The pattern; its benchmark lists the libraries.
    case : Case
        The size and the other parameters.
    seed : int
        Random seed of the inputs.
    repetitions : int
        Timed runs of each library; one that times itself ignores it.

    Yields
    ------
    Measurement
        Times in ms. A library that is not installed or fails has no times, and a remark with the reason.
    """
    inputs, params = prepare_inputs(pattern, case, seed)
    amount, unit = compute_amount(pattern, inputs, params)
    for peer in pattern.benchmark.peers(inputs, params):
        if peer.package and importlib.util.find_spec(peer.package) is None:
            yield Measurement(case.work, peer.name, False, (), 0, "", f"{peer.package} is not installed here")
        elif isinstance(peer, SelfTimedPeer):
            try:
                milliseconds, remark = peer.measure(seed)
            except RuntimeError as error:
                yield Measurement(case.work, peer.name, False, (), 0, "", f"failed: {error}")
            else:
                yield Measurement(
                    case.work, peer.name, False, (milliseconds,), amount * peer.work_fraction, unit, remark
                )
        else:
            times = time_ms(peer.action, repetitions)
            yield Measurement(case.work, peer.name, False, times, amount * peer.work_fraction, unit)
