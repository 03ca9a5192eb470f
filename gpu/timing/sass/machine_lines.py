"""The machine instructions of each line of a kernel file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpu.timing.sass.cubin import MachineInstruction

_SPILLS = ("LDL", "STL")


@dataclass(frozen=True)
class MachineLine:
    """The machine instructions of a source line in one kernel, each counted once regardless of how often it runs.

    Parameters
    ----------
    line : int
    instructions : int
    local_accesses : int
        The number of loads from and stores to local memory: spilled registers and local arrays.
    opcodes : dict of str to int
        The number of instructions by opcode, most frequent first.
    """

    line: int
    instructions: int
    local_accesses: int
    opcodes: dict[str, int]


def group_machine_lines(instructions: Iterable[MachineInstruction]) -> list[MachineLine]:
    """Group a kernel's instructions by source line, in order; instructions without a line are omitted."""
    counts_by_line: dict[int, Counter[str]] = defaultdict(Counter)
    for instruction in instructions:
        if instruction.line:
            counts_by_line[instruction.line][instruction.opcode] += 1
    return [
        MachineLine(line, opcodes.total(), sum(opcodes[name] for name in _SPILLS), dict(opcodes.most_common()))
        for line, opcodes in sorted(counts_by_line.items())
    ]
