"""Time every variant of a pattern on one engine: each is verified against the reference, then replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpu.bench.record import RecordingEngine
from gpu.bench.row import Row
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.engines.base import Engine
from gpu.errors import CompileError, LaunchError
from gpu.patterns import find_pattern
from gpu.run import verify


@dataclass(frozen=True)
class Case:
    """A task for every variant of a pattern.

    Parameters
    ----------
    work : str
        What the tables call it.
    pattern : str
    make_inputs : callable or None
        A random generator -> inputs; None lets the pattern make them from the parameters.
    params : mapping
    variants : tuple of str
        Which variants; all of ours that are correct when empty. One that cannot take the inputs is left out.
    anew : bool
        Whether each repetition begins with the inputs anew, as it must where they are overwritten and that matters.
    """

    work: str
    pattern: str
    make_inputs: Callable[[np.random.Generator], Inputs] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    anew: bool = False


def measure(engine: Engine, case: Case, seed: int, repetitions: int) -> Iterator[Row]:
    """Yield a row for each variant, as it is measured."""
    pattern = find_pattern(case.pattern)
    params = pattern.check(case.params)
    given = case.make_inputs(np.random.default_rng(seed)) if case.make_inputs else {}
    inputs = pattern.inputs(given, params, seed)
    reference = pattern.reference(inputs, params)
    amount, unit = amount_of(pattern, inputs, params)
    for variant in pattern.variants:
        if variant.cautionary or variant.library or (case.variants and variant.name not in case.variants):
            continue
        if variant.obstacle(inputs, params):
            continue
        recorder = RecordingEngine(engine)
        try:
            result = _run(recorder, variant, inputs, params)[pattern.result]
        except (CompileError, LaunchError) as error:
            recorder.finish()
            yield Row(case.work, variant.title, ours=True, times_ms=(), amount=0, unit="", remark=error.message)
            continue
        _, verified = verify.compare(
            variant.comparable(params, result),
            variant.comparable(params, reference),
            pattern.tolerance(inputs, params),
        )
        del result
        times = recorder.replay(repetitions, anew=case.anew) if verified else ()
        recorder.finish()
        yield Row(
            case.work,
            variant.title,
            ours=True,
            times_ms=times,
            amount=amount,
            unit=unit,
            remark="verified" if verified else "WRONG, so not timed",
        )


def amount_of(pattern: Pattern, inputs: Inputs, params: Params) -> tuple[float, str]:
    """Return what a row counts: the least traffic, or where it is operations that people count those."""
    work, cost = pattern.work(inputs, params), pattern.cost(inputs, params)
    if work.unit in ("FLOP", "interaction"):
        return cost.flops / 1e9, "GFLOP/s"
    return (cost.bytes_read + cost.bytes_written) / 1e9, "GB/s"


def _run(engine: Engine, variant: Variant, inputs: Inputs, params: Params) -> Inputs:
    program = variant.run(engine, inputs, params)
    try:
        while True:
            next(program)
    except StopIteration as end:
        outputs: Inputs = end.value
        return outputs


def random_image(height: int, width: int) -> Callable[[np.random.Generator], Inputs]:
    """Return a maker of gray 8-bit images of uniform noise."""
    return lambda rng: {"image": rng.integers(0, 256, (height, width), np.uint8), "maxval": np.array(255)}


def constant_image(height: int, width: int) -> Callable[[np.random.Generator], Inputs]:
    """Return a maker of gray 8-bit images of one value."""
    return lambda rng: {
        "image": np.full((height, width), rng.integers(0, 256), np.uint8),
        "maxval": np.array(255),
    }
