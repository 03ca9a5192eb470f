"""Halfwords and bytes of a word, as CUDA's Math API has them, and DPX, against NumPy."""

from __future__ import annotations

import numpy as np

from tests.gpu.simulator.kernel_runner import run_kernel

SIGNED = {
    "__vadd": lambda a, b: a + b,
    "__vsub": lambda a, b: a - b,
    "__vaddss": lambda a, b: saturate(a + b, a.dtype.itemsize),
    "__vsubss": lambda a, b: saturate(a - b, a.dtype.itemsize),
    "__vabsdiffs": lambda a, b: np.abs(to_wide(a) - to_wide(b)),
    "__vmaxs": np.maximum,
    "__vmins": np.minimum,
    "__vavgs": lambda a, b: np.where(to_wide(a) + b < 0, (to_wide(a) + b) // 2, (to_wide(a) + b + 1) // 2),
    "__vneg": lambda a, b: -a,
    "__vabs": lambda a, b: np.abs(to_wide(a)),
}
UNSIGNED = {
    "__vaddus": lambda a, b: np.minimum(to_wide(a) + b, np.iinfo(a.dtype).max),
    "__vsubus": lambda a, b: np.maximum(to_wide(a) - b, 0),
    "__vabsdiffu": lambda a, b: np.abs(to_wide(a) - b),
    "__vmaxu": np.maximum,
    "__vminu": np.minimum,
    "__vavgu": lambda a, b: (to_wide(a) + b + 1) // 2,
    "__vhaddu": lambda a, b: (to_wide(a) + b) // 2,
}
ONE = ("__vneg", "__vabs", "__vnegss", "__vabsss")
ORDERS = {"ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less}
for name, order in ORDERS.items():
    SIGNED |= {f"__vset{name}s": order, f"__vcmp{name}s": lambda a, b, order=order: -order(a, b).astype(int)}
    UNSIGNED |= {f"__vset{name}u": order, f"__vcmp{name}u": lambda a, b, order=order: -order(a, b).astype(int)}
for name, same in (("eq", np.equal), ("ne", np.not_equal)):
    SIGNED |= {f"__vset{name}": same, f"__vcmp{name}": lambda a, b, same=same: -same(a, b).astype(int)}


def to_wide(values):
    return values.astype(np.int64)


def saturate(values, size):
    """Saturate what was computed in a wider type."""
    limits = np.iinfo(f"int{8 * size}")
    return np.clip(values, limits.min, limits.max)


def draw_words(count=64):
    made = np.random.default_rng(3).integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    made[:6] = (0, 0x80008000, 0x80808080, 0x7FFF7FFF, 0x7F7F7F7F, 0xFFFFFFFF)
    return made


def test_every_operation_on_parts_of_a_word():
    a, b = draw_words(), np.roll(draw_words(), 1)
    saturating = {
        "__vnegss": lambda a: saturate(-to_wide(a), a.itemsize),
        "__vabsss": lambda a: saturate(abs(to_wide(a)), a.itemsize),
    }
    cases = [
        (f"{name}{4 // size}", kind, size, make)
        for kind, table in (("i", SIGNED), ("u", UNSIGNED))
        for name, make in (*table.items(), *(saturating.items() if kind == "i" else ()))
        for size in (1, 2)
    ]
    lines = [
        f"out[{row} * 64 + i] = {name}({'a[i]' if name[:-1] in ONE else 'a[i], b[i]'});"
        for row, (name, *_) in enumerate(cases)
    ]
    parameters = "unsigned *out, const unsigned *a, const unsigned *b"
    source = f"__global__ void k({parameters}) {{ int i = threadIdx.x; {' '.join(lines)} }}"
    out = run_kernel(source, "k", np.zeros(64 * len(cases), np.uint32), a, b, block=64)[0].reshape(-1, 64)
    for found, (name, kind, size, make) in zip(out, cases, strict=True):
        x, y = a.view(f"{kind}{size}"), b.view(f"{kind}{size}")
        if name[:-1] in saturating:
            parts = make(x)
        elif name[:-1] in ("__vaddss", "__vsubss"):
            parts = saturate(to_wide(x) + to_wide(y) if "add" in name else to_wide(x) - to_wide(y), size)
        else:
            parts = make(x, y)
        right = np.asarray(parts).astype(f"u{size}" if kind == "u" else f"i{size}").view(np.uint32)
        np.testing.assert_array_equal(found, right, name)


def test_sums_of_differences_and_the_steps_of_dynamic_programming():
    a, b, c = draw_words(), np.roll(draw_words(), 1), np.roll(draw_words(), 2)
    source = """__global__ void k(unsigned *out, const unsigned *in) {
        unsigned a = in[threadIdx.x], b = in[64 + threadIdx.x], c = in[128 + threadIdx.x];
        unsigned *mine = out + 8 * threadIdx.x;
        mine[0] = __vsads4(a, b), mine[1] = __vsadu2(a, b);
        mine[2] = __viaddmax_s32_relu(a, b, c), mine[3] = __vimin3_s16x2(a, b, c), mine[4] = __viaddmin_u16x2(a, b, c);
        bool high, low, first;
        mine[5] = __vibmax_s16x2(a, b, &high, &low);
        mine[6] = high * 2 + low;
        unsigned least = __vibmin_u32(a, b, &first);
        mine[7] = least == (first ? a : b) && first == (a <= b);
    }"""
    given = np.concatenate((a, b, c))
    out = run_kernel(source, "k", np.zeros(512, np.uint32), given, block=64)[0].reshape(64, 8).T
    by = {kind: [each.view(kind).reshape(64, -1) for each in (a, b, c)] for kind in ("i1", "u2", "i2", "i4")}
    x, y, _ = by["i1"]
    np.testing.assert_array_equal(out[0], abs(to_wide(x) - y).sum(axis=1))
    x, y, z = by["u2"]
    np.testing.assert_array_equal(out[1], abs(to_wide(x) - y).sum(axis=1))
    np.testing.assert_array_equal(out[4], np.minimum(x + y, z).view(np.uint32)[:, 0])
    x, y, z = by["i4"]
    np.testing.assert_array_equal(out[2].view(np.int32), np.maximum(np.maximum(x + y, z), 0)[:, 0])
    x, y, z = by["i2"]
    np.testing.assert_array_equal(out[3], np.minimum(np.minimum(x, y), z).view(np.uint32)[:, 0])
    np.testing.assert_array_equal(out[5], np.maximum(x, y).view(np.uint32)[:, 0])
    np.testing.assert_array_equal(out[6], 2 * (x >= y)[:, 1] + (x >= y)[:, 0])
    assert out[7].all()
