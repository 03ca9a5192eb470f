"""The text of a statement, cut out of the source from where it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]*)$", re.MULTILINE)
_OPENING, _CLOSING = "([{", ")]}"


@lru_cache(maxsize=1024)
def statement_at(text: str, line: int, column: int, kind: str) -> str:
    """Return what an event of a kind evaluates: a statement, a condition, or the step of a loop; "" where it is lost.

    Parameters
    ----------
    text : str
        The source.
    line, column : int
        Where the statement begins, from 1.
    kind : str
        As of an event: "evaluate", "declare", "if", "loop", "advance", "switch", "return" or "barrier".
    """
    lines = _lines_of(text)
    if not 0 < line <= len(lines):
        return ""
    rest = "\n".join([lines[line - 1][max(column, 1) - 1 :], *lines[line:]])
    match kind:
        case "if" | "switch":
            found = _parenthesised(rest)
        case "loop" | "advance":
            found = _of_loop(rest, advance=kind == "advance")
        case "declare":
            found = _until(rest, ";,")
        case _:
            found = _until(rest, ";")
    return " ".join(found.split())


@lru_cache(maxsize=16)
def _lines_of(text: str) -> list[str]:
    """Return the lines of a source with blanks for comments."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text).split("\n")


def constants_of(text: str, defines: Mapping[str, str]) -> dict[str, str]:
    """Return what macros without arguments stand for: those that the text does not leave open, and `defines`."""
    return {**_defined_in(text), **defines}


@lru_cache(maxsize=16)
def _defined_in(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, body in _DEFINE.findall(_COMMENT.sub(" ", text)):
        found.setdefault(name, []).append(body.strip())
    # Of several definitions the compiler took one; which is not known here.
    return {name: bodies[0] for name, bodies in found.items() if len(bodies) == 1}


def _until(text: str, ends: str) -> str:
    """Return the text before the first of some characters that stands in no brackets."""
    depth = 0
    for place, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            if depth < 0:
                return text[:place]
        elif depth == 0 and character in ends:
            return text[:place]
    return text.split("\n", 1)[0]


def _parenthesised(text: str) -> str:
    start = text.find("(")
    return _until(text[start + 1 :], "") if start >= 0 else ""


def _of_loop(text: str, *, advance: bool) -> str:
    if text.startswith("do"):
        body = text[2:].lstrip()
        skipped = len(_until(body[1:], "")) + 2 if body.startswith("{") else len(_until(body, ";")) + 1
        rest = body[skipped:]
        return _parenthesised(rest)
    inside = _parenthesised(text)
    if not text.startswith("for"):
        return inside
    parts = []
    for _ in range(2):
        parts.append(_until(inside + ";", ";"))
        inside = inside[len(parts[-1]) + 1 :]
    return inside if advance else parts[1]
