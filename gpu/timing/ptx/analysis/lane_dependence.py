"""Registers that may differ between the lanes of a warp."""

from __future__ import annotations

from collections import defaultdict

from gpu.timing.ptx.program import PtxInstruction, PtxKernel

_LANE_REGISTERS = ("%tid", "%laneid")


def find_lane_registers(kernel: PtxKernel) -> frozenset[str]:
    """Return the registers that depend on the thread's index, on local memory or on an atomic operation's result.

    Jumps are not considered: a register that lanes write in different iterations of a loop may be missing.
    """
    readers: dict[str, list[PtxInstruction]] = defaultdict(list)
    pending: list[str] = []
    for instruction in kernel.instructions:
        for name in instruction.read_registers:
            readers[name].append(instruction)
        if _differs_by_lane(instruction):
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
