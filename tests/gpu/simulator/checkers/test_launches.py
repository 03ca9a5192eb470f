"""Races of kernels that kernels launch with all that goes on at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.executor.test_child_launches import QUICKSORT
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

CHILDREN = """\
__global__ void put(int *p, int v) { p[threadIdx.x] = v; }
__global__ void sum(const int *p, int *out) { *out = p[0] + p[1]; }
__global__ void add(int *p) { atomicAdd(p, 1); }
__global__ void again(int *p) { put<<<1, 1>>>(p, 7); }
"""
# The lines of the children, and of what the parent does.
PUT, SUM, ADD, FIRST, SECOND = 1, 2, 3, 7, 8


def check_races(body: str, grid: int = 1, block: int = 1) -> RaceChecker:
    checker = RaceChecker()
    source = f"{CHILDREN}__global__ void f(int *p, int *q) {{\nint t = threadIdx.x, b = blockIdx.x;\n{body}\n}}"
    launch_watched(checker, source, np.zeros(64, np.int32), np.zeros(64, np.int32), grid=grid, block=block)
    return checker


MEET = "__threadfence(); atomicAdd(q + 5, 1);"
STREAMS = "cudaStream_t s, r; cudaStreamCreateWithFlags(&s, 1); cudaStreamCreateWithFlags(&r, cudaStreamNonBlocking);"


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        # A child sees what its thread did, what its block did before a barrier, its warp before a __syncwarp.
        ("p[0] = 1; p[1] = 2; sum<<<1, 1>>>(p, q);", 1, 1),
        ("p[t] = t; __syncthreads(); if (t == 40) sum<<<1, 1>>>(p, q);", 1, 64),
        ("p[t] = t; __syncwarp(); if (t == 1) sum<<<1, 1>>>(p, q);", 1, 32),
        ("if (t >= 32) p[t - 32] = t; __syncwarp(); if (t == 34) sum<<<1, 1>>>(p, q);", 1, 64),
        (
            """if (t >= 48) p[t - 48] = t; __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
            if (t == 50) sum<<<1, 1>>>(p, q);""",
            1,
            64,
        ),
        ("p[2 * b + t] = t; __syncthreads(); if (t == 0) sum<<<1, 1>>>(p + 2 * b, q + b);", 3, 2),
        # Launches of one block into one stream follow each other, whichever threads they are by.
        ("put<<<1, 2>>>(p, 1); sum<<<1, 1>>>(p, q); put<<<1, 2>>>(p, 2);", 1, 1),
        ("if (t == 0) put<<<1, 2>>>(p, 1); __syncthreads(); if (t == 33) sum<<<1, 1>>>(p, q);", 1, 64),
        (STREAMS + "put<<<1, 2, 0, s>>>(p, 1); sum<<<1, 1, 0, s>>>(p, q); put<<<1, 2, 0, r>>>(p + 2, 1);", 1, 1),
        # Tail launches follow all, and what waits for its children follows them.
        ("put<<<1, 2, 0, cudaStreamFireAndForget>>>(p, 1); sum<<<1, 1, 0, cudaStreamTailLaunch>>>(p, q);", 1, 1),
        ("if (t == 0) sum<<<1, 1, 0, cudaStreamTailLaunch>>>(p, q + b); p[2 * b + t] = 1;", 3, 2),
        ("put<<<1, 2>>>(p, 1); cudaDeviceSynchronize(); p[0] = p[1]; sum<<<1, 1>>>(p, q);", 1, 1),
        ("p[1] = 1; put<<<1, 2>>>(p, 1); cudaDeviceSynchronize();", 1, 1),
        (STREAMS + "put<<<1, 2, 0, s>>>(p, 1); cudaDeviceSynchronize(); sum<<<1, 1, 0, r>>>(p, q);", 1, 1),
        ("again<<<1, 1>>>(p); sum<<<1, 1>>>(p, q);", 1, 1),
        # Atomics do not race with each other, nor does what is read only.
        ("atomicAdd(p, 1); add<<<1, 8>>>(p); atomicAdd(p, 1);", 4, 8),
        ("q[t] = p[0]; sum<<<1, 1>>>(p, q + 32 + t); q[t] = p[1];", 1, 8),
        # The last of all blocks launches what needs them all.
        (
            "p[b] = b; __threadfence(); if (atomicAdd(q + 5, 1) == gridDim.x - 1) sum<<<1, 1>>>(p, q);",
            4,
            1,
        ),
    ],
)
def test_what_is_ordered(body: str, grid: int, block: int) -> None:
    assert [finding.message for finding in check_races(body, grid, block).findings] == []


@pytest.mark.parametrize(
    ("body", "grid", "block", "other", "child"),
    [
        ("sum<<<1, 1>>>(p, q);\np[1] = 2;", 1, 1, SECOND, SUM),
        ("put<<<1, 1>>>(p, 1);\nq[0] = p[0];", 1, 1, SECOND, PUT),
        ("add<<<1, 1>>>(p);\np[0]++;", 1, 1, SECOND, ADD),
        ("again<<<1, 1>>>(p);\np[0] = 1;", 1, 1, SECOND, PUT),
        ("p[t] = t;\nif (t == 0) sum<<<1, 1>>>(p, q);", 1, 64, FIRST, SUM),
        ("p[t] = t; __syncwarp();\nif (t == 34) sum<<<1, 1>>>(p, q);", 1, 64, FIRST, SUM),
        ("p[b] = b; __syncthreads();\nif (b == 0 && t == 0) sum<<<1, 1>>>(p, q);", 2, 1, FIRST, SUM),
        ("__syncwarp();\np[t] = 1; if (t == 0) sum<<<1, 1>>>(p, q);", 1, 32, SECOND, SUM),
        ("__syncthreads();\np[t] = 1; if (t == 0) sum<<<1, 1>>>(p, q);", 1, 40, SECOND, SUM),
        ("put<<<1, 2>>>(p, b);", 2, 1, PUT, PUT),
        ("put<<<1, 2, 0, cudaStreamFireAndForget>>>(p, 1); sum<<<1, 1>>>(p, q);", 1, 1, PUT, SUM),
        (STREAMS + "put<<<1, 2, 0, s>>>(p, 1); sum<<<1, 1, 0, r>>>(p, q);", 1, 1, PUT, SUM),
        (STREAMS + "again<<<1, 1, 0, s>>>(p); sum<<<1, 1, 0, r>>>(p, q);", 1, 1, PUT, SUM),
        # What another block published is no news of the own block, nor of what another block did since.
        (f"p[t] = t;\nif (t == 0) {{ {MEET} sum<<<1, 1>>>(p, q); }}", 1, 2, FIRST, SUM),
        (f"if (b == 1) {{ {MEET} sum<<<1, 1>>>(p, q); }}\nelse p[1] = 2;", 2, 1, SECOND, SUM),
        # Nor is it of a thread's neighbor, before they meet.
        (f"if (b == 0) p[t] = t;\nelse if (t == 0) {{ {MEET} }} else sum<<<1, 1>>>(p, q);", 2, 2, FIRST, SUM),
    ],
)
def test_what_races(body: str, grid: int, block: int, other: int, child: int) -> None:
    findings = check_races(body, grid, block).findings
    assert finding_lines(findings) == [tuple(sorted((other, child)))]
    assert ", in launches that run at the same time" in findings[0].message


LOCK = """\
__device__ void lock(int *p) {{ while (atomicCAS(p, 0, 1)) {{ }} {acquire} }}
__device__ void unlock(int *p) {{ {release} atomicExch(p, 0); }}
__global__ void count(int *p) {{ lock(p); p[1]++; unlock(p); }}
__global__ void hasty(int *p) {{ while (atomicCAS(p, 0, 1)) {{ }} p[1]++; unlock(p); }}
__global__ void open(int *p) {{ lock(p); p[1]++; {release} *(volatile int *)p = 0; }}
__global__ void plain(int *p) {{ p[1]++; }}
__global__ void pass(int *p) {{ if (blockIdx.x) {{ lock(p + 2); lock(p); unlock(p); unlock(p + 2); }}
                               else {{ lock(p + 2); p[1]++; unlock(p + 2); }} }}
__global__ void first(int *p) {{ if (blockIdx.x == 0) {{ lock(p); unlock(p); }} }}
__global__ void twice(int *p) {{ lock(p); unlock(p); plain<<<1, 1>>>(p); }}
"""
FENCE = "__threadfence();"
IN_STREAM = "<<<1, 1, 0, {}>>>(p);".format


@pytest.mark.parametrize(
    ("acquire", "release", "body", "is_right"),
    [
        (FENCE, FENCE, f"count{IN_STREAM('s')} count{IN_STREAM('r')}", True),
        (FENCE, FENCE, "count<<<2, 1, 0, s>>>(p); count<<<2, 1, 0, r>>>(p);", True),
        (FENCE, FENCE, f"count{IN_STREAM('s')} plain{IN_STREAM('r')}", False),
        (FENCE, FENCE, f"hasty{IN_STREAM('s')} count{IN_STREAM('r')}", False),
        (FENCE, FENCE, f"count{IN_STREAM('s')} hasty{IN_STREAM('r')}", False),
        (FENCE, "", f"count{IN_STREAM('s')} count{IN_STREAM('r')}", False),
        ("__threadfence_block();", FENCE, f"count{IN_STREAM('s')} count{IN_STREAM('r')}", False),
        (FENCE, "__threadfence_block();", f"count{IN_STREAM('s')} count{IN_STREAM('r')}", False),
        (FENCE, FENCE, f"open{IN_STREAM('s')} open{IN_STREAM('r')}", True),
        (FENCE, FENCE, f"open{IN_STREAM('s')} count{IN_STREAM('r')}", True),
        # The parent's accesses after the launch are concurrent too.
        (FENCE, FENCE, f"count{IN_STREAM('s')} lock(p); p[1]++; unlock(p);", True),
        (FENCE, FENCE, f"count{IN_STREAM('s')} lock(p); unlock(p); p[1]++;", False),
        (FENCE, FENCE, f"plain{IN_STREAM('s')} lock(p); unlock(p); count{IN_STREAM('r')}", False),
        # What a launch has acquired is known to its children, and to launches that follow it in its stream; what it
        # releases includes launches that it follows.
        (FENCE, FENCE, f"count{IN_STREAM('s')} twice{IN_STREAM('r')}", True),
        (FENCE, FENCE, f"count{IN_STREAM('s')} count{IN_STREAM('r')} plain{IN_STREAM('r')}", True),
        (FENCE, FENCE, f"plain{IN_STREAM('s')} count{IN_STREAM('s')} count{IN_STREAM('r')}", True),
        (FENCE, FENCE, f"count{IN_STREAM('s')} plain{IN_STREAM('s')} count{IN_STREAM('r')}", False),
        (FENCE, FENCE, f"count{IN_STREAM('s')} first<<<2, 1, 0, r>>>(p); plain{IN_STREAM('r')}", True),
        # It passes from thread to thread: the other block takes the first lock, before or after the data are accessed.
        (FENCE, FENCE, "pass<<<1, 1, 0, s>>>(p); pass<<<2, 1, 0, r>>>(p);", True),
    ],
)
def test_launches_synchronize_through_memory(acquire: str, release: str, body: str, is_right: bool) -> None:
    checker = RaceChecker()
    source = LOCK.format(acquire=acquire, release=release) + f"__global__ void f(int *p) {{ {STREAMS} {body} }}"
    launch_watched(checker, source, np.zeros(8, np.int32), grid=1, block=1)
    assert bool(checker.findings) != is_right


VOLATILE = """\
__global__ void look(const volatile int *p, int *out) { *out = p[0]; }
__global__ void flag(volatile int *p) { p[0] = 1; }
"""


@pytest.mark.parametrize(
    ("body", "races"),
    [
        # Volatile reads of global memory race neither with volatile writes nor with atomics; all else is as ever.
        ("look<<<1, 1>>>(p, q); *(volatile int *)p = 1;", False),
        ("look<<<1, 1>>>(p, q); p[0] = 1;", True),
        ("look<<<1, 1>>>(p, q); atomicAdd(p, 1);", False),
        ("flag<<<1, 1>>>(p); q[0] = *(volatile int *)p;", False),
        ("flag<<<1, 1>>>(p); q[0] = p[0];", True),
        ("flag<<<1, 1>>>(p); *(volatile int *)p = 2;", True),
        ("flag<<<1, 1>>>(p); p[0] = 2;", True),
        ("flag<<<1, 1>>>(p); atomicAdd(p, 1);", True),
        ("add<<<1, 1>>>(p); q[0] = *(volatile int *)p;", False),
        ("add<<<1, 1>>>(p); *(volatile int *)p = 2;", True),
        ("put<<<1, 1>>>(p, 1); q[0] = *(volatile int *)p;", True),
        ("put<<<1, 1>>>(p, 1); *(volatile int *)p = 2;", True),
        ("sum<<<1, 1>>>(p, q); *(volatile int *)p = 2;", True),
        ("sum<<<1, 1>>>(p, q); q[1] = *(volatile int *)p;", False),
    ],
)
@pytest.mark.parametrize("is_child", [False, True])
def test_volatile_accesses(body: str, races: bool, is_child: bool) -> None:
    """Of a parent, and of a child beside the other."""
    child, _, rest = body.partition("; ")
    other = "if (t == 0) beside<<<1, 1, 0, cudaStreamFireAndForget>>>(p, q);" if is_child else rest
    source = f"""{CHILDREN}{VOLATILE}__global__ void beside(int *p, int *q) {{ {rest} }}
    __global__ void f(int *p, int *q) {{ int t = threadIdx.x; {child}; {other} }}"""
    checker = RaceChecker()
    launch_watched(checker, source, np.zeros(64, np.int32), np.zeros(64, np.int32), block=1)
    assert bool(checker.findings) is races


@pytest.mark.parametrize(
    ("other", "races"),
    [
        ("p[0] = 2;", False),
        ("p[2] = 2;", False),
        ("p[5] = 2;", False),
        ("p[1] = 2;", True),
        ("p[9] = 2;", True),
        ("q[0] = p[9];", True),
        ("q[0] = p[1];", False),
        ("q[0] = p[8];", False),
        ("q[0] = p[10];", False),
        ("*(int4 *)(p + 8) = make_int4(1, 2, 3, 4);", True),
        ("*(int4 *)(p + 4) = make_int4(1, 2, 3, 4);", False),
        ("*(int4 *)p = make_int4(1, 2, 3, 4);", True),
        ("((char *)p)[7] = 2;", True),
        ("((char *)p)[8] = 2;", False),
        ("((char *)p)[3] = 2;", False),
        ("((char *)p)[35] = 2;", False),
        ("((char *)p)[36] = 2;", True),
    ],
)
def test_what_a_launch_touched_is_known_to_the_byte(other: str, races: bool) -> None:
    """One has read element 1 and written element 9, and another goes on beside it."""
    source = f"""__global__ void one(int *p, int *q) {{ q[1] = p[1]; p[9] = 1; }}
    __global__ void two(int *p, int *q) {{ {other} }}
    __global__ void f(int *p, int *q) {{
        one<<<1, 1, 0, cudaStreamFireAndForget>>>(p, q);
        two<<<1, 1, 0, cudaStreamFireAndForget>>>(p, q);
    }}"""
    checker = RaceChecker()
    launch_watched(checker, source, np.zeros(64, np.int32), np.zeros(64, np.int32), block=1)
    assert bool(checker.findings) is races


def test_a_race_is_counted_once() -> None:
    """However many launches come after the one that it is with."""
    put, add = "put<<<1, 2, 0, cudaStreamFireAndForget>>>(p, 1);", "add<<<1, 1>>>(q);"
    for before in (put + add + add, add + put + add):
        (finding,) = check_races(f"{before} sum<<<1, 1>>>(p, q + 1);").findings
        assert finding_lines([finding]) == [(PUT, SUM)]
        assert finding.count == 2


def test_the_message() -> None:
    (finding,) = check_races("if (t == 0) sum<<<1, 1>>>(p, q);\nif (t == 2) p[1] = 5;", 1, 3).findings
    assert finding.message == (
        "Race reported between Write access at test.cu:8 by thread (2,0,0) in block (0,0,0) and Read access at "
        "test.cu:2 by thread (0,0,0) in block (0,0,0) on element 1 of p (global memory), in launches that run at the "
        "same time: wrote 5, read 5. Concurrent launches are unordered: use an atomic operation, start one launch "
        "after the other has ended, or let them share a flag or lock with a __threadfence() before its release and "
        "after its acquire."
    )


@pytest.mark.parametrize(
    ("body", "says_barrier"),
    [
        ("p[t] = t;\nif (t == 0) sum<<<1, 1>>>(p, q);", True),
        ("if (t == 0) sum<<<1, 1>>>(p, q);\np[t] = t;", False),
        ("if (b == 1) p[t] = t;\nif (b == 0 && t == 0) sum<<<1, 1>>>(p, q);", False),
    ],
    ids=["before the launch", "after the launch", "in another block"],
)
def test_a_launch_that_a_barrier_would_order_needs_one(body: str, *, says_barrier: bool) -> None:
    (finding,) = check_races(body, 2 if "b ==" in body else 1, 2).findings
    assert ("add a __syncthreads() before it" in finding.message) is says_barrier


def test_parts_of_an_element_race() -> None:
    source = """
    __global__ void bytes(unsigned char *p) { p[5] = 1; }
    __global__ void f(int *p) { bytes<<<1, 1>>>((unsigned char *)p); p[0] = 1;
        p[1] = 2; }"""
    checker = RaceChecker()
    launch_watched(checker, source, np.zeros(8, np.int32), block=1)
    assert finding_lines(checker.findings) == [(2, 4)]
    reverse = """
    __global__ void words(int *p) { p[1] = 1; }
    __global__ void f(unsigned char *p) { words<<<1, 1>>>((int *)p); p[0] = 1;
        p[7] = 2; }"""
    checker = RaceChecker()
    launch_watched(checker, reverse, np.zeros(32, np.uint8), block=1)
    assert finding_lines(checker.findings) == [(2, 4)]


def test_many_launches_are_remembered_in_part_and_the_parent_wholly() -> None:
    source = """
    __global__ void put(int *p, int v) { p[v] = v; }
    __global__ void f(int *p) {
        p[299] = 1;
        for (int i = 0; i < 300; ++i) put<<<1, 1, 0, cudaStreamFireAndForget>>>(p, i);
        p[299] = 2;
    }"""
    checker = RaceChecker()
    launch_watched(checker, source, np.zeros(300, np.int32), block=1)
    assert finding_lines(checker.findings) == [(2, 6)]


@pytest.mark.parametrize("kind", ["int", "float"])
def test_quicksort_is_clean(kind: str) -> None:
    checker = RaceChecker()
    values = np.random.default_rng(3).integers(0, 1000, 150).astype(np.int32 if kind == "int" else np.float32)
    arguments: list[Any] = [values, np.int32(0), np.int32(149), np.int32(0)]
    launch_watched(checker, QUICKSORT, *arguments, kernel="quicksort", block=1, defines={"KEY": kind, "MAX_DEPTH": 16})
    assert checker.findings == []
    assert (np.diff(values) >= 0).all()
