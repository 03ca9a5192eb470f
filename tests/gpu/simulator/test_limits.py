"""Launches that hardware refuses are refused, on every way that leads to a launch, and those at the limit run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import CompileError, InputError, LaunchError
from gpu.engines.base import Extent
from gpu.engines.checking_engine import CheckingEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.engines.tracing_engine import TracingEngine
from gpu.kernel.simulate import simulate
from gpu.simulator.simulated_module import SimulatedModule

TEXT = "__global__ void k(int *data) { if (blockIdx.y + blockIdx.z + threadIdx.x == 0) data[0] = gridDim.z; }"

REFUSED = [
    ((1, 65536, 1), (1, 1, 1), "a grid of 65536 blocks along y; at most 65535 are possible."),
    ((1, 1, 65536), (1, 1, 1), "a grid of 65536 blocks along z; at most 65535 are possible."),
    ((2**31, 1, 1), (1, 1, 1), "a grid of 2147483648 blocks along x; at most 2147483647 are possible."),
    ((2**32, 1, 1), (1, 1, 1), "a grid of 4294967296 blocks along x; at most 2147483647 are possible."),
    ((1, 1, 1), (1, 1, 65), "a block of 65 threads along z; at most 64 are possible."),
    ((1, 1, 1), (8, 2, 65), "a block of 1040 threads; at most 1024 are possible."),
    ((1, 1, 1), (1025, 1, 1), "a block of 1025 threads; at most 1024 are possible."),
    ((0, 1, 1), (32, 1, 1), "a grid of (0, 1, 1) blocks of (32, 1, 1) threads is empty."),
    ((1, -1, -1), (32, 1, 1), "a grid of (1, -1, -1) blocks of (32, 1, 1) threads is empty."),
]


@pytest.mark.parametrize(("grid", "block", "reason"), REFUSED)
def test_extents_that_no_gpu_takes(grid: Extent, block: Extent, reason: str) -> None:
    with pytest.raises(LaunchError) as raised:
        simulate("k.cu", "k", grid, block, ["zeros:1"], source=TEXT)
    assert raised.value.message == f"k: {reason}"


@pytest.mark.parametrize("engine", [SimulatorEngine, CheckingEngine, TracingEngine])
@pytest.mark.parametrize(("grid", "block", "reason"), REFUSED)
def test_every_engine_refuses_them(engine: type, grid: Extent, block: Extent, reason: str) -> None:
    made = engine()
    made.sources = {"k.cu": TEXT}
    kernel = made.build("k.cu", {}).kernel("k")
    with pytest.raises(LaunchError, match=r"k: a (grid|block) of"):
        made.launch(kernel, grid, block, made.upload(np.zeros(1, np.int32)))


@pytest.mark.parametrize(
    ("grid", "block"), [((1, 65535, 1), (1, 1, 1)), ((1, 1, 65535), (1, 1, 1)), ((1, 1, 1), (2, 8, 64))]
)
def test_extents_at_the_limit_run(grid: Extent, block: Extent) -> None:
    data = np.zeros(1, np.int32)
    SimulatedModule(TEXT, Path("k.cu"), {}).compiled_kernel("k").launch(grid, block, [data.view(np.uint8)])
    assert data[0] == grid[2]


def test_constant_memory_ends_at_64_kb() -> None:
    text = "__constant__ char a[60000]; __constant__ char b[{rest}]; __global__ void k(char *p) {{ *p = a[0] + b[0]; }}"
    SimulatedModule(text.format(rest=65536 - 60000), Path("k.cu"), {}).kernel("k")
    with pytest.raises(CompileError) as raised:
        SimulatedModule(text.format(rest=65537 - 60000), Path("k.cu"), {})
    assert raised.value.message == "k.cu has 65537 bytes of __constant__ variables; at most 65536 are possible."


def test_shared_memory_of_less_than_nothing() -> None:
    with pytest.raises((LaunchError, InputError), match=r"shared"):
        simulate("k.cu", "k", 1, 32, ["zeros:1"], source=TEXT, shared_bytes=-4)
