"""Grids whose blocks wait for each other: right if the GPU holds all of them at once, else named as the reason."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.base.warp import WARP
from gpu.kernel.simulate import Simulation, simulate
from gpu.simulator.limits import RESIDENCY, ResidencyLimits
from tests.gpu.simulator.kernel_runner import build

BARRIER = """__global__ void k(int *count, volatile int *sense, int *out) {
    int t = threadIdx.x;
    if (t == 0) out[blockIdx.x] = 0;
    for (int round = 1; round <= 3; ++round) {
        __syncthreads();
        if (t == 0) {
            __threadfence();
            if (atomicAdd(count, 1) == round * gridDim.x - 1) *sense = round;
            ORDER
            __threadfence();
        }
        __syncthreads();
        if (t == 0) out[blockIdx.x] += round;
    }
}"""
WAIT = "while (*sense < round) {}"
# Lanes of one warp wait for each other, so that blocks in lockstep starve.
LANES = """__global__ void k(int *count, int *sense, int *out) {
    while (atomicAdd(sense, 0) != blockIdx.x * blockDim.x + threadIdx.x) {}
    __threadfence();
    out[blockIdx.x] = 6;
    __threadfence();
    atomicAdd(sense, 1);
    while (atomicAdd(sense, 0) < gridDim.x * blockDim.x) {}
}"""
ENDLESS = BARRIER.replace("== round", "== -round")
EARLIER = """__global__ void k(int *ticket, volatile int *turn, int *out) {
    if (threadIdx.x) return;
    int block = atomicAdd(ticket, 1);
    while (*turn != block) {}
    __threadfence();
    out[block] = 6;
    __threadfence();
    *turn = block + 1;
}"""
# Each iteration takes and releases a lock, so memory changes while a block waits for the next one.
LOCKED = """__global__ void k(int *lock, int *turn, int *out) {
    for (int waiting = 1; waiting;) {
        while (threadIdx.x == 0 && atomicCAS(lock, 0, 1)) {}
        __syncthreads();
        __threadfence();
        waiting = atomicAdd(turn, 0) != gridDim.x - 1 - blockIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (!waiting) { out[blockIdx.x] = 6; atomicAdd(turn, 1); }
            __threadfence();
            atomicExch(lock, 0);
        }
    }
}"""
COOPERATIVE = """#include <cooperative_groups.h>
__global__ void k(int *count, int *sense, int *out) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] = 6;
}"""


def run(source: str, grid: int, block: int) -> Simulation:
    arguments = ("zeros:1", "zeros:1", f"zeros:{grid}")
    return simulate("k.cu", "k", grid, block, arguments, source=source.replace("ORDER", WAIT), max_steps=20_000)


def launch(source: str, grid: int, block: int) -> np.ndarray:
    """Launch a kernel without checkers and their trials; return what its blocks write."""
    counts, out = [np.zeros(4, np.uint8) for _ in range(2)], np.zeros(4 * grid, np.uint8)
    kernel = build(source.replace("ORDER", WAIT)).kernel("k")
    kernel.launch((grid, 1, 1), (block, 1, 1), [*counts, out], max_rounds=20_000)
    return out.view(np.int32)


@pytest.mark.parametrize(
    ("source", "grid", "block"),
    [
        (BARRIER, 264, 1024),
        pytest.param(BARRIER, 1056, 33, marks=pytest.mark.sweep),
        (LANES, 2, 5),
        (EARLIER, 265, 1024),
        pytest.param(LOCKED, 3, 33, marks=pytest.mark.sweep),
        (COOPERATIVE, 264, 1024),
    ],
)
def test_a_grid_that_the_gpu_holds_or_that_waits_for_earlier_blocks(source: str, grid: int, block: int) -> None:
    simulation = run(source, grid, block)
    assert simulation.findings == []
    assert (simulation.arrays[2] == 6).all()


@pytest.mark.parametrize(("source", "grid", "block"), [(BARRIER, 265, 1024), (COOPERATIVE, 265, 1024)])
def test_a_grid_that_the_gpu_does_not_hold(source: str, grid: int, block: int) -> None:
    simulation = run(source, grid, block)
    assert simulation.aborted
    assert [finding.kind for finding in simulation.findings] == ["residency"]
    (finding,) = simulation.findings
    assert (
        f"the grid has {grid} blocks of {block} threads, and at most {grid - 1} of them are resident" in finding.message
    )
    if source is BARRIER:
        assert [position.line for position in finding.positions] == [1 + BARRIER[: BARRIER.index("ORDER")].count("\n")]
        assert finding.threads[0].startswith("thread (0,0,0) in block")
    assert (simulation.arrays[2] == 0).all()


def test_the_described_gpu_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RESIDENCY, "multiprocessors", 1)
    for grid, block in ((2, 1024), (32, 32)):
        assert (launch(BARRIER, grid, block) == 6).all()
    for grid, block in ((3, 1024), (33, 32), (33, 1)):
        with pytest.raises(LaunchError) as caught:
            launch(BARRIER, grid, block)
        assert caught.value.kind == "residency"


def test_a_block_that_waits_for_the_next_one_ends_though_memory_changes_meanwhile() -> None:
    assert launch(LOCKED, 3, 33).tolist() == [6] * 3


def test_shared_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RESIDENCY, "multiprocessors", 1)
    kernel = build(BARRIER.replace("ORDER", WAIT)).kernel("k")
    for grid, shared_bytes in ((4, 40_000), (5, 40_000), (6, 40_000), (6, 30_000)):
        arrays = [np.zeros(32, np.uint8) for _ in range(3)]
        if grid * (shared_bytes + 1024) <= 228 * 1024:
            kernel.launch((grid, 1, 1), (32, 1, 1), arrays, shared_bytes=shared_bytes)
        else:
            with pytest.raises(LaunchError, match="at most 5 of them are resident"):
                kernel.launch((grid, 1, 1), (32, 1, 1), arrays, shared_bytes=shared_bytes)


def test_a_loop_that_no_block_ends_is_endless_if_all_blocks_run_together() -> None:
    for threads, kind in ((32, "endless"), (1024, "unfinished")):  # too many lanes to run one by one
        assert [finding.kind for finding in run(ENDLESS, 4, threads).findings] == [kind]
    with pytest.raises(LaunchError, match="while 16 blocks ran") as caught:
        run(ENDLESS, 300, 1024)
    assert caught.value.kind == ""


@pytest.mark.parametrize(
    ("block", "shared_bytes", "expected"),
    [((1, 1, 1), 0, 32), ((33, 1, 1), 0, 32), ((65, 1, 1), 0, 21), ((8, 8, 8), 48 * 1024, 4)],
)
def test_resident_blocks_of_a_multiprocessor(block: tuple[int, ...], shared_bytes: int, expected: int) -> None:
    assert ResidencyLimits(multiprocessors=1).count_resident_blocks(block, shared_bytes) == expected


# The first branch waits for the second one, in which a thread waits for all blocks.
WARPS = """__global__ void k(int *count, int *sense, int *out) {
    __shared__ volatile int go;
    int t = threadIdx.x;
    if (t == 0) go = 0;
    __syncthreads();
    if (t >= 32) {
        if (t == 32) while (!go) {}
        __threadfence();
        if (t == 32) out[blockIdx.x] = atomicAdd(count, 0) / gridDim.x * 6;
    } else if (t == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < gridDim.x) {}
        __threadfence();
        go = 1;
    }
}"""


def test_many_blocks_that_wait_warp_by_warp_are_not_endless() -> None:
    assert launch(WARPS, 90, 64).tolist() == [6] * 90


def test_more_blocks_than_run_warp_by_warp_are_a_limit_of_the_simulator_and_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpu.simulator.executor.launches.residency._RESIDENT_LANES", {WARP: 8 * 64, 1: 64})
    with pytest.raises(LaunchError, match=r"while 8 blocks ran.*one of the other 1 blocks") as caught:
        launch(WARPS, 9, 64)
    assert caught.value.kind == ""
    with pytest.raises(LaunchError) as caught:
        launch(WARPS.replace("go = 1", "go = 0"), 8, 64)
    assert caught.value.kind == "unfinished"
    assert "other" not in str(caught.value)
