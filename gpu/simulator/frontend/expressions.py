"""Lower expressions from clang's cursors to the IR; clang has made every conversion a node with a type already."""

from __future__ import annotations

from collections.abc import Callable

from gpu.simulator import ir
from gpu.simulator.frontend import calls
from gpu.simulator.frontend.clang import Cursor, CursorKind, bytes_of, start_of
from gpu.simulator.frontend.construction import braces, construct
from gpu.simulator.frontend.conversions import address_of, convert, dereference, number_of, only_child, read, zero_of
from gpu.simulator.frontend.heap import delete, new
from gpu.simulator.frontend.lambdas import value_of_lambda
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.names import (
    place_of_element,
    place_of_member,
    place_of_name,
    value_of_member,
    value_of_name,
)
from gpu.simulator.frontend.operators import (
    binary,
    compound_assignment,
    conditional,
    place_of_choice,
    place_of_operation,
    unary,
)
from gpu.simulator.frontend.scope import Scope
from gpu.simulator.frontend.statement_expressions import statement_expression
from gpu.simulator.frontend.types import decayed, is_reference, refuse, value_type
from gpu.simulator.types import BOOL, Pointer, Scalar, Struct, Type, Void

_LITERALS = (
    CursorKind.INTEGER_LITERAL,
    CursorKind.FLOATING_LITERAL,
    CursorKind.CHARACTER_LITERAL,
    CursorKind.CXX_BOOL_LITERAL_EXPR,
)
_CASTS = (
    CursorKind.CSTYLE_CAST_EXPR,
    CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR,
    CursorKind.CXX_CONST_CAST_EXPR,
)
_INSTEAD = {
    "CXX_DYNAMIC_CAST_EXPR": "Device code knows the type: use static_cast.",
}
_CHAR = Scalar("int8")


class Expressions:
    """Lowers the expressions of one function.

    Parameters
    ----------
    scope : Scope
        The function's variables.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def type_of(self, cursor: Cursor) -> Type:
        return self.scope.unit.types.lower(cursor.type, cursor)

    def condition(self, cursor: Cursor) -> ir.Expression:
        return self.converted(cursor, BOOL)

    def converted(self, cursor: Cursor, type: Type) -> ir.Expression:
        if cursor.kind == CursorKind.INIT_LIST_EXPR:
            return braces(self, cursor, type)
        if isinstance(type, Scalar) and isinstance(self.type_of(cursor), Struct):
            # Within braces clang does not show the conversion of an element.
            return convert(calls.converted_by_method(self, cursor), type, cursor)
        return convert(self.value(cursor), type, cursor)

    def discarded(self, cursor: Cursor) -> ir.Expression:
        lowered = self.value(cursor)
        if isinstance(lowered, ir.Atomic):
            return ir.Atomic(lowered.type, lowered.op, lowered.place, lowered.arguments, used=False)
        return lowered

    def value(self, cursor: Cursor) -> ir.Expression:
        kind = cursor.kind
        lowered = _VALUES.get(kind)
        if lowered is not None:
            return lowered(self, cursor)
        if kind == CursorKind.CXX_THIS_EXPR and self.scope.this is not None:
            return self.scope.this
        if (number := cursor.constant) is not None:  # sizeof, alignof and similar expressions
            return number_of(self.type_of(cursor), number)
        raise refuse(
            cursor, f"this expression ({kind.name.lower().replace('_', ' ')})", instead=_INSTEAD.get(kind.name, "")
        )

    def place(self, cursor: Cursor) -> ir.Place | None:
        lower_place = _PLACES.get(cursor.kind)
        return None if lower_place is None else lower_place(self, cursor)

    def address(self, cursor: Cursor) -> ir.Expression:
        place = self.place(cursor)
        if isinstance(place, ir.Element):
            return address_of(place)
        value = self.value(cursor)
        return ir.Temporary(Pointer(value.type), value)


def _literal(lower: Lowering, cursor: Cursor) -> ir.Expression:
    number = cursor.constant
    if number is None:
        raise refuse(cursor, "this literal")
    return number_of(lower.type_of(cursor), number)


def _string(lower: Lowering, cursor: Cursor) -> ir.Expression:
    return ir.Global(Pointer(_CHAR), lower.scope.unit.string(bytes_of(cursor)))


def _conversion(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an implicit conversion."""
    children = cursor.children
    type = lower.type_of(cursor)
    if not children or not children[-1].is_expression:
        number = cursor.constant  # of a type trait; None for a value that braces omit
        return zero_of(type) if number is None else number_of(type, number)
    return convert(lower.value(children[-1]), value_type(type), cursor)


def _converted_place(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower a conversion that keeps a place: it only adds const, or converts to a base class."""
    children = cursor.children
    if len(children) != 1:
        return None
    inner, type = lower.place(children[0]), lower.type_of(cursor)
    derived = lower.type_of(children[0]) if inner is None and isinstance(type, Struct) else None
    if isinstance(derived, Struct) and derived != type:  # the base of a temporary is within the temporary
        base = convert(lower.address(children[0]), Pointer(type), cursor)
        return ir.Element(type, base, None, start_of(cursor))
    if inner is None or isinstance(inner, ir.Local):
        return inner if inner is not None and inner.type == type else None
    if isinstance(type, Struct) and isinstance(inner.type, Struct):
        base = convert(address_of(inner), Pointer(type), cursor)
        return ir.Element(type, base, None, inner.position, inner.volatile)
    return inner if inner.type in (type, decayed(type)) else None


def _cast(lower: Lowering, cursor: Cursor) -> ir.Expression:
    children = cursor.children
    type = lower.type_of(cursor)
    if not children or not children[-1].is_expression:
        return zero_of(type)  # T()
    if isinstance(type, Void):
        return lower.discarded(children[-1])
    if is_reference(cursor.type):
        return read(dereference(convert(lower.address(children[-1]), Pointer(type), cursor), cursor))
    return lower.converted(children[-1], value_type(type))


def _call(lower: Lowering, cursor: Cursor) -> ir.Expression:
    callee = cursor.referenced
    if callee is not None and callee.kind == CursorKind.CONSTRUCTOR:
        return construct(lower, cursor, callee)
    return calls.call(lower, cursor)


def _referred_place(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower a call that returns a reference to the place it refers to."""
    pointer = calls.reference(lower, cursor)
    return None if pointer is None else dereference(pointer, cursor)


_VALUES: dict[CursorKind, Callable[[Lowering, Cursor], ir.Expression]] = {
    **dict.fromkeys(_LITERALS, _literal),
    **dict.fromkeys(_CASTS, _cast),
    CursorKind.PAREN_EXPR: lambda lower, cursor: lower.value(only_child(cursor)),
    CursorKind.UNEXPOSED_EXPR: _conversion,
    CursorKind.DECL_REF_EXPR: value_of_name,
    CursorKind.MEMBER_REF_EXPR: value_of_member,
    CursorKind.ARRAY_SUBSCRIPT_EXPR: lambda lower, cursor: read(place_of_element(lower, cursor)),
    CursorKind.BINARY_OPERATOR: binary,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: compound_assignment,
    CursorKind.UNARY_OPERATOR: unary,
    CursorKind.CONDITIONAL_OPERATOR: conditional,
    CursorKind.CALL_EXPR: _call,
    CursorKind.INIT_LIST_EXPR: lambda lower, cursor: braces(lower, cursor, lower.type_of(cursor)),
    CursorKind.COMPOUND_LITERAL_EXPR: lambda lower, cursor: lower.converted(only_child(cursor), lower.type_of(cursor)),
    CursorKind.StmtExpr: statement_expression,
    CursorKind.LAMBDA_EXPR: value_of_lambda,
    CursorKind.CXX_NEW_EXPR: new,
    CursorKind.CXX_DELETE_EXPR: delete,
    CursorKind.STRING_LITERAL: _string,
    CursorKind.CXX_NULL_PTR_LITERAL_EXPR: lambda lower, cursor: ir.Null(Pointer(Void())),
}
"""The function that lowers an expression of each kind to its value."""

_PLACES: dict[CursorKind, Callable[[Lowering, Cursor], ir.Place | None]] = {
    CursorKind.PAREN_EXPR: lambda lower, cursor: lower.place(only_child(cursor)),
    CursorKind.UNEXPOSED_EXPR: _converted_place,
    CursorKind.DECL_REF_EXPR: place_of_name,
    CursorKind.MEMBER_REF_EXPR: place_of_member,
    CursorKind.ARRAY_SUBSCRIPT_EXPR: place_of_element,
    CursorKind.CALL_EXPR: _referred_place,
    CursorKind.UNARY_OPERATOR: place_of_operation,
    CursorKind.BINARY_OPERATOR: place_of_operation,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: place_of_operation,
    CursorKind.CONDITIONAL_OPERATOR: place_of_choice,
}
"""The function that lowers an expression of each kind that can name a place."""
