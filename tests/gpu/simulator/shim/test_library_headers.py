"""Headers of CUDA's libraries that kernels include: CUB's collectives, complex numbers, fixed-width integers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import CompileError
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel
from tests.gpu.simulator.watched_launch import launch_watched

COLLECTIVES = """
#include <cub/block/block_reduce.cuh>
#include <cub/cub.cuh>
struct Joined { __device__ int operator()(int a, int b) const { return a + (b >= 0 ? b : -b); } };
template <int N>
__global__ void k(const int *in, int *out, int *scans, int valid) {
    using Reduce = cub::BlockReduce<int, N>;
    using Scan = cub::BlockScan<int, N>;
    using Warp = cub::WarpReduce<int, 8>;
    __shared__ typename Reduce::TempStorage reduced;
    __shared__ typename Scan::TempStorage scanned;
    __shared__ typename Warp::TempStorage warps[N / 8];
    int i = threadIdx.x, value = in[i], total, before, with, two[2] = {value, 1}, sums[2];
    int sum = Reduce(reduced).Sum(value);
    __syncthreads();
    int most = Reduce(reduced).Reduce(value, cub::Max(), valid);
    __syncthreads();
    int joined = Reduce(reduced).Reduce(value, Joined());
    Scan(scanned).ExclusiveSum(value, before);
    __syncthreads();
    Scan(scanned).InclusiveScan(value, with, cub::Min(), total);
    __syncthreads();
    Scan(scanned).ExclusiveSum(two, sums);
    int eight = Warp(warps[i / 8]).Sum(value);
    scans[i] = before, scans[N + i] = with, scans[2 * N + i] = sums[1], scans[3 * N + i] = i % 8 ? 0 : eight;
    if (i == 0) out[0] = sum, out[1] = most, out[2] = joined, out[3] = total;
}
"""


@pytest.fixture(scope="module")
def collectives() -> SimulatedModule:
    return build(COLLECTIVES)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([32, 64, 96]), st.data())
def test_collectives_of_a_block_do_what_numpy_does(
    collectives: SimulatedModule, threads: int, data: st.DataObject
) -> None:
    values = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=threads, max_size=threads)), np.int32)
    valid = data.draw(st.integers(1, threads))
    out, scans = np.zeros(4, np.int32), np.zeros(4 * threads, np.int32)
    _, out, scans = launch(collectives, f"k<{threads}>", values, out, scans, np.int32(valid), block=threads)
    before, least, sums, eights = scans.reshape(4, threads)
    assert out[0] == values.sum()
    assert out[1] == values[:valid].max()
    assert out[3] == values.min()
    np.testing.assert_array_equal(before, np.cumsum(values) - values)
    np.testing.assert_array_equal(least, np.minimum.accumulate(values))
    np.testing.assert_array_equal(sums, np.cumsum(values + 1) - 1)
    np.testing.assert_array_equal(eights[::8], values.reshape(-1, 8).sum(1))


def test_complex_numbers_are_those_of_numpy() -> None:
    source = """
    #include <cuComplex.h>
    __global__ void k(cuFloatComplex *out, cuDoubleComplex *wide, const cuFloatComplex *in) {
        cuFloatComplex a = in[0], b = in[1];
        out[0] = cuCaddf(a, b), out[1] = cuCmulf(a, b), out[2] = cuCdivf(a, b), out[3] = cuConjf(cuCsubf(a, b));
        out[4] = make_cuFloatComplex(cuCabsf(a), cuCimagf(b));
        wide[0] = cuCmul(cuComplexFloatToDouble(a), make_cuDoubleComplex(0, 1));
    }"""
    a, b = np.complex64(3 - 4j), np.complex64(0.5 + 2j)
    out, wide, _ = run_kernel(
        source, "k", np.zeros(10, np.float32), np.zeros(2), np.array([a, b]).view(np.float32), block=1
    )
    wanted = np.array([a + b, a * b, a / b, np.conj(a - b), abs(a) + 1j * b.imag])
    np.testing.assert_allclose(out.view(np.complex64), wanted, rtol=1e-6)
    assert wide.view(np.complex128)[0] == np.complex128(a) * 1j


def test_integers_of_fixed_width_have_their_limits_and_macros() -> None:
    source = """
    #include <cstdint>
    __global__ void k(long long *out, unsigned long long *wide) {
        std::uint8_t small = UINT8_MAX;
        std::intptr_t place = -1;
        static_assert(std::is_same_v<std::make_unsigned_t<long>, unsigned long>);
        static_assert(std::is_same_v<std::make_signed<unsigned char>::type, signed char>);
        out[0] = INT32_MIN, out[1] = INT64_C(-5000000000), out[2] = small + INT16_MAX, out[3] = place;
        wide[0] = UINT64_C(0xF000000000000001), wide[1] = SIZE_MAX;
    }"""
    out, wide = run_kernel(source, "k", np.zeros(4, np.int64), np.zeros(2, np.uint64), block=1)
    assert out.tolist() == [-(2**31), -5_000_000_000, 255 + 32767, -1]
    assert wide.tolist() == [0xF000000000000001, 2**64 - 1]


def test_a_host_method_does_not_spoil_kernels_that_do_not_use_it() -> None:
    source = """
    #include <iostream>
    class Simulation { public: void run(); };
    using std::cout;
    __global__ void k(int *out) { *out = 3; }
    void Simulation::run() { cout << 1; }
    """
    (out,) = run_kernel(source, "k", np.zeros(1, np.int32), block=1)
    assert out[0] == 3


def test_functions_return_structs_without_members_in_machine_code_too() -> None:
    source = """
    struct Empty { __device__ int size() const { return 3; } };
    __device__ Empty make() { return Empty(); }
    __device__ int ask(Empty e, const Empty &f) { return e.size() + f.size(); }
    __global__ void k(int *out) { Empty e = make(); out[threadIdx.x] = ask(make(), e) + ask(Empty(), make()); }
    """
    module, out = build(source), np.zeros(2, np.int32)
    module.compiled_kernel("k").launch((1, 1, 1), (2, 1, 1), [out.view(np.uint8)])
    assert out.tolist() == [12, 12]
    (again,) = launch(module, "k", np.zeros(2, np.int32), block=2)
    assert again.tolist() == [12, 12]


def test_pairs_of_bfloat16_round_each_half() -> None:
    source = """
    #include <cuda_bf16.h>
    __global__ void k(float2 *out, const float2 *in) {
        __nv_bfloat162 a = __float22bfloat162_rn(in[0]), b = __floats2bfloat162_rn(in[1].x, in[1].y);
        out[0] = __bfloat1622float2(a);
        out[1] = __bfloat1622float2(__hmul2(a, b));
        out[2] = __bfloat1622float2(__hfma2(a, b, __float2bfloat162_rn(1.0f)));
        out[3] = make_float2(__bfloat162float(__high2bfloat16(b)), __ushort_as_bfloat16(0x3fc0));
    }"""
    given = np.array([[1.0039, -3.1], [7.25, 0.1]], np.float32)
    out, _ = run_kernel(source, "k", np.zeros((4, 2), np.float32), given, block=1)

    def rounded(values: np.ndarray) -> np.ndarray:
        words = np.asarray(values, np.float32).view(np.uint32)
        return ((words + 0x7FFF + (words >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)

    a, b = rounded(given[0]), rounded(given[1])
    np.testing.assert_array_equal(out, [a, rounded(a * b), rounded(a * b + 1), [b[1], 1.5]])


def test_elements_within_braces_are_converted_by_their_class() -> None:
    source = """
    #include <cuda_fp16.h>
    struct Pair { float first; int second; };
    __device__ __half twice(__half x) { return x + x; }
    __global__ void k(float *out, const __half *in) {
        const __half h = in[1];
        float some[] = {in[0], h, twice(h)};
        Pair pair = {h, in[0]};
        for (int i = 0; i < 3; i++) out[i] = some[i];
        out[3] = pair.first, out[4] = pair.second;
    }"""
    out, _ = run_kernel(source, "k", np.zeros(5, np.float32), np.array([2.75, -0.5], np.float16), block=1)
    assert out.tolist() == [2.75, -0.5, -1.0, -0.5, 2.0]


def test_an_instantiation_of_a_kernel_that_is_called_kernel() -> None:
    (out,) = run_kernel(
        "template <typename T> __global__ void kernel(T *out) { *out = sizeof(T); }",
        "kernel<double>",
        np.zeros(1),
        block=1,
    )
    assert out[0] == 8


def test_constants_are_made_with_the_smaller_and_the_larger_of_two() -> None:
    [out] = run_kernel(
        """
        template <int N> struct Sizes { static constexpr int bytes = std::min(N * 4, 256), most = max(3u, 2); };
        __global__ void fill(float *out) {
            constexpr int bytes = Sizes<40>::bytes;
            out[0] = bytes; out[1] = Sizes<100>::bytes + Sizes<1>::most; out[2] = min(out[0], 2.5f);
        }
        """,
        "fill",
        np.zeros(3, np.float32),
        block=1,
    )
    assert list(out) == [160, 259, 2.5]


def test_the_fixed_width_of_64_bits_is_long_as_nvcc_has_it() -> None:
    """Who overloads for `int64_t` is called with `long`."""
    [out] = run_kernel(
        """
        __device__ int bits(int32_t) { return 32; }
        __device__ int bits(int64_t) { return 64; }
        __device__ int bits(uint64_t) { return 65; }
        template <typename T> __global__ void fill(T *out) {
            out[0] = bits(T()) + bits(INT64_C(1)) + bits(UINT64_C(1));
        }
        """,
        "fill<long>",
        np.zeros(1, np.int64),
        block=1,
    )
    assert list(out) == [64 + 64 + 65]


def test_thrust_s_engine_gives_the_numbers_of_the_c_standard() -> None:
    """The 10,000th of `minstd_rand` is 399268537, as the standard has it; a distribution divides by the range."""
    source = """
    #include <thrust/random.h>
    __global__ void k(unsigned *out, float *reals, int *dice) {
        thrust::default_random_engine engine, other(threadIdx.x + 1);
        engine.discard(9999);
        other.discard(threadIdx.x);
        thrust::uniform_real_distribution<float> real(-1, 3);
        thrust::uniform_int_distribution<int> six(1, 6);
        out[threadIdx.x] = threadIdx.x ? other() : engine();
        reals[threadIdx.x] = real(other);
        dice[threadIdx.x] = six(other);
    }"""
    out, reals, dice = run_kernel(
        source, "k", np.zeros(8, np.uint32), np.zeros(8, np.float32), np.zeros(8, np.int32), block=8
    )
    largest = 2**31 - 1
    assert out[0] == 399268537
    for thread in range(8):
        x = (thread + 1) * pow(48271, thread + (thread > 0), largest) % largest
        assert thread == 0 or out[thread] == x
        x = x * 48271 % largest
        part = np.float32(x - 1) / (np.float32(1) + np.float32(largest - 2))
        assert reals[thread] == part * np.float32(4) + np.float32(-1)
        x = x * 48271 % largest
        assert dice[thread] == int((x - 1) / (largest - 1) * 6.0 + 1.0)


def test_scans_of_several_items_a_thread_and_the_place_of_the_largest() -> None:
    source = """
    #include <cub/cub.cuh>
    typedef cub::KeyValuePair<int, int> Pair;
    __global__ void k(const int *in, int *scans, int *best) {
        using Scan = cub::BlockScan<int, 32>;
        using Reduce = cub::BlockReduce<Pair, 32>;
        __shared__ typename Scan::TempStorage scanned;
        __shared__ typename Reduce::TempStorage reduced;
        int i = 3 * threadIdx.x, items[3] = {in[i], in[i + 1], in[i + 2]}, most[3], least[3], total;
        Scan(scanned).InclusiveScan(items, most, cub::Max());
        __syncthreads();
        Scan(scanned).ExclusiveScan(items, least, 5, cub::Min(), total);
        for (int j = 0; j < 3; ++j) scans[i + j] = most[j], scans[96 + i + j] = least[j];
        Pair found = Reduce(reduced).Reduce(Pair(threadIdx.x, items[0]), cub::ArgMax());
        if (i == 0) best[0] = found.key, best[1] = found.value, best[2] = total;
    }"""
    given = np.random.default_rng(5).integers(-99, 99, 96).astype(np.int32)
    given[:2] = 7
    _, scans, best = run_kernel(source, "k", given, np.zeros(192, np.int32), np.zeros(3, np.int32), block=32)
    np.testing.assert_array_equal(scans[:96], np.maximum.accumulate(given))
    np.testing.assert_array_equal(scans[96:], np.minimum.accumulate(np.concatenate([[5], given[:-1]])))
    assert best.tolist() == [int(given[::3].argmax()), given[::3].max(), given.min()]


def test_products_of_bytes_and_halves_of_words() -> None:
    source = """
    __global__ void k(const int *in, int *out) {
        char4 bytes = *(const char4 *)in;
        out[0] = __dp4a(in[0], in[1], 7), out[1] = __dp4a((unsigned)in[0], (unsigned)in[1], 7u);
        out[2] = __dp4a(bytes, bytes, 1), out[3] = __dp2a_lo(in[0], in[1], 7), out[4] = __dp2a_hi(in[0], in[1], 7);
        out[5] = __dp2a_hi((unsigned)in[0], (unsigned)in[1], 7u);
    }"""
    given = np.array([0xC1020384, 0x7F80FF05], np.uint32).view(np.int32)
    _, out = run_kernel(source, "k", given, np.zeros(6, np.int32), block=1)
    bytes_, halves = given.view(np.int8).reshape(2, 4).astype(int), given[:1].view(np.int16).astype(int)
    plain = given.view(np.uint8).reshape(2, 4).astype(int)
    assert out.tolist() == [
        (bytes_[0] * bytes_[1]).sum() + 7,
        (plain[0] * plain[1]).sum() + 7,
        (bytes_[0] ** 2).sum() + 1,
        (halves * bytes_[1, :2]).sum() + 7,
        (halves * bytes_[1, 2:]).sum() + 7,
        (given[:1].view(np.uint16).astype(int) * plain[1, 2:]).sum() + 7,
    ]


def test_extensions_old_names_and_barriers_within_expressions() -> None:
    """A function of a program's own takes the place of a form from before Volta."""
    source = """
    #include <cstdint>
    __device__ float2 __shfl_down(const float2 pair, unsigned by, int width = 32) {
        return make_float2(__shfl_down_sync(~0u, pair.x, by, width), __shfl_down_sync(~0u, pair.y, by));
    }
    __global__ void k(int *out) {
        __shared__ int held[64];
        int i = threadIdx.x;
        typeof(out[0]) mine = i;
        uint_fast32_t wide = UINTMAX_C(1) << 40;
        float2 pair = __shfl_down(make_float2(i, 2 * i), 1);
        for (int n = (held[i] = mine, __syncthreads(), 32); n > 0; n /= 2, __syncthreads())
            if (i < n) held[i] += held[i + n];
        out[i] = i ? (int)(pair.x + pair.y) + __shfl(mine, 0) + __any(i == 3) + (wide >> 40) : held[0];
    }"""
    (out,) = run_kernel(source, "k", np.zeros(64, np.int32), block=64)
    assert out[0] == 64 * 63 // 2
    assert out[1:3].tolist() == [6 + 0 + 1 + 1, 9 + 0 + 1 + 1]
    assert out[40] == 3 * 41 + 32 + 0 + 1


SPOILED = """
#include <opencv2/core.hpp>
struct Plain { float x; void show(std::string title); Plain() { std::cout << x; } };
struct Named { std::string name; float x; };
struct Around { Named inner; float x; };
template <typename T> struct Table { std::vector<T> rows; T x; };
typedef Unknown Number;
void show(const cv::Mat &picture);
__global__ void plain(Plain *p, float *out) { *out = p->x; }
__global__ void named(Named *p, float *out) { *out = p->x; }
__global__ void around(Around *p, float *out) { *out = p->x; }
__global__ void table(Table<float> *p, float *out) { *out = p->x; }
__global__ void number(float *out) { Number x = 1.5; *out = x; }
"""


@pytest.mark.parametrize(("kernel", "line"), [("named", 4), ("around", 4), ("table", 6), ("number", 7)])
def test_what_a_missing_header_spoils_is_refused_and_nothing_else(kernel: str, line: int) -> None:
    """Clang goes on as if what it does not know were an int, or not there: members would be read at wrong places."""
    module = SimulatedModule(SPOILED, Path("test.cu"), {}, tolerant=True)
    _, out = launch(module, "plain", np.array([2.5], np.float32), np.zeros(1, np.float32), block=1)
    assert out[0] == 2.5
    with pytest.raises(CompileError, match=rf"^test\.cu:{line}:"):
        module.kernel(kernel)


def test_what_is_forwarded_what_is_promised_and_differences_of_neighbors() -> None:
    source = """
    #include <cub/cub.cuh>
    struct Less { __device__ int operator()(int a, int b) const { return a - b; } };
    template <class F> __device__ int inner(F &&f, int a, int b) { return std::forward<F>(f)(a, b); }
    template <class F> __device__ int outer(F &&f, int a, int b) { return inner(std::forward<F>(f), a, b); }
    __device__ int one(int x) {
        switch (x) {
        case 1: return 5;
        }
        __builtin_unreachable();
    }
    __global__ void k(const int *in, int *left, int *right, int *other) {
        using Difference = cub::BlockAdjacentDifference<int, 32>;
        __shared__ typename Difference::TempStorage kept;
        int i = 2 * threadIdx.x, items[2] = {in[i], in[i + 1]}, made[2];
        Difference(kept).SubtractLeft(items, made, Less());
        left[i] = made[0], left[i + 1] = made[1];
        __syncthreads();
        Difference(kept).SubtractRight(items, made, Less());
        right[i] = made[0], right[i + 1] = made[1];
        Less less;
        if (i == 0) other[0] = outer(Less(), 9, 2) + 10 * outer(less, 3, 1) + 100 * one(1);
    }"""
    given = np.random.default_rng(6).integers(-99, 99, 64).astype(np.int32)
    _, left, right, other = run_kernel(
        source, "k", given, np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(1, np.int32), block=32
    )
    np.testing.assert_array_equal(left, np.diff(given, prepend=0))
    np.testing.assert_array_equal(right, np.concatenate([given[:-1] - given[1:], given[-1:]]))
    assert other[0] == 7 + 20 + 500


def test_scans_go_on_from_what_a_callback_says_and_leave_out_what_is_not_asked_for() -> None:
    source = """
    #include <cub/block/block_scan.cuh>
    struct Larger { __device__ int operator()(int a, int b) const { return a < b ? b : a; } };
    struct Running {
        int total;
        __device__ int operator()(int all) { int before = total; total += all; return before; }
    };
    __global__ void k(const int *in, int *out, int *last) {
        using Scan = cub::BlockScan<int, 64, cub::BLOCK_SCAN_WARP_SCANS>;
        __shared__ Scan::TempStorage kept;
        int i = threadIdx.x, all;
        Running running{1000};
        for (int tile = 0; tile < 3; ++tile) {
            Scan(kept).ExclusiveSum(in[64 * tile + i], out[64 * tile + i], running);
            __syncthreads();
        }
        if (i == 0) last[0] = running.total;
        int two[2] = {in[2 * i], in[2 * i + 1]};
        Scan(kept).ExclusiveScan(two, two, Larger(), all);
        if (i) out[192 + 2 * i] = two[0];
        out[193 + 2 * i] = two[1];
        if (i == 63) last[1] = all;
        Scan().InclusiveScan(in[i], out[320 + i], 40, Larger());
    }"""
    given = np.random.default_rng(7).integers(0, 99, 192).astype(np.int32)
    _, out, last = run_kernel(source, "k", given, np.zeros(384, np.int32), np.zeros(2, np.int32), block=64)
    np.testing.assert_array_equal(out[:192], 1000 + np.cumsum([0, *given[:-1]]))
    np.testing.assert_array_equal(out[193:320], np.maximum.accumulate(given[:128])[:-1])
    np.testing.assert_array_equal(out[320:], np.maximum(40, np.maximum.accumulate(given[:64])))
    assert last.tolist() == [1000 + given.sum(), given[:128].max()]


@pytest.mark.parametrize("type", ["int", "float", "long long"])
def test_each_scan_of_one_value_per_thread(type: str) -> None:
    """In all sixteen forms; a literal of another type than the values is an initial value, not an operation."""
    forms = [
        f"{kind}Scan(v, x, {arguments})"
        for kind in ("Inclusive", "Exclusive")
        for arguments in ("cub::Max()", "op, all", "cub::Sum(), run", "40, cub::Max()", "three, cub::Sum(), all")
    ] + [f"{kind}Sum(v, x{arguments})" for kind in ("Inclusive", "Exclusive") for arguments in ("", ", all", ", run")]
    steps = "".join(f"x = all = 0; run = 7; Scan(kept).{form}; put(x + all);\n" for form in forms)
    source = f"""
    #include <cub/block/block_scan.cuh>
    typedef {type} T;
    struct Running {{ T total; __device__ T operator()(T) {{ return total; }} }};
    __global__ void k(const T *in, T *out) {{
        typedef cub::BlockScan<T, 64> Scan;
        __shared__ typename Scan::TempStorage kept;
        T v = in[threadIdx.x], x, all;
        const T three = 3;
        cub::Max op;
        Running run{{7}};
        auto put = [&](T value) {{ *out = value; out += 64; __syncthreads(); }};
        out += threadIdx.x;
        {steps.replace("run = 7", "run.total = 7")}
    }}"""
    dtype = np.dtype({"int": np.int32, "float": np.float32, "long long": np.int64}[type])
    given = np.random.default_rng(8).integers(-99, 99, 64)
    _, found = run_kernel(source, "k", given.astype(dtype), np.zeros(64 * len(forms), dtype), block=64)
    sums, most = np.cumsum(given), np.maximum.accumulate(given)
    earlier_sums, earlier_most = sums - given, np.concatenate(([0], most[:-1]))  # undefined for the first thread
    expected = [
        *(most, most + most[-1], 7 + sums, np.maximum(40, most), 3 + sums + sums[-1]),
        *(earlier_most, earlier_most + most[-1], 7 + earlier_sums),
        *(np.concatenate(([40], np.maximum(40, most[:-1]))), 3 + earlier_sums + sums[-1]),
        *(sums, sums + sums[-1], 7 + sums, earlier_sums, earlier_sums + sums[-1], 7 + earlier_sums),
    ]
    for form, values, reference in zip(forms, found.reshape(-1, 64), expected, strict=True):
        first = int(form in ("ExclusiveScan(v, x, cub::Max())", "ExclusiveScan(v, x, op, all)"))
        np.testing.assert_array_equal(values[first:], reference[first:], err_msg=form)


@pytest.mark.parametrize("lanes", [32, 8, 12])
def test_collectives_of_a_part_of_a_warp(lanes: int) -> None:
    """Of segments by their heads and tails, with and without an initial value; twelve lanes are no power of two."""
    source = f"""
    #include <cub/warp/warp_reduce.cuh>
    #include <cub/warp/warp_scan.cuh>
    struct Joined {{ __device__ int operator()(int a, int b) const {{ return a * 10 + b; }} }};
    __global__ void k(const int *in, const int *flags, int *out) {{
        using Reduce = cub::WarpReduce<int, {lanes}>;
        using Scan = cub::WarpScan<int, {lanes}>;
        __shared__ typename Reduce::TempStorage reduce[{32 // lanes}];
        __shared__ typename Scan::TempStorage scan[{32 // lanes}];
        int i = threadIdx.x, warp = i / {lanes}, with, all, n = blockDim.x;
        out[i] = Reduce(reduce[warp]).HeadSegmentedReduce(in[i], flags[i], cub::Max());
        out[n + i] = Reduce(reduce[warp]).TailSegmentedSum(in[i], flags[i]);
        Scan(scan[warp]).Scan(in[i], with, out[2 * n + i], 3, cub::Sum());
        out[3 * n + i] = with;
        Scan(scan[warp]).ExclusiveScan(in[i], out[4 * n + i], 50, cub::Max(), all);
        out[5 * n + i] = all;
        out[6 * n + i] = Scan(scan[warp]).Broadcast(in[i], 5);
        out[7 * n + i] = Reduce(reduce[warp]).Sum(in[i], 5);
    }}"""
    threads = 32 // lanes * lanes
    random = np.random.default_rng(3)
    given = random.integers(0, 99, threads).astype(np.int32)
    flags = (random.random(threads) < 0.3).astype(np.int32)
    _, _, out = run_kernel(source, "k", given, flags, np.zeros(8 * threads, np.int32), block=threads)
    rows = out.reshape(8, -1, lanes)
    for warp, (values, marks) in enumerate(zip(given.reshape(-1, lanes), flags.reshape(-1, lanes), strict=True)):
        heads = [0, *(place for place in range(1, lanes) if marks[place])]
        for head, after in pairwise([*heads, lanes]):
            assert rows[0, warp, head] == values[head:after].max()
        tails = [*(place for place in range(lanes - 1) if marks[place]), lanes - 1]
        for before, tail in pairwise([-1, *tails]):
            assert rows[1, warp, before + 1] == values[before + 1 : tail + 1].sum()
        np.testing.assert_array_equal(rows[2, warp], 3 + np.cumsum([0, *values[:-1]]))
        np.testing.assert_array_equal(rows[3, warp], 3 + np.cumsum(values))
        np.testing.assert_array_equal(rows[4, warp], np.maximum.accumulate([50, *values[:-1]]))
        assert set(rows[5, warp]) == {values.max()}
        assert set(rows[6, warp]) == {values[5]}
        assert rows[7, warp, 0] == values[:5].sum()


@pytest.mark.parametrize("kind", ["float", "short"])
def test_a_block_loads_sorts_and_stores(kind: str) -> None:
    """Numbers below zero too, equal ones as they stood; with what is not there left out."""
    source = f"""
    #include <cub/cub.cuh>
    __global__ void k(const {kind} *in, {kind} *up, int *places, {kind} *down, int *heads) {{
        constexpr int N = 3;
        using Load = cub::BlockLoad<{kind}, 16, N, cub::BLOCK_LOAD_TRANSPOSE, 2>;
        using Sort = cub::BlockRadixSort<{kind}, 16, N, int, 4, true, cub::BLOCK_SCAN_WARP_SCANS, 0, 2>;
        using Store = cub::BlockStore<{kind}, 16, N, cub::BLOCK_STORE_WARP_TRANSPOSE, 2>;
        using Heads = cub::BlockDiscontinuity<{kind}, 16, 2>;
        __shared__ union {{
            typename Load::TempStorage load;
            typename Sort::TempStorage sort;
            typename Store::TempStorage store;
            typename Heads::TempStorage heads;
        }} kept;
        int rank = threadIdx.y * 16 + threadIdx.x, values[N], flags[N];
        {kind} keys[N];
        Load(kept.load).Load(in, keys, 90, 77);
        for (int i = 0; i < N; ++i) values[i] = N * rank + i;
        __syncthreads();
        Sort(kept.sort).Sort(keys, values);
        for (int i = 0; i < N; ++i) up[N * rank + i] = keys[i], places[N * rank + i] = values[i];
        Heads(kept.heads).FlagHeads(flags, keys, cub::Inequality());
        for (int i = 0; i < N; ++i) heads[N * rank + i] = flags[i];
        __syncthreads();
        Sort(kept.sort).SortDescendingBlockedToStriped(keys);
        for (int i = 0; i < N; ++i) down[32 * i + rank] = keys[i];
        __syncthreads();
        for (int i = 0; i < N; ++i) keys[i] = values[i];
        Store(kept.store).Store(up + 96, keys, 50);
    }}"""
    type = {"float": np.float32, "short": np.int16}[kind]
    given = np.random.default_rng(1).integers(-9, 9, 96).astype(type)
    _, up, places, down, heads = run_kernel(
        source, "k", given, np.zeros(192, type), np.zeros(96, np.int32), np.zeros(96, type), np.zeros(96, np.int32),
        block=(16, 2),
    )  # fmt: skip
    given[90:] = 77
    np.testing.assert_array_equal(places, np.argsort(given, kind="stable"))
    np.testing.assert_array_equal(up[:96], np.sort(given))
    np.testing.assert_array_equal(down, np.sort(given)[::-1])
    np.testing.assert_array_equal(heads, [1, *(np.diff(np.sort(given).astype(int)) != 0)])
    np.testing.assert_array_equal(up[96:], np.where(np.arange(96) < 50, places, 0).astype(type))


def test_memory_of_a_collective_that_is_used_again_needs_a_barrier() -> None:
    """CUB says so; and only the first thread has what comes of a reduction."""
    source = """
    #include <cub/block/block_reduce.cuh>
    __global__ void k(int *out) {
        using Reduce = cub::BlockReduce<int, 64>;
        __shared__ Reduce::TempStorage kept;
        int first = Reduce(kept).Sum(1);
        BARRIER;
        out[threadIdx.x] = first + Reduce(kept).Sum(1);
    }"""
    for barrier, races in (("__syncthreads()", False), ("", True)):
        checker = RaceChecker()
        launch_watched(checker, source.replace("BARRIER", barrier), np.zeros(64, np.int32), kernel="k", block=64)
        assert bool(checker.findings) == races
    (out,) = run_kernel(source.replace("BARRIER", "__syncthreads()"), "k", np.zeros(64, np.int32), block=64)
    assert out[0] == 128
    assert out[1] != 128


def test_arrays_are_referred_to_as_constant_ones() -> None:
    source = """
    template <typename T> __device__ T total(const T (&v)[3]) { T s = 0; for (T each : v) s += each; return s; }
    __device__ float last(const float (&v)[3]) { return v[2]; }
    __global__ void k(float *out) {
        float a[3] = {1, 2, 3};
        out[0] = total(a), a[2] = 5, out[1] = last(a);
    }"""
    assert run_kernel(source, "k", np.zeros(2, np.float32), block=1)[0].tolist() == [6, 5]
