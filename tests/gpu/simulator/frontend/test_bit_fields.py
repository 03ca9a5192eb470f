"""Bit fields: the layout of the host's compiler, and conversions as C++ defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError
from tests.gpu.simulator.kernel_runner import build, run_kernel

Array = np.ndarray[Any, Any]

DECLARATION = """struct Packet {
    int low : 3; int high : 5; unsigned count : 7;
    char letter;
    unsigned short rank : 4;
    bool last : 1;
    unsigned rest : 30;
    long long wide : 40;
};
"""


# The first bit of each field, by the ABI of the host's compiler, and a value.
FIELDS = {
    "low": (0, 3, -4),
    "high": (3, 5, 15),
    "count": (8, 7, 101),
    "rank": (24, 4, 9),
    "last": (28, 1, 1),
    "rest": (32, 30, 0x2FEDCBA9),
    "wide": (64, 40, -(2**38) - 5),
}


def pack_values() -> Array:
    """Return a Packet with the values of `FIELDS`, and the letter k."""
    bits = ord("k") << 16
    for first, width, value in FIELDS.values():
        bits |= (value & (2**width - 1)) << first
    return np.frombuffer(bits.to_bytes(16, "little"), np.uint8)


def test_fields_are_at_the_bits_of_the_host() -> None:
    statements = "".join(f"v[{n}] = p[0].{name}; p[1].{name} = v[{n}];\n" for n, name in enumerate(FIELDS))
    source = f"""{DECLARATION}
    __global__ void f(Packet *p, long long *v) {{ {statements} p[1].letter = p[0].letter; p[2] = p[0]; }}"""
    packets = np.concatenate([pack_values(), np.zeros(32, np.uint8)])
    packets, values = run_kernel(source, "f", packets, np.zeros(len(FIELDS), np.int64), block=1)
    assert values.tolist() == [value for _, _, value in FIELDS.values()]
    assert packets.tolist() == 3 * pack_values().tolist()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p.low = 5", -3),
        ("p.high++", 1),
        ("++p.low", 2),
        ("p.low -= 6", 3),
        ("p.count <<= 6", 64),
        ("p.count -= 2", 127),
        ("p.count - 2 < 0", 1),
        ("p.low = p.high = 14", -2),
        ("p.letter = 'a', p.count = 200, p.letter", ord("a")),
        ("p.rank = 17, (p.rank)", 1),
        ("p.wide = 1LL << 39, p.wide < 0", 1),
        ("[](const unsigned &r) { return r + 1; }(p.count)", 2),
        ("Packet{2, -7, 100, 'x', 3}.high", -7),
        ("Packet{.low = 2, .rank = 11}.rank", 11),
        ("make(3).count", 10),
        ("Point(6).y", -4),
        ("Point(6).x", 0),
    ],
)
def test_values_of_expressions(expression: str, expected: int) -> None:
    source = f"""{DECLARATION}
    struct Point {{ int x : 6; int y : 4; __device__ Point(int n) : y(-n + 2) {{}} }};
    __device__ Packet make(int n) {{ Packet made = {{1, 1, 7}}; made.count += n; return made; }}
    __global__ void f(long long *out) {{ Packet p = {{1, 1, 1}}; out[0] = ({expression}); }}"""
    (out,) = run_kernel(source, "f", np.zeros(1, np.int64), block=1)
    assert out[0] == expected


def test_fields_of_unions_constants_and_base_classes() -> None:
    source = """union Number { struct { unsigned mantissa : 23, exponent : 8, sign : 1; }; float value; };
    struct Base { unsigned a : 4, b : 12; };
    struct Derived : Base { unsigned c : 5; };
    __constant__ Base table[2] = {{1, 300}, {2}};
    __global__ void f(int *out) {
        Number number; number.value = -6.0f; number.exponent += 1;
        Derived derived = {}; derived.b = 77; derived.c = 33;
        out[0] = number.mantissa >> 22; out[1] = number.sign; out[2] = (int)number.value;
        out[3] = table[0].b + table[1].a; out[4] = derived.b; out[5] = derived.c;
    }"""
    (out,) = run_kernel(source, "f", np.zeros(6, np.int32), block=1)
    assert out.tolist() == [1, 1, -12, 302, 77, 1]


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("struct __attribute__((packed)) P { char c; unsigned a : 20, b : 20; };", "the bit fields of P"),
        ("struct P { int a : 3 = 1; };", "the default initializer of the bit field a"),
    ],
)
def test_what_is_not_supported_is_refused(declaration: str, message: str) -> None:
    source = f"{declaration} __global__ void f(int *out) {{ P p; p.a = 1; out[0] = P{{}}.a; }}"
    with pytest.raises(CompileError, match=f"the simulator does not support {message}"):
        build(source).kernel("f")
