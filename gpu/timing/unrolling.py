"""Loop unrolling as in the assembler: four iterations of a short counted loop become one, with one test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu.timing.ptx.path import RepeatedIterations, SampledPath, Step, Visit
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

UNROLL_FACTOR = 4
_MAXIMUM_INSTRUCTIONS = 48
_NOT_UNROLLED = ("bar", "barrier", "shfl", "vote", "match", "redux", "atom", "red", "membar", "fence", "call", "pragma")


def unroll_loops(kernel: PtxKernel) -> tuple[PtxKernel, dict[int, int]]:
    """Return a kernel with an added block for four iterations of each unrollable loop, and the new block by old one."""
    blocks = list(kernel.blocks)
    unrolled_blocks: dict[int, int] = {}
    for block in kernel.blocks:
        counters = _find_counters(block)
        if counters is None:
            continue
        unrolled_blocks[block.number] = len(blocks)
        blocks.append(
            BasicBlock(
                len(blocks), f"{block.label} x{UNROLL_FACTOR}", _unroll_instructions(block, counters), block.successors
            )
        )
    return replace(kernel, blocks=blocks), unrolled_blocks


def _find_counters(block: BasicBlock) -> frozenset[str] | None:
    """Return the registers that a single-block loop increments by constants; None if it is not unrolled."""
    instructions = block.instructions
    if block.number not in block.successors or len(block.successors) != 2 or len(instructions) > _MAXIMUM_INSTRUCTIONS:
        return None
    if block.is_unroll_disabled or any(
        instruction.opcode in _NOT_UNROLLED or "volatile" in instruction.modifiers for instruction in instructions
    ):
        return None
    incremented = {
        instruction.operands[0]
        for instruction in instructions
        if instruction.opcode in ("add", "sub")
        and instruction.operands[1] == instruction.operands[0]
        and re.fullmatch(r"-?\d+", instruction.operands[2])
    }
    tests = [instruction for instruction in instructions if instructions[-1].guard in instruction.written_registers]
    if len(tests) != 1 or tests[0].opcode != "setp" or tests[0].type.startswith("f"):
        return None
    compared_registers = [operand for operand in tests[0].operands[1:] if operand.startswith("%")]
    if not any(name in incremented for name in compared_registers):
        return None
    return frozenset(incremented) | {instructions[-1].guard}


def _unroll_instructions(block: BasicBlock, counters: frozenset[str]) -> list[PtxInstruction]:
    """Return four iterations, in which counters are incremented once and their uses are folded."""
    instructions: list[PtxInstruction] = []
    for number in range(UNROLL_FACTOR):
        is_last = number == UNROLL_FACTOR - 1
        for instruction in block.instructions:
            is_counter = bool(instruction.written_registers) and instruction.written_registers[0] in counters
            if is_counter or instruction.ends_block:
                # Placeholders keep the index of every request.
                instructions.append(instruction if is_last else PtxInstruction("pragma", (), ()))
            else:
                instructions.append(replace(instruction))
    return instructions


def merge_unrolled_visits(path: SampledPath, kernel: PtxKernel, unrolled_blocks: dict[int, int]) -> SampledPath:
    """Merge each four visits of an unrolled loop in a path into one."""
    if not unrolled_blocks:
        return path
    return replace(path, steps=_merge_visits(path.steps, kernel, unrolled_blocks))


def _merge_visits(steps: Sequence[Step], kernel: PtxKernel, unrolled_blocks: dict[int, int]) -> list[Step]:
    merged: list[Step] = []
    index = 0
    while index < len(steps):
        step = steps[index]
        if isinstance(step, RepeatedIterations):
            merged.append(RepeatedIterations(step.times, tuple(_merge_visits(step.steps, kernel, unrolled_blocks))))
            index += 1
            continue
        group = [step]
        if step.block in unrolled_blocks:
            for following in steps[index + 1 : index + UNROLL_FACTOR]:
                if (
                    not isinstance(following, Visit)
                    or following.block != step.block
                    or not np.array_equal(following.lanes, step.lanes)
                ):
                    break
                group.append(following)
        if len(group) == UNROLL_FACTOR:
            length = len(kernel.blocks[step.block].instructions)
            requests = tuple(request for each in group for request in each.requests)
            offsets = (
                instruction_index + number * length
                for number, each in enumerate(group)
                for instruction_index in each.instruction_indices
            )
            guarded_lanes = tuple(
                (instruction_index + number * length, lanes)
                for number, each in enumerate(group)
                for instruction_index, lanes in each.guarded_lanes
            )
            merged.append(Visit(unrolled_blocks[step.block], step.lanes, requests, tuple(offsets), guarded_lanes))
            index += UNROLL_FACTOR
        else:
            merged.append(step)
            index += 1
    return merged
