"""Which parts of a script's lines have which color: Python's, and CUDA's in the strings that hold kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from gui.editor.colors import Span, kind_of, lines_within_comments, spans

Segments = tuple[tuple[int, int, str], ...]
"""Of a line: start, end, and what stands there: python, string, cuda, or comment where CUDA's begins within one."""

_STRINGS = re.compile(
    r"#[^\n]*"
    r'|(?P<long>[rRbBfFuU]{0,2}(?P<quotes>"""|\'\'\')(?P<inside>(?:\\.|.)*?)(?:(?P=quotes)|\Z))'
    r'|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_KERNEL = re.compile(r"\b__(?:global|device|shared|constant)__\b|\bthreadIdx\b")


def segments_of(text: str) -> Mapping[int, Segments]:
    """Return the segments of the lines, counted from 0, that strings of several lines have a part in."""
    found: dict[int, list[tuple[int, int, str]]] = {}
    line, line_start, at = 0, 0, 0
    for match in _STRINGS.finditer(text):
        if match["long"] is None:
            continue
        line += text.count("\n", at, match.start())
        line_start = text.rfind("\n", 0, match.start()) + 1
        at = match.start()
        inside = match["inside"]
        is_kernel = _KERNEL.search(inside) is not None
        commented = lines_within_comments(inside) if is_kernel else frozenset()
        opening, closing = match.start("inside") - match.start(), match.end() - match.end("inside")
        column = match.start() - line_start
        parts = inside.split("\n")
        for place, part in enumerate(parts):
            here = found.setdefault(line + place, [])
            start = column if place == 0 else 0
            if place == 0:
                here.append((start, start + opening, "string"))
                start += opening
            kind = ("comment" if place in commented else "cuda") if is_kernel else "string"
            here.append((start, start + len(part), kind))
            if place == len(parts) - 1:
                here.append((start + len(part), start + len(part) + closing, "string"))
    return {number: tuple(several) for number, several in found.items()}


@lru_cache(maxsize=4096)
def script_spans(line: str, segments: Segments) -> tuple[Span, ...]:
    """Return what is colored in a line of a script, as `gui.editor.colors.spans` does."""
    found: list[Span] = []
    place = 0
    for start, end, kind in (*segments, (len(line), len(line), "string")):
        found += _python(line[place:start], place)
        if kind == "string":
            found += [(start, end, "Literal.String")] if end > start else []
        else:
            inner = spans(line[start:end], within_comment=kind == "comment")
            found += [(start + first, start + last, color) for first, last, color in inner]
        place = end
    return tuple(found)


def _python(text: str, offset: int) -> list[Span]:
    found: list[Span] = []
    # As for CUDA, the lexer takes a line for one only with its end.
    for start, token, value in _lexer().get_tokens_unprocessed(text + "\n"):
        end = min(start + len(value), len(text))
        kind = kind_of(str(token).removeprefix("Token."), called=text[end : end + 1] == "(")
        if kind and end > start:
            found.append((offset + start, offset + end, kind))
    return found


@cache
def _lexer() -> Any:
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

    return PythonLexer()
