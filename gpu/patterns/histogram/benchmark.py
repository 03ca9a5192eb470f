"""Benchmarks of the histogram: cases and peers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.benchmark import (
    Benchmark,
    Case,
    CudaProgram,
    Peer,
    SizeComparison,
    SizeCurve,
    constant_image,
    powers_of_two,
    random_image,
)
from gpu.declaration.pattern import Inputs, Params


def _cub_program(dtype: str, bins: int, content: str, n: int) -> CudaProgram:
    return CudaProgram("CUB", "cub.cu", (f"histogram-{dtype}-{bins}-{content}", n), prints_version=True)


def _gpu_case(content: str, power: int = 15, variants: tuple[str, ...] = ()) -> Case:
    side, count = 2**power, 4**power

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        # PyTorch converts its input to 64 bits, so it gets a quarter of the pixels.
        pixels = torch.full((count // 4,), 7, dtype=torch.uint8, device="cuda")
        if content == "uniform":
            pixels.random_(0, 256)
        call = partial(torch.bincount, pixels, minlength=256)
        yield Peer("PyTorch bincount (a quarter of the pixels)", call, work_fraction=1 / 4)

    return Case(
        f"histogram, 256 bins, 2^{2 * power} {content} uint8",
        make_inputs=(random_image if content == "uniform" else constant_image)(side, side),
        variants=variants,
        libraries={"torch": torch},
        programs=(_cub_program("uint8", 256, content, count),),
    )


def _numbers_case(dtype: str, bins: int, content: str) -> Case:
    return Case(
        f"histogram of numbers, {bins} bins, 2^24 {content} {dtype}",
        {"of": "numbers", "dtype": dtype, "bins": bins, "numbers": content, "n": 2**24},
        variants=("peak",),
        programs=(_cub_program(dtype, bins, content, 2**24),),
    )


_CONTENTS = (
    ("uint8", "uniform"),
    ("uint16", "uniform"),
    ("uint32", "uniform"),
    ("float32", "uniform"),
    ("float32", "skewed"),
    ("float32", "constant"),
)


def _simulator_case(side: int) -> Case:
    return Case(f"histogram, 256 bins, {side} x {side} uint8", make_inputs=random_image(side, side))


def _timing_model_case(side: int, content: str = "uniform", block: int = 256) -> Case:
    return Case(
        f"histogram, 256 bins, {side} x {side} {content} uint8, blocks of {block}",
        {"block": str(block)},
        (random_image if content == "uniform" else constant_image)(side, side),
    )


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    image = inputs["image"]

    def calc_hist() -> None:
        import cv2

        cv2.calcHist([image], [0], None, [256], [0, 256])

    yield Peer("NumPy bincount", lambda: np.bincount(image.ravel(), minlength=256))
    yield Peer("OpenCV calcHist", calc_hist, "cv2")


BENCHMARK = Benchmark(
    gpu=(_gpu_case("uniform"), _gpu_case("constant")),
    compiled=(_simulator_case(4096),),
    lockstep=(_simulator_case(1024),),
    curve=SizeCurve(powers_of_two(9, 10, 11, 12, 13, 14)),
    goals={"privatized": "3 x np.bincount"},
    peers=_peers,
    timing_model_cases=(
        *(_timing_model_case(side) for side in (512, 2048, 8192)),
        _timing_model_case(2048, "constant"),
        *(_timing_model_case(2048, block=block) for block in (64, 1024)),
    ),
    size_comparisons=(
        *(
            SizeComparison(
                f"histogram of {content} uint8, 256 bins",
                "pixels",
                {4**power: _gpu_case(content, power, ("privatized", "peak")) for power in range(8, 16)},
            )
            for content in ("uniform", "constant")
        ),
        *(
            SizeComparison(
                f"histogram of 2^24 {content} {dtype}",
                "bins",
                {bins: _numbers_case(dtype, bins, content) for bins in powers_of_two(1, 4, 8, 10, 12, 14, 16)},
            )
            for dtype, content in _CONTENTS
        ),
    ),
)
