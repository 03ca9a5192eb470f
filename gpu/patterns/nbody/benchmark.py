"""Benchmarks of n-body: the ladder at three sizes, and commonly written kernels as peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from gpu.declaration.benchmark import Benchmark, Case, CudaProgram, Peer, SizeComparison, SizeCurve, powers_of_two
from gpu.declaration.pattern import Inputs, Params
from gpu.messages.bodies import FLOPS_PER_INTERACTION
from gpu.patterns.nbody.physics import square_softening

_BODIES_PER_THREAD = {
    1: "one body per thread, as CUDA's sample",
    2: "two bodies per thread",
    4: "four bodies per thread",
}
_SAMPLE_OPTIONS = ("-ftz=true",)
"""The nvcc option of CUDA's n-body sample, with which rsqrtf() is one instruction, as in our kernels."""


def _case(bodies: int, variants: tuple[str, ...] = ()) -> Case:
    """Return a case that computes only the forces."""
    return Case(
        f"n-body, {bodies} bodies, {FLOPS_PER_INTERACTION} flop per interaction",
        {"preset": "plummer", "bodies": bodies, "steps": 0},
        variants=variants,
        programs=tuple(
            CudaProgram(title, "gravity.cu", (bodies_per_thread, bodies), options=_SAMPLE_OPTIONS)
            for bodies_per_thread, title in _BODIES_PER_THREAD.items()
        ),
    )


def _timing_model_case(bodies: int, block: str = "auto") -> Case:
    params = {"preset": "plummer", "bodies": bodies, "steps": 0, "block": block}
    return Case(f"n-body, {bodies} bodies, blocks of {block}", params)


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    def loops(bodies: Any, result: Any, squared: Any) -> None:
        for i in range(bodies.shape[0]):
            ax = ay = az = np.float32(0)
            for j in range(bodies.shape[0]):
                dx = bodies[j, 0] - bodies[i, 0]
                dy = bodies[j, 1] - bodies[i, 1]
                dz = bodies[j, 2] - bodies[i, 2]
                inverse = np.float32(1) / np.sqrt(dx * dx + dy * dy + dz * dz + squared)
                scaled_mass = bodies[j, 3] * inverse * inverse * inverse
                ax += dx * scaled_mass
                ay += dy * scaled_mass
                az += dz * scaled_mass
            result[i, 0], result[i, 1], result[i, 2] = ax, ay, az

    @cache
    def compiled() -> Callable[..., None]:
        import numba

        signature = numba.void(numba.float32[:, ::1], numba.float32[:, ::1], numba.float32)
        function: Callable[..., None] = numba.njit(signature)(loops)
        return function

    bodies = np.ascontiguousarray(inputs["bodies"][:, [0, 1, 2, 6]])
    result = np.empty((len(bodies), 3), np.float32)
    squared = square_softening(params["softening"])
    yield Peer("Numba, a double loop", lambda: compiled()(bodies, result, squared), "numba")


BENCHMARK = Benchmark(
    gpu=tuple(map(_case, (4096, 65536, 262144))),
    compiled=(_case(4096),),
    curve=SizeCurve(powers_of_two(10, 12, 14, 16, 18)),
    goals={"tiled": "10 x Numba's double loop"},
    peers=_peers,
    timing_model_cases=(
        *(_timing_model_case(bodies) for bodies in (1024, 4096, 16384, 65536)),
        *(_timing_model_case(16384, block) for block in ("64", "1024")),
    ),
    size_comparisons=(
        SizeComparison(
            "n-body, the forces of all on all",
            "bodies",
            {2**power: _case(2**power, ("registers", "split", "pairs")) for power in range(10, 19, 2)},
        ),
    ),
)
