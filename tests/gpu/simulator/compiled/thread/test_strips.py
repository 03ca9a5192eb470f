"""Numbers of threads whose bits masks take apart: strips of threads side by side against each thread by itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpu.simulator.compiled.kernel import compile_kernel
from gpu.simulator.simulated_module import SimulatedModule

TEXT = """
__device__ int lower(int t, int stride) { return 2 * (t & ~(stride - 1)) | (t & (stride - 1)); }
__device__ void exchange(int *x, int i, int j) {
    int a = x[i], b = x[j];
    x[i] = min(a, b);
    x[j] = max(a, b);
}
__global__ void step(int *x, int n, int stride, int mask) {
    int i = lower(blockIdx.x * blockDim.x + threadIdx.x, stride);
    int j = i ^ mask;
    if (i < n && j < n) exchange(x, i, j);
}
__global__ void several(int *x, int n, int stride, int mask) {
    __shared__ int s[256];
    int t = threadIdx.x;
    unsigned u = blockIdx.x * 256u + t;
    for (int k = t; k < 256; k += blockDim.x) s[k] = x[blockIdx.x * 256 + k];
    for (int m = mask; m > 0; m >>= 1) {
        __syncthreads();
        int partner = t ^ m;
        int sum = s[partner & 255] + (t & m) - (~t & stride) + (int)((u | (unsigned)m) & 127u);
        long long far = ((long long)t << 3 ^ m) + ((t & -m) * stride);
        int small = ((unsigned char)t ^ m) + ((signed char)(t + 64) ^ stride) * 3;
        __syncthreads();
        if (t < n) s[t] = sum + (int)far + small + ((t - 300) & ~m) + ((t + 7) ^ m) + ((t + 64 ^ m) < n ? 1 : m);
        else if ((t & m) == 0) s[t] += t ^ m;
    }
    __syncthreads();
    if (u < 512) x[u] = s[t ^ (mask & 255)];
}
__global__ void changing(int *x, int n, int stride, int mask) {
    int t = threadIdx.x, m = mask;
    int at = t ^ m;
    __shared__ int s[256];
    for (int k = t; k < 256; k += blockDim.x) s[k] = x[k];
    __syncthreads();
    if (t >= n) return;
    for (int k = 0; k < 3; ++k) {
        m = mask >> k;
        __syncthreads();
        if ((at & 255) < n) x[t] += s[at & 255] * (k + 1);
        for (int r = t & 3; r < 5; ++r) {
            int there = r ^ m;
            x[t] += there;
        }
    }
    x[256 + t] = at & m;
}
"""
MASKS = (0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 96, 255, 511, -1, -32, -8)


@cache
def module() -> SimulatedModule:
    return SimulatedModule(TEXT, Path("kernel.cu"), {})


@pytest.mark.parametrize("name", ["step", "several", "changing"])
@pytest.mark.parametrize("block", [256, 72, 33], ids=str)
def test_masks_of_all_kinds_give_what_each_thread_finds(name: str, block: int) -> None:
    rng, kernels = np.random.default_rng(block), (module().kernel(name), module().compiled_kernel(name))
    grid = 1 if name == "changing" or block != 256 else 2
    for number, mask in enumerate(MASKS):
        stride, n = 1 << number % 8, (512, 200, 77)[number % 3]
        if name == "step":
            mask = stride if number % 2 else 2 * stride - 1  # pairs that no two threads share
        values = rng.integers(0, 1000, 1024, dtype=np.int32)
        found = []
        for kernel in kernels:
            given = values.copy()
            numbers = np.int32(n), np.int32(stride), np.int32(mask)
            kernel.launch((grid, 1, 1), (block, 1, 1), [given.view(np.uint8), *numbers])
            found.append(given)
        np.testing.assert_array_equal(found[1], found[0], err_msg=f"mask {mask}, stride {stride}, n {n}")


def test_strips_are_written_where_masks_are_agreed_on_and_nowhere_else() -> None:
    strips = {
        (name, block): "strips." in compile_kernel(module().kernel(name).function, (block, 1, 1), frozenset()).text
        for name in ("step", "several")
        for block in (256, 33)
    }
    assert strips == {("step", 256): True, ("step", 33): False, ("several", 256): True, ("several", 33): False}
