"""How much arithmetic an expression does on values: what a textbook counts as the operations of an algorithm."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.types import BOOL, Pointer


def operations(expression: ir.Expression | None) -> int:
    """Count the operations of one lane, leaving out those on indices, on addresses, and comparisons.

    A lazy side counts as if it were taken.
    """
    match expression:
        case ir.Binary(type, _, left, right):
            return (type != BOOL) + operations(left) + operations(right)
        case ir.Unary(type, _, operand):
            return (type != BOOL) + operations(operand)
        case ir.Intrinsic(_, _, arguments) | ir.Warp(_, _, arguments, _) | ir.Call(_, _, arguments):
            return isinstance(expression, ir.Intrinsic) + sum(map(operations, arguments))
        case ir.IndirectCall(_, _, _, arguments):
            return sum(map(operations, arguments))
        case ir.Construct(_, parts):
            return sum(map(operations, parts))
        case ir.Atomic(_, op, _, arguments):
            return (op not in ("exch", "cas")) + sum(map(operations, arguments))
        case ir.Assign(_, _, value):
            return operations(value)
        case ir.Update(_, _, _, value, compute):
            return (not isinstance(compute, Pointer)) + operations(value)
        case ir.Cast(_, operand) | ir.Extract(_, operand, _):
            return operations(operand)
        case ir.Select(_, _, chosen, other) | ir.Logical(_, _, chosen, other) | ir.Sequence(_, chosen, other):
            return operations(chosen) + operations(other)
        case _:
            return 0
