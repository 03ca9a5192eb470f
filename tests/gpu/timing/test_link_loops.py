"""Pointer jumping: what other blocks store shortens the paths of sampled blocks."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.timing.caches import iterate_visits
from gpu.timing.gpus import find_gpu
from gpu.timing.launch import LaunchEstimate, LaunchModel
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape

BLOCK = 64
TEXT = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 parents, .param .u64 results)
{
    ld.param.u64 %rd1, [parents];
    ld.param.u64 %rd2, [results];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r1, 64, %r2;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, TARGET, %rd3;
    ld.global.u32 %r4, [%rd4];
$L1:
    mul.wide.u32 %rd6, %r4, 4;
    add.s64 %rd7, %rd1, %rd6;
    ld.global.u32 %r5, [%rd7];
    setp.eq.u32 %p1, %r4, %r5;
    @%p1 bra $L2;
    st.global.u32 [%rd5], %r5;
    mov.u32 %r4, %r5;
    bra.uni $L1;
$L2:
    ret;
}
"""


def build_machine(target: str = "%rd1") -> PtxMachine:
    """Return a kernel whose threads follow parents to the root, storing each: in the parents, `%rd1`, or elsewhere."""
    return PtxMachine(parse_ptx(TEXT.replace("TARGET", target)).find_kernel("k"), {}, values=False)


def build_memory(blocks: int) -> tuple[SampledMemory, np.ndarray, np.ndarray]:
    """Return a chain of all threads in random order, the kernel's parameters, and the depth of each thread."""
    order = np.random.default_rng(0).permutation(blocks * BLOCK)
    parents, depths = np.zeros(order.size, np.uint32), np.zeros(order.size, np.int64)
    parents[order], depths[order] = np.append(order[0], order[:-1]), np.arange(order.size)
    memory = SampledMemory({0: parents.view(np.uint8), 1: np.zeros(parents.nbytes, np.uint8)})
    return memory, np.array([memory.address(0), memory.address(1)], np.int64).view(np.uint8), depths


def count_rounds(depths: np.ndarray) -> np.ndarray:
    """Return the loop iterations of threads that jump together: a thread's distance doubles in each of them."""
    return np.ceil(np.log2(np.maximum(depths, 1))).astype(np.int64) + 1


def estimate(machine: PtxMachine, blocks: int) -> LaunchEstimate:
    memory, parameters, _ = build_memory(blocks)
    return LaunchModel(machine, find_gpu("h200"), 16).estimate_launch(
        GridShape((blocks, 1, 1), (BLOCK, 1, 1)), parameters, memory
    )


def test_companions_shorten_the_paths_of_sampled_blocks_and_have_none() -> None:
    memory, parameters, depths = build_memory(16)
    shape, sampled, companions = GridShape((16, 1, 1), (BLOCK, 1, 1)), [5, 9], [*range(5), *range(6, 9), *range(10, 16)]
    path = build_machine().run(shape, parameters, sampled, memory, companions)
    iterations = np.zeros(2 * BLOCK // 32)
    for visit, times in iterate_visits(path.steps):
        assert all(request.warps.max() < iterations.size for request in visit.requests)
        iterations += times * visit.lanes if visit.block == 1 else 0
    rounds = count_rounds(depths.reshape(16, -1, 32)[sampled])
    assert iterations.tolist() == rounds.sum(axis=2).ravel().tolist()


def test_paths_are_as_short_as_if_all_blocks_ran() -> None:
    blocks = 256
    _, _, depths = build_memory(blocks)
    rounds = count_rounds(depths.reshape(-1, 32)).max(axis=1).sum()
    found = estimate(build_machine(), blocks)
    assert found.instructions == pytest.approx(rounds * 8, rel=0.25)  # the loop has eight instructions
    assert found.time_us < 100


@pytest.mark.parametrize(("target", "expected"), [("%rd1", True), ("%rd2", False)])
def test_only_loops_that_store_what_they_follow_need_companions(target, expected) -> None:
    assert build_machine(target).has_link_loops == expected
