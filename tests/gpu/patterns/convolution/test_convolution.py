"""Convolution on every engine against SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from gpu.base.errors import InputError
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.patterns.convolution import filters
from gpu.patterns.convolution.filters import filter_from_params
from gpu.patterns.convolution.pattern import factor_filter
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.moment.array_accesses import find_array_accesses
from tests.gpu.patterns.variant_runner import run_variant

VARIANTS = [variant.name for variant in find_pattern("convolution").variants]
ANY_FILTER = [name for name in VARIANTS if name != "separable"]
SEPARABLE = ("box", "gaussian", "sobel-x", "sobel-y", "gradient")
MODES = {"clamp": "nearest", "zero": "constant"}
SIZES = [(1, 1), (1, 31), (31, 1), (2, 3), (16, 32), (17, 33), (31, 33), (65, 63), (40, 100)]


def expected(image: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], border: str) -> np.ndarray[Any, Any]:
    channels = [image] if image.ndim == 2 else [image[..., channel] for channel in range(3)]
    done = [
        scipy.ndimage.correlate(plane.astype(np.float64), weights.astype(np.float64), mode=MODES[border])
        for plane in channels
    ]
    return done[0] if image.ndim == 2 else np.stack(done, axis=-1)


def assert_close(result: np.ndarray[Any, Any], right: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> None:
    assert result.dtype == np.float32
    assert np.isfinite(result).all()
    bound = (weights.size + 1) * 2.0**-23 * np.abs(weights).sum() * 255
    np.testing.assert_allclose(result, right, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("variant", "size", "border"),
    [
        # The first tier has all pairs: of variant and size, of variant and border, of size and border.
        pytest.param(variant, size, border, marks=[pytest.mark.sweep] * ((i + j + k) % 2))
        for i, variant in enumerate(ANY_FILTER)
        for j, size in enumerate((3, 5))
        for k, border in enumerate(MODES)
    ],
)
def test_awkward_sizes(engine: Engine, variant: str, size: int, border: str) -> None:
    rng = np.random.default_rng(size)
    weights = rng.uniform(-1, 1, (size, size)).astype(np.float32)
    for shape in SIZES:
        image = rng.integers(0, 256, shape, np.uint8)
        outcome = run_variant(
            engine, "convolution", variant, image, filter="custom", coefficients=weights, border=border
        )
        assert_close(outcome.outputs["result"], expected(image, weights, border), weights)
        assert outcome.report.verified


@pytest.mark.parametrize(
    ("variant", "name", "shape"),
    [
        # The first tier has all pairs of variant and filter, each in gray or in color.
        pytest.param(variant, name, shape, marks=[pytest.mark.sweep] * ((i + j + k) % 2))
        for i, variant in enumerate(VARIANTS)
        for j, name in enumerate(filters.NAMES)
        for k, shape in enumerate([(33, 50), (20, 37, 3)])
        if variant != "separable" or name in SEPARABLE
    ],
)
def test_every_filter_in_gray_and_color(engine: Engine, variant: str, name: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    outcome = run_variant(engine, "convolution", variant, image, filter=name, size=7)
    each = filters.SOBELS if name == filters.GRADIENT else (name,)
    right = [expected(image, filters.make_filter(one, 7), "clamp") for one in each]
    assert_close(outcome.outputs["result"], np.hypot(*right) if len(each) > 1 else right[0], np.array([[20.0]]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_16_bit_values_reach_the_kernel_as_they_are(engine: Engine, variant: str) -> None:
    image = np.arange(0, 65536, 131, np.uint16).reshape(-1, 3)[:, :3].copy()
    identity = np.zeros((3, 3))
    identity[1, 1] = 1
    outcome = run_variant(engine, "convolution", variant, image, filter="custom", coefficients=identity)
    off = 0.05 if variant == "fft" else 0  # transforms are not exact
    np.testing.assert_allclose(outcome.outputs["result"], image.astype(np.float32), rtol=0, atol=off)
    np.testing.assert_array_equal(outcome.presented_arrays["image"], image)


def test_an_asymmetric_filter_is_laid_over_the_image_as_written(engine: Engine) -> None:
    """A correlation: the coefficient on the right takes the pixel on the right."""
    image = np.array([[10, 20, 30]], np.uint8)
    right = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    outcome = run_variant(engine, "convolution", "tiled", image, filter="custom", coefficients=right, border="zero")
    np.testing.assert_array_equal(outcome.outputs["result"], [[20, 30, 0]])


def test_an_edge_filter_is_shown_around_mid_gray_and_a_blur_is_not(engine: Engine) -> None:
    flat = np.full((8, 8), 100, np.uint8)
    assert (
        run_variant(engine, "convolution", "tiled", flat, filter="sobel-x", size=3).presented_arrays["picture"] == 128
    ).all()
    assert (
        run_variant(engine, "convolution", "tiled", flat, filter="box", size=5).presented_arrays["picture"] == 100
    ).all()


def test_the_picture_of_a_deep_image_is_scaled_by_its_white(engine: Engine) -> None:
    image = np.full((4, 4), 1023, np.uint16)
    presented = run_variant(engine, "convolution", "naive", image, 1023, filter="box", size=3).presented_arrays
    assert presented["image"].dtype == np.uint16
    assert (presented["image"] == 1023).all()
    assert (presented["picture"] == 255).all()


@pytest.mark.parametrize("name", filters.NAMES)
@pytest.mark.parametrize("size", [3, 5, 31])
def test_filters_sum_to_one_or_to_zero(name: str, size: int) -> None:
    weights = filters.make_filter(name, size)
    assert weights.shape == (size, size)
    assert weights.dtype == np.float32
    edges = name in ("sobel-x", "sobel-y", "gradient", "laplacian")
    assert weights.sum(dtype=np.float64) == pytest.approx(0 if edges else 1, abs=1e-5)


def test_the_gaussian_is_the_separable_bell() -> None:
    weights = filters.make_filter("gaussian", 9).astype(np.float64)
    assert np.linalg.matrix_rank(weights, tol=1e-6) == 1
    np.testing.assert_array_equal(weights, weights.T)
    assert weights[4, 4] == weights.max()


@pytest.mark.parametrize("name", SEPARABLE)
def test_what_is_between_two_passes_has_the_sign_of_the_image(name: str) -> None:
    row, column = factor_filter(filters.make_filter(name, 5))
    np.testing.assert_allclose(np.outer(column, row), filters.make_filter(name, 5), atol=1e-6)
    smooth = row if name not in ("sobel-x", "gradient") else column
    assert (smooth > 0).all()


def test_wider_sobel_is_the_usual_one() -> None:
    """Binomial smoothing across and a widened difference along, as OpenCV's getDerivKernels, normalized."""
    right = np.outer([1, 4, 6, 4, 1], [-1, -2, 0, 2, 1]) / 16
    np.testing.assert_allclose(filters.make_filter("sobel-x", 5), right, rtol=1e-6)


def test_a_custom_filter_beats_the_size() -> None:
    params = find_pattern("convolution").check({"filter": "custom", "coefficients": np.ones((5, 5))})
    assert filter_from_params(params).shape == (5, 5)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "fft"])
def test_a_custom_filter_of_one_coefficient_scales(engine: Engine, variant: str) -> None:
    image = np.random.default_rng(6).integers(0, 256, (9, 20), np.uint8)
    outcome = run_variant(engine, "convolution", variant, image, filter="custom", coefficients=np.array([[0.5]]))
    assert_close(outcome.outputs["result"], image * 0.5, np.array([[0.5]]))


def test_a_custom_filter_of_an_even_size_is_refused(engine: Engine) -> None:
    with pytest.raises(InputError, match="odd number of rows"):
        run_variant(
            engine, "convolution", "tiled", np.zeros((3, 3), np.uint8), filter="custom", coefficients=np.ones((4, 4))
        )


@pytest.mark.parametrize(
    ("variant", "size", "border"),
    [
        # The first tier has all pairs of variant and border.
        pytest.param(variant, size, border, marks=[pytest.mark.sweep] * ((i + j) % 2))
        for variant, sizes in (("separable", (3, 31)), ("register-tiled", (3, 9)), ("peak", (5, 7, 15)))
        for i, size in enumerate(sizes)
        for j, border in enumerate(MODES)
    ],
)
def test_wide_loads_and_strips(engine: Engine, variant: str, size: int, border: str) -> None:
    """Rows that begin at multiples of 16 bytes, and of every odd remainder; more rows than a strip has."""
    rng = np.random.default_rng(size)
    row, column = rng.uniform(-1, 1, (2, size))
    weights = np.outer(column, row).astype(np.float32)
    for shape in [(3, 4), (1, 129), (70, 36), (19, 138), (11, 43, 3)]:
        image = rng.integers(0, 256, shape, np.uint8)
        outcome = run_variant(
            engine, "convolution", variant, image, filter="custom", coefficients=weights, border=border
        )
        assert_close(outcome.outputs["result"], expected(image, weights, border), weights)
        assert outcome.report.verified


@pytest.mark.parametrize("name", filters.NAMES)
@pytest.mark.parametrize("size", [3, 15, 31])
def test_what_separates_runs_and_what_does_not_says_why(engine: Engine, name: str, size: int) -> None:
    image = np.random.default_rng(5).integers(0, 256, (9, 20), np.uint8)
    if name in SEPARABLE:
        assert run_variant(engine, "convolution", "separable", image, filter=name, size=size).report.verified
        return
    first, second = np.linalg.svd(filters.make_filter(name, size).astype(np.float64), compute_uv=False)[:2]
    with pytest.raises(InputError, match=f"singular values are {first:.3g} and {second:.3g}") as raised:
        run_variant(engine, "convolution", "separable", image, filter=name, size=size)
    assert "another variant" in raised.value.advice


def test_a_filter_of_zeros_separates(engine: Engine) -> None:
    image = np.full((5, 6), 9, np.uint8)
    outcome = run_variant(engine, "convolution", "separable", image, filter="custom", coefficients=np.zeros((3, 3)))
    np.testing.assert_array_equal(outcome.outputs["result"], np.zeros((5, 6)))


@pytest.mark.gpu
@pytest.mark.hardware
@pytest.mark.timeout(600)
def test_large_images_on_the_gpu() -> None:
    from gpu import engines

    engine = engines.create_engine("cuda")
    try:
        image = np.random.default_rng(1).integers(0, 256, (8192, 8192), np.uint8)
        for variant in VARIANTS:
            for size in (3, 5):
                assert run_variant(engine, "convolution", variant, image, filter="gaussian", size=size).report.verified
    finally:
        engine.close()


@pytest.mark.parametrize("tile", ["32x8", "16x16", "8x8", "6x6", "4x4"])
@pytest.mark.parametrize("size", [3, 5, 31])
def test_a_tile_of_any_size_gives_the_same(engine: Engine, tile: str, size: int) -> None:
    image = np.random.default_rng(size).integers(0, 256, (37, 45), np.uint8)
    assert run_variant(engine, "convolution", "tiled", image, filter="gaussian", size=size, tile=tile).report.verified


def test_a_block_of_6_x_6_fetches_a_tile_of_8_x_8() -> None:
    pattern = find_pattern("convolution")
    preset = next(preset for preset in pattern.presets if "6 × 6" in preset.title)
    inputs = {"image": np.arange(96, dtype=np.uint8).reshape(8, 12), "maxval": np.array(255)}
    recording = record_pattern(
        Workload(pattern, pattern.variant(preset.variant), inputs, preset.params), lambda progress: None
    )
    (launch,) = recording.launches
    assert (launch.trace.grid, launch.trace.block) == ((2, 2, 1), (6, 6, 1))
    shared = [array for array in launch.trace.arrays if array.space == "shared"]
    assert {array.count for array in shared} == {64}
    numbers = {array.number for array in shared if array.block == 0}
    fills = []
    for event in range(len(launch.trace.events)):
        for touch in find_array_accesses(launch.trace, event):
            if touch.is_write and touch.array_number in numbers:
                fills.extend(touch.elements.tolist())
    assert sorted(fills) == list(range(64))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradient_is_the_length_of_both_sobels(engine: Engine, variant: str) -> None:
    image = np.random.default_rng(5).integers(0, 256, (33, 40), np.uint8)
    outcome = run_variant(engine, "convolution", variant, image, filter="gradient")
    x, y = (scipy.ndimage.sobel(image.astype(float), axis, mode="nearest") for axis in (1, 0))
    np.testing.assert_allclose(outcome.outputs["result"], np.hypot(x, y), rtol=1e-5, atol=1e-3)
    assert outcome.report.verified
    flat = np.full((9, 9), 100, np.uint8)
    assert (run_variant(engine, "convolution", variant, flat, filter="gradient").presented_arrays["picture"] == 0).all()


def test_filters_have_sizes_of_their_own() -> None:
    pattern = find_pattern("convolution")
    assert pattern.check({"filter": "gaussian"})["size"] == 9
    for name in ("sobel-x", "sobel-y", "gradient", "laplacian"):
        assert pattern.check({"filter": name})["size"] == 3
    assert pattern.check({"filter": "sobel-x", "size": 7})["size"] == 7


@pytest.mark.parametrize(
    "given", [{"size": 4}, {"filter": "custom", "coefficients": np.ones((4, 4))}], ids=["size", "coefficients"]
)
def test_an_even_filter_is_refused_with_the_reason(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="With an even number of rows, no row is centered"):
        find_pattern("convolution").check(given)


@pytest.mark.parametrize("size", [13, 15, 63])
@pytest.mark.parametrize("border", MODES)
def test_what_is_right_of_a_large_filter_is_its_sum(size: int, border: str) -> None:
    pattern, rng = find_pattern("convolution"), np.random.default_rng(size)
    weights = rng.uniform(-1, 1, (size, size)).astype(np.float32)
    params = pattern.check({"filter": "custom", "coefficients": weights.tolist(), "border": border})
    for shape in [(1, 1), (5, 70), (300, 41), (257, 6, 3)]:
        image = rng.integers(0, 256, shape, np.uint8)
        right = pattern.reference({"image": image, "maxval": np.array(255)}, params)
        np.testing.assert_allclose(right, expected(image, weights, border), rtol=0, atol=1e-9)
