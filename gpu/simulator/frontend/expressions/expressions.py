"""Lower expressions from clang's cursors to the IR; clang has made every conversion a node with a type already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position, read_literal_bytes
from gpu.simulator.frontend.expressions import calls
from gpu.simulator.frontend.expressions.construction import lower_braces, lower_constructor_call
from gpu.simulator.frontend.expressions.heap import lower_delete, lower_new
from gpu.simulator.frontend.expressions.lambdas import lower_lambda
from gpu.simulator.frontend.expressions.names import (
    place_of_element,
    place_of_member,
    place_of_name,
    value_of_member,
    value_of_name,
)
from gpu.simulator.frontend.expressions.operators import (
    lower_binary,
    lower_compound_assignment,
    lower_conditional,
    lower_unary,
    place_of_choice,
    place_of_operation,
)
from gpu.simulator.frontend.expressions.statement_expressions import lower_statement_expression
from gpu.simulator.frontend.lowering.addresses import is_reference_cast
from gpu.simulator.frontend.lowering.conversions import (
    address_of,
    build_constant,
    build_zero,
    convert,
    dereference,
    only_child,
    read,
)
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.scope import Scope
from gpu.simulator.frontend.lowering.types import build_unsupported_error, value_type
from gpu.simulator.types import BOOL, Pointer, Scalar, Struct, Type, Void, decay

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
_ADVICE = {
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
        return self.convert(cursor, BOOL)

    def convert(self, cursor: Cursor, type: Type) -> ir.Expression:
        if cursor.kind == CursorKind.INIT_LIST_EXPR:
            return lower_braces(self, cursor, type)
        if isinstance(type, Scalar) and isinstance(self.type_of(cursor), Struct):
            # Within braces clang does not show the conversion of an element.
            return convert(calls.convert_by_method(self, cursor), type, cursor)
        return convert(self.value(cursor), type, cursor)

    def lower_discarded(self, cursor: Cursor) -> ir.Expression:
        lowered = self.value(cursor)
        if isinstance(lowered, ir.Atomic):
            return replace(lowered, used=False)
        return lowered

    def value(self, cursor: Cursor) -> ir.Expression:
        kind = cursor.kind
        lowered = _VALUES.get(kind)
        if lowered is not None:
            return lowered(self, cursor)
        if kind == CursorKind.CXX_THIS_EXPR and self.scope.this is not None:
            return self.scope.this
        if (number := cursor.constant) is not None:  # sizeof, alignof and similar expressions
            return build_constant(self.type_of(cursor), number)
        raise build_unsupported_error(
            cursor, f"this expression ({kind.name.lower().replace('_', ' ')})", advice=_ADVICE.get(kind.name, "")
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
        raise build_unsupported_error(cursor, "this literal")
    return build_constant(lower.type_of(cursor), number)


def _string(lower: Lowering, cursor: Cursor) -> ir.Expression:
    return ir.Global(Pointer(_CHAR), lower.scope.unit.string(read_literal_bytes(cursor)))


def _conversion(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower an implicit conversion."""
    children = cursor.children
    type = lower.type_of(cursor)
    if not children or not children[-1].is_expression:
        number = cursor.constant  # of a type trait; None for a value that braces omit
        return build_zero(type) if number is None else build_constant(type, number)
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
        return ir.Element(type, base, None, get_reported_position(cursor))
    if inner is None or isinstance(inner, ir.Local):
        return inner if inner is not None and inner.type == type else None
    if isinstance(type, Struct) and isinstance(inner.type, Struct):
        base = convert(address_of(inner), Pointer(type), cursor)
        return ir.Element(type, base, None, inner.position, inner.volatile)
    return inner if inner.type in (type, decay(type)) else None


def _cast(lower: Lowering, cursor: Cursor) -> ir.Expression:
    children = cursor.children
    type = lower.type_of(cursor)
    if not children or not children[-1].is_expression:
        return build_zero(type)  # T()
    if isinstance(type, Void):
        return lower.lower_discarded(children[-1])
    place = _cast_place(lower, cursor)
    return lower.convert(children[-1], value_type(type)) if place is None else read(place)


def _cast_place(lower: Lowering, cursor: Cursor) -> ir.Element | None:
    """Lower a cast to a reference, such as `const_cast<int &>(x)`, to the place of its operand."""
    if not is_reference_cast(cursor):
        return None
    pointer = convert(lower.address(cursor.children[-1]), Pointer(lower.type_of(cursor)), cursor)
    return dereference(pointer, cursor)


def _call(lower: Lowering, cursor: Cursor) -> ir.Expression:
    callee = cursor.referenced
    if callee is not None and callee.kind == CursorKind.CONSTRUCTOR:
        return lower_constructor_call(lower, cursor, callee)
    return calls.lower_call(lower, cursor)


def _lower_referred_place(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower a call that returns a reference to the place it refers to."""
    pointer = calls.lower_reference_call(lower, cursor)
    return None if pointer is None else dereference(pointer, cursor)


_VALUES: dict[CursorKind, Callable[[Lowering, Cursor], ir.Expression]] = {
    **dict.fromkeys(_LITERALS, _literal),
    **dict.fromkeys(_CASTS, _cast),
    CursorKind.PAREN_EXPR: lambda lower, cursor: lower.value(only_child(cursor)),
    CursorKind.UNEXPOSED_EXPR: _conversion,
    CursorKind.DECL_REF_EXPR: value_of_name,
    CursorKind.MEMBER_REF_EXPR: value_of_member,
    CursorKind.ARRAY_SUBSCRIPT_EXPR: lambda lower, cursor: read(place_of_element(lower, cursor)),
    CursorKind.BINARY_OPERATOR: lower_binary,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: lower_compound_assignment,
    CursorKind.UNARY_OPERATOR: lower_unary,
    CursorKind.CONDITIONAL_OPERATOR: lower_conditional,
    CursorKind.CALL_EXPR: _call,
    CursorKind.INIT_LIST_EXPR: lambda lower, cursor: lower_braces(lower, cursor, lower.type_of(cursor)),
    CursorKind.COMPOUND_LITERAL_EXPR: lambda lower, cursor: lower.convert(only_child(cursor), lower.type_of(cursor)),
    CursorKind.StmtExpr: lower_statement_expression,
    CursorKind.LAMBDA_EXPR: lower_lambda,
    CursorKind.CXX_NEW_EXPR: lower_new,
    CursorKind.CXX_DELETE_EXPR: lower_delete,
    CursorKind.STRING_LITERAL: _string,
    CursorKind.CXX_NULL_PTR_LITERAL_EXPR: lambda lower, cursor: ir.Null(Pointer(Void())),
}
"""The function that lowers an expression of each kind to its value."""

_PLACES: dict[CursorKind, Callable[[Lowering, Cursor], ir.Place | None]] = {
    CursorKind.PAREN_EXPR: lambda lower, cursor: lower.place(only_child(cursor)),
    CursorKind.UNEXPOSED_EXPR: _converted_place,
    **dict.fromkeys(_CASTS, _cast_place),
    CursorKind.DECL_REF_EXPR: place_of_name,
    CursorKind.MEMBER_REF_EXPR: place_of_member,
    CursorKind.ARRAY_SUBSCRIPT_EXPR: place_of_element,
    CursorKind.CALL_EXPR: _lower_referred_place,
    CursorKind.UNARY_OPERATOR: place_of_operation,
    CursorKind.BINARY_OPERATOR: place_of_operation,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: place_of_operation,
    CursorKind.CONDITIONAL_OPERATOR: place_of_choice,
}
"""The function that lowers an expression of each kind that can name a place."""
