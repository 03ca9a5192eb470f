"""Divisions and shifts without a result in C++, found where and only where a thread executes them."""

from __future__ import annotations

import pytest

from gpu.kernel.simulate import simulate

SHIFTED, ZERO, RANGE = "cannot be shifted by", "has no value in C++", "exceeds the range"
LOWEST = "(-2147483647 - 1)"
UNDEFINED = {
    "shift by the width": ("a[i] = 0xffffffffu >> (32 - i);", 0, f"an integer of 32 bits {SHIFTED} 32"),
    "shift of 64 bits": ("long long w = 1ll << (60 + i); a[i] = w;", 4, f"an integer of 64 bits {SHIFTED} 64"),
    "shift by a negative": ("a[i] = 1 << (6 - i);", 7, f"{SHIFTED} -1"),
    "shift of a variable": ("int v = i; v <<= 30 + i; a[i] = v;", 2, f"{SHIFTED} 32"),
    "shift of an element": ("a[i] >>= 31 + i;", 1, f"{SHIFTED} 32"),
    "shift of a char": ("signed char c = 1; a[i] = c << (29 + i);", 3, f"{SHIFTED} 32"),
    "division": ("a[i] = n / (i - 3);", 3, f"8 / 0 {ZERO}"),
    "unsigned division": ("a[i] = 7u / (unsigned)(5 - i);", 5, f"7 / 0 {ZERO}"),
    "remainder": ("int v = n; v %= i - 6; a[i] = v;", 6, f"8 % 0 {ZERO}"),
    "of a constant 0": ("int zero = 0; a[i] = n / zero;", 0, ZERO),
    "lowest by -1": (f"int low = {LOWEST} + (i != 4); a[i] = low / (3 - i);", 3, ZERO),
    "lowest by minus one": (f"int low = {LOWEST} + (i != 4); if (i != 3) a[i] = low / (3 - i);", 4, RANGE),
    "in an operand": ("a[i] = i > 1 && n / (i - 2) > 1;", 2, ZERO),
    "in a choice": ("a[i] = i > 4 ? n % (i - 7) : 1;", 7, ZERO),
}  # fmt: skip
DEFINED = {
    "shifts": "a[i] = (1 << i) + (0xffffffffu >> (31 - i)) + (1ll << (56 + i));",
    "a division that another lane skips": "a[i] = i != 3 ? n / (i - 3) : 0;",
    "a division behind &&": "a[i] = i != 3 && n / (i - 3) > 1; a[i] = i == 4 || n % (i - 4) > 1;",
    "a condition behind &&": "if (i != 3 && n / (i - 3) > 1) a[i] = 1; if (i == 4 || n % (i - 4) > 1) a[i] = 2;",
    "an index that another lane chooses": "a[i != 3 ? n % (i - 3) & 7 : 7] = 1;",
    "after a return": "if (i == 3) return; a[i] = n / (i - 3) + n % (i - 3);",
    "floats": "a[i] = n / (float)(i - 3) > 1.0f;",
    "intrinsics": "a[i] = __funnelshift_l(i, i, 32) + __brev(i) + __clz(i);",
    "lowest unsigned": "unsigned low = 0x80000000u; a[i] = low / (unsigned)-(i + 1);",
}


def list_findings(body: str, schedule: str, *, traced: bool = False) -> list[tuple[str, int, str]]:
    source = f"__global__ void k(int *a, int n) {{\n    int i = threadIdx.x;\n    {body}\n}}"
    found = simulate("test.cu", "k", 1, 8, ["zeros:8", 8], source=source, schedule=schedule, traced=traced).findings
    found = [each for each in found if each.kind != "race"]
    return [(each.kind, each.positions[0].line, each.message) for each in found]


@pytest.mark.parametrize("schedule", ["round-robin", "lanes:1"])
@pytest.mark.parametrize("case", UNDEFINED)
def test_an_undefined_operation_names_line_thread_and_operands(case: str, schedule: str) -> None:
    body, thread, message = UNDEFINED[case]
    [(kind, line, text)] = list_findings(body, schedule)
    assert (kind, line) == ("undefined-operation", 3)
    if schedule == "round-robin":  # else another lane may come first
        assert message in text
        assert f"thread ({thread},0,0) in block (0,0,0)" in text


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("case", DEFINED)
def test_a_defined_operation_is_not_reported(case: str, *, traced: bool) -> None:
    assert list_findings(DEFINED[case], "round-robin", traced=traced) == []
