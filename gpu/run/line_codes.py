"""What the lines of kernels' files became in machine code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpu.messages.modeled import LineCode
from gpu.timing.compiler import MachineKernel
from gpu.timing.sass.lines import machine_lines


def line_codes(kernels: Mapping[tuple[str, str], MachineKernel]) -> dict[str, dict[int, LineCode]]:
    """Return what each line of each file became, in all kernels together.

    Parameters
    ----------
    kernels : mapping
        What the assembler made of each, by its file and its name.
    """
    found: dict[str, dict[int, Counter[str]]] = {}
    local: Counter[tuple[str, int]] = Counter()
    for (file, _), code in kernels.items():
        for each in machine_lines(code.instructions):
            found.setdefault(file, {}).setdefault(each.line, Counter()).update(each.opcodes)
            local[file, each.line] += each.local
    return {
        file: {
            line: LineCode(opcodes.total(), local[file, line], dict(opcodes.most_common()))
            for line, opcodes in lines.items()
        }
        for file, lines in found.items()
    }
