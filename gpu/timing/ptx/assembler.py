"""Transformations of the driver's assembler: predication of short branches, and vectorization of adjacent accesses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpu.timing.ptx.analysis import tiles
from gpu.timing.ptx.analysis.block_order import order_blocks
from gpu.timing.ptx.library_functions import LIBRARY_FUNCTION
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

_MAXIMUM_PREDICATED = 8
"""The longest branch, in instructions, that is predicated instead of jumped over."""

_NOT_PREDICATED = (
    "bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "membar", "fence", "call", "tex",
)  # fmt: skip
_LARGEST_ALIGNMENT = 128


def assemble_kernel(kernel: PtxKernel) -> PtxKernel:
    """Apply the assembler's transformations to a kernel; the result is equivalent PTX."""
    return _vectorize_accesses(_predicate_short_branches(tiles.expand_tile_accesses(order_blocks(_join_parts(kernel)))))


# Parts of ldmatrix.


def _join_parts(kernel: PtxKernel) -> PtxKernel:
    """Join the loads of single matrices, as LLVM's PTX has them, to the instruction that they were."""
    if not any(map(_is_part, kernel.instructions)):
        return kernel
    return replace(
        kernel, blocks=[replace(block, instructions=_join_block_parts(block.instructions)) for block in kernel.blocks]
    )


def _is_part(instruction: PtxInstruction) -> bool:
    return instruction.opcode == "ldmatrix" and "part" in instruction.modifiers


def _join_block_parts(instructions: Sequence[PtxInstruction]) -> list[PtxInstruction]:
    joined: list[PtxInstruction] = []
    groups: dict[tuple[str, tuple[str, ...]], tuple[int, list[str]]] = {}
    for instruction in instructions:
        if not _is_part(instruction):
            joined.append(instruction)
            continue
        register, address, number = instruction.operands
        words = tuple(word for word in instruction.modifiers if word != "part")
        if number == "0":
            groups[address, words] = len(joined), []
            joined.append(instruction)
        place, registers = groups[address, words]
        registers.append(register)
        joined[place] = replace(instruction, modifiers=words, operands=(f"{{{', '.join(registers)}}}", address))
    return joined


# Short branches.


def _predicate_short_branches(kernel: PtxKernel) -> PtxKernel:
    """Predicate the instructions that short branches skip."""
    blocks: dict[int, list[PtxInstruction]] = {block.number: list(block.instructions) for block in kernel.blocks}
    follows = {block.number: block.successors for block in kernel.blocks}
    changed = True
    while changed:
        changed = False
        predecessors: dict[int, list[int]] = defaultdict(list)
        for number, successors in follows.items():
            for each in successors:
                predecessors[each].append(number)
        for number in sorted(blocks):
            successors = follows[number]
            if (
                len(successors) == 1
                and successors[0] > number
                and predecessors[successors[0]] == [number]
                and _has_single_successor(blocks[number])
            ):
                # The next block has no other predecessor, so both are merged.
                (successor,) = successors
                if blocks[number] and blocks[number][-1].opcode == "bra":
                    blocks[number].pop()
                blocks[number] += blocks.pop(successor)
                follows[number] = follows.pop(successor)
                changed = True
                break
            sides = _find_short_sides(number, blocks, follows, predecessors)
            if sides:
                jump = blocks[number].pop()
                join = follows[sides[0]]
                for side in sides:
                    negated = jump.negated if side == follows[number][0] else not jump.negated
                    blocks[number] += [
                        replace(each, guard=jump.guard, negated=negated)
                        for each in blocks.pop(side)
                        if each.opcode != "bra"
                    ]
                for side in sides:
                    del follows[side]
                follows[number] = join
                changed = True
                break
    return _renumber(kernel, blocks, follows)


def _has_single_successor(instructions: Sequence[PtxInstruction]) -> bool:
    """Return whether a block has a single successor."""
    if not instructions or not instructions[-1].ends_block:
        return True
    return instructions[-1].opcode == "bra" and not instructions[-1].guard


def _find_short_sides(
    number: int,
    blocks: Mapping[int, Sequence[PtxInstruction]],
    follows: Mapping[int, tuple[int, ...]],
    predecessors: Mapping[int, Sequence[int]],
) -> tuple[int, ...]:
    """Return the blocks between a short branch and the block where its paths join; empty if it is not predicated.

    A branch has one such block, which it skips, or two: of a condition and of its alternative.
    """
    instructions, successors = blocks[number], follows[number]
    if len(successors) != 2 or not instructions or instructions[-1].opcode != "bra" or not instructions[-1].guard:
        return ()
    target, inner = successors
    if inner <= number or target <= number or predecessors[inner] != [number] or len(follows[inner]) != 1:
        return ()
    sides: tuple[int, ...]
    if follows[inner] == (target,):
        sides = (inner,)
    elif follows[inner] == follows[target] and predecessors[target] == [number]:
        sides = (inner, target)
    else:
        return ()
    body = [each for side in sides for each in blocks[side] if each.opcode != "bra"]
    costs = [sum(not _is_free(each) for each in blocks[side] if each.opcode != "bra") for side in sides]
    if max(costs) > _MAXIMUM_PREDICATED or any(
        each.guard or each.opcode in _NOT_PREDICATED or each.opcode in ("ret", "exit") for each in body
    ):
        return ()
    if any(instructions[-1].guard in each.written_registers for each in body):
        return ()
    if any(
        each.opcode in ("div", "rem", "sqrt", "rcp", LIBRARY_FUNCTION) and "approx" not in each.modifiers
        for each in body
    ):
        return ()
    return sides


def _is_free(instruction: PtxInstruction) -> bool:
    opcode, words = instruction.opcode, instruction.modifiers
    return opcode in ("mov", "cvta") or (opcode == "ld" and "param" in words) or (opcode == "mul" and "wide" in words)


def _renumber(
    kernel: PtxKernel, blocks: Mapping[int, list[PtxInstruction]], follows: Mapping[int, tuple[int, ...]]
) -> PtxKernel:
    """Renumber blocks consecutively."""
    order = sorted(blocks)
    new_numbers = {number: index for index, number in enumerate(order)}
    not_unrolled = {block.number for block in kernel.blocks if block.is_unroll_disabled}
    new_blocks = [
        BasicBlock(
            new_numbers[number],
            f"B{number}",
            blocks[number],
            tuple(new_numbers[each] for each in follows[number]),
            number in not_unrolled,
        )
        for number in order
    ]
    return replace(kernel, blocks=new_blocks)


# Adjacent accesses.


def _vectorize_accesses(kernel: PtxKernel) -> PtxKernel:
    """Merge loads and stores of adjacent words of shared memory into those of 8 or 16 bytes."""
    alignments = _Alignments(kernel)
    blocks = [replace(block, instructions=_merge_accesses(block.instructions, alignments)) for block in kernel.blocks]
    return replace(kernel, blocks=blocks)


class _SharedAccess(NamedTuple):
    """A load or a store of a single 4-byte word of shared memory."""

    opcode: str
    base: str
    offset: int
    type: str
    register: str


def _merge_accesses(instructions: Sequence[PtxInstruction], alignments: _Alignments) -> list[PtxInstruction]:
    groups: dict[tuple[str, str, str, str, bool], dict[int, int]] = {}
    runs: list[dict[int, int]] = []

    def end_groups(keys: Iterable[tuple[str, str, str, str, bool]]) -> None:
        runs.extend(groups.pop(key) for key in list(keys))

    for index, instruction in enumerate(instructions):
        access = _match_shared_access(instruction)
        own = access and (access.opcode, access.base, access.type, instruction.guard, instruction.negated)
        if _changes_shared(instruction):
            end_groups(key for key in groups if key != own)
        elif _reads_shared(instruction):
            end_groups(key for key in groups if key[0] == "st")
        if access is not None and own is not None:
            if access.opcode == "st" and access.offset in groups.get(own, {}):
                end_groups([own])
            groups.setdefault(own, {}).setdefault(access.offset, index)
        for name in instruction.written_registers:
            end_groups(key for key in groups if name in (key[1], key[3]))
    end_groups(groups)
    replaced: dict[int, PtxInstruction | None] = {}
    for run in runs:
        for offsets in _group_vectors(run, instructions, alignments):
            indices = [run[offset] for offset in offsets]
            accesses = [access for index in indices if (access := _match_shared_access(instructions[index]))]
            opcode, base, _, type, _ = accesses[0]
            names = [access.register for access in accesses]
            if opcode == "ld" and len(set(names)) < len(names):
                continue
            words, vector = ("shared", f"v{len(indices)}", type), "{" + ", ".join(names) + "}"
            address = f"[{base}+{offsets[0]}]"
            # All are loaded at the first load, and stored at the last store.
            place = min(indices) if opcode == "ld" else max(indices)
            replaced.update(dict.fromkeys(indices))
            operands = (vector, address) if opcode == "ld" else (address, vector)
            replaced[place] = replace(instructions[place], modifiers=words, operands=operands)
    merged = (replaced.get(index, instruction) for index, instruction in enumerate(instructions))
    return [instruction for instruction in merged if instruction is not None]


def _group_vectors(
    run: Mapping[int, int], instructions: Sequence[PtxInstruction], alignments: _Alignments
) -> list[list[int]]:
    vectors: list[list[int]] = []
    used: set[int] = set()
    sample = _match_shared_access(instructions[next(iter(run.values()))])
    assert sample is not None
    alignment = alignments.find_alignment(sample.base)
    for width in (4, 2):
        if alignment % (4 * width):
            continue
        for offset in sorted(run):
            offsets = [offset + 4 * step for step in range(width)]
            if offset % (4 * width) or not all(each in run and each not in used for each in offsets):
                continue
            if not _is_used_between([run[each] for each in offsets], instructions):
                used.update(offsets)
                vectors.append(offsets)
    return vectors


def _is_used_between(indices: Sequence[int], instructions: Sequence[PtxInstruction]) -> bool:
    """Return whether a register is used between the first load and its own, or written until the last store."""
    for index in indices:
        access = _match_shared_access(instructions[index])
        assert access is not None
        if access.opcode == "ld":
            if any(
                access.register in (*each.read_registers, *each.written_registers)
                for each in instructions[min(indices) : index]
            ):
                return True
        elif any(access.register in each.written_registers for each in instructions[index : max(indices)]):
            return True
    return False


def _match_shared_access(instruction: PtxInstruction) -> _SharedAccess | None:
    opcode, words, operands = instruction.opcode, instruction.modifiers, instruction.operands
    if opcode not in ("ld", "st") or words[:1] != ("shared",) or len(words) != 2:
        return None
    if words[1] not in ("f32", "u32", "b32", "s32"):
        return None
    register, place = operands if opcode == "ld" else operands[::-1]
    match = re.fullmatch(r"\[([%\w$]+)(?:\+(-?\d+))?\]", place)
    if match is None or not register.startswith("%"):
        return None
    return _SharedAccess(opcode, match[1], int(match[2] or 0), words[1], register)


def _reads_shared(instruction: PtxInstruction) -> bool:
    return instruction.opcode in ("ld", "ldmatrix", "cp", "tex") and "global" not in instruction.modifiers


def _changes_shared(instruction: PtxInstruction) -> bool:
    opcode, words = instruction.opcode, instruction.modifiers
    return opcode in ("bar", "barrier", "membar", "fence", "call") or (
        opcode in ("st", "atom", "red") and "global" not in words
    )


class _Alignments:
    """The known alignments of addresses, in bytes."""

    def __init__(self, kernel: PtxKernel) -> None:
        self._writers = kernel.find_writers()
        self._by_register: dict[str, int] = {}

    def find_alignment(self, operand: str) -> int:
        """Return the largest power of two, up to 128, that is known to divide an operand."""
        if re.fullmatch(r"-?\d+", operand):
            number = int(operand)
            return min(number & -number, _LARGEST_ALIGNMENT) if number else _LARGEST_ALIGNMENT
        if not operand.startswith("%"):
            return 16  # the assembler aligns arrays to 16 bytes
        if operand not in self._by_register:
            self._by_register[operand] = _LARGEST_ALIGNMENT  # neutral for a value that depends on itself in a loop
            self._by_register[operand] = min(
                (self._find_result_alignment(each) for each in self._writers[operand]), default=1
            )
        return self._by_register[operand]

    def _find_result_alignment(self, each: PtxInstruction) -> int:
        sources = each.operands[1:]
        match each.opcode:
            case "mov" | "cvta" | "cvt":
                return self.find_alignment(sources[0])
            case "add" | "sub" | "or" | "min" | "max" | "xor":
                return min(self.find_alignment(source) for source in sources)
            case "and":
                return max(self.find_alignment(source) for source in sources)
            case "shl" if re.fullmatch(r"\d+", sources[1]):
                return min(self.find_alignment(sources[0]) << int(sources[1]), _LARGEST_ALIGNMENT)
            case "mul":
                return min(self.find_alignment(sources[0]) * self.find_alignment(sources[1]), _LARGEST_ALIGNMENT)
            case "mad":
                return min(
                    self.find_alignment(sources[0]) * self.find_alignment(sources[1]),
                    self.find_alignment(sources[2]),
                    _LARGEST_ALIGNMENT,
                )
            case "selp":
                return min(self.find_alignment(source) for source in sources[:2])
        return 1
