"""The order in which the assembler would issue instructions."""

from __future__ import annotations

import pytest

from gpu.timing.costs import DOUBLE, CostTable, schedule_block
from gpu.timing.gpus import find_gpu
from gpu.timing.ptx.program import parse_ptx


@pytest.mark.parametrize(("registers", "loads_first"), [(1, 10), (4, 2)])
def test_loads_precede_their_uses_up_to_ten_registers(registers, loads_first) -> None:
    lines = []
    for number in range(12):
        names = [f"%f{registers * number + part}" for part in range(registers)]
        loaded, vector = (f"{{{', '.join(names)}}}", ".v4") if registers > 1 else (names[0], "")
        lines += [f"ld.global{vector}.f32 {loaded}, [%rd1+{16 * number}];", f"add.f32 %f100, %f100, {names[0]};"]
    text = "\n".join(lines)
    kernel = parse_ptx(f".version 9.0\n.target sm_90\n.visible .entry k()\n{{\n{text}\nret;\n}}\n").find_kernel("k")
    scheduled = schedule_block(kernel.blocks[0], CostTable(kernel, find_gpu("h200")))
    opcodes = [each.instruction.opcode for each in scheduled]
    assert opcodes.index("add") == loads_first


@pytest.mark.parametrize(
    ("opcode", "slots", "cycles"), [("div.s32", 26, 32), ("div.u32", 18, 26), ("rem.s32", 22, 32), ("rem.u32", 17, 25)]
)
def test_an_integer_division_costs_what_its_machine_code_does(opcode, slots, cycles) -> None:
    """Instructions as ptxas compiles `x / a / b` for capability 8.6, less `x / a`; cycles as measured on an H200."""
    kernel = parse_ptx(f".version 9.0\n.target sm_86\n.visible .entry k()\n{{\n{opcode} %r1, %r2, %r3;\nret;\n}}\n")
    gpu = find_gpu("rtx-3080")
    cost = CostTable(kernel.find_kernel("k"), gpu).find_cost(kernel.find_kernel("k").blocks[0].instructions[0])
    assert cost.slots == slots
    assert cost.busy == pytest.approx(cycles, rel=0.02)


@pytest.mark.parametrize(("operation", "instructions"), [("div.rn.f64", 8), ("rcp.rn.f64", 5), ("sqrt.rn.f64", 8)])
@pytest.mark.parametrize("name", ["h200", "rtx-3080"])
def test_a_float64_division_occupies_the_float64_pipe(operation, instructions, name) -> None:
    """As ptxas compiles it for capabilities 8.6 and 9.0. An RTX 3080 has two float64 lanes per multiprocessor."""
    operands = "%fd1, %fd2, %fd3" if operation.startswith("div") else "%fd1, %fd2"
    text = f".version 9.0\n.target sm_86\n.visible .entry k()\n{{\n{operation} {operands};\nret;\n}}\n"
    kernel, gpu = parse_ptx(text).find_kernel("k"), find_gpu(name)
    cost = CostTable(kernel, gpu).find_cost(kernel.blocks[0].instructions[0])
    assert cost.pipe == DOUBLE
    reached = 0.9 if gpu.double_lanes < gpu.special_lanes else 1.0  # where the schedulers share the float64 unit
    assert cost.busy == instructions * 32 * gpu.schedulers / gpu.double_lanes / reached
    assert cost.latency >= cost.busy


def test_constants_of_an_unrolled_loop_are_operands() -> None:
    """The machine code, if it is known, shows whether the assembler has unrolled the loop: it has no LDC then."""
    text = "ld.const.f32 %f1, [%rd1];\nadd.f32 %f2, %f1, %f1;"
    kernel = parse_ptx(f".version 9.0\n.target sm_86\n.visible .entry k()\n{{\n{text}\nret;\n}}\n").find_kernel("k")
    load = kernel.blocks[0].instructions[0]
    busy = [
        CostTable(kernel, find_gpu("rtx-3080"), lines).find_cost(load).busy for lines in (None, {load.text_line}, set())
    ]
    assert busy == [8, 8, 0]


def test_an_argument_at_an_index_is_loaded_from_the_constant_cache() -> None:
    text = "mov.b64 %rd1, k_param_0;\nadd.s64 %rd2, %rd1, %rd3;\nld.param.b32 %r1, [%rd1+8];\nld.param.b32 %r2, [%rd2];"
    head = ".version 9.0\n.target sm_86\n.visible .entry k(.param .align 4 .b8 k_param_0[64])"
    kernel = parse_ptx(f"{head}\n{{\n{text}\nret;\n}}\n").find_kernel("k")
    table, loads = CostTable(kernel, find_gpu("rtx-3080")), kernel.blocks[0].instructions[2:4]
    assert [table.find_cost(load).busy for load in loads] == [0, 8]


def test_no_load_is_issued_before_the_branch_of_an_earlier_division() -> None:
    """As nvcc compiles it: the load follows BSYNC, which ends the branch to the slow path."""
    text = "div.rn.f32 %f1, %f2, %f3;\nld.global.f32 %f4, [%rd1];\nadd.f32 %f5, %f1, %f4;"
    kernel = parse_ptx(f".version 9.0\n.target sm_86\n.visible .entry k()\n{{\n{text}\nret;\n}}\n").find_kernel("k")
    scheduled = schedule_block(kernel.blocks[0], CostTable(kernel, find_gpu("rtx-3080")))
    assert [each.index for each in scheduled] == [0, 1, 2, 3]
