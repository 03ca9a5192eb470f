"""How many machine instructions run, found from how often lines of the PTX do that they were made of.

The assembler unrolls loops, merges branches and moves instructions between blocks, so that no line of PTX stands for a
fixed number of machine instructions. But some are kept one by one: whatever reaches memory, waits at a barrier,
exchanges or computes with floating point. How often each basic block of machine code runs is what fits these best,
flows on from block to block, and issues least.
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

_KEPT = {
    "LDG": ("ld", "ldu"), "STG": ("st",), "LDS": ("ld",), "STS": ("st",), "LDL": ("ld",), "STL": ("st",),
    "BAR": ("bar", "barrier"), "SHFL": ("shfl",), "ATOMS": ("atom", "red"), "ATOMG": ("atom", "red"),
    "RED": ("atom", "red"), "REDG": ("atom", "red"), "REDUX": ("redux",), "MATCH": ("match",), "FFMA": ("fma", "mad"),
    "FMUL": ("mul",), "FADD": ("add", "sub"), "DFMA": ("fma", "mad"), "DMUL": ("mul",), "DADD": ("add", "sub"),
}  # fmt: skip
"""Machine instructions that stand for one of the PTX, and for which."""

_ENDS = ("BRA", "EXIT", "RET", "BPT")
_OFF, _APART, _LEAST = 1.0, 0.05, 1e-4
"""What it costs that a line runs more or less often than it does, that what comes to a block does not go on, and that
an instruction issues."""


@dataclass(frozen=True)
class ExecutedLine:
    """How often warps run a line of PTX with at least one lane, and what it is."""

    times: float
    opcode: str


def executed(
    instructions: Sequence[MachineInstruction], lines: Mapping[int, ExecutedLine], warps: float
) -> float | None:
    """Return how many instructions the warps of a launch issue.

    Parameters
    ----------
    instructions : sequence of MachineInstruction
    lines : mapping
        By the line's number in the PTX.
    warps : float
        How many there are.

    Returns
    -------
    float or None
        None where nothing is known to be kept one by one.
    """
    firsts = _firsts(instructions)
    of = np.searchsorted(firsts, np.arange(len(instructions)), side="right") - 1
    sizes = np.bincount(of, minlength=len(firsts)).astype(float)
    problem = _Problem(len(firsts), sizes)
    kept: dict[int, list[int]] = defaultdict(list)
    loose: set[int] = set()
    for number, each in enumerate(instructions):
        line = lines.get(each.text_line)
        if line is not None and line.opcode in _KEPT.get(each.opcode, ()):
            kept[each.text_line].append(int(of[number]))
            if each.guarded:  # it issues where no lane does it, too
                loose.add(each.text_line)
    alike: dict[tuple[tuple[int, ...], bool], list[float]] = defaultdict(list)
    for number, blocks in kept.items():
        alike[tuple(sorted(blocks)), number in loose].append(lines[number].times)
    if not alike:
        return None
    for (together, at_least), times in alike.items():
        problem.fit(together, float(np.median(times)), _OFF * len(times) ** 0.5, at_least=at_least)
    _flow(problem, instructions, firsts, warps)
    return problem.solve()


def _firsts(instructions: Sequence[MachineInstruction]) -> list[int]:
    """Return where basic blocks begin."""
    found = {0}
    for number, each in enumerate(instructions):
        if each.opcode in _ENDS:
            found.add(number + 1)
        if each.target >= 0:
            found.add(each.target)
    return sorted(number for number in found if number < len(instructions))


def _flow(problem: _Problem, instructions: Sequence[MachineInstruction], firsts: Sequence[int], warps: float) -> None:
    """Say that who comes to a block goes on from there: by its branch, or to the next one, or ends."""
    count = len(firsts)
    places = {first: block for block, first in enumerate(firsts)}
    ways: list[tuple[int, int]] = []
    for block in range(count):
        end = firsts[block + 1] if block + 1 < count else len(instructions)
        last = instructions[end - 1]
        if last.opcode == "BRA" and last.target in places:
            ways.append((block, places[last.target]))
        if (last.opcode not in _ENDS or last.guarded) and block + 1 < count:
            ways.append((block, block + 1))
    edges = [problem.variable() for _ in ways]
    for block in range(count):
        end = firsts[block + 1] if block + 1 < count else len(instructions)
        last = instructions[end - 1]
        into = [edge for edge, (_, to) in zip(edges, ways, strict=True) if to == block]
        out = [edge for edge, (of, _) in zip(edges, ways, strict=True) if of == block]
        problem.balance(block, into, warps if block == 0 else 0.0)
        if out and last.opcode not in ("EXIT", "RET"):
            problem.balance(block, out, 0.0)
        elif out:  # some end here
            problem.at_most(out, block)
        # A warp takes a way no more often than it was here, whatever its lanes do.
        for edge in out:
            problem.at_most([edge], block)


class _Problem:
    """A linear program: the first variables are how often blocks run, the cost of each its instructions."""

    def __init__(self, blocks: int, sizes: Array) -> None:
        self._costs: list[float] = (_LEAST * sizes / max(sizes.sum(), 1.0)).tolist()
        self._sizes = sizes
        self._equal: list[tuple[dict[int, float], float]] = []
        self._below: list[tuple[dict[int, float], float]] = []

    def variable(self, cost: float = 0.0) -> int:
        self._costs.append(cost)
        return len(self._costs) - 1

    def fit(self, blocks: Sequence[int], times: float, cost: float, *, at_least: bool) -> None:
        """Want some blocks, each as often as it is named, to run so often together."""
        row: dict[int, float] = defaultdict(float)
        for block in blocks:
            row[block] += 1.0
        row[self.variable(cost)] = 1.0
        row[self.variable(cost if not at_least else 0.0)] = -1.0
        self._equal.append((row, times))

    def balance(self, block: int, edges: Sequence[int], more: float) -> None:
        """Want a block to run as often as some edges are taken, and `more`."""
        row = {block: 1.0, self.variable(_APART): 1.0, self.variable(_APART): -1.0}
        row.update(dict.fromkeys(edges, -1.0))
        self._equal.append((row, more))

    def at_most(self, edges: Sequence[int], block: int) -> None:
        self._below.append(({**dict.fromkeys(edges, 1.0), block: -1.0}, 0.0))

    def solve(self) -> float | None:
        """Return the instructions of all blocks together; None where nothing fits."""
        from scipy import optimize  # only where there is machine code: it takes a second

        scale = max((wanted for _, wanted in self._equal), default=1.0) or 1.0
        found = optimize.linprog(
            self._costs, *self._matrix(self._below, scale), *self._matrix(self._equal, scale), method="highs"
        )
        return float(found.x[: self._sizes.size] @ self._sizes) * scale if found.status == 0 else None

    def _matrix(self, rows: Sequence[tuple[dict[int, float], float]], scale: float) -> tuple[Any, Array]:
        from scipy import sparse

        of = [number for number, (row, _) in enumerate(rows) for _ in row]
        at = [variable for row, _ in rows for variable in row]
        values = [value for row, _ in rows for value in row.values()]
        matrix = sparse.csr_matrix((values, (of, at)), shape=(len(rows), len(self._costs)))
        return matrix, np.array([wanted / scale for _, wanted in rows])
