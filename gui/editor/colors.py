"""Which parts of a line have which color. A line is colored by itself, so that typing costs one line."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from gui.painting.theme import DARK

Span = tuple[int, int, str]
"""A part of a line that is colored: start, end, and the entry of `Theme.syntax` that has the color."""

_BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"))
# What a comment may begin in; a string or a line comment may hold what looks like one.
_COMMENT_OR_STRING = re.compile(r'/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'", re.DOTALL)


def lines_within_comments(text: str) -> frozenset[int]:
    """Return the lines, counted from 0, that begin within a `/*` comment of an earlier line."""
    if "/*" not in text:
        return frozenset()
    found: set[int] = set()
    line = end = 0
    for match in _COMMENT_OR_STRING.finditer(text):
        if match[0].startswith("/*"):
            line += text.count("\n", end, match.start())
            after = line + match[0].count("\n")
            found.update(range(line + 1, after + 1))
            line, end = after, match.end()
    return frozenset(found)


@lru_cache(maxsize=4096)
def spans(line: str, *, within_comment: bool) -> tuple[Span, ...]:
    """Return what is colored in a line."""
    found = []
    skipped = 0
    if within_comment:
        end = line.find("*/")
        skipped = len(line) if end < 0 else end + 2
        found.append((0, skipped, "Comment"))
    rest = line[skipped:]
    # The lexer takes a line for one only with its end.
    for start, token, value in _lexer().get_tokens_unprocessed(rest + "\n"):
        end = min(start + len(value), len(rest))
        kind = _kind(str(token).removeprefix("Token."), value, called=rest[end : end + 1] == "(")
        if kind and end > start:
            found.append((skipped + start, skipped + end, kind))
    return tuple(found)


@cache
def _lexer() -> Any:
    from pygments.lexers.c_like import CudaLexer  # type: ignore[import-untyped]

    return CudaLexer()


def _kind(token: str, value: str, *, called: bool) -> str:
    if value in _BUILT_IN or value.startswith(("atomic", "__sync", "__shfl", "__ballot")):
        return "Name.Builtin"
    if token == "Comment.PreprocFile":
        return "Literal.String"
    return kind_of(token, called=called)


def kind_of(token: str, *, called: bool) -> str:
    """Return the entry of `Theme.syntax` of one of Pygments' tokens; "" for none."""
    if called and token == "Name":
        return "Name.Function"
    while token and token not in DARK.syntax:
        token = token.rpartition(".")[0]
    return token
