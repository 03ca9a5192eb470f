"""Occupancy beside what a driver said of an H200: threads, registers, shared bytes, blocks."""

from __future__ import annotations

import pytest

from gpu.timing.gpus import find_gpu
from gpu.timing.occupancy import compute_occupancy

# cuOccupancyMaxActiveBlocksPerMultiprocessor, NVIDIA H200, of kernels of this project.
DRIVER = [
    (512, 32, 0, 4),
    (256, 32, 1360, 8),
    (128, 40, 0, 12),
    (128, 56, 0, 9),
    (256, 32, 20064, 8),
    (64, 47, 0, 10 * 2),
    (256, 61, 4484, 4),
    (512, 40, 4096, 3),
    (256, 123, 8192, 2),
    (256, 127, 33792, 2),
    (128, 108, 12544, 4),
    (32, 32, 0, 32),
    (1024, 31, 8192, 2),
]


@pytest.mark.parametrize(("threads", "registers", "shared", "blocks"), DRIVER)
def test_a_multiprocessor_holds_what_the_driver_says(threads, registers, shared, blocks) -> None:
    assert compute_occupancy(find_gpu("h200"), threads, registers, shared).blocks == blocks


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "limited_by"),
    [(256, 128, 0, "registers"), (256, 16, 100_000, "shared memory"), (256, 16, 0, "warps"), (32, 16, 0, "blocks")],
)
def test_what_ends_first_is_named(threads, registers, shared, limited_by) -> None:
    assert compute_occupancy(find_gpu("h200"), threads, registers, shared).limiting_resource == limited_by


def test_shared_memory_is_no_limit_for_blocks_without_any() -> None:
    occupancy = compute_occupancy(find_gpu("t4"), 64, 16, 0)
    assert (occupancy.blocks, occupancy.limiting_resource) == (16, "warps")
    assert compute_occupancy(find_gpu("t4"), 32, 16, 0).limiting_resource == "blocks"


def test_a_block_that_needs_more_than_there_is_is_never_held() -> None:
    assert compute_occupancy(find_gpu("h200"), 1024, 255, 0).blocks == 0
