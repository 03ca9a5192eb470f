"""What the driver's assembler makes of PTX: short branches become guards, loads side by side become one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu.timing.ptx import tiles
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel, placed

_MOST_GUARDED = 8
"""Instructions of a branch that are guarded rather than jumped over."""

_NOT_GUARDED = (
    "bar",
    "barrier",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
    "elect",
    "membar",
    "fence",
    "call",
    "tex",
)
_LARGEST_ALIGNMENT = 128


def assembled(kernel: PtxKernel) -> PtxKernel:
    """Return a kernel as the assembler would have it, in PTX still: it computes the same."""
    return _vectorized(_guarded(tiles.by_lanes(kernel)))


# Short branches.


def _guarded(kernel: PtxKernel) -> PtxKernel:
    """Return a kernel in which what short branches lead around is guarded by their condition instead."""
    blocks: dict[int, list[PtxInstruction]] = {block.number: list(block.instructions) for block in kernel.blocks}
    follows = {block.number: block.follows for block in kernel.blocks}
    changed = True
    while changed:
        changed = False
        before: dict[int, list[int]] = defaultdict(list)
        for number, ways in follows.items():
            for each in ways:
                before[each].append(number)
        for number in sorted(blocks):
            ways = follows[number]
            if len(ways) == 1 and ways[0] > number and before[ways[0]] == [number] and _falls(blocks[number]):
                # Nobody else comes there: the two are one.
                (behind,) = ways
                if blocks[number] and blocks[number][-1].opcode == "bra":
                    blocks[number].pop()
                blocks[number] += blocks.pop(behind)
                follows[number] = follows.pop(behind)
                changed = True
                break
            inner = _inner(number, blocks, follows, before)
            if inner is not None:
                jump = blocks[number].pop()
                body = blocks.pop(inner)
                if body and body[-1].opcode == "bra":
                    body.pop()
                blocks[number] += [replace(each, guard=jump.guard, negated=not jump.negated) for each in body]
                follows[number] = follows.pop(inner)
                changed = True
                break
    return _renumbered(kernel, blocks, follows)


def _falls(instructions: Sequence[PtxInstruction]) -> bool:
    """Whether a block goes on at one place, whatever happens."""
    if not instructions or not instructions[-1].ends_block:
        return True
    return instructions[-1].opcode == "bra" and not instructions[-1].guard


def _inner(
    number: int,
    blocks: Mapping[int, Sequence[PtxInstruction]],
    follows: Mapping[int, tuple[int, ...]],
    before: Mapping[int, Sequence[int]],
) -> int | None:
    """Return the block that a short branch leads around; None where there is none, or it is not to be guarded."""
    instructions, ways = blocks[number], follows[number]
    if len(ways) != 2 or not instructions or instructions[-1].opcode != "bra" or not instructions[-1].guard:
        return None
    target, inner = ways
    if inner <= number or target <= number or before[inner] != [number] or follows[inner] != (target,):
        return None
    body = [each for each in blocks[inner] if each.opcode != "bra"]
    costly = [each for each in body if not _is_free(each)]
    if len(costly) > _MOST_GUARDED or any(
        each.guard or each.opcode in _NOT_GUARDED or each.opcode in ("ret", "exit") for each in body
    ):
        return None
    if any(instructions[-1].guard in each.written for each in body):
        return None
    if any(each.opcode in ("div", "rem", "sqrt", "rcp") and "approx" not in each.words for each in body):
        return None
    return inner


def _is_free(instruction: PtxInstruction) -> bool:
    opcode, words = instruction.opcode, instruction.words
    return opcode in ("mov", "cvta") or (opcode == "ld" and "param" in words) or (opcode == "mul" and "wide" in words)


def _renumbered(
    kernel: PtxKernel, blocks: Mapping[int, list[PtxInstruction]], follows: Mapping[int, tuple[int, ...]]
) -> PtxKernel:
    """Put blocks one behind the other again; those that do not go on with the next get a jump of their own."""
    order = sorted(blocks)
    places = {number: place for place, number in enumerate(order)}
    kept = {block.number for block in kernel.blocks if block.keeps_rounds}
    made = [
        BasicBlock(
            places[number],
            f"B{number}",
            blocks[number],
            tuple(places[each] for each in follows[number]),
            number in kept,
        )
        for number in order
    ]
    return replace(kernel, blocks=made)


# Loads side by side.


def _vectorized(kernel: PtxKernel) -> PtxKernel:
    """Return a kernel in which loads of neighboring words of shared memory are one load of 8 or 16 bytes."""
    alignments = _Alignments(kernel)
    made = [replace(block, instructions=_joined(block.instructions, alignments)) for block in kernel.blocks]
    return replace(kernel, blocks=made)


def _joined(instructions: Sequence[PtxInstruction], alignments: _Alignments) -> list[PtxInstruction]:
    groups: dict[tuple[str, str, str, bool], dict[int, int]] = {}
    runs: list[dict[int, int]] = []

    def finish(key: tuple[str, str, str, bool]) -> None:
        runs.append(groups.pop(key))

    for place, each in enumerate(instructions):
        if _changes_shared(each):
            for key in list(groups):
                finish(key)
        parts = _plain_shared_load(each)
        if parts is not None:
            base, offset, type = parts
            group = groups.setdefault((base, type, each.guard, each.negated), {})
            if offset not in group:
                group[offset] = place
        for name in each.written:
            for key in [key for key in groups if key[0] == name or key[2] == name]:
                finish(key)
    for key in list(groups):
        finish(key)
    replaced: dict[int, PtxInstruction | None] = {}
    for run in runs:
        for offsets in _vectors(run, instructions, alignments):
            places = [run[offset] for offset in offsets]
            first = instructions[min(places)]
            parts = _plain_shared_load(first)
            assert parts is not None
            base, _, type = parts
            names = "{" + ", ".join(instructions[place].operands[0] for place in places) + "}"
            if len({instructions[place].operands[0] for place in places}) < len(places):
                continue
            words = ("shared", f"v{len(places)}", type)
            address = f"[{base}+{offsets[0]}]"
            for place in places:
                replaced[place] = None
            replaced[min(places)] = replace(first, words=words, operands=(names, address))
    kept = []
    for place, each in enumerate(instructions):
        new = replaced.get(place, each)
        if new is not None:
            kept.append(new)
    return kept


def _vectors(
    run: Mapping[int, int], instructions: Sequence[PtxInstruction], alignments: _Alignments
) -> list[list[int]]:
    found: list[list[int]] = []
    taken: set[int] = set()
    sample = next(iter(run.values()), None)
    if sample is None:
        return found
    parts = _plain_shared_load(instructions[sample])
    assert parts is not None
    aligned = alignments.of(parts[0])
    for width in (4, 2):
        if aligned % (4 * width):
            continue
        for offset in sorted(run):
            wanted = [offset + 4 * step for step in range(width)]
            if offset % (4 * width) or not all(each in run and each not in taken for each in wanted):
                continue
            if not _used_between([run[each] for each in wanted], instructions):
                taken.update(wanted)
                found.append(wanted)
    return found


def _used_between(places: Sequence[int], instructions: Sequence[PtxInstruction]) -> bool:
    """Whether what later ones of some loads give is read or written between the first of them and themselves."""
    first = min(places)
    for place in places:
        name = instructions[place].operands[0]
        for each in instructions[first:place]:
            if name in each.read or name in each.written:
                return True
    return False


def _plain_shared_load(instruction: PtxInstruction) -> tuple[str, int, str] | None:
    """Return base, offset and type of a load of one 4-byte word of shared memory."""
    if instruction.opcode != "ld" or instruction.words[:1] != ("shared",) or len(instruction.words) != 2:
        return None
    if instruction.words[1] not in ("f32", "u32", "b32", "s32"):
        return None
    found = re.fullmatch(r"\[([%\w$]+)(?:\+(-?\d+))?\]", instruction.operands[1])
    return (found[1], int(found[2] or 0), instruction.words[1]) if found else None


def _changes_shared(instruction: PtxInstruction) -> bool:
    opcode, words = instruction.opcode, instruction.words
    return opcode in ("bar", "barrier", "membar", "fence", "call") or (
        opcode in ("st", "atom", "red") and "global" not in words
    )


class _Alignments:
    """What is known of the bytes that addresses are multiples of."""

    def __init__(self, kernel: PtxKernel) -> None:
        self._writers: dict[str, list[PtxInstruction]] = defaultdict(list)
        for block in kernel.blocks:
            for each in block.instructions:
                for name in each.written:
                    self._writers[name].append(each)
        self._places = placed(kernel.shared)[0]
        self._known: dict[str, int] = {}

    def of(self, operand: str) -> int:
        """Return the largest power of two, up to 128, that an operand is known to be a multiple of."""
        if re.fullmatch(r"-?\d+", operand):
            number = int(operand)
            return min(number & -number, _LARGEST_ALIGNMENT) if number else _LARGEST_ALIGNMENT
        if not operand.startswith("%"):
            if operand in self._places:
                return 16  # the assembler places arrays itself
            return 16
        if operand not in self._known:
            self._known[operand] = _LARGEST_ALIGNMENT  # of a loop: whatever its other values are
            self._known[operand] = min((self._made_by(each) for each in self._writers[operand]), default=1)
        return self._known[operand]

    def _made_by(self, each: PtxInstruction) -> int:
        sources = each.operands[1:]
        match each.opcode:
            case "mov" | "cvta" | "cvt":
                return self.of(sources[0])
            case "add" | "sub" | "or" | "min" | "max" | "xor":
                return min(self.of(source) for source in sources)
            case "and":
                return max(self.of(source) for source in sources)
            case "shl" if re.fullmatch(r"\d+", sources[1]):
                return min(self.of(sources[0]) << int(sources[1]), _LARGEST_ALIGNMENT)
            case "mul":
                return min(self.of(sources[0]) * self.of(sources[1]), _LARGEST_ALIGNMENT)
            case "mad":
                return min(self.of(sources[0]) * self.of(sources[1]), self.of(sources[2]), _LARGEST_ALIGNMENT)
            case "selp":
                return min(self.of(source) for source in sources[:2])
        return 1
