"""Reduction on every engine against Python's own integers and exact sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.declaration.arrays import make_values
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload
from tests.tiers import spread

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("reduction")
VARIANTS = [variant.name for variant in PATTERN.variants if not variant.deliberate_error]
THREADS = [
    variant.name for variant in PATTERN.variants if not variant.deliberate_error and not variant.is_single_thread
]
OPERATORS = ("sum", "product", "min", "max")
SIZES = (0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097)
IDENTITIES = {
    ("sum", "int32"): 0,
    ("product", "int32"): 1,
    ("min", "int32"): 2**31 - 1,
    ("max", "int32"): -(2**31),
    ("sum", "float32"): 0,
    ("product", "float32"): 1,
    ("min", "float32"): np.finfo(np.float32).max,
    ("max", "float32"): np.finfo(np.float32).min,
}
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "min": min,
    "max": max,
}


def combine_halves(values: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the first half with the second, pair by pair, and the rest again; an odd last element joins the first."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    pairs = [combine(values[i], values[i + half]) for i in range(half)]
    if len(values) % 2:
        pairs[0] = combine(pairs[0], values[-1])
    return combine_halves(pairs, combine)


def combine_sequentially(values: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = combine(total, value)
    return total


def wrap_int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def run_reduction(engine: Engine, variant: str, values: Array, operator: str, block: int = 256) -> Outcome:
    params = {"operator": operator, "dtype": values.dtype.name, "block": block}
    return run_pattern(
        engine, Workload(PATTERN, PATTERN.variant(variant), {"values": values}, params), lambda progress: None
    )


def assert_reduction(engine: Engine, variant: str, values: Array, operator: str, block: int = 256) -> None:
    outcome = run_reduction(engine, variant, values, operator, block)
    numbers = values.tolist()
    right = wrap_int32(combine_sequentially(numbers, COMBINE[operator])) if numbers else IDENTITIES[operator, "int32"]
    assert outcome.outputs["result"].dtype == np.int32
    assert outcome.outputs["result"].tolist() == [right]
    assert outcome.report.verified


@pytest.mark.parametrize(("variant", "operator"), spread(VARIANTS, OPERATORS))
def test_whole_numbers_are_exact_and_wrap_around(engine: Engine, variant: str, operator: str) -> None:
    rng = np.random.default_rng(len(variant))
    for n in SIZES:
        values = rng.integers(-(2**31), 2**31, n, np.int32)
        if operator == "product":
            values |= 1
        assert_reduction(engine, variant, values, operator)


@pytest.mark.parametrize(("variant", "operator"), spread(VARIANTS, OPERATORS))
def test_floats_are_within_rounding(engine: Engine, variant: str, operator: str) -> None:
    for n in SIZES:
        values = make_values("random", n, "float32", n, operator=operator)
        outcome = run_reduction(engine, variant, values, operator)
        assert outcome.outputs["result"].dtype == np.float32
        (result,) = outcome.outputs["result"].tolist()
        numbers = values.tolist()
        match operator:
            case "sum":
                assert abs(result - math.fsum(numbers)) <= n * 2.0**-24 * math.fsum(map(abs, numbers))
            case "product":
                assert abs(result / math.prod(numbers) - 1) <= n * 2.0**-24
            case _:
                assert result == combine_sequentially(
                    numbers or [float(IDENTITIES[operator, "float32"])], COMBINE[operator]
                )
        assert outcome.report.verified


@pytest.mark.parametrize(("variant", "block"), spread(VARIANTS, (8, 16, 32, 64, 128, 512, 1024)))
def test_blocks_of_every_size(engine: Engine, variant: str, block: int) -> None:
    rng = np.random.default_rng(block)
    for n in (1, 7, block - 1, block, block + 1, 2 * block + 1, 5000):
        assert_reduction(engine, variant, rng.integers(-1000, 1000, n, np.int32), "sum", block)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_element_counts(engine: Engine, variant: str) -> None:
    """Each element alone is the greatest once: at the ends, and where warps, blocks, tiles and passes meet."""
    n = 4500
    for place in (0, 1, 31, 32, 255, 256, 511, 512, 2047, 4095, 4096, 4352, n - 2, n - 1):
        values = np.full(n, -7, np.int32)
        values[place] = 11
        assert run_reduction(engine, variant, values, "max").outputs["result"].tolist() == [11]


@pytest.mark.parametrize("variant", THREADS)
def test_a_grid_that_walks_over_the_array_leaves_nothing_out(engine: Engine, variant: str) -> None:
    for n in (2**17 - 1, 2**17, 2**17 + 1, 300_007):
        values = np.random.default_rng(n).integers(-(2**31), 2**31, n, np.int32)
        outcome = run_reduction(engine, variant, values, "sum")
        assert outcome.outputs["result"].tolist() == [wrap_int32(int(values.sum(dtype=np.int64)))]


@pytest.mark.parametrize(
    ("operator", "dtype", "variant"),
    [
        # Each variant has one combination in the first tier.
        pytest.param(operator, dtype, variant, marks=[pytest.mark.sweep] * ((place + number) % 3 != 0))
        for place, (operator, dtype) in enumerate((("product", "int32"), ("product", "float32"), ("sum", "float32")))
        for number, variant in enumerate(("grid-stride", "unrolled", "shuffle", "atomic", "last-block", "peak"))
    ],
)
def test_ten_million(fast_engine: Engine, variant: str, operator: str, dtype: str) -> None:
    values = make_values("random", 10**7, dtype, 2, operator=operator)
    outcome = run_reduction(fast_engine, variant, values, operator)
    assert outcome.report.verified
    if dtype == "float32":
        right = (np.sum if operator == "sum" else np.prod)(values, dtype=np.longdouble)
        assert abs(outcome.outputs["result"][0] / right - 1) < 1e-4


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=300),
    variant=st.sampled_from(VARIANTS),
    operator=st.sampled_from(OPERATORS),
    block=st.sampled_from([8, 32, 64]),
)
def test_any_whole_numbers(simulator: Engine, values: list[int], variant: str, operator: str, block: int) -> None:
    assert_reduction(simulator, variant, np.array(values, np.int32), operator, block)
    assert wrap_int32(combine_halves(values, COMBINE[operator])) == wrap_int32(
        combine_sequentially(values, COMBINE[operator])
    )


@pytest.fixture(scope="module")
def simulator() -> Any:
    from gpu.engines.simulator import SimulatorEngine

    made = SimulatorEngine("lockstep")
    yield made
    made.close()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("operator", ["min", "max"])
def test_negative_zero_and_both_signs(engine: Engine, variant: str, operator: str) -> None:
    """What a comparison of the bits of floats as whole numbers would get wrong."""
    for numbers in ([-1.5, -2.5, -0.5], [0.0, -3.0, 2.0], [-0.0, 1.0], [1e-45, -1e-45]):
        values = np.array(numbers, np.float32)
        (result,) = run_reduction(engine, variant, values, operator).outputs["result"].tolist()
        assert result == getattr(np, operator)(values)


def test_the_cautionary_variant_is_right_where_a_warp_runs_in_lockstep(simulator: Engine) -> None:
    for block in (8, 32, 64, 256):
        for n in SIZES:
            values = np.random.default_rng(n).integers(-(2**31), 2**31, n, np.int32)
            assert_reduction(simulator, "volatile", values, "sum", block)


def test_loaded_values_become_the_type_that_is_asked_for(engine: Engine) -> None:
    variant = PATTERN.variant("peak")
    inputs = {"values": np.array([1.0, 2.0, -4.0])}
    done = run_pattern(engine, Workload(PATTERN, variant, inputs, {"dtype": "int32"}), lambda progress: None)
    assert done.outputs["result"].dtype == np.int32
    assert done.outputs["result"].tolist() == [-1]
    with pytest.raises(InputError, match=r"Element 0 of the input, 0\.5, is not whole"):
        run_pattern(
            engine, Workload(PATTERN, variant, {"values": np.array([0.5])}, {"dtype": "int32"}), lambda progress: None
        )


def test_a_product_past_the_largest_float_is_not_called_right(engine: Engine) -> None:
    report = run_reduction(engine, "shuffle", np.full(400, 1e30, np.float32), "product").report
    assert report.verified is False


def test_what_is_presented(engine: Engine) -> None:
    presented = run_reduction(engine, "shuffle", np.arange(5000, dtype=np.int32), "max").presented_arrays
    assert presented["elements"] == 5000
    assert presented["output"].tolist() == [[4999], [4999]]
    assert presented["input"].shape == (2, 1024)


@pytest.mark.parametrize(("n", "operations", "steps"), [(0, 0, 0), (1, 0, 0), (2, 1, 1), (16, 15, 4), (17, 16, 5)])
def test_the_textbook_halves_at_every_step(n: int, operations: int, steps: int) -> None:
    for variant in map(PATTERN.variant, THREADS):
        assert variant.textbook is not None
        textbook = variant.textbook(PATTERN.check({}), n)
        assert (textbook.operations, textbook.steps, textbook.peak) == (operations, steps, n // 2)


def test_the_tolerance_would_catch_a_lost_block_and_lets_no_float_off_for_min_and_max() -> None:
    values = make_values("random", 10**6, "float32", 1)
    params = PATTERN.check({"operator": "sum", "dtype": "float32"})
    assert 0 < PATTERN.tolerance({"values": values}, params) < values[:256].sum()
    for given_params in ({"operator": "min", "dtype": "float32"}, {"operator": "sum", "dtype": "int32"}):
        assert PATTERN.tolerance({"values": values.astype(np.int32)}, PATTERN.check(given_params)) == 0


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_arrays_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        for n in (10**7, 2**28 + 3):
            for dtype in ("int32", "float32"):
                for operator in OPERATORS:
                    values = make_values("random", n, dtype, 1, operator=operator)
                    for variant in THREADS:
                        outcome = run_reduction(engine, variant, values, operator)
                        assert outcome.report.verified
    finally:
        engine.close()
