"""Benchmark of the simulator on kernels outside any pattern: parsing, lowering and running them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpu.bench.measurement import Measurement
from gpu.simulator.counting.counters import Counters
from gpu.simulator.simulated_module import SimulatedModule

_PRODUCT = """
__global__ void multiply(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
"""

_ARITHMETIC = """
__global__ void work(float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i, y = 1.0f;
    for (int k = 0; k < rounds; ++k) {
        x = x * 0.5f + y;
        y = y + 1.0f;
        x = x - y;
        y = x * y;
    }
    out[i] = x + y;
}
"""

_REDUCTION = """
__global__ void reduce_{number}(const float *in, float *out, int n) {{
    __shared__ float s[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {{
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }}
    if (t == 0) out[blockIdx.x] = s[0];
}}
"""


def run(seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure, and yield the rows."""
    yield _measure_product(seed, repetitions)
    yield _measure_arithmetic(repetitions)
    yield _measure_parsing(repetitions)


def _measure_product(seed: int, repetitions: int) -> Measurement:
    n = 512
    rng = np.random.default_rng(seed)
    left, right = (rng.random((n, n), np.float32) for _ in range(2))
    product = np.zeros((n, n), np.float32)
    kernel = _compile_module(_PRODUCT).kernel("multiply")
    memories = [array.reshape(-1).view(np.uint8) for array in (left, right, product)]
    times = time_ms(lambda: kernel.launch((32, 32, 1), (16, 16, 1), [*memories, np.int32(n)]), min(repetitions, 5))
    exact = left.astype(np.float64) @ right.astype(np.float64)
    is_accurate = np.abs(product - exact).max() <= n * 2.0**-23 * n
    remark = "verified" if is_accurate else "WRONG"
    return Measurement(
        "matrix product 512 x 512 x 512 float32", "Naive", True, times, 2 * n**3 / 1e9, "GFLOP/s", remark
    )


def _measure_arithmetic(repetitions: int) -> Measurement:
    blocks, threads, rounds = 4096, 256, 50
    kernel = _compile_module(_ARITHMETIC).kernel("work")
    out = np.zeros(blocks * threads, np.float32).view(np.uint8)
    counters = Counters()
    kernel.launch((1, 1, 1), (threads, 1, 1), [out, np.int32(rounds)], observers=[counters])
    statements = blocks * counters.total()["lane_statements"]
    times = time_ms(lambda: kernel.launch((blocks, 1, 1), (threads, 1, 1), [out, np.int32(rounds)]), repetitions)
    return Measurement("arithmetic in 2^20 threads", "Loop", True, times, statements / 1e9, "G lane-statements/s")


def _measure_parsing(repetitions: int) -> Measurement:
    text = "".join(_REDUCTION.format(number=number) for number in range(23))
    lines = text.count("\n")

    def parse() -> None:
        module = _compile_module(text)
        for name in module.kernels:
            module.kernel(name)

    work = f"parsing and lowering {lines} lines, 23 kernels"
    return Measurement(work, "Front end", True, time_ms(parse, repetitions), lines / 1e3, "k lines/s")


def _compile_module(text: str) -> SimulatedModule:
    return SimulatedModule(text, Path("benchmark.cu"), {})


def time_ms(action: Callable[[], Any], repetitions: int) -> tuple[float, ...]:
    """Return the milliseconds of each repetition, after one warm-up."""
    action()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        times.append(1e3 * (time.perf_counter() - start))
    return tuple(times)
