"""What clang says of a class: its constructors and its destructor, and what declares its members."""

from __future__ import annotations

from gpu.simulator.frontend.clang import ClangType, Cursor, CursorKind, TypeKind
from gpu.simulator.frontend.closures import is_in_closure
from gpu.simulator.frontend.types import is_reference, shown_members

INSTEAD_OF_DESTRUCTOR = "Write a method for it, and call that where the object's life ends."
ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)


def is_record(type: ClangType) -> bool:
    """Whether a type is a struct, a class or a union."""
    return bool(type.canonical.kind == TypeKind.RECORD)


def innermost(type: ClangType) -> ClangType:
    """Return what an array's elements are, over every dimension; other types are returned as they are."""
    type = type.canonical
    while type.kind in ARRAYS:
        type = type.element_type.canonical
    return type


def initializer(declaration: Cursor) -> Cursor | None:
    """Return a variable's or a member's own initializer; a type's arguments and extents are expressions before it."""
    if declaration.kind == CursorKind.VAR_DECL:
        last = declaration.variable_initializer
    else:
        name = declaration.location.offset
        expressions = [child for child in declaration.children if child.is_expression and child.end.offset > name]
        last = expressions[-1] if expressions else None
    if last is None:
        return None
    is_array = declaration.type.canonical.kind == TypeKind.CONSTANTARRAY
    # Where an element makes a temporary object clang wraps the braces.
    while is_array and last.kind == CursorKind.UNEXPOSED_EXPR and len(last.children) == 1:
        last = last.children[0]
    return last if not is_array or last.kind in (CursorKind.INIT_LIST_EXPR, CursorKind.STRING_LITERAL) else None


def member_declarations(declared: ClangType | None) -> dict[str, Cursor]:
    """Return what declares each member; a base class, of which there is one that is not empty, is named ""."""
    if declared is None:
        return {}
    canonical = declared.canonical
    found = {field.spelling: field for field in canonical.fields if field.spelling}
    for member in shown_members(canonical.declaration):
        if member.kind == CursorKind.CXX_BASE_SPECIFIER:
            found[""] = member
    return found


def is_aggregate(declared: ClangType) -> bool:
    """Whether braces give a class's members their values themselves: it has no constructor."""
    return not is_record(declared) or not any(
        member.kind == CursorKind.CONSTRUCTOR and not member.is_default_method
        for member in shown_members(declared.canonical.declaration)
    )


def default_constructor(declared: ClangType) -> Cursor | None:
    """Return the default constructor that a class's author wrote; of a template that of the template."""
    for member in shown_members(declared.canonical.declaration):
        if member.kind == CursorKind.CONSTRUCTOR and member.is_default_constructor:
            definition = member.definition
            return definition if definition is not None and not member.is_default_method else None
    return None


def is_constructed(declared: ClangType) -> bool:
    """Whether an object of a type, or one of an array's, holds something when nothing was given."""
    declared = innermost(declared)
    if not is_record(declared):
        return False
    if default_constructor(declared) is not None:
        return True
    return any(
        is_constructed(source.type) or (source.kind == CursorKind.FIELD_DECL and initializer(source) is not None)
        for source in member_declarations(declared).values()
    )


def destructor(declared: ClangType) -> str:
    """Return the name of the class, among a type, its members and bases, whose destructor does something; or ""."""
    declared = innermost(declared)
    if is_reference(declared) or not is_record(declared):
        return ""
    declaration = declared.canonical.declaration
    for member in shown_members(declaration):
        if member.kind == CursorKind.DESTRUCTOR:
            body = (member.definition or member).children
            if any(part.children for part in body if part.kind == CursorKind.COMPOUND_STMT):
                return str(declaration.spelling)
    return next((name for source in member_declarations(declared).values() if (name := destructor(source.type))), "")


def has_body(callee: Cursor) -> bool:
    """Whether a function is defined here, rather than only declared."""
    definition = callee.definition
    return definition is not None and any(child.kind == CursorKind.COMPOUND_STMT for child in definition.children)


def is_implicit(callee: Cursor) -> bool:
    """Whether the compiler wrote a method: then it stands where its class does. `= default` is the same in writing."""
    if is_in_closure(callee):
        return False
    written_by_clang = callee.stands_with(callee.owner)
    return bool(written_by_clang or callee.is_default_method)
