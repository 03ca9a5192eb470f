"""Time every variant of a pattern on one engine: verify it against the reference result, then replay its launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.bench.measurement import Measurement
from gpu.bench.record import RecordingEngine
from gpu.declaration.benchmark import Case
from gpu.declaration.pattern import Array, Inputs, Params, Pattern, Variant
from gpu.declaration.rounding import RoundingBound
from gpu.engines.base import Engine
from gpu.errors import CompileError, LaunchError
from gpu.run import verify


def inputs_of(pattern: Pattern, case: Case, seed: int) -> tuple[Inputs, dict[str, Any]]:
    """Return the inputs of a case and the values of all parameters."""
    params = pattern.check(case.params)
    arrays = case.make_inputs(np.random.default_rng(seed)) if case.make_inputs else {}
    return pattern.inputs(arrays, params, seed), params


@dataclass(frozen=True)
class Exact:
    """The reference result and its tolerance, computed once: on many elements both take long."""

    reference: Array
    tolerance: float | Array | RoundingBound

    @classmethod
    def of(cls, pattern: Pattern, inputs: Inputs, params: Params) -> Exact:
        return cls(pattern.reference(inputs, params), pattern.tolerance(inputs, params))


@dataclass(frozen=True)
class Prepared:
    """A case with its inputs and reference result."""

    pattern: Pattern
    case: Case
    inputs: Inputs
    params: dict[str, Any]
    exact: Exact


def prepare(pattern: Pattern, case: Case, seed: int) -> Prepared:
    """Generate a case's inputs, and compute its reference result, which can take longer than the timing."""
    inputs, params = inputs_of(pattern, case, seed)
    return Prepared(pattern, case, inputs, params, Exact.of(pattern, inputs, params))


def prepared_ahead(cases: Iterable[tuple[Pattern, Case]], seed: int, ahead: int) -> Iterator[Prepared]:
    """Prepare cases, up to `ahead` of them on other threads while one is measured; yield them in order."""
    with ThreadPoolExecutor(ahead) as pool:
        waiting: deque[Future[Prepared]] = deque()
        for pattern, case in cases:
            waiting.append(pool.submit(prepare, pattern, case, seed))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def measure(engine: Engine, prepared: Prepared, repetitions: int) -> Iterator[Measurement]:
    """Measure each variant, and yield its row.

    Parameters
    ----------
    engine : Engine
    prepared : Prepared
    repetitions : int
    """
    pattern, case, inputs, params = prepared.pattern, prepared.case, prepared.inputs, prepared.params
    amount, unit = amount_of(pattern, inputs, params)
    for variant in pattern.variants:
        if variant.cautionary or variant.library or (case.variants and variant.name not in case.variants):
            continue
        if variant.alone or variant.missing(engine.device) or variant.obstacle(inputs, params):
            continue
        try:
            verified, times = timed(
                engine,
                pattern,
                variant,
                inputs,
                params,
                prepared.exact,
                repetitions=repetitions,
                anew=case.anew,
            )
        except (CompileError, LaunchError) as error:
            yield Measurement(case.work, variant.title, ours=True, times_ms=(), amount=0, unit="", remark=error.message)
            continue
        yield Measurement(
            case.work,
            variant.title,
            ours=True,
            times_ms=times,
            amount=amount,
            unit=unit,
            remark="verified" if verified else "WRONG, so not timed",
        )


def timed(
    engine: Engine,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    exact: Exact,
    *,
    repetitions: int,
    anew: bool,
) -> tuple[bool, tuple[float, ...]]:
    """Run a variant, compare its result with the reference result and, if it is correct, time its launches.

    Parameters
    ----------
    engine : Engine
    pattern : Pattern
    variant : Variant
    inputs, params : mapping
    exact : Exact
    repetitions : int
    anew : bool
        Upload the inputs again before each repetition, for launches that overwrite them.

    Returns
    -------
    bool
        Whether the result is correct.
    tuple of float
        The milliseconds of each repetition; empty for a wrong result.

    Raises
    ------
    CompileError, LaunchError
        The variant does not run.
    """
    recorder = RecordingEngine(engine)
    try:
        result = _run(recorder, variant, inputs, params)[pattern.result]
        _, verified = verify.compare(
            variant.comparable(params, result),
            variant.comparable(params, exact.reference),
            exact.tolerance,
        )
        del result
        return verified, recorder.replay(repetitions, anew=anew) if verified else ()
    finally:
        recorder.finish()


def amount_of(pattern: Pattern, inputs: Inputs, params: Params) -> tuple[float, str]:
    """Return the amount and rate unit of a row: operations if the pattern's work is in them, else minimum traffic."""
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
