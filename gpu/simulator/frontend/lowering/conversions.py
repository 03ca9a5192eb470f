"""Builders for IR expressions: constants, C's conversions, addresses, and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, get_reported_position
from gpu.simulator.frontend.lowering.constant_folding import fold_constants
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import BOOL, INT32, INT64, ArrayOf, Pointer, Scalar, Struct, Type, Void, decay, leaves


def build_constant(type: Type, number: int | float) -> ir.Const:
    """Return a constant of a scalar type."""
    assert isinstance(type, Scalar)
    value: Any = np.array(number).astype(type.dtype)[()]
    return ir.Const(type, value)


def only_child(cursor: Cursor) -> Cursor:
    """Return the operand of a node that has only one; a type in the source comes before it."""
    return cursor.children[-1]


def build_zero(type: Type) -> ir.Expression:
    """Return the value of empty braces."""
    if isinstance(type, Scalar):
        return build_constant(type, 0)
    if isinstance(type, Pointer):
        return ir.Null(type)
    return ir.Construct(type, tuple(build_zero(leaf) for _, leaf in leaves(type)))


def convert(expression: ir.Expression, type: Type, cursor: Cursor | None) -> ir.Expression:
    """Convert a value to a type, as C does; errors are reported at `cursor`."""
    if isinstance(type, Pointer):
        type = Pointer(decay(type.element))
    if expression.type == type or isinstance(type, Void):
        return expression
    if isinstance(type, Struct) and isinstance(expression.type, Struct):
        return ir.Extract(type, expression, 0)  # to a base class, which is at the start of the object
    if isinstance(type, Pointer) and (isinstance(expression, ir.Null) or _is_zero(expression)):
        return ir.Null(type)
    if isinstance(type, Scalar) and isinstance(expression.type, Pointer):
        number = ir.Cast(INT64, expression)
        if type == BOOL:
            return ir.Binary(BOOL, "!=", number, ir.Const(INT64, np.int64(0)))
        return number if type == INT64 else ir.Cast(type, number)
    if isinstance(type, Struct) or isinstance(expression.type, Struct):
        if cursor is None:
            raise TypeError(f"no conversion from {expression.type} to {type}")
        raise build_unsupported_error(
            cursor, f"a conversion from {expression.type} to {type}", advice="Convert member by member."
        )
    return fold_constants(ir.Cast(type, expression))


def _is_zero(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Const) and not expression.value


def address_of(place: ir.Element) -> ir.Expression:
    """Return the pointer to a place."""
    if place.index is None:
        return place.pointer
    pointer = place.pointer
    assert isinstance(pointer.type, Pointer)
    rows = (*place.rows, place.type.count) if isinstance(place.type, ArrayOf) else place.rows
    return ir.Offset(pointer.type, pointer, scale_to_elements(place.index, Pointer(place.type)), rows)


def dereference(pointer: ir.Expression, cursor: Cursor) -> ir.Element:
    """Return the place that a pointer points to."""
    if not isinstance(pointer.type, Pointer) or isinstance(pointer.type.element, Void):
        raise build_unsupported_error(cursor, f"dereferencing a pointer of type {pointer.type}")
    type = pointer.type.element
    if isinstance(pointer, ir.Offset):  # recover the array and the index of `&array[index]`
        return ir.Element(
            type, pointer.pointer, pointer.index, get_reported_position(cursor), is_volatile(cursor), pointer.rows
        )
    return ir.Element(type, pointer, None, get_reported_position(cursor), is_volatile(cursor), is_dereferenced=True)


def read(place: ir.Element) -> ir.Expression:
    """Return the value at a place; for an array, the pointer to its first element."""
    if isinstance(place.type, ArrayOf):
        return convert(address_of(place), Pointer(place.type.innermost), None)
    return ir.Load(place.type, place)


def is_volatile(cursor: Cursor) -> bool:
    """Return whether an expression names a place that is declared volatile, or accessed as volatile."""
    return cursor.type.is_volatile


def narrow_index(place: ir.Element) -> ir.Expression:
    """Return the index of an element as a 32-bit number."""
    assert place.index is not None
    return convert(place.index, INT32, None)


def scale_to_elements(index: ir.Expression, type: Type) -> ir.Expression:
    """Scale an index that counts arrays, as for a pointer to an array, to innermost elements."""
    element = type.element if isinstance(type, Pointer) else type
    return multiply_index(index, element.count) if isinstance(element, ArrayOf) else index


def promote(type: Type) -> Scalar:
    """Apply C's integer promotion."""
    assert isinstance(type, Scalar)
    return INT32 if type.size < 4 and not type.is_float else type


def multiply_index(index: ir.Expression, factor: int) -> ir.Expression:
    """Return an index times a constant, in 32 bits."""
    return fold_constants(ir.Binary(INT32, "*", convert(index, INT32, None), ir.Const(INT32, np.int32(factor))))


def negate_index(index: ir.Expression) -> ir.Expression:
    """Negate an index in 64 bits, which is also correct for unsigned indices."""
    return fold_constants(ir.Unary(INT64, "-", convert(index, INT64, None)))
