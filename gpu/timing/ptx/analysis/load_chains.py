"""Dependent load chains of a basic block: loads at the same depth are issued together."""

from __future__ import annotations

from gpu.timing.ptx.program import BasicBlock

_NEAR_SPACES = ("shared", "const", "param")


def compute_load_depths(block: BasicBlock) -> list[int]:
    """Return for each instruction the length of the longest chain of global loads that it depends on.

    An instruction after a barrier depends on all instructions before it.
    """
    depth_of_register: dict[str, int] = {}
    depths = []
    barrier_depth = 0
    for instruction in block.instructions:
        depth = max([barrier_depth, *(depth_of_register.get(name, 0) for name in instruction.read_registers)])
        depths.append(depth)
        if instruction.opcode in ("bar", "barrier") and "warp" not in instruction.modifiers:
            barrier_depth = max(depths) + 1
        loads = instruction.opcode in ("ld", "ldu", "atom", "tex") and not any(
            word in _NEAR_SPACES for word in instruction.modifiers
        )
        for name in instruction.written_registers:
            depth_of_register[name] = depth + loads
    return depths
