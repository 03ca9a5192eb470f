"""The writes to a range of an array: who wrote first and last, and how many did."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpu.simulator.counting.writers import Writers
from tests.gpu.simulator.kernel_runner import build

SOURCE = """
__global__ void f(int *a, int *b) {
    __shared__ int s[32];
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    s[t] = a[2];
    b[3] = s[t];
    a[4] = 1;
    if (block > 4 && t > 6) {
        a[2 + t % 2] = t;
        a[3] = 0;
    }
}
"""
GRID, BLOCK = (2, 3, 4), (4, 2, 3)


def launch(watched: slice, on_step: Callable[[], None] = lambda: None) -> Writers:
    """Return what writes to elements of `a`."""
    a, b = np.zeros(8, np.int32).view(np.uint8), np.zeros(8, np.int32).view(np.uint8)
    writers = Writers(a, 4 * watched.start, 4 * (watched.stop - watched.start), on_step)
    build(SOURCE).kernel("f").launch(GRID, BLOCK, [a, b], observers=[writers])
    return writers


def test_the_first_and_the_last_writer_are_found_and_all_are_counted() -> None:
    writers = launch(slice(2, 4))
    assert (writers.writes, writers.threads, writers.blocks) == (2 * 19 * 17, 19 * 17, 19)
    assert writers.first is not None
    assert writers.last is not None
    for write, block, thread, line in (
        (writers.first, (1, 2, 0), (3, 1, 0), 10),
        (writers.last, (1, 2, 3), (3, 1, 2), 11),
    ):
        assert (write.kernel, write.grid, write.block_shape) == ("f", GRID, BLOCK)
        assert (write.block, write.thread, write.position.line) == (block, thread, line)


def test_who_writes_elsewhere_is_no_writer() -> None:
    writers = launch(slice(5, 8))
    assert (writers.writes, writers.threads, writers.blocks) == (0, 0, 0)
    assert writers.first is writers.last is None


def test_each_statement_can_end_the_launch() -> None:
    steps = 0

    def stop_at_third_step() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        launch(slice(2, 4), stop_at_third_step)
    assert steps == 3
