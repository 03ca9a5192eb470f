"""Softmax of rows on every engine against SciPy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

from gpu.base.errors import InputError
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]

PATTERN = find_pattern("softmax")
VARIANTS = [variant.name for variant in PATTERN.variants]
SHAPES = [(1, 1), (3, 1), (1, 31), (2, 32), (5, 33), (33, 7), (3, 257)]


def run(engine: Engine, variant: str, values: Array, **params: Any) -> Array:
    chosen = PATTERN.variant(variant)
    outcome: Outcome = run_pattern(engine, Workload(PATTERN, chosen, {"values": values}, params), lambda progress: None)
    assert outcome.report.verified
    result: Array = outcome.outputs["result"]
    assert result.dtype == np.float32
    return result


def assert_close(result: Array, values: Array) -> None:
    """Each quotient is right to a few units in the last place, and the row's sum to as many as it has terms."""
    with np.errstate(invalid="ignore"):
        exact = values.astype(np.float64)
        right = special.softmax(exact, axis=1)
        distance = np.where(np.isfinite(exact), exact.max(axis=1, keepdims=True) - exact, 0)
    bound = (2 * values.shape[1] + 16 + np.nan_to_num(distance, posinf=0)) * 2.0**-24 * right + 1e-37
    np.testing.assert_array_equal(np.isnan(result), np.isnan(right))
    there = ~np.isnan(right)
    assert (np.abs(result - right)[there] <= bound[there]).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("block", ["8", "32", "256"])
def test_awkward_sizes(engine: Engine, variant: str, block: str) -> None:
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        values = rng.normal(0, 5, shape).astype(np.float32)
        assert_close(run(engine, variant, values, block=block), values)


@pytest.mark.parametrize(
    ("variant", "columns"),
    [*((variant, columns) for variant in VARIANTS for columns in (512, 1001)), ("shuffle", 16500), ("peak", 16501)],
)
def test_long_rows(engine: Engine, variant: str, columns: int) -> None:
    """The last are longer than a block of the last rung has registers for, and are several blocks'."""
    values = np.random.default_rng(3).normal(0, 5, (3, columns)).astype(np.float32)
    assert_close(run(engine, variant, values), values)


def test_long_rows_on_a_device_without_clusters(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "device", replace(engine.device, has_clusters=False))
    values = np.random.default_rng(8).normal(0, 5, (2, 16501)).astype(np.float32)
    assert_close(run(engine, "peak", values), values)


@pytest.mark.parametrize("variant", VARIANTS)
def test_infinities_as_scipy_has_them(engine: Engine, variant: str) -> None:
    rng = np.random.default_rng(4)
    for columns in (1, 3, 33, 64):
        values = rng.normal(0, 1, (6, columns)).astype(np.float32)
        values[0] = -np.inf
        values[1, ::2] = -np.inf
        values[2, columns // 2] = np.inf
        values[3] = np.inf
        values[4, :-1] = -np.inf
        assert_close(run(engine, variant, values, block="8"), values)


@pytest.mark.parametrize(("lowest", "columns"), [(-300, 16388), (0, 16388), (-300, 400_004)])
def test_infinities_of_a_row_that_blocks_share(engine: Engine, lowest: int, columns: int) -> None:
    """Also where all that a thread, or a block, keeps of it is -inf, and the rest far below 0.

    The last is longer than what registers and shared memory have room for.
    """
    values = np.random.default_rng(7).normal(lowest, 1, (5, columns)).astype(np.float32)
    values[0] = -np.inf
    values[1, :-2] = -np.inf
    values[2, ::3] = -np.inf
    values[3, -1] = np.inf
    assert_close(run(engine, "peak", values), values)


@pytest.mark.parametrize("variant", VARIANTS)
def test_numbers_whose_exponentials_overflow_or_vanish(engine: Engine, variant: str) -> None:
    largest = np.finfo(np.float32).max
    values = np.array(
        [[1000, 1001, 999, 1000], [-1000, -1001, -999, -1000], [largest, -largest, 0, largest], [88.7, 89, -104, 0]],
        np.float32,
    )
    result = run(engine, variant, values, block="8")
    assert np.isfinite(result).all()
    assert_close(result, values)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_row_that_rises_scales_its_sum_at_every_element(engine: Engine, variant: str) -> None:
    values = np.linspace(-20, 20, 2 * 300, dtype=np.float32).reshape(2, 300)
    assert_close(run(engine, variant, values, block="8"), values)
    assert_close(run(engine, variant, values[:, ::-1].copy(), block="8"), values[:, ::-1])


def test_what_is_wrong_in_one_element_is_seen(engine: Engine) -> None:
    """Also beside rows that are not numbers by definition, and where a number stands in such a row."""
    values = np.random.default_rng(5).normal(0, 2, (6, 40)).astype(np.float32)
    values[0] = -np.inf
    params = PATTERN.check({})
    right = PATTERN.reference({"values": values}, params)
    tolerance = PATTERN.tolerance({"values": values}, params)
    variant = PATTERN.variant("naive")
    for place, value in (((3, 7), right[3, 7] * 1.01 + 1e-4), ((0, 0), 0.0), ((2, 2), np.nan)):
        wrong = right.copy()
        wrong[place] = value
        off = np.abs(variant.comparable(params, wrong) - variant.comparable(params, right))
        assert off.max() > tolerance


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[1.0, np.nan]]), "Row 0, column 1 of the matrix, nan, is not a number."),
        (np.array([[-1e300]]), r"Row 0, column 0 of the matrix, -1e\+300, does not fit float32."),
        (np.zeros((3, 0)), "The matrix has 3 rows and 0 columns; 1 to 1048576 are allowed."),
        (
            np.broadcast_to(np.int8(0), (2**15, 2**14)),
            "The matrix has 536870912 elements; up to 268435456 are allowed.",
        ),
    ],
)
def test_what_has_no_softmax_is_refused(engine: Engine, values: Array, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(engine, "naive", values)


@pytest.mark.parametrize("kind", ["random", "digits", "ones", "large", "infinities"])
def test_every_kind_of_input(engine: Engine, kind: str) -> None:
    params = {"input": kind, "n": 20, "rows": 9, "block": "32"}
    made = PATTERN.prepare_inputs({}, PATTERN.check(params), 1)["values"]
    assert made.shape == (9, 20)
    assert_close(run(engine, "shuffle", made), made)


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_matrices_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        rng = np.random.default_rng(6)
        for shape in ((4096, 4096), (3, 2**20), (2**18, 33), (1000, 16384), (1000, 16385)):
            values = rng.normal(0, 5, shape).astype(np.float32)
            for variant in VARIANTS:
                run(engine, variant, values)
    finally:
        engine.close()
