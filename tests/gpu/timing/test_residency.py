"""Loads and copies by the number of resident blocks, compared with times measured on an H200 on 2026-11-29."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from gpu.engines.modeling_engine import ModelingEngine
from gpu.timing.gpus import find_gpu

BYTES = 1 << 27
TEXT = """
__device__ bool is_odd(float x) { return x == 12345.0f; }
__device__ bool is_odd(float4 x) { return x.x + x.y + x.z + x.w == 12345.0f; }
template <class T, int COUNT, bool COPIES> __device__ void load(const T *in, T *out) {
    unsigned first = blockIdx.x * blockDim.x * COUNT + threadIdx.x;
    T loaded[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) loaded[k] = in[first + k * blockDim.x];
    bool any = false;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) any |= is_odd(loaded[k]);
    if (any) out[0] = loaded[0];
    if (COPIES) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) out[first + k * blockDim.x] = loaded[k];
    }
}
extern "C" __global__ void float_1_read(const float *in, float *out) { load<float, 1, false>(in, out); }
extern "C" __global__ void float_1_copy(const float *in, float *out) { load<float, 1, true>(in, out); }
extern "C" __global__ void float_4_read(const float *in, float *out) { load<float, 4, false>(in, out); }
extern "C" __global__ void float_4_copy(const float *in, float *out) { load<float, 4, true>(in, out); }
extern "C" __global__ void float4_1_read(const float4 *in, float4 *out) { load<float4, 1, false>(in, out); }
extern "C" __global__ void float4_1_copy(const float4 *in, float4 *out) { load<float4, 1, true>(in, out); }
"""


@pytest.mark.parametrize(
    ("kernel", "threads", "resident", "measured_us"),
    [
        ("float_1_read", 256, 1, 576.3), ("float_1_read", 256, 2, 292.2), ("float_1_read", 256, 4, 149.9),
        ("float_1_read", 256, 8, 83.9), ("float_1_copy", 256, 1, 625.5), ("float_1_copy", 256, 2, 329.8),
        ("float_1_copy", 256, 4, 184.1), ("float_1_copy", 256, 8, 108.0), ("float_1_read", 1024, 1, 174.6),
        ("float_1_read", 1024, 2, 94.4), ("float_1_copy", 1024, 1, 206.9), ("float_1_copy", 1024, 2, 119.1),
        ("float4_1_read", 256, 1, 160.5), ("float4_1_read", 256, 2, 85.4), ("float4_1_read", 256, 4, 47.5),
        ("float4_1_read", 256, 8, 32.8), ("float4_1_copy", 256, 1, 194.7), ("float4_1_copy", 256, 2, 113.0),
        ("float4_1_copy", 256, 4, 74.1), ("float4_1_copy", 256, 8, 65.6), ("float_4_read", 256, 1, 165.2),
        ("float_4_read", 256, 2, 87.6), ("float_4_read", 256, 4, 48.1), ("float_4_copy", 256, 1, 199.7),
        ("float_4_copy", 256, 2, 114.9), ("float_4_copy", 256, 4, 74.6), ("float_4_read", 1024, 1, 61.4),
        ("float_4_read", 1024, 2, 38.6), ("float_4_copy", 1024, 2, 68.5),
    ],
)  # fmt: skip
def test_loads_take_their_measured_time_by_the_blocks_that_are_resident(kernel, threads, resident, measured_us) -> None:
    """Shared memory limits the resident blocks. L2 held none of the 134 MB, and nothing to be written."""
    type, count, _ = kernel.split("_")
    per_thread = int(count) * (16 if type == "float4" else 4)
    with closing(ModelingEngine(find_gpu("h200"), nvcc=False)) as engine:
        engine.sources["load.cu"] = TEXT
        buffers = [engine.upload(np.zeros(BYTES // 4, np.float32)) for _ in range(2)]
        grid = (BYTES // per_thread // threads, 1, 1)
        shared_bytes = 227 * 1024 // resident - 1100
        engine.launch(
            engine.build("load.cu").kernel(kernel), grid, (threads, 1, 1), *buffers, shared_bytes=shared_bytes
        )
        (modeled,) = engine.launches
    assert modeled.estimate is not None
    assert modeled.estimate.occupancy.blocks == resident
    assert modeled.time_us == pytest.approx(measured_us, rel=0.13)
