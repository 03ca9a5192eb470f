"""Address analysis: the variables of a function that must be in memory because something refers to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from gpu.simulator.frontend.clang.parsing import ClangType, Cursor, CursorKind, TypeKind
from gpu.simulator.frontend.lowering.closures import find_reference_captures
from gpu.simulator.frontend.lowering.types import is_function_type, is_reference

_FUNCTIONS = (
    CursorKind.FUNCTION_DECL,
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
    CursorKind.OVERLOADED_DECL_REF,
)
_VARIABLES = (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
_CASTS = (
    CursorKind.CSTYLE_CAST_EXPR,
    CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR,
    CursorKind.CXX_CONST_CAST_EXPR,
)
_REFERENCE_CAST = re.compile(r"\w+_cast\s*<[^()]*&\s*>\s*\(|\([^()]*&\s*\)")


def find_addressed_variables(function: Cursor) -> set[Cursor]:
    """Return the declarations of variables of which the code takes the address: by `&`, or by binding a reference."""
    addressed: set[Cursor] = set()
    returns_reference = is_reference_function(function)
    for cursor in function.descendants():
        referring = _REFERRING.get(cursor.kind)
        if referring is not None:
            for child in referring(cursor):
                _add_root(addressed, child)
        elif returns_reference and cursor.kind == CursorKind.RETURN_STMT:
            for child in cursor.children:
                _add_root(addressed, child)
    return addressed


def _add_root(addressed: set[Cursor], cursor: Cursor) -> None:
    """Add the variable that an lvalue names, looking through parentheses and conversions that keep the lvalue."""
    lvalues = (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CONDITIONAL_OPERATOR)
    while cursor.kind in lvalues or is_assignment(cursor):
        children = cursor.children
        if not children:
            return
        if is_assignment(cursor):
            cursor = children[0]
            continue
        if cursor.kind == CursorKind.CONDITIONAL_OPERATOR:
            _add_root(addressed, children[1])
        cursor = children[-1]
    if cursor.kind in _VARIABLES:
        addressed.add(cursor)
    elif cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced is not None:
        addressed.add(cursor.referenced)


def _assignment_targets(cursor: Cursor) -> Iterator[Cursor]:
    """Yield the inner place of an assignment or increment of a computed place."""
    if is_assignment(cursor) or cursor.operator in ("x++", "x--"):
        inner = _without_parentheses(cursor.children[0])
        if is_assignment(inner) or inner.kind == CursorKind.CONDITIONAL_OPERATOR:
            yield inner


def _unary_targets(cursor: Cursor) -> Iterable[Cursor]:
    return cursor.children[:1] if cursor.operator == "&" else _assignment_targets(cursor)


def _reference_initializers(cursor: Cursor) -> Iterable[Cursor]:
    return (child for child in cursor.children if child.is_expression) if is_reference(cursor.type) else ()


def _reference_arguments(cursor: Cursor) -> Iterator[Cursor]:
    prototype = called_prototype(cursor)
    if prototype is not None:
        for argument, type in zip(cursor.children[1:], prototype.argument_types, strict=False):
            if is_reference(type):
                yield argument
    elif cursor.referenced is not None:
        for argument, parameter in zip(call_arguments(cursor), cursor.referenced.arguments, strict=False):
            if is_reference(parameter.type):
                yield argument


def _reference_casts(cursor: Cursor) -> Iterable[Cursor]:
    return cursor.children[-1:] if is_reference_cast(cursor) else ()


def _lambda_captures(cursor: Cursor) -> Iterator[Cursor]:
    for declaration in find_reference_captures(cursor):
        yield declaration
        yield from declaration.children


def _reference_members(cursor: Cursor) -> Iterator[Cursor]:
    type = cursor.type.canonical
    if type.kind == TypeKind.RECORD:
        for member, value in zip(type.fields, cursor.children, strict=False):
            if is_reference(member.type):
                yield value


# Yields the places, or variables, that nodes of each kind refer to.
_REFERRING: dict[CursorKind, Callable[[Cursor], Iterable[Cursor]]] = {
    CursorKind.BINARY_OPERATOR: _assignment_targets,
    CursorKind.COMPOUND_ASSIGNMENT_OPERATOR: _assignment_targets,
    CursorKind.UNARY_OPERATOR: _unary_targets,
    CursorKind.VAR_DECL: _reference_initializers,
    CursorKind.CALL_EXPR: _reference_arguments,
    CursorKind.LAMBDA_EXPR: _lambda_captures,
    CursorKind.INIT_LIST_EXPR: _reference_members,
    **dict.fromkeys(_CASTS, _reference_casts),
}


def is_reference_cast(cursor: Cursor) -> bool:
    """Return whether an explicit cast is to a reference, so that it names its operand's place.

    The type of such an expression is the referenced one: only its text has the reference.
    """
    return cursor.kind in _CASTS and _REFERENCE_CAST.match(cursor.text) is not None


def is_assignment(cursor: Cursor) -> bool:
    """Return whether an expression is an assignment that results in the assigned place."""
    if cursor.kind == CursorKind.BINARY_OPERATOR:
        return cursor.operator == "="
    if cursor.kind == CursorKind.UNARY_OPERATOR:
        return cursor.operator in ("++x", "--x")
    return bool(cursor.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR)


def _without_parentheses(cursor: Cursor) -> Cursor:
    while cursor.kind == CursorKind.PAREN_EXPR:
        cursor = cursor.children[0]
    return cursor


def called_prototype(call: Cursor) -> ClangType | None:
    """Return the type of the function that a call through a pointer calls; None for a call by name."""
    if call.referenced is not None and call.referenced.kind in _FUNCTIONS:
        return None
    pointer = next(iter(call.children), None)
    if pointer is None or not is_function_type(pointer.type):
        return None
    canonical = pointer.type.canonical
    return canonical if canonical.kind == TypeKind.FUNCTIONPROTO else canonical.pointee.canonical


def call_arguments(call: Cursor) -> tuple[Cursor, ...]:
    """Return a call's arguments, without the object of an overloaded operator."""
    callee = call.referenced
    if callee is None or callee.kind != CursorKind.CXX_METHOD or not callee.spelling.startswith("operator"):
        return call.arguments
    return call.arguments if names_method(call.children[0]) else call.arguments[1:]


def names_method(cursor: Cursor) -> bool:
    """Return whether the first part of a call is `object.method`, rather than an operator's object."""
    referenced = cursor.referenced if cursor.kind == CursorKind.MEMBER_REF_EXPR else None
    return referenced is not None and referenced.kind != CursorKind.FIELD_DECL


def is_reference_function(definition: Cursor) -> bool:
    """Return whether a function returns a reference."""
    return definition.kind != CursorKind.CONSTRUCTOR and is_reference(definition.result_type)
