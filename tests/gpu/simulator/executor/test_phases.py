"""Barriers that are objects in shared memory, and copies that their phases wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.base.warp import WARP
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.warpgroups import WarpgroupChecker
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements, trace_kernel
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]

SOURCE = """
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void turns(const float *in, float *out) {
    __shared__ float s[64];
    __shared__ Barrier all;
    int t = threadIdx.x;
    if (t == 0) init(&all, blockDim.x);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        s[t] = in[t] + i;
        Barrier::arrival_token token = all.arrive();
        all.wait(token);
        out[(blockIdx.x * 3 + i) * 64 + t] = s[63 - t];
        all.arrive_and_wait();
    }
}

// One warp brings what the other one takes: two stages that are full or empty.
__global__ void roles(const float *in, float *out) {
    __shared__ float s[2][32];
    __shared__ Barrier full[2], empty[2];
    int t = threadIdx.x % 32;
    if (threadIdx.x < 2) init(&full[threadIdx.x], 32), init(&empty[threadIdx.x], 32);
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < 6; ++i) {
            empty[i % 2].wait_parity(i / 2 % 2 == 0);
            s[i % 2][t] = in[i * 32 + t];
            full[i % 2].arrive();
        }
    } else {
        for (int i = 0; i < 6; ++i) {
            full[i % 2].wait_parity(i / 2 % 2);
            out[i * 32 + t] = s[i % 2][31 - t];
            empty[i % 2].arrive();
        }
    }
}

template <int Stages>
__global__ void stages(const float *in, float *out) {
    __shared__ float s[Stages][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, Stages> state;
    auto block = cooperative_groups::this_thread_block();
    auto line = cuda::make_pipeline(block, &state);
    for (int i = 0, next = 0; i < 5; ++i) {
        for (; next < 5 && next < i + Stages; ++next) {
            line.producer_acquire();
            cuda::memcpy_async(block, s[next % Stages], in + next * 64, sizeof(float) * 64, line);
            line.producer_commit();
        }
        line.consumer_wait();
        out[i * 64 + threadIdx.x] = s[i % Stages][63 - threadIdx.x];
        line.consumer_release();
    }
}

__global__ void alone(const float *in, float *out) {
    __shared__ float s[2][64];
    auto line = cuda::make_pipeline();
    int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        cuda::memcpy_async(&s[i][t], in + i * 64 + t, sizeof(float), line);
        line.producer_commit();
    }
    for (int i = 0; i < 2; ++i) {
        line.consumer_wait();
        out[i * 64 + t] = s[i][t];
        line.consumer_release();
    }
}

__global__ void brought(const float *in, float *out) {
    __shared__ float s[64];
    __shared__ Barrier here;
    auto block = cooperative_groups::this_thread_block();
    if (threadIdx.x == 0) init(&here, 64);
    block.sync();
    cuda::memcpy_async(block, s, in, sizeof(s), here);
    here.arrive_and_wait();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void bulk(const float *in, float *out) {
    __shared__ __align__(16) float s[256], t[256];
    __shared__ unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(1024));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         to), "l"(in), "r"(1024), "r"(b) : "memory");
    }
    WAITS
    for (int i = threadIdx.x; i < 256; i += 64) t[i] = s[255 - i];
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out),
                     "r"((unsigned)__cvta_generic_to_shared(t)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;");
    }
}
"""
WAITS = (
    'asm volatile("{\\n.reg .pred P1;\\nLAB_WAIT:\\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n'
    '@P1 bra DONE;\\nbra LAB_WAIT;\\nDONE:\\n}" ::"r"(b), "r"(0));'
)
ASKS = (
    "for (unsigned done = 0; !done;) {"
    'asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }" '
    ': "=r"(done) : "r"(b) : "memory"); }'
)


@pytest.fixture(scope="module")
def module() -> SimulatedModule:
    return build(SOURCE, {"WAITS": WAITS})


GIVEN = np.arange(1, 385, dtype=np.float32)


def _run_compiled(module: SimulatedModule, kernel: str, size: int, block: int = 64, grid: int = 1) -> Array:
    """Return what a kernel makes of `GIVEN` as machine code."""
    out = np.zeros(size, np.float32)
    module.compiled_kernel(kernel).launch((grid, 1, 1), (block, 1, 1), [GIVEN.view(np.uint8), out.view(np.uint8)])
    return out


def _run(module: SimulatedModule, kernel: str, size: int, block: int = 64, grid: int = 1) -> Array:
    """Run a kernel in several orders, as machine code and watched; return what it makes of `GIVEN`."""
    found = launch(module, kernel, GIVEN, np.zeros(size, np.float32), block=block, grid=grid)[1]
    for schedule in ("shuffle:1", "cached:0"):
        out = np.zeros(size, np.float32)
        given = [GIVEN.view(np.uint8), out.view(np.uint8)]
        module.kernel(kernel).launch((grid, 1, 1), (block, 1, 1), given, schedule=schedule)
        np.testing.assert_array_equal(out, found, err_msg=schedule)
    np.testing.assert_array_equal(_run_compiled(module, kernel, size, block, grid), found)
    for checker in (RaceChecker(), UninitializedChecker()):
        launch_watched(checker, module, GIVEN, np.zeros(size, np.float32), kernel=kernel, block=block, grid=grid)
        assert not checker.findings, checker.findings[0].message
    return found


def test_threads_take_turns_by_phases(module: SimulatedModule) -> None:
    out = _run(module, "turns", 384, grid=2).reshape(2, 3, 64)
    for block in out:
        np.testing.assert_array_equal(block, [GIVEN[63::-1] + i for i in range(3)])


def test_warps_with_roles_bring_and_take(module: SimulatedModule) -> None:
    out = _run(module, "roles", 192)
    np.testing.assert_array_equal(out.reshape(6, 32), GIVEN[:192].reshape(6, 32)[:, ::-1])


@pytest.mark.parametrize("stages", [1, 3])
def test_a_pipeline_of_a_block_has_stages(module: SimulatedModule, stages: int) -> None:
    out = _run(module, f"stages<{stages}>", 320)
    np.testing.assert_array_equal(out.reshape(5, 64), GIVEN[:320].reshape(5, 64)[:, ::-1])


def test_a_pipeline_of_a_thread_has_no_stages(module: SimulatedModule) -> None:
    np.testing.assert_array_equal(_run(module, "alone", 128), GIVEN[:128])


DIVIDED = """
#include <cooperative_groups.h>
#include <cuda/pipeline>
__global__ void divided(const float *in, float *out) {
    __shared__ float s[2][32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    const bool produces = threadIdx.x >= 32;
    auto line = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, ROLE);
    int t = threadIdx.x % 32;
    for (int i = 0; i < 5; ++i) {
        if (produces) {
            line.producer_acquire();
            cuda::memcpy_async(&s[i % 2][t], in + i * 32 + t, sizeof(float), line);
            line.producer_commit();
        } else {
            line.consumer_wait();
            out[i * 32 + t] = s[i % 2][31 - t];
            line.consumer_release();
        }
    }
    line.quit();
}"""


@pytest.mark.parametrize("role", ["produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer", "32"])
def test_warps_are_the_producers_and_consumers_of_a_pipeline(role: str) -> None:
    out = _run(build(DIVIDED, {"ROLE": role}), "divided", 160)
    np.testing.assert_array_equal(out.reshape(5, 32), GIVEN[:160].reshape(5, 32)[:, ::-1])


def test_a_race_between_warps_of_a_pipeline_names_its_stages() -> None:
    module = build(DIVIDED.replace("line.producer_acquire();", "if (i == 0) line.producer_acquire();"), {"ROLE": "32"})
    checker = RaceChecker()
    launch_watched(checker, module, GIVEN, np.zeros(160, np.float32), kernel="divided", block=64)
    assert "or let the thread of the second access wait for a cuda::barrier" in checker.findings[0].message


def test_warps_that_go_their_own_ways_exchange_leave_and_meet_as_machine_code() -> None:
    # 45 threads, so that the last warp is not whole, in a block that is no line, some of which return.
    module = build("""
    #include <cuda/barrier>
    __global__ void k(const float *in, float *out) {
        __shared__ float s[45];
        __shared__ cuda::barrier<cuda::thread_scope_block> all;
        int t = threadIdx.y * blockDim.x + threadIdx.x;
        if (t == 0) init(&all, 45);
        __syncthreads();
        float mine = in[t] + __shfl_sync(0xffffffff, in[t], 0);
        s[t] = mine;
        if (t % 7 == 3) {
            all.arrive();
            return;
        }
        if (t < 32) {
            all.arrive_and_wait();
        } else {
            auto token = all.arrive();
            while (!all.try_wait(token)) {
            }
        }
        float sum = 0;
        for (int i = 0; i < 45; ++i) sum += s[i];
        out[t] = sum;
        __syncthreads();
        s[t] = t;
        __syncthreads();
        out[45 + t] = s[(t + 4) % 45];
    }""")
    found = []
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        out = np.zeros(90, np.float32)
        kernel.launch((1, 1, 1), (9, 5, 1), [GIVEN.view(np.uint8), out.view(np.uint8)])
        found.append(out)
    np.testing.assert_array_equal(*found)
    assert found[0][0] == sum(GIVEN[i] + GIVEN[i // 32 * 32] for i in range(45))


def test_a_phase_waits_for_the_copies_of_its_threads(module: SimulatedModule) -> None:
    np.testing.assert_array_equal(_run(module, "brought", 64), GIVEN[63::-1])


@pytest.mark.parametrize("waits", [WAITS, ASKS], ids=["loop of PTX", "loop of C++"])
def test_a_bulk_copy_arrives_at_its_barrier(waits: str) -> None:
    out = _run(build(SOURCE, {"WAITS": waits}), "bulk", 256)
    np.testing.assert_array_equal(out, GIVEN[255::-1])


def test_copies_arrive_no_sooner_than_the_phase_needs_them() -> None:
    source = """
    #include <cuda/barrier>
    __global__ void k(const float *in, float *out) {
        __shared__ float s[2];
        __shared__ cuda::barrier<cuda::thread_scope_block> here;
        init(&here, 2);
        s[0] = -1;
        cuda::memcpy_async(s, in, sizeof(float), here);
        here.arrive();
        out[0] = here.try_wait_parity(0);
        out[1] = s[0];
        here.arrive_and_wait();
        out[2] = s[0];
    }"""
    out = launch(build(source), "k", GIVEN, np.zeros(3, np.float32), block=1)[1]
    assert out.tolist() == [0, -1, 1]


def test_what_a_bulk_copy_brings_is_not_there_before_and_is_a_race(module: SimulatedModule) -> None:
    early = build(SOURCE, {"WAITS": "if (threadIdx.x) return;"})
    out = launch(early, "bulk", GIVEN, np.zeros(256, np.float32), block=64)[1]
    assert np.isnan(out[0])
    checker = RaceChecker()
    launch_watched(checker, early, GIVEN, np.zeros(256, np.float32), kernel="bulk", block=64)
    assert len(checker.findings) == 1
    assert "wait for a phase of its mbarrier that expects all its bytes (expect_tx)" in checker.findings[0].message


def test_threads_that_do_not_meet_the_one_that_waits_race_with_a_bulk_copy() -> None:
    early = build(SOURCE, {"WAITS": f"if (threadIdx.x == 0) {{ {WAITS} }}"})
    checker = RaceChecker()
    launch_watched(checker, early, GIVEN, np.zeros(256, np.float32), kernel="bulk", block=64)
    assert "Only a thread that waits for the phase of the mbarrier knows" in checker.findings[0].message


@pytest.mark.parametrize(
    ("fence", "missing"),
    [
        ("fence.mbarrier_init.release.cluster;", False),
        ("fence.proxy.async.shared::cta;", False),
        ("fence.acq_rel.cta;", True),
        ("", True),
    ],
)
def test_a_bulk_copy_sees_a_barrier_that_was_fenced_after_it_was_made(fence: str, missing: bool) -> None:
    source = SOURCE.replace("WAITS", WAITS).replace("fence.mbarrier_init.release.cluster;", fence)
    checker = WarpgroupChecker()
    launch_watched(checker, build(source), GIVEN, np.zeros(256, np.float32), kernel="bulk", block=64)
    assert bool(checker.findings) == missing
    assert all("a fence.proxy.async between them" in each.message for each in checker.findings)


@pytest.mark.parametrize(
    ("kernel", "without", "write", "read"),
    [
        ("roles", "full[i % 2].wait_parity(i / 2 % 2);", "s[i % 2][t] = in", "out[i * 32 + t] = s[i % 2]"),
        ("turns", "all.arrive_and_wait();", "s[t] = in[t] + i;", "* 64 + t] = s[63 - t];"),
    ],
)
def test_who_does_not_wait_for_the_phase_races(kernel: str, without: str, write: str, read: str) -> None:
    # Of two rounds: who is a phase ahead of others would never let them see the one that they wait for.
    source = (
        SOURCE.replace("i < 6", "i < 2")
        .replace("empty[i % 2].wait_parity(i / 2 % 2 == 0);", "")
        .replace(without, "")
        .replace("WAITS", WAITS)
    )
    checker = RaceChecker()
    launch_watched(checker, source, GIVEN, np.zeros(192, np.float32), kernel=kernel, block=64, max_rounds=200)
    text = source.splitlines()
    found = tuple(next(number for number, line in enumerate(text, 1) if part in line) for part in (write, read))
    assert finding_lines(checker.findings) == [found]


def test_the_barrier_itself_is_initialized_before_others_come() -> None:
    source = SOURCE.replace("if (t == 0) init(&all, blockDim.x);\n    __syncthreads();", "if (t == 0) init(&all, 64);")
    checker = RaceChecker()
    launch_watched(
        checker, source, GIVEN, np.zeros(192, np.float32), kernel="turns", block=64, defines={"WAITS": WAITS}
    )
    assert any("all (shared memory)" in each.message for each in checker.findings)


def test_a_recording_follows_a_copy_through_its_barrier() -> None:
    source = SOURCE.replace("WAITS", WAITS)
    made, _ = trace_kernel(source, [GIVEN[:256], np.zeros(256, np.float32)], kernel="bulk", block=64)
    assert input_elements(find_ancestry(made, "out", 10)) == [245]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("all.arrive();", "uses a barrier that is not initialized"),
        ("init(&all, 0);", "initializes a barrier for 0 arrivals"),
        ("init(&all, 2); all.arrive(3);", "arrives at a barrier more often than its phase expects"),
        ("init(&all, 2); all.arrive_and_wait();", "waits for a phase of an mbarrier"),
    ],
)
def test_a_barrier_that_is_misused_is_an_error(body: str, reason: str) -> None:
    source = f"""#include <cuda/barrier>
    __global__ void k() {{
        __shared__ cuda::barrier<cuda::thread_scope_block> all;
        {body}
    }}"""
    module = build(source)
    with pytest.raises(LaunchError, match=f"test.cu:4:.*({reason})"):
        module.kernel("k").launch((1, 1, 1), (1, 1, 1), [], max_rounds=50)
    reason = reason.replace("0 arrivals", "no arrivals").replace("of an mbarrier", ".*does not end")
    with pytest.raises(LaunchError, match=r"(test.cu|lockstep_barrier.h):.*thread \(0,0,0\) in block.*" + reason):
        module.compiled_kernel("k").launch((1, 1, 1), (1, 1, 1), [])


def test_a_thread_that_waits_for_a_phase_may_do_what_others_wait_for() -> None:
    source = """
    #include <cuda/barrier>
    __global__ void k(int *flag, int *out) {
        __shared__ cuda::barrier<cuda::thread_scope_block> here;
        if (threadIdx.x == 0) init(&here, 1);
        __syncthreads();
        if (threadIdx.x == 32) {
            while (!*(volatile int *)flag) {}
            here.arrive();
        } else if (threadIdx.x == 0) {
            while (!here.try_wait_parity(0)) *(volatile int *)flag = *out + 1;
            *out = 5;
        }
    }"""
    flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    arguments = [flag.view(np.uint8), out.view(np.uint8)]
    build(source).kernel("k").launch((1, 1, 1), (64, 1, 1), arguments, max_rounds=5000)
    assert (flag[0], out[0]) == (1, 5)


GRID = """
#include <cooperative_groups.h>
#include <cuda/barrier>
__global__ void mirror(const float *in, float *reversed, float *out) {
    __shared__ float s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0) init(&all, blockDim.x);
    __syncthreads();
    s[t] = in[i];
    WAIT
    reversed[i] = s[63 - t];
    cooperative_groups::this_grid().sync();
    out[i] = reversed[(gridDim.x - 1 - blockIdx.x) * 64 + t];
}"""


def test_a_grid_with_mbarriers_that_is_too_large_for_warps_runs_in_lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu.simulator.executor.launches.residency._RESIDENT_LANES", {WARP: 128, 1: 64})
    arrays = [GIVEN[:256], np.zeros(256, np.float32), np.zeros(256, np.float32)]
    *_, out = launch(build(GRID, {"WAIT": "all.wait(all.arrive());"}), "mirror", *arrays, grid=4, block=64)
    np.testing.assert_array_equal(out, GIVEN[255::-1])
    for wait, races in (("all.wait(all.arrive());", 0), ("all.arrive();", 1)):
        checker = RaceChecker()
        launch_watched(checker, build(GRID, {"WAIT": wait}), *arrays, kernel="mirror", grid=4, block=64)
        assert len(checker.findings) == races
    waits_first = "if (t < 32) all.arrive_and_wait(); else { auto token = all.arrive(); }"
    with pytest.raises(LaunchError, match=r"a grid of 256 threads.*with mbarriers.*no more than 128 at once"):
        launch(build(GRID, {"WAIT": waits_first}), "mirror", *arrays, grid=4, block=64)
