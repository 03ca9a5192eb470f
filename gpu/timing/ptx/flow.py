"""Where the ways through a kernel come together again, and its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu.timing.ptx.program import BasicBlock

END = -1


@dataclass(frozen=True)
class NaturalLoop:
    """A loop: its blocks, and the registers that it writes.

    `last` is the block whose jump leads back to `header`, and the only one that leaves the loop, where `leaves_once`.
    """

    header: int
    last: int
    blocks: frozenset[int]
    written: frozenset[str]
    leaves_once: bool


def joins(blocks: Sequence[BasicBlock]) -> list[int]:
    """Return of each block where all ways from it meet again: its immediate postdominator, END where there is none."""
    count = len(blocks)
    everything = frozenset(range(count)) | {END}
    behind: list[frozenset[int]] = [everything] * count
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            ways = [behind[each] for each in block.follows] or [frozenset({END})]
            if _may_end(block) and block.follows:
                ways.append(frozenset({END}))
            now = frozenset.intersection(*ways) | {block.number}
            if now != behind[block.number]:
                behind[block.number] = now
                changed = True
    found = []
    for block in blocks:
        others = behind[block.number] - {block.number, END}
        # The nearest is the one that has all the others behind it.
        nearest = max(others, key=lambda each: len(behind[each]), default=END)
        found.append(nearest)
    return found


def _may_end(block: BasicBlock) -> bool:
    return bool(block.instructions) and block.instructions[-1].opcode in ("ret", "exit", "trap")


def loops(blocks: Sequence[BasicBlock]) -> dict[tuple[int, int], NaturalLoop]:
    """Return the loops by the jump that leads back: (last block, header)."""
    before: dict[int, list[int]] = {block.number: [] for block in blocks}
    for block in blocks:
        for each in block.follows:
            before[each].append(block.number)
    found: dict[tuple[int, int], NaturalLoop] = {}
    for block in blocks:
        for header in block.follows:
            if header > block.number:
                continue
            inside, waiting = {header}, [block.number]
            while waiting:
                number = waiting.pop()
                if number not in inside:
                    inside.add(number)
                    waiting += before[number]
            leaving = {
                number
                for number in inside
                if _may_end(blocks[number]) or any(each not in inside for each in blocks[number].follows)
            }
            written = frozenset(
                name for number in inside for each in blocks[number].instructions for name in each.written
            )
            found[block.number, header] = NaturalLoop(
                header, block.number, frozenset(inside), written, leaving <= {block.number}
            )
    return found
