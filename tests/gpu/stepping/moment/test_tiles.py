"""Which lane holds which element of tensor cores' tiles, against what lanes of the simulator hold."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.recording.recording import Recording
from gpu.stepping.moment.tiles import TileProduct, has_tiles, tiles_at
from tests.gpu.stepping.recordings import record_launch

# Each lane writes what it holds of tiles whose elements are their own numbers.
FRAGMENTS = """#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, M, N, K, KIND, wmma::row_major> Left;
__global__ void k(const STORED *a, const STORED *b, const SUM *c, float *out) {
    Left left;
    wmma::fragment<wmma::matrix_b, M, N, K, KIND, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, M, N, K, SUM> sum;
    wmma::load_matrix_sync(left, a, K);
    wmma::load_matrix_sync(right, b, N);
    wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
    for (int i = 0; i < M * K / 32; ++i) out[i * 32 + threadIdx.x] = (float)left.x[i];
    for (int i = 0; i < K * N / 32; ++i) out[M * K + i * 32 + threadIdx.x] = (float)right.x[i];
    for (int i = 0; i < M * N / 32; ++i) out[(M + N) * K + i * 32 + threadIdx.x] = (float)sum.x[i];
    wmma::mma_sync(sum,
                   left, right, sum);
}"""

REGISTERS = """__global__ void k(float *out) {
    float d[4] = {};
    unsigned a[4] = {}, b[2] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    out[threadIdx.x] = d[0];
}"""


def _tiles_at_line(recording: Recording, part: str) -> TileProduct | None:
    """Return the tiles of the first statement that runs in a line of the kernel's file."""
    trace = recording.launches[0].trace
    lines = recording.text(trace.events[0].position.file).split("\n")
    number = next(number for number, each in enumerate(lines, 1) if part in each)
    events = (trace.events[event] for event in range(len(trace.data.events)))
    moment = next(1 + at for at, event in enumerate(events) if event.position.line == number)
    return tiles_at(recording, moment)


WARPGROUP = """__global__ void k(float *out) {
    __shared__ __align__(1024) unsigned char tiles[72 * 32];
    unsigned long long a = 8ull << 16 | 16ull << 32 | (__cvta_generic_to_shared(tiles) & 0x3ffff) >> 4;
    float d[8] = {};
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "%8, %8, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "l"(a));
    out[threadIdx.x] = d[0];
}"""


@pytest.mark.parametrize(
    ("shape", "kind", "stored", "of_sum"),
    [
        ((16, 16, 16), "half", np.float16, np.float32),
        ((32, 8, 16), "half", np.float16, np.float32),
        ((8, 32, 16), "half", np.float16, np.float32),
        ((16, 16, 8), "wmma::precision::tf32", np.float32, np.float32),
        ((8, 8, 4), "double", np.float64, np.float64),
    ],
)
def test_a_fragment_is_where_the_simulators_lanes_have_it(
    shape: tuple[int, int, int], kind: str, stored: type[np.floating], of_sum: type[np.floating]
) -> None:
    m, n, k = shape
    names = {np.float16: "half", np.float32: "float", np.float64: "double"}
    source = FRAGMENTS.replace("KIND", kind).replace("STORED", names[stored]).replace("SUM", names[of_sum])
    defines = "".join(f"#define {name} {size}\n" for name, size in zip("MNK", shape, strict=True))
    source = source.replace("using", f"{defines}using", 1)
    extents = ((m, k), (k, n), (m, n))
    given = [np.arange(y * x).astype(stored if at < 2 else of_sum) for at, (y, x) in enumerate(extents)]
    out = np.zeros(sum(y * x for y, x in extents), np.float32)
    recording = record_launch(source, [*given, out])
    found = _tiles_at_line(recording, "mma_sync")
    assert found is not None
    assert not found.documented
    assert found.name.startswith(f"wmma {m} x {n} x {k}")
    assert [each.use for each in found.tiles] == ["A", "B", "C"]
    held = recording.launches[0].trace.array("out", len(recording.launches[0].trace.data.events))
    for tile, (rows, columns), first in zip(found.tiles, extents, (0, m * k, (m + n) * k), strict=True):
        own = held[first : first + rows * columns].reshape(-1, 32)
        np.testing.assert_array_equal(
            own[tile.element_indices, tile.lanes], np.arange(rows * columns).reshape(rows, columns)
        )
    assert [each.use for each in _tiles_at_line(recording, "load_matrix_sync(right").tiles] == ["B"]  # type: ignore[union-attr]
    assert _tiles_at_line(recording, "for (int i = 0; i < ") is None


def test_the_tiles_of_an_instruction_are_those_of_the_isa() -> None:
    recording = record_launch(REGISTERS, [np.zeros(32, np.float32)])
    assert has_tiles(recording)
    found = _tiles_at_line(recording, "mma.sync")
    assert found is not None
    assert found.documented
    assert found.name == "mma.sync m16n8k16, f16"
    a, b, c = found.tiles
    assert [each.lanes.shape for each in found.tiles] == [(16, 16), (16, 8), (16, 8)]
    # As the figures of "Matrix fragments for mma.m16n8k16" have them.
    assert [(a.lanes[at], a.element_indices[at]) for at in ((0, 0), (0, 8), (8, 0), (8, 9), (7, 7))] == [
        (0, 0), (0, 4), (0, 2), (0, 7), (31, 1)
    ]  # fmt: skip
    assert [(b.lanes[at], b.element_indices[at]) for at in ((0, 0), (8, 0), (15, 7), (3, 2))] == [
        (0, 0),
        (0, 2),
        (31, 3),
        (9, 1),
    ]
    assert [(c.lanes[at], c.element_indices[at]) for at in ((0, 0), (8, 7), (7, 7))] == [(0, 0), (3, 3), (31, 1)]
    assert tiles_at(recording, 0) is None


def test_a_warp_of_four_has_the_sums_of_its_own_rows() -> None:
    """As the figure "WGMMA .m64nNk16 register fragment layout" has those of the first warp."""
    recording = record_launch(WARPGROUP, [np.zeros(128, np.float32)], block=128)
    assert has_tiles(recording)
    found = _tiles_at_line(recording, "asm volatile")
    assert found is not None
    assert found.documented
    assert found.name == "wgmma m64n16k16, f16: 16 rows of 64"
    (c,) = found.tiles
    assert (c.use, c.lanes.shape) == ("C", (16, 16))
    places = [(c.lanes[at], c.element_indices[at]) for at in ((0, 0), (0, 7), (8, 0), (15, 7), (7, 8), (15, 15))]
    assert places == [(0, 0), (3, 1), (0, 2), (31, 3), (28, 4), (31, 7)]
