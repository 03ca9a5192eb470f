"""The order of basic blocks: a loop that LLVM enters in its middle begins with its header."""

from __future__ import annotations

import numpy as np

from gpu.timing.ptx.analysis.block_order import order_blocks
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import RepeatedIterations
from gpu.timing.ptx.program import PtxKernel, parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape

START = "ld.param.u64 %rd1, [p0]; mov.u32 %r1, 0; mov.u32 %r2, 0;"
BODY = "add.s32 %r2, %r2, %r1;"
TEST = "add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000;"
END = "st.global.u32 [%rd1], %r2; ret;"

# The test is between the jump into the loop and the loop's body, which jumps back to it without a condition.
ENTERED_IN_ITS_MIDDLE = f"""
    {START} bra.uni $header;
$body:
    {BODY}
    {TEST}
    @%p1 bra $header;
    bra.uni $end;
$header:
    setp.eq.s32 %p2, %r1, 5;
    @!%p2 bra $body;
    add.s32 %r2, %r2, 7;
    bra.uni $body;
$end:
    {END}
"""
USUAL = f"{START} $next: {BODY} {TEST} @%p1 bra $next; {END}"


def parse(body: str) -> PtxKernel:
    text = f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0)\n{{\n{body}\n}}\n"
    return parse_ptx(text).find_kernel("k")


def test_a_loop_that_is_entered_in_its_middle_ends_with_the_jump_to_its_header() -> None:
    kernel = order_blocks(parse(ENTERED_IN_ITS_MIDDLE))
    (loop,) = PtxMachine(kernel, {}).loops.values()
    assert loop.has_single_exit
    assert [block.number for block in kernel.blocks] == list(range(len(kernel.blocks)))
    assert kernel.blocks[loop.last].successors[0] == loop.header
    assert 0 not in loop.blocks


def test_ordered_blocks_compute_the_same_and_their_loop_is_skipped() -> None:
    found = np.zeros(1, np.int32)
    kernel = order_blocks(parse(ENTERED_IN_ITS_MIDDLE))
    memory = SampledMemory({0: found.view(np.uint8)})
    address = np.array([memory.address(0)], np.int64).view(np.uint8)
    machine = PtxMachine(kernel, {}, values=False)
    path = machine.run(GridShape((1, 1, 1), (32, 1, 1)), address, [0], memory)
    assert any(isinstance(step, RepeatedIterations) for step in path.steps)
    short = ENTERED_IN_ITS_MIDDLE.replace("1000", "9")
    PtxMachine(order_blocks(parse(short)), {}).run(GridShape((1, 1, 1), (32, 1, 1)), address, [0], memory)
    assert found.tolist() == [sum(range(9)) + 7]


def test_a_kernel_without_such_a_loop_is_unchanged() -> None:
    kernel = parse(USUAL)
    assert order_blocks(kernel) is kernel
