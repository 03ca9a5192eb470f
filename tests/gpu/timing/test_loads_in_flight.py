"""Loads under way at once, on kernels whose loads are counted by eye."""

from __future__ import annotations

import pytest

from tests import needs
from tests.gpu.timing.modeled_kernels import model_kernel

pytestmark = needs.nvcc

TEXT = """
extern "C" __global__ void one(const float *x, float *y, int n) {
    float s = 0;
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) s += x[i];
    y[threadIdx.x] = s;
}
extern "C" __global__ void four(const float *x, float *y) {
    float a = x[threadIdx.x], b = x[threadIdx.x + 32], c = x[threadIdx.x + 64], d = x[threadIdx.x + 96];
    y[threadIdx.x] = a * b * c * d;
}
extern "C" __global__ void wide(const float4 *x, float *y) {
    float4 a = x[threadIdx.x];
    y[threadIdx.x] = a.x * a.y * a.z * a.w;
}
extern "C" __global__ void none(float *y) { y[threadIdx.x] = 1.0f; }
"""


@pytest.mark.parametrize(
    ("kernel", "arguments", "together", "size", "rounds"),
    [
        ("one", ["random:1024", "zeros:32", 1024], 1, 4, 32),
        ("four", ["random:128", "zeros:32"], 4, 4, 1),
        ("wide", ["random:128", "zeros:32"], 1, 16, 1),
        ("none", ["zeros:32"], 0, 0, 0),
    ],
)
def test_loads_that_a_warp_has_under_way(tmp_path, kernel, arguments, together, size, rounds) -> None:
    path = tmp_path / "kernels.cu"
    path.write_text(TEXT)
    found = model_kernel(path, TEXT, kernel, 1, 32, arguments, "h200").launches[0].estimate.loads_in_flight
    assert (found.mean_count, found.bytes_per_load, found.waits_per_warp) == pytest.approx(
        (together, size, rounds), abs=0.5
    )
