"""Races: planted ones are found with both lines and threads, correct kernels give no finding."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.executor.state.batch import BlockBatch, Geometry
from gpu.simulator.executor.state.memory import AccessSite, FlatMemory
from gpu.simulator.executor.state.observer import Access
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]


def races(source: str, *arguments: Any, **shape: Any) -> list[Finding]:
    checker = RaceChecker()
    launch_watched(checker, source, *arguments, **shape)
    assert all(finding.kind == "race" for finding in checker.findings)
    return checker.findings


def make_kernel(statements: str, shared: str = "") -> str:
    """A kernel whose statements begin on line 3."""
    return f"""__global__ void f(int *data, int *out, int n) {{
    {shared} int t = threadIdx.x; int i = blockIdx.x * blockDim.x + t;
{statements}
}}"""


def make_ints(size: int = 4096) -> Array:
    return np.zeros(size, np.int32)


def find_races(statements: str, shared: str = "", **shape: Any) -> list[Finding]:
    return races(make_kernel(statements, shared), make_ints(), make_ints(), np.int32(4), **shape)


@pytest.mark.parametrize(("other", "is_racy"), [("high", True), ("next", False), ("far", False)])
def test_a_write_of_a_bit_field_reads_and_writes_its_neighbors(other: str, *, is_racy: bool) -> None:
    """Bit fields side by side are one memory location; a member between them, or a width of 0, separates them."""
    source = f"""struct F {{ unsigned low : 4, high : 4; char : 0; unsigned far : 4; unsigned char next; }};
    __global__ void f(F *p) {{
        if (threadIdx.x == 0) p->low = 1;
        if (threadIdx.x == 32) p->{other} = 2;
    }}"""
    assert bool(races(source, np.zeros(8, np.uint8), block=64)) is is_racy


TREE = """s[t] = data[i];
{first}
for (int step = blockDim.x / 2; step > 0; step /= 2) {{
    if (t < step) s[t] += s[t + step];
    {second}
}}
if (t == 0) out[blockIdx.x] = s[0];"""


@pytest.mark.parametrize(("block", "grid"), [(128, 1), (128, 7), (1024, 2), (64, 3000)])
def test_a_tree_reduction(block: int, grid: int) -> None:
    shared = "__shared__ int s[1024];"
    arrays = (make_ints(block * grid), make_ints(grid), np.int32(0))
    clean = make_kernel(TREE.format(first="__syncthreads();", second="__syncthreads();"), shared)
    assert races(clean, *arrays, block=block, grid=grid) == []
    late = races(make_kernel(TREE.format(first="__syncthreads();", second=""), shared), *arrays, block=block, grid=grid)
    assert (6, 6) in finding_lines(late)
    early = races(
        make_kernel(TREE.format(first="", second="__syncthreads();"), shared), *arrays, block=block, grid=grid
    )
    assert (3, 6) in finding_lines(early)


def test_what_a_finding_says() -> None:
    (found,) = find_races("s[t] = t + 7;\nout[i] = s[t ^ 32];", "__shared__ int s[64];", block=(64, 1, 1), grid=2)
    assert found.message == (
        "Race reported between Write access at test.cu:3 by thread (32,0,0) in block (0,0,0) and Read access at "
        "test.cu:4 by thread (0,0,0) in block (0,0,0) on element 32 of s (shared memory): wrote 39, read 39. "
        "No barrier separates the two accesses: add a __syncthreads() between them."
    )
    assert [position.line for position in found.positions] == [3, 4]
    assert found.threads == ("thread (32,0,0) in block (0,0,0)", "thread (0,0,0) in block (0,0,0)")
    assert found.count == 128


ORDERED_BY = {
    "two warps": (
        "s[t] = t;\nout[i] = s[t ^ 32];",
        "No barrier separates the two accesses: add a __syncthreads() between them.",
    ),
    "one warp": (
        "s[t] = t;\nout[i] = s[t ^ 1];",
        "No barrier separates the two accesses: add a __syncwarp() between them.",
    ),
    "two warps of a kernel with named barriers": (
        's[t] = t;\nasm volatile("bar.sync 3, 64;" ::: "memory");\nout[i] = s[t ^ 32];\ns[t] = 0;',
        (
            "No barrier separates the two accesses: add a __syncthreads() between them, or a named barrier that the "
            "threads of both reach, if not all threads of the block do."
        ),
    ),
    "one line": (
        "s[t] = s[t ^ 32] + 1;",
        "No barrier separates the two accesses: add a __syncthreads() between them.",
    ),
    "an update": (
        "s[t / 2]++;",
        "Several threads update this element by one statement, in which no barrier fits: use an atomic operation.",
    ),
    "an update of two operators": (
        "s[t / 2] = s[t / 2] + 1;",
        "Several threads update this element by one statement, in which no barrier fits: use an atomic operation.",
    ),
    "updates of one element by threads in turn": (
        "for (int k = 0; k < 2; ++k) s[t ^ k] += k;",
        "No barrier separates the two accesses: add a __syncwarp() between them, or use an atomic operation.",
    ),
    "one instruction": (
        "data[blockIdx.x] = t;",
        "The threads of one statement are unordered: use an atomic operation, or let one thread write.",
    ),
    "two blocks": (
        "if (blockIdx.x == 0 && t == 0) data[0] = t;\nif (blockIdx.x == 1 && t == 0) out[i] = data[0];",
        "The blocks of a launch are unordered: use an atomic operation, or a second launch.",
    ),
    "two blocks, in place": (
        "data[i] = data[(i + 64) % 128];",
        (
            "The blocks of a launch are unordered, and this line reads what others of them write: write the results to "
            "another array, use an atomic operation, or a second launch."
        ),
    ),
    "two blocks, one with an atomic": (
        "if (blockIdx.x == 0 && t == 0) atomicAdd(&data[0], 1);\nif (blockIdx.x == 1 && t == 0) data[0] = 5;",
        "The blocks of a launch are unordered: use atomic operations on both sides, or a second launch.",
    ),
}


@pytest.mark.parametrize("name", ORDERED_BY)
def test_a_finding_says_what_would_order_the_two(name: str) -> None:
    statements, said = ORDERED_BY[name]
    (found,) = find_races(statements, "__shared__ int s[64];", block=64, grid=2)
    assert found.message.startswith("Race reported between ")
    assert found.message.endswith(f". {said}")


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            "if (s[t / 2] < t)\n    s[t / 2] = t;",
            "a barrier leaves the order of their writes open: use one atomic operation for both",
        ),
        ("if (t < 8 && s[0] == 0)\n    out[i] = 1;\nif (t >= 8)\n    s[0] = 3;", "add a __syncthreads() between them"),
    ],
)
def test_no_barrier_is_advised_between_a_test_and_a_write_of_the_same_threads(statements: str, said: str) -> None:
    found = find_races(statements, "__shared__ int s[64];", block=64)
    assert said in found[0].message


def test_blocks_that_meet_at_barriers_of_the_grid_need_another_one() -> None:
    source = """#include <cooperative_groups.h>
    __global__ void f(int *again) {
        auto grid = cooperative_groups::this_grid();
        for (int round = 0; round < 2; ++round) {
            grid.sync();
            int value = *again;
            BARRIER
            if (grid.thread_rank() == 0) *again = value + 1;
        }
    }"""
    (finding,) = races(source.replace("BARRIER", "__syncthreads();"), make_ints(), block=32, grid=2)
    assert finding.message.endswith(
        "No barrier of the grid separates the two accesses: add a grid.sync() between them."
    )
    assert races(source.replace("BARRIER", "grid.sync();"), make_ints(), block=32, grid=2) == []


def test_blocks_of_a_cluster_need_its_barrier() -> None:
    source = """#include <cooperative_groups.h>
    __global__ void __cluster_dims__(2, 1, 1) f(int *out) {
        __shared__ int s[32];
        auto cluster = cooperative_groups::this_cluster();
        s[threadIdx.x] = threadIdx.x;
        BARRIER
        out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];
        cluster.sync();
    }"""
    (finding,) = races(source.replace("BARRIER", "__syncthreads();"), make_ints(), block=32, grid=2)
    assert finding.message.endswith("No barrier separates the two accesses: add a cluster.sync() between them.")
    assert races(source.replace("BARRIER", "cluster.sync();"), make_ints(), block=32, grid=2) == []


@pytest.mark.parametrize(
    ("block", "grid", "barrier"),
    [(32, 1, "a __syncwarp()"), (64, 1, "a __syncthreads()"), (64, 2, "an atomic operation, or a second launch")],
)
def test_the_advice_orders_all_pairs_of_two_lines(block: int, grid: int, barrier: str) -> None:
    source = "__global__ void f(float *a) { int i = blockIdx.x * blockDim.x + threadIdx.x;\na[i] = a[i + 1]; }"
    (finding,) = races(source, np.zeros(block * grid + 1, np.float32), block=block, grid=grid)
    assert barrier in finding.message
    assert finding.count == block * grid - 1
    blocks = {name.rpartition(" in ")[2] for name in finding.threads}
    assert len(blocks) == grid


def test_each_lane_counts_once_whoever_else_it_races_with() -> None:
    """Of the element that it writes itself one has read what another has too; the others' has been read by one."""
    (found,) = find_races("if (t < 6) out[i] = s[t % 5];\nif (t >= 5 && t < 8) s[t - 5] = 1;", "__shared__ int s[8];")
    assert (finding_lines([found]), found.count) == ([(3, 4)], 3)
    # Here two have read each.
    (found,) = find_races("if (t < 8) out[i] = s[t % 4];\nif (t >= 8 && t < 11) s[t - 8] = 1;", "__shared__ int s[8];")
    assert (finding_lines([found]), found.count) == ([(3, 4)], 3)


def test_each_lane_counts_once_however_many_parts_of_an_element_it_races_for() -> None:
    (found,) = find_races("if (t == 0) for (int k = 0; k < 4; ++k) ((char *)s)[k] = 1;\nif (t == 1) out[i] = s[0];",
                     "__shared__ int s[8];")  # fmt: skip
    assert (finding_lines([found]), found.count) == ([(3, 4)], 1)


def test_every_lane_that_writes_one_element_counts() -> None:
    (found,) = find_races("data[0] = t;", block=64)
    assert (finding_lines([found]), found.count) == ([(3, 3)], 63)


def test_of_lanes_that_read_one_element_of_the_grid_the_first_and_the_last_count() -> None:
    """If any two of them are in different warps or blocks, these are."""
    (found,) = find_races("if (t == 5) data[0] = 1;\nout[i] = data[0];")
    assert (finding_lines([found]), found.count) == ([(3, 4)], 2)


def test_an_element_that_all_lanes_read_is_one_in_each_block() -> None:
    for grid in (1, 2, 3):
        (found,) = find_races("out[i] = s[0];\nif (t == 0) s[0] = 1;", "__shared__ int s[8];", grid=grid)
        assert (finding_lines([found]), found.count) == ([(3, 4)], grid)


def test_a_tile_is_loaded_before_it_is_used() -> None:
    source = """__global__ void f(const float *in, float *out) {
        __shared__ float tile[8][8];
        int x = threadIdx.x, y = threadIdx.y, at = (blockIdx.x * 8 + y) * 8 + x;
        tile[y][x] = in[at];
        BARRIER;
        out[at] = tile[x][y];
    }"""
    arrays = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    shape: Any = {"block": (8, 8), "grid": 4}
    assert races(source, *arrays, **shape, defines={"BARRIER": "__syncthreads()"}) == []
    (found,) = races(source, *arrays, **shape, defines={"BARRIER": ""})
    assert finding_lines([found]) == [(4, 6)]
    assert "shared memory): wrote 32.0, read 32.0" in found.message


CLEAN = {
    "own element": "data[i] = 1; data[i] += data[i] + 1;",
    "read by all": "out[i] = data[0] + data[n] + data[t % 4];",
    "atomics": "atomicAdd(&data[t % 3], 1); atomicMax(&data[0], t); s[t] = t; atomicAdd(&s[t], 1);",
    "read, barrier, write": "int v = s[(t + 1) % 64]; __syncthreads(); s[t] = v;",
    "write, barrier, read": "s[t] = t; __syncthreads(); out[i] = s[63 - t];",
    "global within the block": "data[i] = t; __syncthreads(); out[i] = data[blockIdx.x * blockDim.x + 63 - t];",
    "many rounds": """for (int round = 0; round < 120; ++round) {
        s[(t + round) % 64] += t;
        __syncthreads();
    }""",
    "the block votes": "s[t] = t; if (__syncthreads_or(t == 3)) out[i] = s[63 - t];",
    "atomic, barrier, read": "s[t] = 0; __syncthreads(); atomicAdd(&s[0], t); __syncthreads(); out[i] = s[0];",
    "one warp, one value": "if (t < 32) s[0] = n;",
    "bytes of one word": "((unsigned char *)data)[i] = t; ((unsigned char *)s)[t] = t;",
    "bytes, then words": "((char *)s)[t] = t; __syncthreads(); if (t < 16) out[i] = s[t];",
    "words, then bytes": "s[t] = t; __syncthreads(); ((char *)s)[t] = 1;",
    "vectors": "((int4 *)data)[i] = make_int4(1, 2, 3, 4); int4 v = ((int4 *)data)[i]; out[i] = v.x + data[4 * i + 2];",
    "exited threads": "if (t >= 40) return; s[t] = t; __syncthreads(); out[i] = s[39 - t];",
    "local": "int mine[4]; for (int k = 0; k < 4; ++k) mine[k] = t; out[i] = mine[t % 4];",
}


@pytest.mark.parametrize("statements", CLEAN.values(), ids=CLEAN.keys())
@pytest.mark.parametrize("grid", [1, 5])
def test_clean(statements: str, grid: int) -> None:
    assert find_races(statements, "__shared__ int s[64];", block=64, grid=grid) == []


RACY = {
    "all write one element": ("s[0] = t;", (3, 3)),
    "one value, but two warps": ("s[0] = n;", (3, 3)),
    "read by another": ("s[t] = t;\nout[i] = s[t ^ 1];", (3, 4)),
    "read, then written by another": ("out[i] = s[t];\ns[t ^ 1] = t;", (3, 4)),
    "all read, one of them writes": ("out[i] = s[5];\nif (t == 5) s[5] = 1;", (3, 4)),
    "one other reads, the first": ("if (t == 0 || t == 63) out[i] = s[5];\nif (t == 63) s[5] = 1;", (3, 4)),
    "one other reads, the last": ("if (t == 0 || t == 63) out[i] = s[5];\nif (t == 0) s[5] = 1;", (3, 4)),
    "a reader before the barrier": ("out[i] = s[t];\n__syncthreads();\nout[i] = s[t];\ns[t ^ 1] = 1;", (5, 6)),
    "a reader after others": ("if (t < 9) out[i] = s[5];\nif (t == 9) out[i] = s[5];\nif (t == 9) s[5] = 1;", (3, 5)),
    "atomic and read": ("atomicAdd(&s[0], 1);\nout[i] = s[0];", (3, 4)),
    "read and atomic": ("out[i] = s[0];\natomicAdd(&s[0], 1);", (3, 4)),
    "atomic and write": ("atomicAdd(&s[0], 1);\nif (t == 9) s[0] = 0;", (3, 4)),
    "write and atomic": ("if (t == 9) s[0] = 0;\natomicAdd(&s[0], 1);", (3, 4)),
    "a byte of a word": ("s[t] = t;\n((char *)s)[t] = 1;", (3, 4)),
    "a word of bytes": ("((char *)s)[t + 1] = t;\nif (t < 16) s[t] = 1;", (3, 4)),
    "a part of a vector": ("((int4 *)data)[i] = make_int4(1, 2, 3, 4);\ndata[4 * (i - t) + t] = 1;", (3, 4)),
    "who wrote it with others reads it": ("if (t < 32) s[0] = n;\nif (t == 31) out[i] = s[0];", (3, 4)),
    "on one line": ("s[t] = s[t ^ 1];", (3, 3)),
    "global": ("data[i] = t;\nout[i] = data[i ^ 1];", (3, 4)),
    "device variable": ("shared_by_all = t;", (3, 3)),
}


@pytest.mark.parametrize(("statements", "expected"), RACY.values(), ids=RACY.keys())
@pytest.mark.parametrize("grid", [1, 5])
def test_racy(statements: str, expected: tuple[int, int], grid: int) -> None:
    source = make_kernel(statements, "__shared__ int s[64];")
    if "shared_by_all" in statements:
        source = "__device__ int shared_by_all; " + source
    found = races(source, make_ints(), make_ints(), np.int32(4), block=64, grid=grid)
    assert finding_lines(found) == [expected]
    if grid == 1:
        assert all(finding.threads[0] != finding.threads[1] for finding in found)


WARP_SYNCHRONOUS = """__global__ void f(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = in[t]; s[t + 32] = in[t + 32];
    SYNC;
    for (int step = 32; step > 0; step /= 2) {
        int v = s[t] + s[t + step % 32];
        SYNC;
        s[t] = v;
        SYNC;
    }
    out[t] = s[0];
}"""


def test_lanes_of_a_warp_are_ordered_by_syncwarp_only() -> None:
    assert races(WARP_SYNCHRONOUS, make_ints(64), make_ints(32), defines={"SYNC": "__syncwarp()"}) == []
    found = races(WARP_SYNCHRONOUS, make_ints(64), make_ints(32), defines={"SYNC": ""})
    assert {(4, 7), (7, 9), (9, 12)} <= set(finding_lines(found))
    barrier = races(WARP_SYNCHRONOUS, make_ints(64), make_ints(32), defines={"SYNC": "__threadfence_block()"})
    assert finding_lines(barrier) == finding_lines(found)


BRANCHES = "if (t < 16) {{\n{first}\n__syncwarp({mask});\n{behind} }} else {{\n{second}\n__syncwarp({mask});\n{last} }}"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"first": "s[t] = t;", "last": "out[i] = s[t - 16];"}, []),
        ({"first": "s[t] = t;", "last": "out[i] = s[t - 16];", "mask": "-1"}, []),
        # What comes after it is not ordered, nor what comes before it in the other branch.
        ({"behind": "s[t] = t;", "last": "out[i] = s[t - 16];"}, [(6, 9)]),
        ({"first": "s[t] = t;", "second": "out[i] = s[t - 16];"}, [(4, 7)]),
        # Nor are lanes that name each other only.
        ({"first": "s[t] = t;", "last": "out[i] = s[t - 16];", "mask": "t < 16 ? 0xffff : 0xffff0000"}, [(4, 9)]),
        # The second one orders what came between the two.
        ({"behind": "s[t] = t; __syncwarp();", "last": "__syncwarp(); out[i] = s[t - 16];"}, []),
        ({"behind": "s[t] = t; __syncwarp();", "last": "out[i] = s[t - 16]; __syncwarp();"}, [(6, 9)]),
        ({"first": "s[t] = t;", "last": "s[t - 16] = 5;"}, []),
    ],
)
@pytest.mark.parametrize("schedule", ["round-robin", "lanes:1"])
def test_lanes_come_to_a_syncwarp_from_several_branches(
    parts: dict[str, str], expected: list[tuple[int, int]], schedule: str
) -> None:
    statements = BRANCHES.format(**{"first": "", "behind": "", "second": "", "last": "", "mask": "", **parts})
    assert finding_lines(find_races(statements, "__shared__ int s[64];", block=32, schedule=schedule)) == expected


def test_lanes_that_have_ended_are_not_waited_for() -> None:
    statements = "if (t >= 24) return;\n" + BRANCHES.format(
        first="s[t] = t;", behind="", second="", last="out[i] = s[t - 16];", mask=""
    )
    assert find_races(statements, "__shared__ int s[64];", block=32) == []
    round_of_a_loop = "{ s[t] = k; __syncwarp(); out[i] = s[23 - t]; __syncwarp(); }"
    looped = f"if (t >= 24) return; for (int k = 0; k < 99; ++k) {round_of_a_loop}"
    assert find_races(looped, "__shared__ int s[64];", block=32) == []


def test_the_volatile_tail_of_a_reduction() -> None:
    tail = "s[t] = t; __syncthreads();\nif (t < 32) {\nvolatile int *v = s;\nv[t] += v[t + 32];\nv[t] += v[t + 16];\n}"
    assert (6, 7) in finding_lines(find_races(tail, "__shared__ int s[96];", block=64))
    # One __syncwarp between is not enough: v[t + 16] is read while its own lane changes it.
    half = tail.replace("v[t] += v[t + 16]", "__syncwarp(); v[t] += v[t + 16]")
    assert finding_lines(find_races(half, "__shared__ int s[96];", block=64)) == [(7, 7)]


@pytest.mark.parametrize(
    ("statements", "clean"),
    [
        ("s[t] = t; __syncwarp(); out[i] = s[t ^ 1];", True),
        ("s[t] = t; __syncwarp(); out[i] = s[t ^ 32];", False),
        ("s[t] = t; if (t % 2) __syncwarp(); out[i] = s[t ^ 1];", False),
        ("s[t] = t; if (t % 2) { __syncwarp(); out[i] = s[t ^ 2]; }", True),
        ("out[i] = s[t]; __syncwarp(); out[i] = s[t ^ 32]; s[t ^ 1] = 1;", False),
        ("out[i] = s[t ^ 1]; __syncwarp(); out[i] = s[t]; s[t] = 1;", True),
        ("if (t < 32) { out[i] = s[0]; __syncwarp(); if (t == 3) out[i] = s[0]; if (t == 4) s[0] = 1; }", False),
        ("if (t < 32) { out[i] = s[0]; __syncwarp(); if (t == 3) out[i] = s[0]; if (t == 3) s[0] = 1; }", True),
    ],
)
def test_syncwarp(statements: str, clean: bool) -> None:
    assert (find_races(statements, "__shared__ int s[64];", block=64, grid=3) == []) is clean


@pytest.mark.parametrize(
    ("statements", "clean"),
    [
        ("s[t] = t; __syncwarp(0xffffffff); out[i] = s[t ^ 16];", True),
        ("s[t] = t; __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u); out[i] = s[t ^ 1];", True),
        ("s[t] = t; __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u); out[i] = s[t ^ 16];", False),
        ("s[t] = t; __syncwarp(3u << (t % 32 & ~1)); out[i] = s[t ^ 1];", True),
        ("s[t] = t; __syncwarp(3u << (t % 32 & ~1)); out[i] = s[t ^ 2];", False),
        # Pairs one after the other: what lane 1 has learnt from lane 0 it tells lane 2.
        (
            "if (t < 2) { s[t] = t; __syncwarp(3); } if (t == 1 || t == 2) __syncwarp(6); if (t == 2) out[i] = s[0];",
            True,
        ),
        (
            "if (t == 1 || t == 2) __syncwarp(6); if (t < 2) { s[t] = t; __syncwarp(3); } if (t == 2) out[i] = s[0];",
            False,
        ),
        ("if (t < 2) s[t] = t; if (t == 1 || t == 2) __syncwarp(6); if (t == 2) out[i] = s[0];", False),
        # After a part of the warp has met, all of it does.
        ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u); s[t] = t; __syncwarp(); out[i] = s[t ^ 16];", True),
        ("__syncwarp(); s[t] = t; __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u); out[i] = s[t ^ 16];", False),
    ],
)
def test_syncwarp_of_the_lanes_that_it_names(statements: str, clean: bool) -> None:
    assert (find_races(statements, "__shared__ int s[64];", block=64, grid=3) == []) is clean


def test_the_sync_of_a_tile_is_one() -> None:
    source = """#include <cooperative_groups.h>
__global__ void f(int *out) {
    __shared__ int s[64];
    auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
    s[threadIdx.x] = threadIdx.x;
    SYNC;
    out[threadIdx.x] = s[threadIdx.x ^ BY];
}"""
    assert races(source, make_ints(64), block=64, defines={"SYNC": "tile.sync()", "BY": 15}) == []
    assert finding_lines(races(source, make_ints(64), block=64, defines={"SYNC": "", "BY": 15})) == [(5, 7)]
    assert finding_lines(races(source, make_ints(64), block=64, defines={"SYNC": "tile.sync()", "BY": 16})) == [(5, 7)]


SCAN = """__global__ void f(int *data) {
    __shared__ int s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = data[t];
    __syncthreads();
    for (int by = 1; by < blockDim.x; by *= 2) {
#ifdef SINGLE
        int v = t >= by ? s[0][t - by] : 0;
        SINGLE;
        s[0][t] += v;
#else
        s[1 - from][t] = s[from][t] + (t >= by ? s[from][t - by] : 0);
        from = 1 - from;
#endif
        __syncthreads();
    }
    data[t] = s[from][t];
}"""


def test_scans() -> None:
    assert races(SCAN, make_ints(128), block=128) == []
    assert races(SCAN, make_ints(128), block=128, defines={"SINGLE": "__syncthreads()"}) == []
    found = races(SCAN, make_ints(128), block=128, defines={"SINGLE": ""})
    assert finding_lines(found) == [(8, 10)]


@pytest.mark.parametrize("grid", [2, 50, 5000])
def test_blocks_are_concurrent(grid: int) -> None:
    """5000 blocks are several batches: a race between two of them, and one between a block and the next."""
    (found,) = races(
        make_kernel("if (i == 5 || i == gridDim.x * 32 - 1) data[0] = i;"),
        make_ints(),
        make_ints(),
        np.int32(0),
        grid=grid,
    )
    assert found.threads == ("thread (5,0,0) in block (0,0,0)", f"thread (31,0,0) in block ({grid - 1},0,0)")
    assert f"element 0 of data (global memory): wrote 5, wrote {grid * 32 - 1}" in found.message
    for statements in (
        "data[i + 1] = t;\n__syncthreads();\nout[i] = data[i];",
        "out[i] = data[i];\n\ndata[i + 1] = t;",
    ):
        arrays = make_ints(grid * 32 + 1), make_ints(grid * 32 + 1), np.int32(0)
        assert finding_lines(races(make_kernel(statements), *arrays, grid=grid)) == [(3, 5)]


def test_an_array_that_is_passed_twice_is_one() -> None:
    data = make_ints(64)
    source = make_kernel("out[t] = data[t ^ 1];")
    assert races(source, data, make_ints(64), np.int32(0)) == []
    assert finding_lines(races(source, data, data, np.int32(0))) == [(3, 3)]


def test_races_on_two_arrays_in_one_line_are_two_findings() -> None:
    found = find_races("data[0] = t; out[0] = t; data[0] = t + 1;", block=64)
    arrays = [name for finding in found for name in ("data", "out") if f"element 0 of {name} " in finding.message]
    assert sorted(arrays) == ["data", "out"]


def test_launches_are_in_order() -> None:
    checker = RaceChecker()
    data, out = make_ints(64), make_ints(64)
    for source in (make_kernel("data[t] = t;"), make_kernel("data[t ^ 1] += 1;"), make_kernel("out[t] = data[t ^ 1];")):
        launch_watched(checker, source, data, out, np.int32(0))
    assert checker.findings == []


LAST_BLOCK = """__device__ unsigned int done;
__global__ void f(const int *in, int *partial, int *out) {
    __shared__ int s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        BEFORE;
        last = atomicInc(&done, gridDim.x) == gridDim.x - 1;
        AFTER;
    }
    __syncthreads();
    if (!last) return;
    int sum = 0;
    for (int k = t; k < gridDim.x; k += 64) sum += partial[k];
    atomicAdd(&out[0], sum);
    if (t == 0) done = 0;
}"""


@pytest.mark.parametrize("grid", [2, 100, 2000])
def test_the_last_block(grid: int) -> None:
    def run(before: str, after: str) -> list[tuple[int, ...]]:
        out = make_ints(1)
        arrays = np.ones(64 * grid, np.int32), make_ints(grid), out
        found = races(LAST_BLOCK, *arrays, grid=grid, block=64, defines={"BEFORE": before, "AFTER": after})
        assert out[0] == 64 * grid
        return finding_lines(found)

    assert run("__threadfence()", "__threadfence()") == []
    assert run("__threadfence_system()", "__threadfence()") == []
    assert (13, 21) in run("", "")
    assert (13, 21) in run("__threadfence()", "")
    assert (13, 21) in run("__threadfence_block()", "__threadfence()")
    assert (13, 21) in run("", "__threadfence()")


def test_a_fence_shows_what_was_seen_at_the_barrier() -> None:
    """All threads write, one fences for all of them, as in a barrier of the grid."""
    source = """__device__ unsigned int arrived;
__global__ void f(int *data, int *out) {
    __shared__ bool last;
    int i = blockIdx.x * 64 + threadIdx.x;
    data[i] = i;
    BARRIER;
    if (threadIdx.x == 0) { __threadfence(); last = atomicAdd(&arrived, 1u) == gridDim.x - 1; }
    __syncthreads();
    if (last) { __threadfence(); out[threadIdx.x] = data[threadIdx.x * 4 + threadIdx.x % 4]; }
}"""
    for sync, expected in (("__syncthreads()", []), ("", [(5, 9)]), ("__syncwarp()", [(5, 9)])):
        assert (
            finding_lines(races(source, make_ints(256), make_ints(64), grid=4, block=64, defines={"BARRIER": sync}))
            == expected
        )


def test_what_was_added_by_atomics_is_shown_by_a_fence_behind_a_barrier_alone() -> None:
    """All threads add to what the last block moves away, and one fences for all of them."""
    source = """__device__ unsigned int arrived;
__global__ void f(unsigned int *sums, unsigned int *out) {
    __shared__ bool last;
    atomicAdd(&sums[threadIdx.x], 1u);
    BARRIER;
    if (threadIdx.x == 0) { FENCE; last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1; }
    __syncthreads();
    if (last) { __threadfence(); out[threadIdx.x] = sums[threadIdx.x]; sums[threadIdx.x] = 0; }
}"""

    def run(barrier: str, fence: str) -> list[tuple[int, ...]]:
        sums, out = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
        return finding_lines(races(source, sums, out, grid=4, block=64, defines={"BARRIER": barrier, "FENCE": fence}))

    assert run("__syncthreads()", "__threadfence()") == []
    assert run("", "__threadfence()") == [(4, 8)]
    assert run("__syncthreads()", "") == [(4, 8)]


@pytest.mark.parametrize("meet", ["__syncthreads()", "__syncwarp()"])
def test_an_atomic_is_seen_where_another_thread_fenced_that_its_own_has_met(meet: str) -> None:
    source = """__device__ unsigned int arrived;
__global__ void f(int *data, int *out) {
    __shared__ bool last;
    if (threadIdx.x == 0) { data[blockIdx.x] = 1; __threadfence(); }
    MEET;
    if (threadIdx.x == 5) last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 9) { __threadfence(); out[0] = data[0] + data[3]; arrived = 0; }
}"""
    assert races(source, make_ints(4), make_ints(1), grid=4, block=64, defines={"MEET": meet}) == []
    assert finding_lines(races(source, make_ints(4), make_ints(1), grid=4, block=64, defines={"MEET": ""})) == [(4, 8)]


def test_an_atomic_does_not_order_a_plain_read_of_the_same() -> None:
    """The sum is not complete when a block has added its own part."""
    source = make_kernel("atomicAdd(&data[0], t);\n__syncthreads();\nif (t == 0) out[blockIdx.x] = data[0];")
    assert finding_lines(races(source, make_ints(), make_ints(), np.int32(0), grid=40)) == [(3, 5)]
    assert races(source, make_ints(), make_ints(), np.int32(0), grid=1) == []


@pytest.mark.parametrize("block", [(5, 3, 2), (4, 4, 4), (33, 1, 1), (1, 1, 1)])
@pytest.mark.parametrize("grid", [(3, 2, 2), (1, 1, 1), (40, 20, 2)])
def test_three_dimensions_and_partial_warps(block: tuple[int, ...], grid: tuple[int, ...]) -> None:
    source = """__global__ void f(int *out) {
        __shared__ int s[64];
        int threads = blockDim.x * blockDim.y * blockDim.z;
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        s[t] = t;
        BARRIER;
        out[b * threads + t] = s[threads - 1 - t];
        __syncthreads();
        if (t == 0) out[b * threads] = out[b * threads + threads - 1];
    }"""
    out = make_ints(int(np.prod(block) * np.prod(grid)))
    assert races(source, out, block=block, grid=grid, defines={"BARRIER": "__syncthreads()"}) == []
    if np.prod(block) > 1:
        (found,) = races(source, out, block=block, grid=grid, defines={"BARRIER": ""})
        assert finding_lines([found]) == [(6, 8)]
        x, y, z = (extent - 1 for extent in block)
        assert found.threads == (f"thread ({x},{y},{z}) in block (0,0,0)", "thread (0,0,0) in block (0,0,0)")


LOOK_BACK = """struct Status { int flag, aggregate, prefix; };
__global__ void f(const int *in, int *out, Status *status) {
    __shared__ int s[64], before;
    int t = threadIdx.x, b = blockIdx.x;
    s[t] = in[b * 64 + t];
    __syncthreads();
    for (int by = 1; by < 64; by *= 2) {
        int left = t >= by ? s[t - by] : 0;
        __syncthreads();
        s[t] += left;
        __syncthreads();
    }
    if (t == 63) {
        status[b].aggregate = s[t];
        FENCE;
        ((QUALIFIER Status *)status)[b].flag = 1;
        int sum = 0;
        for (int earlier = b - 1; earlier >= 0; earlier--) {
            QUALIFIER int *flag = &status[earlier].flag;
            int known;
            while ((known = *flag) == 0) { }
            FENCE;
            if (known == 2) { sum += status[earlier].prefix; break; }
            sum += status[earlier].aggregate;
        }
        before = sum;
        status[b].prefix = sum + s[t];
        FENCE;
        ((QUALIFIER Status *)status)[b].flag = 2;
    }
    __syncthreads();
    out[b * 64 + t] = before + s[t];
}"""
PUBLISHED, FLAGS = {14, 27}, {16, 29}


@pytest.mark.parametrize(
    ("grid", "schedule"),
    [
        pytest.param(grid, schedule, marks=[pytest.mark.sweep] * (grid == 40 and schedule == "shuffle:2"))
        for grid in (2, 9, 40)
        for schedule in ("round-robin", "shuffle:1", "shuffle:2")
    ],
)
def test_a_look_back_through_volatile_flags(grid: int, schedule: str) -> None:
    """Each block waits for what those before it publish: a scan in one pass over memory."""

    def written(qualifier: str, fence: str) -> set[int]:
        """Return the lines of the writes that race."""
        given, out = np.arange(64 * grid, dtype=np.int32), make_ints(64 * grid)
        checker, defines = RaceChecker(), {"QUALIFIER": qualifier, "FENCE": fence}
        arrays = (given, out, make_ints(3 * grid))
        launch_watched(checker, LOOK_BACK, *arrays, grid=grid, block=64, defines=defines, schedule=schedule)
        assert (out == np.cumsum(given)).all()
        return {line for pair in finding_lines(checker.findings) for line in pair} & (PUBLISHED | FLAGS)

    assert written("volatile", "__threadfence()") == set()
    assert written("", "__threadfence()") & FLAGS
    # Without a fence what is published may come after the flag, which itself is right.
    unfenced = written("volatile", "")
    assert unfenced & PUBLISHED
    assert not unfenced & FLAGS
    assert written("volatile", "__threadfence_block()") & PUBLISHED


@pytest.mark.parametrize(
    ("statements", "clean"),
    [
        ("volatile int *v = data;\nif (i == 0) v[0] = 1;\nout[i] = v[0];", True),
        ("volatile int *v = data;\nif (i == 0) v[0] = 1;\nout[i] = data[0];", False),
        ("volatile int *v = data;\nif (i == 0) data[0] = 1;\nout[i] = v[0];", False),
        ("volatile int *v = data;\nout[i] = v[0];\nif (i == 0) v[0] = 1;", True),
        ("volatile int *v = data;\nout[i] = v[0];\nif (i == 0) data[0] = 1;", False),
        ("volatile int *v = data;\nv[0] = i;", False),
        ("volatile int *v = data;\nv[0] += 1;", False),
        ("volatile int *v = data;\nif (i == 0) atomicExch(data, 1);\nout[i] = v[0];", True),
        ("volatile int *v = data;\nout[i] = v[0];\nif (i == 0) atomicExch(data, 1);", True),
        ("if (i == 0) atomicExch(data, 1);\n*(volatile int *)data = 2;", False),
        ("out[i] = *(volatile int *)&data[0];\nif (i == 0) *(volatile int *)data = 1;", True),
        ("volatile int *v = s;\nif (t == 0) v[0] = 1;\nout[i] = v[0];", False),
        ("volatile int *v = data;\nwhile (v[0] == 0) v[0] = 1 + i;", True),  # a flag, which all of them set
        ("volatile int *v = data;\nif (out[v[0] & 1] == 0) v[0] = i;", True),  # a hint where to look
        ("if (i == 0) *(volatile int *)&data[1] = 1;\nout[i] = *(volatile long long *)data;", False),
        ("if (i == 0) *(volatile long long *)data = 1;\nout[i] = *(volatile long long *)data;", True),
        ("if (i == 0) atomicExch((unsigned long long *)data, 1ull);\nout[i] = *(volatile int *)data;", False),
        ("out[i] = *(volatile int *)data;\nif (i == 0) atomicExch((unsigned long long *)data, 1ull);", False),
    ],
)
def test_volatile_accesses_to_global_memory(statements: str, clean: bool) -> None:
    found = find_races(statements, "__shared__ int s[64];", block=64, grid=3)
    assert (found == []) is clean


def test_a_word_that_is_written_in_halves_names_the_sizes() -> None:
    source = """__global__ void run(unsigned long long *word, int *out) {
        volatile unsigned *halves = (volatile unsigned *)word;
        if (blockIdx.x == 0) { halves[0] = 7; halves[1] = 1; }
        else { while (atomicAdd(word, 0ull) >> 32 == 0) {} out[0] = 1; }
    }"""
    findings = simulate("test.cu", "run", 2, 1, ["zeros:1", "zeros:1"], source=source).findings
    assert {finding.kind for finding in findings} == {"race"}
    for finding in findings:
        assert "The accesses are of different sizes" in finding.message


SHOW = "__threadfence(); atomicAdd(&data[99], 1);"
MEET = "if (atomicAdd(&data[99], 0) > 0) __threadfence();"


@pytest.mark.parametrize(
    ("statements", "clean"),
    [
        # A release that is repeated shows nothing new, and what it showed was shown by then.
        (
            f"""if (i == 0) {{ data[0] = 1; {SHOW} }} if (i == 64) {MEET}
            if (i == 0) {{ {SHOW} data[1] = 1; {SHOW} {SHOW} data[2] = 1; {SHOW} }} if (i == 64) out[0] = data[0];""",
            True,
        ),
        # Of what is published one after the other all is known, each from its own release on.
        (
            f"""if (i == 0) for (int k = 0; k < 4; ++k) {{ data[k] = 1; {SHOW} }} if (i == 64) {{ {MEET}
            out[0] = data[0] + data[1] + data[2] + data[3]; }}""",
            True,
        ),
        *(
            (
                f"""for (int k = 0; k < 4; ++k) {{ if (i == 0) {{ data[k] = 1; {SHOW} }}
                if (i == 64 && k == {met}) {MEET} }} if (i == 64) out[0] = data[{read}];""",
                read <= met,
            )
            for met in range(4)
            for read in range(4)
        ),
        # However often each of them was fenced.
        (
            f"""for (int k = 0; k < 4; ++k) {{ if (i == 0) {{ data[k] = 1; __threadfence(); {SHOW} }}
            if (i == 64 && k == 0) {MEET} }} if (i == 64) out[0] = data[0];""",
            True,
        ),
        # A fence alone shows nothing, nor does an atomic operation that is not behind it, or on another element.
        (f"if (i == 0) {{ data[0] = 1; __threadfence(); }} if (i == 64) {{ {MEET} out[0] = data[0]; }}", False),
        (
            f"""if (i == 0) {{ data[0] = 1; atomicAdd(&data[99], 1); __threadfence(); }}
            if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
            False,
        ),
        (
            f"""if (i == 0) {{ data[0] = 1; __threadfence(); atomicAdd(&data[98], 1); }}
            if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
            False,
        ),
        # A release shows what was before its fence, not what comes after the fence, nor after the atomic operation.
        (
            f"""if (i == 0) {{ __threadfence(); data[0] = 1; atomicAdd(&data[99], 1); }}
            if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
            False,
        ),
        (
            f"""if (i == 0) {{ data[1] = 1; __threadfence(); data[0] = 1; atomicAdd(&data[99], 1); }}
            if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
            False,
        ),
        (f"if (i == 0) {{ {SHOW} data[0] = 1; }} if (i == 64) {{ {MEET} out[0] = data[0]; }}", False),
        (f"if (i == 64) {MEET} if (i == 0) {{ data[0] = 1; {SHOW} }} if (i == 64) out[0] = data[0];", False),
        (f"if (i == 0) {{ data[0] = 1; {SHOW} }} if (i == 65) {MEET} if (i == 64) out[0] = data[0];", False),
        # The reader needs a fence too, behind the atomic operation.
        (
            f"""if (i == 0) {{ data[0] = 1; {SHOW} }}
            if (i == 64 && atomicAdd(&data[99], 0) > 0) out[0] = data[0];""",
            False,
        ),
        (
            f"""if (i == 0) {{ data[0] = 1; {SHOW} }}
            if (i == 64) {{ __threadfence(); if (atomicAdd(&data[99], 0) > 0) out[0] = data[0]; }}""",
            False,
        ),
        # An atomic operation is ordered like any other access.
        *(
            (
                f"""if (i == {own}) {{ atomicAdd(&data[0], 1); {SHOW} }}
                if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
                True,
            )
            for own in (0, 1, 33, 130)
        ),
        *(
            (
                f"""if (i == 0) atomicAdd(&data[0], 1); if (i == {other}) {{ data[1] = 1; {SHOW} }}
                if (i == 64) {{ {MEET} out[0] = data[0]; }}""",
                False,
            )
            for other in (1, 32, 128)
        ),
        ("if (i == 0) atomicAdd(&data[0], 1); if (i == 64) out[0] = data[0];", False),
        # Fences order threads of one block too.
        (f"if (i == 0) {{ s[0] = 1; {SHOW} }} if (i == 1) {{ {MEET} out[0] = s[0]; }}", True),
        (f"if (i == 64) {{ s[0] = 1; {SHOW} }} if (i == 127) {{ {MEET} out[0] = s[0]; }}", True),
        (f"if (i == 64) s[0] = 1; if (i == 65) {{ {SHOW} }} if (i == 127) {{ {MEET} out[0] = s[0]; }}", False),
        # What a warp knows of each other, all of it or in parts, a release of one of them shows.
        *(
            (
                f"""if (t < 32) data[i] = 1; {sync} if (i == {fencing}) {{ {SHOW} }} if (i == 64) {{ {MEET}
                out[0] = data[{read}]; }}""",
                clean,
            )
            for sync, fencing, read, clean in (
                ("__syncwarp();", 3, 31, True),
                ("__syncwarp();", 3, 0, True),
                ("__syncwarp();", 35, 0, False),
                ("", 3, 0, False),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 3, 15, True),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 3, 16, False),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 19, 16, True),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 19, 15, False),
                ("__syncthreads();", 35, 0, True),
                ("__syncthreads();", 67, 0, False),
            )
        ),
        # Nor does it show what the others did after they met.
        *(
            (
                f"""{sync} data[i] = 1; if (i == 3) {{ {SHOW} }} if (i == 64) {MEET}
                if (i == 64) out[0] = data[0];""",
                False,
            )
            for sync in ("__syncwarp();", "__syncthreads();")
        ),
        # The fence may be that of another thread that the writing one has met since.
        *(
            (
                f"""if (t < 32) data[i] = 1; if (i == 3) __threadfence(); {sync} if (i == {showing})
                atomicAdd(&data[99], 1); if (i == 64) {{ {MEET} out[0] = data[{read}]; }}""",
                clean,
            )
            for sync, showing, read, clean in (
                ("__syncwarp();", 3, 3, True),
                ("__syncwarp();", 5, 3, True),
                ("__syncwarp();", 5, 5, False),
                ("__syncwarp();", 35, 3, False),
                ("__syncthreads();", 35, 3, True),
                ("__syncthreads();", 35, 4, False),
                ("", 5, 3, False),
            )
        ),
        (("data[i] = 1; __threadfence(); __syncthreads(); if (i == 5) atomicAdd(&data[999], 1);"
        "if (i == 64 && atomicAdd(&data[999], 0)) { __threadfence(); out[0] = data[0] + data[63]; }"), True),
        # What one has acquired its block knows after a barrier, its warp after a __syncwarp, and those it names.
        *(
            (
                f"""if (i == 0) {{ data[0] = 1; {SHOW} }} if (i == 67) {MEET} {sync}
                if (i == {reading}) out[0] = data[0];""",
                clean,
            )
            for sync, reading, clean in (
                ("__syncthreads();", 127, True),
                ("__syncthreads();", 64, True),
                ("__syncthreads();", 128, False),
                ("__syncwarp();", 64, True),
                ("__syncwarp();", 95, True),
                ("__syncwarp();", 96, False),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 79, True),
                ("__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);", 80, False),
                ("if (i != 67) __syncwarp();", 64, False),
                ("", 64, False),
            )
        ),
    ],
)  # fmt: skip
def test_fences(statements: str, clean: bool) -> None:
    found = find_races(statements, "__shared__ int s[64];", block=64, grid=3)
    assert (found == []) is clean


@pytest.mark.parametrize(
    ("block", "grid"),
    [((2, 3, 11), (1, 1, 5)), ((33, 1, 1), (1, 7, 2)), ((1, 1, 1), (2, 1, 3)), ((4, 10, 2), (3, 2, 1))],
)
@pytest.mark.parametrize("sync", ["", "__syncwarp();", "__syncwarp(__activemask() & 1 << threadIdx.x % 32);"])
def test_each_thread_of_a_grid_may_fence(block: tuple[int, ...], grid: tuple[int, ...], sync: str) -> None:
    """The last block reads what each of all threads has written."""
    source = f"""__device__ unsigned int arrived;
    __global__ void f(int *data, int *out, int n) {{
        int threads = blockDim.x * blockDim.y * blockDim.z;
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        data[b * threads + t] = 1;
        {sync}
        FENCE;
        if (atomicAdd(&arrived, 1u) != n - 1) return;
        FENCE;
        for (int k = 0; k < n - threads; ++k) out[0] += data[k];
    }}"""
    n = int(np.prod(block) * np.prod(grid))
    out = make_ints(1)
    given: dict[str, Any] = {"block": block, "grid": grid}
    assert races(source, make_ints(n), out, np.int32(n), **given, defines={"FENCE": "__threadfence()"}) == []
    assert out[0] == n - np.prod(block)
    assert finding_lines(races(source, make_ints(n), make_ints(1), np.int32(n), **given, defines={"FENCE": ""})) == [
        (6, 11)
    ]


@pytest.mark.parametrize(("between", "is_told"), [(62, True), (63, False)])
def test_what_was_written_not_long_ago_is_told(between: int, is_told: bool) -> None:
    """Of the last 64 accesses, this one among them."""
    source = f"""__global__ void f(int *data, int *out) {{
        if (threadIdx.x == 0) data[0] = 7;
        for (int i = 0; i < {between}; ++i) out[threadIdx.x] = i;
        if (threadIdx.x == 1) out[9] = data[0];
    }}"""
    (finding,) = races(source, make_ints(1), make_ints(10), block=2)
    assert ("wrote 7, read 7" in finding.message) is is_told


def test_arrays_and_values_are_let_go_of_when_a_launch_has_ended() -> None:
    """They are large, and one checker watches many launches."""
    checker = RaceChecker()
    batch = BlockBatch(Geometry((32, 1, 1), 1), (1, 1, 1), 0, 0)
    memory = FlatMemory("data", "global", np.zeros(128, np.uint8))
    lanes = np.arange(32, dtype=np.int32)
    access = Access(
        AccessSite(SourcePosition("f.cu", 1), "write"), memory, lanes, 4, batch.geometry.thread_mask, lanes + 1
    )
    kept = [weakref.ref(each) for each in (memory.data, access.values)]
    checker.launch_begins("f", (1, 1, 1), (32, 1, 1))
    checker.batch_begins(batch)
    checker.access(batch, access)
    checker.batch_ends(batch)
    del memory, access
    assert all(each() is not None for each in kept)
    checker.launch_ends()
    assert all(each() is None for each in kept)


GUESS = "int *p = data + t % 2; int old = *p, seen;\n"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (GUESS + "do { seen = old; old = atomicCAS(p, seen, seen + 1); } while (old != seen); out[i] = old;", []),
        (GUESS + "while ((seen = atomicCAS(p, old, old + 1)) != old) old = seen;", []),
        (
            """float *p = (float *)data; float old = *p; int seen; do { seen = __float_as_int(old);
            old = __int_as_float(atomicCAS((int *)p, seen, __float_as_int(old + 1)));
            } while (__float_as_int(old) != seen);""",
            [],
        ),
        (
            GUESS
            + """for (int k = 0; k < 2; ++k)
            do { seen = old; old = atomicCAS(p, seen, seen + 1); } while (old != seen);""",
            [],
        ),
        # One attempt, a result that no loop tests, and an expected value that is not the guess.
        (GUESS + "atomicCAS(p, old, old + 1);", [(3, 4)]),
        (GUESS + "for (int k = 0; k < 3; ++k) out[i] = atomicCAS(p, old, old + 1);", [(3, 4)]),
        (GUESS + "while ((seen = atomicCAS(p, 0, old)) > 9) old = seen;", [(3, 4)]),
        # The guess excuses no plain write.
        (
            GUESS + "while ((seen = atomicCAS(p, old, old + 1)) != old) old = seen;\nif (i == 5) data[0] = 1;",
            [(3, 5), (4, 5)],
        ),
    ],
)
def test_a_compare_and_swap_that_is_repeated_may_start_from_a_plain_read(
    statements: str, expected: list[tuple[int, int]]
) -> None:
    assert finding_lines(find_races(statements)) == expected
