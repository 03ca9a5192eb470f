"""Memory orders of cuda::atomic_ref and of PTX: what they order is ordered, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.simulator.checkers.races.races import RaceChecker
from tests.gpu.simulator.watched_launch import launch_watched

HEAD = """#include <cuda/atomic>
using namespace cuda;
using Device = atomic_ref<int, thread_scope_device>;
constexpr auto relaxed = memory_order_relaxed, acquire = memory_order_acquire, release = memory_order_release;
constexpr auto acq_rel = memory_order_acq_rel;
constexpr auto device = thread_scope_device;
__device__ int load_acquire(int *place) {
    int value;
    asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
    return value;
}
"""
WAIT = "while (flag.load(acquire) == 0) {}"
WAIT_RELAXED = "while (flag.load(relaxed) == 0) {}"
WAIT_PTX = "while (load_acquire(flags) == 0) {}"
RELEASE = "flag.store(1, release);"


def find_races(body: str, **options: str) -> list[Finding]:
    source = f"""{HEAD}
__global__ void f(int *data, int *flags, int *out) {{
    Device flag(flags[0]), other(flags[1]);
    int b = blockIdx.x;
    {body}
}}"""
    checker, arrays = RaceChecker(), [np.zeros(8, np.int32) for _ in range(3)]
    launch_watched(checker, source, *arrays, grid=2, block=1, max_seconds=60.0, **options)
    return checker.findings


def message(write: str, read: str) -> str:
    return f"if (b == 0) {{ data[0] = 42; {write} }} else {{ {read} out[0] = data[0]; }}"


def lock(take: str, release: str) -> str:
    return f"{take} data[0] += 1; {release}"


def compare_exchange(order: str) -> str:
    return f"int old; do {{ old = 0; }} while (!flag.compare_exchange_weak(old, 1, {order}, relaxed));"


def asm(instruction: str, place: str = "flags") -> str:
    return f'asm volatile("{instruction}" :: "l"({place}) : "memory");'


ORDERED = {
    "release and acquire": message(RELEASE, WAIT),
    "acquire of what relaxed reads have observed": message(RELEASE, f"{WAIT_RELAXED} flag.load(acquire);"),
    "sequentially consistent": message("flag = 1;", "while (flag == 0) {}"),
    "release fence": message("atomic_thread_fence(release, device); flag.store(1, relaxed);", WAIT),
    "acquire fence": message(RELEASE, f"{WAIT_RELAXED} atomic_thread_fence(acquire, device);"),
    "fences of both orders": message(
        "atomic_thread_fence(acq_rel, device); flag.store(1, relaxed);",
        f"{WAIT_RELAXED} atomic_thread_fence(memory_order_seq_cst, device);",
    ),
    "operations": message("flag.fetch_add(1, release);", "while (flag.fetch_or(0, acq_rel) == 0) {}"),
    "byte": message(
        "atomic_ref<char, device>(*(char *)flags).store(1, release);",
        "while (atomic_ref<char, device>(*(char *)flags).load(acquire) == 0) {}",
    ),
    "lock": lock(compare_exchange("acquire"), "flag.store(0, release);"),
    "PTX store": message(asm("st.release.gpu.b32 [%0], 1;"), WAIT_PTX),
    "PTX reduction": message(asm("red.release.gpu.global.add.s32 [%0], 1;"), WAIT_PTX),
    "PTX fences": message(
        asm("fence.release.gpu; st.relaxed.gpu.b32 [%0], 1;"), f"{WAIT_RELAXED} {asm('fence.acquire.gpu;')}"
    ),
    "PTX lock": lock(
        'int old = 1; while (old) asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], 0, 1;" '
        ': "=r"(old) : "l"(flags) : "memory");',
        asm("st.release.gpu.b32 [%0], 0;"),
    ),
    "last block": "data[b] = b; bool last = flag.fetch_add(1, acq_rel) == 1; __syncthreads(); "
    "if (last) out[0] = data[0] + data[1];",
}
UNORDERED = {
    "release of another location": message("other.store(1, release); flag.store(1, relaxed);", WAIT),
    "acquire before the message": message("other.load(acquire); flag.store(1, relaxed);", WAIT),
    "acquire of another location": message(RELEASE, f"{WAIT_RELAXED} other.load(acquire);"),
    "release after the message": message(RELEASE, f"{WAIT_RELAXED} other.store(1, release);"),
    "acquire fence before the message": message("atomic_thread_fence(acquire, device); flag.store(1, relaxed);", WAIT),
    "release fence after the message": message(RELEASE, f"{WAIT_RELAXED} atomic_thread_fence(release, device);"),
    "acquire by the writer": message("flag.fetch_add(1, acquire);", WAIT),
    "release by the reader": message(RELEASE, "while (flag.fetch_or(0, release) == 0) {}"),
    "relaxed lock": lock(compare_exchange("relaxed"), "flag.store(0, release);"),
    "relaxed unlock": lock(compare_exchange("acquire"), "flag.store(0, relaxed);"),
    "PTX release of another location": message(
        asm("st.release.gpu.b32 [%0], 1;", "flags + 1") + asm("st.relaxed.gpu.b32 [%0], 1;"), WAIT_PTX
    ),
    "PTX acquire fence before the message": message(asm("fence.acquire.gpu; st.relaxed.gpu.b32 [%0], 1;"), WAIT_PTX),
    "PTX relaxed reduction": message(asm("red.relaxed.gpu.global.add.s32 [%0], 1;"), WAIT_PTX),
    "PTX release of the block": message(asm("st.release.cta.b32 [%0], 1;"), WAIT_PTX),
    "last block that does not acquire": "data[b] = b; bool last = flag.fetch_add(1, release) == 1; __syncthreads(); "
    "if (last) out[0] = data[0] + data[1];",
}


@pytest.mark.parametrize("name", ORDERED)
def test_an_order_orders_the_data(name: str) -> None:
    assert find_races(ORDERED[name]) == []


@pytest.mark.parametrize("name", UNORDERED)
def test_an_order_orders_nothing_else(name: str) -> None:
    assert any(finding.kind == "race" for finding in find_races(UNORDERED[name]))


@pytest.mark.parametrize("order", ["acq_rel", "relaxed"])
def test_an_order_that_the_kernel_computes(order: str) -> None:
    body = f"memory_order order = data[5] == 0 ? memory_order_{order} : memory_order_seq_cst;" + message(
        "flag.fetch_add(1, order);", "while (flag.fetch_or(0, order) == 0) {}"
    )
    assert bool(find_races(body)) is (order == "relaxed")


@pytest.mark.parametrize("name", ["release and acquire", "lock", "PTX store", "PTX lock"])
def test_values_in_registers_are_written_before_a_release_and_read_after_an_acquire(name: str) -> None:
    source = f"""{HEAD}
__global__ void f(int *data, int *flags, int *out) {{
    Device flag(flags[0]), other(flags[1]);
    int b = blockIdx.x;
    if (data[0] < 0) return;
    {ORDERED[name]}
    if (b == 1) out[1] = data[0];
}}"""
    arrays = [np.zeros(8, np.int32) for _ in range(3)]
    launch_watched(RaceChecker(), source, *arrays, grid=2, block=1, max_seconds=60.0, schedule="cached:0")
    assert arrays[2][1] == (2 if "lock" in name else 42)
