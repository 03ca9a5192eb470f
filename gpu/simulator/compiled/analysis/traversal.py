"""Queries on loops and function bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu.simulator import ir
from gpu.simulator.ir.walking import cache_query, child_nodes, walk
from gpu.simulator.types import BOOL

_MAXIMUM_UNROLLED = 9


def fold_condition(condition: Any) -> bool | None:
    """Return the constant value of a condition, as for `if constexpr`; None if it is not known."""
    match condition:
        case ir.Const(_, number):
            return bool(number)
        case ir.Cast(type, operand) if type == BOOL:
            return fold_condition(operand)
        case ir.Unary(_, "!", operand):
            operand_value = fold_condition(operand)
            return None if operand_value is None else not operand_value
        case ir.Logical(_, op, left, right):
            sides = fold_condition(left), fold_condition(right)
            if sides[0] is (op == "||"):
                return sides[0]
            return None if None in sides else sides[1]
    return None


def remove_dead_code(body: ir.Block) -> ir.Block:
    """Return a function's body without branches that are never taken and without code after a return."""
    statements: list[ir.Statement] = []
    for statement in _flatten(body):
        statements.append(statement)
        if isinstance(statement, ir.Return):
            break
    return ir.Block(tuple(statements))


def _flatten(statement: ir.Statement | None) -> Iterator[ir.Statement]:
    match statement:
        case None:
            return
        case ir.Block(statements):
            for inner in statements:
                yield from _flatten(inner)
        case ir.If(condition, then, orelse) if (holds := fold_condition(condition)) is not None:
            yield from _flatten(then if holds else orelse)
        case _:
            yield statement


@cache_query
def split_final_return(body: ir.Block) -> tuple[ir.Block, ir.Expression] | None:
    """Return a body's statements and its return value, if the only return is at its end; None otherwise."""
    *before, last = remove_dead_code(body).statements or (ir.Block(()),)
    if not isinstance(last, ir.Return) or last.value is None:
        return None
    has_early_return = any(isinstance(node, ir.Return) for statement in before for node in walk(statement))
    return None if has_early_return else (ir.Block(tuple(before)), last.value)


def is_unrolled(loop: ir.Loop) -> bool:
    """Return whether a loop has so few iterations that each thread should run it individually, unrolled."""
    iterations = _iterations(loop)
    return iterations is not None and iterations * _inner_iterations(loop) <= _MAXIMUM_UNROLLED


def outermost_loops(statement: Any) -> Iterator[Any]:
    """Yield the loops within a node that are not in another loop there."""
    for part in child_nodes(statement):
        if isinstance(part, ir.Loop):
            yield part
        else:
            yield from outermost_loops(part)


def _iterations(loop: ir.Loop) -> int | None:
    """Return the iterations of a loop to a constant, as if it started at 0; None if they are unknown."""
    match loop.condition, loop.step:
        case ir.Binary(_, "<" | "<=", _, ir.Const(_, end)), ir.Update(_, _, "+", ir.Const(_, step)) if int(step) > 0:
            return max(int(end) // int(step), 1)
    return None


def _inner_iterations(loop: ir.Loop) -> int:
    maximum = 1
    for inner in outermost_loops(loop.body):
        maximum = max(maximum, (_iterations(inner) or _MAXIMUM_UNROLLED) * _inner_iterations(inner))
    return maximum
