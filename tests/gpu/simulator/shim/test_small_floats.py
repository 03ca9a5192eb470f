"""Numbers of 8 and 16 bits: conversions against tables of all their values, arithmetic against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gpu.simulator.kernel_runner import run_kernel

Array = np.ndarray[Any, Any]

KINDS = {"e4m3": (4, 3, 448.0), "e5m2": (5, 2, 57344.0)}
"""The bits of exponent and of fraction, and the largest number, as the OCP's specification of 8 bits has them."""


def decode_all_values(kind: str) -> Array:
    """Return what each of the 256 means, by the definition of the format."""
    exponents, fractions, _ = KINDS[kind]
    bias = 2 ** (exponents - 1) - 1
    table = np.zeros(256)
    for bits in range(256):
        exponent, fraction = bits >> fractions & (2**exponents - 1), bits & (2**fractions - 1)
        size = fraction * 2.0 ** (1 - bias - fractions) if exponent == 0 else 0.0
        if exponent:
            size = (1 + fraction / 2**fractions) * 2.0 ** (exponent - bias)
        if kind == "e4m3" and bits & 0x7F == 0x7F:
            size = np.nan
        if kind == "e5m2" and exponent == 31:
            size = np.nan if fraction else np.inf
        table[bits] = -size if bits & 0x80 else size
    return table


def encode_nearest(kind: str, given: Array, saturates: bool) -> Array:
    """Return the bits of what is nearest, of two the even one; what is too large becomes the largest, or no number."""
    table, largest = decode_all_values(kind), KINDS[kind][2]
    sizes = np.array([table[bits] for bits in range(128) if np.isfinite(table[bits])])
    step = sizes[-1] - sizes[-2]
    found = []
    for value in given.astype(np.float64):
        if np.isnan(value):
            found.append(0x7F)
            continue
        size, sign = abs(value), 0x80 if np.signbit(value) else 0
        away = np.abs(sizes - size)
        bits = min(np.flatnonzero(away == away.min()), key=lambda each: each % 2)
        # Beyond half a step more than the largest it is too large; half a step itself goes to the even one.
        if size > largest + step / 2 or (size == largest + step / 2 and bits % 2):
            bits = len(sizes) - 1 if saturates else {"e4m3": 0x7F, "e5m2": 0x7C}[kind]
        found.append(int(bits) | sign)
    return np.array(found, np.uint8)


@pytest.mark.parametrize("kind", list(KINDS))
def test_numbers_of_8_bits_are_rounded_and_read_as_their_format_says(kind: str) -> None:
    source = f"""
    #include <cuda_fp8.h>
    __global__ void k(const float *in, unsigned char *kept, unsigned char *open, unsigned char *twice, float *read) {{
        int i = threadIdx.x + blockIdx.x * blockDim.x;
        kept[i] = __nv_fp8_{kind}(in[i]).__x;
        open[i] = __nv_cvt_float_to_fp8(in[i], __NV_NOSAT, __NV_{kind.upper()});
        twice[i] = __nv_fp8_{kind}((double)in[i] * (1 + 1e-9)).__x;
        __nv_fp8x4_{kind} four(make_float4(in[i], in[i], 1, in[i])), wide(__half2(1, 2), __half2(3, 4));
        if (i < 256) {{
            __nv_fp8_{kind} one;
            one.__x = i;
            read[i] = (float)one;
            read[256 + i] = __half2float(__nv_cvt_fp8_to_halfraw(i, __NV_{kind.upper()}));
        }} else {{
            read[256 + i] = float4(wide).z == 3 ? float4(four).w : 0;
        }}
    }}"""
    table = decode_all_values(kind)
    numbers = np.unique(np.abs(table[np.isfinite(table)]))
    between = (numbers[1:] + numbers[:-1]) / 2  # the ties, and what is just beside them
    some = np.concatenate(
        [numbers, between, between * (1 + 1e-6), between * (1 - 1e-6), numbers[-1:] * [1.0625, 1.125]]
    )
    some = np.concatenate([some, some[-2:] * 1.0001, [1e-30, 3e38, np.inf, np.nan]]).astype(np.float32)
    given = np.resize(np.concatenate([some, -some[:-1]]), 1280).astype(np.float32)
    bytes_ = np.zeros(given.size, np.uint8)
    read = np.zeros(given.size + 256, np.float32)
    _, kept, left, twice, read = run_kernel(source, "k", given, bytes_, bytes_, bytes_, read, grid=5, block=256)
    np.testing.assert_array_equal(kept, encode_nearest(kind, given, True))
    np.testing.assert_array_equal(left, encode_nearest(kind, given, False))
    np.testing.assert_array_equal(twice, encode_nearest(kind, given.astype(np.float64) * (1 + 1e-9), True))
    np.testing.assert_array_equal(read[:256], table.astype(np.float32))
    np.testing.assert_array_equal(read[256:512], table.astype(np.float32))
    np.testing.assert_array_equal(read[512:], table[kept[256:]].astype(np.float32))


def round_to_bfloat16(values: Array) -> Array:
    """Round to the nearest float with the lower half zero, of two that are as near to the even one."""
    words = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return (((words + 0x7FFF + (words >> 16 & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("header", "type", "short", "rounded"),
    [
        ("cuda_fp16.h", "__half", "half", lambda values: values.astype(np.float16).astype(np.float32)),
        ("cuda_bf16.h", "__nv_bfloat16", "bfloat16", round_to_bfloat16),
    ],
    ids=["half", "bfloat16"],
)
def test_each_result_of_16_bits_is_rounded(header: str, type: str, short: str, rounded: Any) -> None:
    pair = {"half": "__half2", "bfloat16": "__nv_bfloat162"}[short]
    source = f"""
    #include <{header}>
    __global__ void k(const float *in, float *out, {type} *sum, {pair} *both) {{
        int i = threadIdx.x;
        {type} x = __float2{short}(in[i]), y = __float2{short}_rn(in[i + 32]);
        float *to = out + 12 * i;
        to[0] = x, to[1] = __hadd(x, y), to[2] = x * y, to[3] = __hdiv(x, y), to[4] = __hfma(x, y, y);
        to[5] = __hmax(x, y), to[6] = hexp(y), to[7] = __{short}2int_rn(x * y);
        to[8] = __float2{short}_rz(in[i]), to[9] = __float2{short}_ru(in[i]), to[10] = __float2{short}_rd(in[i]);
        to[11] = __shfl_xor_sync(0xffffffffu, x, 1);
        atomicAdd(sum, __int2{short}_rn(1));
        {pair} two(x, y);
        two = __shfl_down_sync(0xffffffffu, two, 1);
        if (i == 0) *both = two + __hmul2(two, two);
    }}"""
    random = np.random.default_rng(3)
    given = random.uniform(-8, 8, 64).astype(np.float32)
    out, sums = np.zeros(12 * 32, np.float32), np.zeros(1, np.uint16)
    _, out, count, both = run_kernel(source, "k", given, out, sums, np.zeros(2, np.uint16), block=32)
    a, b = rounded(given[:32]), rounded(given[32:])
    made = out.reshape(32, 12).T
    fused = (a.astype(np.float64) * b + b).astype(np.float32)
    for got, wanted in zip(made, [a, a + b, a * b, a / b, fused, np.maximum(a, b), np.exp(b)], strict=False):
        np.testing.assert_array_equal(got, rounded(wanted))
    np.testing.assert_array_equal(made[7], np.rint(rounded(a * b)))
    toward, up, down = made[8:11]
    assert (np.abs(toward) <= np.abs(given[:32])).all()
    assert ((down <= given[:32]) & (given[:32] <= up)).all()
    assert (((a == up) | (a == down)) & ((toward == up) | (toward == down))).all()
    np.testing.assert_array_equal(made[11], a.reshape(16, 2)[:, ::-1].ravel())

    def number(bits: Array) -> Array:
        return bits.view(np.float16) if short == "half" else (bits.astype(np.uint32) << 16).view(np.float32)

    assert number(count) == 32
    next_of_each = np.array([a[1], b[1]])
    np.testing.assert_array_equal(number(both), rounded(next_of_each + rounded(next_of_each * next_of_each)))


def test_pairs_compare_as_cuda_has_it_also_with_what_is_no_number() -> None:
    """An operator is true where both halves are; != is the unordered one, which what is no number makes true."""
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    template <typename Pair> __device__ unsigned all(Pair a, Pair b) {
        return (a == b) | (a != b) << 1 | (a < b) << 2 | (a > b) << 3 | (a <= b) << 4 | (a >= b) << 5;
    }
    __global__ void k(const float *v, unsigned *out) {
        const float *p = v + 4 * threadIdx.x;
        half2 a(p[0], p[1]), b(p[2], p[3]);
        unsigned *mine = out + 4 * threadIdx.x;
        mine[0] = all(a, b);
        mine[1] = all(__nv_bfloat162(p[0], p[1]), __nv_bfloat162(p[2], p[3]));
        mine[2] = __hgtu2_mask(a, b);
        mine[3] = __hble2(a, b) | __hbequ2(a, b) << 1;
    }"""
    nan = np.nan
    given = np.array([[1, 2, 1, 2], [1, 2, 1, 3], [1, 2, 3, 4], [nan, 5, 1, 1], [nan, nan, 1, 1]], np.float32)
    out = run_kernel(source, "k", given, np.zeros((5, 4), np.uint32), block=5)[1]
    a, b = given[:, :2], given[:, 2:]
    orders = (np.equal, np.not_equal, np.less, np.greater, np.less_equal, np.greater_equal)
    right = sum(order(a, b).all(axis=1).astype(np.uint32) << bit for bit, order in enumerate(orders))
    np.testing.assert_array_equal(out[:, 0], right)
    np.testing.assert_array_equal(out[:, 1], right)
    np.testing.assert_array_equal(out[:, 2], (~(a <= b)) @ np.array([0xFFFF, 0xFFFF0000], np.uint32))
    np.testing.assert_array_equal(out[:, 3], (a <= b).all(axis=1) | (~((a < b) | (a > b))).all(axis=1) << np.uint32(1))


def test_float8_is_made_of_integers_of_every_size_and_of_pairs_of_doubles() -> None:
    source = """
    #include <cuda_fp8.h>
    __global__ void k(unsigned *out) {
        __nv_fp8_e4m3 a((short)-17), b(1000ll), c(19ul);
        out[0] = a.__x, out[1] = b.__x, out[2] = c.__x;
        out[3] = (unsigned)c + (long long)a;
        out[4] = __nv_cvt_double2_to_fp8x2(make_double2(0.5, -2.0), __NV_SATFINITE, __NV_E5M2);
    }"""
    [out] = run_kernel(source, "k", np.zeros(5, np.uint32), block=1)
    # 17 lies between 16 and 18, 19 between 18 and 20: of two that are as near the even one; 1000 is beyond 448.
    assert out.tolist() == [0x80 | 11 << 3, 0x7E, 11 << 3 | 2, 20 - 16, 14 << 2 | (0x80 | 16 << 2) << 8]
