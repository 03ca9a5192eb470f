"""Cooperative groups that are not known by their type, and the group of the whole grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.kernel_runner import run_kernel
from tests.gpu.simulator.watched_launch import launch_watched

Array = np.ndarray[Any, Any]

HEAD = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


def make_ints(count: int) -> Array:
    return np.zeros(count, np.int32)


def test_one_function_sums_over_any_group() -> None:
    source = (
        HEAD
        + """
    __device__ int sum(cg::thread_group group, int *held, int value) {
        unsigned rank = group.thread_rank();
        for (int i = group.size() / 2; i > 0; i /= 2) {
            held[rank] = value;
            group.sync();
            if (rank < i) value += held[rank + i];
            group.sync();
        }
        return value;
    }
    __global__ void k(int *out, const int *in) {
        __shared__ int held[64];
        cg::thread_block block = cg::this_thread_block();
        int i = threadIdx.x, whole = sum(block, held, in[i]);
        auto tile = cg::tiled_partition<16>(block);
        int by_type = sum(tile, held + i / 16 * 16, in[i]);
        cg::thread_group eight = cg::tiled_partition(block, 8);
        int by_value = sum(eight, held + i / 8 * 8, in[i]);
        if (i == 0) out[0] = whole;
        if (tile.thread_rank() == 0) out[1 + i / 16] = by_type;
        if (eight.thread_rank() == 0) out[5 + i / 8] = by_value;
    }"""
    )
    given = np.random.default_rng(1).integers(-99, 99, 64).astype(np.int32)
    out, _ = run_kernel(source, "k", make_ints(13), given, block=64)
    right = [given.sum(), *given.reshape(4, 16).sum(axis=1), *given.reshape(8, 8).sum(axis=1)]
    np.testing.assert_array_equal(out, right)


def test_structs_are_shuffled_and_reduced() -> None:
    source = (
        HEAD
        + """
    #include <cooperative_groups/reduce.h>
    struct Best { float value; int at; };
    __global__ void k(float *value, int *at, int *below) {
        auto warp = cg::tiled_partition<32>(cg::this_thread_block());
        Best own{value[threadIdx.x], (int)threadIdx.x};
        Best best = cg::reduce(warp, own, [](Best a, Best b) { return a.value > b.value ? a : b; });
        below[threadIdx.x] = warp.shfl_up(own, 1).at + 100 * warp.shfl_xor(own, 3).at;
        value[threadIdx.x] = best.value; at[threadIdx.x] = best.at;
    }"""
    )
    given = np.random.default_rng(4).permutation(64).astype(np.float32)
    value, at, below = run_kernel(source, "k", given, make_ints(64), make_ints(64), block=64)
    rows, lanes = given.reshape(2, 32), np.arange(64)
    np.testing.assert_array_equal(value, np.repeat(rows.max(axis=1), 32))
    np.testing.assert_array_equal(at, np.repeat(rows.argmax(axis=1), 32) + lanes // 32 * 32)
    np.testing.assert_array_equal(below, np.where(lanes % 32, lanes - 1, lanes) + 100 * (lanes ^ 3))


@pytest.mark.parametrize("parent", ["cg::coalesced_threads()", "cg::tiled_partition<16>(cg::this_thread_block())"])
def test_a_group_in_parts_by_label_and_by_predicate(parent: str) -> None:
    source = (
        HEAD
        + """
    #include <cooperative_groups/reduce.h>
    __global__ void k(const int *label, int *out) {
        int i = threadIdx.x;
        if (SOME && i % 5 == 0) return;
        auto parent = PARENT;
        auto same = cg::labeled_partition(parent, label[i]);
        auto half = cg::binary_partition(parent, label[i] > 1);
        out[i] = same.size() + 100 * same.thread_rank() + 10000 * cg::reduce(half, 1, cg::plus<int>());
    }"""
    )
    some = "coalesced" in parent
    label = np.random.default_rng(6).integers(0, 4, 64).astype(np.int32)
    _, out = run_kernel(source, "k", label, make_ints(64), block=64, defines={"PARENT": parent, "SOME": int(some)})
    width = 32 if some else 16
    for i in range(64):
        if some and i % 5 == 0:
            assert out[i] == 0
            continue
        group = [k for k in range(i // width * width, (i // width + 1) * width) if not (some and k % 5 == 0)]
        same = [k for k in group if label[k] == label[i]]
        half = [k for k in group if (label[k] > 1) == (label[i] > 1)]
        assert out[i] == len(same) + 100 * same.index(i) + 10000 * len(half)


GRID = (
    HEAD
    + """
__global__ void k(int *out, int *held, int n) {
    cg::grid_group grid = cg::this_grid();
    unsigned long long i = grid.thread_rank();
    if (i < n) held[i] = i * i;
    grid.sync();
    if (i < n) out[i] = held[n - 1 - i];
    cg::sync(grid);
    if (i == 0) held[0] = grid.size() * 1000 + grid.num_blocks();
}"""
)


@pytest.mark.parametrize(("grid", "block"), [((5, 3, 2), (33, 1, 1)), ((64,), (1024,)), ((1,), (1,))])
def test_a_barrier_of_the_grid_is_one_for_all_blocks(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    threads = int(np.prod(grid) * np.prod(block))
    n = max(1, threads - 7)
    out, held = run_kernel(GRID, "k", make_ints(n), make_ints(n), np.int32(n), grid=grid, block=block)
    np.testing.assert_array_equal(out, (np.arange(n, dtype=np.int64)[::-1] ** 2).astype(np.int32))
    assert held[0] == threads * 1000 + np.prod(grid)


def test_a_barrier_of_the_grid_orders_what_blocks_do() -> None:
    for barrier, found in (("grid.sync();", 0), ("cg::this_thread_block().sync();", 1)):
        races = RaceChecker()
        source = GRID.replace("grid.sync();", barrier)
        launch_watched(races, source, make_ints(96), make_ints(96), np.int32(96), kernel="k", grid=3)
        assert len(races.findings) == found


def test_a_grid_that_is_not_on_the_device_at_once_is_refused() -> None:
    with pytest.raises(LaunchError, match="265 blocks of 1024 threads, and at most 264 of them are resident at once"):
        run_kernel(GRID, "k", make_ints(1), make_ints(1), np.int32(1), grid=265, block=1024)


def test_a_barrier_of_the_grid_that_a_block_does_not_reach() -> None:
    source = HEAD + "__global__ void k(int *out) { if (blockIdx.x > 0) cg::this_grid().sync(); out[0] = 1; }"
    with pytest.raises(LaunchError, match=r"Divergent thread\(s\) in grid: thread \(0,0,0\) in block \(0,0,0\) does"):
        run_kernel(source, "k", make_ints(1), grid=2)


# Blocks exchange values across barriers of the grid; the first warp of each block waits for the others by an mbarrier.
EXCHANGES = """
#include <cooperative_groups.h>
#include <cuda/barrier>
__global__ void k(int *values, int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    if (threadIdx.x == 0) init(&all, blockDim.x);
    if (threadIdx.x == blockDim.x - 1) return;
    __syncthreads();
    if (threadIdx.x == 0) all.arrive();
    values[i] = i;
    for (int k = 1; k < 4; ++k) {
        SYNC
        int next = values[(i + blockDim.x) % n];
        cooperative_groups::this_grid().sync();
        values[i] = next;
    }
    all.arrive();
    if (threadIdx.x < 32) all.wait_parity(0);
    out[i] = values[i];
}"""


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "lanes:1"])
def test_barriers_of_the_grid_in_every_schedule(schedule: str) -> None:
    for sync, kinds in (("cooperative_groups::this_grid().sync();", set()), ("__syncthreads();", {"race"})):
        source = EXCHANGES.replace("SYNC", sync)
        simulation = simulate("k.cu", "k", 3, 40, ("zeros:120", "zeros:120"), source=source, schedule=schedule)
        assert {finding.kind for finding in simulation.findings} == kinds
        assert not simulation.aborted
        if not kinds:
            i = np.arange(120)
            np.testing.assert_array_equal(simulation.arrays[1], np.where(i % 40 == 39, 0, i))


@pytest.mark.parametrize("schedule", ["shuffle:1", "lanes:1"])
def test_a_warp_or_lane_that_does_not_reach_a_barrier_of_the_grid(schedule: str) -> None:
    body = "if (threadIdx.x != 33) cooperative_groups::this_grid().sync();"
    source = f"#include <cooperative_groups.h>\n__global__ void k(int *out) {{ {body} }}"
    (finding,) = simulate("k.cu", "k", 2, 64, ("zeros:1",), source=source, schedule=schedule).findings
    assert finding.kind == "barrier"
    assert "thread (33,0,0) in block (" in finding.message
    assert "does not reach the grid barrier" in finding.message


@pytest.mark.parametrize(("schedule", "grid", "most"), [("shuffle:1", 17, "16,384"), ("lanes:1", 2, "1,024")])
def test_a_large_grid_with_barriers_runs_in_lockstep_only(schedule: str, grid: int, most: str) -> None:
    source = "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_grid().sync(); }"
    with pytest.raises(LaunchError, match=f"no more than {most}"):
        simulate("k.cu", "k", grid, 1024, (), source=source, schedule=schedule)


TILES = (
    HEAD
    + """
    #include <cooperative_groups/reduce.h>
    __global__ void f(const int *in, int *out, double *sums) {
        __shared__ cg::block_tile_memory<256> memory;
        __shared__ int held[256];
        auto large = cg::tiled_partition<128>(cg::this_thread_block(memory));
        auto tile = cg::tiled_partition<64>(large);
        int i = threadIdx.x, value = in[i];
        held[i] = value;
        SYNC;
        int neighbor = held[i / 64 * 64 + (i + 1) % 64];
        if (large.meta_group_rank() == 0) {
            out[i] = cg::reduce(tile, value, cg::plus<int>());
        } else {
            out[i] = tile.shfl(value, 40) + 1000 * tile.any(value == 98) + 2000 * large.all(value >= 0);
        }
        sums[i] = cg::reduce(large, (double)neighbor, cg::plus<double>());
        cg::thread_block_tile<64> open = tile;
        out[256 + i] = open.thread_rank() + 100 * tile.meta_group_rank() + 1000 * tile.meta_group_size()
                     + 10000 * large.meta_group_rank() + 100000 * large.num_threads();
    }"""
)


def test_tiles_of_several_warps_meet_exchange_and_reduce() -> None:
    given = np.random.default_rng(1).integers(0, 98, 256).astype(np.int32)
    given[200] = 98
    out, sums, checker = make_ints(512), np.zeros(256), RaceChecker()
    launch_watched(checker, TILES, given, out, sums, block=256, defines={"SYNC": "tile.sync()"})
    rows = given.reshape(4, 64)
    np.testing.assert_array_equal(out[:128], np.repeat(rows[:2].sum(axis=1), 64))
    np.testing.assert_array_equal(out[128:256:64], [rows[2, 40] + 2000, rows[3, 40] + 3000])
    np.testing.assert_array_equal(sums, np.repeat(given.reshape(2, 128).sum(axis=1), 128))
    i = np.arange(256)
    np.testing.assert_array_equal(out[256:], i % 64 + 100 * (i // 64 % 2) + 2000 + 10000 * (i // 128) + 12800000)
    assert not checker.findings


def test_a_tile_of_several_warps_that_does_not_meet_races() -> None:
    checker = RaceChecker()
    launch_watched(
        checker, TILES, make_ints(256), make_ints(512), np.zeros(256), block=256, defines={"SYNC": "tile.thread_rank()"}
    )
    first = next(n for n, line in enumerate(TILES.splitlines(), 1) if "held[i] = value" in line)
    assert [[each.line for each in found.positions] for found in checker.findings] == [[first, first + 2]]


def test_tiles_of_several_warps_are_whole() -> None:
    with pytest.raises(LaunchError, match="Size == 0"):
        run_kernel(TILES, "f", make_ints(256), make_ints(512), np.zeros(256), block=96, defines={"SYNC": "tile.sync()"})


def test_a_group_of_threads_not_known_by_its_type_has_at_most_a_warp() -> None:
    source = HEAD + "__global__ void f() { cg::tiled_partition(cg::this_thread_block(), 64).sync(); }"
    with pytest.raises(LaunchError, match="size <= 32"):
        run_kernel(source, "f", block=64)


def test_a_tile_of_a_tile_is_counted_within_it_and_a_barrier_has_two_parts() -> None:
    source = (
        HEAD
        + """__global__ void k(int *out) {
        __shared__ int held[64];
        auto block = cg::this_thread_block();
        auto warp = cg::tiled_partition<32>(block);
        auto eight = cg::tiled_partition<8>(warp);
        held[threadIdx.x] = eight.meta_group_rank() * 100 + eight.meta_group_size() * 10 + cg::thread_rank(eight);
        auto token = block.barrier_arrive();
        cg::this_thread().sync();
        block.barrier_wait(std::move(token));
        out[threadIdx.x] = held[63 - threadIdx.x];
    }"""
    )
    [out] = run_kernel(source, "k", make_ints(64), block=64)
    lanes = np.arange(64) % 32
    np.testing.assert_array_equal(out, (lanes // 8 * 100 + 40 + lanes % 8)[::-1])
