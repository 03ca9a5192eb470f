"""Kernels that are made in parts because they are long: here at any length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.simulator.compiled.kernel import compile_kernel
from gpu.simulator.simulated_module import SimulatedModule

_TEXT = """
__device__ int folded(int *s, int t, int width) {
    for (int by = width / 2; by > 0; by /= 2) {
        __syncthreads();
        if (t < by) s[t] += s[t + by];
        __syncthreads();
    }
    return t < 40 ? s[0] : -t;
}
__global__ void k(int *data, int n) {
    __shared__ int s[64];
    int t = threadIdx.x, own = data[blockIdx.x * 64 + t];
    int kept, rounds = 0;
    for (int round = 0; round < n; ++round) {
        if (round == 0) {
            kept = n + 40;
            __syncthreads();
        }
        s[t] = own + round;
        __syncthreads();
        own += s[(t + kept) % 64];
        rounds += kept;
        own ^= __shfl_xor_sync(0xffffffff, own, 1 << round % 5);
        for (int k = t % 8; k < 20; k += 3) {
            if (s[k] % 5 == 0) continue;
            if (s[k] > 45) break;
            own += s[k];
        }
        __syncthreads();
    }
    __syncthreads();
    s[t] = own;
    __syncthreads();
    int sum = folded(s, t, 64);
    data[blockIdx.x * 64 + t] = sum + own + rounds;
}
"""


@pytest.mark.parametrize("lines", [4, 120])
def test_a_kernel_in_parts_gives_what_lockstep_gives(
    lines: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    monkeypatch.setattr("gpu.simulator.compiled.llvm.assembly.MIN_LINES", lines)
    module = SimulatedModule(_TEXT, Path("k.cu"), {})
    assert compile_kernel(module.kernel("k").function, (64, 1, 1), frozenset()).text.count("define internal") > 0
    results = []
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        data = np.random.default_rng(3).integers(0, 50, 128, np.int32)
        kernel.launch((2, 1, 1), (64, 1, 1), [data.view(np.uint8), np.int32(6)])
        results.append(data.tolist())
    assert results[1] == results[0]


_BY_WARPS = """
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(int *data, int n) {
    __shared__ int s[96];
    __shared__ Barrier all;
    int t = threadIdx.x, own = data[blockIdx.x * 96 + t];
    if (t == 0) init(&all, blockDim.x);
    __syncthreads();
    for (int round = 0; round < n; ++round) {
        s[t] = own * 3 + round;
        Barrier::arrival_token token = all.arrive();
        int kept = own ^ round;
        all.wait(token);
        own = s[(t + 35) % 96] + kept;
        own += __shfl_xor_sync(0xffffffff, own, 1 << round % 5);
        all.arrive_and_wait();
    }
    data[blockIdx.x * 96 + t] = own;
}
"""


def test_warps_that_go_their_own_ways_are_compiled_with_few_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    monkeypatch.setattr("gpu.simulator.compiled.native_code.MAX_OPTIMIZED_LENGTH", 0)
    module = SimulatedModule(_BY_WARPS, Path("k.cu"), {})
    text = compile_kernel(module.kernel("k").function, (96, 1, 1), frozenset()).text
    assert "presplitcoroutine" in text
    results = []
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        data = np.random.default_rng(5).integers(0, 50, 192, np.int32)
        kernel.launch((2, 1, 1), (96, 1, 1), [data.view(np.uint8), np.int32(6)])
        results.append(data.tolist())
    assert results[1] == results[0]
