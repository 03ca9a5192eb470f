"""Variables, members and elements: what names a place in memory or a slot of the function's."""

from __future__ import annotations

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang import Cursor, CursorKind, start_of
from gpu.simulator.frontend.conversions import (
    address_of,
    convert,
    index32,
    is_volatile,
    number_of,
    only_child,
    read,
    times,
)
from gpu.simulator.frontend.fold import fold
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.scope import Scope, referred_place
from gpu.simulator.frontend.types import decayed, refuse
from gpu.simulator.types import FUNCTION_POINTER, INT32, ArrayOf, Pointer, Scalar, Struct, Type, has_union, leaves

_SPECIAL = ("threadIdx", "blockIdx", "blockDim", "gridDim", "__lockstep_clusterDim")
_AXES = ("x", "y", "z")


def value_of_name(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a name: a variable's value, a constant, or the number of a function."""
    declaration = cursor.referenced
    if declaration is None or not cursor.spelling:  # a template's argument, put in by clang
        return convert(lower.value(only_child(cursor)), lower.type_of(cursor), cursor)
    if declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
        return number_of(lower.type_of(cursor), declaration.enum_value)
    if declaration.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return number_of(FUNCTION_POINTER, lower.scope.address_taken(declaration))
    variable = lower.scope.find(declaration)
    if variable is not None:
        if not variable.in_memory:
            return variable.local
        return read(_in_memory(variable.local, variable.type, cursor))
    captured = lower.scope.captured(cursor.spelling, start_of(cursor))
    if captured is not None:
        return read(captured)
    type = lower.type_of(cursor)
    if isinstance(type, Scalar) and not lower.scope.unit.is_variable(declaration):
        number = declaration.constant
        if number is not None:
            return number_of(type, number)
    return read(_place_outside(lower, cursor))


def place_of_name(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower the name of a variable to its place; None for one of a constant."""
    declaration = cursor.referenced
    if declaration is None or not cursor.spelling or declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
        return None
    variable = lower.scope.find(declaration)
    if variable is None:
        return lower.scope.captured(cursor.spelling, start_of(cursor)) or _place_outside(lower, cursor)
    if not variable.in_memory:
        return variable.local
    return _in_memory(variable.local, variable.type, cursor)


def _in_memory(local: ir.Local, type: Type, cursor: Cursor) -> ir.Element:
    return ir.Element(type, local, None, start_of(cursor), is_volatile(cursor))


def _place_outside(lower: Lowering, cursor: Cursor) -> ir.Element:
    declaration = cursor.referenced
    shared = lower.scope.shared_outside(declaration)
    if shared is not None:
        return _in_memory(shared, lower.type_of(cursor), cursor)
    variable = lower.scope.unit.variable(declaration) if declaration is not None else None
    if variable is None:
        raise refuse(cursor, f"the name {cursor.spelling} here")
    pointer = ir.Global(Pointer(decayed(variable.type)), variable.name)
    return ir.Element(variable.type, pointer, None, start_of(cursor), is_volatile(cursor))


def place_of_variable(scope: Scope, declaration: Cursor, position: SourcePosition) -> ir.Place | None:
    """Return the place of a variable of this function, or of one that this lambda has captured."""
    variable = scope.find(declaration)
    if variable is None:
        return scope.captured(declaration.spelling, position)
    return ir.Element(variable.type, variable.local, None, position) if variable.in_memory else variable.local


def value_of_member(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `a.b` and `a->b` to the member's value, of threadIdx and the like too."""
    owner = next(iter(cursor.children), None)
    if owner is not None and owner.spelling in _SPECIAL and _is_of_cuda(lower, owner):
        name = owner.spelling.removeprefix("__lockstep_")
        return ir.Special(Scalar("uint32"), name, _AXES.index(cursor.spelling))
    place = place_of_member(lower, cursor)
    if place is not None:
        return read(place)
    declaration = cursor.referenced
    if declaration is not None and declaration.kind == CursorKind.VAR_DECL:
        number = declaration.constant  # a static constexpr member
        if number is not None:
            return number_of(lower.type_of(cursor), number)
    if owner is None:
        raise refuse(cursor, f"the member {cursor.spelling} here")
    whole = lower.value(owner)
    if not isinstance(whole.type, Struct):
        raise refuse(cursor, f"the member {cursor.spelling} of this")
    member = whole.type.field(cursor.spelling)
    if has_union(whole.type):
        moved = ir.Member(Pointer(decayed(member.type)), ir.Temporary(Pointer(whole.type), whole), member.offset)
        return read(referred_place(member, moved, start_of(cursor)))
    first = next(n for n, (offset, _) in enumerate(leaves(whole.type)) if offset >= member.offset)
    return ir.Extract(member.type, whole, first)


def _is_of_cuda(lower: Lowering, cursor: Cursor) -> bool:
    """Whether a name is not that of a variable of this function."""
    return cursor.referenced is None or lower.scope.find(cursor.referenced) is None


def place_of_member(lower: Lowering, cursor: Cursor) -> ir.Element | None:
    """Lower `a.b` and `a->b` to the member's place; None where the object is only a value."""
    declaration = cursor.referenced
    if declaration is None or declaration.kind != CursorKind.FIELD_DECL:
        return None
    owner = next(iter(cursor.children), None)
    if owner is None or not owner.is_expression:
        pointer: ir.Expression | None = lower.scope.this
    elif isinstance(lower.type_of(owner), Pointer):
        pointer = lower.value(owner)
    else:
        place = lower.place(owner)
        pointer = address_of(place) if isinstance(place, ir.Element) else None
    if pointer is None or not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Struct):
        return None
    # libclang gives anonymous structs no name to look for: their members are those of the struct around them.
    member = pointer.type.element.field(cursor.spelling)
    moved = ir.Member(Pointer(decayed(member.type)), pointer, member.offset)
    return referred_place(member, moved, start_of(cursor), volatile=is_volatile(cursor))


def place_of_element(lower: Lowering, cursor: Cursor) -> ir.Element:
    """Lower `a[i]` to the element's place."""
    base, subscript = cursor.children
    index = lower.value(subscript)
    type = lower.type_of(cursor)
    outer = _array_behind(base)
    if outer is not None and isinstance(row := lower.type_of(outer), ArrayOf):
        place = place_of_element(lower, outer)
        # Arrays are smaller than 2^31 elements, so that 32 bits, whatever their sign, lead to the same element.
        flat = fold(ir.Binary(INT32, "+", times(index32(place), row.length), convert(index, INT32, cursor)))
        rows = (*place.rows, row.length)
        return ir.Element(type, place.pointer, flat, start_of(cursor), is_volatile(cursor), rows)
    # Where the element is an array itself, the index counts rows, and the next subscript makes it one of elements.
    return ir.Element(type, lower.value(base), index, start_of(cursor), is_volatile(cursor))


def _array_behind(base: Cursor) -> Cursor | None:
    """Return the subscript that a subscript's base is, `t[i]` in `t[i][j]`, behind the decay of its array."""
    while base.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        base = only_child(base)
    return base if base.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR else None
