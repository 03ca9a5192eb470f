"""What each warp of a grid has to do is the same whether its rounds are foreseen or gone through one by one."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.caches import iterate_visits
from gpu.timing.estimate.compiler import generate_ptx
from gpu.timing.ptx.analysis.load_chains import compute_load_depths
from gpu.timing.ptx.census import GridCensus
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape

TEXT = """
extern "C" __global__ void rows(const int *offsets, const float *entries, float *y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) sum += entries[k];
    y[row] = sum;
}
extern "C" __global__ void handed_on(int *queue, float *y) {
    int own = atomicAdd(queue, 1);
    for (int k = 0; k < own; ++k) y[k] = own;
}
extern "C" __global__ void halved(int *values) {
    int i = threadIdx.x;
    for (int k = 0; k < values[i]; ++k) values[i + 1] = k;
}
extern "C" __global__ void gathered(const int *columns, const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = x[columns[i]];
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> SimulatedModule:
    return SimulatedModule(TEXT, tmp_path_factory.mktemp("census") / "k.cu", {})


def kernel_of(module: SimulatedModule, name: str):
    simulated = module.kernel(name)
    return parse_ptx(generate_ptx(simulated.function, simulated.variables, "9.0")).find_kernel(name)


def test_long_rows_are_counted_as_if_they_were_gone_through(module) -> None:
    kernel = kernel_of(module, "rows")
    lengths = np.random.default_rng(3).integers(0, 40, 500)
    lengths[[70, 300]] = 3000, 700
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    arrays = [offsets, np.zeros(offsets[-1], np.float32), np.zeros(500, np.float32)]
    memory = SampledMemory({number: each.view(np.uint8) for number, each in enumerate(arrays)})
    parameters = np.concatenate(
        [np.array([memory.address(number) for number in range(3)], np.int64).view(np.uint8),
         np.array([500, 0], np.int32).view(np.uint8)]
    )  # fmt: skip
    shape = GridShape((8, 1, 1), (64, 1, 1))
    slots = [1.0 + number for number in range(len(kernel.blocks))]
    counted = GridCensus(kernel, {}, slots).count_issue_slots(shape, parameters, range(8), memory)
    path = PtxMachine(kernel, {}).run(shape, parameters, range(8), memory)
    wanted = np.zeros(16)
    for visit, times in iterate_visits(path.steps):
        wanted += times * slots[visit.block] * (visit.lanes > 0)
    assert counted.reshape(-1).tolist() == wanted.tolist()
    assert counted.reshape(-1).argmax() == 70 // 32


@pytest.mark.parametrize("name", ["handed_on", "halved"])
def test_what_other_threads_leave_behind_is_not_foreseen(module, name) -> None:
    kernel = kernel_of(module, name)
    census = GridCensus(kernel, {}, [1.0] * len(kernel.blocks))
    memory = SampledMemory({0: np.zeros(1024, np.uint8)})
    assert census.count_issue_slots(GridShape((1, 1, 1), (32, 1, 1)), np.zeros(32, np.uint8), range(1), memory) is None


def test_a_gather_waits_for_its_index(module) -> None:
    kernel = kernel_of(module, "gathered")
    waits = [
        (each.type, number)
        for block in kernel.blocks
        for each, number in zip(block.instructions, compute_load_depths(block), strict=True)
        if each.opcode in ("ld", "st") and "global" in each.modifiers
    ]
    assert [number for _, number in waits] == [0, 1, 2]
