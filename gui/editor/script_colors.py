"""Syntax colors of Python scripts, with CUDA C++ colors in strings that contain kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from gui.editor.colors import Span, find_lines_within_comments, find_syntax_key, split_into_spans

Segments = tuple[tuple[int, int, str], ...]
"""Parts of a line: start, end, and python, string, cuda, or comment (CUDA C++ that starts inside a comment)."""

_STRING_PATTERN = re.compile(
    r"#[^\n]*"
    r'|(?P<long>[rRbBfFuU]{0,2}(?P<quotes>"""|\'\'\')(?P<inside>(?:\\.|.)*?)(?:(?P=quotes)|\Z))'
    r'|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_KERNEL_PATTERN = re.compile(r"\b__(?:global|device|shared|constant)__\b|\bthreadIdx\b")


def find_string_segments(text: str) -> Mapping[int, Segments]:
    """Return the parts of the lines (from 0) that multi-line strings cover."""
    lines: dict[int, list[tuple[int, int, str]]] = {}
    line, line_start, at = 0, 0, 0
    for match in _STRING_PATTERN.finditer(text):
        if match["long"] is None:
            continue
        line += text.count("\n", at, match.start())
        line_start = text.rfind("\n", 0, match.start()) + 1
        at = match.start()
        inside = match["inside"]
        is_kernel = _KERNEL_PATTERN.search(inside) is not None
        commented = find_lines_within_comments(inside) if is_kernel else frozenset()
        opening, closing = match.start("inside") - match.start(), match.end() - match.end("inside")
        column = match.start() - line_start
        parts = inside.split("\n")
        for index, part in enumerate(parts):
            parts_of_line = lines.setdefault(line + index, [])
            start = column if index == 0 else 0
            if index == 0:
                parts_of_line.append((start, start + opening, "string"))
                start += opening
            kind = ("comment" if index in commented else "cuda") if is_kernel else "string"
            parts_of_line.append((start, start + len(part), kind))
            if index == len(parts) - 1:
                parts_of_line.append((start + len(part), start + len(part) + closing, "string"))
    return {number: tuple(line_parts) for number, line_parts in lines.items()}


@lru_cache(maxsize=4096)
def split_script_into_spans(line: str, segments: Segments) -> tuple[Span, ...]:
    """Return the colored parts of a script's line, like `gui.editor.colors.split_into_spans`."""
    colored: list[Span] = []
    offset = 0
    for start, end, kind in (*segments, (len(line), len(line), "string")):
        colored += _split_python_into_spans(line[offset:start], offset)
        if kind == "string":
            colored += [(start, end, "Literal.String")] if end > start else []
        else:
            inner = split_into_spans(line[start:end], within_comment=kind == "comment")
            colored += [(start + first, start + last, color) for first, last, color in inner]
        offset = end
    return tuple(colored)


def _split_python_into_spans(text: str, offset: int) -> list[Span]:
    colored: list[Span] = []
    # As for CUDA, the lexer recognizes a line only with its newline.
    for start, token, value in _create_lexer().get_tokens_unprocessed(text + "\n"):
        end = min(start + len(value), len(text))
        kind = find_syntax_key(str(token).removeprefix("Token."), called=text[end : end + 1] == "(")
        if kind and end > start:
            colored.append((offset + start, offset + end, kind))
    return colored


@cache
def _create_lexer() -> Any:
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

    return PythonLexer()
