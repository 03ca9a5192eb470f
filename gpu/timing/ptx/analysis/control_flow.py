"""Control flow of a kernel: reconvergence points and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu.timing.ptx.program import BasicBlock

END = -1


@dataclass(frozen=True)
class NaturalLoop:
    """A natural loop of the control flow graph.

    Parameters
    ----------
    header : int
        The block at which the loop begins.
    last : int
        The block that jumps back to `header`.
    blocks : frozenset of int
    written_registers : frozenset of str
        The registers that the loop writes.
    has_single_exit : bool
        Whether `last` is the only exit.
    """

    header: int
    last: int
    blocks: frozenset[int]
    written_registers: frozenset[str]
    has_single_exit: bool


def find_reconvergence_points(blocks: Sequence[BasicBlock]) -> list[int]:
    """Return each block's immediate postdominator, where diverged lanes reconverge; END where there is none."""
    count = len(blocks)
    everything = frozenset(range(count)) | {END}
    postdominators: list[frozenset[int]] = [everything] * count
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            candidates = [postdominators[successor] for successor in block.successors] or [frozenset({END})]
            if _may_end(block) and block.successors:
                candidates.append(frozenset({END}))
            updated = frozenset.intersection(*candidates) | {block.number}
            if updated != postdominators[block.number]:
                postdominators[block.number] = updated
                changed = True
    nearest_joins = []
    for block in blocks:
        others = postdominators[block.number] - {block.number, END}
        # The nearest postdominator is the one that all other candidates postdominate.
        nearest = max(others, key=lambda each: len(postdominators[each]), default=END)
        nearest_joins.append(nearest)
    return nearest_joins


def _may_end(block: BasicBlock) -> bool:
    return bool(block.instructions) and block.instructions[-1].opcode in ("ret", "exit", "trap")


def find_loops(blocks: Sequence[BasicBlock]) -> dict[tuple[int, int], NaturalLoop]:
    """Return the loops by their back edge: (last block, header)."""
    predecessors: dict[int, list[int]] = {block.number: [] for block in blocks}
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.number)
    loops_by_edge: dict[tuple[int, int], NaturalLoop] = {}
    for block in blocks:
        for header in block.successors:
            if header > block.number:
                continue
            inside, pending = {header}, [block.number]
            while pending:
                number = pending.pop()
                if number not in inside:
                    inside.add(number)
                    pending += predecessors[number]
            leaving = {
                number
                for number in inside
                if _may_end(blocks[number]) or any(successor not in inside for successor in blocks[number].successors)
            }
            written = frozenset(
                name
                for number in inside
                for instruction in blocks[number].instructions
                for name in instruction.written_registers
            )
            loops_by_edge[block.number, header] = NaturalLoop(
                header, block.number, frozenset(inside), written, leaving <= {block.number}
            )
    return loops_by_edge
