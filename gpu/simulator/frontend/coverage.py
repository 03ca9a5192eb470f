"""Which lines of a text a run has not come to, by the statements that stand there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from gpu.errors import SourcePosition
from gpu.simulator.frontend.clang import Cursor, CursorKind

_NO_CODE = re.compile(r"\s*(?:#.*|[{}\s;]*(?:else|do)?[{}\s;]*)")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_SILENT = (CursorKind.DECL_STMT, CursorKind.NULL_STMT, CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT)
"""What may do nothing that is told: it is reached where something around it is."""
_BODY_LAST = (
    CursorKind.FOR_STMT,
    CursorKind.CXX_FOR_RANGE_STMT,
    CursorKind.WHILE_STMT,
    CursorKind.SWITCH_STMT,
    CursorKind.CASE_STMT,
    CursorKind.DEFAULT_STMT,
    CursorKind.LABEL_STMT,
)


def has_code(line: str) -> bool:
    """Whether a line holds more than a comment, braces or what is for the preprocessor."""
    return _NO_CODE.fullmatch(_COMMENT.sub("", line)) is None


def unreached_lines(
    functions: Iterable[Cursor], text: Sequence[str], lines: Collection[int], reached: Collection[SourcePosition]
) -> set[int]:
    """Return those of some lines of functions where a statement stands that no thread came to.

    Parameters
    ----------
    functions : iterable of Cursor
        Definitions, all of one file.
    text : sequence of str
        The lines of that file.
    lines : collection of int
        From 1. What is outside of the functions is left out, and so is what holds no code; of how a function is
        declared its body tells.
    reached : collection of SourcePosition
        Where in that file there was something that threads came to.
    """
    places = [(each.line, each.column) for each in reached]
    wanted = [line for line in lines if has_code(text[line - 1])]
    found = set()
    for function in functions:
        for body in (child for child in function.children if child.kind == CursorKind.COMPOUND_STMT):
            first, last = body.position.line, body.end_position.line
            for line in wanted:
                if function.position.line <= line <= first:
                    standing = [body]
                elif first < line < last:
                    standing = list(_innermost(body, body, line))
                else:
                    continue
                if not standing or not all(_reaches(each, places) for each in standing):
                    found.add(line)
    return found


def _innermost(statement: Cursor, around: Cursor, line: int) -> Iterable[Cursor]:
    """Yield the innermost statements of a line; in place of one that says nothing of itself what is around it."""
    inner = [each for each in _parts(statement) if _covers(each, line)]
    for each in inner:
        yield from _innermost(each, statement, line)
    if not inner and statement.kind != CursorKind.COMPOUND_STMT:
        yield around if statement.kind in _SILENT else statement


def _parts(statement: Cursor) -> tuple[Cursor, ...]:
    """Return the statements that a statement is made of."""
    children = statement.children
    if statement.kind == CursorKind.IF_STMT:
        condition = next(place for place, child in enumerate(children) if child.is_expression)
        return children[condition + 1 :]
    if statement.kind == CursorKind.DO_STMT:
        return children[:1]
    if statement.kind in _BODY_LAST:
        return children[-1:]
    inside = statement.kind == CursorKind.COMPOUND_STMT or statement.kind.is_unexposed()
    return children if inside and not statement.is_expression else ()


def _covers(statement: Cursor, line: int) -> bool:
    first, last = statement.position.line, statement.end_position.line
    if statement.kind == CursorKind.COMPOUND_STMT and first < last:
        return first < line < last  # its braces stand on lines of what is around it
    return first <= line <= last


def _reaches(statement: Cursor, places: Iterable[tuple[int, int]]) -> bool:
    first, last = statement.position, statement.end_position
    return any((first.line, first.column) <= place <= (last.line, last.column) for place in places)
