"""Initialization of objects: braces, default member initializers, and constructors."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import (
    ClangType,
    Cursor,
    CursorKind,
    TypeKind,
    get_reported_position,
    read_literal_bytes,
)
from gpu.simulator.frontend.expressions.calls import find_default_argument, lower_argument, lower_arguments
from gpu.simulator.frontend.lowering.bit_fields import build_unit
from gpu.simulator.frontend.lowering.classes import (
    ARRAYS,
    find_default_constructor,
    find_initializer,
    find_member_declarations,
    has_body,
    innermost_type,
    is_aggregate,
    is_constructed,
    is_implicit,
    is_record,
    refuse_destructor,
)
from gpu.simulator.frontend.lowering.conversions import build_constant, build_zero
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error, find_members, is_instantiated
from gpu.simulator.types import VOID, ArrayOf, BitField, Pointer, Struct, Type, decay

_CONSTRUCTOR_PARTS = (CursorKind.PARM_DECL, CursorKind.MEMBER_REF, CursorKind.COMPOUND_STMT)


def lower_constructor_call(lower: Lowering, cursor: Cursor, callee: Cursor) -> ir.Expression:
    """Lower a call of a constructor to the object."""
    type = decay(lower.type_of(cursor))
    arguments = cursor.arguments
    if not isinstance(type, Struct):
        raise build_unsupported_error(cursor, f"the construction of {type}")
    refuse_destructor(cursor, cursor.type)
    if has_body(callee) and not is_implicit(callee):
        return _construct(lower, type, callee, lower_arguments(lower, cursor, callee), get_reported_position(cursor))
    if len(arguments) == 1:
        return lower.convert(arguments[0], type)
    return build_default(lower, type, cursor.type)


def _construct_from(lower: Lowering, type: Struct, constructor: Cursor, arguments: list[Cursor]) -> ir.Expression:
    """Return the object that a constructor creates; omitted arguments get the parameters' defaults."""
    parameters = constructor.arguments
    values = [
        *arguments,
        *(find_default_argument(parameter, constructor) for parameter in parameters[len(arguments) :]),
    ]
    lowered = [lower_argument(lower, *each) for each in zip(values, parameters, strict=True)]
    return _construct(lower, type, constructor, lowered, get_reported_position(constructor))


def _construct(
    lower: Lowering, type: Struct, constructor: Cursor, arguments: list[ir.Expression], position: SourcePosition
) -> ir.Expression:
    function = lower.scope.add_call(constructor, position)
    this = ir.Temporary(Pointer(type), None)
    this_pointer = ir.Local(this.type, lower.scope.new_slot(), "this")
    call = ir.Call(function.type, function, (this_pointer, *arguments), position)
    construction = ir.Sequence(VOID, ir.Assign(this.type, this_pointer, this), call)
    return ir.Sequence(type, construction, ir.Load(type, ir.Element(type, this_pointer, None, position)))


def lower_braces(lower: Lowering, cursor: Cursor, type: Type, declared: ClangType | None = None) -> ir.Expression:
    """Lower `{...}` to the value of a struct or scalar; omitted members get their default initializers or zero.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    cursor : Cursor
        The initializer list.
    declared : ClangType or None
        Clang's type of the object; None for the type of the initializer list.

    Raises
    ------
    CompileError
        The simulator does not support the initialization.
    """
    values = deque(brace_expressions(cursor))
    if not isinstance(type, Struct):
        return lower.convert(values[0], type) if values else build_zero(type)
    if type.is_union:
        return _lower_union(lower, cursor, type, values)
    if declared is None and is_record(cursor.type):
        declared = cursor.type
    if declared is not None and not is_aggregate(declared):
        return _construct_from_braces(lower, cursor, type, declared, list(values))
    return _consume_members(lower, type, declared, values)


def lower_array_braces(
    lower: Lowering, cursor: Cursor, type: ArrayOf, declared: ClangType | None = None
) -> list[ir.Expression]:
    """Lower an array's braces to one value per innermost element; omitted elements are default-initialized.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    cursor : Cursor
        The initializer list, or a string literal for an array of characters.
    declared : ClangType or None
        Clang's type of the array; None for the type of the initializer list.

    Raises
    ------
    CompileError
        The simulator does not support the initialization.
    """
    if cursor.kind == CursorKind.STRING_LITERAL:
        letters = [build_constant(type.element, letter) for letter in read_literal_bytes(cursor)]
        return letters + [build_zero(type.element)] * (type.count - len(letters))
    return _consume_elements(lower, type, declared or cursor.type, deque(brace_expressions(cursor)))


def _consume_members(
    lower: Lowering, type: Struct, declared: ClangType | None, initializers: deque[Cursor]
) -> ir.Expression:
    """Consume values for each member in turn."""
    declarations = find_member_declarations(declared)
    named = {}
    if initializers and _has_designator(initializers[0]):
        for value in initializers:
            designator, inner = value.children
            named[designator.spelling] = inner
        initializers.clear()
    parts: list[ir.Expression] = []
    for member in type.fields:
        if member.parts:
            parts.append(_consume_bits(lower, member.parts, declarations, named, initializers))
            continue
        source = declarations.get(member.name)
        if member.name in named:
            initializers.append(named[member.name])
        if not initializers or _is_omitted(initializers[0]):
            if initializers:
                initializers.popleft()
            parts += [build_zero(member.type)] if source is None else _build_member_default(lower, source, member.type)
        elif member.is_reference:
            parts.append(lower.address(initializers.popleft()))
        else:
            parts += _consume_next(lower, member.type, None if source is None else source.type, initializers)
    return ir.Construct(type, tuple(parts))


def _consume_bits(
    lower: Lowering,
    fields: Sequence[BitField],
    declarations: Mapping[str, Cursor],
    named: Mapping[str, Cursor],
    initializers: deque[Cursor],
) -> ir.Expression:
    """Consume values for each bit field of a storage unit in turn."""
    values: list[ir.Expression] = []
    for field in fields:
        if field.name in named:
            initializers.append(named[field.name])
        if initializers and not _is_omitted(initializers[0]):
            values.append(lower.convert(initializers.popleft(), field.type))
            continue
        if initializers:
            initializers.popleft()
        values.append(_build_bit_default(lower, declarations, field))
    return build_unit(fields, values)


def _build_bit_default(lower: Lowering, declarations: Mapping[str, Cursor], field: BitField) -> ir.Expression:
    """Return the default value of a bit field."""
    source = declarations.get(field.name)
    if source is not None and ("=" in source.text or "{" in source.text):  # libclang does not show the initializer
        raise build_unsupported_error(
            source, f"the default initializer of the bit field {field.name}", advice="Initialize it in a constructor."
        )
    return build_zero(field.type)


def _consume_elements(
    lower: Lowering, type: ArrayOf, declared: ClangType, initializers: deque[Cursor]
) -> list[ir.Expression]:
    """Consume values for each element of an array in turn."""
    inner = declared.canonical
    element = inner.element_type if inner.kind in ARRAYS else inner
    values: list[ir.Expression] = []
    if initializers:
        _has_designator(initializers[0])
    for number in range(type.length):
        if not initializers:
            missing = (type.length - number) * (type.count // type.length)
            if isinstance(type.innermost, Struct):
                return values + build_default_elements(lower, declared, type.innermost, missing)
            return values + [build_zero(type.innermost)] * missing
        values += _consume_next(lower, type.element, element, initializers)
    return values


def _consume_next(
    lower: Lowering, type: Type, declared: ClangType | None, initializers: deque[Cursor]
) -> list[ir.Expression]:
    """Consume the next value; if inner braces are omitted, as many values as the member or element needs."""
    first = initializers[0]
    if isinstance(type, ArrayOf) and first.kind not in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL):
        return _consume_elements(lower, type, declared or first.type, initializers)
    is_plain = first.kind != CursorKind.INIT_LIST_EXPR
    if isinstance(type, Struct) and not type.is_union and is_plain and lower.type_of(first) != type:
        if declared is None or is_aggregate(declared):
            return [_consume_members(lower, type, declared, initializers)]
        return [_construct_from_braces(lower, first, type, declared, [initializers.popleft()])]
    initializers.popleft()
    if isinstance(type, ArrayOf):
        return lower_array_braces(lower, first, type, declared)
    if not is_plain:
        return [lower_braces(lower, first, type, declared)]
    return [lower.convert(first, type)]


def _lower_union(lower: Lowering, cursor: Cursor, type: Struct, initializers: deque[Cursor]) -> ir.Expression:
    if not initializers or _is_omitted(initializers[0]):
        return build_zero(type)
    union_pointer = ir.Local(Pointer(type), lower.scope.new_slot(), "a union")
    first = type.fields[0]
    place = ir.Element(
        first.type, ir.Member(Pointer(decay(first.type)), union_pointer, 0), None, get_reported_position(cursor)
    )
    if isinstance(first.type, ArrayOf):
        raise build_unsupported_error(
            cursor, "braces for a union that starts with an array", advice="Assign its elements."
        )
    fresh = ir.Assign(union_pointer.type, union_pointer, ir.Temporary(Pointer(type), build_zero(type)))
    value = lower.convert(initializers[0], first.type)
    assignments = ir.Sequence(VOID, fresh, ir.Assign(first.type, place, value))
    return ir.Sequence(
        type, assignments, ir.Load(type, ir.Element(type, union_pointer, None, get_reported_position(cursor)))
    )


def _construct_from_braces(
    lower: Lowering, cursor: Cursor, type: Struct, declared: ClangType, initializers: list[Cursor]
) -> ir.Expression:
    """Lower braces, or a value to convert, where clang does not name the constructor."""
    if not initializers:
        return _build_default_object(lower, declared, type)
    constructors = [
        member
        for member in find_members(declared.canonical.declaration)
        if member.kind == CursorKind.CONSTRUCTOR and len(member.arguments) == len(initializers)
    ]
    if is_instantiated(declared.canonical.declaration):
        # The template's constructor has no types; one that only initializes the only member needs none.
        if len(initializers) == 1 and any(_initializes_only(each, type) for each in constructors):
            return ir.Construct(type, (lower.convert(initializers[0], type.fields[0].type),))
    elif len(constructors) == 1 and constructors[0].definition is not None:
        return _construct_from(lower, type, constructors[0], initializers)
    name = declared.canonical.spelling
    raise build_unsupported_error(cursor, f"this value for a {name}", advice=f"Name the type: {name}(...).")


def _initializes_only(constructor: Cursor, type: Struct) -> bool:
    """Return whether all that a constructor does is to initialize the only member of a class with its parameter."""
    parts = [child for child in constructor.children if child.kind.is_expression() or child.kind in _CONSTRUCTOR_PARTS]
    if len(parts) != 4 or len(type.fields) != 1:
        return False
    parameter, member, value, body = parts
    return (
        member.spelling == type.fields[0].name
        and parameter.spelling in (value.spelling, *(inner.spelling for inner in value.children))
        and body.kind == CursorKind.COMPOUND_STMT
        and not body.children
    )


def _does_nothing(constructor: Cursor) -> bool:
    """Return whether a default constructor has no initializers and an empty body."""
    parts = [child for child in constructor.children if child.kind.is_expression() or child.kind in _CONSTRUCTOR_PARTS]
    return len(parts) == 1 and parts[0].kind == CursorKind.COMPOUND_STMT and not parts[0].children


def build_default(
    lower: Lowering, type: Struct, declared: ClangType, *, initialized_members: Collection[str] = ()
) -> ir.Expression:
    """Return a struct's value without a constructor: default member initializers, else zeros.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    declared : ClangType
        Clang's type of the struct, which has the initializers.
    initialized_members : collection of str
        The names of members that other code initializes; they are zero here.
    """
    if type.is_union:
        return build_zero(type)
    declarations = find_member_declarations(declared)
    parts: list[ir.Expression] = []
    for member in type.fields:
        if member.parts:
            known = {name: each for name, each in declarations.items() if name not in initialized_members}
            values = [_build_bit_default(lower, known, field) for field in member.parts]
            parts.append(build_unit(member.parts, values))
            continue
        source = declarations.get(member.name)
        if source is None or member.name in initialized_members or member.is_reference:
            parts.append(build_zero(member.type))
        else:
            parts += _build_member_default(lower, source, member.type)
    return ir.Construct(type, tuple(parts))


def build_default_array(lower: Lowering, declared: ClangType, type: ArrayOf) -> list[ir.Expression]:
    """Return the default value of each innermost element of an array of structs; [] if they have none."""
    if not isinstance(type.innermost, Struct) or not is_constructed(declared):
        return []
    return build_default_elements(lower, declared, type.innermost, type.count)


def build_default_elements(lower: Lowering, array: ClangType, element: Struct, count: int) -> list[ir.Expression]:
    """Return the default values of elements of an array of structs.

    Parameters
    ----------
    lower : Lowering
        The lowering of expressions in the function.
    array : ClangType
        Clang's type of the array.
    element : Struct
        The type of its innermost elements.

    Raises
    ------
    CompileError
        The simulator does not support the default constructor.
    """
    return [_build_default_object(lower, innermost_type(array), element) for _ in range(count)]


def _build_default_object(lower: Lowering, declared: ClangType, type: Struct) -> ir.Expression:
    """Return a struct's default value: the result of its default constructor, if it has one."""
    if not is_constructed(declared):
        return build_zero(type)
    constructor = find_default_constructor(declared)
    if constructor is not None:
        if is_instantiated(declared.canonical.declaration):
            if _does_nothing(constructor):
                return build_default(lower, type, declared)
            name = declared.canonical.spelling
            raise build_unsupported_error(
                lower.scope.definition,
                f"an implicit call of the default constructor of {name}",
                advice=f"Call it: {name}(), or for a member, in the initializer list of its class's constructor.",
            )
        return _construct_from(lower, type, constructor, [])
    return build_default(lower, type, declared)


def _build_member_default(lower: Lowering, source: Cursor, type: Type) -> list[ir.Expression]:
    """Return the default value of a member or base class: one value, or one per element of an array."""
    if source.kind == CursorKind.FIELD_DECL and (initial := find_initializer(source)) is not None:
        if isinstance(type, ArrayOf):
            return lower_array_braces(lower, initial, type, source.type)
        if initial.kind == CursorKind.INIT_LIST_EXPR:
            return [lower_braces(lower, initial, type, source.type)]
        return [lower.convert(initial, type)]
    if source.kind == CursorKind.CXX_BASE_SPECIFIER and not is_record(source.type):
        _check_template(lower, source)
        return [build_zero(type)]
    if isinstance(type, ArrayOf) and isinstance(type.innermost, Struct) and is_constructed(source.type):
        return build_default_elements(lower, source.type, type.innermost, type.count)
    return [_build_default_object(lower, source.type, type) if isinstance(type, Struct) else build_zero(type)]


def _check_template(lower: Lowering, base: Cursor) -> None:
    """Refuse a base class that depends on template arguments if its default constructor would have to be resolved."""
    template = next((c.referenced for c in base.children if c.kind == CursorKind.TEMPLATE_REF), None)
    members = template.children if template is not None else []
    if any(
        (member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor)
        or (member.kind == CursorKind.FIELD_DECL and find_initializer(member) is not None)
        for member in members
    ):
        raise build_unsupported_error(
            lower.scope.definition,
            f"an implicit call of the default constructor of {base.spelling}",
            advice="Call it in the constructor's initializer list.",
        )


def brace_expressions(braces: Cursor) -> list[Cursor]:
    """Return the expressions within braces, or the operands of a `new`."""
    return [child for child in braces.children if child.is_expression]


def _has_designator(value: Cursor) -> bool:
    """Return whether a value in braces has a designator, which names its member."""
    children = value.children
    if value.kind != CursorKind.UNEXPOSED_EXPR or value.type.kind != TypeKind.VOID:
        return False
    if len(children) != 2 or children[0].kind != CursorKind.MEMBER_REF:
        raise build_unsupported_error(
            value, "array designators in braces", advice="List all members and elements in order."
        )
    return True


def _is_omitted(value: Cursor) -> bool:
    """Return whether a value is clang's stand-in for one that braces omit."""
    return value.kind == CursorKind.UNEXPOSED_EXPR and not value.children and value.constant is None
