"""Lexer of C++ and PTX text: comments, string and character literals, brackets, and launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, AnyStr

_PATTERN = (
    r"""//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)"""
    r"""|R"(?P<end>[^()\\\s]{0,16})\((?:.*?\)(?P=end)"|.*)|"(?:[^"\\\n]|\\.)*(?:"|$)|'(?:(?<=u8')|(?<![0-9a-fA-F]'))(?:[^'\\\n]|\\.)*(?:'|$)"""
)
"""A literal without its closing quote ends with the line, as in clang, and a raw one with the text; a quote after a
digit separates digits. Each alternative begins with a character, by which Python's search skips other text fast, and
matches all that it has read, so that the search is linear."""
_TOKENS: dict[type, Any] = {
    str: re.compile(_PATTERN, re.DOTALL | re.MULTILINE),
    bytes: re.compile(_PATTERN.encode(), re.DOTALL | re.MULTILINE),
}
_VISIBLE: dict[type, Any] = {str: (re.compile("[^\n]"), " "), bytes: (re.compile(b"[^\n]"), b" ")}

_OPENING_CHEVRONS, _CLOSING_CHEVRONS = re.compile(rb"<<\s*<"), re.compile(rb">>\s*>")
_ARGUMENTS_START = re.compile(rb"\s*\(")
_BRACKETS = re.compile(rb"[()\[\]{}]")
_CLOSING_BRACKETS = {b"(": b")", b"[": b"]", b"{": b"}"}


def _blank(text: AnyStr) -> AnyStr:
    """Return a text with spaces in place of all characters but line breaks, so that positions stay the same."""
    visible, blank = _VISIBLE[type(text)]
    blanked: AnyStr = visible.sub(blank, text)
    return blanked


def _iterate_tokens(text: AnyStr) -> Iterator[re.Match[AnyStr]]:
    tokens: Iterator[re.Match[AnyStr]] = _TOKENS[type(text)].finditer(text)
    return tokens


def _is_comment(token: re.Match[AnyStr]) -> bool:
    return token[0][:1] in ("/", b"/")


def blank_comments_and_literals(text: AnyStr) -> AnyStr:
    """Return C++ text with blanks in place of comments and literals; positions and lines stay the same."""
    return _replace_tokens(text, keeps_literals=False)


def blank_comments(text: AnyStr) -> AnyStr:
    """Return C++ text with blanks in place of comments; positions and lines stay the same."""
    return _replace_tokens(text, keeps_literals=True)


def _replace_tokens(text: AnyStr, *, keeps_literals: bool) -> AnyStr:
    parts: list[AnyStr] = []
    end = 0
    for token in _iterate_tokens(text):
        if keeps_literals and not _is_comment(token):
            continue
        parts += [text[end : token.start()], _blank(token[0])]
        end = token.end()
    parts.append(text[end:])
    return text[:0].join(parts)


def find_comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment of C++ text begins and ends."""
    return ((token.start(), token.end()) for token in _iterate_tokens(text) if _is_comment(token))


def split_at_commas(text: str) -> list[str]:
    """Split a text at the commas outside of brackets, and strip the parts."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


@dataclass(frozen=True)
class LaunchSyntax:
    """The byte offsets of a launch's parts in a text.

    Parameters
    ----------
    start, end : int
        The beginning of `<<<`, and the end of `>>>`.
    configuration : tuple of int
        The beginning and end of the text between them.
    closing : int
        The closing bracket of the arguments.
    """

    start: int
    end: int
    configuration: tuple[int, int]
    closing: int


def find_launches(code: bytes) -> Iterator[LaunchSyntax]:
    """Yield the launches in a text without comments and strings; like nvcc, accept `<< <`."""
    offset = 0
    closings: Mapping[int, int] | None = None
    while (opens := _OPENING_CHEVRONS.search(code, offset)) is not None:
        if closings is None:
            closings = find_closing_brackets(code)
        offset = opens.end()
        closes = _find_configuration_end(code, opens.end(), closings)
        opening = _ARGUMENTS_START.match(code, closes.end()) if closes is not None else None
        closing = closings.get(opening.end() - 1) if opening is not None else None
        if closes is not None and closing is not None:
            yield LaunchSyntax(opens.start(), closes.end(), (opens.end(), closes.start()), closing)
            offset = closing + 1


def _find_configuration_end(code: bytes, start: int, closings: Mapping[int, int]) -> re.Match[bytes] | None:
    """Return the match of the launch's `>>>` outside of brackets."""
    offset = start
    while offset < len(code):
        letter = code[offset : offset + 1]
        if letter in _CLOSING_BRACKETS:
            closing = closings.get(offset)
            if closing is None:
                return None
            offset = closing + 1
        elif letter in b";)]}":
            return None
        elif (closes := _CLOSING_CHEVRONS.match(code, offset)) is not None:
            return closes
        else:
            offset += 1
    return None


def find_closing_brackets(code: bytes) -> dict[int, int]:
    """Return the offset of each closing bracket, by the offset of its opening bracket.

    A closing bracket of the wrong kind matches nothing, and all brackets open at that point stay unmatched.
    """
    closings: dict[int, int] = {}
    opened: list[tuple[bytes, int]] = []
    for match in _BRACKETS.finditer(code):
        letter, offset = match[0], match.start()
        if letter in _CLOSING_BRACKETS:
            opened.append((_CLOSING_BRACKETS[letter], offset))
        elif opened:
            closing, opening = opened.pop()
            if letter == closing:
                closings[opening] = offset
            else:
                opened.clear()
    return closings
