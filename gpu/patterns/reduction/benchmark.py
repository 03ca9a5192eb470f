"""Benchmarks of reduction: cases and peers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.base.child_processes import last_line
from gpu.declaration.benchmark import (
    Benchmark,
    Case,
    CudaProgram,
    Peer,
    SelfTimedPeer,
    SizeComparison,
    SizeCurve,
    float_array_peers,
    powers_of_two,
)
from gpu.declaration.pattern import Inputs, Params

# A separate process, because Numba reads NUMBA_ENABLE_CUDASIM when it is imported.
_NUMBA = """
import os, sys, time
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np
from numba import cuda, float32

@cuda.jit
def reduce(data, partial):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    value = 0.0
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    while i < data.size:
        value += data[i]
        i += cuda.gridDim.x * cuda.blockDim.x
    s[t] = value
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = s[0]

data = np.random.default_rng(int(sys.argv[1])).random(int(sys.argv[2])).astype(np.float32)
partial = np.zeros(4, np.float32)
start = time.perf_counter()
reduce[4, 256](data, partial)
print(1e3 * (time.perf_counter() - start), np.isclose(partial.sum(), data.sum(), rtol=1e-4))
"""


def _measure_numba_simulator(count: int, seed: int) -> tuple[float, str]:
    """Return the milliseconds of one run in Numba's simulator, which runs each CUDA thread as a Python thread."""
    command = [sys.executable, "-c", _NUMBA, str(seed), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(last_line(process.stderr, "no reason given"))
    milliseconds, correctness = process.stdout.split()
    return float(milliseconds), f"once; {'verified' if correctness == 'True' else 'WRONG'}; wanted: a 10,000th of ours"


def _case(power: int, **options: Any) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum"}
    return Case(f"reduction (sum), 2^{power} float32", params, **options)


def _gpu_case(power: int, variants: tuple[str, ...] = ()) -> Case:
    cub = CudaProgram("CUB", "cub.cu", ("reduce", 2**power), prints_version=True)
    calls = float_array_peers(2**power, lambda library, values: library.sum(values))
    return _case(power, variants=variants, libraries=calls, programs=(cub,))


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer | SelfTimedPeer]:
    values = inputs["values"].astype(np.float32)
    yield Peer("NumPy sum", values.sum)
    title = "Numba's CUDA simulator (2^16 elements)"
    yield SelfTimedPeer(title, partial(_measure_numba_simulator, 2**16), "numba", 2**16 / values.size)


def _timing_model_case(power: int, block: int = 256) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum", "block": str(block)}
    return Case(f"reduction (sum), 2^{power} float32, blocks of {block}", params)


BENCHMARK = Benchmark(
    gpu=(_gpu_case(24), _gpu_case(28)),
    compiled=(_case(24),),
    lockstep=(_case(20),),
    curve=SizeCurve(powers_of_two(16, 18, 20, 22, 24, 26, 28)),
    goals={"grid-stride": "0.5 x np.sum"},
    peers=_peers,
    timing_model_cases=(
        *map(_timing_model_case, (16, 20, 24, 27)),
        *(_timing_model_case(22, block) for block in (64, 512, 1024)),
    ),
    size_comparisons=(
        SizeComparison(
            "reduction (sum) of float32",
            "elements",
            {2**power: _gpu_case(power, ("last-block", "peak")) for power in range(10, 31, 2)},
        ),
    ),
)
