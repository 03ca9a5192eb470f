"""Named barriers, `bar.sync` and `bar.arrive` with a thread count: results, order, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, LaunchError
from gpu.kernel.simulate import simulate
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from tests.gpu.simulator.kernel_runner import build

Array = np.ndarray[Any, Any]

HEAD = """
__device__ void sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}
__device__ void arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}
"""
SCHEDULES = ["round-robin", "shuffle:1", "shuffle:2", "lanes:1", "cached:0"]

# Warp 0 fills two buffers in turn, and warp 1 reads them: barriers 1 and 2 are "full", 3 and 4 "empty".
RING = f"""{HEAD}
__global__ void f(const int *in, int *out, int steps) {{
    __shared__ int ring[2][32];
    int lane = threadIdx.x % 32, sum = 0;
    if (threadIdx.x < 32) {{
        for (int i = 0; i < steps; ++i) {{
            if (i >= 2) sync(3 + i % 2, 64);
            ring[i % 2][lane] = in[i * 32 + lane];
            arrive(1 + i % 2, 64);
        }}
    }} else {{
        for (int i = 0; i < steps; ++i) {{
            sync(1 + i % 2, 64);
            sum += ring[i % 2][31 - lane];
            if (i + 2 < steps) arrive(3 + i % 2, 64);
        }}
        out[blockIdx.x * 32 + lane] = sum;
    }}
}}"""

# Warps 1 and 2 exchange values, while warp 0 works alone.
GROUP = f"""{HEAD}
__global__ void f(const int *in, int *out, int steps) {{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 32) {{
        for (int i = 0; i < steps; ++i) {{
            s[t - 32] = in[t] + i;
            sync(7, 64);
            out[t - 32] = s[95 - t];
            sync(7, 64);
        }}
    }}
}}"""


def run(source: str, block: int = 64, schedule: str = "round-robin", grid: int = 2) -> Any:
    arguments = ("arange:192", "zeros:64", 6)
    return simulate("k.cu", "f", grid, block, arguments, source=source, schedule=schedule)


def find_kinds(source: str, block: int = 64, schedule: str = "round-robin") -> set[str]:
    return {finding.kind for finding in run(source, block, schedule, grid=1).findings}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_producer_and_a_consumer(schedule: str) -> None:
    simulation = run(RING, schedule=schedule)
    assert simulation.findings == []
    expected = np.arange(192).reshape(6, 32).sum(axis=0)[::-1]
    assert simulation.arrays[1].reshape(2, 32).tolist() == [expected.tolist()] * 2


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("block", [96, 128, 75])
def test_some_warps_of_a_block(schedule: str, block: int) -> None:
    source = GROUP.replace("if (t >= 32)", "if (t >= 32 && t < 96)").replace("95 - t", "32 + t % 11 - 32")
    assert find_kinds(source, block, schedule) == set()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("            if (i >= 2) sync(3 + i % 2, 64);\n", ""),
        ("            sync(1 + i % 2, 64);\n", "            if (i > 0) sync(1 + i % 2, 64);\n"),
        ("arrive(1 + i % 2, 64);", "arrive(1 + i % 2, 64); ring[i % 2][lane] = 0;"),
    ],
)
def test_a_missing_barrier_is_a_race(right: str, wrong: str) -> None:
    assert right in RING
    assert find_kinds(RING.replace(right, wrong)) & {"race", "uninitialized"}


def test_a_barrier_orders_nothing_for_other_warps() -> None:
    source = GROUP.replace("    }\n}", "        if (false) return;\n    } else out[t] = s[t];\n}")
    assert find_kinds(source, 96) & {"race", "uninitialized"}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "text", ["bar.sync 2;", "barrier.sync.aligned 2;", "barrier.cta.sync 2;", "bar.sync 2, 96;", "barrier.sync 2, 96;"]
)
def test_all_threads_of_a_block_whose_last_warp_is_incomplete(text: str, schedule: str) -> None:
    source = f"""__global__ void f(const int *in, int *out, int steps) {{
    __shared__ int s[75];
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("{text}" ::: "memory");
    if (threadIdx.x < 64) out[threadIdx.x] = s[74 - threadIdx.x];
}}"""
    simulation = run(source, 75, schedule, grid=1)
    assert simulation.findings == []
    assert simulation.arrays[1].tolist() == list(range(74, 10, -1))


def test_threads_that_have_exited_do_not_take_part() -> None:
    source = f"""{HEAD}
__global__ void f(const int *in, int *out, int steps) {{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 64 || t % 32 == 5) return;
    s[t] = in[t];
    asm volatile("bar.sync 3;" ::: "memory");
    if (t % 32 != 26) out[t] = s[63 - t];
}}"""
    for schedule in SCHEDULES:
        assert find_kinds(source, 96, schedule) == set()


ERRORS = {
    "count of half a warp": ("sync(1, 48);", "48 threads, which is not a multiple of 32"),
    "count of no thread": ("sync(1, 0);", "0 threads, which is not a multiple of 32"),
    "count above the block's threads": ("sync(1, 128);", "128 threads, but the block has 96"),
    "different counts": ("if (t < 32) sync(1, 64); else sync(1, 96);", "threads, but .* arrived there with (64|96)"),
    "unknown barrier": ("sync(16, 64);", "barrier 16; a block has barriers 0 to 15"),
    "warps that do not arrive": ("if (t < 32) sync(1, 64);", "barrier 1 waits for 64 threads, and 32 have arrived"),
    "arrival at another barrier": (
        "if (t < 32) sync(1, 64); else arrive(2, 96);",
        "barrier 1 waits for 64 threads, and 32 have arrived",
    ),
    "part of a warp": ("if (t != 3) sync(1, 64);", "thread .3,0,0. .* does not reach"),
    "barriers that differ in a warp": ("sync(1 + t % 2, 64);", "the threads of a warp name different barriers"),
}


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1"])
@pytest.mark.parametrize("name", ERRORS)
def test_wrong_use_is_an_error(name: str, schedule: str) -> None:
    body, reason = ERRORS[name]
    kernel = build(f"{HEAD} __global__ void f(int *a) {{ int t = threadIdx.x; {body} a[t] = 1; }}").kernel("f")
    with pytest.raises(LaunchError, match=reason) as caught:
        kernel.launch((1, 1, 1), (96, 1, 1), [np.zeros(384, np.uint8)], schedule=schedule)
    assert caught.value.kind == "barrier"
    assert caught.value.position is not None
    assert caught.value.thread


@pytest.mark.parametrize("name", ["warps that do not arrive", "arrival at another barrier"])
def test_wrong_use_in_a_schedule_of_lanes(name: str) -> None:
    kernel = build(f"{HEAD} __global__ void f(int *a) {{ int t = threadIdx.x; {ERRORS[name][0]} a[t] = 1; }}").kernel(
        "f"
    )
    with pytest.raises(LaunchError) as caught:
        kernel.launch((1, 1, 1), (64, 1, 1), [np.zeros(256, np.uint8)], schedule="lanes:1")
    assert caught.value.kind == "barrier"


SPLIT = """__global__ void f(int *a) {
    int t = threadIdx.x;
    if (t % 2) {
        a[t] = 1;
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        a[t] = 2 + a[t ^ 33];
    }
}"""


def test_an_unaligned_barrier_in_two_branches_needs_independent_lanes() -> None:
    a = np.zeros(64, np.int32)
    kernel = build(SPLIT).kernel("f")
    with pytest.raises(LaunchError, match=r"does not reach barrier\.sync") as caught:
        kernel.launch((1, 1, 1), (64, 1, 1), [a.view(np.uint8)])
    assert "--schedule lanes:1" in caught.value.advice
    kernel.launch((1, 1, 1), (64, 1, 1), [a.view(np.uint8)], schedule="lanes:1")
    assert a.tolist() == [3, 1] * 32


def test_compiled_code_refuses_named_barriers() -> None:
    with pytest.raises(UnsupportedKernel, match="a barrier for some of a block's threads"):
        build(RING).compiled_kernel("f").launch(
            (1, 1, 1), (64, 1, 1), [np.zeros(768, np.uint8), np.zeros(256, np.uint8), np.int32(6)]
        )


_VOTE = """
__global__ void f(const int *in, int *out, int steps) {
    __shared__ int s[64];
    int t = threadIdx.x, both = 0, one = 0;
    unsigned count;
    s[t] = in[t];
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; OP.red.popc.u32 %0, 0, p; }"
                 : "=r"(count) : "r"(s[t]), "r"(steps) : "memory");
    int other = s[63 - t];
    asm volatile("{ .reg .pred p, q; setp.lt.s32 p, %1, 64; OP.red.and.pred q, 0, p; selp.s32 %0, 1, 0, q; }"
                 : "=r"(both) : "r"(t) : "memory");
    asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 70; OP.red.or.pred q, 0, !p; selp.s32 %0, 1, 0, q; }"
                 : "=r"(one) : "r"(t) : "memory");
    out[t] = other + 100 * (int)count + 10000 * both + 100000 * one;
}"""


@pytest.mark.parametrize("operation", ["bar", "barrier.cta", "barrier"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_combines_predicates(operation: str, schedule: str) -> None:
    simulation = run(_VOTE.replace("OP", operation), schedule=schedule, grid=1)
    assert simulation.findings == []
    assert simulation.arrays[1].tolist() == [63 - t + 100 * 6 + 10000 + 100000 for t in range(64)]


def test_compiled_code_combines_predicates_at_a_barrier() -> None:
    module, given, out = build(_VOTE.replace("OP", "bar")), np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    module.compiled_kernel("f").launch((1, 1, 1), (64, 1, 1), [given.view(np.uint8), out.view(np.uint8), np.int32(6)])
    assert out.tolist() == [63 - t + 100 * 6 + 10000 + 100000 for t in range(64)]


@pytest.mark.parametrize("operands", ["1", "0, 32", "%1"])
def test_a_vote_at_another_barrier_is_refused(operands: str) -> None:
    source = f"""
__global__ void f(const int *in, int *out, int steps) {{
    unsigned count;
    asm volatile("{{ .reg .pred p; setp.lt.s32 p, %1, 3; bar.red.popc.u32 %0, {operands}, p; }}" : "=r"(count)
                 : "r"(steps));
    out[threadIdx.x] = count;
}}"""
    with pytest.raises(CompileError, match=r"bar\.red\.popc\.u32 at a barrier other than 0 or with a thread count"):
        run(source)
