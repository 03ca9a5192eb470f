"""Where threadIdx.x is divided by a constant: what warp a thread is of, which lane, or its row in a tile.

For threads side by side that start at a multiple of so many, the quotient is one number and the rests follow each
other. To LLVM the quotients of neighboring threads are any numbers, and what they index lies anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.plan import Bind, PlannedFrame
from gpu.simulator.compiled.rematerialize import changed_slots, constant, values_at_birth
from gpu.simulator.compiled.walking import walk
from gpu.simulator.types import BOOL, Scalar

_LEAST, _MOST = 8, 64
"""Threads of a strip: as many as a vector has lanes, and no more than keep their values close."""
_DEEPEST = 8
_DIVIDING = ("/", "%", ">>", "&")


@dataclass(frozen=True)
class Division:
    """threadIdx.x divided by a constant, or the rest of it."""

    by: int
    rest: bool


class Divisions:
    """Finds divisions in the functions of one kernel."""

    def __init__(self) -> None:
        self._values: dict[int, dict[int, ir.Expression]] = {}

    def strip(self, statements: Iterable[tuple[PlannedFrame, ir.Statement | Bind]], threads: int) -> int:
        """Return of how many threads strips are that make the divisions in statements simple, 0 where none do.

        Parameters
        ----------
        statements : iterable of (PlannedFrame, statement)
        threads : int
            Of a block along x.
        """
        found = [
            min(division.by & -division.by, _MOST)
            for frame, statement in statements
            for division in self._inside(frame.function, statement, set(), 0)
        ]
        strip = min((each for each in found if each >= _LEAST), default=0)
        return strip if strip and threads % strip == 0 else 0

    def of(self, frame: PlannedFrame, expression: ir.Binary) -> Division | None:
        """Return what an expression is, None where it is no such division."""
        return self._division(frame.function, expression)

    def _division(self, function: ir.Function, expression: ir.Binary) -> Division | None:
        if expression.op not in _DIVIDING:
            return None
        known = constant(expression.right, self._only_values(function)) or 0
        match expression.op:
            case "/" | "%" if known > 0:
                found = Division(known, expression.op == "%")
            case ">>" if 0 < known < 16:
                found = Division(1 << known, False)
            case "&" if known > 0 and known & (known + 1) == 0:
                found = Division(known + 1, True)
            case _:
                return None
        return found if self._is_thread(function, expression.left, 0) else None

    def _is_thread(self, function: ir.Function, expression: ir.Expression, depth: int) -> bool:
        """Whether an expression is threadIdx.x."""
        match expression:
            case ir.Special(_, "threadIdx", 0):
                return True
            case ir.Cast(Scalar() as type, operand):
                return (
                    not type.is_float and type != BOOL and type.size >= 4 and self._is_thread(function, operand, depth)
                )
            case ir.Local(_, slot, _) if depth < _DEEPEST:
                value = self._only_values(function).get(slot)
                return value is not None and self._is_thread(function, value, depth + 1)
        return False

    def _only_values(self, function: ir.Function) -> dict[int, ir.Expression]:
        """Return the values of variables that never get another one."""
        if id(function) not in self._values:
            nodes = list(walk(function.body))
            changed = changed_slots(function, nodes)
            self._values[id(function)] = {
                slot: value for slot, value in values_at_birth(nodes).items() if slot not in changed
            }
        return self._values[id(function)]

    def _inside(self, function: ir.Function, node: Any, seen: set[int], depth: int) -> Iterator[Division]:
        """Yield the divisions in a node, in what its variables are made of, and in the functions that it calls."""
        for each in walk(node.value if isinstance(node, Bind) else node):
            match each:
                case ir.Binary():
                    division = self._division(function, each)
                    if division is not None:
                        yield division
                case ir.Local(_, slot, _) if slot not in seen:
                    seen.add(slot)
                    value = self._only_values(function).get(slot)
                    if value is not None:
                        yield from self._inside(function, value, seen, depth)
                case ir.Call() if depth < _DEEPEST:
                    yield from self._inside(each.function, each.function.body, set(), depth + 1)
