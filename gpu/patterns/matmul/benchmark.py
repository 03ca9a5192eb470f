"""Benchmarks of the matrix product: cases and peers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeComparison, SizeCurve, powers_of_two
from gpu.declaration.pattern import Inputs, Params
from gpu.patterns.matmul.element_types import HALVES

_SHAPES = (
    (4096, 64, 4096),
    (64, 4096, 4096),
    (4096, 4096, 64),
    (256, 256, 16_384),
    (128, 128, 16_384),
    (16_384, 256, 256),
    (1023, 1025, 1027),
    (2000, 3000, 1000),
    (8192, 1024, 2048),
    (500, 5000, 500),
    (333, 777, 5555),
    (3001, 2999, 3003),
)
"""m, n and k: narrow, flat and odd shapes, and few elements of long rows."""


def _case(m: int, n: int, k: int, variants: tuple[str, ...] = ()) -> Case:
    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        a, b = torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")
        yield Peer("cuBLAS, no TF32 (PyTorch)", partial(torch.matmul, a, b, out=a.new_empty(m, n)))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        rng = cupy.random.default_rng(seed)
        a, b = (rng.random(shape, dtype=cupy.float32) for shape in ((m, k), (k, n)))
        product = cupy.empty((m, n), cupy.float32)
        yield Peer(f"cuBLAS (CuPy {cupy.__version__})", partial(cupy.matmul, a, b, out=product))

    libraries = {"torch": torch, "cupy": cupy}
    return Case(
        f"matmul, {_format_shape(m, n, k)} float32", {"m": m, "n": n, "k": k}, variants=variants, libraries=libraries
    )


def _float16_case(m: int, n: int, k: int, variants: tuple[str, ...]) -> Case:
    """Return a float16 case with random numbers from -1 to 1 as in ours, as values affect a GPU's clock rate."""

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        a, b = ((torch.rand(shape, device="cuda") * 2 - 1).half() for shape in ((m, k), (k, n)))
        yield Peer("cuBLAS of halves (PyTorch)", partial(torch.matmul, a, b, out=a.new_empty(m, n)))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        rng = cupy.random.default_rng(seed)
        a, b = ((rng.random(each, dtype=cupy.float32) * 2 - 1).astype(cupy.float16) for each in ((m, k), (k, n)))
        product = cupy.empty((m, n), cupy.float16)
        yield Peer(f"cuBLAS of halves (CuPy {cupy.__version__})", partial(cupy.matmul, a, b, out=product))

    libraries = {"torch": torch, "cupy": cupy}
    params = {"m": m, "n": n, "k": k, "dtype": HALVES}
    return Case(f"matmul, {_format_shape(m, n, k)} {HALVES}", params, variants=variants, libraries=libraries)


def _format_shape(m: int, n: int, k: int) -> str:
    return f"{m} x {n}" if m == n == k else f"{m} x {n} x {k}"


def _timing_model_case(side: int, tile: int = 32) -> Case:
    return Case(f"matmul, {side} x {side} float32, tile {tile}", {"n": side, "tile": str(tile)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    product = np.empty((inputs["values"].shape[0], inputs["b"].shape[1]), np.float32)
    yield Peer("NumPy matmul", lambda: np.matmul(inputs["values"], inputs["b"], out=product))


BENCHMARK = Benchmark(
    gpu=(
        *(_case(side, side, side) for side in (1024, 4096)),
        _case(8192, 8192, 8192, ("vectors", "peak")),
        _float16_case(4096, 4096, 4096, ("tiled", "warpgroups")),
    ),
    compiled=(_case(512, 512, 512),),
    curve=SizeCurve(powers_of_two(8, 9, 10, 11, 12)),
    goals={"tiled": "a 5th of np.matmul"},
    peers=_peers,
    timing_model_cases=(
        *map(_timing_model_case, (256, 512, 1024, 2048)),
        *(_timing_model_case(1024, tile) for tile in (16, 8)),
    ),
    size_comparisons=(
        SizeComparison(
            "matrix product of float32, square",
            "rows",
            {
                side: _case(side, side, side, ("vectors", "peak", "tensor"))
                for side in (256, 512, 1000, 1024, 2048, 4096, 4097, 8192)
            },
        ),
        SizeComparison(
            "matrix product of float32, other shapes",
            "(m x n x k)",
            {_format_shape(*shape): _case(*shape, ("peak",)) for shape in _SHAPES},
        ),
        SizeComparison(
            "matrix product of halves, square",
            "rows",
            {
                side: _float16_case(side, side, side, ("warpgroups",))
                for side in (256, 512, 1024, 2048, 4096, 4097, 8192)
            },
        ),
        SizeComparison(
            "matrix product of halves, other shapes",
            "(m x n x k)",
            {_format_shape(*shape): _float16_case(*shape, ("warpgroups",)) for shape in _SHAPES},
        ),
    ),
)
