"""The order of basic blocks that the assembler generates: each loop from its header to the jump back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu.timing.ptx.analysis.control_flow import find_dominators, find_loop_blocks, find_predecessors
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel


def order_blocks(kernel: PtxKernel) -> PtxKernel:
    """Return a kernel whose backward jumps lead to the headers of loops.

    LLVM starts a loop that is entered in its middle with another block than its header. The kernel is unchanged if it
    has no such loop.
    """
    blocks = kernel.blocks
    dominators = find_dominators({block.number: block.successors for block in blocks}, 0)
    edges = [(block.number, each) for block in blocks if block.number in dominators for each in block.successors]
    if all((target <= source) == (target in dominators[source]) for source, target in edges):
        return kernel
    order = _sort_blocks(blocks, _count_loops(blocks, dominators))
    numbers = {number: index for index, number in enumerate(order)}
    return replace(kernel, blocks=[_move_block(blocks[number], numbers) for number in order])


def _count_loops(blocks: Sequence[BasicBlock], dominators: dict[int, frozenset[int]]) -> dict[int, int]:
    """Return for each block the number of loops that contain it."""
    predecessors = find_predecessors(blocks)
    loops: dict[int, set[int]] = {}
    for source, passed in dominators.items():
        for header in passed.intersection(blocks[source].successors):
            loops.setdefault(header, set()).update(find_loop_blocks(header, source, predecessors))
    return {number: sum(number in inside for inside in loops.values()) for number in dominators}


def _sort_blocks(blocks: Sequence[BasicBlock], depths: dict[int, int]) -> list[int]:
    """Return the blocks' numbers, a block before its successors except for jumps back, loops without a gap."""
    finished: list[int] = []
    seen = {0}
    stack = [(0, iter(_rank_successors(blocks[0], depths)))]
    while stack:
        number, successors = stack[-1]
        following = next((each for each in successors if each not in seen), None)
        if following is None:
            finished.append(number)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_rank_successors(blocks[following], depths))))
    return finished[::-1]


def _rank_successors(block: BasicBlock, depths: dict[int, int]) -> list[int]:
    # A block is placed before those that were visited earlier: the exit of a loop behind the loop.
    return sorted(block.successors, key=lambda number: (depths[number], -number))


def _move_block(block: BasicBlock, numbers: dict[int, int]) -> BasicBlock:
    """Return a block at its new place, with the jumps that the place needs."""
    number = numbers[block.number]
    successors = tuple(numbers[each] for each in block.successors)
    instructions = list(block.instructions)
    last = instructions[-1] if instructions else None
    if len(successors) == 2 and last is not None and successors[0] == number + 1:
        # The jump goes to the other successor, so that this one follows without a jump.
        instructions[-1] = replace(last, negated=not last.negated)
        successors = successors[::-1]
    elif len(successors) == 2 and last is not None and successors[1] <= number < successors[0]:
        instructions[-1] = replace(last, negated=not last.negated)
        successors = successors[::-1]
    elif len(successors) == 1 and last is not None and last.opcode == "bra" and successors[0] == number + 1:
        instructions.pop()
    elif len(successors) == 1 and (last is None or not last.ends_block) and successors[0] != number + 1:
        instructions.append(PtxInstruction("bra", ("uni",), (f"B{successors[0]}",)))
    return replace(block, number=number, instructions=instructions, successors=successors)
