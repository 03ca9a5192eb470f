"""Both executors on generated kernels: the same bits, also of floats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.barrier_programs import kernels, kernels_with_functions
from tests.gpu.simulator.expressions import FUSED_PRODUCTS, TYPES, draw_operands
from tests.gpu.simulator.test_semantics import BLOCK, GRID, LANES, ProgramBatch, are_identical, batches, cuda_source

Array = np.ndarray[Any, Any]

# The same examples on every machine; a failure shows the kernel, and making machine code of smaller ones takes long.
fixed = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)

SWEEP = pytest.param(1000, marks=[pytest.mark.sweep, pytest.mark.timeout(7200)])
"""Random kernels for each pair of executors in the exhaustive tier."""


def run_on_both(text: str, name: str, grid: int, block: int, *arguments: Any) -> list[tuple[Array, Array]]:
    """Return what each executor leaves in each array."""
    module = SimulatedModule(text, Path("kernel.cu"), {})
    results: list[list[Array]] = []
    for kernel in (module.kernel(name), module.compiled_kernel(name)):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        raw = [each.view(np.uint8).ravel() if isinstance(each, np.ndarray) else each for each in given]
        kernel.launch((grid, 1, 1), (block, 1, 1), raw)
        results.append([each for each in given if isinstance(each, np.ndarray)])
    return list(zip(*results, strict=True))


def compare_expressions(batch: ProgramBatch) -> None:
    generator = np.random.default_rng(batch.seed)
    inputs = [draw_operands(type, 2 * LANES, generator) for type in TYPES]
    uniform = [draw_operands(type, 1, generator)[0] for type in TYPES]
    results = [np.zeros((batch.count(real=False), LANES), np.int64), np.zeros((batch.count(real=True), LANES))]
    *_, wholes, reals = run_on_both(
        cuda_source(batch, FUSED_PRODUCTS), "expressions", GRID, BLOCK, *inputs, *uniform, np.int32(LANES), *results
    )
    places = {True: 0, False: 0}
    for number, is_real in batch.rows:
        lockstep, compiled = (each[places[is_real]] for each in (reals if is_real else wholes))
        places[is_real] += 1
        for lane in np.flatnonzero(~are_identical(compiled, lockstep))[:1]:
            pytest.fail(f"{batch.texts[number]}\n  lane {lane}: {compiled[lane]!r}, in lockstep {lockstep[lane]!r}")


@settings(fixed, max_examples=3)
@given(batches(depth=1, count=40))
def test_single_operators(batch: ProgramBatch) -> None:
    compare_expressions(batch)


@pytest.mark.parametrize("count", [4, SWEEP])
def test_nested_expressions(count: int) -> None:
    settings(fixed, max_examples=count)(given(batches(depth=3, count=12))(compare_expressions))()


blocks, numbers, seeds = st.sampled_from([1, 32, 40, 96, 128]), st.integers(0, 3), st.integers(0, 99)


@pytest.mark.parametrize("count", [6, SWEEP])
def test_threads_that_part_and_meet(count: int) -> None:
    programs = given(text=kernels(), block=blocks, u=numbers, seed=seeds)
    settings(fixed, max_examples=count)(programs(compare_programs))()


@pytest.mark.parametrize("count", [4, SWEEP])
def test_functions_that_threads_leave_at_different_places(count: int) -> None:
    programs = given(text=kernels_with_functions(), block=blocks, u=numbers, seed=seeds)
    settings(fixed, max_examples=count)(programs(compare_programs))()


def compare_programs(text: str, block: int, u: int, seed: int) -> None:
    grid = 3
    values = np.random.default_rng(seed).integers(-20, 20, 4 * grid * block + 200, np.int32)
    arrays = (np.zeros(grid * block, np.int32), np.zeros(8 * grid, np.int32))
    for lockstep, compiled in run_on_both(text, "k", grid, block, values, *arrays, np.int32(u)):
        assert np.array_equal(compiled, lockstep), f"block {block}, u {u}, seed {seed}\n{text}"


def test_vectors_structs_and_pointers_that_move() -> None:
    text = """
    struct Body { float4 place; double mass; short kind; };
    __device__ float length(const float4 &v) { return v.x * v.x + v.y * v.y + v.z * v.z; }
    extern "C" __global__ void k(const float4 *in, Body *bodies, float *out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        const float4 *p = in + i;
        float trail[5];
        for (int k = 0; k < 5; ++k, p += n) trail[k] = length(*p) - p->w;
        Body body = bodies[i];
        body.place = make_float4(trail[0], trail[body.kind & 3], body.mass, in[i].y);
        body.mass += trail[4];
        float *last = trail + 4;
        while (last > trail && *last < trail[0]) --last;
        bodies[i] = body;
        out[i] = *last * (last - trail);
    }
    """
    rng, n = np.random.default_rng(2), 77
    bodies = np.zeros(n, np.dtype([("place", "4f4"), ("mass", "f8"), ("kind", "i2"), ("gap", "6u1")]))
    bodies["mass"], bodies["kind"] = rng.normal(size=n), rng.integers(-9, 9, n)
    given = (rng.normal(size=(5 * n, 4)).astype(np.float32), bodies, np.zeros(n, np.float32))
    for lockstep, compiled in run_on_both(text, "k", 3, 32, *given, np.int32(n)):
        assert lockstep.tobytes() == compiled.tobytes()


@pytest.mark.parametrize("block", [40, 96])
@pytest.mark.parametrize("n", [500, 70])
def test_arrays_of_a_threads_own_that_live_across_loops_and_barriers(block: int, n: int) -> None:
    text = """
    struct Sums { float x, y; };
    __device__ void add(float (&sums)[2], Sums &all, float by) { sums[1] += by; all.y += by; }
    extern "C" __global__ void k(const float *in, float *out, int n, int u) {
        __shared__ float tile[96];
        int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
        float x[3] = {1.5f}, seen[2][2] = {};
        float pair[2] = {in[t], 0.0f};
        int places[4] = {t, 2, 3};
        Sums sums[3];
        for (int r = 0; r < 3; ++r) {
            x[r] += in[i + r];
            sums[r].x = r;
            sums[r].y = -r;
        }
        Sums all[2] = {{0.0f, 1.0f}, {2.0f, 3.0f}};
        if (i >= n) return;
        for (int start = 0; start < 40; start += 10) {
            tile[t] = in[i + start];
            __syncwarp();
            for (int k = 0; k < 30; ++k) {
                for (int r = 0; r < 3; ++r) {
                    sums[r].x += tile[t] * x[r];
                    sums[(r + u) % 3].y -= x[r] + k;
                    x[r] += 0.5f;
                }
                seen[k & 1][(k + t) & 1] += tile[t] + k;
                places[k & 3] += places[(k + t) & 3];
            }
            add(pair, all[1], tile[t]);
            __syncwarp();
        }
        float total = pair[0] - pair[1] + all[0].x + all[1].y;
        for (int r = 0; r < 3; ++r) total += sums[r].x * 3 + sums[r].y - x[r];
        for (int r = 0; r < 4; ++r) total += seen[r / 2][r % 2] * (r + 1) + places[r] % 1000;
        out[i] = total;
    }
    """
    grid = 4
    given = np.random.default_rng(8).integers(-8, 8, grid * block + 100).astype(np.float32)
    for lockstep, compiled in run_on_both(
        text, "k", grid, block, given, np.zeros(grid * block, np.float32), np.int32(n), np.int32(1)
    ):
        assert compiled.tobytes() == lockstep.tobytes()


@pytest.mark.parametrize("block", [(96, 1), (40, 1), (64, 3), (24, 2)])
@pytest.mark.parametrize("left", [10_000, 50])
def test_threads_are_numbered_within_warps_rows_and_tiles(block: tuple[int, int], left: int) -> None:
    text = """
    __device__ int number(int x) { const unsigned t = threadIdx.x; return t / 16 * 100 + t % 16 + x; }
    extern "C" __global__ void k(const int *in, int *out, int n) {
        const int WIDTH = 64 / 2;
        __shared__ int s[512];
        int t = threadIdx.x, i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + t;
        int warp = t / WIDTH, lane = t % WIDTH, small = t >> 3, rest = t & 7, odd = t / 24, left = t % 24;
        int *mine = s + threadIdx.y * blockDim.x;
        mine[warp * 32 + lane] = in[i];
        __syncthreads();
        int sum = number(lane);
        for (int k = 0; k < 20; ++k) sum = sum * 3 + mine[small * 8 + (rest + k) % 8] + in[warp + k] * in[lane + k];
        if (i >= n) return;
        for (int k = 0; k < 20; ++k) sum = sum * 5 + in[odd * 24 + left + k] + in[t / 64 + k] - mine[t];
        __syncwarp();
        out[i] = sum + (t + 1) % 32 + (i / 32) % 7 + lane * warp;
    }
    """
    grid, (x, y) = 3, block
    values = np.random.default_rng(9).integers(-99, 99, grid * x * y + 300, np.int32)
    module = SimulatedModule(text, Path("kernel.cu"), {})
    results = []
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        out = np.zeros(grid * x * y, np.int32)
        kernel.launch((grid, 1, 1), (x, y, 1), [values.view(np.uint8), out.view(np.uint8), np.int32(left)])
        results.append(out)
    np.testing.assert_array_equal(*results)


def test_many_blocks_on_two_threads(monkeypatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    text = """
    extern "C" __global__ void k(int *blocks, unsigned *counts, unsigned long long *sum, int *most) {
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = blockIdx.x * 7 + t;
        __syncthreads();
        for (int stride = 32; stride > 0; stride /= 2) {
            if (t < stride) s[t] += s[t + stride];
            __syncthreads();
        }
        if (t == 0) blocks[blockIdx.x] = s[0];
        atomicAdd(&counts[(blockIdx.x + t) % 5], 1u);
        if (t == 3) atomicAdd(sum, (unsigned long long)s[0]);
        int seen = *most;
        while (seen < (int)blockIdx.x) seen = atomicCAS(most, seen, max(seen, (int)blockIdx.x));
    }
    """
    count = 20_000
    blocks, counts = np.zeros(count, np.int32), np.zeros(5, np.uint32)
    total, most = np.zeros(1, np.uint64), np.full(1, -1, np.int32)
    arrays = [each.view(np.uint8) for each in (blocks, counts, total, most)]
    SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("k").launch((count, 1, 1), (64, 1, 1), arrays)
    expected = np.arange(count, dtype=np.int64) * 7 * 64 + 64 * 63 // 2
    np.testing.assert_array_equal(blocks, expected)
    lanes = (np.arange(count)[:, None] + np.arange(64)) % 5
    np.testing.assert_array_equal(counts, np.bincount(lanes.ravel()))
    assert (total[0], most[0]) == (expected.sum(), count - 1)
