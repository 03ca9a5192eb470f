"""Control flow of a kernel: reconvergence points and loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def find_dominators(successors: Mapping[int, Iterable[int]], root: int) -> dict[int, frozenset[int]]:
    """Return for each block that `root` reaches the blocks that all paths from `root` to it pass, itself included."""
    dominators = {root: frozenset({root})}
    changed = True
    while changed:
        changed = False
        for number, following in successors.items():
            for successor in following if number in dominators else ():
                known = dominators.get(successor)
                passed = dominators[number] | {successor}
                updated = passed if known is None else known & passed
                if updated != known:
                    dominators[successor] = updated
                    changed = True
    return dominators


def find_predecessors(blocks: Sequence[BasicBlock]) -> dict[int, list[int]]:
    """Return for each block those that lead to it; END follows the last ones."""
    predecessors: dict[int, list[int]] = {number: [] for number in (END, *(block.number for block in reversed(blocks)))}
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.number)
        if _may_end(block) or not block.successors:
            predecessors[END].append(block.number)
    return predecessors


def find_loop_blocks(header: int, last: int, predecessors: Mapping[int, Iterable[int]]) -> set[int]:
    """Return the blocks of the natural loop in which `last` jumps back to `header`."""
    inside, pending = {header}, [last]
    while pending:
        number = pending.pop()
        if number not in inside:
            inside.add(number)
            pending += predecessors[number]
    return inside


def find_reconvergence_points(blocks: Sequence[BasicBlock]) -> list[int]:
    """Return each block's immediate postdominator, where diverged lanes reconverge; END where there is none."""
    postdominators = find_dominators(find_predecessors(blocks), END)
    # The nearest postdominator is the one that all other candidates postdominate.
    return [
        max(
            postdominators.get(block.number, frozenset()) - {block.number, END},
            key=lambda each: len(postdominators[each]),
            default=END,
        )
        for block in blocks
    ]


def _may_end(block: BasicBlock) -> bool:
    return bool(block.instructions) and block.instructions[-1].opcode in ("ret", "exit", "trap")


def find_loops(blocks: Sequence[BasicBlock]) -> dict[tuple[int, int], NaturalLoop]:
    """Return the loops by their back edge: (last block, header)."""
    predecessors = find_predecessors(blocks)
    loops_by_edge: dict[tuple[int, int], NaturalLoop] = {}
    for block in blocks:
        for header in block.successors:
            if header > block.number:
                continue
            inside = find_loop_blocks(header, block.number, predecessors)
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
