"""Which loads of a basic block wait for others: those that wait for the same number of them go out together."""

from __future__ import annotations

from gpu.timing.ptx.program import BasicBlock

_NEAR = ("shared", "const", "param")


def loads_before(block: BasicBlock) -> list[int]:
    """Return of each instruction how many loads from global memory it waits for, one behind the other.

    What stands behind a barrier waits for all that stands before it.
    """
    of_register: dict[str, int] = {}
    found = []
    behind = 0
    for each in block.instructions:
        own = max([behind, *(of_register.get(name, 0) for name in each.read)])
        found.append(own)
        if each.opcode in ("bar", "barrier") and "warp" not in each.words:
            behind = max(found) + 1
        loads = each.opcode in ("ld", "ldu", "atom", "tex") and not any(word in _NEAR for word in each.words)
        for name in each.written:
            of_register[name] = own + loads
    return found
