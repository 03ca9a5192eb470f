"""Inline PTX, instruction by instruction, against what the PTX ISA says of each, in Python's whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import CompileError
from tests.gpu.simulator.kernel_runner import build, launch

WORD, LONG = 1 << 32, 1 << 64
NUMBERS = [0, 1, 2, 7, 31, 32, 33, 0x80, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF]


def _to_signed(x: int) -> int:
    return x - WORD if x >> 31 else x


def _prmt(a: int, b: int, how: int) -> int:
    both = (b << 32 | a).to_bytes(8, "little")
    found = []
    for place in range(4):
        chosen = how >> 4 * place & 15
        byte = both[chosen & 7]
        found.append((0xFF if byte >> 7 else 0) if chosen & 8 else byte)
    return int.from_bytes(bytes(found), "little")


def _bfe(a: int, place: int, length: int, *, signed: bool) -> int:
    """As the ISA's pseudocode has it, bit by bit."""
    place, length = place & 0xFF, length & 0xFF
    sign = 0 if not signed or length == 0 else a >> min(place + length - 1, 31) & 1
    return sum((a >> place + bit & 1 if bit < length and place + bit <= 31 else sign) << bit for bit in range(32))


def _bfi(a: int, b: int, place: int, length: int) -> int:
    place, length = place & 0xFF, length & 0xFF
    for bit in range(length):
        if place + bit <= 31:
            b = b & ~(1 << place + bit) | (a >> bit & 1) << place + bit
    return b


def _lop3(table: int) -> Callable[[int, int, int], int]:
    return lambda a, b, c: sum(
        (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1) & 1) << bit for bit in range(32)
    )


# Of words a, b, c: the instruction's text, with %0 for the result and %1, %2, %3 for them, and what it gives.
INSTRUCTIONS: dict[str, Callable[[int, int, int], int]] = {
    "mad.lo.s32 %0, %1, %2, %3;": lambda a, b, c: a * b + c,
    "mad.lo.u32 %0, %1, 3, -1;": lambda a, b, c: a * 3 - 1,
    "mul.hi.u32 %0, %1, %2;": lambda a, b, c: a * b >> 32,
    "mul.hi.s32 %0, %1, %2;": lambda a, b, c: _to_signed(a) * _to_signed(b) >> 32,
    "prmt.b32 %0, %1, %2, %3;": _prmt,
    "prmt.b32 %0, %1, %2, 0x3b71;": lambda a, b, c: _prmt(a, b, 0x3B71),
    "lop3.b32 %0, %1, %2, %3, 0x96;": _lop3(0x96),
    "lop3.b32 %0, %1, %2, %3, 0xE8;": _lop3(0xE8),
    "lop3.b32 %0, %1, %2, %3, 0x1b;": _lop3(0x1B),
    "bfe.u32 %0, %1, %2, %3;": lambda a, b, c: _bfe(a, b, c, signed=False),
    "bfe.s32 %0, %1, %2, %3;": lambda a, b, c: _bfe(a, b, c, signed=True),
    "bfe.s32 %0, %1, 4, 8;": lambda a, b, c: _bfe(a, 4, 8, signed=True),
    "bfi.b32 %0, %1, %2, 5, %3;": lambda a, b, c: _bfi(a, b, 5, c),
    "bfi.b32 %0, %1, %2, %3, 9;": lambda a, b, c: _bfi(a, b, c, 9),
    "shf.l.wrap.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    "shf.r.wrap.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "shf.l.clamp.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
    "shf.r.clamp.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "shl.b32 %0, %1, %2;": lambda a, b, c: a << min(b, 32),
    "shr.u32 %0, %1, %2;": lambda a, b, c: a >> min(b, 32),
    "shr.s32 %0, %1, %2;": lambda a, b, c: _to_signed(a) >> min(b, 31),
    "popc.b32 %0, %1;": lambda a, b, c: a.bit_count(),
    "clz.b32 %0, %1;": lambda a, b, c: 32 - a.bit_length(),
    "bfind.u32 %0, %1;": lambda a, b, c: a.bit_length() - 1,
    "brev.b32 %0, %1;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "min.s32 %0, %1, %2;": lambda a, b, c: min(_to_signed(a), _to_signed(b)),
    "max.u32 %0, %1, %2;": lambda a, b, c: max(a, b),
    "{ .reg .u32 t; xor.b32 t, %1, %2; not.b32 %0, t; }": lambda a, b, c: ~(a ^ b),
    "{ .reg .pred p<2>; setp.lt.s32 p0, %1, %2; setp.ne.and.u32 p1, %3, 0, p0;\n"
    "  selp.b32 %0, %1, 77, p1; }": lambda a, b, c: a if _to_signed(a) < _to_signed(b) and c else 77,
    "{ .reg .pred p; mov.u32 %0, 5; setp.gt.u32 p, %1, %2; @p add.u32 %0, %0, %3; @!p mov.b32 %0, %2; }": (
        lambda a, b, c: 5 + c if a > b else b
    ),
    "{ .reg .b64 t; .reg .u32 u, v; mov.b64 t, {%1, %2}; shr.u64 t, t, 16; mov.b64 {u, v}, t; add.u32 %0, u, v; }": (
        lambda a, b, c: ((b << 32 | a) >> 16) % WORD + ((b << 32 | a) >> 48)
    ),
    "{ .reg .u64 t; mul.wide.u32 t, %1, %2; mad.wide.u32 t, %3, 2, t; cvt.u32.u64 %0, t; }": lambda a, b, c: (
        a * b + 2 * c
    ),
    "{ .reg .s16 t; cvt.s16.s32 t, %1; cvt.s32.s16 %0, t; }": lambda a, b, c: (a & 0xFFFF) - (a >> 15 & 1) * 0x10000,
    "dp4a.u32.u32 %0, %1, %2, %3;": lambda a, b, c: (
        c + sum(x * y for x, y in zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True))
    ),
    "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;": lambda a, b, c: (
        c + sum(abs(x - y) for x, y in zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True))
    ),
    "add.cc.u32 %0, %1, %2; addc.u32 %0, %3, 0;": lambda a, b, c: c + (a + b >= WORD),
    "sub.cc.u32 %0, %1, %2; subc.cc.u32 %0, %3, 1; subc.u32 %0, 0, 0;": lambda a, b, c: -(c - 1 - (a < b) < 0),
    "mad.lo.cc.u32 %0, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0;": lambda a, b, c: a * b + c >> 32,
}


def _run_on_both(source: str, *arrays: np.ndarray, block: int) -> list[np.ndarray]:
    """Run `f` on both executors, and return what it leaves in its arrays."""
    module = build(source)
    found = launch(module, "f", *arrays, block=block)
    given = [each.copy() for each in arrays]
    module.compiled_kernel("f").launch((1, 1, 1), (block, 1, 1), [each.view(np.uint8).ravel() for each in given])
    for lockstep, compiled in zip(found, given, strict=True):
        np.testing.assert_array_equal(compiled, lockstep)
    return found


def test_instructions_give_what_the_isa_says():
    """All of them in one kernel, a thread for each three words."""
    drawn = np.random.default_rng(3)
    words = np.array(
        [*drawn.choice(NUMBERS, (150, 3)), *drawn.integers(0, WORD, (60, 3)), *drawn.integers(0, 40, (30, 3))],
        np.uint32,
    )
    body = "\n".join(
        f'asm("{" ".join(text.split())}" : "=r"(out[{number}]) : "r"(a), "r"(b), "r"(c));'
        for number, text in enumerate(INSTRUCTIONS)
    )
    source = f"""
    __global__ void f(const unsigned *in, unsigned *all) {{
        unsigned a = in[3 * threadIdx.x], b = in[3 * threadIdx.x + 1], c = in[3 * threadIdx.x + 2];
        unsigned *out = all + {len(INSTRUCTIONS)} * threadIdx.x;
        {body}
    }}"""
    out = _run_on_both(source, words, np.zeros((len(words), len(INSTRUCTIONS)), np.uint32), block=len(words))[1]
    for number, (text, right) in enumerate(INSTRUCTIONS.items()):
        expected = [right(*map(int, each)) % WORD for each in words]
        np.testing.assert_array_equal(out[:, number], np.array(expected, np.uint32), err_msg=text)


SUM_OF_LONGS = build("""
__global__ void f(const unsigned *a, const unsigned *b, unsigned *out) {
    asm("add.cc.u32 %0, %1, %2;" : "=r"(out[0]) : "r"(a[0]), "r"(b[0]));
    asm("addc.cc.u32 %0, %1, %2;" : "=r"(out[1]) : "r"(a[1]), "r"(b[1]));
    asm volatile("addc.cc.u32 %0, %2, %3;\\n\\taddc.u32 %1, 0, 0;" : "=r"(out[2]), "=r"(out[3]) : "r"(a[2]), "r"(b[2]));
}""")


@settings(max_examples=25)
@given(st.integers(0, (1 << 96) - 1), st.integers(0, (1 << 96) - 1))
def test_a_carry_lasts_from_one_statement_to_the_next(a: int, b: int):
    def words(x: int, count: int) -> np.ndarray:
        return np.frombuffer(x.to_bytes(4 * count, "little"), np.uint32)

    *_, out = launch(SUM_OF_LONGS, "f", words(a, 3), words(b, 3), np.zeros(4, np.uint32), block=1)
    np.testing.assert_array_equal(out, words(a + b, 4))


def test_memory_atomics_and_special_registers():
    source = """
    #define LANE(x) asm volatile("mov.u32 %0, %%laneid;" : "=r"(x))
    template <typename T> __device__ T loaded(const T *p) {
        T value;
        asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1+4];" : "=r"(value) : "l"(p) : "memory");
        return value;
    }
    __global__ void f(unsigned *data, float *out, unsigned *sum) {
        unsigned lane, mask, smid, old;
        LANE(lane);
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
        asm("mov.u32 %0, %smid;" : "=r"(smid));
        float4 v;
        asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
            : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(out + 4 * lane));
        asm volatile("st.global.cg.v2.f32 [%0], {%1, %2};" ::"l"(out + 4 * lane), "f"(v.w), "f"(v.x) : "memory");
        asm volatile("red.global.add.u32 [%0], %1;" ::"l"(sum), "r"(lane));
        asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(sum + 1));
        unsigned other;
        asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(other) : "r"(lane));
        unsigned votes;
        asm("{ .reg .pred p; setp.gt.u32 p, %1, 29;"
            "vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(votes) : "r"(lane));
        asm volatile("" ::: "memory");
        asm volatile("bar.sync 0;");
        data[lane] = loaded(data + lane) + other;
        if (lane == 3) sum[2] = mask, sum[3] = smid, sum[4] = votes;
    }"""
    data = np.arange(33, dtype=np.uint32) * 10
    out = np.arange(128, dtype=np.float32)
    found, floats, sums = _run_on_both(source, data, out, np.zeros(5, np.uint32), block=32)
    lanes = np.arange(32)
    # All lanes of a warp load before any of them stores.
    np.testing.assert_array_equal(found[:32], data[1:] + (lanes ^ 1))
    np.testing.assert_array_equal(floats.reshape(32, 4)[:, :2], out.reshape(32, 4)[:, [3, 0]])
    assert list(sums) == [lanes.sum(), 32, 0b111, 0, 0b11 << 30]


def test_floats_and_their_bits():
    source = """
    __global__ void f(const float *in, float *out) {
        float x = in[threadIdx.x], y;
        float *own = out + 7 * threadIdx.x;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(own[0]) : "f"(x));
        asm("fma.rn.f32 %0, %1, 0f40000000, %2;" : "=f"(own[1]) : "f"(x), "f"(0.5f));
        asm("cvt.rni.f32.f32 %0, %1;" : "=f"(own[2]) : "f"(x));
        int whole;
        asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(whole) : "f"(x));
        own[3] = whole;
        unsigned bits;
        asm("{ .reg .b32 t; mov.b32 t, %1; and.b32 %0, t, 0x7fffffff; }" : "=r"(bits) : "f"(x));
        own[4] = __uint_as_float(bits);
        asm("{ .reg .f64 d; cvt.f64.f32 d, %1; mul.rn.f64 d, d, d; cvt.rn.f32.f64 %0, d; }" : "=f"(own[5]) : "f"(x));
        y = x;
        asm("add.f32 %0, %0, 1.5;" : "+f"(y));
        own[6] = y;
    }"""
    given = np.array([-2.5, -0.75, 0, 0.5, 1.5, 3.25], np.float32)
    out = _run_on_both(source, given, np.zeros((6, 7), np.float32), block=6)[1]
    for x, found in zip(given.tolist(), out, strict=True):
        right = [2**x, 2 * x + 0.5, round(x), math.trunc(x), abs(x), x * x, x + 1.5]
        np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tcgen05.wait.ld.sync.aligned;", "the instruction tcgen05.wait.ld.sync.aligned"),
        ("L: bra L;", "a jump or invalid PTX in asm"),
        ("bar.arrive 1;", "the instruction bar.arrive"),
        ("mul.f16 %0, %0, %0;", "the instruction mul.f16"),
    ],
)
def test_what_is_not_there_is_refused_by_name(text: str, reason: str):
    with pytest.raises(CompileError, match=f"the simulator does not support {reason}"):
        build(f'__global__ void f(unsigned *a) {{ asm volatile("{text}" : "+r"(a[0])); }}').kernel("f")
