"""Benchmarks of convolution: cases and peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.benchmark import (
    Array,
    Benchmark,
    Case,
    Peer,
    SizeComparison,
    SizeCurve,
    powers_of_two,
    random_image,
)
from gpu.declaration.pattern import Inputs, Params
from gpu.patterns.convolution.filters import filter_from_params

_SIDE = 8192
_LARGE = 31
"""The side of a filter from which Fourier transforms are competitive."""


def _gpu_case(size: int, side: int = _SIDE, variants: tuple[str, ...] = ()) -> Case:
    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        image, weights = torch.rand(1, 1, side, side, device="cuda"), torch.rand(1, 1, size, size, device="cuda")
        call = partial(torch.nn.functional.conv2d, image, weights, padding="same")
        yield Peer(f"cuDNN {torch.backends.cudnn.version()} (PyTorch)", call)
        if size >= _LARGE:
            yield Peer(
                f"cuFFT (PyTorch {torch.__version__}), all of the image at once", _cufft_action(torch, side, size)
            )

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        from cupyx.scipy import ndimage

        rng = cupy.random.default_rng(seed)
        image, weights = (rng.random((each, each), dtype=cupy.float32) for each in (side, size))
        yield Peer(f"CuPy {cupy.__version__} ndimage", partial(ndimage.correlate, image, weights, mode="constant"))

    return Case(
        f"convolution {size} x {size}, {side} x {side} float32",
        {"filter": "gaussian", "size": size, "border": "zero"},
        random_image(side, side),
        variants=variants,
        libraries={"torch": torch, "cupy": cupy},
    )


def _cufft_action(torch: Any, side: int, size: int) -> Callable[[], Any]:
    """Return a function that filters a padded image by cuFFT, with the filter transformed before."""
    from scipy.fft import next_fast_len

    length = next_fast_len(side + size - 1, real=True)
    image, weights = (torch.rand(length, length, device="cuda") for _ in range(2))
    spectrum = torch.fft.rfft2(weights)
    return lambda: torch.fft.irfft2(torch.fft.rfft2(image).mul_(spectrum), s=(length, length))


def _byte_gpu_case(size: int, channels: int) -> Case:
    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        from cupyx.scipy import ndimage

        rng = cupy.random.default_rng(seed)
        shape, reach = ((_SIDE, _SIDE), (size, size)) if channels == 1 else ((_SIDE, _SIDE, 3), (size, size, 1))
        image, weights = rng.integers(0, 256, shape, cupy.uint8), rng.random(reach, dtype=cupy.float32) / size**2
        yield Peer(f"CuPy {cupy.__version__} ndimage", partial(ndimage.correlate, image, weights, mode="nearest"))

    def image(rng: np.random.Generator) -> Mapping[str, Array]:
        shape = (_SIDE, _SIDE) if channels == 1 else (_SIDE, _SIDE, channels)
        return {"image": rng.integers(0, 256, shape, np.uint8), "maxval": np.array(255)}

    kind = "gray" if channels == 1 else "RGB"
    return Case(
        f"convolution {size} x {size}, {_SIDE} x {_SIDE} 8-bit {kind}",
        {"filter": "gaussian", "size": size, "pixels": "uint8"},
        image,
        libraries={"cupy": cupy},
    )


def _simulator_case(side: int) -> Case:
    params = {"filter": "gaussian", "size": 5}
    return Case(f"convolution 5 x 5, {side} x {side} float32", params, random_image(side, side))


def _timing_model_case(side: int, size: int, tile: str = "32x8") -> Case:
    params = {"filter": "gaussian", "size": size, "border": "zero", "tile": tile}
    return Case(f"convolution {size} x {size}, {side} x {side}, tile {tile}", params, random_image(side, side))


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import ndimage

    image, weights = inputs["image"].astype(np.float32), filter_from_params(params)

    def filter_2d() -> None:
        import cv2

        cv2.filter2D(image, -1, weights, borderType=cv2.BORDER_REPLICATE)

    yield Peer("SciPy ndimage.correlate", lambda: ndimage.correlate(image, weights, mode="nearest"))
    yield Peer("OpenCV filter2D", filter_2d, "cv2")


BENCHMARK = Benchmark(
    gpu=(
        *map(_gpu_case, (3, 5, 9, 15, _LARGE)),
        _gpu_case(63, variants=("tiled", "fft")),
        *(_byte_gpu_case(size, channels) for channels in (1, 3) for size in (3, 5)),
    ),
    compiled=(_simulator_case(1024),),
    lockstep=(_simulator_case(512),),
    curve=SizeCurve(powers_of_two(9, 10, 11, 12, 13)),
    goals={"tiled": "4 x SciPy, half of filter2D"},
    peers=_peers,
    timing_model_cases=(
        *(_timing_model_case(side, size) for side in (512, 2048, 8192) for size in (3, 9, 31)),
        *(_timing_model_case(2048, 5, tile) for tile in ("32x8", "16x16", "8x8")),
    ),
    size_comparisons=tuple(
        SizeComparison(
            f"convolution {size} x {size} of float32",
            "pixels per side",
            {2**power: _gpu_case(size, 2**power, variants) for power in range(9, 14)},
        )
        for size, variants in (
            (3, ("register-tiled", "peak")),
            (15, ("peak", "fft")),
            (_LARGE, ("fft", "peak")),
        )
    ),
)
