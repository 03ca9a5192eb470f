"""What C leaves undefined and a GPU does not, what runs lazily, and how close the math functions come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gpu.simulator.kernel_runner import build, launch, run_kernel

Array = np.ndarray[Any, Any]

C_NAMES = {
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}


def convert(values: Array, target: str) -> Array:
    """Convert on the simulator, and see to it that one value for all lanes converts as one a lane does."""
    source = f"""
    __global__ void convert(const {C_NAMES[str(values.dtype)]} *in, {C_NAMES[target]} *each, {C_NAMES[target]} *all) {{
        int i = threadIdx.x;
        each[i] = ({C_NAMES[target]})in[i];
        for (int k = 0; k < {values.size}; k++) {{
            auto value = in[k];
            all[k] = static_cast<{C_NAMES[target]}>(value);
        }}
    }}"""
    empty = np.zeros(values.size, target)
    _, each, one = run_kernel(source, "convert", values, empty, empty, block=values.size)
    np.testing.assert_array_equal(each, one)
    return each


# PTX ISA, cvt: "the result is clamped to the destination range".
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int32", "uint32", "int64", "uint64"])
def test_a_float_that_no_integer_holds_saturates(source: str, target: str) -> None:
    limits = np.iinfo(target)
    values = np.array([1e30, -1e30, np.inf, -np.inf, 2.0**64, -(2.0**63) * 1.5, -0.75, 1.99, -0.0], source)
    low, high = limits.min, limits.max
    right = np.array([high, low, high, low, high, low, 0, 1, 0], target)
    np.testing.assert_array_equal(convert(values, target), right)


@pytest.mark.parametrize("target", ["int32", "uint32"])
def test_nan_becomes_zero(target: str) -> None:
    np.testing.assert_array_equal(convert(np.array([np.nan, 1.0], np.float32), target), np.array([0, 1], target))


# PTX ISA, cvt: NaN gives zero only where the source is not .f64 and the destination not .s64 or .u64.
@pytest.mark.parametrize(
    ("source", "target"),
    [("float64", "int32"), ("float64", "uint32"), ("float32", "int64"), ("float64", "int64"), ("float64", "uint64")],
)
def test_nan_becomes_the_top_bit_where_64_bits_take_part(source: str, target: str) -> None:
    top = np.array([1], target) << (8 * np.dtype(target).itemsize - 1)
    assert convert(np.array([np.nan, 1.0], source), target)[0] == top[0]


def test_a_shift_by_the_width_or_more_leaves_nothing_but_the_sign() -> None:
    source = """
    __global__ void shift(const int *by, int *left, int *right, unsigned int *logical, int *uniform) {
        int i = threadIdx.x;
        left[i] = 5 << by[i];
        right[i] = -5 >> by[i];
        logical[i] = 0xf0000000u >> by[i];
        int all = by[4];
        uniform[i] = (i + 1 << all) + (-7 >> all) + (7 >> all);
    }"""
    by = np.array([0, 1, 31, 32, 33, 63, 64, 1000, 2147483647], np.int32)
    whole = np.zeros(by.size, np.int32)
    _, left, right, logical, uniform = run_kernel(
        source, "shift", by, whole, whole, whole.astype(np.uint32), whole, block=by.size
    )
    assert left.tolist() == [5, 10, -(2**31), 0, 0, 0, 0, 0, 0]
    assert right.tolist() == [-5, -3, -1, -1, -1, -1, -1, -1, -1]
    assert logical.tolist() == [0xF0000000, 0x78000000, 1, 0, 0, 0, 0, 0, 0]
    assert uniform.tolist() == [-1] * by.size


@pytest.mark.parametrize("type", ["int", "unsigned int", "long long", "unsigned long long"])
@pytest.mark.parametrize("operator", ["/", "%"])
def test_division_by_zero_disturbs_nobody(type: str, operator: str) -> None:
    source = f"""
    __global__ void divide(const {type} *a, const {type} *b, {type} *out, {type} *all) {{
        int i = threadIdx.x;
        out[i] = a[i] {operator} b[i];
        all[i] = a[3] {operator} b[2];
    }}"""
    dtype = {name: dtype for dtype, name in C_NAMES.items()}[type]
    a, b = np.array([7, 8, 9, 10], dtype), np.array([2, 3, 0, 4], dtype)
    *_, out, _ = run_kernel(source, "divide", a, b, np.zeros(4, dtype), np.zeros(4, dtype), block=4)
    assert out[[0, 1, 3]].tolist() == ([3, 2, 2] if operator == "/" else [1, 2, 2])


@pytest.mark.parametrize(("type", "dtype"), [("int", np.int32), ("long long", np.int64)])
def test_signed_integers_wrap(type: str, dtype: type[np.signedinteger[Any]]) -> None:
    source = f"""
    __global__ void wrap({type} low, {type} high, const {type} *in, {type} *out) {{
        {type} minus = in[1], one = in[2];
        out[0] = low / minus; out[1] = low % minus; out[2] = -low; out[3] = high + one; out[4] = low - one;
        out[5] = high * high; out[6] = in[0] / minus; out[7] = in[0] % minus; out[8] = -in[0]; out[9] = low * minus;
    }}"""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    given = np.array([low, -1, 1], dtype)
    _, out = run_kernel(source, "wrap", dtype(low), dtype(high), given, np.zeros(10, dtype), block=1)
    assert out.tolist() == [low, 0, low, low, high, 1, low, 0, low, low]


def test_infinity_and_nan_are_literals() -> None:
    source = """
    __global__ void literals(float *out) {
        out[0] = INFINITY; out[1] = -INFINITY; out[2] = NAN; out[3] = FLT_MAX; out[4] = 1.0f / 0.0f;
    }"""
    [out] = run_kernel(source, "literals", np.zeros(5, np.float32), block=1)
    np.testing.assert_array_equal(out, np.array([np.inf, -np.inf, np.nan, np.finfo(np.float32).max, np.inf], "f4"))


def test_the_right_side_of_a_logical_operator_is_lazy() -> None:
    source = """
    __global__ void lazy(const int *a, int n, int *out, int *count) {
        int i = threadIdx.x;
        if (i < n && a[i] > 0) out[i] |= 1;
        if (i >= n || a[i] > 0) out[i] |= 2;
        if (i < n / 2 && atomicAdd(&count[0], 1) >= 0) out[i] |= 4;
        if (i < n / 2 || atomicAdd(&count[1], 1) < 0) out[i] |= 8;
        if (n < 0 && a[n] > 0) out[i] |= 16;
        if (n > 0 || a[-1] > 0) out[i] |= 32;
        bool both = i < n && a[i] > 0 && a[a[i]] > 0;
        if (both) out[i] |= 64;
    }"""
    a = np.array([1, -1, 2, 0, 5, 1, 1, -3, 9, 0], np.int32)
    out, count = np.zeros(32, np.int32), np.zeros(2, np.int32)
    a[8] = 0
    _, out, count = run_kernel(source, "lazy", a, np.int32(10), out, count)
    lane = np.arange(32)
    positive = np.concatenate([a > 0, np.zeros(22, bool)])
    assert count.tolist() == [5, 27]
    np.testing.assert_array_equal((out & 1) != 0, positive)
    np.testing.assert_array_equal((out & 2) != 0, positive | (lane >= 10))
    np.testing.assert_array_equal((out & 4) != 0, lane < 5)
    np.testing.assert_array_equal((out & 8) != 0, lane < 5)
    assert ((out & 48) == 32).all()
    np.testing.assert_array_equal((out & 64) != 0, [bool(positive[i] and a[a[i]] > 0) for i in range(32)])


def test_only_one_side_of_a_conditional_runs() -> None:
    source = """
    __device__ int touch(int *count, int value) { atomicAdd(count, 1); return value; }
    __global__ void choose(const int *a, int n, int *out, int *count) {
        int i = threadIdx.x, left = 0, right = 0;
        out[i] = i < n ? a[i] : -1;
        out[32 + i] = i >= n ? -1 : a[i];
        int chosen = i % 3 == 0 ? ++left : (right += 10);
        out[64 + i] = 100 * chosen + left + right;
        out[96 + i] = i < 7 ? touch(count, i) : i < 9 ? touch(count + 1, -i) : 0;
        n > 0 ? out[128] = 1 : out[1 << 20] = 1;
    }"""
    a = np.arange(10, 16, dtype=np.int32)
    _, out, count = run_kernel(source, "choose", a, np.int32(6), np.zeros(129, np.int32), np.zeros(2, np.int32))
    padded = [10, 11, 12, 13, 14, 15] + [-1] * 26
    assert out[:32].tolist() == padded
    assert out[32:64].tolist() == padded
    assert out[64:96].tolist() == [101 if i % 3 == 0 else 1010 for i in range(32)]
    assert out[96:128].tolist() == [i if i < 7 else -i if i < 9 else 0 for i in range(32)]
    assert count.tolist() == [7, 2]
    assert out[128] == 1


def test_an_assignment_evaluates_its_right_side_first() -> None:
    """As C++17 says: the value on the right is computed, with all that it changes, before the place on the left."""
    source = """
    __device__ int next(int *a) { a[0] += 10; return 1; }
    __global__ void order(int *out) {
        int i = 0, x = 1, y = 5;
        out[i] = i++;
        x += (x = 3);
        out[2] = x;
        out[3] = 5;
        out[3] += next(out + 3);
        y = y++ + 1;
        out[4] = y;
    }"""
    [out] = run_kernel(source, "order", np.zeros(5, np.int32), block=1)
    assert out.tolist() == [0, 0, 6, 16, 6]


@pytest.mark.parametrize(
    ("statement", "a", "b", "stored"),
    [
        ("(a += 2) *= 3;", 9, 2, 0),
        ("++(++b);", 1, 4, 0),
        ("(i % 2 ? a : b) += 100;", [1, 101, 1, 101], [102, 2, 102, 2], 0),
        ("(out[i] = a) += b;", 1, 2, 3),
    ],
)
def test_an_assignment_may_be_assigned_to(statement: str, a: object, b: object, stored: int) -> None:
    source = f"""__global__ void f(int *out) {{
        int a = 1, b = 2, i = threadIdx.x;
        {statement}
        out[i + 4] = a;
        out[i + 8] = b;
    }}"""
    [out] = run_kernel(source, "f", np.zeros(12, np.int32), block=4)
    expected = [np.broadcast_to(values, 4) for values in (stored, a, b)]
    np.testing.assert_array_equal(out.reshape(3, 4), expected)


def max_ulp_error(found: Array, right: Array) -> float:
    """Return the largest error in units of the last place of the right answer, which is known more precisely."""
    spacing = np.spacing(np.abs(right.astype(found.dtype))).astype(right.dtype)
    exact = (found == right) | (np.isnan(found) & np.isnan(right)) | (found == right.astype(found.dtype))
    error = np.where(exact, 0, np.abs(found.astype(right.dtype) - right) / spacing)
    assert not np.isnan(error).any(), "NaN or infinity where there should be a number, or the other way round"
    return float(error.max())


def draw_spread(low: float, high: float) -> Array:
    return np.random.default_rng(7).uniform(low, high, 500)


# What NumPy's vectorized functions promise, and about what CUDA's do; sqrt and those that only round are exact.
ULPS = 4
ONE_ARGUMENT: dict[str, tuple[Callable[[Any], Any], int, Array]] = {
    "sqrt": (np.sqrt, 0, np.concatenate([draw_spread(0, 1e6), [0.0, np.inf, -1.0, np.nan]])),
    "rsqrt": (lambda x: 1 / np.sqrt(x), ULPS, np.concatenate([draw_spread(1e-6, 1e6), [np.inf, 0.0, 1.0]])),
    "cbrt": (np.cbrt, ULPS, draw_spread(-1e6, 1e6)),
    "exp": (np.exp, ULPS, np.concatenate([draw_spread(-80, 80), [0.0, -np.inf, np.inf, 100.0 * 8, np.nan]])),
    "exp2": (np.exp2, ULPS, draw_spread(-120, 120)),
    "log": (np.log, ULPS, np.concatenate([draw_spread(1e-6, 1e6), [1.0, 0.0, np.inf, -1.0]])),
    "log2": (np.log2, ULPS, np.concatenate([draw_spread(1e-6, 1e6), [1.0, 1024.0]])),
    "log10": (np.log10, ULPS, draw_spread(1e-6, 1e6)),
    "sin": (np.sin, ULPS, draw_spread(-100, 100)),
    "cos": (np.cos, ULPS, draw_spread(-100, 100)),
    "tan": (np.tan, ULPS, draw_spread(-1.5, 1.5)),
    "tanh": (np.tanh, ULPS, draw_spread(-10, 10)),
    "fabs": (np.abs, 0, np.array([-0.0, -1.5, np.inf, -np.inf])),
    "floor": (np.floor, 0, np.array([-1.5, -0.0, 0.5, 2.5, 1e30, -np.inf])),
    "ceil": (np.ceil, 0, np.array([-1.5, -0.5, 0.5, 2.5, 1e30, -np.inf])),
    "trunc": (np.trunc, 0, np.array([-1.5, -0.5, 0.5, 2.5, 1e30, -np.inf])),
    "rint": (np.rint, 0, np.array([-1.5, -0.5, 0.5, 1.5, 2.5, 1e30])),
    "round": (
        lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
        0,
        np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e30]),
    ),
}
TWO_ARGUMENTS: dict[str, tuple[Callable[[Any, Any], Any], int, Array, Array]] = {
    "pow": (np.power, ULPS, draw_spread(0.01, 100), draw_spread(-10, 10)[::-1]),
    "atan2": (np.arctan2, ULPS, draw_spread(-10, 10), draw_spread(-10, 10)[::-1]),
    "hypot": (np.hypot, ULPS, draw_spread(-1e5, 1e5), draw_spread(-1e5, 1e5)[::-1]),
    "fmod": (np.fmod, 0, draw_spread(-100, 100), draw_spread(0.5, 10)[::-1]),
    "fmin": (np.fmin, 0, np.array([1, np.nan, 2, -0.5, np.inf]), np.array([2, 3, np.nan, -1, 5])),
    "fmax": (np.fmax, 0, np.array([1, np.nan, 2, -0.5, np.inf]), np.array([2, 3, np.nan, -1, 5])),
}


@pytest.mark.parametrize("name", [*ONE_ARGUMENT, *TWO_ARGUMENTS])
def test_math_functions_stay_within_their_ulps(name: str) -> None:
    reference, bound, *inputs = ONE_ARGUMENT[name] if name in ONE_ARGUMENT else TWO_ARGUMENTS[name]
    count = inputs[0].size
    arguments = ", ".join(f"{'xy'[place]}[i]" for place in range(len(inputs)))
    pointers = ", ".join(f"const T *{'xy'[place]}" for place in range(len(inputs)))
    functions = (("single", "float", f"{name}f"), ("overloaded", "float", name), ("wide", "double", name))
    module = build(
        "".join(
            f"__global__ void {kernel}({pointers.replace('T', type)}, {type} *out) "
            f"{{ int i = threadIdx.x; out[i] = {function}({arguments}); }}\n"
            for kernel, type, function in functions
        )
    )
    for kernel, type, _ in functions:
        dtype, wider = (np.float32, np.float64) if type == "float" else (np.float64, np.longdouble)
        given = [np.asarray(values).astype(dtype) for values in inputs]
        *_, out = launch(module, kernel, *given, np.zeros(count, dtype), block=count)
        with np.errstate(all="ignore"):
            right = reference(*(values.astype(wider) for values in given))
            assert max_ulp_error(out, right) <= bound, f"{name}, {kernel}"


def test_a_fused_multiply_add_rounds_once() -> None:
    source = """
    __global__ void fused(const float *in, float *out) {
        out[0] = fmaf(in[0], in[0], in[1]);
        out[1] = __fmul_rn(in[0], in[0]) + in[1];
    }"""
    x = np.float32(1 + 2.0**-12)
    _, out = run_kernel(source, "fused", np.array([x, -1], np.float32), np.zeros(2, np.float32), block=1)
    assert out[0] == np.float32(2.0**-11 + 2.0**-24)
    assert out[1] == np.float32(2.0**-11)


def test_functions_on_bits() -> None:
    source = """
    __global__ void bits(const unsigned int *in, int *out, unsigned int *reversed) {
        int i = threadIdx.x;
        out[i] = __popc(in[i]);
        out[8 + i] = __clz((int)in[i]);
        out[16 + i] = __ffs((int)in[i]);
        reversed[i] = __brev(in[i]);
    }"""
    given = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x00FF00F0, 12345, 0x7FFFFFFF], np.uint32)
    _, out, reverse = run_kernel(source, "bits", given, np.zeros(24, np.int32), np.zeros(8, np.uint32), block=8)
    texts = [f"{value:032b}" for value in given]
    assert out[:8].tolist() == [text.count("1") for text in texts]
    assert out[8:16].tolist() == [(text + "1").index("1") for text in texts]
    assert out[16:].tolist() == [text[::-1].find("1") + 1 for text in texts]
    assert reverse.tolist() == [int(text[::-1], 2) for text in texts]


def test_min_max_and_abs_by_type() -> None:
    source = """
    __global__ void extremes(const int *in, int *whole, float *real, unsigned int *natural, long long *wide) {
        whole[0] = min(in[0], in[1]); whole[1] = max(in[0], in[1]); whole[2] = abs(in[0]);
        real[0] = min(1.5f, (float)in[1]); real[1] = max(1.5f, (float)in[1]);
        natural[0] = min((unsigned int)in[0], 7u); natural[1] = max((unsigned int)in[0], 7u);
        wide[0] = min((long long)in[0], 1ll << 40); wide[1] = llabs((long long)in[0] * 4000000000ll);
    }"""
    given = np.array([-5, 3], np.int32)
    _, whole, real, natural, wide = run_kernel(
        source, "extremes", given, np.zeros(3, "i4"), np.zeros(2, "f4"), np.zeros(2, "u4"), np.zeros(2, "i8"), block=1
    )
    assert whole.tolist() == [-5, 3, 5]
    assert real.tolist() == [1.5, 3.0]
    assert natural.tolist() == [7, 2**32 - 5]
    assert wide.tolist() == [-5, 20_000_000_000]
