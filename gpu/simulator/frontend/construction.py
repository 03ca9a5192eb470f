"""Initialization of objects: braces, default member initializers, and constructors."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.calls import default_argument, lowered_argument, lowered_arguments
from gpu.simulator.frontend.clang import ClangType, Cursor, CursorKind, TypeKind, bytes_of, start_of
from gpu.simulator.frontend.classes import (
    ARRAYS,
    INSTEAD_OF_DESTRUCTOR,
    default_constructor,
    destructor,
    has_body,
    initializer,
    innermost,
    is_aggregate,
    is_constructed,
    is_implicit,
    is_record,
    member_declarations,
)
from gpu.simulator.frontend.conversions import number_of, zero_of
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.types import decayed, is_instantiated, refuse, shown_members
from gpu.simulator.types import VOID, ArrayOf, Pointer, Struct, Type


def construct(lower: Lowering, cursor: Cursor, callee: Cursor) -> ir.Expression:
    """Lower a call of a constructor to the object."""
    type = decayed(lower.type_of(cursor))
    arguments = cursor.arguments
    if not isinstance(type, Struct):
        raise refuse(cursor, f"the construction of {type}")
    if name := destructor(cursor.type):
        raise refuse(cursor, f"an object of {name}, which has a nonempty destructor", instead=INSTEAD_OF_DESTRUCTOR)
    if has_body(callee) and not is_implicit(callee):
        return _construct(lower, type, callee, lowered_arguments(lower, cursor, callee), start_of(cursor))
    if len(arguments) == 1:
        return lower.converted(arguments[0], type)
    return default(lower, type, cursor.type)


def _construct_from(lower: Lowering, type: Struct, constructor: Cursor, arguments: list[Cursor]) -> ir.Expression:
    """Return the object that a constructor creates; omitted arguments get the parameters' defaults."""
    parameters = constructor.arguments
    values = [*arguments, *(default_argument(parameter, constructor) for parameter in parameters[len(arguments) :])]
    lowered = [lowered_argument(lower, *each) for each in zip(values, parameters, strict=True)]
    return _construct(lower, type, constructor, lowered, start_of(constructor))


def _construct(
    lower: Lowering, type: Struct, constructor: Cursor, arguments: list[ir.Expression], position: SourcePosition
) -> ir.Expression:
    function = lower.scope.function_called(constructor, position)
    this = ir.Temporary(Pointer(type), None)
    this_pointer = ir.Local(this.type, lower.scope.new_slot(), "this")
    call = ir.Call(function.type, function, (this_pointer, *arguments), position)
    construction = ir.Sequence(VOID, ir.Assign(this.type, this_pointer, this), call)
    return ir.Sequence(type, construction, ir.Load(type, ir.Element(type, this_pointer, None, position)))


def braces(lower: Lowering, cursor: Cursor, type: Type, declared: ClangType | None = None) -> ir.Expression:
    """Lower `{...}` to the value of a struct or scalar; omitted members get their default initializers or zero."""
    values = deque(expressions_of(cursor))
    if not isinstance(type, Struct):
        return lower.converted(values[0], type) if values else zero_of(type)
    if type.is_union:
        return _union(lower, cursor, type, values)
    if declared is None and is_record(cursor.type):
        declared = cursor.type
    if declared is not None and not is_aggregate(declared):
        return _construct_from_braces(lower, cursor, type, declared, list(values))
    return _members(lower, type, declared, values)


def array_values(
    lower: Lowering, cursor: Cursor, type: ArrayOf, declared: ClangType | None = None
) -> list[ir.Expression]:
    """Lower an array's braces to one value per innermost element; omitted elements are default-initialized."""
    if cursor.kind == CursorKind.STRING_LITERAL:
        letters = [number_of(type.element, letter) for letter in bytes_of(cursor)]
        return letters + [zero_of(type.element)] * (type.count - len(letters))
    return _elements(lower, type, declared or cursor.type, deque(expressions_of(cursor)))


def _members(lower: Lowering, type: Struct, declared: ClangType | None, initializers: deque[Cursor]) -> ir.Expression:
    """Consume values for each member in turn."""
    declarations = member_declarations(declared)
    named = {}
    if initializers and _has_designator(initializers[0]):
        for value in initializers:
            designator, inner = value.children
            named[designator.spelling] = inner
        initializers.clear()
    parts: list[ir.Expression] = []
    for member in type.fields:
        source = declarations.get(member.name)
        if member.name in named:
            initializers.append(named[member.name])
        if not initializers or _is_omitted(initializers[0]):
            if initializers:
                initializers.popleft()
            parts += [zero_of(member.type)] if source is None else _member_default(lower, source, member.type)
        elif member.is_reference:
            parts.append(lower.address(initializers.popleft()))
        else:
            parts += _consume_next(lower, member.type, None if source is None else source.type, initializers)
    return ir.Construct(type, tuple(parts))


def _elements(lower: Lowering, type: ArrayOf, declared: ClangType, initializers: deque[Cursor]) -> list[ir.Expression]:
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
                return values + default_elements(lower, declared, type.innermost, missing)
            return values + [zero_of(type.innermost)] * missing
        values += _consume_next(lower, type.element, element, initializers)
    return values


def _consume_next(
    lower: Lowering, type: Type, declared: ClangType | None, initializers: deque[Cursor]
) -> list[ir.Expression]:
    """Consume the next value; if inner braces are omitted, as many values as the member or element needs."""
    first = initializers[0]
    if isinstance(type, ArrayOf) and first.kind not in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL):
        return _elements(lower, type, declared or first.type, initializers)
    is_plain = first.kind != CursorKind.INIT_LIST_EXPR
    if isinstance(type, Struct) and not type.is_union and is_plain and lower.type_of(first) != type:
        if declared is None or is_aggregate(declared):
            return [_members(lower, type, declared, initializers)]
        return [_construct_from_braces(lower, first, type, declared, [initializers.popleft()])]
    initializers.popleft()
    if isinstance(type, ArrayOf):
        return array_values(lower, first, type, declared)
    if not is_plain:
        return [braces(lower, first, type, declared)]
    return [lower.converted(first, type)]


def _union(lower: Lowering, cursor: Cursor, type: Struct, initializers: deque[Cursor]) -> ir.Expression:
    if not initializers or _is_omitted(initializers[0]):
        return zero_of(type)
    union_pointer = ir.Local(Pointer(type), lower.scope.new_slot(), "a union")
    first = type.fields[0]
    place = ir.Element(first.type, ir.Member(Pointer(decayed(first.type)), union_pointer, 0), None, start_of(cursor))
    if isinstance(first.type, ArrayOf):
        raise refuse(cursor, "braces for a union that starts with an array", instead="Assign its elements.")
    fresh = ir.Assign(union_pointer.type, union_pointer, ir.Temporary(Pointer(type), zero_of(type)))
    value = lower.converted(initializers[0], first.type)
    assignments = ir.Sequence(VOID, fresh, ir.Assign(first.type, place, value))
    return ir.Sequence(type, assignments, ir.Load(type, ir.Element(type, union_pointer, None, start_of(cursor))))


def _construct_from_braces(
    lower: Lowering, cursor: Cursor, type: Struct, declared: ClangType, initializers: list[Cursor]
) -> ir.Expression:
    """Lower braces, or a value to convert, where clang does not name the constructor."""
    if not initializers:
        return _default_object(lower, declared, type)
    constructors = [
        member
        for member in shown_members(declared.canonical.declaration)
        if member.kind == CursorKind.CONSTRUCTOR and len(member.arguments) == len(initializers)
    ]
    if len(constructors) != 1 or constructors[0].definition is None or is_instantiated(declared.declaration):
        name = declared.canonical.spelling
        raise refuse(cursor, f"this value for a {name}", instead=f"Name the type: {name}(...).")
    return _construct_from(lower, type, constructors[0], initializers)


def default(lower: Lowering, type: Struct, declared: ClangType, *, given: Collection[str] = ()) -> ir.Expression:
    """Return a struct's value without a constructor: default member initializers, else zeros.

    Some members may be initialized elsewhere.
    """
    if type.is_union:
        return zero_of(type)
    declarations = member_declarations(declared)
    parts: list[ir.Expression] = []
    for member in type.fields:
        source = declarations.get(member.name)
        if source is None or member.name in given or member.is_reference:
            parts.append(zero_of(member.type))
        else:
            parts += _member_default(lower, source, member.type)
    return ir.Construct(type, tuple(parts))


def default_array(lower: Lowering, declared: ClangType, type: ArrayOf) -> list[ir.Expression]:
    """Return the default value of each innermost element of an array of structs; [] if they have none."""
    if not isinstance(type.innermost, Struct) or not is_constructed(declared):
        return []
    return default_elements(lower, declared, type.innermost, type.count)


def default_elements(lower: Lowering, array: ClangType, element: Struct, count: int) -> list[ir.Expression]:
    """Return the default values of `count` elements of an array of structs."""
    return [_default_object(lower, innermost(array), element) for _ in range(count)]


def _default_object(lower: Lowering, declared: ClangType, type: Struct) -> ir.Expression:
    """Return a struct's default value: the result of its default constructor, if it has one."""
    if not is_constructed(declared):
        return zero_of(type)
    constructor = default_constructor(declared)
    if constructor is not None:
        if is_instantiated(declared.canonical.declaration):
            name = declared.canonical.spelling
            raise refuse(
                lower.scope.definition,
                f"an implicit call of the default constructor of {name}",
                instead=f"Call it: {name}(), or for a member, in the initializer list of its class's constructor.",
            )
        return _construct_from(lower, type, constructor, [])
    return default(lower, type, declared)


def _member_default(lower: Lowering, source: Cursor, type: Type) -> list[ir.Expression]:
    """Return the default value of a member or base class: one value, or one per element of an array."""
    if source.kind == CursorKind.FIELD_DECL and (initial := initializer(source)) is not None:
        if isinstance(type, ArrayOf):
            return array_values(lower, initial, type, source.type)
        if initial.kind == CursorKind.INIT_LIST_EXPR:
            return [braces(lower, initial, type, source.type)]
        return [lower.converted(initial, type)]
    if source.kind == CursorKind.CXX_BASE_SPECIFIER and not is_record(source.type):
        _check_template(lower, source)
        return [zero_of(type)]
    if isinstance(type, ArrayOf) and isinstance(type.innermost, Struct) and is_constructed(source.type):
        return default_elements(lower, source.type, type.innermost, type.count)
    return [_default_object(lower, source.type, type) if isinstance(type, Struct) else zero_of(type)]


def _check_template(lower: Lowering, base: Cursor) -> None:
    """Refuse a base class that depends on template arguments if its default constructor would have to be resolved."""
    template = next((c.referenced for c in base.children if c.kind == CursorKind.TEMPLATE_REF), None)
    members = template.children if template is not None else []
    if any(
        (member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor)
        or (member.kind == CursorKind.FIELD_DECL and initializer(member) is not None)
        for member in members
    ):
        raise refuse(
            lower.scope.definition,
            f"an implicit call of the default constructor of {base.spelling}",
            instead="Call it in the constructor's initializer list.",
        )


def expressions_of(braces: Cursor) -> list[Cursor]:
    """Return the expressions within braces, or the operands of a `new`."""
    return [child for child in braces.children if child.is_expression]


def _has_designator(value: Cursor) -> bool:
    """Return whether a value in braces has a designator, which names its member."""
    children = value.children
    if value.kind != CursorKind.UNEXPOSED_EXPR or value.type.kind != TypeKind.VOID:
        return False
    if len(children) != 2 or children[0].kind != CursorKind.MEMBER_REF:
        raise refuse(value, "array designators in braces", instead="List all members and elements in order.")
    return True


def _is_omitted(value: Cursor) -> bool:
    """Return whether a value is clang's stand-in for one that braces omit."""
    return value.kind == CursorKind.UNEXPOSED_EXPR and not value.children and value.constant is None
