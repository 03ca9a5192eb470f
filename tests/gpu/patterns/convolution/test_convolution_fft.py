"""Convolution by Fourier transforms against SciPy in float64, whatever the filter's size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy

from gpu.base.errors import InputError
from gpu.engines.base import Argument, Engine, Extent, Kernel
from gpu.engines.null import NullEngine
from gpu.patterns import find_pattern
from gpu.run.host_program import run_host_program
from tests.gpu.patterns.variant_runner import run_variant


@pytest.mark.parametrize(
    ("size", "shapes", "border"),
    [
        # The first tier has each size with one border.
        pytest.param(size, shapes, border, marks=[pytest.mark.sweep] * ((i + j) % 2))
        for i, (size, shapes) in enumerate(
            {
                3: [(1, 1), (9, 2), (14, 15), (63, 29, 3)],
                9: [(8, 8), (25, 24), (57, 113)],
                31: [(35, 3), (34, 69), (20, 36, 3)],
                47: [(19, 37)],
                63: [(3, 5)],
            }.items()
        )
        for j, border in enumerate(("clamp", "zero"))
    ],
)
def test_filters_of_any_size(engine: Engine, size: int, shapes: list[tuple[int, ...]], border: str) -> None:
    """Images that one tile holds, that two do side by side, and others; nothing symmetric."""
    rng = np.random.default_rng(size)
    weights = rng.uniform(-1, 1, (size, size)).astype(np.float32)
    mode = {"clamp": "nearest", "zero": "constant"}[border]
    for shape in shapes:
        image = rng.integers(0, 256, shape, np.uint8)
        outcome = run_variant(engine, "convolution", "fft", image, filter="custom", coefficients=weights, border=border)
        channels = np.atleast_3d(image).astype(np.float64)
        right = np.stack(
            [
                scipy.ndimage.correlate(channels[..., c], weights.astype(np.float64), mode=mode)
                for c in range(channels.shape[2])
            ],
            axis=-1,
        ).reshape(shape)
        # Errors of a transform are those of its largest numbers: a tile's root mean square times the filter's norm.
        bound = 2.0**-24 * 64 * 255 * np.sqrt((weights.astype(np.float64) ** 2).sum())
        np.testing.assert_allclose(outcome.outputs["result"], right, rtol=0, atol=bound)
        assert outcome.report.verified


@pytest.mark.parametrize("name", ["box", "sharpen"])
def test_a_bright_image_is_within_the_bound_of_sums(fast_engine: Engine, name: str) -> None:
    """The hardest for a transform, of which nearly all is one number; by machine code."""
    bright = np.random.default_rng(9).integers(230, 256, (150, 170), np.uint8)
    outcome = run_variant(fast_engine, "convolution", "fft", bright, filter=name, size=3)
    assert outcome.report.verified


def test_a_filter_of_one_coefficient_is_left_to_others(engine: Engine) -> None:
    with pytest.raises(InputError, match="one coefficient only scales the image"):
        run_variant(
            engine, "convolution", "fft", np.zeros((4, 4), np.uint8), filter="custom", coefficients=np.ones((1, 1))
        )


@pytest.mark.parametrize(("opt_in", "large", "parts"), [(0, 64, 2), (232_448, 128, 1)])
def test_tiles_and_parts_suit_the_filter_and_a_blocks_shared_memory(opt_in: int, large: int, parts: int) -> None:
    asked: list[tuple[int, int]] = []

    class Asking(NullEngine):
        def launch(
            self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0
        ) -> None:
            asked.append((shared_bytes, grid[0] * grid[1]))

    engine = Asking()
    engine.device = replace(engine.device, shared_bytes_opt_in=opt_in)
    pattern = find_pattern("convolution")
    cases = {(14, 3): (16, 1), (512, 9): (64, 1), (512, 31): (large, 1), (512, 63): (large, parts)}
    for (side, size), (tile, divided) in cases.items():
        asked.clear()
        inputs = {"image": np.zeros((side, side), np.uint8), "maxval": np.array(255)}
        params = pattern.check({"filter": "box", "size": size})
        run_host_program(engine, pattern.variant("fft"), inputs, params, lambda progress: None)
        shared = 8 * tile * (tile + {16: 4, 64: 8, 128: 8}[tile])
        assert shared <= max(49152, opt_in)
        kept = tile - -(-size // divided) + 1
        assert asked == divided**2 * [(shared, 1), (shared, -(-side // kept) * -(-side // (2 * kept)))]


@pytest.mark.parametrize("variant", ["separable", "register-tiled", "peak"])
def test_rungs_that_are_unrolled_say_how_wide_a_filter_they_take(engine: Engine, variant: str) -> None:
    with pytest.raises(InputError, match=r"31 (rows|x 31)\. This filter is 33 x 33"):
        run_variant(engine, "convolution", variant, np.zeros((4, 4), np.uint8), filter="box", size=33)


@pytest.mark.parametrize("variant", ["naive", "constant", "tiled"])
def test_other_rungs_take_the_largest_filter(engine: Engine, variant: str) -> None:
    image = np.random.default_rng(8).integers(0, 256, (9, 40), np.uint8)
    assert run_variant(engine, "convolution", variant, image, filter="gaussian", size=63).report.verified
