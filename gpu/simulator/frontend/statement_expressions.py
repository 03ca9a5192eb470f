"""GNU statement expressions, `({ int x = f(); x * x; })`, which macros use."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang import Cursor, CursorKind, start_of
from gpu.simulator.frontend.classes import initializer
from gpu.simulator.frontend.conversions import only_child
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.types import is_reference, refuse
from gpu.simulator.types import ArrayOf, has_union

_INSTEAD = "Make it a __device__ function."


def statement_expression(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower declarations and expressions to a sequence; the variables are declared at the function's start."""
    parts = [part for statement in only_child(cursor).children for part in _parts(lower, statement)]
    if not parts:
        raise refuse(cursor, "a statement expression without a value", instead=_INSTEAD)
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
        raise refuse(statement, "this statement within an expression", instead=_INSTEAD)
    return [lower.value(statement)]


def _variable(lower: Lowering, cursor: Cursor) -> list[ir.Expression]:
    scope, position = lower.scope, start_of(cursor)
    if cursor.kind != CursorKind.VAR_DECL or is_reference(cursor.type):
        raise refuse(cursor, "this declaration within an expression", instead=_INSTEAD)
    type = scope.unit.types.lower(cursor.type, cursor)
    if isinstance(type, ArrayOf):
        raise refuse(cursor, "an array within an expression", instead=_INSTEAD)
    initial = initializer(cursor)
    value = None if initial is None else lower.converted(initial, type)
    in_memory = scope.lives_in_memory(cursor, type)
    local = scope.declare(cursor, type, in_memory=in_memory)
    if not in_memory:
        scope.declared_first.append(ir.Declare(local.slot, type, None, position, local.name))
        return [] if value is None else [ir.Assign(type, local, value)]
    scope.declared_first.append(
        ir.DeclareMemory(local.slot, type.size, (), False, local.name, position, has_union(type), type)
    )
    return [] if value is None else [ir.Assign(type, ir.Element(type, local, None, position), value)]
