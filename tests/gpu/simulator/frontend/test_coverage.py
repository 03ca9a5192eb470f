"""Executed lines: an edit at a line that no thread executed is reported as unchecked."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from gpu.engines.checking_engine import CheckingEngine

TEXT = """\
#define TWICE(x) ((x) + (x))
__device__ int unused(int x) {  // not
    return x + 1;  // not
}
__device__ int used(int x) {
    return x + 1;
}
extern "C" __global__ void other(int *out) {
    out[0] = 1;
}
extern "C" __global__ void counted(int *out,
                                   int n) {
    __shared__ int s[32];
    int t = threadIdx.x;
    // a comment in the text
    if (n > 100) {
        s[t] = 1;  // not
        __syncthreads();  // not
    } else if (n > 50)
        s[t] = 2;  // not
    else {
        s[t] = used(3);
    }
    for (int i = 0; i < n; ++i) {
        if (i == 1000) break;
        s[t] += i;
    }
    while (n < 0) {
        n += 1;  // not
    }
    switch (n) {
    case 4:  // not
        s[t] += 1;  // not
        break;
    default:
        s[t] += 2;
    }
    do {
        int copy = s[t];
        s[t] = copy;
    } while (false);
#if 0
    out[t] = 1;  // not
#endif
    out[t] = s[t]
             + TWICE(
                 1);
    if (t < 32) return;
    int late;
    out[t] = late = 2;  // not
}
"""


def test_lines_that_no_thread_executed_are_found() -> None:
    lines = TEXT.split("\n")
    with closing(CheckingEngine()) as engine:
        engine.sources = {"scan.cu": TEXT}
        kernel = engine.build("scan.cu").kernel("counted")
        engine.launch(kernel, (1, 1, 1), (32, 1, 1), engine.upload(np.zeros(32, np.int32)), np.int32(8))
        assert engine.findings == []
        unreached = engine.find_unreached_lines("scan.cu", range(1, len(lines) + 1), ("counted",))
        assert set(unreached) == {number for number, line in enumerate(lines, 1) if "// not" in line}
        assert engine.find_unreached_lines("scan.cu", [9], ("counted", "other")) == {9: False}, (
            "a kernel that was not launched"
        )
        assert engine.find_unreached_lines("sort.cu", [9], ("counted",)) == {}


def test_a_line_that_one_of_two_builds_executes_is_reached() -> None:
    text = 'extern "C" __global__ void k(int *out) {\n    if (SIZE > 8) {\n        out[0] = 1;\n    }\n}\n'
    with closing(CheckingEngine()) as engine:
        engine.sources = {"scan.cu": text}
        out = engine.upload(np.zeros(1, np.int32))
        engine.launch(engine.build("scan.cu", {"SIZE": 4}).kernel("k"), (1, 1, 1), (1, 1, 1), out)
        assert engine.find_unreached_lines("scan.cu", [3], ("k",)) == {3: False}
        engine.launch(engine.build("scan.cu", {"SIZE": 16}).kernel("k"), (1, 1, 1), (1, 1, 1), out)
        assert engine.find_unreached_lines("scan.cu", [3], ("k",)) == {}


def test_an_edit_of_a_condition_is_reached_by_all_threads_that_evaluate_it() -> None:
    line = "    if (n > 100 && out[0] > 0) out[0] = 1; else out[1] = 2;"
    text = f'extern "C" __global__ void k(int *out, int n) {{\n{line}\n}}\n'
    with closing(CheckingEngine()) as engine:
        engine.sources = {"scan.cu": text}
        out = engine.upload(np.zeros(2, np.int32))
        engine.launch(engine.build("scan.cu").kernel("k"), (1, 1, 1), (1, 1, 1), out, np.int32(8))
        condition, branch, other = (line.index(part) + 1 for part in ("n > 100", "out[0] = 1", "out[1]"))
        for columns, expected in (
            ((condition, condition + 6), set()),
            ((branch, branch + 2), {2}),
            ((other, other + 2), set()),
            ((condition, branch), {2}),
        ):
            assert engine.find_unreached_lines("scan.cu", {2: columns}, ("k",)).keys() == expected
        assert engine.find_unreached_lines("scan.cu", [2], ("k",)) == {2: False}


SELECTED = """#if SIZE > 8
__device__ int large() { return 1; }
#endif
extern "C" __global__ void other(int *out) {
#if SIZE > 8
    out[0] = 3;
#endif
}
extern "C" __global__ void k(int *out) {
#if SIZE > 8  // a comment
    out[0] = large();

    // a comment
#define STEP 2
#elif SIZE > 2
    out[0] = 2;
#else
    out[0] = 3;
#endif
}
"""


@pytest.mark.parametrize(
    ("sizes", "skipped"), [((4,), {2, 11, 14, 18}), ((16,), {16, 17, 18}), ((1,), {2, 11, 14, 15, 16}), ((16, 4), {18})]
)
def test_lines_that_the_preprocessor_skips_in_all_builds_are_unreached(sizes: tuple[int, ...], skipped: set) -> None:
    """Neither blank lines and comments nor other kernels count; directives between skipped lines do."""
    with closing(CheckingEngine()) as engine:
        engine.sources = {"scan.cu": SELECTED}
        out = engine.upload(np.zeros(1, np.int32))
        for size in sizes:
            engine.launch(engine.build("scan.cu", {"SIZE": size}).kernel("k"), (1, 1, 1), (1, 1, 1), out)
        unreached = engine.find_unreached_lines("scan.cu", range(1, SELECTED.count("\n") + 1), ("k",))
        assert {line for line, is_skipped in unreached.items() if is_skipped} == skipped
        assert {line for line, is_skipped in unreached.items() if not is_skipped} <= {2}


def test_a_skipped_line_after_a_rewritten_launch_has_its_number() -> None:
    text = """__global__ void child(int *out) { out[0] = 1; }
extern "C" __global__ void k(int *out) {
    child<<<
        1,
        1>>>(out);
#if 0
    out[0] = 2;
#endif
}
"""
    with closing(CheckingEngine()) as engine:
        engine.sources = {"scan.cu": text}
        engine.launch(engine.build("scan.cu").kernel("k"), (1, 1, 1), (1, 1, 1), engine.upload(np.zeros(1, np.int32)))
        assert engine.find_unreached_lines("scan.cu", range(1, 10), ("k", "child")) == {7: True}
