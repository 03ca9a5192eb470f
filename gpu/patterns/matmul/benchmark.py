"""What the matrix product is measured on, and beside whom."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.benchmark import Benchmark, Beside, Case, Peer, SizeCurve, powers
from gpu.declaration.pattern import Inputs, Params
from gpu.patterns.matmul.elements import HALVES


def _case(side: int, variants: tuple[str, ...] = ()) -> Case:
    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        a, b = torch.rand(side, side, device="cuda"), torch.rand(side, side, device="cuda")
        yield Peer("cuBLAS, no TF32 (PyTorch)", partial(torch.matmul, a, b, out=torch.empty_like(a)))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        rng = cupy.random.default_rng(seed)
        a, b = (rng.random((side, side), dtype=cupy.float32) for _ in range(2))
        yield Peer(f"cuBLAS (CuPy {cupy.__version__})", partial(cupy.matmul, a, b, out=cupy.empty_like(a)))

    libraries = {"torch": torch, "cupy": cupy}
    return Case(f"matmul, {side} x {side} float32", {"n": side}, variants=variants, libraries=libraries)


def _halves(side: int, variants: tuple[str, ...]) -> Case:
    """Random numbers from -1 to 1, as ours are: what they are decides how fast a GPU may go."""

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        a, b = ((torch.rand(side, side, device="cuda") * 2 - 1).half() for _ in range(2))
        yield Peer("cuBLAS of halves (PyTorch)", partial(torch.matmul, a, b, out=torch.empty_like(a)))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        rng = cupy.random.default_rng(seed)
        a, b = ((rng.random((side, side), dtype=cupy.float32) * 2 - 1).astype(cupy.float16) for _ in range(2))
        yield Peer(f"cuBLAS of halves (CuPy {cupy.__version__})", partial(cupy.matmul, a, b, out=cupy.empty_like(a)))

    libraries = {"torch": torch, "cupy": cupy}
    params = {"n": side, "dtype": HALVES}
    return Case(f"matmul, {side} x {side} {HALVES}", params, variants=variants, libraries=libraries)


def _timed(side: int, tile: int = 32) -> Case:
    return Case(f"matmul, {side} x {side} float32, tile {tile}", {"n": side, "tile": str(tile)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    product = np.empty((inputs["values"].shape[0], inputs["b"].shape[1]), np.float32)
    yield Peer("NumPy matmul", lambda: np.matmul(inputs["values"], inputs["b"], out=product))


BENCHMARK = Benchmark(
    gpu=(_case(1024), _case(4096), _case(8192, ("vectors", "peak")), _halves(4096, ("tiled", "warpgroups"))),
    compiled=(_case(512),),
    curve=SizeCurve(powers(8, 9, 10, 11, 12)),
    wanted={"tiled": "a 5th of np.matmul"},
    peers=_peers,
    timed=(*map(_timed, (256, 512, 1024, 2048)), *(_timed(1024, tile) for tile in (16, 8))),
    beside=(
        Beside(
            "matrix product of float32, square",
            "rows",
            {
                side: _case(side, ("vectors", "peak", "tensor"))
                for side in (256, 512, 1000, 1024, 2048, 4096, 4097, 8192)
            },
        ),
        Beside(
            "matrix product of halves, square",
            "rows",
            {side: _halves(side, ("warpgroups",)) for side in (256, 512, 1024, 2048, 4096, 4097, 8192)},
        ),
    ),
)
