"""What of a kernel decides where its lanes go and what they ask of memory: the rest need not be computed."""

from __future__ import annotations

from gpu.timing.ptx.program import PtxInstruction, PtxKernel

_SPACES = ("global", "shared", "local", "const")
ASKS = ("ld", "ldu", "st", "atom", "red", "tex")
"""What asks something of memory."""
_ALWAYS = ("bar", "barrier", "call")


def deciding(kernel: PtxKernel) -> set[PtxInstruction]:
    """Return the instructions whose values decide a jump, a predicate of what is asked of memory, or an address.

    What is loaded decides where it was computed before and stored, so that what is stored there decides, too: of the
    state spaces each for itself, what may be in any of them in all.
    """
    instructions = [each for block in kernel.blocks for each in block.instructions]
    wanted: set[str] = set()
    read_spaces: set[str] = set()
    found: set[PtxInstruction] = set()
    for each in instructions:
        wanted.update(_of_the_way(each))
    before = -1
    while before != len(found) + len(wanted):
        before = len(found) + len(wanted)
        for each in instructions:
            if each in found:
                continue
            stores = each.opcode in ("st", "red", "atom") and not read_spaces.isdisjoint(_spaces(each))
            if not stores and wanted.isdisjoint(each.written):
                continue
            found.add(each)
            wanted.update(each.read)
            if each.opcode in ("ld", "ldu", "atom", "tex") and "param" not in each.words:
                read_spaces.update(_spaces(each))
    return found


def _of_the_way(instruction: PtxInstruction) -> tuple[str, ...]:
    """Return the registers of an instruction that decide, whatever becomes of its value."""
    if instruction.ends_block or instruction.opcode in _ALWAYS:
        return instruction.read
    if instruction.opcode not in ASKS or "param" in instruction.words:
        return ()
    addressed = [name for name in instruction.read if any(_addresses(name, each) for each in instruction.operands)]
    return (*addressed, instruction.guard) if instruction.guard else tuple(addressed)


def _addresses(register: str, operand: str) -> bool:
    return operand.startswith("[") and register in operand


def _spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    return tuple(word for word in instruction.words if word in _SPACES) or _SPACES
