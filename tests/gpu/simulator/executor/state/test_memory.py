"""Shared, local, constant and device memory, pointers, and blocks and grids of every shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access, Observer
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel
from tests.gpu.simulator.trace_checks import trace_kernel

Array = np.ndarray[Any, Any]

SHAPES = [(1,), (2,), (31,), (32,), (33,), (64,), (97,), (1024,), (5, 3), (32, 4), (3, 5, 7), (1, 1, 33), (8, 8, 8)]


def zeros(*shape: int, dtype: Any = np.int32) -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("block", SHAPES, ids=str)
def test_every_thread_of_every_block_runs_once_with_its_own_indices(block: tuple[int, ...]) -> None:
    source = """
    __global__ void who(int *out, unsigned int *count) {
        unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        unsigned int place = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        unsigned int i = thread + blockDim.x * blockDim.y * blockDim.z * place;
        out[6 * i] = threadIdx.x; out[6 * i + 1] = threadIdx.y; out[6 * i + 2] = threadIdx.z;
        out[6 * i + 3] = blockIdx.x; out[6 * i + 4] = blockIdx.y; out[6 * i + 5] = blockIdx.z;
        atomicAdd(&count[i], 1u);
    }"""
    grid = (3, 2, 4)
    x, y, z = (*block, 1, 1)[:3]
    threads, blocks = x * y * z, math.prod(grid)
    out, count = run_kernel(
        source, "who", zeros(blocks * threads, 6), zeros(blocks * threads, dtype=np.uint32), grid=grid, block=block
    )
    thread, place = np.tile(np.arange(threads), blocks), np.repeat(np.arange(blocks), threads)
    assert (count == 1).all()
    right = [thread % x, thread // x % y, thread // (x * y), place % 3, place // 3 % 2, place // 6]
    np.testing.assert_array_equal(out, np.stack(right, axis=1))


@pytest.mark.parametrize("grid", [1, 2, 7, 40000, (3, 5), (1, 1, 9), (2, 3, 4), (70, 70, 2)], ids=str)
def test_a_grid_of_any_shape_is_run_whole(grid: Any) -> None:
    """Larger ones are cut into several batches."""
    source = """
    __global__ void count(int *out) {
        int place = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        out[place * blockDim.x + threadIdx.x] += place + 1;
    }"""
    blocks = math.prod(grid) if isinstance(grid, tuple) else grid
    [out] = run_kernel(source, "count", zeros(blocks * 3), grid=grid, block=3)
    np.testing.assert_array_equal(out, np.repeat(np.arange(1, blocks + 1), 3))


@pytest.mark.parametrize("block", [(1,), (31,), (33,), (100,), (3, 5, 7)], ids=str)
def test_static_shared_memory_belongs_to_a_block(block: tuple[int, ...]) -> None:
    source = """
    __global__ void reverse(const int *in, int *out) {
        __shared__ int row[128];
        __shared__ int sum;
        int threads = blockDim.x * blockDim.y * blockDim.z;
        int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        if (i == 0) sum = 0;
        row[i] = in[blockIdx.x * threads + i];
        __syncthreads();
        atomicAdd(&sum, row[i]);
        __syncthreads();
        out[blockIdx.x * threads + i] = 1000 * row[threads - 1 - i] + sum;
    }"""
    threads = math.prod(block)
    given = np.random.default_rng(1).integers(0, 9, (6, threads), dtype=np.int32)
    _, out = run_kernel(source, "reverse", given, np.zeros_like(given), grid=6, block=block)
    np.testing.assert_array_equal(out, 1000 * given[:, ::-1] + given.sum(axis=1, keepdims=True))


def test_unsigned_64_bit_indices_of_shared_memory_in_several_blocks() -> None:
    source = """
    __global__ void count(const unsigned long long *keys, int *out) {
        __shared__ int bins[4];
        if (threadIdx.x < 4) bins[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&bins[keys[blockIdx.x * blockDim.x + threadIdx.x] >> 62 & 3], 1);
        __syncthreads();
        if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = bins[threadIdx.x];
    }"""
    keys = np.random.default_rng(1).integers(0, 2**64, (3, 64), np.uint64)
    _, out = run_kernel(source, "count", keys, zeros(3, 4), grid=3, block=64)
    expected = [np.bincount((row >> np.uint64(62)).astype(np.int64), minlength=4) for row in keys]
    np.testing.assert_array_equal(out, expected)


def test_shared_arrays_of_two_and_three_dimensions() -> None:
    source = """
    __global__ void turn(const float *in, float *out, double *deep) {
        __shared__ float tile[8][9];
        __shared__ double cube[2][4][8];
        int x = threadIdx.x, y = threadIdx.y;
        tile[y][x] = in[8 * y + x];
        cube[y / 4][y % 4][x] = 100 * y + x;
        __syncthreads();
        out[8 * y + x] = tile[x][y];
        double (*plane)[8] = cube[1];
        deep[8 * y + x] = cube[x / 4][x % 4][y] + (y == 0 ? plane[0][x] : 0.0) + cube[0][0][8 + x];
    }"""
    given = np.arange(64, dtype=np.float32).reshape(8, 8)
    _, out, deep = run_kernel(source, "turn", given, zeros(8, 8, dtype="f4"), zeros(8, 8, dtype="f8"), block=(8, 8))
    np.testing.assert_array_equal(out, given.T)
    x, y = np.arange(8), np.arange(8)[:, None]
    np.testing.assert_array_equal(deep, 100 * x + y + np.where(y == 0, 400 + x, 0) + 100 + x)


def test_extern_shared_memory_is_as_large_as_the_launch_says() -> None:
    source = """
    __global__ void neighbors(const int *in, int *out) {
        extern __shared__ int window[];
        int i = threadIdx.x, n = blockDim.x;
        window[i] = in[blockIdx.x * n + i];
        if (i == 0) window[n] = window[0];
        __syncthreads();
        out[blockIdx.x * n + i] = window[i + 1] - window[i];
    }"""
    given = np.random.default_rng(2).integers(0, 100, (5, 33), dtype=np.int32)
    arguments = source, "neighbors", given, np.zeros_like(given)
    _, out = run_kernel(*arguments, grid=5, block=33, shared_bytes=34 * 4)
    np.testing.assert_array_equal(out, np.roll(given, -1, axis=1) - given)
    with pytest.raises(LaunchError, match=r"__shared__ .* element 33 of window, which has 33"):
        run_kernel(*arguments, grid=5, block=33, shared_bytes=33 * 4)


def test_extern_shared_memory_under_two_types_and_names_is_one_memory() -> None:
    source = """
    __global__ void split(float *out, unsigned int *bits) {
        extern __shared__ float store[];
        float *reals = store;
        unsigned int *wholes = (unsigned int *)(store + blockDim.x);
        int i = threadIdx.x;
        reals[i] = i + 0.5f;
        wholes[i] = 0x3f800000u;
        __syncthreads();
        out[i] = store[blockDim.x + i] + store[i];
        bits[i] = *reinterpret_cast<unsigned int *>(&reals[0]) + wholes[i] - 0x3f800000u;
    }"""
    out, bits = run_kernel(source, "split", zeros(16, dtype="f4"), zeros(16, dtype="u4"), block=16, shared_bytes=16 * 8)
    np.testing.assert_array_equal(out, np.arange(16) + 1.5)
    assert (bits == np.float32(0.5).view(np.uint32)).all()


def test_local_arrays_and_their_initializers() -> None:
    source = """
    __global__ void arrays(int *out) {
        int i = threadIdx.x;
        int full[4] = {1, i, 3, i * i}, part[5] = {7, 8}, none[3] = {};
        int table[2][3] = {{1, 2, i}, {4}}, deep[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, i}}};
        float mixed[3] = {1, 2.75f, (float)i};
        int unknown[8];
        for (int k = 0; k < 8; k++) unknown[(k + i) % 8] = k;
        none[i % 3] += 10 * i;
        part[i % 5]++;
        const int *row = table[1];
        int *one = &full[i % 4];
        *one += 100;
        int *result = out + 8 * i;
        result[0] = full[0] + full[1] + full[2] + full[3];
        result[1] = part[0] + 10 * part[1] + 100 * part[2] + 1000 * part[3] + 10000 * part[4];
        result[2] = none[0] + none[1] + none[2];
        result[3] = table[0][2] + row[0] + 10 * row[1] + 10 * table[1][2];
        result[4] = deep[1][1][1] * 100 + deep[i % 2][1][0];
        result[5] = (int)(mixed[0] + mixed[1] * 4 + mixed[2]);
        result[6] = unknown[i % 8] + unknown[(i + 7) % 8];
        result[7] = sizeof(full) + sizeof(table[0]) / sizeof(int);
    }"""
    [out] = run_kernel(source, "arrays", zeros(32, 8))
    for i, found in enumerate(out.tolist()):
        part = [7, 8, 0, 0, 0]
        part[i % 5] += 1
        packed = sum(value * 10**place for place, value in enumerate(part))
        right = [4 + i + i * i + 100, packed, 10 * i, i + 4, 100 * i + (7 if i % 2 else 3), 12 + i, 7, 19]
        assert found == right, f"lane {i}"


def test_constants_and_device_variables() -> None:
    module = build("""
    __constant__ float weights[4] = {1, 2, 3};
    __constant__ int offset;
    __constant__ int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
    __device__ int counter = 5;
    __device__ double history[3];
    const int LENGTH = 3;
    constexpr float FACTOR = 2.0f;
    __global__ void use(float *out) {
        int i = threadIdx.x;
        out[i] = weights[i % 4] * FACTOR + offset + table[i % 2][i % LENGTH];
        atomicAdd(&counter, 1);
        if (i == 0) history[1] += 0.5;
    }
    __global__ void look(float *out) { out[0] = counter; out[1] = history[1]; out[2] = history[0]; }
    """)
    module.set_constant("offset", np.array([100], np.int32))
    [out] = launch(module, "use", zeros(8, dtype="f4"), block=8)
    i = np.arange(8)
    table = np.array([[1, 2, 3], [4, 5, 6]])[i % 2, i % 3]
    np.testing.assert_array_equal(out, np.array([1, 2, 3, 0])[i % 4] * 2 + 100 + table)
    module.set_constant("weights", np.array([9], np.float32))
    [out] = launch(module, "use", zeros(8, dtype="f4"), block=8)
    assert out[[0, 4]].tolist() == [18 + 100 + 1, 18 + 100 + 2]
    [seen] = launch(module, "look", zeros(3, dtype="f4"), block=1)
    assert seen.tolist() == [5 + 16, 1.0, 0.0]


def test_pointers_move_and_change_places() -> None:
    source = """
    __global__ void walk(int *a, int *b, int n, int *out) {
        int i = threadIdx.x;
        int *left = a, *right = b;
        for (int k = 0; k < 3; k++) {
            right[i] = left[i] * 10 + k;
            int *swap = left; left = right; right = swap;
        }
        __syncthreads();
        const int *p = a + i;
        p += 2; p--; --p; ++p;
        unsigned int one = 1;
        int *result = &out[4 * i];
        *result++ = left[i];
        *result++ = *p - p[-1] + *(1 + p);
        *result = (int)(p - a) * 100 + (int)(&b[n] - (b + i));
        result[1] = *(p - one) + *&a[i];
    }"""
    first = np.arange(1, 35, dtype=np.int32)
    a, b, out = run_kernel(source, "walk", first, zeros(34), np.int32(34), zeros(32, 4))
    np.testing.assert_array_equal(a, [*(first[:32] * 100 + 1), 33, 34])
    np.testing.assert_array_equal(b, [*(first[:32] * 1000 + 12), 0, 0])
    i = np.arange(32)
    columns = b[:32], a[1:33] - a[:32] + a[2:], (i + 1) * 100 + 34 - i, 2 * a[:32]
    np.testing.assert_array_equal(out, np.stack(columns, axis=1))


def test_pointers_compare() -> None:
    source = """
    __device__ int sum(const int *from, const int *to) {
        int total = 0;
        while (from != to) total += *from++;
        return total;
    }
    __global__ void compare(const int *a, int n, int *out) {
        int i = threadIdx.x;
        const int *p = a + i, *end = a + n, *nowhere = nullptr;
        out[4 * i] = sum(a, p);
        out[4 * i + 1] = (p < a + 5) + 2 * (p >= end) + 4 * (p == &a[7]) + 8 * (a + i <= a + 3) + 16 * (p > a);
        out[4 * i + 2] = nowhere == nullptr && p != nullptr && !nowhere && p;
        out[4 * i + 3] = nowhere ? *nowhere : p < end ? *p : -1;
    }"""
    a = np.arange(10, 20, dtype=np.int32)
    _, out = run_kernel(source, "compare", a, np.int32(10), zeros(11, 4), block=11)
    for i, found in enumerate(out.tolist()):
        flags = (i < 5) + 2 * (i >= 10) + 4 * (i == 7) + 8 * (i <= 3) + 16 * (i > 0)
        assert found == [a[:i].sum(), flags, 1, a[i] if i < 10 else -1], f"lane {i}"


def test_a_pointer_of_another_type_sees_the_same_bytes() -> None:
    source = """
    __global__ void bytes(const float *in, unsigned int *bits, unsigned char *low, short *high) {
        int i = threadIdx.x;
        bits[i] = reinterpret_cast<const unsigned int *>(in)[i];
        low[i] = ((const unsigned char *)in)[4 * i + 3];
        high[i] = *((const short *)(in + i) + 1);
    }"""
    given = np.array([1.0, -2.5, 3.14159, 1e-20], np.float32)
    _, bits, low, high = run_kernel(
        source, "bytes", given, zeros(4, dtype="u4"), zeros(4, dtype="u1"), zeros(4, dtype="i2"), block=4
    )
    np.testing.assert_array_equal(bits, given.view(np.uint32))
    np.testing.assert_array_equal(low, given.view(np.uint8)[3::4])
    np.testing.assert_array_equal(high, given.view(np.int16)[1::2])


def test_a_value_read_before_a_write_stays() -> None:
    source = """
    __global__ void swap(int *a) {
        int mine[2] = {1, 2};
        int i = threadIdx.x, other = a[63 - i], first = mine[0];
        a[63 - i] = a[i];
        mine[0] = mine[1]; mine[1] = first;
        a[i] = other * mine[0] / mine[1];
    }"""
    given = np.arange(64, dtype=np.int32)
    [out] = run_kernel(source, "swap", given)
    assert out[:32].tolist() == [2 * (63 - i) for i in range(32)]
    assert out[32:].tolist() == [63 - i for i in range(32, 64)]


def test_a_barrier_within_a_loop_that_all_threads_run_together() -> None:
    source = """
    __global__ void reduce(const int *in, int *out) {
        __shared__ int part[128];
        int i = threadIdx.x;
        part[i] = in[blockIdx.x * blockDim.x + i];
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (i < half) part[i] += part[i + half];
            __syncthreads();
        }
        if (i == 0) out[blockIdx.x] = part[0];
    }"""
    given = np.random.default_rng(3).integers(-50, 50, (9, 128), dtype=np.int32)
    _, out = run_kernel(source, "reduce", given, zeros(9), grid=9, block=128)
    np.testing.assert_array_equal(out, given.sum(axis=1))


def test_threads_that_have_ended_are_not_waited_for() -> None:
    source = """
    __global__ void some(int *out) {
        __shared__ int box[64];
        int i = threadIdx.x;
        if (i >= 40) return;
        box[i] = i;
        __syncthreads();
        out[i] = box[39 - i];
    }"""
    [out] = run_kernel(source, "some", zeros(64), block=64)
    assert out.tolist() == [39 - i for i in range(40)] + [0] * 24


def test_threads_that_have_ended_are_not_waited_for_in_a_function_either() -> None:
    source = """
    __device__ int exchange(int *box, int i, int value) {
        box[i] = value;
        __syncthreads();
        return box[39 - i];
    }
    __global__ void some(int *out) {
        __shared__ int box[64];
        int i = threadIdx.x;
        if (i >= 40) return;
        out[i] = exchange(box, i, i);
    }"""
    [out] = run_kernel(source, "some", zeros(64), block=64)
    assert out.tolist() == [39 - i for i in range(40)] + [0] * 24


def test_observers_see_a_vector_as_one_access_and_a_padded_struct_member_by_member() -> None:
    source = """
    struct Padded { int a; char b; short c; char d; };
    __global__ void f(Padded *p, float4 *q) {
        Padded s = p[threadIdx.x];
        q[threadIdx.x].x += s.a;
        q[threadIdx.x] = q[31 - threadIdx.x];
    }"""

    class Sizes(Observer):
        def __init__(self) -> None:
            self.read: list[tuple[str, int]] = []

        def access(self, batch: BlockBatch, access: Access) -> None:
            if access.memory.space == "global" and access.site.action == "read":
                self.read.append((access.memory.name, access.size))

    sizes = Sizes()
    memories = [np.zeros(32 * 12, np.uint8), np.zeros(32 * 16, np.uint8)]
    build(source).kernel("f").launch((1, 1, 1), (32, 1, 1), memories, observers=[sizes])
    assert sizes.read == [("p", 4), ("p", 1), ("p", 2), ("p", 1), ("q", 4), ("q", 16)]


def test_a_threads_own_memory_is_read_in_another_size_than_it_was_written_in() -> None:
    source = """
    __global__ void k(const float4 *in, float *out, unsigned short *halves, int n) {
        int i = threadIdx.x;
        float4 four[2];
        four[0] = in[2 * i];
        four[1] = in[2 * i + 1];
        unsigned short *words = (unsigned short *)four;
        if (i < n) for (int j = 0; j < 16; ++j) halves[16 * i + j] = words[j];
        words[3] = 7;
        out[i] = four[1].y + four[0].y + (((double *)four)[1] == 0);
    }"""
    given = np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32)
    zeroed = np.zeros(32, np.float32), np.zeros((32, 16), np.uint16)
    _, out, halves = run_kernel(source, "k", given, *zeroed, np.int32(20))
    np.testing.assert_array_equal(halves[:20], given.view(np.uint16)[:20])
    assert not halves[20:].any()
    given.view(np.uint16)[:, 3] = 7
    np.testing.assert_array_equal(out, given[:, 5] + given[:, 1])


@pytest.mark.parametrize(
    "write",
    [
        "*(unsigned *)own.bytes = in[t];",
        "if (t % 3) *(unsigned *)own.bytes = in[t]; else for (int j = 0; j < 4; ++j) own.bytes[j] = in[t] >> 8 * j;",
        (
            "((unsigned short *)own.bytes)[t % 2] = in[t] >> 16 * (t % 2); "
            "((unsigned short *)own.bytes)[1 - t % 2] = in[t] >> 16 * (1 - t % 2);"
        ),
    ],
)
def test_local_memory_that_is_written_in_two_sizes(write: str) -> None:
    source = f"""
    struct Own {{ unsigned char bytes[4]; unsigned short half; double wide; }};
    __global__ void k(const unsigned *in, unsigned *out) {{
        int t = threadIdx.x;
        Own own;
        own.half = t + 1; own.wide = t + 0.5; own.bytes[0] = 9; own.bytes[t % 4] = 8;
        {write}
        out[t] = own.bytes[0] + 256 * own.bytes[1] + 65536 * own.bytes[2] + 16777216u * own.bytes[3];
        out[32 + t] = own.half + (unsigned)own.wide;
    }}"""
    given = np.arange(32, dtype=np.uint32) * np.uint32(123456789)
    _, out = run_kernel(source, "k", given, np.zeros(64, np.uint32), block=32)
    np.testing.assert_array_equal(out[:32], given)
    np.testing.assert_array_equal(out[32:], np.arange(32) * 2 + 1)


def test_what_is_recorded_keeps_its_elements_sizes() -> None:
    source = "__global__ void k(int *out) { int own[2] = {1, 2}; out[0] = ((short *)own)[2]; }"
    with pytest.raises(LaunchError, match="own is accessed in elements of 2 bytes but was written in another size"):
        trace_kernel(source, [np.zeros(1, np.int32)], block=1)
