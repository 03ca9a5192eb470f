"""The less common functions of CUDA's math library, on integers and on groups, and where their mistakes are shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from gpu.base.errors import LaunchError
from gpu.simulator.counting.counters import Counters
from tests.gpu.simulator.kernel_runner import build, run_kernel

Array = np.ndarray[Any, Any]

# Each: the call, with x from 0.1 to 0.9, and what it should be in float64.
FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "asinh(x)": np.arcsinh,
    "acosh(x + 1)": lambda x: np.arccosh(x + 1),
    "atanh(x)": np.arctanh,
    "lgamma(x)": special.gammaln,
    "tgamma(x)": special.gamma,
    "erfinv(x)": special.erfinv,
    "erfcinv(x)": special.erfcinv,
    "erfcx(x)": special.erfcx,
    "normcdf(x)": special.ndtr,
    "normcdfinv(x)": special.ndtri,
    "j0(x)": special.j0,
    "y1(x)": special.y1,
    "cyl_bessel_i0(x)": special.i0,
    "cyl_bessel_i1(x)": special.i1,
    "sinpi(x + 4)": lambda x: np.sin(np.pi * x),
    "cospi(x - 3)": lambda x: -np.cos(np.pi * x),
    "rcbrt(x)": lambda x: 1 / np.cbrt(x),
    "rhypot(x, 2 * x)": lambda x: 1 / np.hypot(x, 2 * x),
    "norm3d(x, 1, 2)": lambda x: np.sqrt(x * x + 5),
    "rnorm4d(x, 1, 2, 3)": lambda x: 1 / np.sqrt(x * x + 14),
    "scalbn(x, 3)": lambda x: x * 8,
    "logb(x / 100)": lambda x: np.floor(np.log2(x / 100)),
    "ilogb(100 * x)": lambda x: np.floor(np.log2(100 * x)),
    "lrint(100 * x) + llround(x) + lround(9 * x)": lambda x: (
        np.rint(100 * x) + np.floor(x + 0.5) + np.floor(9 * x + 0.5)
    ),
    "nextafter(x, -1.0) < x && nextafter(x, 2.0) > x": np.ones_like,
    "signbit(-x) + 2 * signbit(x)": np.ones_like,
    'isnan(nan("")) && isnan(nanf("1"))': np.ones_like,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_agree_with_scipy(dtype: Any) -> None:
    kind = "float" if dtype == np.float32 else "double"
    stores = "\n".join(f"out[{number} * 17 + i] = {call};" for number, call in enumerate(FUNCTIONS))
    source = f"__global__ void k({kind} *out, const {kind} *in) {{ int i = threadIdx.x; {kind} x = in[i];\n{stores} }}"
    x = np.linspace(0.1, 0.9, 17).astype(dtype)
    out, _ = run_kernel(source, "k", np.zeros((len(FUNCTIONS), 17), dtype), x, block=17)
    for got, (call, right) in zip(out, FUNCTIONS.items(), strict=True):
        tolerance = 3e-6 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, right(x.astype(np.float64)), rtol=tolerance, atol=tolerance / 10, err_msg=call)


# How far a float may be off, in units in the last place: CUDA C++ Programming Guide, "Mathematical Functions".
UNITS = {
    **dict.fromkeys(("exp", "expm1", "log", "log2", "log1p", "cbrt"), 1),
    **dict.fromkeys(("exp2", "log10", "sin", "cos", "asin", "acos", "atan", "tanh", "cosh"), 2),
    "sinh": 3,
    "asinh": 3,
    "tan": 4,
}


def test_floats_are_as_near_as_a_gpus() -> None:
    stores = "\n".join(f"out[{number} * n + i] = {name}f(x);" for number, name in enumerate(UNITS))
    source = f"""__global__ void k(float *out, const float *in, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float x = in[i];
        {stores}
    }}"""
    x = np.random.default_rng(1).random(2**16, np.float32)
    x[: 2**15] *= 3  # where asin and acos are NaN
    out, _ = run_kernel(
        source, "k", np.zeros((len(UNITS), x.size), np.float32), x, np.int32(x.size), grid=256, block=256
    )
    with np.errstate(invalid="ignore"):
        for got, (name, units) in zip(out, UNITS.items(), strict=True):
            right = getattr(np, name.replace("a", "arc", name in ("asin", "acos", "atan", "asinh")))(
                x.astype(np.float64)
            )
            away = np.abs(got - right) / np.spacing(np.abs(right).astype(np.float32))
            assert np.nanmax(away) <= units, name
            assert (np.isnan(got) == np.isnan(right)).all(), name


def test_next_numbers_are_next() -> None:
    source = """__global__ void k(float *out, const float *x, const float *to) {
        int i = threadIdx.x; out[i] = nextafterf(x[i], to[i]);
    }"""
    x = np.float32([0, 0, -0.0, 1, -1, 1, 3.4028235e38, 1e-45, np.nan, 5, np.inf])
    to = np.float32([1, -1, 1, 2, -2, 0, np.inf, 0, 1, 5, 0])
    out, _, _ = run_kernel(source, "k", np.zeros(11, np.float32), x, to, block=11)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.nextafter(x, to))


def test_remainders_are_of_the_nearest_multiple_and_of_two_the_even_one() -> None:
    source = """__global__ void k(double *out, const double *x, const double *y) {
        int i = threadIdx.x; out[i] = remainder(x[i], y[i]);
    }"""
    x = np.float64([5, -5, 4.5, 1.5, -1.5, 7.25, 1e300, 3, 0.0, -2, 1e-310])
    y = np.float64([3, 3, 3, 3, 3, -2, 7, np.inf, 5, 2, 1e308])
    out, _, _ = run_kernel(source, "k", np.zeros(11), x, y, block=11)
    np.testing.assert_array_equal(out, list(map(math.remainder, x, y)))


def test_quotients_of_remainders_have_their_last_bits_and_their_sign() -> None:
    source = """__global__ void k(float *rest, int *quotient, const float *x, const float *y) {
        int i = threadIdx.x; rest[i] = remquof(x[i], y[i], quotient + i);
    }"""
    x, y = np.float32(np.random.default_rng(2).integers(-4000, 4000, (2, 256)) / 8)
    y[y == 0] = 3
    rest, quotient, *_ = run_kernel(source, "k", np.zeros(256, np.float32), np.zeros(256, np.int32), x, y, block=256)
    np.testing.assert_array_equal(rest, [*map(math.remainder, x.tolist(), y.tolist())])
    multiples = (x.astype(np.float64) - rest) / y
    assert (np.abs(quotient) < 8).all()
    np.testing.assert_array_equal(quotient % 8, multiples % 8)
    assert (np.sign(quotient) * np.sign(multiples) >= 0).all()


def test_sines_of_multiples_of_pi_are_exact_at_quarters_of_a_turn() -> None:
    source = """__global__ void k(float *sines, float *cosines, const float *x) {
        int i = threadIdx.x; sincospif(x[i], sines + i, cosines + i);
    }"""
    x = np.float32(np.arange(-8, 9) / 2)
    sines, cosines, _ = run_kernel(source, "k", *np.zeros((2, 17), np.float32), x, block=17)
    np.testing.assert_array_equal(sines, np.rint(np.sin(np.pi * x.astype(np.float64))))
    np.testing.assert_array_equal(cosines, np.rint(np.cos(np.pi * x.astype(np.float64))))


def test_set_bits_are_found_in_both_directions() -> None:
    source = """__global__ void k(int *found, float *norms, const float *values) {
        int i = threadIdx.x;
        found[i] = (int)__fns(0b10110u, i % 5, i / 5 - 3);
        norms[i] = normf(i, values) * rnormf(i, values);
    }"""
    found, norms, _ = run_kernel(
        source, "k", np.zeros(35, np.int32), np.zeros(35, np.float32), np.ones(35, np.float32), block=35
    )
    expected = []
    for i in range(35):
        base, offset = i % 5, i // 5 - 3
        set_bits = [place for place in (1, 2, 4) if (place >= base if offset > 0 else place <= base)]
        ordered = set_bits if offset > 0 else set_bits[::-1] if offset else [base] * (base in set_bits)
        expected.append((ordered[max(abs(offset), 1) - 1 :] or [-1])[0])
    assert found.tolist() == expected
    np.testing.assert_allclose(norms[1:], 1, rtol=1e-6)


def test_integers() -> None:
    calls = (
        "__mul64hi(a, b)", "(long long)__umul64hi(a, b)", "(long long)__brevll(a)", "__byte_perm(x, y, 0x7a30)",
        "__sad(x, y, 5)", "__usad(x, y, 5)", "__hadd(x, y)", "__rhadd(x, y)", "__uhadd(x, y)",
        "__dp4a((int)x, (int)y, 3)", "__dp4a(x, y, 3u)", "__vadd4(x, y)", "__vabsdiffu2(x, y)", "__vcmpgtu4(x, y)",
        "__hiloint2double(__double2hiint(a), __double2loint(a)) == (double)a",
        "__double2int_rn(2.5) + __float2ll_rd(-2.5f)",
    )  # fmt: skip
    stores = "\n".join(f"out[{number} * 32 + i] = {call};" for number, call in enumerate(calls))
    source = f"""__global__ void k(long long *out, const long long *as, const long long *bs) {{
        int i = threadIdx.x; long long a = as[i], b = bs[i]; unsigned x = (unsigned)a, y = (unsigned)(b >> 7);
        {stores}
    }}"""
    a, b = np.random.default_rng(8).integers(-(2**63), 2**63, (2, 32))
    out, _, _ = run_kernel(source, "k", np.zeros((len(calls), 32), np.int64), a, b)
    for lane in range(32):
        assert out[:, lane].tolist() == _draw_integers(int(a[lane]), int(b[lane]))


def _draw_integers(a: int, b: int) -> list[int]:
    x, y = a % 2**32, (b >> 7) % 2**32
    signed_x, signed_y = _to_signed(x, 32), _to_signed(y, 32)
    parts = [(x >> 8 * k & 255, y >> 8 * k & 255) for k in range(4)]
    bytes_ = [*(first for first, _ in parts), *(second for _, second in parts)]
    chosen = [bytes_[0], bytes_[3], 255 if bytes_[2] & 128 else 0, bytes_[7]]
    return [
        (a * b) >> 64,
        _to_signed((a % 2**64 * (b % 2**64)) >> 64, 64),
        _to_signed(int(f"{a % 2**64:064b}"[::-1], 2), 64),
        sum(byte << 8 * place for place, byte in enumerate(chosen)),
        (abs(signed_x - signed_y) + 5) % 2**32,
        (abs(x - y) + 5) % 2**32,
        (signed_x + signed_y) >> 1,
        (signed_x + signed_y + 1) >> 1,
        (x + y) >> 1,
        sum(_to_signed(first, 8) * _to_signed(second, 8) for first, second in parts) + 3,
        sum(first * second for first, second in parts) + 3,
        sum((first + second) % 256 << 8 * place for place, (first, second) in enumerate(parts)),
        sum(abs((x >> shift & 65535) - (y >> shift & 65535)) << shift for shift in (0, 16)),
        sum(255 << 8 * place for place, (first, second) in enumerate(parts) if first > second),
        1,
        2 - 3,
    ]


def _to_signed(value: int, bits: int) -> int:
    return value - 2**bits if value >> bits - 1 else value


def test_integers_are_converted_to_floats_in_all_directions() -> None:
    conversions = {
        "int2float": (np.int32, np.float32), "uint2float": (np.uint32, np.float32), "ll2float": (np.int64, np.float32),
        "ull2float": (np.uint64, np.float32), "ll2double": (np.int64, np.float64),
        "ull2double": (np.uint64, np.float64),
    }  # fmt: skip
    types = {np.int32: "int", np.uint32: "unsigned int", np.int64: "long long", np.uint64: "unsigned long long"}
    for name, (source_type, target_type) in conversions.items():
        limits = np.iinfo(source_type)
        x = np.random.default_rng(7).integers(limits.min, limits.max, 32, source_type, endpoint=True)
        x[:4] = limits.min, limits.max, limits.max - 1, 1 << 25 | 1
        target = "float" if target_type is np.float32 else "double"
        text = f"""__global__ void k({target} *out, const {types[source_type]} *x) {{
            int i = threadIdx.x;
            out[i] = __{name}_rd(x[i]); out[32 + i] = __{name}_ru(x[i]); out[64 + i] = __{name}_rz(x[i]);
        }}"""
        down, up, to_zero = run_kernel(text, "k", np.zeros((3, 32), target_type), x)[0]
        for lane, number in enumerate(x.tolist()):
            below, above = int(down[lane]), int(up[lane])
            assert below <= number <= above, (name, number)
            exact = below == above
            assert exact or np.nextafter(down[lane], target_type(np.inf)) == up[lane], (name, number)
            assert int(to_zero[lane]) == (below if number >= 0 else above)


def test_doubles_are_converted_to_floats_in_all_directions() -> None:
    source = """__global__ void k(float *out, const double *x) {
        int i = threadIdx.x;
        out[i] = __double2float_rd(x[i]); out[4 + i] = __double2float_ru(x[i]); out[8 + i] = __double2float_rz(x[i]);
    }"""
    largest, smallest = float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_subnormal)
    x = np.array([0.1, -0.1, 1e300, -1e-300])
    down, up, to_zero = run_kernel(source, "k", np.zeros((3, 4), np.float32), x, block=4)[0].tolist()
    tenth = float(np.float32(0.1))  # above 0.1
    below = float(np.nextafter(np.float32(0.1), np.float32(0)))
    assert down == [below, -tenth, largest, -smallest]
    assert up == [tenth, -below, math.inf, 0]
    assert to_zero == [below, -below, largest, 0]


def test_scans_copies_and_matches_of_groups() -> None:
    source = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/scan.h>
    #include <cooperative_groups/memcpy_async.h>
    #include <cuda_pipeline.h>
    namespace cg = cooperative_groups;
    __global__ void k(int *out, const int *in) {
        __shared__ int kept[64], more[64];
        cg::thread_block block = cg::this_thread_block();
        cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::tiled_partition<32>(block));
        int i = threadIdx.x, all;
        cg::memcpy_async(block, kept, in, sizeof(int) * 64);
        cg::wait(block);
        __pipeline_memcpy_async(&more[i], &in[i], sizeof(int));
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        out[i] = cg::inclusive_scan(tile, kept[63 - i], cg::greater<int>());
        out[64 + i] = cg::exclusive_scan(tile, more[63 - i]);
        out[128 + i] = cg::exclusive_scan(tile, kept[i], cg::plus<int>());
        out[192 + i] = __match_all_sync(0xffffffffu, i / 32, &all) == 0xffffffffu && all;
        out[256 + i] = __match_all_sync(0xffffffffu, i, &all) + all;
        cg::invoke_one(tile, [&](int by) { out[320 + i / 16] += by; }, 7);
    }"""
    given = np.random.default_rng(3).integers(0, 100, 64).astype(np.int32)
    out, _ = run_kernel(source, "k", np.zeros(384, np.int32), given, block=64)
    tiles = given.reshape(4, 16)
    backwards = given[::-1].reshape(4, 16)
    np.testing.assert_array_equal(out[:64], np.maximum.accumulate(backwards, axis=1).ravel())
    np.testing.assert_array_equal(out[64:128], (np.cumsum(backwards, axis=1) - backwards).ravel())
    np.testing.assert_array_equal(out[128:192], (np.cumsum(tiles, axis=1) - tiles).ravel())
    assert out[192:256].tolist() == [1] * 64
    assert out[256:320].tolist() == [0] * 64
    assert out[320:].tolist() == [7] * 4 + [0] * 60


def test_limits_traits_and_arrays_of_the_standard_library() -> None:
    source = """
    #include <cuda/std/algorithm>
    #include <cuda/std/array>
    #include <cuda/std/limits>
    #include <type_traits>
    template <typename T> __global__ void k(T *out) {
        cuda::std::array<T, 3> a = {1, 2, 3};
        a[1] = cuda::std::numeric_limits<signed char>::max();
        out[0] = a[0] + a[1] + a.size(); out[1] = cuda::std::numeric_limits<T>::max();
        out[2] = cuda::std::clamp(5, 1, 3);
        out[3] = std::is_integral<T>::value + 10 * std::is_floating_point_v<T>
            + 100 * std::is_same_v<std::decay_t<T &>, T>;
    }"""
    [out] = run_kernel(source, "k<int>", np.zeros(4, np.int32), block=1)
    assert out.tolist() == [131, 2**31 - 1, 3, 101]


@pytest.mark.parametrize("call", ["__ldg(&in[i + 1])", "cg::reduce(tile, *(in + i + 1), Reads{in})"])
def test_what_a_header_s_function_does_is_shown_where_it_is_called(call: str) -> None:
    source = f"""#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    struct Reads {{ const int *in; __device__ int operator()(int a, int b) const {{ return a + b; }} }};
    __global__ void k(int *out, const int *in) {{
        int i = threadIdx.x;
        auto tile = cg::tiled_partition<32>(cg::this_thread_block());
        out[i] = {call};
    }}"""
    with pytest.raises(LaunchError, match=r"^test\.cu:7:\d+: Invalid __global__ read .* thread \(31,0,0\)") as caught:
        run_kernel(source, "k", np.zeros(32, np.int32), np.zeros(32, np.int32))
    assert caught.value.thread == "thread (31,0,0) in block (0,0,0)"


def test_counters_of_a_header_s_functions_are_those_of_the_lines_that_call_them() -> None:
    source = """#include <cooperative_groups.h>
    __global__ void k(int *out, const int *in) {
        auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
        int v = __ldg(&in[threadIdx.x]);
        out[threadIdx.x] = cooperative_groups::inclusive_scan(tile, v);
    }"""
    counters = Counters()
    memories = [np.zeros(128, np.uint8), np.ones(32, np.int32).view(np.uint8)]
    build(source).kernel("k").launch((1, 1, 1), (32, 1, 1), memories, observers=[counters])
    assert memories[0].view(np.int32).tolist() == list(range(1, 33))
    assert set(counters.per_line()) == {("test.cu", line) for line in (3, 4, 5)}
