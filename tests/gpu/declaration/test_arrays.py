from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.declaration import arrays as array_inputs
from gpu.declaration.arrays import (
    KINDS,
    accept_values,
    block_parameter,
    cast_values,
    compute_distribution,
    compute_quartiles,
    make_input,
    make_values,
    outline,
    outline_selected,
    present_error,
)
from gpu.declaration.pattern import Choice

OPERATORS = ("sum", "product", "min", "max")
SIZES = (0, 1, 7, 33, 1025)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_kind_has_the_size_and_the_type_and_grows_from_its_seed(kind: str, dtype: str, operator: str) -> None:
    for n in SIZES:
        values = make_values(kind, n, dtype, 5, operator=operator)
        assert values.shape == (n,)
        assert values.dtype == dtype
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(values, make_values(kind, n, dtype, 5, operator=operator))
    differs = not np.array_equal(values, make_values(kind, n, dtype, 6, operator=operator))
    assert differs == (kind in ("random", "signed"))


def test_the_kinds_are_what_they_are_called() -> None:
    assert make_values("ones", 3, "int32", 0).tolist() == [1, 1, 1]
    assert make_values("ramp", 4, "float32", 0).tolist() == [0, 1, 2, 3]
    assert make_values("alternating", 5, "int32", 0).tolist() == [1, -1, 1, -1, 1]
    signed = make_values("signed", 1000, "int32", 0)
    assert 400 < (signed < 0).sum() < 600
    np.testing.assert_array_equal(np.abs(signed), make_values("random", 1000, "int32", 0))
    assert make_values("sausage", 12, "int32", 0).tolist() == [3, 5, 2, 7, 28, 4, 3, 0, 8, 1, 3, 5]


@pytest.mark.parametrize("kind", ["random", "signed", "ramp", "ones", "alternating"])
@pytest.mark.parametrize("n", [1, 10, 1000, 2**20])
def test_a_product_neither_overflows_nor_vanishes(kind: str, n: int) -> None:
    for seed in range(3):
        whole = make_values(kind, n, "int32", seed, operator="product")
        assert np.multiply.reduce(whole.view(np.uint32)) % 2 == 1
        factors = make_values(kind, n, "float32", seed, operator="product")
        sums = np.log(np.abs(factors.astype(np.float64))).cumsum()
        assert abs(sums[-1]) < 60
        # Any run of neighbors, and any run of every 64th, stays within float32's range too.
        for walk in (sums, np.log(np.abs(factors[::64].astype(np.float64))).cumsum()):
            assert np.ptp(np.append(walk, 0)) < 80


def test_extremes_of_many_random_whole_numbers_are_rare() -> None:
    values = make_values("random", 10_000, "int32", 1, operator="min")
    assert (values == values.min()).sum() == 1
    assert values.min() < -(2**30) < 2**30 < values.max()


def test_a_file_must_be_given() -> None:
    with pytest.raises(InputError, match="No file of numbers is open"):
        make_input({"input": "file", "n": 3, "dtype": "int32"}, 0)


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        ([1.0, np.nan], "float32", "Element 1 of the input, nan, is not a finite number."),
        ([np.inf], "int32", "Element 0 of the input, inf, is not a finite number."),
        ([0.0, 1e39], "float32", r"Element 1 of the input, 1e\+39, does not fit float32."),
        ([2**31], "int32", "Element 0 of the input, 2147483648, does not fit int32."),
        ([2.0, -(2.0**31) - 1], "int32", "Element 1 of the input, -2147483649.0, does not fit int32."),
        ([1.0, 2.5], "int32", "Element 1 of the input, 2.5, is not whole, as int32 requires; float32 can hold it."),
    ],
)
def test_values_that_do_not_fit_are_refused(values: list[float], dtype: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        accept_values({"values": np.array(values)}, {"dtype": dtype})


def test_a_value_far_inside_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_inputs, "PART_ELEMENTS", 8)
    values = np.arange(30.0)
    values[[18, 27]] = np.nan
    with pytest.raises(InputError, match="Element 18 "):
        accept_values({"values": values}, {"dtype": "int32"})


@pytest.mark.parametrize("given", [[-(2**31), 2**31 - 1], [-(2.0**31), 7.0], []])
def test_values_that_fit_become_the_type_that_is_asked_for(given: list[Any]) -> None:
    inputs = {"values": np.array(given)}
    accept_values(inputs, {"dtype": "int32"})
    made = cast_values(inputs, {"dtype": "int32"})
    assert made.dtype == np.int32
    assert made.tolist() == given


def test_a_block_is_a_power_of_two_and_may_come_as_a_number() -> None:
    block: Choice = block_parameter()
    assert block.options == ("8", "16", "32", "64", "128", "256", "512", "1024")
    assert block.check(8) == "8"
    with pytest.raises(InputError, match="--block is one of 8, 16"):
        block.check(100)


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 12, 997])
def test_an_outline_holds_the_extremes_of_neighbors(n: int) -> None:
    values = np.random.default_rng(n).integers(-1000, 1000, n, np.int32)
    low, high = outline(values, columns=10)
    assert low.dtype == np.int32
    assert len(low) == len(high) == min(n, 10)
    for column in range(len(low)):
        piece = values[column * n // len(low) : (column + 1) * n // len(low)]
        assert (low[column], high[column]) == (piece.min(), piece.max())


@pytest.mark.parametrize("n", [1, 1024, 1025, 5000, 2**16 + 1])
def test_the_error_of_a_column_is_that_of_its_elements(n: int) -> None:
    rng = np.random.default_rng(3)
    right = rng.random(n)
    ours = right.astype(np.float32)
    ours[n // 2] = np.nan
    found = present_error(ours, right)
    off = np.abs(ours.astype(np.float64) - right)
    off[n // 2] = np.inf
    columns = min(n, 1024)
    assert found["error"].shape == (2, columns)
    for column in range(columns):
        of_column = off[column * n // columns : (column + 1) * n // columns]
        assert found["error"][:, column].tolist() == [of_column.min(), of_column.max()]
    np.testing.assert_array_equal(found["reference"], outline(right))


def test_no_elements_have_no_error() -> None:
    assert present_error(np.zeros(0, np.int32), np.zeros(0))["error"].shape == (2, 0)


@pytest.mark.parametrize("n", [0, 5, 3000])
def test_the_outline_of_what_is_kept_leaves_out_the_rest(n: int) -> None:
    values = np.arange(n, dtype=np.int32)
    kept = values % 5 == 2
    kept[n // 2 :] = False
    found = outline_selected(values, kept)
    columns = min(n, 1024)
    assert found.shape == (2, columns)
    for column in range(columns):
        of_column = slice(column * n // columns, (column + 1) * n // columns)
        there = values[of_column][kept[of_column]]
        expected = [there.min(), there.max()] if there.size else [np.nan, np.nan]
        np.testing.assert_array_equal(found[:, column], expected)


@pytest.mark.parametrize("n", [256, 1000])
def test_the_middle_half_of_a_run_lies_between_its_quartiles(n: int) -> None:
    values = np.random.default_rng(3).integers(-50, 50, n).astype(np.int32)
    low, high = compute_quartiles(values, 4)
    for run, (first, last) in enumerate(zip(low, high, strict=True)):
        of_run = np.sort(values[run * n // 4 : (run + 1) * n // 4])
        assert first == of_run[of_run.size // 4]
        assert last == of_run[3 * of_run.size // 4]


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_every_value_is_counted_once_in_its_range(dtype: str) -> None:
    values = make_values("random", 5000, "float32" if dtype == "float32" else "int32", 1).astype(dtype)
    levels, edges = compute_distribution(values)["levels"], compute_distribution(values)["level edges"]
    assert levels.sum() == 5000
    for count, low, high in zip(levels, edges[:-1], edges[1:], strict=True):
        within = (values >= low) & ((values < high) if high < edges[-1] else (values <= high))
        assert count == within.sum()


def test_whole_numbers_have_ranges_of_one_width() -> None:
    levels = compute_distribution(np.arange(100, dtype=np.int32))["levels"]
    assert len(set(levels.tolist())) == 1
    assert compute_distribution(np.full(9, 7, np.int32))["levels"].tolist() == [9]
    start = time.process_time()
    of_prime_span = compute_distribution(np.array([0, 2**31 - 2], np.int32))["levels"]
    assert (len(of_prime_span), of_prime_span[[0, -1]].tolist()) == (48, [1, 1])
    assert time.process_time() - start < 0.5, "no divisor is searched that would take millions of steps"
    assert compute_distribution(np.array([-(2**31), 2**31 - 1], np.int32))["levels"].sum() == 2
    # Their difference is no float32; NumPy 2.5 takes it in the type of the values.
    ends = np.finfo(np.float32)
    assert compute_distribution(np.array([ends.min, 0, ends.max], np.float32))["levels"][[0, -1]].tolist() == [1, 1]


def test_of_very_many_values_some_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_inputs, "MAX_READOUT_VALUES", 1000)
    assert compute_distribution(np.arange(3001, dtype=np.float32))["levels"].sum() == 751


def test_the_sum_of_the_default_input_on_a_gpu_does_not_wrap_around() -> None:
    assert make_values("random", 2**20, "int32", 0).max() == 99
    assert 0 < make_values("random", 2**26, "int32", 0).sum(dtype=np.int64) < 2**31
