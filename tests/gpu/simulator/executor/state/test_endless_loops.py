"""A loop is endless only if no thread can end it; a loop that exceeds a limit did not end within it."""

from __future__ import annotations

import pytest

from gpu.kernel.simulate import simulate

CASES = {
    # Nothing that the loop tests changes.
    "no condition": ("for (;;) a[0] += 1;", "endless"),
    "a condition on parameters": ("while (n > 0) a[i] = n;", "endless"),
    "a condition on its own counter": ("for (int k = 0; k != -1; k += 2) a[0] = k;", "unfinished"),
    "a break": ("for (;;) { if (a[1] == 5) break; a[0] += 1; }", "unfinished"),
    "a condition on memory that it writes": ("while (a[0] >= 0) a[0] = (a[0] + 1) & 7;", "unfinished"),
    # All lanes wait for a flag that none writes.
    "a flag": ("volatile int *flag = a; while (*flag == 0) {}", "endless"),
    "a flag, with atomics": ("while (atomicAdd(a, 0) == 0) {}", "unfinished"),
    "a flag, with a compare and swap": ("while (atomicCAS(a, 1, 2) != 1) {}", "endless"),
    "a flag, in other warps' loops": (
        "volatile int *flag = a; if (i < 32) { while (flag[0] == 0) {} } else { while (flag[1] == 0) {} }",
        "endless",
    ),
}


@pytest.mark.parametrize(("body", "kind"), CASES.values(), ids=CASES)
def test_only_a_loop_that_no_thread_can_end_is_endless(body: str, kind: str) -> None:
    source = f"__global__ void f(int *a, int n) {{ int i = threadIdx.x; {body} }}"
    (finding,) = [
        each
        for each in simulate("test.cu", "f", 1, 64, ["zeros:64", "7"], source=source, max_steps=3000).findings
        if each.kind in ("endless", "unfinished")
    ]
    assert finding.kind == kind
    assert ("does not end" in finding.message and "no thread can end it" in finding.message) == (kind == "endless")
    assert ("did not end" in finding.message and "If the loop does end" in finding.message) == (kind == "unfinished")


@pytest.mark.parametrize(
    "count", ["for (int k = 0; k < 200; ++k) flag[1];", "int k = 0; while (flag[1] == 0 && k++ < 200) {}"]
)
def test_lanes_that_count_while_others_wait_for_them_are_no_deadlock(count: str) -> None:
    source = f"""__global__ void f(int *a) {{
        volatile int *flag = a;
        if (threadIdx.x) {{ while (*flag == 0) {{}} }} else {{ {count} *flag = 1; }}
    }}"""
    assert simulate("test.cu", "f", 1, 4, ["zeros:64"], source=source).findings == []
