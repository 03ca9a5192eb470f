"""Operations of a thread: a multiply-add is two, and a division as many as its machine code has."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.thread_operations import count_shared_loop_operations, count_thread_operations


@pytest.mark.parametrize(
    ("text", "float32", "float64"),
    [
        ("add.f32 %f1, %f2, %f3;", 1, 0),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", 2, 0),
        ("fma.rn.f64 %fd1, %fd2, %fd3, %fd4; mul.f64 %fd1, %fd2, %fd3;", 0, 3),
        ("div.rn.f32 %f1, %f2, %f3;", 10, 0),
        ("rcp.approx.f32 %f1, %f2; ex2.approx.f32 %f1, %f2;", 0, 0),
        ("mad.lo.s32 %r1, %r2, %r3, %r4; setp.lt.f32 %p1, %f1, %f2; cvt.f32.s32 %f1, %r1;", 0, 0),
    ],
)
def test_operations_are_counted_as_a_profiler_counts_them(text, float32, float64) -> None:
    kernel = parse_ptx(f".version 9.0\n.target sm_90\n.visible .entry k()\n{{\n{text}\nret;\n}}\n").find_kernel("k")
    assert count_thread_operations(kernel.blocks[0].instructions) == (float32, float64)


@pytest.mark.parametrize(
    ("own", "block", "sums"), [(1, 1, 32), (32, 32, 32 * 33 / 2), (32, 128, 32 * 44), (32, 256, 32 * 94)]
)
def test_a_sum_in_shared_memory_is_repeated_until_no_other_thread_interferes(own, block, sums) -> None:
    """One warp alone adds in its first round 32 times, then 31 times; the others as measured on an RTX 3080."""
    counts = count_shared_loop_operations("f32", *np.array([[32], [own], [block]]))
    assert counts.float32 == pytest.approx(sums, rel=0.1)
    assert counts.float64 == 0
