"""Bulk tensor copies: boxes of a matrix, described by a tensor map, that mbarriers complete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.warpgroups import WarpgroupChecker
from gpu.simulator.executor.textures import SimulatedTensorMap
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]

SOURCE = r"""
#include <cuda.h>
#ifndef BYTES
#define BYTES (ROWS * 128)
#endif
#ifndef OFFSET
#define OFFSET 0
#endif

__global__ void boxed(const __grid_constant__ CUtensorMap map, unsigned int *out, int x, int y) {
    extern __shared__ __align__(1024) unsigned int box[];
    __shared__ unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(box) + OFFSET;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(BYTES) : "memory");
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
    }
    WAITS
    for (int i = threadIdx.x; i < ROWS * 32; i += blockDim.x) out[i] = box[OFFSET / 4 + i];
}
"""
WAITS = (
    'asm volatile("{\\n.reg .pred P1;\\nLAB_WAIT:\\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n'
    '@P1 bra DONE;\\nbra LAB_WAIT;\\nDONE:\\n}" ::"r"(b), "r"(0) : "memory");'
)
BOX_ROWS = 20


@pytest.fixture(scope="module")
def module() -> SimulatedModule:
    return _build()


def _build(waits: str = WAITS, **defines: int) -> SimulatedModule:
    return build(SOURCE, {"ROWS": BOX_ROWS, "WAITS": waits, **defines})


def _map(matrix: Array, columns: int | None = None) -> SimulatedTensorMap:
    """Return the map of a matrix, or of its first columns."""
    rows, pitch = matrix.shape[0], matrix.shape[1] * matrix.itemsize
    data = matrix.reshape(-1).view(np.uint8)
    return SimulatedTensorMap(data, rows, columns or matrix.shape[1], pitch, matrix.itemsize, BOX_ROWS)


def _swizzled_box(matrix: Array, x: int, y: int, first_line: int = 0) -> Array:
    """Return the words of a box in shared memory; the part of 16 bytes with index i of line l is at i ^ l % 8."""
    across = 128 // matrix.itemsize
    box = np.zeros((BOX_ROWS, across), matrix.dtype)
    for row in range(BOX_ROWS):
        for column in range(across):
            if 0 <= y + row < matrix.shape[0] and 0 <= x + column < matrix.shape[1]:
                box[row, column] = matrix[y + row, x + column]
    parts = box.view(np.uint32).reshape(BOX_ROWS, 8, 4)
    lines = np.arange(BOX_ROWS) + first_line
    return np.stack([part[np.arange(8) ^ line % 8] for part, line in zip(parts, lines, strict=True)]).reshape(-1)


def _matrix(rows: int, columns: int, dtype: str = "float16") -> Array:
    return np.random.default_rng(0).integers(1, 2000, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
@pytest.mark.parametrize(
    ("shape", "x", "y"),
    [
        ((40, 128), 64, 7),
        ((40, 128), 72, 30),  # over the lower and the right edge
        ((40, 128), -16, -3),  # over the upper and the left edge
        ((40, 128), 128, 0),  # to the right of the matrix
        ((40, 128), 0, 40),  # below it
        ((40, 128), -64, -20),
        ((9, 24), 0, 0),  # a matrix smaller than the box
        ((9, 24), -8, -1),
    ],
)
def test_a_box_is_swizzled_and_zero_outside_the_matrix(
    module: SimulatedModule, executor: str, shape: tuple[int, int], x: int, y: int
) -> None:
    matrix = _matrix(*shape)
    np.testing.assert_array_equal(_run(module, matrix, x, y, executor), _swizzled_box(matrix, x, y))


def _run(module: SimulatedModule, matrix: Array, x: int, y: int, executor: str, columns: int | None = None) -> Array:
    out = np.full(BOX_ROWS * 32, 0xFFFFFFFF, np.uint32)
    kernel = module.kernel("boxed") if executor == "lockstep" else module.compiled_kernel("boxed")
    arguments = [_map(matrix, columns), out.view(np.uint8), np.int32(x), np.int32(y)]
    kernel.launch((1, 1, 1), (64, 1, 1), arguments, shared_bytes=4096)
    return out


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_elements_of_other_sizes(module: SimulatedModule, executor: str, dtype: str) -> None:
    matrix = _matrix(25, 160, dtype)
    np.testing.assert_array_equal(_run(module, matrix, 16, 8, executor), _swizzled_box(matrix, 16, 8))


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
@pytest.mark.parametrize("columns", [1, 13, 67])
def test_a_row_ends_before_the_next_one_begins(module: SimulatedModule, executor: str, columns: int) -> None:
    matrix = _matrix(25, 72)
    expected = _swizzled_box(matrix[:, :columns], 0, 2)
    np.testing.assert_array_equal(_run(module, matrix, 0, 2, executor, columns), expected)


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
def test_the_address_determines_the_swizzle(executor: str) -> None:
    matrix = _matrix(40, 128)
    out = _run(_build(OFFSET=384), matrix, 8, 1, executor)
    np.testing.assert_array_equal(out, _swizzled_box(matrix, 8, 1, first_line=3))


@pytest.mark.parametrize(
    ("defines", "x", "message"),
    [
        ({"OFFSET": 64}, 0, "a box in shared memory is aligned to 128 bytes"),
        ({}, 3, "boxes that begin at a multiple of 16 bytes"),
    ],
)
def test_an_unsupported_box_is_an_error(defines: dict[str, int], x: int, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        _run(_build(**defines), _matrix(40, 128), x, 0, "lockstep")


def test_a_wrong_byte_count_is_found() -> None:
    kernel, out = _build(BYTES=BOX_ROWS * 128 + 16).kernel("boxed"), np.zeros(BOX_ROWS * 128, np.uint8)
    arguments = [_map(_matrix(40, 128)), out, np.int32(0), np.int32(0)]
    with pytest.raises(LaunchError, match=r"this loop did not end: .* after 100 iterations"):
        kernel.launch((1, 1, 1), (64, 1, 1), arguments, shared_bytes=4096, max_rounds=100)


def test_without_a_wait_the_box_is_a_race_and_has_not_arrived(module: SimulatedModule) -> None:
    early = _build(waits="")
    matrix, out = _matrix(40, 128), np.zeros(BOX_ROWS * 32, np.uint32)
    arguments = (_map(matrix), out, np.int32(0), np.int32(0))
    races, unwritten = RaceChecker(), UninitializedChecker(())
    launch_watched(races, early, *arguments, kernel="boxed", block=64, shared_bytes=4096)
    launch_watched(unwritten, early, *arguments, kernel="boxed", block=64, shared_bytes=4096)
    assert "wait for a phase of its mbarrier that expects all its bytes" in races.findings[0].message
    assert unwritten.findings
    checkers = RaceChecker(), WarpgroupChecker(), UninitializedChecker(())
    for checker in checkers:
        launch_watched(checker, module, *arguments, kernel="boxed", block=64, shared_bytes=4096)
        assert not checker.findings


def test_the_barrier_is_fenced_before_the_copy() -> None:
    source = SOURCE.replace('asm volatile("fence.proxy.async.shared::cta;");', "")
    checker = WarpgroupChecker()
    arguments = (_map(_matrix(40, 128)), np.zeros(BOX_ROWS * 32, np.uint32), np.int32(0), np.int32(0))
    defines = {"ROWS": BOX_ROWS, "WAITS": WAITS}
    launch_watched(checker, source, *arguments, kernel="boxed", block=64, shared_bytes=4096, defines=defines)
    assert finding_lines(checker.findings)


def test_a_recording_shows_the_origin_of_each_element(module: SimulatedModule) -> None:
    matrix, out = _matrix(4, 64), np.zeros(BOX_ROWS * 32, np.uint32)
    arguments = [_map(matrix), out.view(np.uint8), np.int32(0), np.int32(0)]
    trace = module.trace("boxed", (1, 1, 1), (64, 1, 1), arguments, shared_bytes=4096)
    assert not trace.failure
    assert {array.name for array in trace.arrays if array.space == "global"} == {"map", "out"}
    assert input_elements(find_ancestry(trace, "out", 32 + 1)) == [(64 + 8 + 2) // 2]  # in words
    assert not input_elements(find_ancestry(trace, "out", 32 * 4))
    np.testing.assert_array_equal(out, _swizzled_box(matrix, 0, 0))


MULTICAST = r"""
#include <cuda.h>

__device__ void wait(unsigned bar, int parity) {
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(bar), "r"(parity) : "memory");
}

// Each block copies half of every box to both blocks, which reuse the same memory for the next box.
__global__ void __cluster_dims__(2, 1, 1)
halves(const __grid_constant__ CUtensorMap map, unsigned int *out, int boxes) {
    extern __shared__ __align__(1024) unsigned int box[];
    __shared__ unsigned long long bars[2];
    unsigned to = (unsigned)__cvta_generic_to_shared(box), full = (unsigned)__cvta_generic_to_shared(bars);
    unsigned empty = full + 8, rank = blockIdx.x % 2, peer;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(empty), "r"((threadIdx.x + rank) % 2));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty), "r"(ARRIVALS));
        asm volatile("fence.proxy.async.shared::cta;");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    for (int i = 0; i < boxes; ++i) {
        if (threadIdx.x == 0) {
            wait(empty, i % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(full) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                         ::"r"(to + rank * 1024), "l"(&map), "r"(0), "r"((2 * i + (int)rank) * 8), "r"(full),
                           "h"((unsigned short)MASK) : "memory");
        }
        wait(full, i % 2);
        for (int j = threadIdx.x; j < 512; j += 32) out[(blockIdx.x * boxes + i) * 512 + j] = box[j];
        __syncwarp();
        if (threadIdx.x < ARRIVALS) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(peer) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""


def _map_of_halves(matrix: Array) -> SimulatedTensorMap:
    return replace(_map(matrix), box_rows=8)


@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
def test_a_multicast_copies_to_the_same_place_of_each_block(executor: str) -> None:
    matrix, out = _matrix(48, 64), np.zeros(2 * 3 * 512, np.uint32)
    module = build(MULTICAST, {"ARRIVALS": 2, "MASK": 3})
    kernel = module.kernel("halves") if executor == "lockstep" else module.compiled_kernel("halves")
    arguments = [_map_of_halves(matrix), out.view(np.uint8), np.int32(3)]
    # Shared memory whose size is no multiple of a line: the boxes of the second block are aligned nevertheless.
    kernel.launch((2, 1, 1), (32, 1, 1), arguments, shared_bytes=2048 + 16)
    parts = matrix.view(np.uint32).reshape(48, 8, 4)
    swizzled = np.stack([part[np.arange(8) ^ line % 8] for line, part in enumerate(parts)])
    np.testing.assert_array_equal(out.reshape(2, -1), np.stack([swizzled.reshape(-1)] * 2))


@pytest.mark.parametrize(("arrivals", "is_race"), [(2, False), (1, True)])
def test_a_multicast_that_does_not_wait_for_the_other_block_is_a_race(arrivals: int, is_race: bool) -> None:
    """With one arrival, each producer waits for the readers of its own block only."""
    out, checker = np.zeros(2 * 3 * 512, np.uint32), RaceChecker()
    arguments = (_map_of_halves(_matrix(48, 64)), out, np.int32(3))
    defines = {"ARRIVALS": arrivals, "MASK": 3}
    launch_watched(
        checker, MULTICAST, *arguments, kernel="halves", grid=2, block=32, shared_bytes=2048, defines=defines
    )
    assert bool(checker.findings) == is_race


def test_a_multicast_to_a_block_outside_of_the_cluster_is_an_error() -> None:
    kernel = build(MULTICAST, {"ARRIVALS": 2, "MASK": 4}).kernel("halves")
    arguments = [_map_of_halves(_matrix(48, 64)), np.zeros(2 * 3 * 2048, np.uint8), np.int32(3)]
    with pytest.raises(LaunchError, match="maps rank 2 of its cluster, which has 2 blocks"):
        kernel.launch((2, 1, 1), (32, 1, 1), arguments, shared_bytes=2048)
