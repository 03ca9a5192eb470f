"""Lowering of `lower_new` and `lower_delete`."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import ClangType, Cursor, CursorKind, TypeKind, get_reported_position
from gpu.simulator.frontend.expressions.construction import (
    brace_expressions,
    build_default_elements,
    lower_array_braces,
)
from gpu.simulator.frontend.lowering.classes import ARRAYS, is_constructed, refuse_destructor
from gpu.simulator.frontend.lowering.conversions import build_constant, build_zero, convert
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import INT32, VOID, ArrayOf, Pointer, Scalar

_SIZE = Scalar("uint64")


def lower_new(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `new T`, `new T[n]` and `new (place) T`: memory from the heap or at a place, and its initialization."""
    pointer = lower.type_of(cursor)
    assert isinstance(pointer, Pointer)
    type, declared = pointer.element, cursor.type.canonical.pointee
    place: ir.Expression | None = None
    count: ir.Expression = build_constant(_SIZE, 1)
    initial: Cursor | None = None
    is_array = declared.canonical.kind != TypeKind.ULONG or _names_extent(cursor)
    for part in brace_expressions(cursor):
        if part.type.canonical.spelling == "void *":
            place = lower.value(part)
        elif is_array and part.type.canonical.kind == TypeKind.ULONG:
            count, is_array = lower.convert(part, _SIZE), False
        else:
            initial = part
    if place is None:
        is_zero = initial is not None and initial.type.canonical.kind in ARRAYS and _is_zero(initial, declared, cursor)
        allocate = lower.scope.unit.find_header_function("__lockstep_zeroed" if is_zero else "malloc")
        function = lower.scope.add_call(allocate, get_reported_position(cursor))
        size = ir.Binary(_SIZE, "*", count, build_constant(_SIZE, type.size))
        place = ir.Call(function.type, function, (size,), get_reported_position(cursor))
    result = ir.Local(pointer, lower.scope.new_slot(), "new")
    expression: ir.Expression = ir.Assign(pointer, result, convert(place, pointer, cursor))
    values: list[ir.Expression] = []
    if initial is not None and initial.type.canonical.kind in ARRAYS:
        if is_constructed(declared):
            values = build_default_elements(lower, declared, type, _lower_length(count, cursor))  # type: ignore[arg-type]
        elif initial.kind == CursorKind.INIT_LIST_EXPR and initial.children:
            values = lower_array_braces(lower, initial, ArrayOf(type, _lower_length(count, cursor)))
    elif initial is not None and (initial.kind != CursorKind.CALL_EXPR or not _is_uninitialized(initial, declared)):
        values = [lower.convert(initial, type)]
    elif initial is not None and _ends_with_parentheses(cursor):
        values = [build_zero(type)]
    for number, value in enumerate(values):
        element = ir.Element(type, result, build_constant(INT32, number), get_reported_position(cursor))
        expression = ir.Sequence(VOID, expression, ir.Assign(type, element, value))
    return ir.Sequence(pointer, expression, result)


def lower_delete(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `lower_delete` to a call of `free`."""
    (operand,) = brace_expressions(cursor)
    refuse_destructor(cursor, operand.type.canonical.pointee)
    function = lower.scope.add_call(lower.scope.unit.find_header_function("free"), get_reported_position(cursor))
    pointer = lower.convert(operand, function.parameters[0][1])
    return ir.Call(function.type, function, (pointer,), get_reported_position(cursor))


def _is_uninitialized(initial: Cursor, declared: ClangType) -> bool:
    return not initial.arguments and not is_constructed(declared)


def _is_zero(array: Cursor, declared: ClangType, new: Cursor) -> bool:
    """Return whether the elements of a new array are zero."""
    if is_constructed(declared) or array.kind == CursorKind.INIT_LIST_EXPR:
        return not is_constructed(declared) and not array.children
    return array.kind != CursorKind.CALL_EXPR or _ends_with_parentheses(new)


def _ends_with_parentheses(new: Cursor) -> bool:
    """Return whether a `lower_new` has `()` after its type, so that the object is zero-initialized."""
    return [spelling for spelling, _ in new.tokens()][-2:] == ["(", ")"]


def _names_extent(new: Cursor) -> bool:
    """Return whether a `lower_new` has brackets before its initializer."""
    tokens = list(new.tokens())
    for spelling, offset in tokens:
        if spelling == "[" or (spelling in ("(", "{") and offset > new.start.offset + len("new ")):
            return spelling == "["
    # In a template's instantiation clang keeps only the word `lower_new` of a new array without values.
    return len(tokens) == 1


def _lower_length(count: ir.Expression, cursor: Cursor) -> int:
    if not isinstance(count, ir.Const):
        raise build_unsupported_error(
            cursor, "a new array of objects with a variable length", advice="Write the length as a constant."
        )
    return int(count.value)
