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


ACCESSES = """
__global__ void f(int *a, int *b) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) a[3 * t] = t;
    if (t > 4) atomicAdd(&a[3 * t % 2], 1);
    if (t < 2) a[100] = t;
    atomicAdd(&a[103], 1);
    ((char *)a)[480 + t] = t;
}
"""


def observe(source: str, start: int, stop: int, grid: int, block: int) -> Writers:
    """Return what writes to the bytes from `start` to `stop` of `a`."""
    a, b = np.zeros(512, np.int32).view(np.uint8), np.zeros(8, np.int32).view(np.uint8)
    writers = Writers(a, start, stop - start)
    build(source).kernel("f").launch((grid, 1, 1), (block, 1, 1), [a, b], observers=[writers])
    return writers


def test_a_write_has_its_line_and_the_traffic_of_its_warp() -> None:
    """Lanes 0 to 7 of the second warp write 12 bytes apart from byte 384, into 3 sectors instead of 1."""
    write = observe(ACCESSES, 384, 388, 2, 40).first
    assert write is not None
    assert (write.thread, write.position.line, write.atomic, write.lanes, write.queue) == ((32, 0, 0), 4, False, 8, 1)
    assert (write.sectors, write.ideal_sectors) == (3, 1)


@pytest.mark.parametrize(
    ("element", "line", "lanes", "queue", "ideal"),
    [
        (1, 5, 27, 14, 4),  # of threads 5 to 31, the 14 odd ones add to element 1
        (103, 7, 32, 32, 4),  # all add to one element
    ],
)
def test_an_atomic_operation_moves_a_sector_for_each_lane_of_its_queue(
    element: int, line: int, lanes: int, queue: int, ideal: int
) -> None:
    write = observe(ACCESSES, 4 * element, 4 * element + 4, 2, 32).last
    assert write is not None
    assert (write.block, write.thread, write.position.line) == ((1, 0, 0), (31, 0, 0), line)
    assert (write.atomic, write.lanes, write.queue) == (True, lanes, queue)
    assert (write.sectors, write.ideal_sectors) == (queue, ideal)


@pytest.mark.parametrize(
    ("start", "stop", "writes"),
    [
        (392, 396, 0),
        (392, 404, 1 + 2),  # element 99 by thread 33, and element 100 by two threads
        (396, 404, 1 + 2),
        (396, 400, 1),
        (400, 404, 2),
        (404, 408, 0),
        (481, 482, 1),  # one byte
    ],
)
def test_the_range_has_all_its_bytes_and_no_more(start: int, stop: int, writes: int) -> None:
    assert observe(ACCESSES, start, stop, 1, 40).writes == writes


def test_statements_are_counted_by_lanes_and_a_loop_counts_each_iteration() -> None:
    def count(statement: str) -> int:
        source = f"__global__ void f(int *a, int *b) {{ int t = threadIdx.x; {statement} }}"
        return observe(source, 0, 1, 2, 8).statements

    lanes = 2 * 8
    assert count("") == lanes
    assert count("a[t] = t;") == 2 * lanes
    # Both declarations and the last test; a test, a body and a step for each iteration.
    assert count("for (int k = 0; k < 4; ++k) a[t] = t;") == lanes * (3 + 3 * 4)


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
