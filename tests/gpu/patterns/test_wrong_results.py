"""A result that is wrong by the least that can be is not verified, whichever pattern and variant it is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from gpu.declaration.pattern import Array, Pattern, Variant
from gpu.engines.null import NullEngine
from gpu.patterns import all_patterns, find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload

# The settings under which results are bent: each kind of number, of bound and of reference that a pattern has.
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "convolution": (
        {"filter": "gaussian", "size": 5},
        {"filter": "box", "size": 3, "border": "zero"},
        {"filter": "sobel-x", "size": 7},
    ),
    "histogram": ({"bins": 16}, {"of": "letters"}, {"of": "ranges", "n": 500}, {"of": "numbers", "n": 500}),
    "reduction": (
        *({"n": 1000, "dtype": "float32", "operator": each} for each in ("sum", "product", "max")),
        *({"n": 1000, "dtype": "int32", "operator": each} for each in ("sum", "product", "min")),
    ),
    "scan": (
        *({"n": 1000, "dtype": "float32", "kind": each} for each in ("inclusive", "exclusive")),
        *({"n": 1000, "dtype": "float32", "operator": each} for each in ("product", "max")),
        {"n": 1000, "dtype": "int32"},
    ),
    "compaction": (
        {"n": 200, "dtype": "float32"},
        {"n": 200, "dtype": "int32", "predicate": "odd"},
        {"n": 200, "dtype": "float32", "result": "split"},
    ),
    "sort": (
        {"n": 200, "dtype": "int32"},
        {"n": 200, "dtype": "uint32", "order": "descending"},
        {"n": 200, "dtype": "float32"},
        {"n": 200, "input": "few", "result": "places"},
    ),
    "matmul": ({"n": 20, "m": 7, "k": 33}, {"n": 9, "beta": 0.5}, {"n": 16, "input": "digits"}),
    "softmax": ({"n": 40, "rows": 5}, {"n": 16, "rows": 8, "input": "infinities"}),
    "transpose": ({"n": 20, "rows": 7}, {"n": 9, "input": "digits"}),
    "stencil": ({"n": 7, "rows": 5, "planes": 4, "input": "random"}, {"n": 5, "center": 0.4, "around": 0.1}),
    "spmv": (
        {"n": 40},
        {"n": 30, "matrix": "power-law", "entries": 4},
        {"n": 16, "matrix": "poisson", "input": "ramp"},
    ),
    "nbody": ({"preset": "plummer", "bodies": 100}, {"preset": "figure-eight"}),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A pattern's settings and input, and what its result should be and may be off by."""

    pattern: Pattern
    params: Mapping[str, Any]
    inputs: Mapping[str, Array]
    expected: Array
    bound: Array

    @property
    def correctly_rounded_result(self) -> Array:
        """What a variant returns that makes no mistake but rounding."""
        return self.expected.astype(np.float32) if self.expected.dtype == np.float64 else self.expected.copy()

    def is_verified(self, variant: Variant, result: Array) -> bool | None:
        """Whether a run of a variant is verified that returns this."""

        def run(*_: object) -> Any:
            yield from ()
            return {self.pattern.result: result}

        seen = replace(self.pattern, present=lambda inputs, params, outputs: {})
        returning = replace(variant, run=run, library="")
        outcome = run_pattern(NullEngine(), Workload(seen, returning, self.inputs, self.params), lambda progress: None)
        return outcome.report.verified


@cache
def cases(name: str) -> tuple[Case, ...]:
    pattern = find_pattern(name)
    image = np.random.default_rng(3).integers(0, 256, (40, 23), np.uint8)
    made = []
    for given in SETTINGS[name]:
        params = pattern.check(given)
        of_image = pattern.input_kind(params) == "image"
        inputs = pattern.prepare_inputs({"image": image, "maxval": np.array(255)} if of_image else {}, params, 1)
        right = np.asarray(pattern.reference(inputs, params))
        bound = np.broadcast_to(np.asarray(pattern.tolerance(inputs, params), np.float64), right.shape)
        made.append(Case(pattern, params, inputs, right, bound))
    return tuple(made)


VARIANTS = [
    pytest.param(pattern.name, variant, id=f"{pattern.name}-{variant.name}")
    for pattern in all_patterns().values()
    for variant in pattern.variants
]


def sample_indices(case: Case) -> list[tuple[int, ...]]:
    """Return the first, a middle and the last place of a result that has a number there."""
    numbers = np.argwhere(np.isfinite(case.expected.astype(np.float64)))
    return [tuple(numbers[at].tolist()) for at in sorted({0, len(numbers) // 2, len(numbers) - 1})]


def closest_within_bound(right: float, bound: float, way: int) -> np.float32:
    """Return the float32 that is furthest from a number, upwards or downwards, but no further than the bound."""
    edge = np.float32(right + way * bound)
    while abs(float(edge) - right) > bound:
        edge = np.nextafter(edge, np.float32(-way * np.inf))
    while abs(float(further := np.nextafter(edge, np.float32(way * np.inf))) - right) <= bound:
        edge = further
    return edge


def adjacent_value(number: np.generic, way: int) -> np.generic:
    """Return the next number of its type, upwards or downwards; whole numbers wrap around."""
    if number.dtype == np.float32:
        return np.nextafter(number, np.float32(way * np.inf))
    with np.errstate(over="ignore"):
        return number + number.dtype.type(1) if way > 0 else number - number.dtype.type(1)


def test_no_pattern_is_left_out() -> None:
    assert set(SETTINGS) == set(all_patterns())


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_right_result_is_verified(name: str, variant: Variant) -> None:
    for case in cases(name):
        assert case.is_verified(variant, case.correctly_rounded_result)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_one_element_beyond_its_bound_is_not_verified_and_at_the_bound_it_is(name: str, variant: Variant) -> None:
    for case in cases(name):
        if case.expected.dtype != np.float64:
            continue
        for place in sample_indices(case):
            for way in (1, -1):
                result = case.correctly_rounded_result
                result[place] = closest_within_bound(case.expected[place], case.bound[place], way)
                assert case.is_verified(variant, result)
                result[place] = np.nextafter(result[place], np.float32(way * np.inf))
                assert case.is_verified(variant, result) is False


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_one_exact_element_off_by_the_least_step_is_not_verified(name: str, variant: Variant) -> None:
    for case in cases(name):
        if case.expected.dtype == np.float64:
            continue
        for place in sample_indices(case):
            for way in (1, -1):
                result = case.correctly_rounded_result
                result[place] = adjacent_value(result[place], way)
                assert result[place] != case.expected[place]
                assert case.is_verified(variant, result) is False


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_what_is_not_a_number_or_infinite_is_not_verified(name: str, variant: Variant) -> None:
    for case in cases(name):
        if case.correctly_rounded_result.dtype != np.float32:
            continue
        for place in sample_indices(case):
            for wrong in (np.nan, np.inf, -np.inf):
                result = case.correctly_rounded_result
                result[place] = wrong
                assert case.is_verified(variant, result) is False


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_an_element_too_few_or_too_many_is_not_verified(name: str, variant: Variant) -> None:
    for case in cases(name):
        result = case.correctly_rounded_result
        assert case.is_verified(variant, result[:-1]) is False
        assert case.is_verified(variant, np.concatenate([result, result[-1:]])) is False


@pytest.mark.parametrize("variant", list(find_pattern("sort").variants), ids=lambda each: each.name)
def test_equal_keys_out_of_the_order_they_came_in_are_not_verified(variant: Variant) -> None:
    (case,) = (each for each in cases("sort") if each.params["result"] == "places")
    keys = case.inputs["values"][case.expected]
    for first in np.flatnonzero(keys[1:] == keys[:-1])[[0, 50, -1]].tolist():
        result = case.correctly_rounded_result
        result[[first, first + 1]] = result[[first + 1, first]]
        assert case.is_verified(variant, result) is False


@pytest.mark.parametrize("variant", list(find_pattern("sort").variants), ids=lambda each: each.name)
def test_neighbors_in_the_wrong_order_are_not_verified(variant: Variant) -> None:
    for case in cases("sort")[:3]:
        result = case.correctly_rounded_result
        (first, *_) = np.flatnonzero(result[1:] != result[:-1])
        result[[first, first + 1]] = result[[first + 1, first]]
        assert case.is_verified(variant, result) is False


def test_an_update_that_went_to_the_neighboring_bin_is_not_verified() -> None:
    for variant in find_pattern("histogram").variants:
        for case in cases("histogram"):
            result = case.correctly_rounded_result
            result[0, 0] += 1
            result[0, 1] -= 1
            assert case.is_verified(variant, result) is False


def test_packed_elements_may_change_places_only_where_a_variant_leaves_the_order_open() -> None:
    for variant in find_pattern("compaction").variants:
        for case in cases("compaction"):
            result = case.correctly_rounded_result[::-1]
            left_open = variant.name == "ballot" and case.params["result"] == "pack"
            assert case.is_verified(variant, result) is left_open
            doubled = case.correctly_rounded_result
            doubled[1] = doubled[0] if doubled[0] != doubled[1] else doubled[1] + 1
            assert case.is_verified(variant, doubled) is False


def test_a_row_that_is_no_number_by_definition_has_to_be_one_all_along() -> None:
    case = next(each for each in cases("softmax") if each.params["input"] == "infinities")
    for variant in find_pattern("softmax").variants:
        place = tuple(np.argwhere(np.isnan(case.expected))[0])
        for wrong in (0.0, 1.0, -1.0, np.inf):
            result = case.correctly_rounded_result
            result[place] = wrong
            assert case.is_verified(variant, result) is (wrong == -1.0), "no softmax is -1: it stands for what is none"
