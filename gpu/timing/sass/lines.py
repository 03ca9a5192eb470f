"""What each line of a kernel file became."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpu.timing.sass.cubin import MachineInstruction

_SPILLS = ("LDL", "STL")


@dataclass(frozen=True)
class MachineLine:
    """A line of a kernel file in machine instructions: those of one kernel, each counted once however often it runs.

    Parameters
    ----------
    line : int
    instructions : int
    local : int
        Of those, how many load from local memory or store to it: spilled registers, and arrays of a thread.
    opcodes : dict of str to int
        The most frequent first.
    """

    line: int
    instructions: int
    local: int
    opcodes: dict[str, int]


def machine_lines(instructions: Iterable[MachineInstruction]) -> list[MachineLine]:
    """Return the lines that a kernel's instructions are of, in order; what is of no line is left out."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for each in instructions:
        if each.line:
            found[each.line][each.opcode] += 1
    return [
        MachineLine(line, opcodes.total(), sum(opcodes[name] for name in _SPILLS), dict(opcodes.most_common()))
        for line, opcodes in sorted(found.items())
    ]
