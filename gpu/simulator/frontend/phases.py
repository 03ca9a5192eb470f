"""The phases that comments in kernels name: `// phase: up-sweep`, within loops too, `// phase: pass over bit {bit}`."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      //(?P<line>(?:[^\n\\]|\\[^\n]|\\\n)*)
    | /\*(?P<block>.*?)(?:\*/|\Z)
    | R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
    | "(?:[^"\\\n]|\\.)*"
    | (?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)*'
    | ^[ \t]*\#(?:[^\n\\]|\\.)*
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>[{}()\[\];:=,<>+*/&|!.?~^%-])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NAMED = re.compile(r"\s*phase:[ \t]*(\S[^\n]*?)\s*\Z")
_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
_BEFORE_A_BODY = frozenset(("const", "noexcept", "override", "final", "mutable"))
"""What may stand between a function's parameters and its body."""

Place = tuple[int, int]
"""A line and a column, both from 1."""


@dataclass(frozen=True)
class PhaseMark:
    """A comment that names what follows it, up to the next such comment or the end of its function.

    Parameters
    ----------
    at : (int, int)
        The line and the column where it stands.
    until : (int, int)
        Where its function ends.
    name : str
        As it is written: variables in braces.
    """

    at: Place
    until: Place
    name: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the name names, in order."""
        return tuple(_VARIABLE.findall(self.name))

    def named(self, values: dict[str, str]) -> str:
        """Return the name with values of its variables; one whose value is not known stays as it is written."""
        return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), self.name)


def phase_marks(text: str) -> tuple[PhaseMark, ...]:
    """Return the phases that a source text names, in order; comments outside of functions name none."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    found: list[PhaseMark] = []
    waiting: list[tuple[int, str]] = []
    before, depth, body = "", 0, 0
    for token in _TOKEN.finditer(text):
        comment = token["line"] if token["line"] is not None else token["block"]
        if comment is not None:
            named = _NAMED.fullmatch(comment)
            if named is not None and body:
                waiting.append((token.start(), named[1]))
            continue
        sign = token["sign"] or ""
        if sign == "{":
            depth += 1
            if not body and (before == ")" or before in _BEFORE_A_BODY):
                body = depth
        elif sign == "}":
            if depth == body:
                until = _place(starts, token.start())
                found += [PhaseMark(_place(starts, at), until, name) for at, name in waiting]
                waiting, body = [], 0
            depth = max(depth - 1, 0)
        before = sign or token["word"] or "a literal"
    return tuple(found)


def _place(starts: list[int], at: int) -> Place:
    line = bisect_right(starts, at)
    return line, at - starts[line - 1] + 1
