"""How many machine instructions run: reckoned by hand of unrolled loops, guards and branches around."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.timing.gpus import find_gpu
from gpu.timing.launch import LaunchEstimate, LaunchModel
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.sass.cubin import MachineInstruction
from gpu.timing.sass.issued_instructions import ExecutedLine, estimate_issued_instructions
from tests import needs
from tests.gpu.timing.modeled_kernels import model_kernel


def make_instructions(text: str) -> list[MachineInstruction]:
    """Return instructions of a listing: `@` where guarded, an opcode, `>` and where it leads, `.` and the line."""
    found = []
    for row in text.split("\n"):
        words = row.split()
        if not words:
            continue
        target = next((int(word[1:]) for word in words if word[0] == ">"), -1)
        line = next((int(word[1:]) for word in words if word[0] == "."), 0)
        found.append(MachineInstruction(next(w for w in words if w.isupper()), "@" in words, target, 0, line))
    return found


UNROLLED = """
S2R
@ BRA >9
LDG .7
IADD3
LDG .7
IADD3
LDG .7
IADD3
@ BRA >2
@ BRA >13
LDG .7
IADD3
@ BRA >10
STG .9
EXIT
"""


def test_an_unrolled_loop_is_gone_through_as_often_as_its_loads_say() -> None:
    lines = {7: ExecutedLine(30 * 64.0, "ld"), 9: ExecutedLine(64.0, "st")}
    # Ten rounds of seven, and what is before and behind: the rest's loop is not needed.
    assert estimate_issued_instructions(make_instructions(UNROLLED), lines, 64.0) == pytest.approx(
        64 * (2 + 10 * 7 + 1 + 2), rel=0.01
    )


BRANCHED = """
S2R
@ BRA >5
LDG .3
FADD .4
STG .5
BAR .6
EXIT
"""


def test_a_branch_is_taken_by_those_that_have_no_part_in_it() -> None:
    lines = {3: ExecutedLine(16.0, "ld"), 5: ExecutedLine(16.0, "st"), 6: ExecutedLine(64.0, "bar")}
    assert estimate_issued_instructions(make_instructions(BRANCHED), lines, 64.0) == pytest.approx(64 * 4 + 16 * 3)


def test_what_is_guarded_issues_for_all() -> None:
    guarded = "S2R\n@ LDG .3\n@ STG .5\nEXIT"
    lines = {3: ExecutedLine(16.0, "ld"), 5: ExecutedLine(16.0, "st")}
    assert estimate_issued_instructions(make_instructions(guarded), lines, 64.0) == pytest.approx(64 * 4)


def test_where_nothing_is_kept_one_by_one_nothing_is_known() -> None:
    assert (
        estimate_issued_instructions(make_instructions("S2R\nIADD3 .3\nEXIT"), {3: ExecutedLine(16.0, "add")}, 64.0)
        is None
    )
    assert estimate_issued_instructions([], {}, 1.0) is None


@needs.nvcc
def test_a_loop_issues_its_instructions_and_not_those_of_the_ptx(tmp_path) -> None:
    """Of 128 warps, each with 4,096 rounds of a loop that the assembler unrolls."""
    text = """
extern "C" __global__ void sum(const float *from, float *to, int n) {
    float mine = 0;
    for (int i = 0; i < n; ++i) mine += from[i * 32 + threadIdx.x];
    to[blockIdx.x * 32 + threadIdx.x] = mine;
}
"""
    path = tmp_path / "sum.cu"
    path.write_text(text, "utf-8")
    found = model_kernel(path, text, "sum", 128, 32, ["zeros:131072", "zeros:4096", 4096], "h200")
    instructions = found.launches[0].code.instructions
    loads = [number for number, each in enumerate(instructions) if each.opcode == "LDG"]
    back = [(each.target, number) for number, each in enumerate(instructions) if 0 <= each.target < number]
    # The loop that has most of the loads takes all rounds.
    first, last = max(back, key=lambda loop: sum(loop[0] <= load <= loop[1] for load in loads))
    per_load = (last - first + 1) / sum(first <= load <= last for load in loads)
    assert found.data()["instructions"] == pytest.approx(128 * 4096 * per_load, rel=0.02)


def estimate_sum(integers: int) -> LaunchEstimate:
    """Model a kernel with 200 integer sums in a row as machine code that has a number of them; 0 for unknown code."""
    sums = "\n".join(f"add.s32 %r1, %r1, %r{number % 7 + 2};" for number in range(200))
    loads = "\n".join(f"ld.global.u32 %r{number}, [%rd1+{4 * number}];" for number in range(1, 9))
    text = f""".version 9.0
.target sm_90
.visible .entry k(.param .u64 p)
{{
ld.param.u64 %rd1, [p];
{loads}
{sums}
st.global.u32 [%rd1], %r1;
ret;
}}
"""
    kernel = parse_ptx(text).find_kernel("k")
    lines = {each.opcode: each.text_line for block in kernel.blocks for each in block.instructions}
    rows = ["LDC"] + [f"LDG .{line}" for line in range(lines["ld"] - 7, lines["ld"] + 1)] + ["IADD3"] * integers
    listing = "\n".join([*rows, f"STG .{lines['st']}", "EXIT"])
    instructions = make_instructions(listing) if integers else ()
    model = LaunchModel(PtxMachine(kernel, {}), find_gpu("h200"), 32, instructions)
    memory = SampledMemory({0: np.zeros(4096, np.uint8)})
    address = np.array([memory.address(0)], np.int64).view(np.uint8)
    return model.estimate_launch(GridShape((132 * 8, 1, 1), (256, 1, 1)), address, memory)


def test_integer_instructions_that_machine_code_combines_take_no_time() -> None:
    unknown, equal, half = (estimate_sum(integers) for integers in (0, 200, 120))
    assert equal.time_us == pytest.approx(unknown.time_us, rel=0.03)
    assert half.breakdown["arithmetic"] == pytest.approx(0.6 * unknown.breakdown["arithmetic"], rel=0.05)
    assert half.time_us < 0.9 * unknown.time_us


def test_machine_code_whose_count_is_out_of_range_changes_nothing() -> None:
    unknown, few = estimate_sum(0), estimate_sum(20)
    assert few.time_us == pytest.approx(unknown.time_us)
    assert few.instructions == pytest.approx(unknown.instructions)
