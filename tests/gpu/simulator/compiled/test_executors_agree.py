"""The compiled executor against the lockstep one: the same kernels, the same launches, the same results."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu import engines
from gpu.base.errors import LaunchError
from gpu.base.paths import KERNELS
from gpu.declaration.pattern import Choice
from gpu.declaration.presentation import ArrayPresentation, BodiesPresentation, MatrixPresentation
from gpu.patterns import all_patterns
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.compiled import native_code
from gpu.simulator.compiled.block import masks
from gpu.simulator.compiled.kernel import compile_kernel
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.simulated_module import SimulatedModule

LADDER = [
    (pattern, variant) for pattern in all_patterns().values() for variant in pattern.variants if not variant.library
]


@cache
def build_module(text: str) -> SimulatedModule:
    return SimulatedModule(text, Path("kernel.cu"), {})


def run_on_both(text: str, name: str, grid: int, block: tuple[int, ...], *arguments, shared_bytes: int = 0) -> None:
    """Run a kernel on both executors and compare all that its arrays hold."""
    module = build_module(text)
    shape = (*block, *[1] * (3 - len(block)))
    results = []
    for kernel in (module.kernel(name), module.compiled_kernel(name)):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        raw = [each.view(np.uint8).ravel() if isinstance(each, np.ndarray) else each for each in given]
        kernel.launch((grid, 1, 1), shape, raw, shared_bytes=shared_bytes)
        results.append([each for each in given if isinstance(each, np.ndarray)])
    for lockstep, compiled in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, lockstep)


@pytest.fixture(scope="module")
def engine():
    made = engines.create_engine("simulator", "compiled")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("pattern", "variant", "choice", "block"),
    [
        # The first tier has each variant with one of the sets, and each set with half of each pattern's variants.
        pytest.param(
            pattern, variant, choice, block,
            id=f"{pattern.name}-{variant.name}-{name}",
            marks=[pytest.mark.sweep] * ((number + choice) % 2),
        )
        for number, (pattern, variant) in enumerate(LADDER)
        for name, choice, block in (("first choices", 0, "256"), ("last choices", -1, "32"))
    ],
)  # fmt: skip
def test_every_rung_is_compiled_and_right(engine, pattern, variant, choice, block) -> None:
    """The patterns' own tests run in lockstep; here is each rung with two sets of macros, at awkward sizes."""
    if variant.name == "racy":
        pytest.skip("its result is wrong by design, and differs from run to run")
    params = {each.name: each.options[choice] for each in pattern.parameters if isinstance(each, Choice)}
    made = {
        ArrayPresentation: lambda: small_arrays(block),
        MatrixPresentation: small_matrices,
        BodiesPresentation: lambda: small_bodies(block),
    }
    small = made.get(type(pattern.presentation), small_images)
    if pattern.is_image_pattern and pattern.input_kind(pattern.check(params)) == "values":
        small = small_numbers
    for inputs, size in small():
        if variant.name == "quicksort" and size["n"] != 5000:
            continue  # its longest kernel is made anew for most sizes
        chosen = params | size
        made_of = pattern.prepare_inputs(inputs, pattern.check(chosen), 1)
        for each in pattern.parameters:
            if (
                isinstance(each, Choice)
                and not variant.is_single_thread
                and variant.obstacle(made_of, pattern.check(chosen))
            ):
                chosen[each.name] = each.options[0]  # such as pixels of a type that it does not take
        if variant.obstacle(made_of, pattern.check(chosen)):
            assert variant.is_single_thread
            continue  # more than one thread is asked to do
        outcome = run_pattern(engine, Workload(pattern, variant, made_of, chosen), print)
        assert (outcome.report.executor, outcome.report.fallback) == ("compiled", "")
        assert outcome.report.verified


def small_arrays(block: str):
    for n in (0, 1, 31, 32, 33, 257, 1000, 5000):
        yield {}, {"n": n, "block": block, "input": "random"}


def small_bodies(block: str):
    for n in (33, 300):
        yield {}, {"preset": "plummer", "bodies": n, "block": block, "steps": 1}


def small_matrices():
    for n in (1, 33, 70):
        yield {}, {"n": n, "input": "random"}


def small_numbers():
    for n in (1, 33, 5000):
        yield {"values": np.random.default_rng(n).normal(size=n).astype(np.float32)}, {}


def small_images():
    rng = np.random.default_rng(3)
    for shape in ((1, 1), (1, 33), (32, 31), (37, 70, 3)):
        yield {"image": rng.integers(0, 256, shape, np.uint8), "maxval": np.array(255)}, {}


@pytest.mark.parametrize("skipped", ["u == k", "k == 1", "in[0] == k", "t % 3 == k", "t < 32"])
def test_a_loop_goes_on_where_threads_continue_before_a_barrier(skipped: str) -> None:
    barrier = "__syncwarp();" if "t" in skipped else "__syncthreads();"
    text = f"""
    __global__ void k(const int *in, int *out, int u) {{
        __shared__ int s[64];
        int t = threadIdx.x, sum = in[t];
        s[t] = 0;
        __syncthreads();
        for (int k = 0; k < 3; ++k) {{
            if ({skipped}) continue;
            s[t] += sum + k;
            {barrier}
            sum += s[t] * 3;
        }}
        out[t] = sum;
    }}"""
    run_on_both(text, "k", 1, (64,), np.arange(1, 65, dtype=np.int32), np.zeros(64, np.int32), np.int32(1))


@settings(max_examples=12, deadline=None)
@given(n=st.integers(0, 300), block=st.sampled_from([1, 32, 33, 96]), seed=st.integers(0, 9))
def test_early_returns_loops_and_branches_around_barriers(n: int, block: int, seed: int) -> None:
    text = """
    __global__ void k(int *data, int n) {
        __shared__ int s[96];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        s[threadIdx.x] = i < n ? data[i] : 0;
        for (int round = 0; round < 3; ++round) {
            __syncthreads();
            int other = s[(threadIdx.x + round) % blockDim.x];
            __syncthreads();
            s[threadIdx.x] += other / 2;
        }
        if (i >= n) return;
        int sum = 0;
        for (int k = 0; k < threadIdx.x % 5; ++k) {
            if (data[i] == k) return;
            sum += k * s[threadIdx.x];
        }
        switch (sum % 4) {
            case 1: sum += 10;
            case 2: sum *= 3; break;
            default: sum -= 1;
        }
        data[i] = sum;
    }
    """
    data = np.random.default_rng(seed).integers(-99, 99, max(n, 1), np.int32)
    run_on_both(text, "k", max(-(-n // block), 1), (block,), data, np.int32(n))


@pytest.mark.parametrize("block", [32, 40])
def test_loops_that_each_thread_begins_elsewhere(block: int) -> None:
    text = """
    __global__ void k(const int *data, int *out, int n) {
        int t = threadIdx.x;
        int start = blockIdx.x * blockDim.x + t;
        int section = n / (int)(gridDim.x * blockDim.x);
        int sum = 0;
        for (int i = start; i < n; i += gridDim.x * blockDim.x) sum += data[i];
        for (int i = start * section; i < (start + 1) * section; ++i) {
            if (data[i] % 3 == 0) continue;
            if (data[i] > 40) break;
            sum = sum * 3 + data[i];
        }
        for (int i = n - 1 - t; i >= 0; i -= blockDim.x)
            for (unsigned j = t; j < 7u; j += 2) sum ^= data[i] * (int)j;
        for (long long i = -t; i < 7 - t; i += 3) {
            __syncthreads();
            sum += (int)i << 2;
            if (t > 35 && i > -36) return;
        }
        out[start] = sum;
    }
    """
    data = np.random.default_rng(block).integers(-50, 50, 1000, np.int32)
    run_on_both(text, "k", 2, (block,), data, np.zeros(2 * block, np.int32), np.int32(1000))


_WRAPS = 2**31 - 48


_PARTED = """
__global__ void k(int *out, const int *data, int base, int end, int wide, int high, int few) {
    int x = threadIdx.x, y = threadIdx.y, t = y * 32 + x, sum = 0;
    int i = base + t;
    for (int turn = -1; turn < 2; ++turn) {
        if (i < end + turn * 200) for (int round = 0; round < few; ++round) sum += data[(i + round) & 63];
        else for (int round = 0; round < few - 1; ++round) sum -= data[round];
    }
    if ((unsigned)i - 3u < (unsigned)end) for (int round = 0; round < few; ++round) sum ^= data[round + 7];
    if (x < wide && high > y && 5 - t <= i) for (int round = 0; round < few; ++round) sum += 100 * data[round];
    for (int j = base + 2 * t, round = 0; j < end && round < 20; j += 40, ++round) sum += 3 * data[j & 31];
    for (int j = end - t; j >= base; j += 0u - 64u) { sum = 5 * sum + data[j & 15]; if (sum > 9999) break; }
    for (unsigned j = (unsigned)base + t; j < (unsigned)end; j += 96) { sum += data[j & 7]; if (j & 64) break; }
    for (int j = x % 8; j < 24; j += 8) sum = 3 * sum + data[j];
    for (int round = 0; round < 9; ++round) { int k = (5 * round + t) & 63; __syncwarp(); sum = 3 * sum + data[k]; }
    for (int round = 0; round < 9; ++round) { int k = (5 * round + t) & 63; __syncwarp(); ++round; sum ^= data[k]; }
    for (int j = t; j < 150; j += 30) { int k = j / 4; __syncwarp(); sum = 3 * sum + data[k]; }
    for (int j = x % 8; j < 23; j += 8) sum = 7 * sum + data[j];
    for (int j = x % 8; j < 24; j += 8) { sum += data[j]; __syncwarp(); if (sum & 1) break; }
    out[t] = sum;
}
"""


@pytest.mark.parametrize("block", [(96,), (32, 3)], ids=["line", "rectangle"])
@pytest.mark.parametrize(
    ("base", "end"),
    [(0, 0), (0, 96), (0, 500), (5, 40), (_WRAPS, 2**31 - 1), (-50, 3), (-(2**31) + 5, -(2**31) + 110)],
)
def test_conditions_that_hold_at_both_ends_of_a_block_may_not_hold_between(block, base: int, end: int) -> None:
    data = np.random.default_rng(abs(base)).integers(-50, 50, 64, np.int32)
    run_on_both(_PARTED, "k", 1, block, np.zeros(96, np.int32), data, *map(np.int32, (base, end, end % 33, end % 4, 3)))


@pytest.mark.parametrize("block", [(96,), (32, 3)], ids=["line", "rectangle"])
def test_a_long_kernel_has_one_loop_for_whoever_takes_part(block, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(masks, "MAX_SPECIALIZED_INSTRUCTIONS", 0)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    data = np.random.default_rng(7).integers(-50, 50, 64, np.int32)
    for base, end in ((0, 40), (0, 500), (-50, 3)):
        numbers = map(np.int32, (base, end, end % 33, end % 4, 3))
        run_on_both(f"{_PARTED}// in one loop", "k", 1, block, np.zeros(96, np.int32), data, *numbers)


def test_the_longest_kernels_go_through_few_passes_and_warps_on_their_own_through_all(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(native_code, "MAX_OPTIMIZED_LENGTH", 0)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    data = np.random.default_rng(7).integers(-50, 50, 64, np.int32)
    numbers = map(np.int32, (0, 40, 7, 0, 3))
    run_on_both(f"{_PARTED}// in few passes", "k", 1, (96,), np.zeros(96, np.int32), data, *numbers)
    by_warps = """
    #include <cuda/barrier>
    __global__ void k(int *data) {
        __shared__ cuda::barrier<cuda::thread_scope_block> met;
        __shared__ int s[64];
        if (threadIdx.x == 0) init(&met, 64);
        __syncthreads();
        s[threadIdx.x] = data[threadIdx.x];
        met.arrive_and_wait();
        data[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    run_on_both(by_warps, "k", 1, (64,), data)


@settings(max_examples=12, deadline=None)
@given(block=st.sampled_from([8, 32, 40, 96]), seed=st.integers(0, 99))
def test_exchanges_between_lanes(block: int, seed: int) -> None:
    text = """
    __global__ void k(int *data, unsigned *bits, int *counts) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int lane = threadIdx.x % 32;
        unsigned here = __activemask();
        int v = data[i];
        v += __shfl_xor_sync(here, v, 0);
        v ^= __shfl_sync(here, v, lane / 2, 8);
        unsigned odd = __ballot_sync(here, v & 1);
        bits[i] = odd ^ __match_any_sync(here, v % 3) ^ __brev(here);
        if (v & 1) v += __reduce_add_sync(odd, lane);
        else v -= __any_sync(~odd & here, v > 5) + 2 * __all_sync(~odd & here, v > -5);
        counts[i] = __syncthreads_count(v > 0) + 1000 * __syncthreads_or(v == 7);
        data[i] = v;
    }
    """
    data = np.random.default_rng(seed).integers(-9, 99, 3 * block, np.int32)
    run_on_both(text, "k", 3, (block,), data, np.zeros(3 * block, np.uint32), np.zeros(3 * block, np.int32))


@pytest.mark.parametrize("block", [(64,), (41,), (16, 4)], ids=str)
def test_what_all_lanes_of_a_warp_vote_on_at_once(block: tuple[int, ...]) -> None:
    """Each vote's argument is arithmetic on what lanes keep: of all operators and widths, with shifts by too much."""
    votes = (
        "x >> y & 1", "x << (y - 3)", "u >> y", "(u >> y) < 3u", "x >> 40", "w >> (x & 127)", "(long long)u * x > w",
        "!flag", "flag && x > 3", "flag || (u & 1)", "-x", "~x == y", "(unsigned char)x > 200", "(signed char)x < 0",
        "(short)(x * y) < (short)u", "x ^ y | 4", "u - 5 < u", "x - 5 < x", "threadIdx.x % 3 == n", "x >= y",
        "(int)threadIdx.x - 9 < n", "w == (long long)x", "(bool)x", "n", "u < 3000000000u", "~0u >> by",
        "1u << by", "(unsigned long long)x >> y",
    )  # fmt: skip
    lines = "\n".join(f"out[{number} * blockDim.x * blockDim.y + t] = " + vote for number, vote in enumerate(
        f"__ballot_sync(0xffffffffu, {each}) + __any_sync(0xff00ff0fu, {each}) * 3 + __all_sync(~0u, {each});"
        for each in votes
    ))  # fmt: skip
    sums = "__reduce_add_sync(~0u, x >> (y & 7)) + __reduce_max_sync(~0u, x - n) + (int)__reduce_xor_sync(~0u, u ^ 9u)"
    text = f"""__global__ void k(const int *in, unsigned *out, int n) {{
        int t = threadIdx.y * blockDim.x + threadIdx.x;
        int x = in[2 * t], y = in[2 * t + 1];
        unsigned u = (unsigned)x * 2654435761u;
        long long w = (long long)x << 33 ^ y;
        bool flag = in[t] % 3 == 0;
        int by = t % 34;
        {lines}
        if (t < 40) out[t] += {sums};
        if (t % 2 == n) out[t] += __ballot_sync(__activemask(), x >> 2 & 1);
    }}"""
    rng = np.random.default_rng(7)
    values = np.concatenate([rng.integers(-40, 70, 64), rng.integers(-(2**31), 2**31, 64)]).astype(np.int32)
    rng.shuffle(values)
    run_on_both(text, "k", 1, block, values, np.zeros(len(votes) * 64, np.uint32), np.int32(1))


def test_atomics_of_many_blocks_lose_nothing() -> None:
    text = """
    __global__ void k(unsigned *counts, int *sum, unsigned *turns, float *total) {
        atomicAdd(&counts[threadIdx.x % 7], 1u);
        atomicAdd(sum, (int)threadIdx.x);
        atomicInc(turns, 9u);
        atomicMax(&sum[1], (int)(blockIdx.x * 1000 + threadIdx.x));
        atomicAdd(total, 0.5f);
    }
    """
    run_on_both(
        text, "k", 500, (64,), np.zeros(7, np.uint32), np.zeros(2, np.int32), np.zeros(1, np.uint32), np.zeros(1, "f4")
    )


def test_atomics_are_plain_where_a_function_is_given_shared_memory_and_nowhere_else() -> None:
    """One thread of the host runs a block, so that nobody else is at its shared memory; all are at global memory."""
    text = """
    __device__ void count(int (*bins)[8], int at) { atomicAdd(&bins[at % 2][at], 1); }
    __device__ void moved(int (*bins)[8], int (*other)[8], int at) {
        if (at % 2) bins = other;
        atomicAdd(&bins[0][at], 1);
    }
    __global__ void k(int *out) {
        __shared__ int s[2][8];
        int t = threadIdx.x;
        if (t < 16) s[t / 8][t % 8] = 0;
        __syncthreads();
        count(s, t % 8);
        CALLS
        __syncthreads();
        if (t < 16) atomicAdd(&out[t], s[t / 8][t % 8]);
    }"""
    atomics = {"": 1, "count((int (*)[8])out, t % 5);": 2, "moved(s, (int (*)[8])out, t % 8);": 2}
    for calls, wanted in atomics.items():
        made = text.replace("CALLS", calls)
        run_on_both(made, "k", 40, (64,), np.zeros(16, np.int32))
        written = compile_kernel(build_module(made).kernel("k").function, (64, 1, 1), frozenset()).text
        assert written.count("atomicrmw") == wanted


def test_an_atomic_through_an_object_asks_whether_that_is_shared_memory() -> None:
    text = """
    struct Counters { int *own; int by; };
    __device__ int count(const Counters &to, int at) { return atomicAdd(&to.own[at], to.by); }
    __global__ void k(int *out, int *before) {
        __shared__ int first[8];
        __shared__ int last[8];
        int t = threadIdx.x;
        if (t < 8) first[t] = last[t] = 0;
        __syncthreads();
        Counters to = {t % 3 == 0 ? first : t % 3 == 1 ? last : out, t};
        int found = count(to, t % 8);
        if (t < 3) before[blockIdx.x * 3 + t] = t == 2 ? 0 : found;
        __syncthreads();
        if (t < 8) atomicAdd(&out[t], first[t] * 1000 + last[t]);
    }"""
    run_on_both(text, "k", 40, (64,), np.zeros(8, np.int32), np.zeros(120, np.int32))
    written = compile_kernel(build_module(text).kernel("k").function, (64, 1, 1), frozenset()).text
    assert written.count("atomicrmw") == 2
    assert written.count("ptrtoint ptr %shared") == 1


def test_what_is_not_compiled_says_so_and_runs_in_lockstep() -> None:
    text = 'extern "C" __global__ void k(int *data) { if (threadIdx.x == 0) printf("%d\\n", data[0]); }'
    module = SimulatedModule(text, Path("kernel.cu"), {})
    with pytest.raises(UnsupportedKernel, match="printf"):
        module.compiled_kernel("k").prepare((1, 1, 1), (32, 1, 1))
    for executor, reason in (
        ("auto", "every access of an edited kernel is checked"),
        ("compiled", "k has printf, which the compiled executor does not support"),
    ):
        engine = engines.create_engine("simulator", executor)
        engine.sources = {"mine.cu": text}
        kernel = engine.build("mine.cu").kernel("k")
        data = engine.upload(np.array([42], np.int32))
        engine.launch(kernel, (1, 1, 1), (32, 1, 1), data)
        assert (engine.executor_choice.executor, engine.executor_choice.reason) == ("lockstep", reason)


def test_an_edited_kernel_is_held_to_its_arrays_however_often_it_runs() -> None:
    text = 'extern "C" __global__ void k(int *data, int where) { data[where] = 1; }'
    engine = engines.create_engine("simulator")
    engine.sources = {"mine.cu": text}
    kernel = engine.build("mine.cu").kernel("k")
    data = engine.upload(np.zeros(4, np.int32))
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, np.int32(3))
    for where in (4, -1, 2**30):
        with pytest.raises(LaunchError, match="Invalid __global__ write"):
            engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, np.int32(where))
    assert engine.download(data).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("data[0] = clock();", "a clock"),
        ("data[0] = fibonacci(data[1]);", "recursion"),
        ("int (*f)(int) = less; if (data[1]) f = more; data[0] = f(3);", "a call through a function pointer"),
        ("child<<<1, 1>>>(data);", "a clock"),
        ("cudaDeviceSynchronize();", "a wait for kernels that it launched"),
        ("cooperative_groups::this_grid().sync();", "a barrier of the whole grid"),
        ("if (threadIdx.x % 2) __syncwarp(); else __syncwarp();", "lanes of two branches that may meet at __syncwarp"),
    ],
)
def test_what_lockstep_alone_can_do_is_refused_before_anything_runs(body: str, reason: str) -> None:
    text = f"""
    #include <cooperative_groups.h>
    __global__ void child(int *data) {{ data[1] = clock(); }}
    __device__ int less(int x) {{ return x - 1; }}
    __device__ int more(int x) {{ return x + 1; }}
    __device__ int fibonacci(int n) {{ return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }}
    __global__ void k(int *data) {{ data[2] = 1; {body} }}
    """
    data = np.zeros(3, np.int32)
    with pytest.raises(UnsupportedKernel, match=reason):
        build_module(text).compiled_kernel("k").launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert not data.any()


@pytest.mark.parametrize("condition", ["i < 100", "partner(s) != 10"])
def test_a_false_assertion_ends_the_launch_as_in_lockstep(condition: str) -> None:
    text = f"""
    #include <cassert>
    __device__ int partner(const int *s) {{ assert(s[0] == 0); return s[63 - threadIdx.x]; }}
    __global__ void k(int *data) {{
        __shared__ int s[64];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        assert({condition});
        data[i] = i;
    }}
    """
    said = []
    for kernel in (build_module(text).kernel("k"), build_module(text).compiled_kernel("k")):
        with pytest.raises(LaunchError) as failure:
            kernel.launch((2, 1, 1), (64, 1, 1), [np.zeros(512, np.uint8)])
        said.append((failure.value.message.split(" in block")[0], failure.value.kind, failure.value.position))
    assert said[0] == said[1]


def test_bools_enumerations_halves_and_unions_in_memory() -> None:
    text = """
    #include <cuda_fp16.h>
    enum Kind : short { FEW, MANY = 500 };
    union Word { float real; int whole; unsigned char bytes[4]; };
    struct Item { bool flag; Kind kind; long long big; };
    __global__ void k(Item *items, bool *flags, __half *halves, const float *reals, int *words) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        Item item = items[i];
        if (item.flag) item.kind = MANY;
        flags[i] = item.kind == MANY || item.big > 3;
        item.big = item.big << 33 | item.flag;
        items[i] = item;
        halves[i] = __float2half(__half2float(halves[i]) + reals[i]);
        Word word;
        word.real = reals[i];
        word.bytes[1] ^= 7;
        words[i] = word.whole + word.bytes[2];
    }
    """
    rng = np.random.default_rng(5)
    items = np.zeros(66, np.dtype([("flag", "u1"), ("kind", "i2"), ("big", "i8")], align=True))
    items["flag"], items["big"] = rng.integers(0, 2, 66), rng.integers(-9, 9, 66)
    halves, reals = rng.normal(size=66).astype("f2"), rng.normal(size=66).astype("f4") * 30_000
    run_on_both(text, "k", 2, (33,), items, np.zeros(66, "u1"), halves, reals, np.zeros(66, "i4"))


def test_what_stands_before_an_exchange_is_done_before_it() -> None:
    """The left side of a comma; and a constructor that exchanges, which made an object of memory that was gone."""
    text = """
    struct Both { int own, of_three; __device__ Both(int x) { own = x; of_three = __shfl_sync(~0u, own, 3); } };
    __global__ void comma(const int *in, int *out) {
        int y = 1, x = (y = in[threadIdx.x] + 5, __shfl_sync(~0u, y, 3));
        out[threadIdx.x] = 100 * x + y;
    }
    __global__ void made(const int *in, int *out) {
        Both both(in[threadIdx.x]);
        out[threadIdx.x] = 100 * both.of_three + both.own;
    }"""
    run_on_both(text, "comma", 1, (32,), np.arange(32, dtype=np.int32), np.zeros(32, np.int32))
    with pytest.raises(UnsupportedKernel, match="in the construction of an object"):
        build_module(text).compiled_kernel("made").prepare((1, 1, 1), (32, 1, 1))


def test_an_object_is_made_when_what_it_is_given_has_been_exchanged() -> None:
    text = """
    #include <cuda_fp16.h>
    struct Pair { int first, second; __device__ Pair(int a, int b) { first = a; second = b; } };
    __global__ void k(const float *in, float *out, int *pairs) {
        int t = threadIdx.x;
        half h = half(__shfl_xor_sync(~0u, in[t], 5)) + half(__shfl_down_sync(~0u, in[t] * 2, 1));
        if (t % 3) h = (half)0 + half(__shfl_sync(__activemask(), in[t], 5));
        Pair both = Pair(__shfl_up_sync(~0u, t, 2), Pair(t, __shfl_sync(~0u, 3 * t, 7)).second);
        out[t] = __half2float(h);
        pairs[t] = both.first * 100 + both.second;
    }"""
    values = np.random.default_rng(9).normal(size=64).astype("f4")
    run_on_both(text, "k", 1, (64,), values, np.zeros(64, "f4"), np.zeros(64, np.int32))
    build_module(text).compiled_kernel("k").prepare((1, 1, 1), (64, 1, 1))


def test_objects_without_a_name_live_as_long_as_what_waits_is_given_them() -> None:
    """Each thread has its own: those of all were once in the same place."""
    text = """
    struct Lane {
        int lane;
        __device__ Lane() { lane = threadIdx.x % 32; }
        __device__ int next(int v) {
            int other = __shfl_down_sync(~0u, v, 1);
            return lane < 31 ? v + other : 1000 + lane;
        }
    };
    struct Warp {
        Lane inner;
        __device__ Warp(int &kept) : inner() {}
        __device__ int twice(int v) { return inner.next(v) + inner.next(2 * v); }
    };
    __global__ void k(const int *in, int *out) {
        __shared__ int kept[2];
        out[threadIdx.x] = Warp(kept[threadIdx.x / 32]).twice(in[threadIdx.x]) + Lane().next(3);
    }"""
    run_on_both(text, "k", 1, (64,), np.arange(64, dtype=np.int32), np.zeros(64, np.int32))


def test_lists_tables_of_functions_and_variables_in_namespaces() -> None:
    text = """
    struct Node { int value; Node *next; };
    namespace a { __constant__ int c = 3; __device__ int v = 10; }
    namespace b { __constant__ int c = 4; }
    template <int N> __device__ int table(int i) { const int values[2] = {N, N * 2}; return values[i % 2]; }
    struct Start { int x[2] = {5, 6}; int y; __device__ Start() : y(7) {} };
    __global__ void k(int *out) {
        __shared__ Node nodes[64];
        int i = threadIdx.x;
        nodes[i].value = i;
        nodes[i].next = &nodes[(i + 1) % blockDim.x];
        __syncthreads();
        Node *node = &nodes[i];
        for (int step = 0; step < 3; ++step) node = node->next;
        Start starts[2];
        auto twice = [=](int x) { return 2 * x; };
        out[i] = node->value + a::c * 100 + b::c * 1000 + a::v * 10000 + table<1>(i) + table<3>(i)
            + twice(starts[1].x[1] + starts[0].y);
    }
    """
    run_on_both(text, "k", 1, (64,), np.zeros(64, "i4"))


def test_own_structs_that_live_across_barriers_and_go_through_references() -> None:
    text = """
    struct Pair { float first; int second; };
    __device__ void add(float3 &sum, const float4 &by, Pair *pair) {
        sum.x += by.x;
        sum.z += by.w;
        pair->second += (int)by.y;
    }
    __device__ float spread(Pair &pair, float *s) {
        int t = threadIdx.x;
        s[t] = pair.first;
        __syncthreads();
        float left = s[(t + 1) % blockDim.x];
        __syncthreads();
        pair.first += left;
        return left;
    }
    __global__ void k(const float4 *in, float *out, int *whole, int n) {
        __shared__ float4 tile[64];
        __shared__ float s[64];
        int t = threadIdx.x;
        float3 sum = make_float3(0.0f, 1.0f, 2.0f);
        Pair pair = {(float)t, t};
        float4 mine = in[t];
        for (int start = 0; start < n; start += blockDim.x) {
            tile[t] = in[(start + t) % n];
            __syncthreads();
            for (int k = 0; k < blockDim.x; ++k) add(sum, tile[k], &pair);
            __syncthreads();
            sum.y += spread(pair, s) + mine.z;
        }
        out[3 * t] = sum.x + pair.first;
        out[3 * t + 1] = sum.y;
        out[3 * t + 2] = sum.z;
        whole[t] = pair.second;
    }
    """
    values = np.random.default_rng(2).integers(-9, 9, (200, 4)).astype(np.float32)
    for block in (1, 32, 49, 64):
        run_on_both(text, "k", 1, (block,), values, np.zeros(192, "f4"), np.zeros(64, "i4"), np.int32(200))


@pytest.mark.parametrize("block", [(32,), (77,), (13, 5)], ids=str)
def test_shuffles_and_votes_where_only_some_threads_are_left(block: tuple[int, ...]) -> None:
    text = """
    __global__ void k(const int *in, int *out, int n) {
        int t = threadIdx.y * blockDim.x + threadIdx.x;
        int all = blockDim.x * blockDim.y;
        if (t >= all - 3) return;
        int value = in[t];
        int sum = 0;
        for (int by = 1; by < 32; by *= 2) {
            sum += __shfl_up_sync(__activemask(), value, by, 16);
            int right = __shfl_down_sync(__activemask(), value, by);
            if (t + by < all - 3) sum += 3 * right;
        }
        if (t < n) {
            unsigned int here = __activemask();
            sum += __popc(__ballot_sync(here, value & 1)) + 100 * __any_sync(here, value > 40);
            sum += __shfl_sync(here, value, t & ~31) + __shfl_sync(here, value, 0);
        }
        if (t % 2 == 0) sum += __all_sync(__activemask(), value > 3);
        out[t] = sum;
    }
    """
    values = np.random.default_rng(4).integers(0, 50, 80).astype(np.int32)
    for n in (0, 5, 32, 40, 80):
        run_on_both(text, "k", 1, block, values, np.zeros(80, "i4"), np.int32(n))


LOOK_BACK = """
#define COMPLETE 0x80000000u
__device__ unsigned look_back(const volatile unsigned *states, int tile, int d) {
    unsigned before = 0;
    for (int other = tile - 1;; --other) {
        unsigned state;
        WAIT
        if (state & COMPLETE) return before + (state & ~COMPLETE);
        before += state - 1;
    }
}
__global__ void k(unsigned *states, unsigned *out, unsigned *begun) {
    __shared__ int tile;
    int d = threadIdx.x;
    if (d == 0) tile = atomicAdd(begun, 1);
    __syncthreads();
    if (d < 8) {
        unsigned own = tile * 3 + d, before = 0;
        if (tile % 2) atomicExch(&states[tile * 8 + d], 1 + own);
        if (tile > 0) before = look_back(states, tile, d);
        atomicExch(&states[tile * 8 + d], COMPLETE | (before + own));
        out[tile * 8 + d] = before;
    }
}
"""


@pytest.mark.parametrize(
    "wait",
    [
        "while ((state = states[other * 8 + d]) == 0) { }",
        "state = states[other * 8 + d]; while (state == 0) state = states[other * 8 + d];",
        "do { state = states[other * 8 + d]; } while (state == 0);",
        "do { state = atomicOr((unsigned *)&states[other * 8 + d], 0); } while (state == 0);",
        "for (;;) { unsigned seen = states[other * 8 + d]; state = seen; if (seen != 0) break; }",
    ],
    ids=["condition", "while", "do", "atomic", "endless"],
)
def test_blocks_that_wait_for_those_before_them(wait: str) -> None:
    tiles = 10
    own = np.arange(tiles)[:, None] * 3 + np.arange(8)
    expected = [own[:tile].sum(axis=0) for tile in range(tiles)]
    module = build_module(LOOK_BACK.replace("WAIT", wait))
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        states, out, begun = np.zeros((tiles, 8), "u4"), np.zeros((tiles, 8), "u4"), np.zeros(1, "u4")
        raw = [each.view(np.uint8).ravel() for each in (states, out, begun)]
        kernel.launch((tiles, 1, 1), (32, 1, 1), raw)
        np.testing.assert_array_equal(out, expected)


def test_a_loop_that_ends_for_nobody_runs_for_nobody() -> None:
    text = """
    __global__ void k(int *data, int n) {
        int t = threadIdx.x;
        if (n == 0) return;
        for (int left = n; left != 1; left /= 2) { data[t] += left; __syncthreads(); }
        for (int round = 0;; ++round) {
            int left = data[0] - 5 * round;
            __syncthreads();
            if (left <= t % 2) break;
            __syncthreads();
        }
        data[t] *= 2;
    }
    """
    for n in (0, 1, 9):
        run_on_both(text, "k", 1, (40,), np.arange(40, dtype=np.int32), np.int32(n))


def test_a_launch_says_that_it_compiles_and_only_when_it_does(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    pattern = all_patterns()["histogram"]
    variant = next(each for each in pattern.variants if each.name == "privatized")
    image = np.zeros((8, 8), np.uint8)
    told = []
    for _ in range(2):  # the second time another engine, as in another process, finds it in the cache
        told.append([])
        inputs = pattern.prepare_inputs({"image": image, "maxval": np.array(255)}, pattern.check({}), 1)
        run_pattern(engines.create_engine("simulator"), Workload(pattern, variant, inputs, {}), told[-1].append)
    compiling = [[each.message for each in one if each.message.startswith("compiling")] for one in told]
    assert compiling == [["compiling histogram_privatized for this processor"], []]


_AT_ONCE = """
import sys
from pathlib import Path
import numpy as np
from gpu.simulator.simulated_module import SimulatedModule
print("ready", flush=True)
sys.stdin.read()
for number in range(6):
    text = f"__global__ void k(int *data) {{ data[threadIdx.x] = threadIdx.x * {number}; }}"
    data = np.full(32, -1, np.int32)
    kernel = SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("k")
    kernel.launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert (data == np.arange(32) * number).all()
"""


def test_two_processes_fill_one_cache_at_once(tmp_path) -> None:
    environment = os.environ | {"LOCKSTEP_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", _AT_ONCE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, env=environment, cwd=KERNELS.parent, **pipes))
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            process.stdin.close()
        assert [process.wait(60) for process in processes] == [0, 0]
    suffixes = [path.suffix for path in tmp_path.iterdir()]
    assert suffixes.count(".o") == 6
    assert set(suffixes) == {".o", ".header", ".pch"}  # nothing half written is left


def test_code_is_found_by_all_that_a_kernel_calls(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    for by in (1, 2, 1):  # the functions differ where the kernel does not lead at once
        text = f"""
        __device__ int deeper(int x) {{ return x * {by}; }}
        __device__ int deep(int x) {{ return deeper(x) + deeper(1); }}
        __global__ void k(int *data) {{ data[threadIdx.x] = deep(threadIdx.x); }}
        """
        data = np.zeros(32, np.int32)
        SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("k").launch(
            (1, 1, 1), (32, 1, 1), [data.view(np.uint8)]
        )
        np.testing.assert_array_equal(data, (np.arange(32) + 1) * by)
    assert len(list(tmp_path.glob("*.o"))) == 2


def test_a_damaged_cache_is_made_anew(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    text = "__global__ void k(int *data) { data[threadIdx.x] = threadIdx.x * 3; }"
    expected = np.arange(32, dtype=np.int32) * 3
    for _ in range(2):
        data = np.zeros(32, np.int32)
        SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("k").launch(
            (1, 1, 1), (32, 1, 1), [data.view(np.uint8)]
        )
        np.testing.assert_array_equal(data, expected)
        (kept,) = tmp_path.glob("*.o")
        kept.write_bytes(kept.read_bytes()[:-20])


def test_a_launch_that_is_interrupted_ends_for_all_threads_and_the_next_one_does_everything(monkeypatch) -> None:
    monkeypatch.setattr("gpu.simulator.compiled.launch._worker_count", lambda: 3)
    # A piece is a block and takes milliseconds, the grid seconds: a busy machine does not end it before the interrupt.
    monkeypatch.setattr("gpu.simulator.compiled.launch._PIECES_PER_WORKER", 1000)
    module = build_module("""
__global__ void k(int *a, int n) {
    int i = blockIdx.x;
    int sum = 0;
    for (int j = 0; j < n; j++) sum = sum * 3 + (j ^ i);
    a[i] = sum | 1;
}
""")
    kernel, blocks = module.compiled_kernel("k"), 3000
    whole = np.zeros(blocks, np.int32)
    kernel.launch((blocks, 1, 1), (1, 1, 1), [whole.view(np.uint8), np.int32(1)])
    assert (whole != 0).all(), "no piece of it is left out"

    def interrupt(fraction: float) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        part = np.zeros(blocks, np.int32)
        with pytest.raises(KeyboardInterrupt):
            kernel.launch((blocks, 1, 1), (1, 1, 1), [part.view(np.uint8), np.int32(2_000_000)], on_progress=interrupt)
        seen = part.copy()
        assert (seen == 0).any(), "what had not begun does not begin"
        time.sleep(0.02)
        np.testing.assert_array_equal(part, seen, "and nobody goes on")
    again = np.zeros(blocks, np.int32)
    kernel.launch((blocks, 1, 1), (1, 1, 1), [again.view(np.uint8), np.int32(1)])
    np.testing.assert_array_equal(again, whole)
