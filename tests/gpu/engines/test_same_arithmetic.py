"""What C leaves open and a GPU decides: the same expectations, read off a GPU, for both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.engines.base import Engine

NAN, INF = float("nan"), float("inf")
FLOATS = [NAN, INF, -INF, 1e30, -1e30, -1.5, 300.7, 3e9]
INT64_MIN = -(2**63)

CONVERSIONS = {
    ("float", "int"): [0, 2147483647, -2147483648, 2147483647, -2147483648, -1, 300, 2147483647],
    ("float", "unsigned int"): [0, 4294967295, 0, 4294967295, 0, 0, 300, 3000000000],
    ("float", "long long"): [INT64_MIN, 2**63 - 1, INT64_MIN, 2**63 - 1, INT64_MIN, -1, 300, 3000000000],
    ("float", "unsigned long long"): [2**63, 2**64 - 1, 0, 2**64 - 1, 0, 0, 300, 3000000000],
    ("double", "int"): [-2147483648, 2147483647, -2147483648, 2147483647, -2147483648, -1, 300, 2147483647],
    ("double", "unsigned int"): [2**31, 4294967295, 0, 4294967295, 0, 0, 300, 3000000000],
    ("double", "long long"): [INT64_MIN, 2**63 - 1, INT64_MIN, 2**63 - 1, INT64_MIN, -1, 300, 3000000000],
    ("double", "unsigned long long"): [2**63, 2**64 - 1, 0, 2**64 - 1, 0, 0, 300, 3000000000],
    ("float", "signed char"): [0, -1, 0, -1, 0, -1, 44, -1],
    ("float", "short"): [0, -1, 0, -1, 0, -1, 300, -1],
    ("float", "unsigned char"): [0, 255, 0, 255, 0, 0, 44, 0],
}
DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "signed char": np.int8,
    "short": np.int16,
    "unsigned char": np.uint8,
}


def run(engine: Engine, source: str, arrays: list[np.ndarray[Any, Any]], threads: int) -> list[np.ndarray[Any, Any]]:
    """Run the kernel `f` of one block and return all arrays."""
    engine.sources = {"same.cu": f'extern "C" {source}'}
    try:
        buffers = [engine.upload(array) for array in arrays]
        engine.launch(engine.build("same.cu").kernel("f"), (1, 1, 1), (threads, 1, 1), *buffers)
        return [engine.download(buffer) for buffer in buffers]
    finally:
        engine.sources = {}


@pytest.mark.parametrize(("source", "target"), CONVERSIONS, ids=map(" to ".join, CONVERSIONS))
def test_floats_that_fit_no_integer(engine: Engine, source: str, target: str) -> None:
    kernel = f"__global__ void f(const {source} *a, {target} *b) {{ b[threadIdx.x] = ({target})a[threadIdx.x]; }}"
    given, out = np.array(FLOATS, DTYPES[source]), np.zeros(len(FLOATS), DTYPES[target])
    assert run(engine, kernel, [given, out], len(FLOATS))[1].tolist() == CONVERSIONS[source, target]


def test_division_by_zero_and_by_minus_one(engine: Engine) -> None:
    kernel = """__global__ void f(const int *a, const int *b, int *q, int *r, unsigned int *uq, unsigned int *ur) {
        int i = threadIdx.x;
        q[i] = a[i] / b[i];
        r[i] = a[i] % b[i];
        uq[i] = (unsigned int)a[i] / (unsigned int)b[i];
        ur[i] = (unsigned int)a[i] % (unsigned int)b[i];
    }"""
    left = np.array([5, -5, 0, 7, -2147483648, 9, -9, -7], np.int32)
    right = np.array([0, 0, 0, 2, -1, -4, 4, -2], np.int32)
    made = run(engine, kernel, [left, right, *(np.zeros(8, kind) for kind in ("i4", "i4", "u4", "u4"))], 8)
    assert made[2].tolist() == [-1, -1, -1, 3, -2147483648, -2, -2, 3]
    assert made[3].tolist() == [-1, -1, -1, 1, 0, 1, -1, -1]
    assert made[4].tolist() == [2**32 - 1] * 3 + [3, 0, 0, 1073741821, 0]
    assert made[5].tolist() == [2**32 - 1] * 3 + [1, 2**31, 9, 3, 2**32 - 7]


def test_shifts_past_the_width(engine: Engine) -> None:
    kernel = """__global__ void f(const int *a, const int *by, int *left, int *right, unsigned int *logical) {
        int i = threadIdx.x;
        left[i] = a[i] << by[i];
        right[i] = a[i] >> by[i];
        logical[i] = (unsigned int)a[i] >> by[i];
    }"""
    given, by = np.array([-3, -3, 5, 5], np.int32), np.array([31, 40, 32, 33], np.int32)
    made = run(engine, kernel, [given, by, np.zeros(4, "i4"), np.zeros(4, "i4"), np.zeros(4, "u4")], 4)
    assert made[2].tolist() == [-2147483648, 0, 0, 0]
    assert made[3].tolist() == [-1, -1, 0, 0]
    assert made[4].tolist() == [1, 0, 0, 0]


def test_what_lanes_exchange(engine: Engine) -> None:
    kernel = """__global__ void f(const int *a, int *down, int *section, unsigned int *votes, int *sums) {
        int i = threadIdx.x;
        down[i] = __shfl_down_sync(0xffffffffu, a[i], 5);
        section[i] = __shfl_xor_sync(0xffffffffu, a[i], 3, 8);
        votes[i] = __ballot_sync(0xffffffffu, a[i] % 3 == 0) + __match_any_sync(0xffffffffu, a[i] & 3);
        sums[i] = __reduce_add_sync(0xffffffffu, a[i]) + __popc(a[i]) + __clz(a[i]) + __ffs(a[i]);
    }"""
    given = np.arange(64, dtype=np.int32) * 7 - 100
    made = run(engine, kernel, [given, *(np.zeros(64, kind) for kind in ("i4", "i4", "u4", "i4"))], 64)
    lane = np.arange(64)
    warp = lane // 32 * 32
    np.testing.assert_array_equal(made[1], given[np.where(lane % 32 + 5 < 32, lane + 5, lane)])
    np.testing.assert_array_equal(made[2], given[lane ^ 3])
    for i in lane:
        mates = given[warp[i] : warp[i] + 32].tolist()
        ballot = sum(1 << k for k, value in enumerate(mates) if value % 3 == 0)
        match = sum(1 << k for k, value in enumerate(mates) if value & 3 == int(given[i]) & 3)
        assert made[3][i] == (ballot + match) % 2**32
        bits = int(given[i]) % 2**32
        expected = sum(mates) + bits.bit_count() + 32 - bits.bit_length() + (bits & -bits).bit_length()
        assert made[4][i] == expected
