"""Operations on data, counted by hand: those on indices are not among them, however they are kept."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.paths import KERNELS
from gpu.patterns import find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.counting.counters import Counters
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.watched_launch import WatchedEngine, launch_watched

FUNCTIONS = """
__device__ int at(int row, int column, int width) { return row * width + column; }
__device__ int add(int a, int b) { return a + b; }
__device__ bool before(int a, int b) { return a < b; }
__device__ int apply(int (*op)(int, int), int a, int b) { return op(a, b); }
__device__ int next(const int *a, int i, int v) { return a[i + 1] * v; }
__device__ int factorial(int n) { if (n < 2) return 1; return n * factorial(n - 1); }
__device__ void raise(int &v, int by) { v += by; }
template <class F> __device__ int twice(F f, int v) { return f(f(v)); }
struct Span { int first, last; __device__ int length() const { return last - first; } };
"""


@pytest.mark.parametrize(
    ("body", "operations"),
    [
        # What is kept in variables, over any number of them.
        ("int i = t * 2 + 1; int j = i - 1; out[j / 2] = a[j % 8];", 0),
        ("int i = t; i += 3; i--; int *p = out + i; p += 2; *(p - 4) = a[t];", 0),
        ("for (int i = t; i < 32; i += blockDim.x) out[i] = a[i] * 3 + 1;", 2 * 4),
        ("int count = 0; for (int i = 0; i < 4; ++i) if (a[i] * 2 >= 0) count++; out[t] = count;", 4),
        ("int i = t * 4; out[t] = i;", 1),
        ("int sum = 0; int i = 0; while (i < 4) { sum += a[i]; i = i + 1; } out[t] = sum;", 4),
        ("int v = a[t]; out[t] = v < 0 ? -v : v;", 0),
        # A side counts in the lanes that need it: here in four of eight, and in the two that are left of these.
        ("int v = t > 3 ? a[t] + 1 : a[t + 1]; out[t] = v;", 1 / 2),
        ("int v = t; out[t] = t > 3 ? (t > 5 ? v * 2 : v) + 1 : v;", 1 / 2 + 1 / 4),
        ("float x = a[t]; if (t > 3 && x * x < 30.0f) out[t] = 1;", 1 / 2),
        # Conditions: on whole numbers none, on floats what is computed for them.
        ("if (a[t] * 3 + 1 > 5) out[t] = 1;", 0),
        ("float x = a[t]; if (x * x < 2.0f) out[t] = 1;", 1),
        ("int inside = a[t] + 1 > 5 && t * 2 < 9; out[t] = inside;", 1 + 3 / 8),
        # Comparisons: of elements they are what the algorithm does, of anything else they lead somewhere.
        ("int x = a[t], y = a[t + 1]; if (x > y) { out[t] = y; out[t + 1] = x; }", 1),
        ("out[t] = before(a[t], a[t + 1]);", 1),
        ("int x = a[t], y = a[t + 1]; bool less = before(y, x); out[t] = less ? y : x;", 1),
        ("float x = a[t]; if (x != x) out[t] = 1;", 0),
        ("float x = a[t]; if (x < 2.0f) out[t] = 1;", 0),
        ("for (int i = a[t] & 1; i < a[8]; i++) out[i] = 1;", 0),
        ("if (t < 4 && a[t] < a[t + 1]) out[t] = 1;", 1 / 2),
        # Exchanges carry data on, and a reduction over a warp is an operation of each lane; ballots and exchanging
        # atomics are none.
        ("int v = a[t]; v += __shfl_down_sync(255, v, 4 / 2); out[t] = v;", 1),
        ("out[t] = __reduce_add_sync(255, a[t]);", 1),
        ("out[__reduce_max_sync(255, t)] = a[t];", 0),
        ("int x = a[t]; int y = __shfl_xor_sync(255, x, 1); out[t] = (x < y) == (t % 2 == 0) ? x : y;", 1),
        ("int rank = __popc(__ballot_sync(255, a[t] > 1) & ((1 << t) - 1)); out[rank] = a[t];", 0),
        ("int bin = a[t] * 4 / 256; atomicAdd(&out[bin], 1);", 1),
        ("int place = atomicAdd(&out[0], 1) + 4; out[place] = a[t];", 1),
        ("atomicExch(&out[t + 1], a[t] - 1);", 1),
        # Functions: what is done with their result decides, and what they do with their arguments.
        ("out[at(t / 4, t % 4, 4)] = a[at(0, t, 8)];", 0),
        ("out[t] = at(t / 4, t % 4, 4);", 2 + 2),
        ("out[add(t, 1)] = a[t];", 0),
        ("out[t] = add(a[t] * 2, a[t + 1]);", 2),
        ("out[t] = next(a, t * 2 + 1 - 1, a[t] - 1);", 2),
        ("out[t] = apply(add, a[t], 1);", 1),
        ("raise(out[t], a[t] + 1);", 2),
        ("int base = a[t]; out[t] = twice([=](int v) { return v * base; }, 3);", 2),
        ("Span s = {t * 2, t * 4}; out[t] = s.length();", 3),
    ],
)
def test_by_hand(body: str, operations: float) -> None:
    counters = Counters()
    source = f"{FUNCTIONS}\n__global__ void f(const int *a, int *out) {{ int t = threadIdx.x; {body} }}"
    launch_watched(counters, source, np.arange(64, dtype=np.int32), np.zeros(64, np.int32), block=8)
    assert counters.total().get("operations", 0) == 8 * operations


def test_a_function_s_count_does_not_depend_on_which_line_calls_it_first() -> None:
    source = (
        f"{FUNCTIONS}\n__global__ void f(int *out) {{ int i = add(threadIdx.x, 1); out[i] = 0; out[0] = add(1, 2); }}"
    )
    counters = Counters()
    launch_watched(counters, source, np.zeros(64, np.int32), block=8)
    assert counters.total()["operations"] == 2 * 8


def test_recursion() -> None:
    counters = Counters()
    source = f"{FUNCTIONS}\n__global__ void f(int *out) {{ out[threadIdx.x] = factorial(5); }}"
    out = np.zeros(1, np.int32)
    launch_watched(counters, source, out, block=1)
    # Four products, and four times n - 1, which ends in the product.
    assert (out[0], counters.total()["operations"]) == (120, 8)


@pytest.mark.parametrize("variant", ["neighbored", "neighbored-less"])
@pytest.mark.parametrize(("n", "block"), [(1, 8), (16, 16), (17, 8), (100, 32)])
def test_reductions_in_place_do_n_minus_1(variant: str, n: int, block: int) -> None:
    pattern, counters = find_pattern("reduction"), Counters()
    params = pattern.check({"n": n, "block": block})
    run_pattern(WatchedEngine(counters), Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    assert counters.total().get("operations", 0) == n - 1


@pytest.mark.parametrize(("variant", "operations"), [("odd-even", 16 * 15 // 2), ("bitonic", 16 * 4 * 5 // 4)])
def test_networks_compare_as_often_as_is_known(variant: str, operations: int) -> None:
    pattern, counters = find_pattern("sort"), Counters()
    params = pattern.check({"n": 16, "block": "8"})
    run_pattern(WatchedEngine(counters), Workload(pattern, pattern.variant(variant), {}, params), lambda progress: None)
    assert counters.total()["operations"] == operations


def test_kernels_that_share_a_function_do_not_share_what_it_is_for() -> None:
    source = f"""{FUNCTIONS}
__global__ void f(const int *a, int *out) {{ out[add(threadIdx.x, 1)] = 0; }}
__global__ void g(const int *a, int *out) {{ out[threadIdx.x] = add(a[threadIdx.x], 1); }}"""
    module = SimulatedModule(source, KERNELS / "shared.cu", {})
    for kernel, operations in (("f", 0), ("g", 8), ("f", 0)):
        counters = Counters()
        launch_watched(counters, module, np.zeros(8, np.int32), np.zeros(64, np.int32), kernel=kernel, block=8)
        assert counters.total()["operations"] == operations


def test_a_histogram_adds_once_a_pixel() -> None:
    path, counters = KERNELS / "histogram.cu", Counters()
    image = np.arange(512).astype(np.uint8)
    launch_watched(
        counters, SimulatedModule(path.read_text(), path, {}), image, np.zeros(16, np.int32), np.int32(512),
        np.int32(16), kernel="histogram_interleaved", grid=2, block=64,
    )  # fmt: skip
    assert counters.total()["operations"] == 512
