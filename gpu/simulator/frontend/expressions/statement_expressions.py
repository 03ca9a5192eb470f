"""GNU statement expressions, `({ int x = f(); x * x; })`, which macros use."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position
from gpu.simulator.frontend.lowering.classes import find_initializer
from gpu.simulator.frontend.lowering.conversions import only_child
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error, is_reference
from gpu.simulator.types import ArrayOf, has_union

_ADVICE = "Make it a __device__ function."


def lower_statement_expression(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower declarations and expressions to a sequence; the variables are declared at the function's start."""
    parts = [part for statement in only_child(cursor).children for part in _parts(lower, statement)]
    if not parts:
        raise build_unsupported_error(cursor, "a statement expression without a value", advice=_ADVICE)
    *before, value = parts
    for each in reversed(before):
        value = ir.Sequence(value.type, each, value)
    return value


def _parts(lower: Lowering, statement: Cursor) -> list[ir.Expression]:
    if statement.kind == CursorKind.NULL_STMT:
        return []
    if statement.kind == CursorKind.DECL_STMT:
        return [part for variable in statement.children for part in _variable(lower, variable)]
    if not statement.is_expression:
        raise build_unsupported_error(statement, "this statement within an expression", advice=_ADVICE)
    return [lower.value(statement)]


def _variable(lower: Lowering, cursor: Cursor) -> list[ir.Expression]:
    scope, position = lower.scope, get_reported_position(cursor)
    if cursor.kind != CursorKind.VAR_DECL or is_reference(cursor.type):
        raise build_unsupported_error(cursor, "this declaration within an expression", advice=_ADVICE)
    type = scope.unit.types.lower(cursor.type, cursor)
    if isinstance(type, ArrayOf):
        raise build_unsupported_error(cursor, "an array within an expression", advice=_ADVICE)
    initial = find_initializer(cursor)
    value = None if initial is None else lower.convert(initial, type)
    in_memory = scope.needs_memory(cursor, type)
    local = scope.declare(cursor, type, in_memory=in_memory)
    if not in_memory:
        scope.hoisted_declarations.append(ir.Declare(local.slot, type, None, position, local.name))
        return [] if value is None else [ir.Assign(type, local, value)]
    scope.hoisted_declarations.append(
        ir.DeclareMemory(local.slot, type.size, (), False, local.name, position, has_union(type), type)
    )
    return [] if value is None else [ir.Assign(type, ir.Element(type, local, None, position), value)]
