"""What results may be off by: no more than the rounding that was counted, for each pattern and size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpu.declaration.pattern import Array, Inputs
from gpu.patterns import find_pattern

U = 2.0**-24


def gamma(roundings: float) -> float:
    """Return how far float32 may be off after so many roundings, as a part of the magnitudes: Higham's gamma."""
    return roundings * U / (1 - roundings * U)


def compute_bound(name: str, inputs: Inputs, **given: Any) -> Any:
    pattern = find_pattern(name)
    return pattern.tolerance(inputs, pattern.check(given))


def numbers(n: int, dtype: str = "float32") -> Inputs:
    return {"values": np.random.default_rng(n).normal(scale=10, size=n).astype(dtype)}


@pytest.mark.parametrize("size", [3, 9, 31])
@pytest.mark.parametrize("kind", ["box", "gaussian", "sobel-x"])
@pytest.mark.parametrize(("dtype", "brightest"), [(np.uint8, 255), (np.uint8, 7), (np.uint16, 4095), (np.uint16, 0)])
def test_a_filter_may_round_each_of_its_products_and_sums_twice(
    kind: str, size: int, dtype: type, brightest: int
) -> None:
    from gpu.patterns.convolution.filters import make_filter

    image = np.zeros((8, 9), dtype)
    image[5, 7] = brightest
    bound = compute_bound(
        "convolution", {"image": image, "maxval": np.array(np.iinfo(dtype).max)}, filter=kind, size=size
    )
    weights = float(np.abs(make_filter(kind, size).astype(np.float64)).sum())
    assert bound == pytest.approx(gamma(2 * size**2 + 2) * weights * brightest, rel=1e-9)


# What an element goes through: a thread's own sum, one addition for each block, 16 loads at once, and trees of a block.
SUMS = [
    (0, 256, 0),
    (1, 256, 0),
    (2, 256, 1),
    (50, 8, 49),
    (60, 8, 1 + 8 + 48),
    (1000, 256, 1 + 4 + 48),
    (2**16, 32, 16 + 2048 + 48),
    (2**18, 1024, 2 + 256 + 48),
    (2**20 + 1, 256, 33 + 2048 + 48),
]


@pytest.mark.parametrize(("n", "block", "roundings"), SUMS)
def test_a_sum_may_round_what_an_element_goes_through(n: int, block: int, roundings: int) -> None:
    inputs = numbers(n)
    bound = compute_bound("reduction", inputs, input="file", dtype="float32", block=block)
    magnitude = float(np.abs(inputs["values"].astype(np.float64)).sum())
    assert bound == pytest.approx(gamma(roundings) * magnitude, rel=1e-9)


@pytest.mark.parametrize(("factors", "ones"), [(0, 5), (2, 0), (3, 40), (50, 7)])
def test_a_product_rounds_once_for_each_factor_but_1_and_minus_1(factors: int, ones: int) -> None:
    values = np.ones(factors + ones, np.float32)
    values[:factors] = 1.25
    values[factors::2] = -1
    bound = compute_bound("reduction", {"values": values}, input="file", dtype="float32", operator="product")
    assert bound == pytest.approx(((1 + U) ** factors - 1) * 1.25**factors, rel=1e-4)


def test_a_single_element_is_its_product_and_nothing_else() -> None:
    one = {"values": np.float32([1.25])}
    for name in ("reduction", "scan"):
        assert compute_bound(name, one, input="file", dtype="float32", operator="product") == 0


# A thread that adds its section, and then its sections'; or two for each tile, which is 32 elements for each of its
# threads or, of few, 4, and 32 of a thread's own and a warp's 32.
SCANS = [
    (0, 8, 0),
    (1, 8, 0),
    (2, 8, 1),
    (50, 8, 49),
    (1000, 8, 2 * 8 + 64),
    (1000, 256, 256 + 4),
    (4096, 8, 2 * 32 + 64),
    (4097, 8, 2 * 5 + 64),
    (2**16, 8, 2 * 64 + 64),
    (2**16, 1024, 1024 + 64),
    (2048, 1024, 1024 + 2),
    (2**18, 256, 256 + 256 + 4),
]


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize(("n", "block", "roundings"), SCANS)
def test_each_sum_of_a_scan_may_round_what_its_own_elements_go_through(
    n: int, block: int, roundings: int, kind: str
) -> None:
    inputs = numbers(n)
    bound = compute_bound("scan", inputs, input="file", dtype="float32", block=block, kind=kind)
    before = np.cumsum(np.abs(inputs["values"].astype(np.float64)))
    if kind == "exclusive":
        before = np.concatenate([[0.0], before])[:n]
    np.testing.assert_allclose(bound, gamma(roundings) * before, rtol=1e-9)


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
def test_each_product_of_a_scan_may_round_once_for_each_factor_but_1_and_minus_1(kind: str) -> None:
    values = np.array([1.25, -1, 1, 0.5, 3, 0, 7], np.float32)
    bound = compute_bound("scan", {"values": values}, input="file", dtype="float32", operator="product", kind=kind)
    products, factors = [1.25, 1.25, 1.25, 0.625, 1.875, 0, 0], [1, 1, 1, 2, 3, 4, 5]
    if kind == "exclusive":
        products, factors = [1, *products[:-1]], [0, *factors[:-1]]
    due = [((1 + U) ** k - 1) * abs(product) for k, product in zip(factors, products, strict=True)]
    np.testing.assert_allclose(bound, due, rtol=1e-4)


def matrices(m: int, n: int, k: int) -> Inputs:
    rng = np.random.default_rng(n)
    shapes = {"values": (m, k), "b": (k, n), "c": (m, n)}
    return {name: rng.uniform(-3, 3, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (-2.5, 0), (1, 3), (0, -2)])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (7, 5, 3), (33, 20, 64)])
def test_a_product_of_matrices_may_round_each_of_its_products_and_sums(
    m: int, n: int, k: int, alpha: float, beta: float
) -> None:
    inputs = matrices(m, n, k)
    bound = compute_bound("matmul", inputs, input="file", alpha=alpha, beta=beta)
    a, b, c = (inputs[name].astype(np.float64) for name in ("values", "b", "c"))
    lengths = np.sqrt((a**2).sum(axis=1).max() * (b**2).sum(axis=0).max())
    before = gamma(2) * abs(beta) * np.abs(c).max()
    # Four roundings more than sums of floats have: each factor may be a sum of two halves.
    assert bound == pytest.approx(gamma(k + 6) * abs(alpha) * lengths + before, rel=1e-9)
    # No element may be off by much more than its own products can make it.
    own = gamma(k + 6) * abs(alpha) * (np.abs(a) @ np.abs(b)).max() + before
    assert own * (1 - 1e-9) <= bound <= 4 * own


@pytest.mark.parametrize("name", ["values", "b", "c"])
def test_matrices_of_whole_numbers_are_exact_as_long_as_all_sums_are(name: str) -> None:
    def with_(fraction: float, alpha: float = 1, beta: float = 1) -> float:
        inputs = {key: np.full((2, 2), 3, np.float32) for key in ("values", "b", "c")}
        inputs[name][1, 0] += np.float32(fraction)
        return float(compute_bound("matmul", inputs, input="file", alpha=alpha, beta=beta))

    assert with_(0) == 0
    assert with_(0.5) > 0
    assert with_(0, alpha=0.5) > 0
    assert with_(0, beta=0.5) > 0
    assert (with_(0.5, beta=0) == 0) is (name == "c")


@pytest.mark.parametrize("row", [0, -1])
def test_one_fraction_in_a_matrix_of_several_pieces_is_seen(row: int) -> None:
    tall = {"values": np.ones((2**22 + 2, 2), np.float32), "b": np.ones((2, 1), np.float32)}
    inputs = tall | {"c": np.zeros((2**22 + 2, 1), np.float32)}
    assert compute_bound("matmul", inputs, input="file") == 0
    inputs["values"][row, 1] = 0.5
    assert compute_bound("matmul", inputs, input="file") > 0


@pytest.mark.parametrize(("largest", "exact"), [(2**22, True), (2**22 + 2, False), (2**24, False)])
def test_whole_numbers_are_exact_where_two_halves_hold_them(largest: int, exact: bool) -> None:
    one = {"values": np.float32([[largest]]), "b": np.float32([[1]]), "c": np.float32([[0]])}
    assert (compute_bound("matmul", one, input="file", beta=1) == 0) is exact
    one = {"values": np.float32([[largest - 1]]), "b": np.float32([[1]]), "c": np.float32([[1]])}
    assert (compute_bound("matmul", one, input="file", beta=1) == 0) is exact


@pytest.mark.parametrize(("rows", "n"), [(1, 1), (3, 32), (5, 1000), (1, 5000)])
def test_softmax_may_round_four_times_for_each_term_and_a_few_times_more(rows: int, n: int) -> None:
    values = np.random.default_rng(n).normal(scale=0.5, size=(rows, n)).astype(np.float32)
    bound = compute_bound("softmax", {"values": values}, input="file")
    terms = np.exp(values.astype(np.float64) - values.max(axis=1, keepdims=True))
    largest = (terms / terms.sum(axis=1, keepdims=True)).max()
    assert bound == pytest.approx((4 * n + 2 * math.log(n) + 32) * U * largest, rel=1e-5)


def test_rows_that_are_no_numbers_let_softmax_off_nothing() -> None:
    values = np.zeros((3, 4), np.float32)
    values[0] = -np.inf
    values[1, 2] = np.inf
    bound = compute_bound("softmax", {"values": values}, input="file")
    assert bound == pytest.approx((16 + 2 * math.log(4) + 32) * U / 4, rel=1e-5)
    assert compute_bound("softmax", {"values": values[:2]}, input="file") == 0


def sum_magnitudes(bodies: Array, softening: float) -> Array:
    """Return for each body the sum of the magnitudes of all that pulls it, pair by pair."""
    sums = []
    for x, y, z, *_ in bodies.tolist():
        squares = [(a - x) ** 2 + (b - y) ** 2 + (c - z) ** 2 for a, b, c, *_ in bodies.tolist()]
        masses = bodies[:, 6].tolist()
        terms = (
            mass * square**0.5 / (square + softening**2) ** 1.5 for mass, square in zip(masses, squares, strict=True)
        )
        sums.append(sum(terms))
    return np.array(sums)


@pytest.mark.parametrize("n", [1, 2, 64])
def test_gravity_may_round_each_term_32_times_and_sums_8_times_the_root_of_their_number(n: int) -> None:
    bodies = np.random.default_rng(n).normal(size=(n, 7)).astype(np.float32)
    bodies[:, 6] = 1 / n
    bound = compute_bound("nbody", {"bodies": bodies}, preset="plummer", bodies=n, softening=0.1)
    assert bound == pytest.approx((32 + 8 * math.sqrt(n)) * U * sum_magnitudes(bodies, 0.1).max(), rel=1e-5)


EXACT: dict[str, list[dict[str, Any]]] = {
    "reduction": [
        *({"dtype": "int32", "operator": each} for each in ("sum", "product", "min", "max")),
        *({"dtype": "float32", "operator": each} for each in ("min", "max")),
    ],
    "scan": [{"dtype": "int32"}, *({"dtype": "float32", "operator": each} for each in ("min", "max"))],
    "compaction": [{"dtype": each} for each in ("int32", "float32")],
    "sort": [{"dtype": each} for each in ("int32", "uint32", "float32")],
    "histogram": [{"of": "letters"}, {"of": "ranges"}, {"of": "numbers", "n": 100}],
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_not_rounded_may_not_be_off(name: str) -> None:
    pattern = find_pattern(name)
    for given in EXACT[name]:
        params = pattern.check(given if name == "histogram" else {"n": 100, **given})
        assert pattern.tolerance(pattern.prepare_inputs({}, params, 0), params) == 0
