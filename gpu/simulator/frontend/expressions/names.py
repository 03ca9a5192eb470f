"""Lower names, members and subscripts to values and places."""

from __future__ import annotations

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position
from gpu.simulator.frontend.lowering.bit_fields import read_bits
from gpu.simulator.frontend.lowering.constant_folding import fold_constants
from gpu.simulator.frontend.lowering.conversions import (
    address_of,
    build_constant,
    convert,
    is_volatile,
    multiply_index,
    narrow_index,
    only_child,
    read,
)
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.scope import Scope, resolve_reference
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import (
    FUNCTION_POINTER,
    INT32,
    ArrayOf,
    BitField,
    Pointer,
    Scalar,
    Struct,
    Type,
    decay,
    has_union,
    leaves,
)

_SPECIAL = ("threadIdx", "blockIdx", "blockDim", "gridDim", "__lockstep_clusterDim")
_AXES = ("x", "y", "z")


def value_of_name(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a name to a variable's value, a constant, or a function's number."""
    declaration = cursor.referenced
    if declaration is None or not cursor.spelling:  # a template argument that clang has substituted
        return convert(lower.value(only_child(cursor)), lower.type_of(cursor), cursor)
    if declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
        return build_constant(lower.type_of(cursor), declaration.enum_value)
    if declaration.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return build_constant(FUNCTION_POINTER, lower.scope.add_pointer_target(declaration))
    variable = lower.scope.find(declaration)
    if variable is not None:
        if not variable.in_memory:
            return variable.local
        return read(_in_memory(variable.local, variable.type, cursor))
    captured = lower.scope.find_captured(cursor.spelling, get_reported_position(cursor))
    if captured is not None:
        return read(captured)
    type = lower.type_of(cursor)
    if cursor.spelling in _SPECIAL:
        return ir.Construct(type, tuple(_read_special(cursor.spelling, axis) for axis in _AXES))
    if isinstance(type, Scalar) and not lower.scope.unit.is_variable(declaration):
        number = declaration.constant
        if number is not None:
            return build_constant(type, number)
    return read(_outer_place(lower, cursor))


def place_of_name(lower: Lowering, cursor: Cursor) -> ir.Place | None:
    """Lower the name of a variable to its place; None for a constant, and for threadIdx and the like."""
    declaration = cursor.referenced
    if declaration is None or not cursor.spelling or declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
        return None
    variable = lower.scope.find(declaration)
    if variable is None and cursor.spelling in _SPECIAL:
        return None
    if variable is None:
        return lower.scope.find_captured(cursor.spelling, get_reported_position(cursor)) or _outer_place(lower, cursor)
    if not variable.in_memory:
        return variable.local
    return _in_memory(variable.local, variable.type, cursor)


def _in_memory(local: ir.Local, type: Type, cursor: Cursor) -> ir.Element:
    return ir.Element(type, local, None, get_reported_position(cursor), is_volatile(cursor))


def _outer_place(lower: Lowering, cursor: Cursor) -> ir.Element:
    declaration = cursor.referenced
    shared = lower.scope.find_outer_shared(declaration)
    if shared is not None:
        return _in_memory(shared, lower.type_of(cursor), cursor)
    variable = lower.scope.unit.variable(declaration) if declaration is not None else None
    if variable is None:
        raise build_unsupported_error(cursor, f"the name {cursor.spelling} here")
    pointer = ir.Global(Pointer(decay(variable.type)), variable.name)
    return ir.Element(variable.type, pointer, None, get_reported_position(cursor), is_volatile(cursor))


def place_of_variable(scope: Scope, declaration: Cursor, position: SourcePosition) -> ir.Place | None:
    """Return the place of a variable of this function, or of one captured by the lambda that it belongs to."""
    variable = scope.find(declaration)
    if variable is None:
        return scope.find_captured(declaration.spelling, position)
    return ir.Element(variable.type, variable.local, None, position) if variable.in_memory else variable.local


def value_of_member(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower `a.b` and `a->b` to the member's value, including members of threadIdx and other built-in variables."""
    owner = next(iter(cursor.children), None)
    if owner is not None and owner.spelling in _SPECIAL and _is_builtin(lower, owner):
        return _read_special(owner.spelling, cursor.spelling)
    bits = find_bit_field(lower, cursor)
    if bits is not None:
        return read_bits(bits[0], read(bits[1]))
    place = place_of_member(lower, cursor)
    if place is not None:
        return read(place)
    declaration = cursor.referenced
    if declaration is not None and declaration.kind == CursorKind.VAR_DECL:
        number = declaration.constant  # a static constexpr member
        if number is not None:
            return build_constant(lower.type_of(cursor), number)
    if owner is None:
        raise build_unsupported_error(cursor, f"the member {cursor.spelling} here")
    owner_value = lower.value(owner)
    if not isinstance(owner_value.type, Struct):
        raise build_unsupported_error(cursor, f"the member {cursor.spelling} of this expression")
    member = owner_value.type.field(cursor.spelling)
    if has_union(owner_value.type):
        address = ir.Member(
            Pointer(decay(member.type)), ir.Temporary(Pointer(owner_value.type), owner_value), member.offset
        )
        return read(resolve_reference(member, address, get_reported_position(cursor)))
    first = next(n for n, (offset, _) in enumerate(leaves(owner_value.type)) if offset >= member.offset)
    return ir.Extract(member.type, owner_value, first)


def _read_special(name: str, axis: str) -> ir.Special:
    """Return the value of a built-in variable along an axis, such as threadIdx.x."""
    return ir.Special(Scalar("uint32"), name.removeprefix("__lockstep_"), _AXES.index(axis))


def _is_builtin(lower: Lowering, cursor: Cursor) -> bool:
    """Return whether a name is not a variable of this function."""
    return cursor.referenced is None or lower.scope.find(cursor.referenced) is None


def place_of_member(lower: Lowering, cursor: Cursor) -> ir.Element | None:
    """Lower `a.b` and `a->b` to the member's place; None if the object is only a value."""
    declaration = cursor.referenced
    if declaration is None or declaration.kind != CursorKind.FIELD_DECL or declaration.is_bit_field:
        return None
    pointer = _owner_address(lower, cursor)
    if pointer is None:
        return None
    assert isinstance(pointer.type, Pointer)
    assert isinstance(pointer.type.element, Struct)
    # libclang does not name anonymous structs; their members belong to the enclosing struct.
    member = pointer.type.element.field(cursor.spelling)
    address = ir.Member(Pointer(decay(member.type)), pointer, member.offset)
    return resolve_reference(member, address, get_reported_position(cursor), volatile=is_volatile(cursor))


def find_bit_field(lower: Lowering, cursor: Cursor) -> tuple[BitField, ir.Element] | None:
    """Lower `a.b` and `a->b` to a bit field and its storage unit; None for another expression."""
    while cursor.kind == CursorKind.PAREN_EXPR:
        cursor = only_child(cursor)
    declaration = cursor.referenced if cursor.kind == CursorKind.MEMBER_REF_EXPR else None
    if declaration is None or declaration.kind != CursorKind.FIELD_DECL or not declaration.is_bit_field:
        return None
    pointer = _owner_address(lower, cursor)
    if pointer is None:
        value = lower.value(cursor.children[0])
        pointer = ir.Temporary(Pointer(value.type), value)
    assert isinstance(pointer.type, Pointer)
    assert isinstance(pointer.type.element, Struct)
    field = pointer.type.element.find_bit_field(cursor.spelling)
    assert field is not None
    address = ir.Member(Pointer(field.unit), pointer, field.offset)
    return field, ir.Element(field.unit, address, None, get_reported_position(cursor), is_volatile(cursor))


def _owner_address(lower: Lowering, cursor: Cursor) -> ir.Expression | None:
    """Lower the object of a member to its address; None if the object is only a value."""
    owner = next(iter(cursor.children), None)
    if owner is None or not owner.is_expression:
        pointer: ir.Expression | None = lower.scope.this
    elif isinstance(lower.type_of(owner), Pointer):
        pointer = lower.value(owner)
    else:
        place = lower.place(owner)
        pointer = address_of(place) if isinstance(place, ir.Element) else None
    is_object = pointer is not None and isinstance(pointer.type, Pointer) and isinstance(pointer.type.element, Struct)
    return pointer if is_object else None


def place_of_element(lower: Lowering, cursor: Cursor) -> ir.Element:
    """Lower `a[i]` to the element's place."""
    base, subscript = cursor.children
    index = lower.value(subscript)
    type = lower.type_of(cursor)
    outer = _inner_subscript(base)
    if outer is not None and isinstance(row := lower.type_of(outer), ArrayOf):
        place = place_of_element(lower, outer)
        # Arrays have fewer than 2^31 elements, so that signed and unsigned 32-bit indices give the same element.
        flat = fold_constants(
            ir.Binary(INT32, "+", multiply_index(narrow_index(place), row.length), convert(index, INT32, cursor))
        )
        rows = (*place.rows, row.length)
        return ir.Element(type, place.pointer, flat, get_reported_position(cursor), is_volatile(cursor), rows)
    # If the element is an array itself, the index counts rows, and the next subscript converts it to elements.
    return ir.Element(type, lower.value(base), index, get_reported_position(cursor), is_volatile(cursor))


def _inner_subscript(base: Cursor) -> Cursor | None:
    """Return the subscript that is a subscript's base, `t[i]` in `t[i][j]`, looking through the array's decay."""
    while base.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        base = only_child(base)
    return base if base.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR else None
