"""Registers that a loop only adds to or subtracts from, such as counts of elements and positions of the next ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from gpu.timing.ptx.analysis.control_flow import NaturalLoop
from gpu.timing.ptx.program import PtxInstruction, PtxKernel


def find_accumulators(kernel: PtxKernel, loop: NaturalLoop) -> frozenset[str]:
    """Return the integer registers of a loop whose values are sums of an earlier one and something else."""
    writers: dict[str, list[PtxInstruction]] = defaultdict(list)
    for number in loop.blocks:
        for instruction in kernel.blocks[number].instructions:
            for name in instruction.written_registers:
                writers[name].append(instruction)
    continued = _reduce(writers, frozenset(writers), most_terms=2)
    return _reduce(writers, continued, most_terms=1)  # a sum of two such registers does not grow evenly


def _reduce(
    writers: Mapping[str, Sequence[PtxInstruction]], registers: frozenset[str], most_terms: int
) -> frozenset[str]:
    """Return the largest part of some registers that is written only from registers of this part."""
    while rejected := {
        name for name in registers if not all(_continues(each, registers, most_terms) for each in writers[name])
    }:
        registers -= rejected
    return registers


def _continues(instruction: PtxInstruction, registers: Set[str], most_terms: int) -> bool:
    """Return whether an instruction adds to one of some registers, subtracts from it, or copies it."""
    if instruction.type[:1] not in "usb":
        return False
    terms = [operand in registers for operand in instruction.operands[1:]]
    match instruction.opcode:
        case "add":
            return 1 <= sum(terms) <= most_terms
        case "sub":
            return terms[0] and sum(terms) <= most_terms
        case "mov" | "selp":
            return all(terms[: 1 if instruction.opcode == "mov" else 2])
    return False
