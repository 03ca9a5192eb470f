"""Lowering of `new` and `delete`."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang import ClangType, Cursor, CursorKind, TypeKind, start_of
from gpu.simulator.frontend.classes import ARRAYS, INSTEAD_OF_DESTRUCTOR, destructor, is_constructed
from gpu.simulator.frontend.construction import array_values, default_elements, expressions_of
from gpu.simulator.frontend.conversions import convert, number_of, zero_of
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.types import refuse
from gpu.simulator.types import INT32, VOID, ArrayOf, Pointer, Scalar

_SIZE = Scalar("uint64")


def new(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `new T`, `new T[n]` and `new (place) T`: memory from the heap or at a place, and its initialization."""
    pointer = lower.type_of(cursor)
    assert isinstance(pointer, Pointer)
    type, declared = pointer.element, cursor.type.canonical.pointee
    place: ir.Expression | None = None
    count: ir.Expression = number_of(_SIZE, 1)
    initial: Cursor | None = None
    is_array = declared.canonical.kind != TypeKind.ULONG or _names_extent(cursor)
    for part in expressions_of(cursor):
        if part.type.canonical.spelling == "void *":
            place = lower.value(part)
        elif is_array and part.type.canonical.kind == TypeKind.ULONG:
            count, is_array = lower.converted(part, _SIZE), False
        else:
            initial = part
    if place is None:
        is_zero = initial is not None and initial.type.canonical.kind in ARRAYS and _is_zero(initial, declared, cursor)
        allocate = lower.scope.unit.known("__lockstep_zeroed" if is_zero else "malloc")
        function = lower.scope.function_called(allocate, start_of(cursor))
        size = ir.Binary(_SIZE, "*", count, number_of(_SIZE, type.size))
        place = ir.Call(function.type, function, (size,), start_of(cursor))
    result = ir.Local(pointer, lower.scope.new_slot(), "new")
    expression: ir.Expression = ir.Assign(pointer, result, convert(place, pointer, cursor))
    values: list[ir.Expression] = []
    if initial is not None and initial.type.canonical.kind in ARRAYS:
        if is_constructed(declared):
            values = default_elements(lower, declared, type, _length(count, cursor))  # type: ignore[arg-type]
        elif initial.kind == CursorKind.INIT_LIST_EXPR and initial.children:
            values = array_values(lower, initial, ArrayOf(type, _length(count, cursor)))
    elif initial is not None and (initial.kind != CursorKind.CALL_EXPR or not _is_uninitialized(initial, declared)):
        values = [lower.converted(initial, type)]
    elif initial is not None and _ends_with_parentheses(cursor):
        values = [zero_of(type)]
    for number, value in enumerate(values):
        element = ir.Element(type, result, number_of(INT32, number), start_of(cursor))
        expression = ir.Sequence(VOID, expression, ir.Assign(type, element, value))
    return ir.Sequence(pointer, expression, result)


def delete(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `delete` to a call of `free`."""
    (operand,) = expressions_of(cursor)
    if name := destructor(operand.type.canonical.pointee):
        raise refuse(cursor, f"an object of {name}, which has a nonempty destructor", instead=INSTEAD_OF_DESTRUCTOR)
    function = lower.scope.function_called(lower.scope.unit.known("free"), start_of(cursor))
    pointer = lower.converted(operand, function.parameters[0][1])
    return ir.Call(function.type, function, (pointer,), start_of(cursor))


def _is_uninitialized(initial: Cursor, declared: ClangType) -> bool:
    return not initial.arguments and not is_constructed(declared)


def _is_zero(array: Cursor, declared: ClangType, new: Cursor) -> bool:
    """Return whether the elements of a new array are zero."""
    if is_constructed(declared) or array.kind == CursorKind.INIT_LIST_EXPR:
        return not is_constructed(declared) and not array.children
    return array.kind != CursorKind.CALL_EXPR or _ends_with_parentheses(new)


def _ends_with_parentheses(new: Cursor) -> bool:
    """Return whether a `new` has `()` after its type, so that the object is zero-initialized."""
    return [spelling for spelling, _ in new.tokens()][-2:] == ["(", ")"]


def _names_extent(new: Cursor) -> bool:
    """Return whether a `new` has brackets before its initializer."""
    tokens = list(new.tokens())
    for spelling, offset in tokens:
        if spelling == "[" or (spelling in ("(", "{") and offset > new.start.offset + len("new ")):
            return spelling == "["
    # In a template's instantiation clang keeps only the word `new` of a new array without values.
    return len(tokens) == 1


def _length(count: ir.Expression, cursor: Cursor) -> int:
    if not isinstance(count, ir.Const):
        raise refuse(cursor, "a new array of objects with a variable length", instead="Write the length as a constant.")
    return int(count.value)
