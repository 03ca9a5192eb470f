"""Loops that the assembler unrolls and moves to the instructions that read their results.

ptxas completely unrolls a short loop with a constant number of iterations. Arithmetic of constants then moves into the
branch that needs it: warps that do not take the branch skip it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpu.timing.ptx.analysis.backward_slices import MEMORY_OPCODES
from gpu.timing.ptx.analysis.control_flow import NaturalLoop, find_loops
from gpu.timing.ptx.path import MemoryRequest, RepeatedIterations, SampledPath, Step, Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel

_NUMBER = re.compile(r"-?(0x)?[\dA-Fa-f]+")
_CONSTANT_OPCODES = ("mov", "add", "sub", "mul", "mad", "shl", "shr", "cvt", "setp", "and", "or", "not")
_IMPURE_OPCODES = (
    "st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "vote", "shfl", "match", "redux", "activemask",
    "elect", "cp", "tex", "ret", "exit", "trap", "nanosleep", "wmma", "mma", "wgmma", "mbarrier", "ldmatrix",
)  # fmt: skip


_MAXIMUM_INSTRUCTIONS = 4096
"""The most instructions of a loop that is unrolled completely. ptxas of CUDA 13 unrolls 31 x 31 products of a
convolution to 2,844 machine instructions, and leaves a loop that would have 17,000."""


@dataclass(frozen=True)
class SunkLoop:
    """A loop with the instructions outside of it that read its results: their basic blocks and indices there."""

    blocks: frozenset[int]
    readers: frozenset[tuple[int, int]]


def find_sunk_loops(kernel: PtxKernel) -> tuple[SunkLoop, ...]:
    """Return the loops with a constant number of iterations that only compute, from constants and registers."""
    loops = list(find_loops(kernel.blocks).values())
    constant_registers = _find_constant_registers(kernel)
    found = [
        loop
        for loop in loops
        if not any(loop.blocks < other.blocks for other in loops)
        and 0 < _count_unrolled_instructions(kernel, loop) <= _MAXIMUM_INSTRUCTIONS
        and all(
            _is_pure(instruction, constant_registers)
            for number in loop.blocks
            for instruction in kernel.blocks[number].instructions
        )
    ]
    return tuple(SunkLoop(loop.blocks, frozenset(_find_readers(kernel, loop, found))) for loop in found)


def move_to_readers(path: SampledPath, kernel: PtxKernel, loops: Sequence[SunkLoop]) -> None:
    """Remove from a path the warps that execute a loop but no instruction that reads its results."""
    for loop in loops:
        read: npt.NDArray[np.bool_] | None = None
        for visit in _iterate_visits(path.steps):
            read = np.zeros(visit.lanes.size, np.bool_) if read is None else read
            for index in (index for block, index in loop.readers if block == visit.block):
                instruction = kernel.blocks[visit.block].instructions[index]
                requests = dict(zip(visit.instruction_indices, visit.requests, strict=True))
                if not instruction.guard or instruction.opcode not in MEMORY_OPCODES:
                    read |= visit.lanes > 0
                elif index in requests:
                    read[requests[index].warps] = True
        if read is not None and not read.all():
            path.steps = _remove_warps(path.steps, loop.blocks, read)


def _count_unrolled_instructions(kernel: PtxKernel, loop: NaturalLoop) -> int:
    """Return the instructions of all iterations of a loop whose counter has known values; 0 for others."""
    jump = kernel.blocks[loop.last].instructions[-1]
    writers = kernel.find_writers()
    comparisons = [each for each in writers[jump.guard] if each.opcode == "setp" and len(each.operands) == 3]
    if len(comparisons) != 1 or not _NUMBER.fullmatch(comparisons[0].operands[2]):
        return 0
    start = step = None
    for writer in writers[comparisons[0].operands[1]]:
        if not _NUMBER.fullmatch(writer.operands[-1]):
            return 0
        if writer.opcode == "mov":
            start = int(writer.operands[-1], 0)
        elif writer.opcode in ("add", "sub"):
            step = int(writer.operands[-1], 0)
    if start is None or not step:
        return 0
    iterations = abs(int(comparisons[0].operands[2], 0) - start) // abs(step)
    return max(iterations, 1) * sum(len(kernel.blocks[number].instructions) for number in loop.blocks)


def _find_constant_registers(kernel: PtxKernel) -> set[str]:
    """Return the registers whose values, and changes in loops, are known to the compiler."""
    writers = kernel.find_writers()
    constant = set(writers)
    changed = True
    while changed:
        unknown = {
            name for name in constant if not all(_is_constant(instruction, constant) for instruction in writers[name])
        }
        constant -= unknown
        changed = bool(unknown)
    return constant


def _is_constant(instruction: PtxInstruction, constant: set[str]) -> bool:
    is_special = any(operand.startswith("%") for operand in instruction.operands[1:]) and not instruction.read_registers
    known = constant.issuperset(instruction.read_registers)
    return instruction.opcode in _CONSTANT_OPCODES and not instruction.guard and not is_special and known


def _is_pure(instruction: PtxInstruction, constant: set[str]) -> bool:
    """Return whether an instruction only computes; a jump is decided by the compiler."""
    if instruction.opcode in ("ld", "ldu"):
        return "const" in instruction.modifiers
    if instruction.opcode == "bra" or instruction.guard:
        return constant.issuperset((instruction.guard,) if instruction.guard else ())
    return instruction.opcode not in _IMPURE_OPCODES


def _find_readers(kernel: PtxKernel, loop: NaturalLoop, loops: Sequence[NaturalLoop]) -> set[tuple[int, int]]:
    """Return the instructions outside of the loops that read what a loop writes, or what others compute from it."""
    pending, passed = [loop], {loop}
    readers: set[tuple[int, int]] = set()
    owner: Mapping[int, NaturalLoop] = {number: each for each in loops for number in each.blocks}
    while pending:
        current = pending.pop()
        for block in kernel.blocks:
            if block.number in current.blocks:
                continue
            for index, instruction in enumerate(block.instructions):
                if current.written_registers.isdisjoint(instruction.read_registers):
                    continue
                reader = owner.get(block.number)
                if reader is None:
                    readers.add((block.number, index))
                elif reader not in passed:
                    passed.add(reader)
                    pending.append(reader)
    return readers


def _iterate_visits(steps: Sequence[Step]) -> list[Visit]:
    visits: list[Visit] = []
    for step in steps:
        visits += [step] if isinstance(step, Visit) else _iterate_visits(step.steps)
    return visits


def _remove_warps(steps: Sequence[Step], blocks: frozenset[int], kept: npt.NDArray[np.bool_]) -> list[Step]:
    remaining: list[Step] = []
    for step in steps:
        if isinstance(step, RepeatedIterations):
            if inner := _remove_warps(step.steps, blocks, kept):
                remaining.append(RepeatedIterations(step.times, tuple(inner)))
        elif step.block not in blocks:
            remaining.append(step)
        elif kept[step.lanes > 0].any():
            requests = tuple(_select_warps(request, kept) for request in step.requests)
            remaining.append(replace(step, lanes=np.where(kept, step.lanes, 0).astype(np.uint8), requests=requests))
    return remaining


def _select_warps(request: MemoryRequest, kept: npt.NDArray[np.bool_]) -> MemoryRequest:
    """Return a request for constants without some warps."""
    chosen = kept[request.warps]
    counts = request.counts
    sectors = request.sectors[np.repeat(chosen, counts)]
    starts = np.concatenate(([0], np.cumsum(counts[chosen])))
    return replace(
        request, warps=request.warps[chosen], lanes=request.lanes[chosen], passes=request.passes[chosen],
        starts=starts, sectors=sectors, conflicts=request.conflicts[chosen],
    )  # fmt: skip
