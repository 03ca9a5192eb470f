"""What holds a sparse product back: sectors here and there, atomics of a warp on one word, one long row."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.engines.modeling_engine import ModelingEngine
from gpu.timing.gpus import find_gpu

TEXT = """
extern "C" __global__ void gather(const int *places, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += x[places[k * 262144 + i]];
    y[i] = sum;
}
extern "C" __global__ void add(const int *rows, float *sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[rows[i]], 1.0f);
}
extern "C" __global__ void rows(const int *offsets, const float *entries, float *y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += entries[k];
    y[row] = sum;
}
"""
H200 = find_gpu("h200")


@pytest.fixture(scope="module")
def engine():
    engine = ModelingEngine(H200, nvcc=False)
    engine.sources["sparse.cu"] = TEXT
    yield engine
    engine.close()


def model_kernel(engine, kernel, threads, *arrays):
    buffers = [engine.upload(each) for each in arrays]
    engine.launch(engine.build("sparse.cu").kernel(kernel), (threads // 256, 1, 1), (256, 1, 1), *buffers)
    engine.free(*buffers)
    return engine.launches[-1].estimate


def test_sectors_here_and_there_come_slower_out_of_the_last_cache(engine) -> None:
    places = np.random.default_rng(1).integers(0, 1 << 21, 1 << 21).astype(np.int32)
    found = model_kernel(
        engine, "gather", 1 << 18, places, np.zeros(1 << 21, np.float32), np.zeros(1 << 18, np.float32)
    )
    assert found.limiting_resource == "last cache"
    alone = (1 << 21) * 32 / H200.last_cache_random_gb_s / 1e3  # almost none of 8 MB is in a first cache
    beside = (1 << 21) * 4 / H200.last_cache_gb_s / 1e3
    assert found.breakdown["last cache"] == pytest.approx(alone + beside, rel=0.05)


@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_lanes_that_add_to_one_word_are_added_one_by_one(engine, lanes) -> None:
    threads = 1 << 16
    rows = np.repeat(np.arange(threads // lanes, dtype=np.int32) * 32, lanes)  # a line for each word
    found = model_kernel(engine, "add", threads, rows, np.zeros(rows[-1] + 1, np.float32))
    assert found.breakdown["atomics"] == pytest.approx(threads * H200.atomic_lane_ns / 1e3, rel=0.01)


def test_one_long_row_among_many_makes_the_launch_as_long(engine) -> None:
    n = 1 << 16
    even = np.full(n, 8)
    uneven = even.copy()
    uneven[40000] = 20000
    took = []
    for lengths in (even, uneven):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        found = model_kernel(engine, "rows", n, offsets, np.zeros(offsets[-1], np.float32), np.zeros(n, np.float32))
        took.append(found.time_us)
    # Its thread adds up one after the other: four cycles a sum at the least, and loads besides.
    assert took[1] - took[0] > 20000 * H200.arithmetic_cycles / H200.clock_ghz / 1e3
