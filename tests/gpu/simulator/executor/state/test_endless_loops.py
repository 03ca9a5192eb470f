"""A loop is endless only if no thread can end it; a loop that exceeds a limit did not end within it."""

from __future__ import annotations

import pytest

from gpu.kernel.simulate import simulate
from gpu.simulator.executor import lockstep

CASES = {
    # Nothing that the loop tests changes.
    "no condition": ("for (;;) a[0] += 1;", "endless"),
    "a condition on parameters": ("while (n > 0) a[i] = n;", "endless"),
    "a condition on its own counter": ("for (int k = 0; k != -1; k += 2) a[0] = k;", "unfinished"),
    "a break": ("for (;;) { if (a[1] == 5) break; a[0] += 1; }", "unfinished"),
    "a condition on memory that it writes": ("while (a[0] >= 0) a[0] = (a[0] + 1) & 7;", "unfinished"),
    # All lanes wait for a flag that none writes.
    "a flag": ("volatile int *flag = a; while (*flag == 0) {}", "endless"),
    "a flag, with atomics": ("while (atomicAdd(a, 0) == 0) {}", "endless"),
    "a flag, with a compare and swap": ("while (atomicCAS(a, 1, 2) != 1) {}", "endless"),
    "a flag, in other warps' loops": (
        "volatile int *flag = a; if (i < 32) { while (flag[0] == 0) {} } else { while (flag[1] == 0) {} }",
        "endless",
    ),
    "a flag, after other warps have tested one three times": (
        """volatile int *flag = a;
        if (i < 32) { while (flag[0] == 0) {} } else { for (int k = 0; k < 3; k++) if (flag[1]) break; }""",
        "endless",
    ),
}


@pytest.mark.parametrize(("body", "kind"), CASES.values(), ids=CASES)
def test_only_a_loop_that_no_thread_can_end_is_endless(body: str, kind: str) -> None:
    source = f"__global__ void f(int *a, int n) {{ int i = threadIdx.x; {body} }}"
    (finding,) = [
        each
        for each in simulate("test.cu", "f", 1, 64, ["zeros:64", "7"], source=source, max_steps=1000).findings
        if each.kind in ("endless", "unfinished")
    ]
    assert finding.kind == kind
    assert ("does not end" in finding.message and "no thread can end it" in finding.message) == (kind == "endless")
    assert ("did not end" in finding.message and "If the loop does end" in finding.message) == (kind == "unfinished")


@pytest.mark.parametrize(("load", "is_weak"), [("a[1]", True), ("*(volatile int *)&a[1]", False)])
def test_a_wait_by_ordinary_loads_is_named(load: str, *, is_weak: bool) -> None:
    source = f"__global__ void f(int *a) {{ while ({load} == 0) {{}} }}"
    (finding,) = simulate("test.cu", "f", 1, 1, ["zeros:64"], source=source, max_steps=300).findings
    assert ("It tests memory by ordinary loads" in finding.message) is is_weak


@pytest.mark.parametrize(
    "count", ["for (int k = 0; k < 200; ++k) flag[1];", "int k = 0; while (flag[1] == 0 && k++ < 200) {}"]
)
def test_lanes_that_count_while_others_wait_for_them_are_no_deadlock(count: str) -> None:
    source = f"""__global__ void f(int *a) {{
        volatile int *flag = a;
        if (threadIdx.x) {{ while (*flag == 0) {{}} }} else {{ {count} *flag = 1; }}
    }}"""
    assert simulate("test.cu", "f", 1, 4, ["zeros:64"], source=source).findings == []


PHASES = """#include <cuda/barrier>
__global__ void f(int *a) {{
    __shared__ cuda::barrier<cuda::thread_scope_block> ready;
    if (threadIdx.x == 0) init(&ready, 64);
    __syncthreads();
    if (threadIdx.x < 32) {{ {first} }} else {{ {second} }}
}}"""


@pytest.mark.parametrize("wait", ["ready.wait_parity(1);", "while (!ready.try_wait_parity(1)) {}"])
def test_warps_that_wait_for_a_phase_that_no_warp_completes_are_a_deadlock(
    wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep, "MAX_REPETITIONS", 20)
    source = PHASES.format(first=f"(void)ready.arrive(); {wait}", second=f"(void)ready.arrive(); {wait}")
    (finding,) = simulate("test.cu", "f", 1, 64, ["zeros:64"], source=source).findings
    assert finding.kind == "endless"
    assert "waits for a phase of an mbarrier that no thread can complete" in finding.message


def test_a_warp_that_tests_a_phase_before_it_arrives_is_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "MAX_REPETITIONS", 20)
    late = "for (int k = 0; k < 60; ++k) a[1] += ready.try_wait_parity(0); (void)ready.arrive();"
    source = PHASES.format(first="(void)ready.arrive(); ready.wait_parity(0);", second=late)
    assert [each.kind for each in simulate("test.cu", "f", 1, 64, ["zeros:64"], source=source).findings] == ["race"]


WAITS = {
    "the blocks of a grid with a barrier": (
        "#include <cooperative_groups.h>\n__global__ void f(int *a) {",
        "if (blockIdx.x < 2) { while (*flag == 0) {} } else { *flag = 1; } cooperative_groups::this_grid().sync();",
    ),
    "the blocks of a cluster": (
        "#include <cooperative_groups.h>\n__global__ void __cluster_dims__(2, 1, 1) f(int *a) {",
        "if (blockIdx.x < 2) { while (*flag == 0) {} } else { *flag = 1; } cooperative_groups::this_cluster().sync();",
    ),
    "the lanes of a cluster": (
        "__global__ void __cluster_dims__(2, 1, 1) f(int *a) {",
        "if (threadIdx.x < 7) { while (*flag == 0) {} } else { *flag = 1; }",
    ),
}


@pytest.mark.parametrize(("head", "body"), WAITS.values(), ids=WAITS)
def test_lanes_of_clusters_and_of_grids_with_barriers_make_progress(head: str, body: str) -> None:
    source = f"{head} volatile int *flag = a; {body} }}"
    assert simulate("test.cu", "f", 4, 8, ["zeros:64"], source=source).findings == []


LOCKS = """__device__ void take(int *lock) {{ while (atomicCAS(lock, 0, 1)) {{}} __threadfence(); }}
__device__ void release(int *lock) {{ __threadfence(); atomicExch(lock, 0); }}
__global__ void f(int *locks, int *data) {{
    if ({chosen}) {{
        int own = {number} & 1, other = 1 - own;
        take(&locks[{first}]);
        take(&locks[{second}]);
        data[0] += 1;
        release(&locks[other]);
        release(&locks[own]);
    }}
}}"""


@pytest.mark.parametrize(
    ("grid", "block", "chosen", "number"),
    [(3, 1, "true", "blockIdx.x"), (1, 64, "threadIdx.x % 32 == 0", "threadIdx.x / 32"), (1, 4, "true", "threadIdx.x")],
    ids=["blocks", "warps", "lanes"],
)
def test_threads_that_take_two_locks_in_different_orders_may_wait_for_ever(
    grid: int, block: int, chosen: str, number: str
) -> None:
    orders = {"right": ("min(own, other)", "max(own, other)"), "wrong": ("own", "other")}
    kinds = {}
    for name, (first, second) in orders.items():
        source = LOCKS.format(chosen=chosen, number=number, first=first, second=second)
        found = simulate("test.cu", "f", grid, block, ["zeros:2", "zeros:1"], source=source).findings
        kinds[name] = [(each.kind, each.positions[0].line) for each in found]
    assert kinds == {"right": [], "wrong": [("endless", 1)]}


def test_readers_that_all_wait_until_they_are_the_last_may_wait_for_ever() -> None:
    source = """__global__ void f(int *readers, int *data) {
        atomicAdd(readers, 1);
        __threadfence();
        while (atomicAdd(readers, 0) != 1) {}
        __threadfence();
        data[0] += 1;
        __threadfence();
        atomicSub(readers, 1);
    }"""
    (finding,) = simulate("test.cu", "f", 2, 1, ["zeros:1", "zeros:1"], source=source).findings
    assert "this loop may not end: in another order of the threads" in finding.message


def test_a_helper_function_in_a_wait_for_a_phase() -> None:
    source = """__device__ unsigned find(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
    __global__ void f() {
        __shared__ unsigned long long barrier;
        if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(find(&barrier)) : "memory");
        __syncthreads();
        unsigned done;
        do {
            asm volatile(
                "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                : "=r"(done) : "r"(find(&barrier)) : "memory");
        } while (!done);
    }"""
    (finding,) = simulate("test.cu", "f", 1, 64, [], source=source, max_steps=3000).findings
    assert finding.kind == "endless"


def test_a_wait_whose_test_has_a_loop_of_its_own() -> None:
    """No statement shows that the iterations are equal, but all variables stay the same."""
    source = """__device__ int find(int *a) {
        for (;;) {
            const int last = atomicAdd(a, 0), next = atomicAdd(a + 1, 0);
            if (last == atomicAdd(a, 0)) return next;
        }
    }
    __global__ void f(int *a) { int got; while ((got = find(a)) == 0) { } a[2] = got; }"""
    (finding,) = simulate("test.cu", "f", 2, 1, ["zeros:3"], source=source, max_steps=3000).findings
    assert finding.kind == "endless"


BARRIER = """#include <cuda/atomic>
using ref = cuda::atomic_ref<int, cuda::thread_scope_device>;
__global__ void f(int *barrier) {{
    ref arrived(barrier[0]), sense(barrier[1]);
    for (int round = 1; round < 3; ++round) {{
        if (arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {{
            {release}
        }} else {{
            {wait}
        }}
    }}
}}"""
RESET, RELEASE = "arrived.store(0, cuda::memory_order_relaxed);", "sense.store(round, cuda::memory_order_release);"


@pytest.mark.parametrize("name", ["sense", "ref(barrier[1])"], ids=["a variable", "a temporary"])
def test_a_barrier_that_resets_its_count_after_the_release_may_not_end(name: str) -> None:
    kinds = {}
    for order, release in (("right", RESET + RELEASE), ("wrong", RELEASE + RESET)):
        wait = f"while ({name}.load(cuda::memory_order_acquire) != round) {{}}"
        source = BARRIER.format(release=release, wait=wait)
        found = simulate("test.cu", "f", 2, 1, ["zeros:2"], source=source).findings
        kinds[order] = [each.kind for each in found]
    assert kinds == {"right": [], "wrong": ["endless"]}


def test_a_wait_that_counts_in_a_local_array_may_end() -> None:
    source = """__global__ void f(int *a) {
        volatile int *flag = a;
        int counts[2] = {0, 0};
        if (threadIdx.x < 32) { while (*flag == 0) {} }
        else {
            while (flag[1] == 0 && ++counts[flag[1]] < 200) {}
            *flag = 1;
        }
    }"""
    findings = simulate("test.cu", "f", 1, 64, ["zeros:64"], source=source, max_steps=1000).findings
    assert [each.kind for each in findings] == ["unfinished"]
