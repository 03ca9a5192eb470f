"""Conditions that hold for all threads of a block where they hold for those at its corners.

`i < n` for an `i` that rises along the block holds for every thread where it does for the last one: two threads are
asked instead of all, and where both say yes nobody's mask changes. So do several such conditions at once, `&&`.
"""

from __future__ import annotations

from collections.abc import Callable

from gpu.simulator import ir
from gpu.simulator.compiled.assembly import value_type
from gpu.simulator.compiled.intervals import Intervals
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.rematerialize import constant
from gpu.simulator.compiled.written_thread import WrittenThread
from gpu.simulator.types import BOOL, Scalar

Slope = tuple[int, int, int]
"""By how much a value rises from a thread to the next along x, y and z."""

_LEVEL: Slope = (0, 0, 0)
_ORDERS = ("<", "<=", ">", ">=")
_PLAIN = ("+", "-", "*", "&", "|", "^", "<<", ">>")


class Corners:
    """Finds such conditions, and writes them.

    Parameters
    ----------
    thread : WrittenThread
    """

    def __init__(self, thread: WrittenThread) -> None:
        self._thread = thread
        self._intervals = Intervals(thread.block.shape)

    def everywhere(self, frame: PlannedFrame, condition: ir.Expression) -> Callable[[], str] | None:
        """Return what writes whether a condition surely holds for all threads, None where corners do not tell."""
        comparisons = self._comparisons(frame, condition)
        if comparisons is None:
            return None

        def write() -> str:
            found = "true"
            for comparison in comparisons:
                found = self._thread.asm.value(f"and i1 {found}, {self._holds(frame, comparison)}")
            return found

        return write

    def _comparisons(self, frame: PlannedFrame, condition: ir.Expression) -> list[ir.Binary] | None:
        match condition:
            case ir.Logical(_, "&&", left, right):
                first, second = self._comparisons(frame, left), self._comparisons(frame, right)
                return None if first is None or second is None else first + second
            case ir.Binary(_, op, left, right) if op in _ORDERS and isinstance(left.type, Scalar):
                slopes = self._slope(frame, left), self._slope(frame, right)
                if _LEVEL not in slopes or None in slopes or left.type.size not in (4, 8):
                    return None
                # Where the whole block is apart by less than that, a value that wraps is seen at the corners.
                span = max(self._span(slope) for slope in slopes if slope is not None)
                return [condition] if span < 2 ** (8 * left.type.size - 1) else None
        return None

    def _span(self, slope: Slope) -> int:
        return sum(abs(by) * (threads - 1) for by, threads in zip(slope, self._thread.block.shape, strict=True))

    def _holds(self, frame: PlannedFrame, comparison: ir.Binary) -> str:
        """Write a comparison at the corners where its sides are least and greatest, and that nothing wraps between."""
        asm, side = self._thread.asm, comparison.left
        slope = self._slope(frame, side)
        if slope == _LEVEL:
            side = comparison.right
            slope = self._slope(frame, side)
        assert slope is not None
        ends = [
            tuple(
                (threads - 1) * ((by > 0) == last) for by, threads in zip(slope, self._thread.block.shape, strict=True)
            )
            for last in (False, True)
        ]
        values, found = [], "true"
        for end in ends if slope != _LEVEL else ends[:1]:
            with self._thread.block.at(end):
                found = asm.value(f"and i1 {found}, {self._thread.scalar(frame, comparison)}")
                values.append(self._thread.scalar(frame, side))
        if len(values) == 2:
            assert isinstance(side.type, Scalar)
            order = "sle" if side.type.is_signed else "ule"
            rises = asm.value(f"icmp {order} {value_type(side.type)} {values[0]}, {values[1]}")
            found = asm.value(f"and i1 {found}, {rises}")
        return found

    def _slope(self, frame: PlannedFrame, expression: ir.Expression) -> Slope | None:
        """Return how a value rises along the block, None where it does not evenly, or is more than plain arithmetic."""
        match expression:
            case ir.Const(type):
                return None if type.is_float else _LEVEL
            case ir.Special(_, "threadIdx", axis):
                return (int(axis == 0), int(axis == 1), int(axis == 2))
            case ir.Special():
                return _LEVEL
            case ir.Local(type, slot, _):
                if (computed := self._thread.memory.computed(frame, slot)) is not None:
                    return self._slope(frame, computed)
                return _LEVEL if _is_integer(type) and not self._thread.memory.differs(frame, slot) else None
            case ir.Cast(Scalar() as target, operand) if _is_integer(target) and _is_integer(operand.type):
                inner = self._slope(frame, operand)
                keeps = target.size == operand.type.size or self._intervals.of(frame, operand) is not None
                return inner if keeps or inner == _LEVEL else None
            case ir.Unary(_, "-", operand):
                return _scaled(self._slope(frame, operand), -1)
            case ir.Binary(type, op, left, right) if _is_integer(type) and op in _PLAIN:
                return self._of_both(op, left, right, self._slope(frame, left), self._slope(frame, right))
        return None

    @staticmethod
    def _of_both(
        op: str, left: ir.Expression, right: ir.Expression, first: Slope | None, second: Slope | None
    ) -> Slope | None:
        if first is None or second is None:
            return None
        if first == second == _LEVEL:
            return _LEVEL
        if op in "+-":
            turned = second if op == "+" else tuple(-by for by in second)
            x, y, z = (one + other for one, other in zip(first, turned, strict=True))
            return x, y, z
        if op == "*":
            for slope, factor in ((first, constant(right, {})), (second, constant(left, {}))):
                if slope != _LEVEL and factor is not None:
                    return _scaled(slope, factor)
        return None


def _scaled(slope: Slope | None, factor: int) -> Slope | None:
    return None if slope is None else (slope[0] * factor, slope[1] * factor, slope[2] * factor)


def _is_integer(type: object) -> bool:
    return isinstance(type, Scalar) and not type.is_float and type != BOOL
