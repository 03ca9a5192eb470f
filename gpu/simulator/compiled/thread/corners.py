"""Affine conditions, evaluated only at the corners of a block's index space.

If `i < n` holds for the last thread and `i` increases along the block, it holds for every thread. So two threads are
tested instead of all; if the condition holds for both, no mask changes. The same works for several conditions and `&&`.
"""

from __future__ import annotations

from collections.abc import Callable

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.intervals import Intervals
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.analysis.rematerialization import find_constant
from gpu.simulator.compiled.llvm.assembly import value_type
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.types import Scalar, is_integer

Slope = tuple[int, int, int]
"""The increase of a value from one thread to the next along x, y and z."""

_CONSTANT: Slope = (0, 0, 0)
_ORDERS = ("<", "<=", ">", ">=")
_AFFINE = ("+", "-", "*", "&", "|", "^", "<<", ">>")


class CornerTests:
    """Find affine conditions and emit tests of them at the corners of a block."""

    def __init__(self, thread: ThreadContext) -> None:
        self._thread = thread
        self._intervals = Intervals(thread.block.shape)

    def build_uniform_test(self, frame: PlannedFrame, condition: ir.Expression) -> Callable[[], str] | None:
        """Return a function that emits a test whether a condition holds for all threads; None if it is not affine."""
        comparisons = self._find_comparisons(frame, condition)
        if comparisons is None:
            return None

        def write() -> str:
            result = "true"
            for comparison in comparisons:
                result = self._thread.asm.value(f"and i1 {result}, {self._write_corner_test(frame, comparison)}")
            return result

        return write

    def _find_comparisons(self, frame: PlannedFrame, condition: ir.Expression) -> list[ir.Binary] | None:
        match condition:
            case ir.Logical(_, "&&", left, right):
                first, second = self._find_comparisons(frame, left), self._find_comparisons(frame, right)
                return None if first is None or second is None else first + second
            case ir.Binary(_, op, left, right) if op in _ORDERS and isinstance(left.type, Scalar):
                slopes = self._find_slope(frame, left), self._find_slope(frame, right)
                if _CONSTANT not in slopes or None in slopes or left.type.size not in (4, 8):
                    return None
                # If the whole block's values span less than this, wraparound shows at the corners.
                span = max(self._span(slope) for slope in slopes if slope is not None)
                return [condition] if span < 2 ** (8 * left.type.size - 1) else None
        return None

    def _span(self, slope: Slope) -> int:
        return sum(abs(step) * (threads - 1) for step, threads in zip(slope, self._thread.block.shape, strict=True))

    def _write_corner_test(self, frame: PlannedFrame, comparison: ir.Binary) -> str:
        """Write a comparison at the corners where its sides are extreme, and a test that nothing wraps between them."""
        asm, side = self._thread.asm, comparison.left
        slope = self._find_slope(frame, side)
        if slope == _CONSTANT:
            side = comparison.right
            slope = self._find_slope(frame, side)
        assert slope is not None
        ends = [
            tuple(
                (threads - 1) * ((step > 0) == last)
                for step, threads in zip(slope, self._thread.block.shape, strict=True)
            )
            for last in (False, True)
        ]
        values, result = [], "true"
        for end in ends if slope != _CONSTANT else ends[:1]:
            with self._thread.block.select_thread_at(end):
                result = asm.value(f"and i1 {result}, {self._thread.scalar(frame, comparison)}")
                values.append(self._thread.scalar(frame, side))
        if len(values) == 2:
            assert isinstance(side.type, Scalar)
            order = "sle" if side.type.is_signed else "ule"
            rises = asm.value(f"icmp {order} {value_type(side.type)} {values[0]}, {values[1]}")
            result = asm.value(f"and i1 {result}, {rises}")
        return result

    def _find_slope(self, frame: PlannedFrame, expression: ir.Expression) -> Slope | None:
        """Return a value's increase along the block; None if it is not affine."""
        match expression:
            case ir.Const(type):
                return None if type.is_float else _CONSTANT
            case ir.Special(_, "threadIdx", axis):
                return (int(axis == 0), int(axis == 1), int(axis == 2))
            case ir.Special():
                return _CONSTANT
            case ir.Local(type, slot, _):
                if (computed := self._thread.memory.computed_expression(frame, slot)) is not None:
                    return self._find_slope(frame, computed)
                return _CONSTANT if is_integer(type) and not self._thread.memory.is_varying(frame, slot) else None
            case ir.Cast(Scalar() as target, operand) if is_integer(target) and is_integer(operand.type):
                inner = self._find_slope(frame, operand)
                keeps = target.size == operand.type.size or self._intervals.find_interval(frame, operand) is not None
                return inner if keeps or inner == _CONSTANT else None
            case ir.Unary(_, "-", operand):
                return _scale(self._find_slope(frame, operand), -1)
            case ir.Binary(type, op, left, right) if is_integer(type) and op in _AFFINE:
                return self._combine_slopes(
                    op, left, right, self._find_slope(frame, left), self._find_slope(frame, right)
                )
        return None

    @staticmethod
    def _combine_slopes(
        op: str, left: ir.Expression, right: ir.Expression, first: Slope | None, second: Slope | None
    ) -> Slope | None:
        if first is None or second is None:
            return None
        if first == second == _CONSTANT:
            return _CONSTANT
        if op in "+-":
            signed = second if op == "+" else tuple(-step for step in second)
            x, y, z = (one + other for one, other in zip(first, signed, strict=True))
            return x, y, z
        if op == "*":
            for slope, factor in ((first, find_constant(right, {})), (second, find_constant(left, {}))):
                if slope != _CONSTANT and factor is not None:
                    return _scale(slope, factor)
        return None


def _scale(slope: Slope | None, factor: int) -> Slope | None:
    return None if slope is None else (slope[0] * factor, slope[1] * factor, slope[2] * factor)
