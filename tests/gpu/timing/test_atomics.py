"""Atomic sums in global memory, compared with rates measured on an H200 on 2026-11-29."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from gpu.engines.modeling_engine import ModelingEngine
from gpu.timing.gpus import find_gpu

LANES = 1 << 22
TEXT = """
__device__ unsigned hash(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}
template <class T, int PLACES> __device__ void add(T *sums, unsigned mask) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned place = PLACES == 0 ? hash(i) : PLACES == 1 ? hash(i / 32) * 32 + i % 32 : hash(i / 32);
    atomicAdd(&sums[place & mask], (T)1);
}
extern "C" __global__ void anywhere(unsigned *sums, unsigned mask) { add<unsigned, 0>(sums, mask); }
extern "C" __global__ void neighbors(unsigned *sums, unsigned mask) { add<unsigned, 1>(sums, mask); }
extern "C" __global__ void one_word(unsigned *sums, unsigned mask) { add<unsigned, 2>(sums, mask); }
extern "C" __global__ void anywhere_float(float *sums, unsigned mask) { add<float, 0>(sums, mask); }
extern "C" __global__ void neighbors_double(double *sums, unsigned mask) { add<double, 1>(sums, mask); }
extern "C" __global__ void neighbors_long(unsigned long long *sums, unsigned mask) {
    add<unsigned long long, 1>(sums, mask);
}
extern "C" __global__ void one_word_float(float *sums, unsigned mask) { add<float, 2>(sums, mask); }
"""


@pytest.mark.parametrize(
    ("kernel", "words", "measured_ps"),
    [
        ("anywhere", 0, 732.3), ("anywhere", 2, 252.2), ("anywhere", 4, 184.7), ("anywhere", 6, 289.1),
        ("anywhere", 8, 257.3), ("anywhere", 10, 84.6), ("anywhere", 12, 28.5), ("anywhere", 14, 14.6),
        ("anywhere", 16, 10.7), ("anywhere", 20, 9.7), ("neighbors", 6, 73.6), ("neighbors", 8, 37.0),
        ("neighbors", 10, 11.7), ("neighbors", 18, 1.23), ("one_word", 2, 732.1), ("one_word", 8, 370.7),
        ("one_word", 10, 93.4), ("one_word", 12, 32.1), ("one_word", 20, 10.3), ("anywhere_float", 0, 1756.0),
        ("anywhere_float", 2, 604.0), ("anywhere_float", 4, 255.9), ("anywhere_float", 6, 289.5),
        ("anywhere_float", 8, 257.2), ("anywhere_float", 20, 9.6), ("one_word_float", 2, 1757.0),
        ("one_word_float", 8, 374.5), ("one_word_float", 10, 94.5), ("one_word_float", 20, 10.3),
        ("neighbors_double", 8, 73.4), ("neighbors_double", 20, 3.4),
        ("neighbors_long", 20, 2.2),
    ],
)  # fmt: skip
def test_atomic_sums_take_their_measured_time_by_the_words_that_they_share(kernel, words, measured_ps) -> None:
    """Picoseconds per lane for 2 to the power of `words` words, all of which L2 holds."""
    with closing(ModelingEngine(find_gpu("h200"), nvcc=False)) as engine:
        engine.sources["add.cu"] = TEXT
        dtypes = {"float": np.float32, "double": np.float64, "long": np.uint64}
        dtype = dtypes.get(kernel.rpartition("_")[2], np.uint32)
        sums = engine.upload(np.zeros(1 << words, dtype))
        mask = np.uint32((1 << words) - 1)
        engine.launch(engine.build("add.cu").kernel(kernel), (LANES // 256, 1, 1), (256, 1, 1), sums, mask)
        (modeled,) = engine.launches
    assert modeled.estimate is not None
    assert modeled.estimate.breakdown["atomics"] * 1e6 / LANES == pytest.approx(measured_ps, rel=0.35)
