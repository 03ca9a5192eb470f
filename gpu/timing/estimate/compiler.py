"""Generate PTX from a kernel's IR with LLVM, and estimate its registers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gpu.base.errors import CompileError
from gpu.simulator import ir
from gpu.timing.estimate.thread_writer import STRIDED_LOOP, UNROLL_COUNT, UNROLLED_LOOP, ThreadWriter
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

Array = npt.NDArray[Any]

_EXTRA_REGISTERS = 6
"""Registers that contain no variable: the stack pointer, addresses of constants, temporaries."""
_MINIMUM_REGISTERS, _MAXIMUM_REGISTERS = 8, 255

_REDUCTION, _REDUCTION_CAPABILITY = "llvm.nvvm.redux", 8.0
"""The intrinsic of `__reduce_add_sync` and its siblings, and the least compute capability that has it."""

_JUMP_TABLE = "brx.idx"
"""The instruction of a jump table, which `PtxMachine` does not execute."""
_CONSTANT_REMAINDER = re.compile(
    r"(?:tail )?call (?:range\(.*?\) )?i\d+ "
    r'asm "rem\.([su])\d+ \$0, \$1, \$2;", "[^"]*"\((i\d+) (\S+), i\d+ (-?\d+)\)(?: #\d+)?'
)
"""A remainder of `ThreadWriter` whose divisor is a constant after loops were unrolled."""
_KERNEL_HEAD = re.compile(r"^(define ptx_kernel .*?)((?: !dbg !\d+)? \{)$", re.MULTILINE)


class CapabilityError(CompileError):
    """A kernel needs a GPU of a higher compute capability."""


def generate_ptx(
    function: ir.Function,
    variables: Mapping[str, tuple[str, Array]],
    capability: str,
    source_file: str = "",
    *,
    imitates_nvcc: bool = True,
) -> str:
    """Compile a kernel to PTX.

    Parameters
    ----------
    function : ir.Function
    variables : mapping of str to (str, array)
        State spaces and contents, as for `ThreadWriter`.
    capability : str
        The GPU's compute capability, such as "9.0".
    source_file : str
        The name of the source file for line numbers in the PTX; "" to omit them.
    imitates_nvcc : bool
        As of `ThreadWriter`.

    Raises
    ------
    CapabilityError
        The GPU lacks an instruction of the kernel.
    CompileError
        The kernel has a feature that cannot be estimated.
    """
    text = ThreadWriter(variables, source_file, imitates_nvcc=imitates_nvcc).write_kernel(function)
    # LLVM would end the process.
    if _REDUCTION in text and float(capability) < _REDUCTION_CAPABILITY:
        raise CapabilityError(
            f"{function.name} needs compute capability {_REDUCTION_CAPABILITY} for a __reduce function, "
            f"and this GPU has {capability}.",
            advice="Reduce with shuffles.",
        )
    machine = _create_target_machine(f"sm_{capability.replace('.', '')}")
    try:
        return _emit(_optimize(text, machine), machine)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise CompileError(f"{function.name} cannot be estimated without nvcc: {reason}.", detail=str(error)) from None


def _optimize(text: str, machine: Any) -> str:
    """Return optimized IR."""
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    optimized = str(module)
    while (folded := _CONSTANT_REMAINDER.sub(r"\1rem \2 \3, \4", optimized)) != optimized:
        module = llvm.parse_assembly(folded)
        builder.getModulePassManager().run(module, builder)
        optimized = str(module)
    if marked := _mark_strided_loops(optimized):
        module = llvm.parse_assembly(marked)
        passes = llvm.create_new_module_pass_manager()
        passes.add_loop_unroll_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)
        optimized = str(module)
    return _allow_unrolling(optimized)


def _emit(optimized: str, machine: Any) -> str:
    """Return the PTX of optimized IR."""
    ptx: str = machine.emit_assembly(llvm.parse_assembly(optimized))
    if _JUMP_TABLE in ptx:
        branches = llvm.parse_assembly(_KERNEL_HEAD.sub(r'\1 "no-jump-tables"="true"\2', optimized))
        ptx = machine.emit_assembly(branches)
    return ptx


def _mark_strided_loops(text: str) -> str:
    """Return optimized IR in which LLVM unrolls the loops that a variable still increments; "" if there are none."""
    marked = text
    for option, factor in re.findall(rf'^(!\d+) = !{{!"{STRIDED_LOOP}", (i32 \d+)}}$', text, re.MULTILINE):
        for loop in re.findall(rf"^(!\d+) = distinct !{{!\d+, {option}}}$", text, re.MULTILINE):
            jump = re.search(rf"br i1 (%\S+), .*!llvm\.loop {loop}$", text, re.MULTILINE)
            test = jump and re.search(rf"^ *{jump[1]} = icmp \w+ i\d+ (%\S+),", text, re.MULTILINE)
            if test and re.search(rf"^ *{test[1]} = add (?:\w+ )*i\d+ %\S+, %", text, re.MULTILINE):
                node = f"{loop} = distinct !{{{loop}, "
                marked = marked.replace(f"{node}{option}}}", f'{node}!{{!"{UNROLL_COUNT}", {factor}}}}}')
    return marked if marked != text else ""


def _allow_unrolling(text: str) -> str:
    """Return optimized IR in which loops that LLVM unrolled as nvcc does may be unrolled by the assembler, too."""
    nodes = dict(re.findall(r'^(!\d+) = !{!"(lockstep\.unrolled|llvm\.loop\.unroll\.disable)"}$', text, re.MULTILINE))
    names = {name: node for node, name in nodes.items()}
    if len(names) < 2:
        return text
    unrolled, disabled = names[UNROLLED_LOOP], names["llvm.loop.unroll.disable"]

    def allow(loop: re.Match[str]) -> str:
        parts = loop[2].split(", ")
        return loop[1] + ", ".join(each for each in parts if each != disabled or unrolled not in parts) + "}"

    return re.sub(r"^(!\d+ = distinct !{)(!\d+(?:, !\d+)+)}$", allow, text, flags=re.MULTILINE)


@cache
def _create_target_machine(processor: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=processor, opt=3)


def estimate_registers(kernel: PtxKernel) -> int:
    """Return the estimated registers per thread: the most live values at any point, in 4-byte words."""
    width: dict[str, int] = {}
    read_under: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for each in kernel.instructions:
        for name in each.read_registers:
            read_under[name].add((each.guard, each.negated))
        for name in (*each.read_registers, *each.written_registers):
            prefix = name.rstrip("0123456789")
            width.setdefault(name, kernel.register_widths.get(name, kernel.register_widths.get(prefix, 4)))
        if _needs_no_register(each):
            width.update(dict.fromkeys(each.written_registers, 0))

    def defined_registers(each: PtxInstruction) -> set[str]:
        """Return the registers that are redefined; a guarded write counts only if all reads have the same guard."""
        guards = {(each.guard, each.negated)}
        return {name for name in each.written_registers if not each.guard or read_under[name] <= guards}

    live_in: list[set[str]] = [set() for _ in kernel.blocks]

    def iterate_live(block: BasicBlock) -> Iterator[set[str]]:
        """Yield the live registers after each instruction of a block, the last one first, and those at its start."""
        live = set[str]().union(*(live_in[successor] for successor in block.successors))
        yield live
        for each in reversed(block.instructions):
            live = (live - defined_registers(each)).union(each.read_registers)
            yield live

    changed = True
    while changed:
        changed = False
        for block in reversed(kernel.blocks):
            *_, live = iterate_live(block)
            changed |= live != live_in[block.number]
            live_in[block.number] = live
    maximum = max(
        (sum(-(-width.get(name, 4) // 4) for name in live) for block in kernel.blocks for live in iterate_live(block)),
        default=0,
    )
    return min(_MAXIMUM_REGISTERS, max(_MINIMUM_REGISTERS, int(np.ceil(maximum + _EXTRA_REGISTERS))))


def _needs_no_register(instruction: PtxInstruction) -> bool:
    """Return whether an instruction's result needs no register: a constant, or rematerialized at each use."""
    opcode, words, operands = instruction.opcode, instruction.modifiers, instruction.operands
    if opcode == "ld":
        return "param" in words
    if opcode == "mov":
        return not operands[1].startswith(("%r", "%f", "%p", "{"))
    return opcode == "cvta"
