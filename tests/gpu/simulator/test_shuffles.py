"""Shuffles in both executors, for any width and distance, against the pseudocode of `shfl` in the PTX manual."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build

WIDTHS = (-33, -8, -1, 0, 1, 2, 3, 4, 8, 12, 16, 31, 32, 33, 64, 96, 2**31 - 1)
DISTANCES = (-100, -33, -32, -1, 0, 1, 2, 7, 15, 31, 32, 33, 100, -(2**31))
SOURCE = """__global__ void uniform(const int *by, const int *width, int *out) {
    out[threadIdx.x] = __shfl_OP_sync(~0u, (int)threadIdx.x, by[0], WIDTH);
}
__global__ void general(const int *by, const int *width, int *out) {
    out[threadIdx.x] = __shfl_OP_sync(~0u, (int)threadIdx.x, by[threadIdx.x], width[threadIdx.x]);
}"""


def shuffle(op: str, lane: int, b: int, width: int) -> int:
    """Return the lane that `lane` reads; CUDA's headers pass the width to PTX as c = (32 - width) << 8 | clamp."""
    c = (32 - width << 8) | (0 if op == "up" else 0x1F)
    bval, segmask, clamp = b & 0x1F, c >> 8 & 0x1F, c & 0x1F
    max_lane, min_lane = (lane & segmask) | (clamp & ~segmask), lane & segmask
    if op == "up":
        j, p = lane - bval, lane - bval >= max_lane
    elif op == "down":
        j, p = lane + bval, lane + bval <= max_lane
    elif op == "xor":
        j, p = lane ^ bval, lane ^ bval <= max_lane
    else:
        j, p = min_lane | (bval & ~segmask), (min_lane | (bval & ~segmask)) <= max_lane
    return j if p else lane


def launch(module: SimulatedModule, kernel: str, by: np.ndarray, width: np.ndarray, *, compiled: bool) -> list[int]:
    out = np.zeros(64, np.int32)
    kernels = module.compiled_kernel(kernel) if compiled else module.kernel(kernel)
    kernels.launch((1, 1, 1), (64, 1, 1), [each.view(np.uint8) for each in (by, width, out)])
    return out.tolist()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("op", ["", "up", "down", "xor"])
def test_any_width_and_distance(op: str, *, compiled: bool) -> None:
    text = SOURCE.replace("OP_", f"{op}_" if op else "").replace("WIDTH", "width[0]")
    module = build(text)
    cases = [(by, width) for by in DISTANCES for width in WIDTHS]
    for by, width in cases:
        got = launch(module, "uniform", *(np.full(64, each, np.int32) for each in (by, width)), compiled=compiled)
        assert got == [lane // 32 * 32 + shuffle(op, lane % 32, by, width) for lane in range(64)], (by, width)
    rows = np.random.default_rng(1).permutation(cases)[:64].astype(np.int32)
    by, width = np.ascontiguousarray(rows.T)
    got = launch(module, "general", by, width, compiled=compiled)
    expected = [lane // 32 * 32 + shuffle(op, lane % 32, int(by[lane]), int(width[lane])) for lane in range(64)]
    assert got == expected


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("op", ["", "up", "down", "xor"])
def test_constant_widths_in_machine_code(op: str, width: int) -> None:
    module = build(SOURCE.replace("OP_", f"{op}_" if op else "").replace("WIDTH", str(width)))
    for by in DISTANCES:
        got = launch(module, "uniform", *(np.full(64, each, np.int32) for each in (by, width)), compiled=True)
        assert got == [lane // 32 * 32 + shuffle(op, lane % 32, by, width) for lane in range(64)], (by, width)
