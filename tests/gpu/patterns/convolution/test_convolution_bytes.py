"""Convolution of 8-bit pixels as they are: what is rounded on the device beside what the host rounds, and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from gpu.base.errors import InputError
from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.patterns.convolution import filters
from gpu.run.host_program import run_host_program
from gpu.run.verification import compare_results, prepare_comparison
from tests.gpu.patterns.variant_runner import Array, run_variant

# Rows that begin where words do, and that do not; in color too. Narrower than a word, and than a filter's reach.
SHAPES = [(1, 1), (2, 4), (9, 1, 3), (5, 3, 3), (33, 70), (37, 8, 3), (11, 36, 3)]


@pytest.mark.parametrize(
    ("variant", "size", "border"),
    [
        # The first tier has each variant with both borders, and each size with one.
        pytest.param(variant, size, border, marks=[pytest.mark.sweep] * (variant == "peak" and (i + j) % 2))
        for i, (variant, size) in enumerate((("peak", 1), ("peak", 3), ("peak", 5), ("register-tiled", 9)))
        for j, border in enumerate(("clamp", "zero"))
    ],
)
def test_levels_are_those_that_the_host_rounds_floats_to(engine: Engine, variant: str, size: int, border: str) -> None:
    rng = np.random.default_rng(size)
    coefficients = (rng.uniform(-1, 1, (size, size)) * 3 / size).astype(np.float32)
    given = {"filter": "custom", "coefficients": coefficients, "border": border}
    for shape in SHAPES:
        image = rng.integers(0, 256, shape, np.uint8)
        levels = run_variant(engine, "convolution", variant, image, **given, pixels="uint8")
        floats = run_variant(engine, "convolution", variant, image, **given)
        assert levels.outputs["result"].dtype == np.uint8
        np.testing.assert_array_equal(levels.presented_arrays["image"], floats.presented_arrays["image"])
        assert levels.report.verified
        assert 4 * levels.report.least_bytes == floats.report.least_bytes


def test_levels_are_scipys_of_each_channel(engine: Engine) -> None:
    image = np.random.default_rng(3).integers(0, 256, (21, 30, 3), np.uint8)
    weights = filters.make_filter("emboss", 5)
    found = run_variant(engine, "convolution", "peak", image, filter="emboss", size=5, pixels="uint8").presented_arrays[
        "image"
    ]
    for channel in range(3):
        right = scipy.ndimage.correlate(
            image[..., channel].astype(np.float64), weights.astype(np.float64), mode="nearest"
        )
        assert (np.abs(found[..., channel] - np.clip(right, 0, 255)) <= 0.5 + 1e-3).all()


@pytest.mark.parametrize("name", ["laplacian", "sharpen"])
def test_white_and_zero_are_the_images(engine: Engine, name: str) -> None:
    """White may be less than 255; an edge filter's zero is in the middle, of which a half is rounded to even."""
    image = np.random.default_rng(4).integers(0, 102, (20, 40), np.uint8)
    levels, floats = (
        run_variant(engine, "convolution", "peak", image, 101, filter=name, size=3, pixels=pixels)
        for pixels in ("uint8", "float32")
    )
    np.testing.assert_array_equal(levels.presented_arrays["image"], floats.presented_arrays["image"])
    np.testing.assert_array_equal(levels.presented_arrays["picture"], floats.presented_arrays["picture"])
    assert levels.presented_arrays["image"].max() <= 101
    flat = run_variant(
        engine, "convolution", "peak", np.full((5, 8), 100, np.uint8), filter=name, size=3, pixels="uint8"
    )
    assert (flat.outputs["result"] == {"laplacian": 128, "sharpen": 100}[name]).all()


def test_a_level_too_many_is_no_verified_result(engine: Engine) -> None:
    pattern = find_pattern("convolution")
    params = pattern.check({"filter": "box", "size": 3, "pixels": "uint8"})
    inputs = {"image": np.full((8, 8), 100, np.uint8), "maxval": np.array(255)}
    variant = pattern.variant("peak")
    outputs = run_host_program(engine, variant, inputs, params, lambda progress: None)
    for off, right in ((0, True), (1, False)):
        moved: Array = outputs["result"].copy()
        moved[3, 3] += off
        compared = prepare_comparison(pattern, variant, inputs, params, {"result": moved})
        assert compare_results(*compared, pattern.tolerance(inputs, params))[1] is right


@pytest.mark.parametrize(
    ("variant", "params", "message"),
    [
        ("tiled", {"filter": "box"}, "choose Register-tiled or Peak for 8-bit pixels"),
        ("fft", {"filter": "box"}, "choose Register-tiled or Peak for 8-bit pixels"),
        ("peak", {"filter": "gradient"}, "combines two results"),
        ("peak", {"filter": "box", "size": 33}, "This filter is 33 x 33"),
    ],
)
def test_what_does_not_take_bytes_says_why(
    engine: Engine, variant: str, params: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run_variant(engine, "convolution", variant, np.zeros((4, 4), np.uint8), **params, pixels="uint8")


def test_an_image_of_16_bits_is_not_taken_as_bytes(engine: Engine) -> None:
    with pytest.raises(InputError, match="16 bits per channel; --pixels uint8 needs 8"):
        run_variant(engine, "convolution", "peak", np.zeros((4, 4), np.uint16), filter="box", size=3, pixels="uint8")
