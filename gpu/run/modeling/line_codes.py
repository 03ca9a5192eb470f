"""Machine code of each source line of a kernel file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpu.messages.modeled_time import LineCode
from gpu.timing.compiler import MachineKernel
from gpu.timing.sass.machine_lines import group_machine_lines


def collect_line_codes(kernels: Mapping[tuple[str, str], MachineKernel]) -> dict[str, dict[int, LineCode]]:
    """Return the machine code per file and line, summed over all kernels.

    Parameters
    ----------
    kernels : mapping
        The assembler's output for each kernel, by the kernel's file and name.
    """
    opcodes_by_line: dict[str, dict[int, Counter[str]]] = {}
    local: Counter[tuple[str, int]] = Counter()
    for (file, _), code in kernels.items():
        for machine_line in group_machine_lines(code.instructions):
            opcodes_by_line.setdefault(file, {}).setdefault(machine_line.line, Counter()).update(machine_line.opcodes)
            local[file, machine_line.line] += machine_line.local_accesses
    return {
        file: {
            line: LineCode(opcodes.total(), local[file, line], dict(opcodes.most_common()))
            for line, opcodes in lines.items()
        }
        for file, lines in opcodes_by_line.items()
    }
