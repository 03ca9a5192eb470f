"""PTX that LLVM makes of a kernel's IR, and the registers that it would take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from gpu.errors import CompileError
from gpu.simulator import ir
from gpu.timing.estimate.thread import ThreadWriter
from gpu.timing.ptx.program import PtxInstruction, PtxKernel

Array = npt.NDArray[Any]

_BESIDES = 6
"""Registers that no variable is in: the stack, addresses of constants, what is on its way."""
_FEWEST, _MOST = 8, 255


def ptx_of(
    function: ir.Function, variables: Mapping[str, tuple[str, Array]], capability: str, located: str = ""
) -> str:
    """Return a kernel as PTX.

    Parameters
    ----------
    function : ir.Function
    variables : mapping of str to (str, array)
        As of `ThreadWriter`.
    capability : str
        The GPU's compute capability, such as "9.0".
    located : str
        The name of the file whose lines the PTX is to say; "" where it need not.

    Raises
    ------
    CompileError
        The kernel has what is not estimated.
    """
    text = ThreadWriter(variables, located).kernel(function)
    machine = _machine(f"sm_{capability.replace('.', '')}")
    try:
        module = llvm.parse_assembly(text)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_unrolling = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        made: str = machine.emit_assembly(module)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise CompileError(f"{function.name} cannot be estimated without nvcc: {reason}.", detail=str(error)) from None
    return made


@cache
def _machine(processor: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=processor, opt=3)


def estimated_registers(kernel: PtxKernel) -> int:
    """Return how many registers a thread would take: the most that hold something at once, in words of 4 bytes."""
    width: dict[str, int] = {}
    read_under: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for block in kernel.blocks:
        for each in block.instructions:
            for name in each.read:
                read_under[name].add((each.guard, each.negated))
            for name in (*each.read, *each.written):
                prefix = name.rstrip("0123456789")
                width.setdefault(name, kernel.widths.get(name, kernel.widths.get(prefix, 4)))
            if _is_at_hand(each):
                width.update(dict.fromkeys(each.written, 0))

    def begins(each: PtxInstruction) -> set[str]:
        """Return the registers of which nothing that they held before is wanted: under a predicate, where all is."""
        under = {(each.guard, each.negated)}
        return {name for name in each.written if not each.guard or read_under[name] <= under}

    live_in: list[set[str]] = [set() for _ in kernel.blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(kernel.blocks):
            live = set().union(*(live_in[each] for each in block.follows)) if block.follows else set()
            for each in reversed(block.instructions):
                live -= begins(each)
                live |= set(each.read)
            if live != live_in[block.number]:
                live_in[block.number] = live
                changed = True
    most = 0
    for block in kernel.blocks:
        live = set().union(*(live_in[each] for each in block.follows)) if block.follows else set()
        for each in reversed(block.instructions):
            most = max(most, sum(-(-width.get(name, 4) // 4) for name in live))
            live -= begins(each)
            live |= set(each.read)
    return min(_MOST, max(_FEWEST, int(np.ceil(most + _BESIDES))))


def _is_at_hand(instruction: PtxInstruction) -> bool:
    """Whether what an instruction gives needs no register: it is a constant, or made anew where it is read."""
    opcode, words, operands = instruction.opcode, instruction.words, instruction.operands
    if opcode == "ld":
        return "param" in words
    if opcode == "mov":
        return not operands[1].startswith(("%r", "%f", "%p", "{"))
    return opcode == "cvta"
