"""Estimate how many machine instructions are issued, from the execution counts of PTX lines.

The assembler unrolls loops, merges branches and moves instructions between blocks, so a PTX line does not correspond to
a fixed number of machine instructions. But some instructions are preserved one by one: memory accesses, barriers,
exchanges and floating-point arithmetic. A linear program finds execution counts of the machine code's basic blocks that
fit these instructions best, conserve flow between blocks, and issue the fewest instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing.sass.cubin import MachineInstruction

Array = npt.NDArray[Any]

_PRESERVED = {
    "LDG": ("ld", "ldu"), "STG": ("st",), "LDS": ("ld",), "STS": ("st",), "LDL": ("ld",), "STL": ("st",),
    "BAR": ("bar", "barrier"), "SHFL": ("shfl",), "ATOMS": ("atom", "red"), "ATOMG": ("atom", "red"),
    "RED": ("atom", "red"), "REDG": ("atom", "red"), "REDUX": ("redux",), "MATCH": ("match",), "FFMA": ("fma", "mad"),
    "FMUL": ("mul",), "FADD": ("add", "sub"), "DFMA": ("fma", "mad"), "DMUL": ("mul",), "DADD": ("add", "sub"),
}  # fmt: skip
"""Machine instructions that correspond to one PTX instruction each, with the opcodes of the latter."""

_BLOCK_END_OPCODES = ("BRA", "EXIT", "RET", "BPT")
_DEVIATION_COST, _FLOW_COST, _ISSUE_COST = 1.0, 0.05, 1e-4
"""Costs in the linear program: of a deviation from a line's count, of flow into a block that differs from flow out of
it, and of all instructions together."""


@dataclass(frozen=True)
class ExecutedLine:
    """The number of times that warps execute a PTX line with at least one lane, and its opcode."""

    executions: float
    opcode: str


def estimate_issued_instructions(
    instructions: Sequence[MachineInstruction], lines: Mapping[int, ExecutedLine], warps: float
) -> float | None:
    """Return the number of instructions that a launch's warps issue.

    Parameters
    ----------
    instructions : sequence of MachineInstruction
    lines : mapping
        The executed lines, by line number in the PTX.
    warps : float
        The number of warps.

    Returns
    -------
    float or None
        None if no instruction is known to be preserved.
    """
    firsts = _find_block_starts(instructions)
    block_of_instruction = np.searchsorted(firsts, np.arange(len(instructions)), side="right") - 1
    sizes = np.bincount(block_of_instruction, minlength=len(firsts)).astype(float)
    problem = _FlowProblem(len(firsts), sizes)
    blocks_by_line: dict[int, list[int]] = defaultdict(list)
    at_least_lines: set[int] = set()
    for number, instruction in enumerate(instructions):
        line = lines.get(instruction.text_line)
        if line is not None and line.opcode in _PRESERVED.get(instruction.opcode, ()):
            blocks_by_line[instruction.text_line].append(int(block_of_instruction[number]))
            if instruction.guarded:  # it issues where no lane does it, too
                at_least_lines.add(instruction.text_line)
    counts_by_blocks: dict[tuple[tuple[int, ...], bool], list[float]] = defaultdict(list)
    for number, blocks in blocks_by_line.items():
        counts_by_blocks[tuple(sorted(blocks)), number in at_least_lines].append(lines[number].executions)
    if not counts_by_blocks:
        return None
    for (fitted_blocks, at_least), times in counts_by_blocks.items():
        problem.add_count_constraint(
            fitted_blocks, float(np.median(times)), _DEVIATION_COST * len(times) ** 0.5, is_lower_bound=at_least
        )
    _constrain_flow(problem, instructions, firsts, warps)
    return problem.solve()


def _find_block_starts(instructions: Sequence[MachineInstruction]) -> list[int]:
    """Return the indices at which basic blocks begin."""
    starts = {0}
    for number, instruction in enumerate(instructions):
        if instruction.opcode in _BLOCK_END_OPCODES:
            starts.add(number + 1)
        if instruction.target >= 0:
            starts.add(instruction.target)
    return sorted(number for number in starts if number < len(instructions))


def _constrain_flow(
    problem: _FlowProblem, instructions: Sequence[MachineInstruction], firsts: Sequence[int], warps: float
) -> None:
    """Constrain each block's flow: all of it continues by the branch, continues to the next block, or ends."""
    count = len(firsts)
    block_of_start = {first: block for block, first in enumerate(firsts)}
    transitions: list[tuple[int, int]] = []
    for block in range(count):
        end = firsts[block + 1] if block + 1 < count else len(instructions)
        last = instructions[end - 1]
        if last.opcode == "BRA" and last.target in block_of_start:
            transitions.append((block, block_of_start[last.target]))
        if (last.opcode not in _BLOCK_END_OPCODES or last.guarded) and block + 1 < count:
            transitions.append((block, block + 1))
    edges = [problem.add_variable() for _ in transitions]
    for block in range(count):
        end = firsts[block + 1] if block + 1 < count else len(instructions)
        last = instructions[end - 1]
        into = [edge for edge, (_, target) in zip(edges, transitions, strict=True) if target == block]
        out = [edge for edge, (source, _) in zip(edges, transitions, strict=True) if source == block]
        problem.add_balance_constraint(block, into, warps if block == 0 else 0.0)
        if out and last.opcode not in ("EXIT", "RET"):
            problem.add_balance_constraint(block, out, 0.0)
        elif out:  # some warps end here
            problem.add_upper_bound(out, block)
        # A warp takes an edge at most as often as it executes the block, whatever its lanes do.
        for edge in out:
            problem.add_upper_bound([edge], block)


class _FlowProblem:
    """A linear program: the first variables are the blocks' execution counts, with their instructions as cost."""

    def __init__(self, blocks: int, sizes: Array) -> None:
        self._costs: list[float] = (_ISSUE_COST * sizes / max(sizes.sum(), 1.0)).tolist()
        self._sizes = sizes
        self._equalities: list[tuple[dict[int, float], float]] = []
        self._inequalities: list[tuple[dict[int, float], float]] = []

    def add_variable(self, cost: float = 0.0) -> int:
        self._costs.append(cost)
        return len(self._costs) - 1

    def add_count_constraint(self, blocks: Sequence[int], times: float, cost: float, *, is_lower_bound: bool) -> None:
        """Require that the counts of some blocks, with repetitions, have a given sum."""
        row: dict[int, float] = defaultdict(float)
        for block in blocks:
            row[block] += 1.0
        row[self.add_variable(cost)] = 1.0
        row[self.add_variable(cost if not is_lower_bound else 0.0)] = -1.0
        self._equalities.append((row, times))

    def add_balance_constraint(self, block: int, edges: Sequence[int], inflow: float) -> None:
        """Require that a block's count equals the sum of some edges, plus `inflow`."""
        row = {block: 1.0, self.add_variable(_FLOW_COST): 1.0, self.add_variable(_FLOW_COST): -1.0}
        row.update(dict.fromkeys(edges, -1.0))
        self._equalities.append((row, inflow))

    def add_upper_bound(self, edges: Sequence[int], block: int) -> None:
        self._inequalities.append(({**dict.fromkeys(edges, 1.0), block: -1.0}, 0.0))

    def solve(self) -> float | None:
        """Return the instructions of all blocks together; None if there is no solution."""
        from scipy import optimize  # only where there is machine code: it takes a second

        scale = max((total for _, total in self._equalities), default=1.0) or 1.0
        result = optimize.linprog(
            self._costs,
            *self._build_matrix(self._inequalities, scale),
            *self._build_matrix(self._equalities, scale),
            method="highs",
        )
        return float(result.x[: self._sizes.size] @ self._sizes) * scale if result.status == 0 else None

    def _build_matrix(self, rows: Sequence[tuple[dict[int, float], float]], scale: float) -> tuple[Any, Array]:
        from scipy import sparse

        row_numbers = [number for number, (row, _) in enumerate(rows) for _ in row]
        column_numbers = [variable for row, _ in rows for variable in row]
        values = [value for row, _ in rows for value in row.values()]
        matrix = sparse.csr_matrix((values, (row_numbers, column_numbers)), shape=(len(rows), len(self._costs)))
        return matrix, np.array([total / scale for _, total in rows])
