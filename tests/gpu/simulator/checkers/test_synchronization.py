"""Synchronization through memory: right kernels give no finding, wrong ones a race that names its cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.races.release_sequences import DEVICE_LEVEL, Reader, ReleaseSequence
from gpu.simulator.checkers.races.vector_clocks import ClockBuilder, ClockSnapshot
from gpu.simulator.checkers.trials import select_trial_findings
from tests.gpu.simulator.kernel_runner import build
from tests.gpu.simulator.watched_launch import launch_watched

NO_CAUSE = "unordered|No barrier"
NO_RELEASE_FENCE = "The flag is written without a fence before it"
NO_ACQUIRE_FENCE = "No fence follows the read of the flag"
RELAXED_WRITE = "The flag is written with relaxed order: write it with release order"
RELAXED_READ = "The flag is read with relaxed order: read it with acquire order"
NO_LOCK_FENCE = "No fence follows the atomic operation that takes the lock"
NARROW_LOCK_FENCE = "The fence after the atomic operation that takes the lock is of block scope"
NARROW_RELEASE_FENCE = "The fence before the write of the flag is of block scope"
NARROW_ACQUIRE_FENCE = "The fence after the read of the flag is of block scope"
NARROW_ACCESS = "A strong access is of block scope"
EARLY_FLAG = "The flag that was read was written before these data"
EARLY_RELEASE = "The flag that was read was written before the other thread read these data"
NO_TICKET_FENCE = "No fence precedes the atomic operation by which the other thread learns"
IGNORED_FLAG = "No branch tests the value of the flag"
LONE_WRITE = "writes the flag, or releases the lock, that was read, and no barrier orders"
LONE_READ = "has read the flag, or taken the lock, that orders them, and no barrier orders the later access after"


@dataclass(frozen=True)
class Program:
    """A kernel: its body with `int *data, *flag, *out`, its shape, and the cause of its race; "" if it is right."""

    body: str
    cause: str
    grid: int = 2
    block: int = 1
    head: str = ""
    schedule: str = "round-robin"


def find_races(program: Program, **options: Any) -> list[Finding]:
    source = f"""{program.head}
__global__ void f(int *data, int *flag, int *out) {{
    int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;
    {program.body}
}}"""
    checker = RaceChecker()
    arrays = [np.zeros(4096, np.int32) for _ in range(3)]
    options = {
        "grid": program.grid,
        "block": program.block,
        "schedule": program.schedule,
        "max_seconds": 60.0,
        **options,
    }
    launch_watched(checker, source, *arrays, **options)
    return checker.findings


def message(write: str, read: str) -> str:
    return f"if (b == 0) {{ data[0] = 42; {write} }} else {{ {read} out[0] = data[0]; }}"


VOLATILE_WAIT = "while (*(volatile int *)flag == 0) {}"
ATOMIC_WAIT = "while (atomicAdd(flag, 0) == 0) {}"

MESSAGES = {
    "volatile flag": (message("__threadfence(); *(volatile int *)flag = 1;", f"{VOLATILE_WAIT} __threadfence();"), ""),
    "atomic flag": (message("__threadfence(); atomicExch(flag, 1);", f"{ATOMIC_WAIT} __threadfence();"), ""),
    "atomic write, volatile read": (
        message("__threadfence(); atomicExch(flag, 1);", f"{VOLATILE_WAIT} __threadfence();"),
        "",
    ),
    "no fence before the write": (
        message("*(volatile int *)flag = 1;", f"{VOLATILE_WAIT} __threadfence();"),
        NO_RELEASE_FENCE,
    ),
    "no fence before the atomic write": (
        message("atomicExch(flag, 1);", f"{ATOMIC_WAIT} __threadfence();"),
        NO_RELEASE_FENCE,
    ),
    "fence before the data": (
        (
            "if (b == 0) { __threadfence(); data[0] = 42; atomicExch(flag, 1); }"
            f"else {{ {ATOMIC_WAIT} __threadfence(); out[0] = data[0]; }}"
        ),
        NO_RELEASE_FENCE,
    ),
    "no fence after the read": (message("__threadfence(); atomicExch(flag, 1);", ATOMIC_WAIT), NO_ACQUIRE_FENCE),
    "fence before the read": (
        message("__threadfence(); atomicExch(flag, 1);", f"__threadfence(); {ATOMIC_WAIT}"),
        NO_ACQUIRE_FENCE,
    ),
    "narrow fence before the write": (
        message("__threadfence_block(); atomicExch(flag, 1);", f"{ATOMIC_WAIT} __threadfence();"),
        NARROW_RELEASE_FENCE,
    ),
    "narrow fence after the read": (
        message("__threadfence(); atomicExch(flag, 1);", f"{ATOMIC_WAIT} __threadfence_block();"),
        NARROW_ACQUIRE_FENCE,
    ),
    "narrow atomic write": (
        message("__threadfence(); atomicExch_block(flag, 1);", f"{ATOMIC_WAIT} __threadfence();"),
        NARROW_ACCESS,
    ),
    "system scope": (
        message("__threadfence_system(); atomicExch_system(flag, 1);", f"{ATOMIC_WAIT} __threadfence_system();"),
        "",
    ),
    "wrong flag": (
        message("__threadfence(); atomicExch(flag, 1);", "if (atomicAdd(flag + 1, 0) == 0) __threadfence();"),
        NO_CAUSE,
    ),
    "flag written before the data": (
        (
            "if (b == 0) { atomicExch(flag, 1); data[0] = 42; __threadfence(); atomicExch(flag + 1, 1); }"
            f"else {{ {ATOMIC_WAIT} __threadfence(); out[0] = data[0]; }}"
        ),
        EARLY_FLAG,
    ),
    "key claimed before its value": (
        (
            "int seen = atomicCAS(&flag[t], 0, t + 1); if (seen == 0) data[t] = 42;"
            "if (seen == t + 1) { __threadfence(); out[t] = data[t]; }"
        ),
        EARLY_FLAG,
        2,
        32,
    ),
    "flag written before a read": (
        (
            "if (b == 0) { __threadfence(); atomicExch(flag, 1); out[0] = data[0]; }"
            f"else {{ {ATOMIC_WAIT} __threadfence(); data[0] = 42; }}"
        ),
        EARLY_RELEASE,
    ),
    "flag that several blocks read": (
        (
            "if (b == 1) { atomicExch(flag, 1); data[0] = 42; }"
            f"if (b != 1) {{ {ATOMIC_WAIT} if (b == 2) {{ __threadfence(); out[0] = data[0]; }} }}"
        ),
        EARLY_FLAG,
        4,
    ),
    "unfenced ticket of a block in the middle": (
        ("data[b] = b; bool last = atomicAdd(flag, 1) == 3; __threadfence(); if (last) {\nout[0] = data[1]; }"),
        NO_TICKET_FENCE,
        4,
    ),
    "flag claimed before the data": (
        (
            "bool mine = atomicCAS(flag, 0, 1) == 0; if (mine) data[0] = 42; "
            "if (!mine && *(volatile int *)flag != 0) { __threadfence(); out[0] = data[0]; }"
            "if (mine) { __threadfence(); atomicExch(flag, 2); }"
        ),
        EARLY_FLAG,
    ),
    "flag never looked at": (
        message("__threadfence(); atomicExch(flag, 1);", "int seen = atomicAdd(flag, 0); __threadfence();"),
        IGNORED_FLAG,
    ),
    "flag only stored": (
        message("__threadfence(); atomicExch(flag, 1);", "out[1] = atomicAdd(flag, 0) + 1; __threadfence();"),
        IGNORED_FLAG,
    ),
    "flag tested later": (
        message("__threadfence(); atomicExch(flag, 1);", "int seen = atomicAdd(flag, 0); __threadfence(); if (seen)"),
        "",
    ),
    "flag overwritten by another thread": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            "if (b == 1) *(volatile int *)flag = 2;"
            "if (b == 2) { while (*(volatile int *)flag != 2) {} __threadfence(); out[0] = data[0]; }"
        ),
        NO_CAUSE,
        3,
    ),
    "flag raised by another thread": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            "if (b == 1) atomicAdd(flag, 1);"
            "if (b == 2) { while (atomicAdd(flag, 0) != 2) {} __threadfence(); out[0] = data[0]; }"
        ),
        "",
        3,
    ),
    "handed on": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            "if (b == 1) { while (atomicAdd(flag, 0) != 1) {} __threadfence(); atomicExch(flag + 1, 1); }"
            "if (b == 2) { while (atomicAdd(flag + 1, 0) != 1) {} __threadfence(); out[0] = data[0]; }"
        ),
        "",
        3,
    ),
    "handed on without a fence": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            "if (b == 1) { while (atomicAdd(flag, 0) != 1) {} atomicExch(flag + 1, 1); }"
            "if (b == 2) { while (atomicAdd(flag + 1, 0) != 1) {} __threadfence(); out[0] = data[0]; }"
        ),
        NO_CAUSE,
        3,
    ),
    "flag reset by its reader": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); *(volatile int *)flag = 1; }"
            f"else {{ {VOLATILE_WAIT} __threadfence(); out[0] = data[0]; *flag = 0; }}"
        ),
        "",
    ),
    "flag reset by another thread": (
        (
            "if (b == 0) { data[0] = 42; __threadfence(); *(volatile int *)flag = 1; }"
            f"if (b == 1) {{ {VOLATILE_WAIT} __threadfence(); out[0] = data[0]; }} if (b == 2) *flag = 0;"
        ),
        NO_CAUSE,
        3,
    ),
    "volatile data and no fence after the read": (
        (
            "volatile int *v = data; if (b == 0) { v[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            f"else {{ {ATOMIC_WAIT} out[0] = v[0]; }}"
        ),
        "",
    ),
    "volatile data and no fence before the write": (
        (
            "volatile int *v = data; if (b == 0) { v[0] = 42; __threadfence(); v[1] = 1; atomicExch(flag, 1); }"
            f"else {{ {ATOMIC_WAIT} out[0] = v[1]; }}"
        ),
        NO_RELEASE_FENCE,
    ),
    "consumer first": (
        (
            "if (b == 1) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }"
            f"else {{ {ATOMIC_WAIT} __threadfence(); out[0] = data[0]; }}"
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_between_blocks(name: str) -> None:
    body, cause, *grid = MESSAGES[name]
    check(Program(body, cause, *grid))


@pytest.mark.parametrize(
    ("write", "is_ordered"),
    [
        ("atomicExch(flag, 1);", True),
        ("atomicExch(flag, 1);\n*flag = 2;", False),
        ("atomicExch(flag, 1);\n*(volatile int *)flag = 2;", True),
        ("atomicExch(flag, 1);\natomicAdd(flag, 1);", True),
        ("atomicExch(flag, 1);\ndata[0] = 43;\n*(volatile int *)flag = 2;", False),
        ("atomicExch_block(flag, 1);", False),
        ("*(volatile int *)flag = 1;", True),
        # It writes nothing.
        ("atomicCAS(flag, 5, 6);", False),
    ],
)
def test_what_releases_data(write: str, is_ordered: bool) -> None:
    body = f"""if (b == 0) {{ data[0] = 42; __threadfence();
    {write} }} else if (atomicAdd(flag, 0) < 9) {{ __threadfence();
    out[0] = data[0]; }}"""
    found = find_races(Program(body, ""))
    assert any("of data" in finding.message for finding in found) is not is_ordered


def test_another_writer_ends_a_release_sequence() -> None:
    body = """if (b == 0) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }
    if (b == 1) *(volatile int *)flag = 2;
    if (b == 2 && *(volatile int *)flag == 2) { __threadfence();
    out[0] = data[0]; }"""
    assert any("of data" in finding.message for finding in find_races(Program(body, "", 3)))


def check(program: Program, **options: Any) -> None:
    found = find_races(program, **options)
    if not program.cause:
        assert found == []
    else:
        assert found
        assert any(each in finding.message for finding in found for each in program.cause.split("|"))


def lock(take: str, release: str, access: str = "data[0] += 1;", location: str = "flag") -> str:
    return (
        f"if (t == 0) {{ int *lock = {location}; while (atomicCAS(lock, 0, 1) != 0) {{}} {take} {access} {release} "
        "atomicExch(lock, 0); }"
    )


FENCE, FENCE_BLOCK = "__threadfence();", "__threadfence_block();"
LOCKS = {
    "both fences": (lock(FENCE, FENCE), ""),
    "no fence before the release": (lock(FENCE, ""), NO_RELEASE_FENCE),
    "no fence after the lock is taken": (lock("", FENCE), NO_LOCK_FENCE),
    "no fence after the lock is taken by the first block": (lock(f"if (b > 0) {FENCE}", FENCE), NO_LOCK_FENCE),
    "narrow fence by the first block": (lock(f"if (b > 0) {FENCE} else {FENCE_BLOCK}", FENCE), NARROW_LOCK_FENCE),
    "narrow fence before the release": (lock(FENCE, FENCE_BLOCK), NARROW_RELEASE_FENCE),
    "two locks": (lock(FENCE, FENCE, location="flag + b % 2"), NO_CAUSE),
    "a lock for each element": (lock(FENCE, FENCE, "data[b % 2] += 1;", "flag + b % 2"), ""),
    "no lock in one block": (f"if (b == 2) {{ if (t == 0) data[0] += 1; return; }} {lock(FENCE, FENCE)}", NO_CAUSE),
    "released too early": (
        lock(FENCE, f"{FENCE} atomicExch(lock, 0); data[0] += 1;", "int old = data[0];"),
        NO_RELEASE_FENCE,
    ),
    "released by volatile writes and by exchanges": (
        lock(FENCE, f"{FENCE} if (b % 2 == 0) {{ *(volatile int *)lock = 0; return; }}"),
        "",
    ),
    "read without the lock": (f"{lock(FENCE, FENCE)} if (t == 1) out[b] = data[0];", NO_CAUSE),
    "a block holds it": (
        (
            f"if (t == 0) {{ while (atomicCAS(flag, 0, 1) != 0) {{}} {FENCE} }} __syncthreads(); data[t] += 1; "
            f"__syncthreads(); if (t == 0) {{ {FENCE} atomicExch(flag, 0); }}"
        ),
        "",
    ),
    "a block holds it and does not wait before the release": (
        (
            f"if (t == 0) {{ while (atomicCAS(flag, 0, 1) != 0) {{}} {FENCE} }} __syncthreads(); data[t] += 1; "
            f"if (t == 0) {{ {FENCE} atomicExch(flag, 0); }}"
        ),
        LONE_WRITE,
    ),
    "a block holds it and does not wait after it is taken": (
        (
            f"if (t == 0) {{ while (atomicCAS(flag, 0, 1) != 0) {{}} {FENCE} }} data[t] += 1; "
            f"__syncthreads(); if (t == 0) {{ {FENCE} atomicExch(flag, 0); }}"
        ),
        LONE_READ,
    ),
    "ABA stack": (
        # `next` of a node is read while another thread may push the node again.
        (
            "if (t == 0) { int head = *(volatile int *)flag; int next = data[head]; "
            "if (atomicCAS(flag, head, next) == head) { __threadfence(); data[head] = *(volatile int *)flag; "
            "__threadfence(); atomicExch(flag, head); } }"
        ),
        NO_CAUSE,
    ),
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_of_blocks(name: str) -> None:
    body, cause = LOCKS[name]
    check(Program(body, cause, grid=3, block=33))


def test_a_lock_needs_a_fence_for_volatile_data_too() -> None:
    access = "((volatile int *)data)[0] += 1;"
    check(Program(lock(f"if (b == 0) {FENCE}", FENCE, access), NO_LOCK_FENCE))
    check(Program(lock(FENCE, FENCE, access), ""))


@pytest.mark.parametrize(
    "body",
    [
        (
            "int my = atomicAdd(flag, 1); while (atomicAdd(flag + 1, 0) != my) {} __threadfence(); data[0]++; "
            "__threadfence(); atomicAdd(flag + 1, 1);"
        ),
        (
            "int my = atomicAdd(flag, 1); while (*(volatile int *)(flag + 1) != my) {} __threadfence(); data[0]++; "
            "__threadfence(); *(volatile int *)(flag + 1) = my + 1;"
        ),
    ],
)
def test_a_ticket_lock_for_each_thread_of_several_blocks(body: str) -> None:
    check(Program(body, "", 3, 8))


IN_BLOCK = {
    "lock for each lane, loop around the critical section": (
        (
            "bool done = false; while (!done) { if (atomicCAS(flag, 0, 1) == 0) { __threadfence(); data[0] += 1; "
            "__threadfence(); atomicExch(flag, 0); done = true; } }"
        ),
        "",
        32,
    ),
    "lock for each lane": (
        "while (atomicCAS(flag, 0, 1) != 0) {} __threadfence(); data[0] += 1; __threadfence(); atomicExch(flag, 0);",
        "",
        32,
    ),
    "lock for each lane without a fence": (
        "while (atomicCAS(flag, 0, 1) != 0) {} __threadfence(); data[0] += 1; atomicExch(flag, 0);",
        NO_RELEASE_FENCE,
        32,
    ),
    "lock for each warp": (
        (
            "__shared__ int lock, sum; if (t == 0) lock = sum = 0; __syncthreads(); if (t % 32 == 0) { "
            "while (atomicCAS(&lock, 0, 1) != 0) {} __threadfence_block(); sum += 1; __threadfence_block(); "
            "atomicExch(&lock, 0); } __syncthreads(); if (t == 0) out[0] = sum;"
        ),
        "",
        96,
    ),
    "lock of block scope": (
        (
            "if (t % 32 == 0) { while (atomicCAS_block(flag, 0, 1) != 0) {} __threadfence_block(); data[0] += 1; "
            "__threadfence_block(); atomicExch_block(flag, 0); }"
        ),
        "",
        96,
    ),
    "producer and consumer": (
        (
            "__shared__ int box; __shared__ volatile int full; if (t == 0) full = 0; __syncthreads(); "
            "if (t == 0) { box = 5; __threadfence_block(); full = 1; } "
            "if (t == 32) { while (full == 0) {} __threadfence_block(); out[0] = box; }"
        ),
        "",
        64,
    ),
    "consumer before producer": (
        (
            "__shared__ int box; __shared__ volatile int full; if (t == 0) full = 0; __syncthreads(); "
            "if (t == 32) { while (full == 0) {} __threadfence_block(); out[0] = box; } "
            "if (t == 0) { box = 5; __threadfence_block(); full = 1; }"
        ),
        "",
        64,
    ),
    "consumer before producer in a warp": (
        (
            "__shared__ int box; __shared__ volatile int full; if (t == 0) full = 0; __syncwarp(); "
            "if (t == 1) { while (full == 0) {} __threadfence_block(); out[0] = box; } "
            "if (t == 0) { box = 5; __threadfence_block(); full = 1; }"
        ),
        "",
        32,
    ),
    "producer and consumer without fences": (
        (
            "__shared__ int box; __shared__ volatile int full; if (t == 0) full = 0; __syncthreads(); "
            "if (t == 0) { box = 5; full = 1; } if (t == 32) { while (full == 0) {} out[0] = box; }"
        ),
        NO_RELEASE_FENCE,
        64,
    ),
    "ring": (
        (
            "__shared__ int box[2]; __shared__ volatile int filled, emptied; if (t == 0) filled = emptied = 0; "
            "__syncthreads(); if (t == 0) for (int k = 0; k < 6; ++k) { while (k - emptied >= 2) {} "
            "__threadfence_block(); box[k % 2] = k; __threadfence_block(); filled = k + 1; } "
            "if (t == 32) for (int k = 0; k < 6; ++k) { while (filled <= k) {} "
            "__threadfence_block(); out[k] = box[k % 2]; __threadfence_block(); emptied = k + 1; }"
        ),
        "",
        64,
    ),
}


@pytest.mark.parametrize("name", IN_BLOCK)
def test_threads_of_a_block(name: str) -> None:
    body, cause, block = IN_BLOCK[name]
    check(Program(body, cause, 1, block))


def test_a_ring_that_overwrites_in_another_schedule() -> None:
    body, _, block = IN_BLOCK["ring"]
    check(Program(body.replace("emptied >= 2", "emptied >= 3"), EARLY_FLAG, 1, block, schedule="shuffle:1"))


PTX = """__device__ void put(int *p, int v) {
    asm volatile("st.RELEASE.SCOPE.global.s32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}
__device__ int get(int *p) {
    int v;
    asm volatile("ld.ACQUIRE.SCOPE.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ int swap(int *p, int v) {
    int old;
    asm volatile("atom.acq_rel.SCOPE.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
    return old;
}"""
PUT_AND_GET = "if (i == 0) { data[0] = 3; put(flag, 1); } if (i == 64) { while (get(flag) == 0) {} out[0] = data[0]; }"
SWAP = "if (i == 0) { data[0] = 3; swap(flag, 1); } if (i == 64) { while (swap(flag, 0) == 0) {} out[0] = data[0]; }"


@pytest.mark.parametrize(
    ("release", "acquire", "scope", "body", "grid", "cause"),
    [
        ("release", "acquire", "gpu", PUT_AND_GET, 2, ""),
        ("release", "acquire", "sys", PUT_AND_GET, 2, ""),
        ("release", "acquire", "cta", PUT_AND_GET, 2, NARROW_ACCESS),
        ("release", "acquire", "cta", PUT_AND_GET, 1, ""),
        ("relaxed", "acquire", "gpu", PUT_AND_GET, 2, RELAXED_WRITE),
        ("release", "relaxed", "gpu", PUT_AND_GET, 2, RELAXED_READ),
        ("", "", "gpu", SWAP, 2, ""),
        ("", "", "cta", SWAP, 1, ""),
        ("", "", "cta", SWAP, 2, NARROW_ACCESS),
    ],
)
def test_memory_orders_of_ptx(release: str, acquire: str, scope: str, body: str, grid: int, cause: str) -> None:
    head = PTX.replace("RELEASE", release or "release").replace("ACQUIRE", acquire or "acquire").replace("SCOPE", scope)
    check(Program(body, cause, grid, 128 // grid, head))


ATOMIC_REF = "#include <cuda/atomic>"


@pytest.mark.parametrize(
    ("scope", "release", "acquire", "grid", "cause"),
    [
        ("device", "release", "acquire", 2, ""),
        ("system", "seq_cst", "seq_cst", 2, ""),
        ("device", "relaxed", "acquire", 2, RELAXED_WRITE),
        ("device", "release", "relaxed", 2, RELAXED_READ),
        ("block", "release", "acquire", 1, ""),
        ("block", "release", "acquire", 2, "block scope"),
    ],
)
def test_memory_orders_of_atomic_references(scope: str, release: str, acquire: str, grid: int, cause: str) -> None:
    body = (
        f"cuda::atomic_ref<int, cuda::thread_scope_{scope}> ready(*flag); if (i == 0) {{ data[0] = 3; "
        f"ready.store(1, cuda::memory_order_{release}); }} if (i == 64) {{ "
        f"while (ready.load(cuda::memory_order_{acquire}) == 0) {{}} out[0] = data[0]; }}"
    )
    check(Program(body, cause, grid, 128 // grid, ATOMIC_REF))


VOLATILE_TOTAL = """
__shared__ int kept; volatile int *total = data, *ready = flag;
if (b == 0 && t == 0) {{ {writes} }}
if (b == 1 && t == 0) {{ while (!*ready) {{}} __threadfence(); kept = *total; {test} }}
__syncthreads();
if (b == 1) out[t] = kept;"""


@pytest.mark.parametrize(
    ("writes", "test", "cause"),
    [
        ("*total = 3; __threadfence(); *ready = 1;", "", ""),
        ("__threadfence(); *ready = 1; *total = 3;", "", EARLY_FLAG),
        ("__threadfence(); *ready = 1; *total = 3;", "if (kept > 5) out[9] = 1;", ""),
        ("__threadfence(); *ready = 1; *total = 3;", "out[9] = __shfl_sync(1u, kept, 0);", EARLY_FLAG),
    ],
)
def test_volatile_data_that_reach_a_shared_variable(writes: str, test: str, cause: str) -> None:
    """They are data, unless the variable is tested."""
    check(Program(VOLATILE_TOTAL.format(writes=writes, test=test), cause, 2, 32))


@pytest.mark.parametrize(
    ("release", "acquire", "cause"),
    [
        ("block", "device", "The write of the flag is of block scope"),
        ("device", "block", "The read of the flag is of block scope"),
    ],
)
def test_data_behind_a_flag_of_which_one_access_is_narrow(release: str, acquire: str, cause: str) -> None:
    body = (
        "if (i == 0) {\ndata[0] = 3;\n"
        f"cuda::atomic_ref<int, cuda::thread_scope_{release}>(*flag).store(1, cuda::memory_order_release); }}\n"
        f"if (i == 64) {{ cuda::atomic_ref<int, cuda::thread_scope_{acquire}> ready(*flag);\n"
        f"while (ready.load(cuda::memory_order_acquire) == 0) {{}}\nout[0] = data[0]; }}"
    )
    check(Program(body, cause, 2, 64, ATOMIC_REF))


MESSAGE_OF_A_BLOCK = """if (b == 0) {{
    data[t] = t; {barrier}
    if (t == 0) {{ {write} }}
}} else {{
    if (t == 0) {read}
    __syncthreads();
    out[i] = data[31 - t];
}}"""
REFERENCE = "cuda::atomic_ref<int, cuda::thread_scope_device>(*flag)"
WAIT = f"while ({REFERENCE}.load(cuda::memory_order_acquire) == 0) {{}}"


@pytest.mark.parametrize(
    ("write", "barrier", "cause"),
    [
        (f"{REFERENCE}.store(1, cuda::memory_order_release);", "__syncthreads();", ""),
        (f"{REFERENCE}.store(1, cuda::memory_order_relaxed);", "__syncthreads();", RELAXED_WRITE),
        ("*(volatile int *)flag = 1;", "__syncthreads();", NO_RELEASE_FENCE),
        (f"{REFERENCE}.store(1, cuda::memory_order_release);", "", LONE_WRITE),
    ],
)
def test_a_thread_publishes_the_data_of_its_block(write: str, barrier: str, cause: str) -> None:
    check(Program(MESSAGE_OF_A_BLOCK.format(write=write, barrier=barrier, read=WAIT), cause, 3, 32, ATOMIC_REF))


FOLD = """__shared__ bool last;
if (t == 0) {{ data[b] = b; {before} last = atomicAdd(flag, 1) == gridDim.x - {which}; }}
__syncthreads();
if (last) {{ {after} if (t < gridDim.x) out[t] = data[t]; if (t == 0) *flag = 0; }}"""


@pytest.mark.parametrize(
    ("before", "which", "after", "cause"),
    [
        (FENCE, 1, FENCE, ""),
        (FENCE, 1, "", NO_ACQUIRE_FENCE),
        (FENCE, 1, FENCE_BLOCK, "The fence after the read of the flag is of block scope"),
        ("", 1, FENCE, NO_TICKET_FENCE),
        (FENCE_BLOCK, 1, FENCE, NARROW_RELEASE_FENCE),
        (FENCE, 2, FENCE, NO_CAUSE),
        (FENCE, 6, FENCE, NO_CAUSE),
    ],
)
def test_one_block_folds(before: str, which: int, after: str, cause: str) -> None:
    check(Program(FOLD.format(before=before, which=which, after=after), cause, 6, 64))


@pytest.mark.parametrize(("barrier", "cause"), [("__syncthreads();", ""), ("", LONE_WRITE)])
def test_the_thread_with_the_ticket_releases_the_data_of_its_block(barrier: str, cause: str) -> None:
    body = f"""__shared__ bool last;
    data[b * blockDim.x + t] = t; {barrier}
    if (t == 0) {{ __threadfence(); last = atomicAdd(flag, 1) == gridDim.x - 1; __threadfence(); }}
    __syncthreads();
    if (last) for (int k = 0; k < gridDim.x; k++) out[t] += data[k * blockDim.x + t];"""
    check(Program(body, cause, 2, 32))


@pytest.mark.parametrize(("fence", "cause"), [(FENCE, ""), ("", NO_RELEASE_FENCE)])
def test_each_reader_of_a_lock_releases_it(fence: str, cause: str) -> None:
    """A reader's fence before its reads does not order them, and another reader is the last to release the lock."""
    body = f"""if (b < 2) {{
        while (b == 1 && !*(volatile int *)(out + 9)) {{}}
        atomicAdd(flag, 1); __threadfence();
        out[b] = data[b];
        {fence} atomicAdd(flag, -1);
        if (b == 0) *(volatile int *)(out + 9) = 1;
        atomicAdd(flag + 1, 1);
    }} else {{
        while (atomicAdd(flag + 1, 0) < 2) {{}}
        while (atomicCAS(flag, 0, -1) != 0) {{}}
        __threadfence();
        data[0] = 5;
    }}"""
    check(Program(body, cause, 3, 1))


@pytest.mark.parametrize(("order", "cause"), [("release", ""), ("relaxed", RELAXED_WRITE)])
def test_a_slot_is_released_before_another_counter_is_read(order: str, cause: str) -> None:
    body = f"""ref slot(flag[0]), counter(flag[1]);
    if (b == 0) {{
        out[0] = data[0];
        slot.store(1, cuda::memory_order_{order});
        counter.store(1, cuda::memory_order_relaxed);
    }} else if (b == 1) {{
        while (!counter.load(cuda::memory_order_relaxed)) {{}}
        counter.store(2, cuda::memory_order_relaxed);
    }} else {{
        while (!slot.load(cuda::memory_order_acquire)) {{}}
        while (counter.load(cuda::memory_order_relaxed) < 2) {{}}
        data[0] = 5;
    }}"""
    head = ATOMIC_REF + "\nusing ref = cuda::atomic_ref<int, cuda::thread_scope_device>;"
    check(Program(body, cause, 3, 1, head))


def test_one_block_folds_volatile_data_without_a_fence() -> None:
    """As in NVIDIA's sample threadFenceReduction."""
    body = FOLD.format(before=FENCE, which=1, after="").replace("data[", "((volatile int *)data)[")
    check(Program(body, "", 6, 64))


FOLD_IN_FUNCTIONS = """
__device__ int load(volatile int *p) {{ return *p; }}
__device__ void store_sum(int *sums, int at, int sum) {{ sums[at] = sum; }}
template <int step> __device__ void fold(volatile int *parts, int *counter, int *sums) {{
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) {{ parts[blockIdx.x] = t; {fence} last = atomicAdd(counter, 1) == gridDim.x - 1; }}
    __syncthreads();
    if (last) {{
        int sum = 0;
        for (int k = t; k < gridDim.x; k += step) sum += load(parts + k);
        store_sum(sums, t, sum);
    }}
}}"""


@pytest.mark.parametrize(("fence", "cause"), [(FENCE, ""), (FENCE_BLOCK, NARROW_RELEASE_FENCE)])
def test_a_function_folds_volatile_data_that_other_functions_load_and_store(fence: str, cause: str) -> None:
    check(Program("fold<64>(data, flag, out);", cause, 6, 64, head=FOLD_IN_FUNCTIONS.format(fence=fence)))


WAIT_IN_FUNCTIONS = """
__device__ bool is_set(volatile int *p) { return *p != 0; }
__device__ void wait(volatile int *p) { while (!is_set(p)) {} __threadfence_block(); }
__device__ void ignore(volatile int *p) { is_set(p); __threadfence_block(); }"""


@pytest.mark.parametrize(("function", "cause"), [("wait", ""), ("ignore", NO_CAUSE)])
def test_a_flag_that_a_function_returns(function: str, cause: str) -> None:
    body = (
        "__shared__ int box; __shared__ volatile int full; if (t == 0) full = 0; __syncthreads(); "
        "if (t == 0) { box = 5; __threadfence_block(); full = 1; }"
        f"if (t == 32) {{ {function}(&full); out[0] = box; }}"
    )
    check(Program(body, cause, 1, 64, head=WAIT_IN_FUNCTIONS))


GRID_BARRIER = """data[i] = i;
{first}
if (t == 0) {{ {before} atomicAdd(flag, 1); while (atomicAdd(flag, 0) < gridDim.x) {{}} {after} }}
__syncthreads();
out[i] = data[(i + 32) % (gridDim.x * blockDim.x)];"""


@pytest.mark.parametrize(
    ("first", "before", "after", "cause"),
    [
        ("__syncthreads();", FENCE, FENCE, ""),
        ("", FENCE, FENCE, f"{LONE_WRITE} the earlier access before: add a __syncwarp(), or a __syncthreads()"),
        ("__syncthreads();", "", FENCE, NO_CAUSE),
        ("__syncthreads();", FENCE, "", NO_ACQUIRE_FENCE),
        ("__syncthreads();", FENCE_BLOCK, FENCE, NARROW_RELEASE_FENCE),
    ],
)
def test_a_hand_made_grid_barrier(first: str, before: str, after: str, cause: str) -> None:
    block = 64 if not first else 32
    check(Program(GRID_BARRIER.format(first=first, before=before, after=after), cause, 4, block))


@pytest.mark.parametrize(
    ("body", "grid", "cause"),
    [
        ("if (t == 0) atomicAdd_block(data, 1);", 4, NARROW_ACCESS),
        ("if (t == 0) atomicAdd_block(data, 1);", 1, ""),
        ("atomicAdd_block(&data[b], 1);", 4, ""),
        ("if (t == 0) { if (b == 0) atomicAdd(data, 1); else atomicAdd_block(data, 1); }", 2, NARROW_ACCESS),
        ("if (t == 0) { if (b == 0) atomicAdd(data, 1); else atomicAdd_system(data, 1); }", 2, ""),
        ("if (b == 0) atomicAdd_block(data, 1); __syncthreads(); if (b == 0 && t == 0) out[0] = data[0];", 2, ""),
    ],
)
def test_atomic_operations_of_block_scope(body: str, grid: int, cause: str) -> None:
    check(Program(body, cause, grid, 64))


TICKETS = """if (t == 0) {{ int place = atomicAdd(flag, 1); data[place] = b; __threadfence(); {publish} }}
if (t == 0 && b == 3) for (int k = 0; k < 4; ++k) {{ {wait} __threadfence(); out[k] = data[k]; }}"""


def test_a_queue_by_tickets() -> None:
    right = TICKETS.format(
        publish="atomicExch(flag + 8 + place, 1);", wait="while (atomicAdd(flag + 8 + k, 0) == 0) {}"
    )
    check(Program(right, "", 4))
    check(Program(TICKETS.format(publish="", wait="while (atomicAdd(flag, 0) <= k) {}"), NO_CAUSE, 4))


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:1", "lanes:1"])
def test_a_loop_that_no_thread_ends_is_endless(schedule: str) -> None:
    body = "if (b == 0) { data[0] = 42; } else { while (atomicAdd(flag, 0) == 0) {} out[0] = data[0]; }"
    with pytest.raises(Exception, match=r"this loop does not end: thread .0,0,0. in block .1,0,0."):
        find_races(Program(body, "", schedule=schedule), max_rounds=2000)


def test_a_trial_finds_races_of_another_schedule_and_is_undone() -> None:
    body, _, block = IN_BLOCK["ring"]
    body = body.replace("emptied >= 2", "emptied >= 3") + "atomicAdd(data, 1);"
    trial, main = RaceChecker(), RaceChecker()
    data = np.zeros(4096, np.int32)
    source = f"""__global__ void f(int *data, int *out) {{
    int t = threadIdx.x;
    {body} }}"""
    launch_watched(main, source, data, np.zeros(64, np.int32), grid=1, block=block, trial_observer=trial)
    assert main.findings == []
    assert trial.findings
    assert select_trial_findings(trial, [])[0].message.endswith("It occurs with --schedule shuffle:1 or shuffle:3.")
    assert select_trial_findings(trial, trial.findings) == []
    assert data[0] == block


SEQUENCE_LOCK = """__global__ void use(volatile int *sequence, volatile int *pair, int *out) {{
    if (blockIdx.x == 0) {{
        for (int r = 0; r < 4; ++r) {{
            {begin}
            pair[0] = r;
            pair[1] = r;
            __threadfence();
            *sequence = 2 * r + 2;
        }}
    }} else {{
        int before, x, y;
        do {{
            before = *sequence;
            __threadfence();
            x = pair[0];
            y = pair[1];
            __threadfence();
        }} while (before % 2 || *sequence != before);
        {use}
    }}
}}"""


@pytest.mark.parametrize(("begin", "races"), [("*sequence = 2 * r + 1; __threadfence();", 0), ("", 2)])
def test_a_sequence_lock_changes_its_number_before_the_data_too(begin: str, races: int) -> None:
    source = SEQUENCE_LOCK.format(begin=begin, use="out[blockIdx.x] = x + 10 * y;")
    findings = simulate("test.cu", "use", 3, 1, ["zeros:1", "zeros:2", "zeros:4"], source=source).findings
    assert [finding.kind for finding in findings] == ["race"] * races


@pytest.mark.parametrize(("begin", "is_wrong"), [("*sequence = 2 * r + 1; __threadfence();", False), ("", True)])
def test_a_sequence_lock_whose_data_decide_a_branch(begin: str, is_wrong: bool) -> None:
    arguments = [np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(1, np.int32)]
    source = SEQUENCE_LOCK.format(begin=begin, use="if (x != y) atomicAdd(out, 1);")
    findings = simulate("test.cu", "use", 2, 1, arguments, source=source).findings
    assert bool(findings) is is_wrong
    assert {finding.kind for finding in findings} <= {"race"}


FORMS = """struct Record {{ unsigned sequence, last; int pair[2]; }};
__device__ unsigned begin_read(const Record *record) {{
    unsigned before;
    while ((before = *(const volatile unsigned *)&record->sequence) & 1) {{ }}
    __threadfence();
    return before;
}}
__device__ bool has_changed(const Record *record, unsigned before) {{
    __threadfence();
    return *(const volatile unsigned *)&record->sequence != before;
}}
__global__ void use(unsigned *words, int *out) {{
    Record *record = (Record *)words;
    volatile unsigned *sequence = &record->sequence, *last = &record->last;
    volatile int *pair = record->pair;
    if (blockIdx.x == 0) {{
        for (unsigned r = 0; r < 4; ++r) {{
            {before}
            pair[0] = r;
            pair[1] = r;
            {after}
        }}
    }} else {{
        unsigned before, after;
        int x, y;
        do {{
            {read}
        }} while ({again});
        out[blockIdx.x] = x + y;
    }}
}}"""

ODD = "*sequence = 2 * r + 1; __threadfence();"
EVEN = "__threadfence(); *sequence = 2 * r + 2;"
READ = "before = *sequence; __threadfence(); x = pair[0]; y = pair[1]; __threadfence(); after = *sequence;"
READ_TWO = "before = *{0}; __threadfence(); x = pair[0]; y = pair[1]; __threadfence(); after = *{1};"


@pytest.mark.parametrize(
    ("parts", "is_wrong"),
    [
        ((ODD, EVEN, READ, "(before ^ after) | (before & 1)"), False),
        (("", EVEN, READ, "(before ^ after) | (before & 1)"), True),
        ((ODD, EVEN, READ, "after - before || before & 1"), False),
        (
            (
                "atomicAdd(&record->sequence, 1u); __threadfence();",
                "__threadfence(); atomicAdd(&record->sequence, 1u);",
                READ,
                "before != after || before & 1",
            ),
            False,
        ),
        (("", "__threadfence(); atomicAdd(&record->sequence, 2u);", READ, "before != after || before & 1"), True),
        ((ODD, EVEN, "before = begin_read(record); x = pair[0]; y = pair[1];", "has_changed(record, before)"), False),
        (("", EVEN, "before = begin_read(record); x = pair[0]; y = pair[1];", "has_changed(record, before)"), True),
        (
            (
                "*sequence = r + 1; __threadfence();",
                "__threadfence(); *last = r + 1;",
                READ_TWO.format("last", "sequence"),
                "before != after",
            ),
            False,
        ),
        (
            (
                "*sequence = r + 1; __threadfence();",
                "__threadfence(); *last = r + 1;",
                READ_TWO.format("sequence", "last"),
                "before != after",
            ),
            True,
        ),
    ],
    ids=[
        "exclusive or",
        "exclusive or, no odd number",
        "difference",
        "atomic additions",
        "one atomic addition",
        "functions",
        "functions, no odd number",
        "two counters",
        "two counters, read in the order of the writes",
    ],
)
def test_forms_of_a_sequence_lock(parts: tuple[str, str, str, str], is_wrong: bool) -> None:
    before, after, read, again = parts
    source = FORMS.format(before=before, after=after, read=read, again=again)
    findings = simulate("test.cu", "use", 3, 1, ["zeros:4", "zeros:4"], source=source).findings
    assert bool(findings) is is_wrong
    assert {finding.kind for finding in findings} <= {"race"}


LATCH = "before = *sequence; __threadfence(); x = y = pair[{}]; __threadfence(); after = *sequence;"


@pytest.mark.parametrize(("copy", "is_wrong"), [("before & 1", False), ("before & 1 ? 1 : 0", False), ("1", True)])
def test_a_latch_whose_reader_takes_the_copy_that_is_not_written(copy: str, is_wrong: bool) -> None:
    source = FORMS.format(before=ODD, after="__threadfence();", read=LATCH.format(copy), again="before != after")
    source = source.replace("pair[1] = r;", f"{EVEN} __threadfence(); pair[1] = r;")
    findings = simulate("test.cu", "use", 3, 1, ["zeros:4", "zeros:4"], source=source).findings
    assert bool(findings) is is_wrong


class TrialCounter(RaceChecker):
    count = 0

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self.count += 1
        super().launch_begins(kernel, grid, block)


def test_equal_launches_have_fewer_trials_the_more_there_are() -> None:
    source = """__global__ void f(volatile int *flag) {
        flag[threadIdx.x] = 1;
        __threadfence();
        while (flag[0] == 0) {}
    }"""
    module, flag, counts = build(source), np.zeros(2, np.int32), []
    for block in (1, 1, 1, 1, 1, 2):
        trial = TrialCounter()
        launch_watched(RaceChecker(), module, flag, grid=1, block=block, trial_observer=trial)
        counts.append(trial.count)
    assert counts == [2, 1, 0, 1, 0, 2]


@pytest.mark.parametrize(
    ("loop", "has_trials"),
    [
        ("for (int i = 0; i < 3; ++i) atomicAdd(data + i, 1);", False),
        ("for (int i = 0; i < 3; ++i) out[i] = atomicAdd(data + i, 1);", False),
        ("while (atomicAdd(data, 1) < 9) {}", True),
        ("for (int i = 0; i < 3; ++i) if (count(data) > 8) break;", True),
    ],
)
def test_only_loops_in_which_lanes_may_wait_need_trials(loop: str, *, has_trials: bool) -> None:
    source = f"""__device__ int count(int *data) {{ return atomicAdd(data, 1); }}
    __global__ void f(int *data, int *out) {{ __threadfence(); {loop} }}"""
    trial = TrialCounter()
    arrays = [np.zeros(4, np.int32) for _ in range(2)]
    launch_watched(RaceChecker(), source, *arrays, grid=2, block=1, trial_observer=trial)
    assert (trial.count > 0) is has_trials


REUSED_FLAG = """__device__ void meet(int *count, volatile int *flag, int round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(count, 1) == round * gridDim.x - 1) {
            __threadfence();
            *flag = VALUE;
        }
        while (*flag < VALUE) {}
        __threadfence();
    }
    __syncthreads();
}
__global__ void f(int *data, int *count, int *flag, int *out) {
    int size = blockDim.x, i = blockIdx.x * size + threadIdx.x, n = gridDim.x * size;
    data[i] = i;
    meet(count, flag, 1);
    int value = data[(i + size) % n];
    meet(count, flag, 2);
    data[i] = value;
    meet(count, flag, 3);
    out[i] = data[(i + size) % n];
}"""


@pytest.mark.parametrize("grid", [4, 16])
@pytest.mark.parametrize(("value", "is_right"), [("round", True), ("1", False)])
def test_a_trial_has_as_many_blocks_as_wait_for_each_other(grid: int, value: str, *, is_right: bool) -> None:
    trial, main = RaceChecker(), RaceChecker()
    arrays = [np.zeros(2400, np.int32) for _ in range(4)]
    source = REUSED_FLAG.replace("VALUE", value)
    launch_watched(main, source, *arrays, grid=grid, block=40, trial_observer=trial)
    assert main.findings == []
    assert (trial.findings == []) is is_right


def test_what_starving_lanes_have_done_is_undone() -> None:
    """The blocks start again in another order, so what they have added counts once."""
    source = """__global__ void f(int *data, int *flag) {
        atomicAdd(&data[0], 1);
        data[1 + threadIdx.x] += 1;
        while (atomicCAS(flag, 0, 1) != 0) {}
        __threadfence();
        data[64] += 1;
        __threadfence();
        atomicExch(flag, 0);
    }"""
    checker, data = RaceChecker(), np.zeros(65, np.int32)
    launch_watched(checker, source, data, np.zeros(1, np.int32), grid=1, block=32)
    assert checker.findings == []
    assert data.tolist() == [32, *[1] * 32, *[0] * 31, 32]


def test_readers_of_different_lengths_of_a_release_sequence_share_its_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lanes of two warps that add to a counter, each acquires another number of releases."""
    added: list[ClockSnapshot] = []
    add_snapshot = ClockBuilder.add_snapshot

    def count_and_add(self: ClockBuilder, snapshot: ClockSnapshot, *, weak: bool) -> None:
        added.append(snapshot)
        add_snapshot(self, snapshot, weak=weak)

    monkeypatch.setattr(ClockBuilder, "add_snapshot", count_and_add)
    sequence, reader = ReleaseSequence(4), Reader(0, 0, DEVICE_LEVEL)
    times: list[int] = []
    for release in range(600):
        block, time = release * 7 % 4, release + 10
        times.append(block)
        snapshot = ClockSnapshot(block, time)
        sequence.append(block, (snapshot, snapshot, snapshot), is_narrow=False)
        for length in (release + 1, max(release - 15, 1)):
            clock = sequence.find_known_events(length, reader, weak=False)
            latest = [max((i + 10 for i in range(length) if times[i] == each), default=0) for each in range(4)]
            assert clock is not None
            assert clock.block_times.tolist() == latest
    assert len(added) < 4 * 600
