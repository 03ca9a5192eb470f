"""Syntax colors of CUDA C++ lines. Each line is colored independently, so that typing recolors one line."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from gpu.files.source_lexer import find_comments
from gui.painting.theme import DARK

Span = tuple[int, int, str]
"""A colored part of a line: start, end, and the key of `Theme.syntax`."""

_BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"))


def find_lines_within_comments(text: str) -> frozenset[int]:
    """Return the lines (from 0) that start inside a `/*` comment."""
    if "/*" not in text:
        return frozenset()
    lines: set[int] = set()
    line = end = 0
    for first, last in find_comments(text):
        line += text.count("\n", end, first)
        after = line + text.count("\n", first, last)
        lines.update(range(line + 1, after + 1))
        line, end = after, last
    return frozenset(lines)


@lru_cache(maxsize=4096)
def split_into_spans(line: str, *, within_comment: bool) -> tuple[Span, ...]:
    """Return the colored parts of a line."""
    parts = []
    skipped = 0
    if within_comment:
        end = line.find("*/")
        skipped = len(line) if end < 0 else end + 2
        parts.append((0, skipped, "Comment"))
    rest = line[skipped:]
    # The lexer recognizes a line only with its newline.
    for start, token, value in _create_lexer().get_tokens_unprocessed(rest + "\n"):
        end = min(start + len(value), len(rest))
        kind = _classify_token(str(token).removeprefix("Token."), value, called=rest[end : end + 1] == "(")
        if kind and end > start:
            parts.append((skipped + start, skipped + end, kind))
    return tuple(parts)


@cache
def _create_lexer() -> Any:
    from pygments.lexers.c_like import CudaLexer  # type: ignore[import-untyped]

    return CudaLexer()


def _classify_token(token: str, value: str, *, called: bool) -> str:
    if value in _BUILT_IN or value.startswith(("atomic", "__sync", "__shfl", "__ballot")):
        return "Name.Builtin"
    if token == "Comment.PreprocFile":
        return "Literal.String"
    return find_syntax_key(token, called=called)


def find_syntax_key(token: str, *, called: bool) -> str:
    """Return the key of `Theme.syntax` for a Pygments token, or ""."""
    if called and token == "Name":
        return "Name.Function"
    while token and token not in DARK.syntax:
        token = token.rpartition(".")[0]
    return token
