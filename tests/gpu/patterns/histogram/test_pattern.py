"""Histograms on every engine against NumPy's counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from tests.gpu.patterns.variant_runner import run_variant
from tests.tiers import spread

PATTERN = find_pattern("histogram")
CORRECT = [variant.name for variant in PATTERN.variants if not variant.deliberate_error]
THREADS = [
    variant.name for variant in PATTERN.variants if not variant.deliberate_error and not variant.is_single_thread
]
SIZES = [(1, 1), (1, 31), (32, 1), (33, 31), (127, 129), (256, 256), (511, 257)]


def expected(image: np.ndarray[Any, Any], bins: int, levels: int) -> np.ndarray[Any, Any]:
    channels = [image] if image.ndim == 2 else [image[..., channel] for channel in range(3)]
    return np.stack(
        [np.bincount((plane.ravel().astype(np.int64) * bins) // levels, minlength=bins) for plane in channels]
    )


@pytest.mark.parametrize(("variant", "bins"), spread(CORRECT, (1, 7, 255, 256, 1000, 8192)))
def test_awkward_sizes(engine: Engine, variant: str, bins: int) -> None:
    rng = np.random.default_rng(bins)
    for shape in SIZES if variant in THREADS else SIZES[:-2]:
        image = rng.integers(0, 256, shape, np.uint8)
        outcome = run_variant(engine, "histogram", variant, image, bins=bins)
        np.testing.assert_array_equal(outcome.outputs["counts"], expected(image, bins, 256))
        assert outcome.report.verified


@pytest.mark.parametrize("variant", CORRECT)
def test_color_is_counted_a_channel_at_a_time(engine: Engine, variant: str) -> None:
    image = np.random.default_rng(3).integers(0, 256, (75, 41, 3), np.uint8)
    outcome = run_variant(engine, "histogram", variant, image)
    assert outcome.outputs["counts"].shape == (3, 256)
    np.testing.assert_array_equal(outcome.outputs["counts"], expected(image, 256, 256))


@pytest.mark.parametrize(("variant", "maxval"), spread(CORRECT, (1, 255, 1023, 65535)))
def test_deep_images_are_binned_by_their_own_levels(engine: Engine, variant: str, maxval: int) -> None:
    image = np.random.default_rng(4).integers(0, maxval, (60, 60), np.uint16, endpoint=True)
    for bins in (100, 256, 8192):
        outcome = run_variant(engine, "histogram", variant, image, maxval, bins=bins)
        np.testing.assert_array_equal(outcome.outputs["counts"], expected(image, bins, maxval + 1))


@pytest.mark.parametrize("variant", THREADS)
@pytest.mark.parametrize("image", ["constant", "runs", "last pixel differs", "extremes"])
def test_images_that_trip_text_versions(engine: Engine, variant: str, image: str) -> None:
    """The aggregated text version loses the last run, and a private one that merges wrongly loses whole blocks."""
    made = {
        "constant": np.full((300, 300), 77, np.uint8),
        "runs": np.repeat(np.arange(90, dtype=np.uint8), 1000).reshape(300, 300),
        "last pixel differs": np.zeros((300, 300), np.uint8),
        "extremes": np.resize(np.array([0, 255], np.uint8), (300, 301)),
    }[image]
    if image == "last pixel differs":
        made[-1, -1] = 9
    outcome = run_variant(engine, "histogram", variant, made)
    np.testing.assert_array_equal(outcome.outputs["counts"], expected(made, 256, 256))


def test_the_racy_variant_loses_updates_and_says_so(engine: Engine) -> None:
    image = np.full((256, 256), 5, np.uint8)
    outcome = run_variant(engine, "histogram", "racy", image)
    counts = outcome.outputs["counts"]
    assert 0 < counts[0, 5] < image.size
    assert counts.sum() == counts[0, 5]
    assert outcome.report.verified is False


def test_the_racy_variant_is_right_where_nothing_collides(engine: Engine) -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert run_variant(engine, "histogram", "racy", image).report.verified
