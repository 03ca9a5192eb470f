"""`goto` in device code, compared with the machine's C++ compiler."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import CompileError
from tests.gpu.simulator.compiled.test_executors_agree import run_on_both
from tests.gpu.simulator.cplusplus import compare_program
from tests.gpu.simulator.kernel_runner import build, run_kernel

# Bodies of functions that return an int for each thread i.
BODIES = {
    "forward": "if (i % 3 == 0) goto done; i += 100; done: return i;",
    "loop": "int s = 0; again: s += i; if (--i > 0) goto again; return s;",
    "out of two loops": """
        int a, b;
        for (a = 0; a < 9; ++a) for (b = 0; b < 9; ++b) if (a * b == i) goto found;
        return -1;
        found: return 10 * a + b;""",
    "out of a switch": """
        int s = 0;
        next: switch (i % 4) { case 0: s += 7; goto done; case 1: ++s; i += 2; goto next; default: ++i; }
        s += 100; goto next;
        done: return s + i;""",
    "repeat from an inner loop": """
        int s = 0;
        again: ++s;
        for (int k = 0; k < 5; ++k) { if (s > 20) goto out; if ((s + k) % 7 == i % 5) { s += 3; goto again; } }
        out: return s;""",
    "state machine": """
        int s = 0;
        start: if (i > 40) goto high; if (i > 20) goto middle; s += 1; goto end;
        high: s += 100; i -= 15; goto start;
        middle: s += 10; i -= 15; goto start;
        end: return s;""",
    "two exits": "int s = i; if (s & 1) goto odd; if (s & 2) goto two; s += 5; odd: s *= 3; two: s -= 1; return s;",
    "from a block": "{ if (i < 8) { i = 8; goto up; } i *= 2; } up: inner: while (i % 5) { ++i; } return i;",
    "through a variable in memory": """
        int n = 0, k;
        again: k = i; int *p = &k; *p += n; if (++n < 4 && *p % 3) goto again; return k * 8 + n;""",
    "nested labels": """
        int s = 0, a = 0;
        outer: { int b = 0; inner: s += a * b; if (++b < 3) goto inner; if (s > 2 * i) goto quit; }
        if (++a < 6) goto outer;
        quit: return s;""",
}


def test_jumps_reach_the_same_labels_as_on_the_host() -> None:
    functions = "".join(f"DEVICE int f{k}(int i) {{ {body} }}\n" for k, body in enumerate(BODIES.values()))
    compare_program(functions, "".join(f"out[{k}] = f{k}(i);\n" for k in range(len(BODIES))))


def test_both_executors_agree_on_jumps() -> None:
    functions = "".join(f"__device__ int f{k}(int i) {{ {body} }}\n" for k, body in enumerate(BODIES.values()))
    calls = "".join(f"out[{len(BODIES)} * threadIdx.x + {k}] = f{k}(threadIdx.x);" for k in range(len(BODIES)))
    text = f"{functions}__global__ void all(int *out) {{ {calls} }}"
    run_on_both(text, "all", 1, (64,), np.zeros(64 * len(BODIES), np.int32))


def test_threads_that_jump_to_a_barrier_wait_there_for_the_others() -> None:
    source = """
    __global__ void f(const int *x, int *y, int n) {
        __shared__ int s[64];
        int t = threadIdx.x;
        if (t >= n) goto loaded;
        s[t] = x[t];
    loaded:
        __syncthreads();
        if (t < n) y[t] = s[n - 1 - t];
    }"""
    x = np.arange(40, dtype=np.int32)
    y = run_kernel(source, "f", x, np.zeros_like(x), np.int32(40), block=64)[1]
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.parametrize(
    "body", ["goto in; { in: a[0] = 1; }", "int k = 0; goto in; up: ++k; in: if (k < 3) goto up; a[0] = k;"]
)
def test_a_jump_into_a_block_or_a_loop_is_not_supported(body: str) -> None:
    with pytest.raises(CompileError, match="the simulator does not support a goto into"):
        build(f"__global__ void f(int *a) {{ {body} }}").kernel("f")
