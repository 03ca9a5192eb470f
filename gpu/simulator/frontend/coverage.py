"""Line coverage: the lines of a file with statements that no thread reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from gpu.base.errors import SourcePosition
from gpu.files.source_lexer import blank_comments
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind

_NO_CODE = re.compile(r"\s*(?:#.*|[{}\s;]*(?:else|do)?[{}\s;]*)")
_SILENT = (CursorKind.DECL_STMT, CursorKind.NULL_STMT, CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT)
"""Statements that may produce no event; they count as reached if the enclosing statement is."""
_LAST_FIELD_IS_BODY = (
    CursorKind.FOR_STMT,
    CursorKind.CXX_FOR_RANGE_STMT,
    CursorKind.WHILE_STMT,
    CursorKind.SWITCH_STMT,
    CursorKind.CASE_STMT,
    CursorKind.DEFAULT_STMT,
    CursorKind.LABEL_STMT,
)


_ALL_COLUMNS = (1, 2**31)


def has_code(line: str) -> bool:
    """Return whether a line holds more than a comment, braces or a preprocessor directive."""
    return _NO_CODE.fullmatch(blank_comments(line)) is None


def find_unreached_lines(
    functions: Iterable[Cursor],
    text: Sequence[str],
    lines: Collection[int],
    reached: Collection[SourcePosition],
    skipped: Collection[int],
) -> dict[int, bool]:
    """Return those of the given lines with a statement that no thread reached, and whether the preprocessor skips it.

    Parameters
    ----------
    functions : iterable of Cursor
        Definitions, all in one file.
    text : sequence of str
        The lines of that file.
    lines : collection of int
        Line numbers from 1. Lines outside of the functions or without code are ignored; the lines of a function's
        declaration count as reached if its body is. A mapping contains for each line its first and last column of
        interest, from 1: statements beside these columns are ignored.
    reached : collection of SourcePosition
        The positions in that file that threads reached.
    skipped : collection of int
        The lines that the preprocessor skips. All of these count as unreached, except blank lines and comments.
    """
    positions = [(each.line, each.column) for each in reached]
    candidates = [line for line in lines if has_code(text[line - 1])]
    unreached = {line: True for line in lines if line in skipped and blank_comments(text[line - 1]).strip()}
    for function in functions:
        for body in (child for child in function.children if child.kind == CursorKind.COMPOUND_STMT):
            first, last = body.position.line, body.end_position.line
            for line in candidates:
                if function.position.line <= line <= first:
                    statements = [body]
                elif first < line < last:
                    columns = lines[line] if isinstance(lines, Mapping) else _ALL_COLUMNS
                    statements = list(_innermost(body, body, line, columns))
                else:
                    continue
                if not statements or not all(_reaches(statement, positions) for statement in statements):
                    unreached.setdefault(line, False)
    return unreached


def _innermost(statement: Cursor, enclosing: Cursor, line: int, columns: tuple[int, int]) -> Iterable[Cursor]:
    """Yield the innermost statements of a line; a silent one is replaced by the enclosing statement."""
    on_line = [each for each in _inner_statements(statement) if _covers(each, line)]
    inner = [each for each in on_line if _overlaps(each, columns)]
    if not inner and statement.kind == CursorKind.COMPOUND_STMT:
        inner = on_line
    for each in inner:
        yield from _innermost(each, statement, line, columns)
    if not inner and statement.kind != CursorKind.COMPOUND_STMT:
        yield enclosing if statement.kind in _SILENT else statement


def _inner_statements(statement: Cursor) -> tuple[Cursor, ...]:
    children = statement.children
    if statement.kind == CursorKind.IF_STMT:
        condition = next(index for index, child in enumerate(children) if child.is_expression)
        return children[condition + 1 :]
    if statement.kind == CursorKind.DO_STMT:
        return children[:1]
    if statement.kind in _LAST_FIELD_IS_BODY:
        return children[-1:]
    has_parts = statement.kind == CursorKind.COMPOUND_STMT or statement.kind.is_unexposed()
    return children if has_parts and not statement.is_expression else ()


def _covers(statement: Cursor, line: int) -> bool:
    first, last = statement.position.line, statement.end_position.line
    if statement.kind == CursorKind.COMPOUND_STMT and first < last:
        return first < line < last  # the lines of its braces belong to the enclosing statement
    return first <= line <= last


def _overlaps(statement: Cursor, columns: tuple[int, int]) -> bool:
    """Return whether a statement has some of the columns; a statement of several lines has all."""
    first, last = statement.position, statement.end_position
    return first.line < last.line or (first.column <= columns[1] and columns[0] <= last.column)


def _reaches(statement: Cursor, positions: Iterable[tuple[int, int]]) -> bool:
    first, last = statement.position, statement.end_position
    return any((first.line, first.column) <= position <= (last.line, last.column) for position in positions)
