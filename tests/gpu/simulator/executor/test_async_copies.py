"""Copies to shared memory that go on while threads do: they arrive at the wait; who does not wait races."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.kernel_runner import build, launch
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements, trace_kernel
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]
VALUES = np.arange(1, 257, dtype=np.float32)

# What starts a copy of 4 * N bytes, what ends a group, and what waits for all but L groups.
PRIMITIVES = """
#include <cuda_pipeline.h>
#define COPY(to, from) __pipeline_memcpy_async(to, from, 4 * N)
#define COMMIT() __pipeline_commit()
#define WAIT(L) __pipeline_wait_prior(L)
"""
PTX = """
#define COPY(to, from)                                                                                             \\
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),        \\
                 "l"(from), "n"(4 * N))
#define COMMIT() asm volatile("cp.async.commit_group;")
#define WAIT(L) asm volatile("cp.async.wait_group %0;" ::"n"(L))
"""
DOUBLE_BUFFER = """
__global__ void k(const float *in, float *out, int rounds) {
    __shared__ __align__(16) float s[2][32 * N];
    int t = threadIdx.x;
    COPY(&s[0][t * N], in + t * N);
    COMMIT();
    for (int i = 0; i < rounds; ++i) {
        if (i + 1 < rounds) {
            COPY(&s[(i + 1) % 2][t * N], in + (i + 1) * 32 * N + t * N);
        }
        COMMIT();
        WAIT(1);
        __syncthreads();
        for (int j = 0; j < N; ++j) out[(i * 32 + t) * N + j] = s[i % 2][(31 - t) * N + j];
        __syncthreads();
    }
}
"""


def _run_on_both(source: str, defines: Mapping[str, int | str], *arguments: Any, kernel: str = "k") -> list[Array]:
    """Run a kernel on both executors, and watched, which finds nothing."""
    module = build(source, defines)
    found = launch(module, kernel, *arguments)
    copies = [np.array(each, order="C") if isinstance(each, np.ndarray) else each for each in arguments]
    bound = [each.reshape(-1).view(np.uint8) if each.ndim else each for each in copies]
    module.compiled_kernel(kernel).launch((1, 1, 1), (32, 1, 1), bound)
    arrays = [each for each in copies if each.ndim]
    for lockstep, compiled in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(compiled, lockstep)
    races, unset = RaceChecker(), UninitializedChecker()
    for checker in (races, unset):
        launch_watched(checker, module, *copies, kernel=kernel)
    assert not races.findings
    assert not unset.findings
    return found


@pytest.mark.parametrize("words", [1, 2, 4])
@pytest.mark.parametrize("how", [PRIMITIVES, PTX], ids=["primitives", "ptx"])
def test_two_buffers_take_turns(how: str, words: int) -> None:
    given = np.arange(96 * words, dtype=np.float32)
    _, out = _run_on_both(how + DOUBLE_BUFFER, {"N": words}, given, given * 0, np.int32(3))
    np.testing.assert_array_equal(out.reshape(3, 32, words), given.reshape(3, 32, words)[:, ::-1])


def test_a_copy_that_is_not_waited_for_has_not_arrived() -> None:
    """Of three groups two may be left: the first has arrived, the others have not, whoever asks."""
    source = (
        PRIMITIVES
        + """
    __global__ void k(const float *in, float *out) {
        __shared__ float s[3 * 32];
        int t = threadIdx.x;
        for (int i = 0; i < 3; ++i) s[i * 32 + t] = -1;
        for (int i = 0; i < 3; ++i) {
            COPY(&s[i * 32 + t], in + i * 32 + t);
            COMMIT();
        }
        WAIT(2);
        for (int i = 0; i < 3; ++i) out[i * 32 + t] = s[i * 32 + t];
    }"""
    )
    _, out = launch(build(source, {"N": 1}), "k", VALUES[:96], np.zeros(96, np.float32))
    np.testing.assert_array_equal(out, [*VALUES[:32], *[-1] * 64])


@pytest.mark.parametrize(
    ("between", "races"),
    [
        # The thread itself reads, or writes, what its copy has not brought.
        ("x = s[t];", True),
        ("s[t] = 3;", True),
        # It changes what is still to be read.
        ("in[t] = 3;", True),
        ("x = in[t];", False),
        # A barrier is no wait, nor is one for groups before this one.
        ("__syncthreads(); x = s[t];", True),
        ("WAIT(0); x = s[t];", True),
        ("COMMIT(); WAIT(1); x = s[t];", True),
        ("COMMIT(); COMMIT(); WAIT(1); x = s[t];", False),
        # Another thread needs a barrier behind the wait.
        ("COMMIT(); WAIT(0); x = s[63 - t];", True),
        ("COMMIT(); WAIT(0); __syncthreads(); x = s[63 - t];", False),
    ],
)
def test_who_does_not_wait_races_with_the_copy(between: str, races: bool) -> None:
    source = (
        PRIMITIVES
        + f"""
    __global__ void k(float *in, float *out) {{
        __shared__ float s[64];
        int t = threadIdx.x;
        float x = 0;
        s[t] = 0;
        __syncthreads();
        COPY(&s[t], in + t);
        {between}
        COMMIT();
        WAIT(0);
        out[t] = x;
    }}"""
    )
    checker = RaceChecker()
    launch_watched(
        checker, source, VALUES[:64].copy(), np.zeros(64, np.float32), kernel="k", block=64, defines={"N": 1}
    )
    text = source.splitlines()
    copy = next(number for number, line in enumerate(text, 1) if "COPY(&s" in line)
    assert finding_lines(checker.findings) == ([(copy, copy + 1)] if races else [])


@pytest.mark.parametrize(("between", "races"), [("", True), ("COMMIT();", True), ("COMMIT(); WAIT(0);", False)])
def test_a_copy_that_begins_where_another_one_goes_on_races(between: str, races: bool) -> None:
    """Of two that arrive at one wait nobody knows which is the later one."""
    source = (
        PRIMITIVES
        + f"""
    __global__ void k(const float *in, float *out) {{
        __shared__ float s[32];
        int t = threadIdx.x;
        COPY(&s[t], in + t);
        {between}
        COPY(&s[t], in + 31 - t);
        COMMIT();
        WAIT(0);
        out[t] = s[t];
    }}"""
    )
    checker = RaceChecker()
    launch_watched(checker, source, VALUES, np.zeros(32, np.float32), kernel="k", defines={"N": 1})
    first = source[: source.index("COPY(&s")].count("\n") + 1
    assert finding_lines(checker.findings) == ([(first, first + 2)] if races else [])


def test_the_finding_says_that_a_wait_would_order_the_two() -> None:
    source = (
        PRIMITIVES
        + """
    __global__ void k(const float *in, float *out) {
        __shared__ float s[32];
        COPY(&s[threadIdx.x], in + threadIdx.x);
        out[threadIdx.x] = s[threadIdx.x];
    }"""
    )
    checker = RaceChecker()
    launch_watched(checker, source, VALUES, np.zeros(32, np.float32), kernel="k", defines={"N": 1})
    (only,) = checker.findings
    assert only.message.startswith("Race reported between Write access at test.cu:9 by thread (0,0,0)")
    assert "Read access at test.cu:10 by thread (0,0,0)" in only.message
    assert "add a wait between the two accesses, such as __pipeline_wait_prior(), or let an existing" in only.message


@pytest.mark.parametrize("given", [0, 4, 6, 12, 16])
def test_what_is_not_given_is_zero(given: int) -> None:
    source = """
    #include <cuda_pipeline.h>
    __global__ void k(const unsigned *in, unsigned *out, int given) {
        __shared__ __align__(16) unsigned s[2][32 * 4];
        int t = threadIdx.x;
        for (int i = 0; i < 8; ++i) s[i / 4][t * 4 + i % 4] = 77;
        __pipeline_memcpy_async(s[0] + t * 4, in + t * 4, 16, 16 - given);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(s[1] + t * 4)), "l"(in + t * 4), "r"(given));
        asm volatile("cp.async.wait_all;");
        for (int i = 0; i < 8; ++i) out[i / 4 * 128 + t * 4 + i % 4] = s[i / 4][t * 4 + i % 4];
    }"""
    rows = np.random.default_rng(1).integers(1, 255, (32, 16)).astype(np.uint8)
    _, out = _run_on_both(source, {}, rows.view(np.uint32), np.zeros((2, 32, 4), np.uint32), np.int32(given))
    rows[:, given:] = 0
    np.testing.assert_array_equal(out.view(np.uint8), [rows, rows])


def test_a_copy_of_nothing_but_zeros_reads_nothing() -> None:
    """Its source may be anywhere, also for who looks for races."""
    source = """
    #include <cuda_pipeline.h>
    __global__ void k(const float *in, float *out, int n) {
        __shared__ float s[32];
        int t = threadIdx.x;
        __pipeline_memcpy_async(&s[t], in + t * 1000, 4, t < n ? 0 : 4);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        out[t] = s[t];
    }"""
    checker, out = RaceChecker(), np.ones(32, np.float32)
    launch_watched(checker, source, VALUES[:1], out, np.int32(1), kernel="k")
    assert not checker.findings
    np.testing.assert_array_equal(out, [VALUES[0], *[0] * 31])


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const float *in, float *out) {
    __shared__ __align__(16) float s[3][64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, s[0], in, sizeof(float) * 64);
    cg::memcpy_async(block, s[1], in + 64, cuda::aligned_size_t<16>(sizeof(float) * 64));
    cg::memcpy_async(block, s[2], 64, in + 128, 60);
#ifdef EARLY
    out[block.thread_rank()] = s[EARLY][block.thread_rank()];
#endif
    cg::wait_prior<1>(block);
    for (int i = block.thread_rank(); i < 128; i += block.size()) out[i] = s[i / 64][63 - i % 64];
    cg::wait(block);
    for (int i = block.thread_rank(); i < 60; i += block.size()) out[128 + i] = s[2][59 - i];
}"""


def test_a_group_copies_together() -> None:
    _, out = _run_on_both(GROUPS, {}, VALUES[:192], np.zeros(188, np.float32))
    parts = [VALUES[:64], VALUES[64:128], VALUES[128:188]]
    np.testing.assert_array_equal(out, np.concatenate([part[::-1] for part in parts]))
    checker = RaceChecker()
    launch_watched(checker, GROUPS, VALUES[:192], np.zeros(188, np.float32), kernel="k", defines={"EARLY": 2})
    assert (10, 12) in finding_lines(checker.findings)


def test_lanes_that_run_ahead_have_their_own_groups() -> None:
    """A lane's groups are its own: one commits more often than its neighbor."""
    source = (
        PRIMITIVES
        + """
    __global__ void k(const float *in, float *out) {
        __shared__ float s[32];
        int t = threadIdx.x;
        s[t] = -1;
        COPY(&s[t], in + t);
        COMMIT();
        if (t % 2) {
            COMMIT();
        }
        WAIT(1);
        out[t] = s[t];
    }"""
    )
    expected = np.where(np.arange(32) % 2, VALUES[:32], -1)
    for schedule in ("round-robin", "lanes:3"):
        out = np.zeros(32, np.float32)
        given = [VALUES.view(np.uint8), out.view(np.uint8)]
        build(source, {"N": 1}).kernel("k").launch((1, 1, 1), (32, 1, 1), given, schedule=schedule)
        np.testing.assert_array_equal(out, expected)


def test_a_recording_knows_where_what_was_copied_is_from() -> None:
    made, _ = trace_kernel(
        "#define N 1" + PRIMITIVES + DOUBLE_BUFFER,
        [np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.int32(2)],
    )
    found = find_ancestry(made, "out", 40)
    assert input_elements(found) == [32 + 31 - 8]


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        ("__pipeline_memcpy_async(s, in, 12);", "starts a copy of 12 bytes; the size must be 4, 8 or 16"),
        ("__pipeline_memcpy_async(s + 1, in, 8);", "its address in s is misaligned"),
        ("__pipeline_memcpy_async(s, in + 1, 16);", "its address in in is misaligned"),
        ("__pipeline_memcpy_async(s + 64, in, 4);", "element 64 of s, which has 64"),
        ("__pipeline_memcpy_async(s, in + 256, 4);", "element 256 of in, which has 256"),
    ],
)
def test_a_copy_that_no_gpu_makes_is_an_error(copy: str, reason: str) -> None:
    source = f"""#include <cuda_pipeline.h>
    __global__ void k(const float *in) {{
        __shared__ float s[64];
        {copy}
        __pipeline_commit();
        __pipeline_wait_prior(0);
    }}"""
    with pytest.raises(LaunchError, match=f"test.cu:4:9: .*{reason}"):
        launch(build(source), "k", VALUES, block=1)
