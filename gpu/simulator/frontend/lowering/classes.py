"""Queries on classes in clang's syntax tree: constructors, destructors, and declarations of members."""

from __future__ import annotations

from gpu.simulator.frontend.clang.parsing import ClangType, Cursor, CursorKind, TypeKind
from gpu.simulator.frontend.lowering.closures import is_in_closure
from gpu.simulator.frontend.lowering.types import build_unsupported_error, find_members, is_reference

ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)


def is_record(type: ClangType) -> bool:
    """Return whether a type is a struct, a class or a union."""
    return bool(type.canonical.kind == TypeKind.RECORD)


def innermost_type(type: ClangType) -> ClangType:
    """Return an array's innermost element type, over all dimensions; other types are returned unchanged."""
    type = type.canonical
    while type.kind in ARRAYS:
        type = type.element_type.canonical
    return type


def find_initializer(declaration: Cursor) -> Cursor | None:
    """Return the initializer of a variable or member, skipping expressions in its type such as extents."""
    if declaration.kind == CursorKind.VAR_DECL:
        last = declaration.variable_initializer
    else:
        name = declaration.location.offset
        expressions = [child for child in declaration.children if child.is_expression and child.end.offset > name]
        last = expressions[-1] if expressions else None
    if last is None:
        return None
    is_array = declaration.type.canonical.kind == TypeKind.CONSTANTARRAY
    # If an element creates a temporary object, clang wraps the braces.
    while is_array and last.kind == CursorKind.UNEXPOSED_EXPR and len(last.children) == 1:
        last = last.children[0]
    return last if not is_array or last.kind in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL) else None


def find_member_declarations(declared: ClangType | None) -> dict[str, Cursor]:
    """Return the declaration of each member by name; the only nonempty base class has the name ""."""
    if declared is None:
        return {}
    canonical = declared.canonical
    declarations = {field.spelling: field for field in canonical.fields if field.spelling}
    for member in find_members(canonical.declaration):
        if member.kind == CursorKind.CXX_BASE_SPECIFIER:
            declarations[""] = member
    return declarations


def is_aggregate(declared: ClangType) -> bool:
    """Return whether braces initialize the members of a class directly: it has no constructor."""
    return not is_record(declared) or not any(
        member.kind == CursorKind.CONSTRUCTOR and not member.is_default_method
        for member in find_members(declared.canonical.declaration)
    )


def find_default_constructor(declared: ClangType) -> Cursor | None:
    """Return the user-defined default constructor of a class; for an instantiation, its template's."""
    for member in find_members(declared.canonical.declaration):
        if member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor:
            definition = member.definition
            return definition if definition is not None and not member.is_default_method else None
    return None


def is_constructed(declared: ClangType) -> bool:
    """Return whether an object of a type, or of an array's element type, is initialized by default."""
    declared = innermost_type(declared)
    if not is_record(declared):
        return False
    if find_default_constructor(declared) is not None:
        return True
    return any(
        is_constructed(source.type) or (source.kind == CursorKind.FIELD_DECL and find_initializer(source) is not None)
        for source in find_member_declarations(declared).values()
    )


def refuse_destructor(cursor: Cursor, declared: ClangType) -> None:
    """Raise CompileError if a type, a member or a base of it has a nonempty destructor."""
    if name := _find_destructor_class(declared):
        raise build_unsupported_error(
            cursor,
            f"an object of {name}, which has a nonempty destructor",
            advice="Write a method for it, and call that where the object's lifetime ends.",
        )


def _find_destructor_class(declared: ClangType) -> str:
    """Return the class, among a type, its members and bases, with a nonempty destructor; "" if there is none."""
    declared = innermost_type(declared)
    if is_reference(declared) or not is_record(declared):
        return ""
    declaration = declared.canonical.declaration
    for member in find_members(declaration):
        if member.kind == CursorKind.DESTRUCTOR:
            body = (member.definition or member).children
            if any(part.children for part in body if part.kind == CursorKind.COMPOUND_STMT):
                return str(declaration.spelling)
    return next(
        (
            name
            for source in find_member_declarations(declared).values()
            if (name := _find_destructor_class(source.type))
        ),
        "",
    )


def has_body(callee: Cursor) -> bool:
    """Return whether a function is defined here, not only declared."""
    definition = callee.definition
    return definition is not None and any(child.kind == CursorKind.COMPOUND_STMT for child in definition.children)


def is_implicit(callee: Cursor) -> bool:
    """Return whether a method is compiler-generated, so that its location is its class's, or `= default`."""
    if is_in_closure(callee):
        return False
    is_generated = callee.has_same_location(callee.owner)
    return bool(is_generated or callee.is_default_method)
