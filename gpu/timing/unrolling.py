"""Loop unrolling as in the assembler: four iterations of a short counted loop become one, with one test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu.timing.ptx.path import Repeated, SampledPath, Step, Visit
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

ROUNDS = 4
_MAXIMUM_INSTRUCTIONS = 48
_NOT_UNROLLED = ("bar", "barrier", "shfl", "vote", "match", "redux", "atom", "red", "membar", "fence", "call", "pragma")


def unrolled(kernel: PtxKernel) -> tuple[PtxKernel, dict[int, int]]:
    """Return a kernel with an added block for four iterations of each unrollable loop, and the new block by old one."""
    blocks = list(kernel.blocks)
    unrolled_blocks: dict[int, int] = {}
    for block in kernel.blocks:
        counters = _counters(block)
        if counters is None:
            continue
        unrolled_blocks[block.number] = len(blocks)
        blocks.append(
            BasicBlock(len(blocks), f"{block.label} x{ROUNDS}", _unrolled_instructions(block, counters), block.follows)
        )
    return replace(kernel, blocks=blocks), unrolled_blocks


def _counters(block: BasicBlock) -> frozenset[str] | None:
    """Return the registers that a single-block loop increments by constants; None if it is not unrolled."""
    instructions = block.instructions
    if block.number not in block.follows or len(block.follows) != 2 or len(instructions) > _MAXIMUM_INSTRUCTIONS:
        return None
    if block.keeps_rounds or any(each.opcode in _NOT_UNROLLED or "volatile" in each.words for each in instructions):
        return None
    incremented = {
        each.operands[0]
        for each in instructions
        if each.opcode in ("add", "sub")
        and each.operands[1] == each.operands[0]
        and re.fullmatch(r"-?\d+", each.operands[2])
    }
    tests = [each for each in instructions if instructions[-1].guard in each.written]
    if len(tests) != 1 or tests[0].opcode != "setp" or tests[0].type.startswith("f"):
        return None
    compared_registers = [operand for operand in tests[0].operands[1:] if operand.startswith("%")]
    if not any(name in incremented for name in compared_registers):
        return None
    return frozenset(incremented) | {instructions[-1].guard}


def _unrolled_instructions(block: BasicBlock, counters: frozenset[str]) -> list[PtxInstruction]:
    """Return four iterations, in which counters are incremented once and their uses are folded."""
    instructions: list[PtxInstruction] = []
    for number in range(ROUNDS):
        is_last = number == ROUNDS - 1
        for each in block.instructions:
            is_counter = bool(each.written) and each.written[0] in counters
            if is_counter or each.ends_block:
                # Placeholders keep the index of every request.
                instructions.append(each if is_last else PtxInstruction("pragma", (), ()))
            else:
                instructions.append(replace(each))
    return instructions


def in_rounds(path: SampledPath, kernel: PtxKernel, several: dict[int, int]) -> SampledPath:
    """Merge each four visits of an unrolled loop in a path into one."""
    if not several:
        return path
    return replace(path, steps=_merge_visits(path.steps, kernel, several))


def _merge_visits(steps: Sequence[Step], kernel: PtxKernel, several: dict[int, int]) -> list[Step]:
    merged: list[Step] = []
    index = 0
    while index < len(steps):
        step = steps[index]
        if isinstance(step, Repeated):
            merged.append(Repeated(step.times, tuple(_merge_visits(step.round, kernel, several))))
            index += 1
            continue
        group = [step]
        if step.block in several:
            for following in steps[index + 1 : index + ROUNDS]:
                if (
                    not isinstance(following, Visit)
                    or following.block != step.block
                    or not np.array_equal(following.lanes, step.lanes)
                ):
                    break
                group.append(following)
        if len(group) == ROUNDS:
            length = len(kernel.blocks[step.block].instructions)
            requests = tuple(request for each in group for request in each.requests)
            offsets = (place + number * length for number, each in enumerate(group) for place in each.places)
            merged.append(Visit(several[step.block], step.lanes, requests, tuple(offsets)))
            index += ROUNDS
        else:
            merged.append(step)
            index += 1
    return merged
