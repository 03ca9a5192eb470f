"""Lambdas: closure classes of clang have unnamed fields, which get the names of the captured variables."""

from __future__ import annotations

from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, TypeKind

THIS = "this"

_VARIABLES = (CursorKind.VAR_DECL, CursorKind.PARM_DECL)


def is_closure(declaration: Cursor | None) -> bool:
    """Return whether a class is the closure class of a lambda."""
    return declaration is not None and declaration.spelling.startswith("(lambda at ")


def is_in_closure(method: Cursor) -> bool:
    """Return whether a method is the body of a lambda."""
    return method.kind == CursorKind.CXX_METHOD and is_closure(method.parent)


def get_capture_name(field: Cursor) -> str:
    """Return the name of a closure field's captured variable: the token at the field's location."""
    name = field.token_at_location()
    return THIS if _is_this_capture(field, name) else name


def find_captured_variable(lambda_expression: Cursor, name: str) -> Cursor | None:
    """Return the declaration of a captured variable; for `[x = 1]`, that of `x`, which has the initializer."""
    for cursor in lambda_expression.descendants():
        if cursor.spelling == name and cursor.kind in (CursorKind.VARIABLE_REF, CursorKind.DECL_REF_EXPR):
            declaration = cursor.referenced
            if declaration is not None and declaration.kind in _VARIABLES:
                return declaration
    return None


def is_declared_in(declaration: Cursor, lambda_expression: Cursor) -> bool:
    """Return whether a captured variable is declared by the capture itself, as in `[x = 1]`."""
    return lambda_expression.start.offset <= declaration.location.offset < lambda_expression.end.offset


def find_reference_captures(lambda_expression: Cursor) -> list[Cursor]:
    """Return the declarations of the variables that a lambda captures by reference."""
    fields = lambda_expression.type.canonical.fields
    names = [get_capture_name(field) for field in fields if field.type.kind == TypeKind.LVALUEREFERENCE]
    return [variable for name in names if (variable := find_captured_variable(lambda_expression, name)) is not None]


def _is_this_capture(field: Cursor, name: str) -> bool:
    """Return whether a field captures `this`; clang locates it at the first use of one of the object's members."""
    if name == THIS:
        return True
    method = field.owner.parent
    if method is None or method.parent is None or field.type.kind != TypeKind.POINTER:
        return False
    owner = method.parent.type.canonical
    if field.type.canonical.pointee.canonical.spelling.removeprefix("const ") != owner.spelling:
        return False
    referenced = field.node_at_location()
    return referenced is None or referenced.kind != CursorKind.DECL_REF_EXPR
