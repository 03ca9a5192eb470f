"""Clusters of blocks: their barriers, each other's shared memory, and what goes wrong with both."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, LaunchError
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.simulated_module import SimulatedModule
from tests import needs
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements, trace_kernel

Array = np.ndarray[Any, Any]

EXAMPLE = Path(__file__).parent / "kernels" / "cluster_histogram.cu"
HISTOGRAM = EXAMPLE.read_text("utf-8")
BINS = 16
GIVEN = np.random.default_rng(7).integers(0, BINS, 200).astype(np.int32)

# Each block of a cluster of 2 x 2 has what all others of it know.
BOX = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 2) k(unsigned *out) {
    __shared__ unsigned s[3];
    auto cluster = cg::this_cluster();
    dim3 at = cluster.block_index(), of = cluster.dim_blocks();
    for (unsigned r = 0; r < cluster.block_rank(); ++r) __syncthreads();  // so that some come later than others
    if (threadIdx.x < 3) s[threadIdx.x] = 100 * blockIdx.y + 10 * blockIdx.x + threadIdx.x;
    auto token = cluster.barrier_arrive();
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token &&>(token));
    unsigned sum = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += cluster.map_shared_rank(s, r)[threadIdx.x % 3];
    unsigned next = (cluster.block_rank() + threadIdx.x) % 4;
    unsigned *one = cluster.map_shared_rank(&s[1], next);
    out[block * 35 + threadIdx.x] = sum * 1000 + *one;
    cluster.sync();
    if (threadIdx.x == 0) out[gridDim.x * gridDim.y * 35 + block] = at.x + 2 * at.y + 10 * of.x * of.y;
}"""

# By PTX: a block adds to its neighbor's word, which a barrier in that one's memory waits for.
RING = """
__global__ void __cluster_dims__(3, 1, 1) k(const unsigned *in, unsigned *out) {
    __shared__ unsigned long long bar;
    __shared__ unsigned word;
    unsigned rank, blocks, b = (unsigned)__cvta_generic_to_shared(&bar), w = (unsigned)__cvta_generic_to_shared(&word);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    if (threadIdx.x == 0) {
        word = 0;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(b));
    }
    asm volatile("barrier.cluster.arrive.release.aligned;");
    asm volatile("barrier.cluster.wait.acquire.aligned;");
    unsigned to, there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(w), "r"((rank + 1) % blocks));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(b), "r"((rank + 1) % blocks));
    unsigned mine = in[blockIdx.x * 32 + threadIdx.x];
    if (threadIdx.x == 0) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(mine));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there));
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(b) : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = word + mine;
    asm volatile("barrier.cluster.arrive;");
    asm volatile("barrier.cluster.wait;");
}"""


def _make_launchers(module: SimulatedModule, name: str) -> list[Any]:
    """Return what launches a kernel in several orders, and as machine code."""
    kernel = module.kernel(name)

    def ordered(schedule: str) -> Any:
        return lambda *given, **options: kernel.launch(*given, **options, schedule=schedule)

    return [*map(ordered, ("round-robin", "shuffle:1", "cached:1")), module.compiled_kernel(name).launch]


def _list_findings(source: str, name: str, grid: tuple[int, ...], given: list[Any], shared_bytes: int = 0) -> list[str]:
    found: dict[str, None] = {}
    for schedule in ("round-robin", "shuffle:1"):
        checkers = create_checkers()
        build(source).kernel(name).launch(
            grid, (32, 1, 1), given, shared_bytes=shared_bytes, observers=checkers, schedule=schedule
        )
        found |= dict.fromkeys(each.message for checker in checkers for each in checker.findings)
    return list(found)


def _histogram_source(source: str) -> list[Any]:
    return [GIVEN.view(np.uint8), np.int32(GIVEN.size), np.zeros(BINS, np.int32).view(np.uint8), np.int32(BINS)]


def test_blocks_of_a_cluster_count_in_each_others_shared_memory() -> None:
    module = build(HISTOGRAM)
    for launch in _make_launchers(module, "histogram"):
        given = _histogram_source(HISTOGRAM)
        launch((8, 1, 1), (32, 1, 1), given, shared_bytes=BINS)
        np.testing.assert_array_equal(given[2].view(np.int32), np.bincount(GIVEN, minlength=BINS))
    assert not _list_findings(HISTOGRAM, "histogram", (8, 1, 1), _histogram_source(HISTOGRAM), BINS)


@needs.nvcc
def test_the_example_is_cuda(tmp_path: Path) -> None:
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-cubin", "-o", str(tmp_path / "k"), str(EXAMPLE)]
    subprocess.run(command, check=True, timeout=120)


def test_a_cluster_is_a_box_of_the_grid() -> None:
    blocks, lanes = np.arange(24).reshape(4, 6), np.arange(35)
    expected = np.zeros((24, 35), np.uint32)
    places = np.zeros(24, np.uint32)
    for y, x in np.ndindex(4, 6):
        box = [(y // 2 * 2 + dy, x // 2 * 2 + dx) for dy in range(2) for dx in range(2)]
        rank = box.index((y, x))
        sums = np.array([sum(100 * by + 10 * bx + part for by, bx in box) for part in range(3)])
        ones = np.array([100 * by + 10 * bx + 1 for by, bx in box])
        expected[blocks[y, x]] = sums[lanes % 3] * 1000 + ones[(rank + lanes) % 4]
        places[blocks[y, x]] = rank + 40
    module = build(BOX)
    for launch in _make_launchers(module, "k"):
        out = np.zeros(24 * 36, np.uint32)
        launch((6, 4, 1), (35, 1, 1), [out.view(np.uint8)])
        np.testing.assert_array_equal(out[: 24 * 35].reshape(24, 35), expected)
        np.testing.assert_array_equal(out[24 * 35 :], places)
    assert not _list_findings(BOX, "k", (6, 4, 1), [np.zeros(24 * 36 * 4, np.uint8)])


# The word comes by itself, and the barrier waits for its bytes too.
ASYNC = RING.replace(
    """    asm volatile("barrier.cluster.arrive.release.aligned;");""",
    """    if (threadIdx.x == 0) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 4;" ::"r"(b));
    asm volatile("barrier.cluster.arrive.release.aligned;");""",
).replace(
    """asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(mine));""",
    """asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(mine),
                                       "r"(there));""",
)


@pytest.mark.parametrize("source", [RING, ASYNC], ids=["store", "asynchronous store"])
def test_a_block_waits_for_what_another_one_brings(source: str) -> None:
    given = np.arange(5, 5 + 192, dtype=np.uint32)
    rows = given.reshape(2, 3, 32)
    module = build(source)
    for launch in _make_launchers(module, "k"):
        out = np.zeros(192, np.uint32)
        launch((6, 1, 1), (32, 1, 1), [given.view(np.uint8), out.view(np.uint8)])
        np.testing.assert_array_equal(out.reshape(2, 3, 32), rows + np.roll(rows[:, :, :1], 1, axis=1))
    assert not _list_findings(source, "k", (6, 1, 1), [given.view(np.uint8), np.zeros(768, np.uint8)])


def test_a_recording_follows_a_value_from_block_to_block() -> None:
    made, _ = trace_kernel(
        RING, [np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)], kernel="k", block=32, grid=3
    )
    assert input_elements(find_ancestry(made, "out", 40)) == [0, 40]


SYNC = "    cluster.sync();\n"


@pytest.mark.parametrize(
    ("source", "reasons"),
    [
        (HISTOGRAM.replace(SYNC, "    __syncthreads();\n", 1), ["may not have begun", "a cluster.sync() before"]),
        (
            SYNC.join(HISTOGRAM.split(SYNC)[:2]) + HISTOGRAM.split(SYNC)[2],
            ["may have ended", "a cluster.sync() at the end"],
        ),
    ],
    ids=["start", "end"],
)
def test_a_barrier_that_is_missing_is_found(source: str, reasons: list[str]) -> None:
    found = _list_findings(source, "histogram", (8, 1, 1), _histogram_source(source), BINS)
    for reason in reasons:
        assert any(reason in each for each in found), found
    assert all("cluster_histogram" in each or "test.cu:14" in each for each in found)


def test_a_block_that_ends_while_another_one_reads_it_is_found() -> None:
    source = BOX.replace("    cluster.sync();\n", "")
    found = _list_findings(source, "k", (2, 2, 1), [np.zeros(4 * 36 * 4, np.uint8)])
    assert found
    assert all("s belongs to block" in each and "which may have ended" in each for each in found)


KERNEL = """#include <cooperative_groups.h>
#include <cuda/barrier>
__global__ void __cluster_dims__({dims}) k(int *out) {{
    __shared__ int s[4];
    auto cluster = cooperative_groups::this_cluster();
    {body}
}}"""


@pytest.mark.parametrize(
    ("dims", "grid", "body", "reason"),
    [
        ("32", 32, "", "k: a cluster of 32 blocks; at most 8 are possible on every GPU, and 16 where the host allows"),
        ("2", 3, "", "k: a grid of 3 blocks along x, which is not a multiple of the cluster's 2"),
        ("2", 2, "if (blockIdx.x) cluster.sync(); else while (!*out) __syncthreads();", r"does not reach|did not end"),
        ("2", 2, "cluster.barrier_arrive(); cluster.barrier_arrive();", "arrives at the cluster barrier a second time"),
        ("2", 2, "cluster.barrier_wait();", "waits at the cluster barrier without having arrived"),
        ("2", 2, "*cluster.map_shared_rank(s, 2) = 1;", "maps rank 2 of its cluster, which has 2 blocks"),
        ("2", 2, "cluster.map_shared_rank(s, 1)[4] = 1;", "Invalid __shared__ write .*: element 4 of s, which has 4"),
        ("2", 2, "*cluster.map_shared_rank(out, 1) = 1;", "does not point into shared memory"),
    ],
)
def test_what_no_cluster_can_do_is_an_error(dims: str, grid: int, body: str, reason: str) -> None:
    kernel = build(KERNEL.format(dims=dims, body=body)).kernel("k")
    for schedule in ("round-robin", "shuffle:1"):
        with pytest.raises(LaunchError, match=reason):
            kernel.launch((grid, 1, 1), (32, 1, 1), [np.zeros(16, np.uint8)], schedule=schedule, max_rounds=50)


# The other block waits for a phase.
WAITS_FOR_EVER = """if (blockIdx.x) { cluster.sync(); } else {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    if (threadIdx.x == 0) init(&all, 33);
    __syncthreads();
    all.arrive_and_wait();
}"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if (blockIdx.x) cluster.sync();", ""),
        ("*cluster.map_shared_rank(s, 2) = 1;", "maps a rank beyond the 2 blocks of its cluster"),
        (WAITS_FOR_EVER, "waits for a phase of a barrier that does not end"),
    ],
)
def test_machine_code_finds_who_waits_for_ever(body: str, reason: str) -> None:
    compiled = build(KERNEL.format(dims="2", body=body)).compiled_kernel("k")
    given = ((2, 1, 1), (32, 1, 1), [np.zeros(16, np.uint8)])
    if not reason:  # who has ended is not waited for
        compiled.launch(*given)
        return
    with pytest.raises(LaunchError, match=reason):
        compiled.launch(*given)


def test_extents_are_constant_expressions() -> None:
    kernel = build("constexpr int N = 1;\n" + KERNEL.format(dims="N + 1, N", body="")).kernel("k")
    assert kernel.function.cluster == (2, 1, 1)
    with pytest.raises(CompileError, match="the simulator does not support __cluster_dims__"):
        build(KERNEL.format(dims="0", body="")).kernel("k")
