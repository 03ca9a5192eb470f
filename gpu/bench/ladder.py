"""Time every variant of a pattern on one engine: verify it against the reference result, then replay its launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.errors import CompileError, LaunchError
from gpu.bench.measurement import Measurement
from gpu.bench.recording_engine import RecordingEngine
from gpu.declaration.benchmark import Case
from gpu.declaration.pattern import Array, Inputs, Params, Pattern, Variant
from gpu.declaration.rounding import RoundingBound
from gpu.engines.base import Engine
from gpu.run import verification


def prepare_inputs(pattern: Pattern, case: Case, seed: int) -> tuple[Inputs, dict[str, Any]]:
    """Return the inputs of a case and the values of all parameters."""
    params = pattern.check(case.params)
    arrays = case.make_inputs(np.random.default_rng(seed)) if case.make_inputs else {}
    return pattern.prepare_inputs(arrays, params, seed), params


@dataclass(frozen=True)
class ExpectedResult:
    """The reference result and its tolerance, computed once: on many elements both take long."""

    reference: Array
    tolerance: float | Array | RoundingBound

    @classmethod
    def compute(cls, pattern: Pattern, inputs: Inputs, params: Params) -> ExpectedResult:
        return cls(pattern.reference(inputs, params), pattern.tolerance(inputs, params))


@dataclass(frozen=True)
class PreparedCase:
    """A case with its inputs and reference result."""

    pattern: Pattern
    case: Case
    inputs: Inputs
    params: dict[str, Any]
    expected: ExpectedResult


def prepare_case(pattern: Pattern, case: Case, seed: int) -> PreparedCase:
    """Generate a case's inputs, and compute its reference result, which can take longer than the timing."""
    inputs, params = prepare_inputs(pattern, case, seed)
    return PreparedCase(pattern, case, inputs, params, ExpectedResult.compute(pattern, inputs, params))


def prepare_cases_ahead(cases: Iterable[tuple[Pattern, Case]], seed: int, lookahead: int) -> Iterator[PreparedCase]:
    """Prepare cases, up to `lookahead` of them on other threads while one is measured; yield them in order."""
    with ThreadPoolExecutor(lookahead) as pool:
        waiting: deque[Future[PreparedCase]] = deque()
        for pattern, case in cases:
            waiting.append(pool.submit(prepare_case, pattern, case, seed))
            if len(waiting) > lookahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def measure(engine: Engine, prepared: PreparedCase, repetitions: int) -> Iterator[Measurement]:
    """Measure each variant, and yield its row."""
    pattern, case, inputs, params = prepared.pattern, prepared.case, prepared.inputs, prepared.params
    amount, unit = compute_amount(pattern, inputs, params)
    for variant in pattern.variants:
        if variant.deliberate_error or variant.library or (case.variants and variant.name not in case.variants):
            continue
        if variant.is_single_thread or variant.unsupported_reason(engine.device) or variant.obstacle(inputs, params):
            continue
        try:
            verified, times = verify_and_time(engine, variant, prepared, repetitions)
        except (CompileError, LaunchError) as error:
            yield Measurement(
                case.work, variant.title, is_variant=True, times_ms=(), amount=0, unit="", remark=error.message
            )
            continue
        yield Measurement(
            case.work,
            variant.title,
            is_variant=True,
            times_ms=times,
            amount=amount,
            unit=unit,
            remark="verified" if verified else "WRONG, so not timed",
        )


def verify_and_time(
    engine: Engine, variant: Variant, prepared: PreparedCase, repetitions: int
) -> tuple[bool, tuple[float, ...]]:
    """Run a variant, compare its result with the reference result and, if it is correct, time its launches.

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
    params, expected = prepared.params, prepared.expected
    try:
        result = _run(recorder, variant, prepared.inputs, params)[prepared.pattern.result]
        _, verified = verification.compare_results(
            variant.comparable(params, result),
            variant.comparable(params, expected.reference),
            expected.tolerance,
        )
        del result
        restores = prepared.case.restores_inputs
        return verified, recorder.replay(repetitions, restore_inputs=restores) if verified else ()
    finally:
        recorder.finish()


def compute_amount(pattern: Pattern, inputs: Inputs, params: Params) -> tuple[float, str]:
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
