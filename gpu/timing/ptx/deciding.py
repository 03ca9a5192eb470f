"""What of a kernel decides where its lanes go and what they ask of memory: the rest need not be computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpu.timing.ptx.program import PtxInstruction, PtxKernel

_SPACES = ("global", "shared", "local", "const")
ASKS = ("ld", "ldu", "st", "atom", "red", "tex", "cp", "ldmatrix")
"""What asks something of memory."""
_ALWAYS = ("bar", "barrier", "call")


def deciding(kernel: PtxKernel) -> set[PtxInstruction]:
    """Return the instructions whose values decide a jump, a predicate of what is asked of memory, or an address.

    What is loaded decides where it was computed before and stored, so that what is stored there decides, too: of the
    state spaces each for itself, what may be in any of them in all.
    """
    return _found(kernel, {name for each in _instructions(kernel) for name in _of_the_way(each)}, _spaces)


def leading(kernel: PtxKernel) -> set[PtxInstruction] | None:
    """Return the instructions whose values decide a jump; None where what the kernel itself stores does."""
    instructions = _instructions(kernel)
    wanted = {name for each in instructions if each.ends_block or each.opcode in _ALWAYS for name in each.read}
    found = _found(kernel, wanted, lambda store: ())
    looked_at = [each for each in found if each.opcode in ASKS and "param" not in each.words]
    changed = [each for each in instructions if each.opcode in ("st", "atom", "red")]
    if any(each.opcode == "call" for each in instructions) or not set(changed).isdisjoint(found):
        return None
    makers: dict[str, list[PtxInstruction]] = {}
    for each in instructions:
        for name in each.written:
            makers.setdefault(name, []).append(each)
    for store in changed:
        for load in looked_at:
            if not set(_spaces(store)).isdisjoint(_spaces(load)) and not _are_apart(store, load, makers):
                return None
    return found


def _are_apart(one: PtxInstruction, other: PtxInstruction, makers: Mapping[str, Sequence[PtxInstruction]]) -> bool:
    """Whether two addresses are in arrays that the kernel was given as different arguments."""
    arrays = [_arguments(each, makers) for each in (one, other)]
    return all(arrays) and arrays[0].isdisjoint(arrays[1])


def _arguments(instruction: PtxInstruction, makers: Mapping[str, Sequence[PtxInstruction]]) -> set[str]:
    """Return the pointers among a kernel's arguments that an address is made of."""
    waiting = [name for name in instruction.read if any(_addresses(name, each) for each in instruction.operands)]
    seen, found = set(waiting), set[str]()
    while waiting:
        for maker in makers.get(waiting.pop(), ()):
            if maker.opcode in ("ld", "ldu") and "param" in maker.words:
                found.update(maker.operands[1:] if maker.type[1:] == "64" else ())
            elif maker.opcode not in ASKS:
                waiting += [name for name in maker.read if name not in seen]
                seen.update(maker.read)
    return found


def _instructions(kernel: PtxKernel) -> list[PtxInstruction]:
    return [each for block in kernel.blocks for each in block.instructions]


def _found(
    kernel: PtxKernel, wanted: set[str], stores_to: Callable[[PtxInstruction], Sequence[str]]
) -> set[PtxInstruction]:
    """Return the instructions that make some registers' values, and what is stored where those are loaded from."""
    instructions = _instructions(kernel)
    read_spaces: set[str] = set()
    found: set[PtxInstruction] = set()
    before = -1
    while before != len(found) + len(wanted):
        before = len(found) + len(wanted)
        for each in instructions:
            if each in found:
                continue
            stores = each.opcode in ("st", "red", "atom") and not read_spaces.isdisjoint(stores_to(each))
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
    if instruction.opcode == "cp":
        return instruction.read
    addressed = [name for name in instruction.read if any(_addresses(name, each) for each in instruction.operands)]
    return (*addressed, instruction.guard) if instruction.guard else tuple(addressed)


def _addresses(register: str, operand: str) -> bool:
    return operand.startswith("[") and register in operand


def _spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    return tuple(word for word in instruction.words if word in _SPACES) or _SPACES
