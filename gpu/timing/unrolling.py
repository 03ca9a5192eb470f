"""Loops that the assembler unrolls: four rounds of a short counted loop become one, with one test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu.timing.ptx.path import Repeated, SampledPath, Step, Visit
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

ROUNDS = 4
_MOST_INSTRUCTIONS = 48
_NOT_UNROLLED = ("bar", "barrier", "shfl", "vote", "match", "redux", "atom", "red", "membar", "fence", "call", "pragma")


def unrolled(kernel: PtxKernel) -> tuple[PtxKernel, dict[int, int]]:
    """Return a kernel with another block for four rounds of each loop that is unrolled, and which block that is."""
    blocks = list(kernel.blocks)
    several: dict[int, int] = {}
    for block in kernel.blocks:
        counters = _counters(block)
        if counters is None:
            continue
        several[block.number] = len(blocks)
        blocks.append(BasicBlock(len(blocks), f"{block.label} x{ROUNDS}", _rounds(block, counters), block.follows))
    return replace(kernel, blocks=blocks), several


def _counters(block: BasicBlock) -> frozenset[str] | None:
    """Return the registers that count a loop of one block by constant steps; None where it is not unrolled."""
    instructions = block.instructions
    if block.number not in block.follows or len(block.follows) != 2 or len(instructions) > _MOST_INSTRUCTIONS:
        return None
    if block.keeps_rounds or any(each.opcode in _NOT_UNROLLED or "volatile" in each.words for each in instructions):
        return None
    stepped = {
        each.operands[0]
        for each in instructions
        if each.opcode in ("add", "sub")
        and each.operands[1] == each.operands[0]
        and re.fullmatch(r"-?\d+", each.operands[2])
    }
    deciding = [each for each in instructions if instructions[-1].guard in each.written]
    if len(deciding) != 1 or deciding[0].opcode != "setp" or deciding[0].type.startswith("f"):
        return None
    compared = [operand for operand in deciding[0].operands[1:] if operand.startswith("%")]
    if not any(name in stepped for name in compared):
        return None
    return frozenset(stepped) | {instructions[-1].guard}


def _rounds(block: BasicBlock, counters: frozenset[str]) -> list[PtxInstruction]:
    """Return four rounds: counters are stepped once, and what they are used for is folded."""
    made: list[PtxInstruction] = []
    for number in range(ROUNDS):
        last = number == ROUNDS - 1
        for each in block.instructions:
            counts = bool(each.written) and each.written[0] in counters
            if counts or each.ends_block:
                # Every request keeps its place, so that what is left out leaves a hole.
                made.append(each if last else PtxInstruction("pragma", (), ()))
            else:
                made.append(replace(each))
    return made


def in_rounds(path: SampledPath, kernel: PtxKernel, several: dict[int, int]) -> SampledPath:
    """Return a path in which four visits of a loop that is unrolled are one."""
    if not several:
        return path
    return replace(path, steps=_in_rounds(path.steps, kernel, several))


def _in_rounds(steps: Sequence[Step], kernel: PtxKernel, several: dict[int, int]) -> list[Step]:
    made: list[Step] = []
    place = 0
    while place < len(steps):
        step = steps[place]
        if isinstance(step, Repeated):
            made.append(Repeated(step.times, tuple(_in_rounds(step.round, kernel, several))))
            place += 1
            continue
        group = [step]
        if step.block in several:
            for other in steps[place + 1 : place + ROUNDS]:
                if (
                    not isinstance(other, Visit)
                    or other.block != step.block
                    or not np.array_equal(other.lanes, step.lanes)
                ):
                    break
                group.append(other)
        if len(group) == ROUNDS:
            length = len(kernel.blocks[step.block].instructions)
            requests = tuple(request for each in group for request in each.requests)
            offsets = (place + number * length for number, each in enumerate(group) for place in each.places)
            made.append(Visit(several[step.block], step.lanes, requests, tuple(offsets)))
            place += ROUNDS
        else:
            made.append(step)
            place += 1
    return made
