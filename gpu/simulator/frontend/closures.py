"""Lambdas: clang's closure classes have fields without names, which are those of what a lambda captures."""

from __future__ import annotations

from gpu.simulator.frontend.clang import Cursor, CursorKind, TypeKind

THIS = "this"

_VARIABLES = (CursorKind.VAR_DECL, CursorKind.PARM_DECL)


def is_closure(declaration: Cursor | None) -> bool:
    """Whether a class is that of a lambda."""
    return declaration is not None and declaration.spelling.startswith("(lambda at ")


def is_in_closure(method: Cursor) -> bool:
    """Whether a method is the body of a lambda."""
    return method.kind == CursorKind.CXX_METHOD and is_closure(method.parent)


def name_of_capture(field: Cursor) -> str:
    """Return the name of what a field of a closure holds: clang puts the field where that is captured."""
    name = field.token_there()
    return THIS if _holds_this(field, name) else name


def captured_variable(lambda_expression: Cursor, name: str) -> Cursor | None:
    """Return the declaration of a captured variable; of `[x = 1]` that of `x`, which has the initializer."""
    for cursor in lambda_expression.descendants():
        if cursor.spelling == name and cursor.kind in (CursorKind.VARIABLE_REF, CursorKind.DECL_REF_EXPR):
            declaration = cursor.referenced
            if declaration is not None and declaration.kind in _VARIABLES:
                return declaration
    return None


def is_declared_in(declaration: Cursor, lambda_expression: Cursor) -> bool:
    """Whether a captured variable is one that the capture itself makes."""
    return lambda_expression.start.offset <= declaration.location.offset < lambda_expression.end.offset


def captured_by_reference(lambda_expression: Cursor) -> list[Cursor]:
    """Return the declarations of the variables that a lambda holds references to."""
    fields = lambda_expression.type.canonical.fields
    names = [name_of_capture(field) for field in fields if field.type.kind == TypeKind.LVALUEREFERENCE]
    return [found for name in names if (found := captured_variable(lambda_expression, name)) is not None]


def _holds_this(field: Cursor, name: str) -> bool:
    """Whether a field holds the object around a lambda, which is captured where a member of it is used first."""
    if name == THIS:
        return True
    method = field.owner.parent
    if method is None or method.parent is None or field.type.kind != TypeKind.POINTER:
        return False
    owner = method.parent.type.canonical
    if field.type.canonical.pointee.canonical.spelling.removeprefix("const ") != owner.spelling:
        return False
    named = field.named_there()
    return named is None or named.kind != CursorKind.DECL_REF_EXPR
