"""Divisions of threadIdx.x by a constant, as for the warp, the lane, or the row in a tile.

For consecutive threads that start at a multiple of the divisor, the quotient is one number and the remainders are
consecutive. LLVM does not know this, and assumes that neighboring threads access unrelated elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import Bind, PlannedFrame
from gpu.simulator.compiled.analysis.rematerialization import find_changed_slots, find_constant, find_initial_values
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import BOOL, Scalar

_MINIMUM_LENGTH, _MAXIMUM_LENGTH = 8, 64
"""The range of strip lengths in threads: at least a vector's lanes, and short enough to keep values in registers."""
_MAXIMUM_DEPTH = 8
_DIVISION_OPERATORS = ("/", "%", ">>", "&")


@dataclass(frozen=True)
class Division:
    """The quotient, or the remainder, of threadIdx.x and a constant."""

    divisor: int
    is_remainder: bool


class DivisionAnalysis:
    """Finds divisions in the functions of a kernel."""

    def __init__(self) -> None:
        self._values: dict[int, dict[int, ir.Expression]] = {}

    def find_strip_length(self, statements: Iterable[tuple[PlannedFrame, ir.Statement | Bind]], threads: int) -> int:
        """Return the strip length in threads that simplifies the divisions in statements; 0 if there is none.

        Parameters
        ----------
        threads : int
            Threads of a block along x.
        """
        lengths = [
            min(division.divisor & -division.divisor, _MAXIMUM_LENGTH)
            for frame, statement in statements
            for division in self._iterate_divisions(frame.function, statement, set(), 0)
        ]
        strip = min((length for length in lengths if length >= _MINIMUM_LENGTH), default=0)
        return strip if strip and threads % strip == 0 else 0

    def find_division(self, frame: PlannedFrame, expression: ir.Binary) -> Division | None:
        """Return the division that an expression is; None if it is none."""
        return self._find_division(frame.function, expression)

    def _find_division(self, function: ir.Function, expression: ir.Binary) -> Division | None:
        if expression.op not in _DIVISION_OPERATORS:
            return None
        divisor = find_constant(expression.right, self._single_values(function)) or 0
        match expression.op:
            case "/" | "%" if divisor > 0:
                division = Division(divisor, expression.op == "%")
            case ">>" if 0 < divisor < 16:
                division = Division(1 << divisor, False)
            case "&" if divisor > 0 and divisor & (divisor + 1) == 0:
                division = Division(divisor + 1, True)
            case _:
                return None
        return division if self._is_thread(function, expression.left, 0) else None

    def _is_thread(self, function: ir.Function, expression: ir.Expression, depth: int) -> bool:
        """Return whether an expression is threadIdx.x."""
        match expression:
            case ir.Special(_, "threadIdx", 0):
                return True
            case ir.Cast(Scalar() as type, operand):
                return (
                    not type.is_float and type != BOOL and type.size >= 4 and self._is_thread(function, operand, depth)
                )
            case ir.Local(_, slot, _) if depth < _MAXIMUM_DEPTH:
                value = self._single_values(function).get(slot)
                return value is not None and self._is_thread(function, value, depth + 1)
        return False

    def _single_values(self, function: ir.Function) -> dict[int, ir.Expression]:
        """Return the values of variables that are assigned only once."""
        if id(function) not in self._values:
            nodes = list(walk(function.body))
            changed = find_changed_slots(nodes)
            self._values[id(function)] = {
                slot: value for slot, value in find_initial_values(nodes).items() if slot not in changed
            }
        return self._values[id(function)]

    def _iterate_divisions(self, function: ir.Function, node: Any, visited: set[int], depth: int) -> Iterator[Division]:
        """Yield the divisions in a node, in the values of its variables, and in the functions that it calls."""
        for each in walk(node.value if isinstance(node, Bind) else node):
            match each:
                case ir.Binary():
                    division = self._find_division(function, each)
                    if division is not None:
                        yield division
                case ir.Local(_, slot, _) if slot not in visited:
                    visited.add(slot)
                    value = self._single_values(function).get(slot)
                    if value is not None:
                        yield from self._iterate_divisions(function, value, visited, depth)
                case ir.Call() if depth < _MAXIMUM_DEPTH:
                    yield from self._iterate_divisions(each.function, each.function.body, set(), depth + 1)
