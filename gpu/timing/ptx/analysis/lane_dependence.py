"""Registers that may differ between the lanes of a warp, and registers that depend on loaded values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from gpu.timing.ptx.program import PtxInstruction, PtxKernel

_LANE_REGISTERS = ("%tid", "%laneid")


def find_lane_registers(kernel: PtxKernel) -> frozenset[str]:
    """Return the registers that depend on the thread's index, on local memory or on an atomic operation's result.

    Jumps are not considered: a register that lanes write in different iterations of a loop may be missing.
    """
    return find_dependent_registers(kernel.instructions, _differs_by_lane)


def find_loaded_registers(instructions: Iterable[PtxInstruction]) -> frozenset[str]:
    """Return the registers that depend on values that these instructions load, other than parameters."""
    return find_dependent_registers(
        instructions, lambda each: each.opcode in ("ld", "atom") and "param" not in each.modifiers
    )


def find_dependent_registers(
    instructions: Iterable[PtxInstruction], is_source: Callable[[PtxInstruction], bool]
) -> frozenset[str]:
    """Return the registers that depend on results of some of the instructions, through these instructions alone."""
    readers: dict[str, list[PtxInstruction]] = defaultdict(list)
    pending: list[str] = []
    for instruction in instructions:
        for name in instruction.read_registers:
            readers[name].append(instruction)
        if is_source(instruction):
            pending += instruction.written_registers
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [each for reader in readers[name] for each in reader.written_registers]
    return frozenset(found)


def _differs_by_lane(instruction: PtxInstruction) -> bool:
    if instruction.opcode == "atom" or (instruction.opcode == "ld" and "local" in instruction.modifiers):
        return True
    return any(operand.startswith(_LANE_REGISTERS) for operand in instruction.operands[1:])
