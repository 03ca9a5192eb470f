"""Phase names in comments of kernels: `// phase: up-sweep`, or with variables, `// phase: pass over bit {bit}`."""

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
_PHASE_COMMENT = re.compile(r"\s*phase:[ \t]*(\S[^\n]*?)\s*\Z")
_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)\}")
_FUNCTION_SUFFIXES = frozenset(("const", "noexcept", "override", "final", "mutable"))
"""Words that are allowed between a function's parameters and its body."""

LineAndColumn = tuple[int, int]
"""A line and a column, both from 1."""


@dataclass(frozen=True)
class PhaseMark:
    """A comment that names the phase from there to the next such comment or the end of its function.

    Parameters
    ----------
    start : (int, int)
        The line and column of the comment.
    end : (int, int)
        The line and column of the end of its function.
    name : str
        The name as written, with variables in braces.
    """

    start: LineAndColumn
    end: LineAndColumn
    name: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables in the name, in order."""
        return tuple(_VARIABLE.findall(self.name))

    def format_name(self, values: dict[str, str]) -> str:
        """Return the name with its variables replaced by values; unknown variables stay as written."""
        return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), self.name)


def find_phase_marks(text: str) -> tuple[PhaseMark, ...]:
    """Return the phase marks of a source text in order; comments outside of functions are ignored."""
    starts = [0, *(marks.end() for marks in re.finditer("\n", text))]
    marks: list[PhaseMark] = []
    open_marks: list[tuple[int, str]] = []
    previous, depth, body = "", 0, 0
    for token in _TOKEN.finditer(text):
        comment = token["line"] if token["line"] is not None else token["block"]
        if comment is not None:
            match = _PHASE_COMMENT.fullmatch(comment)
            if match is not None and body:
                open_marks.append((token.start(), match[1]))
            continue
        sign = token["sign"] or ""
        if sign == "{":
            depth += 1
            if not body and (previous == ")" or previous in _FUNCTION_SUFFIXES):
                body = depth
        elif sign == "}":
            if depth == body:
                until = _line_and_column(starts, token.start())
                marks += [PhaseMark(_line_and_column(starts, offset), until, name) for offset, name in open_marks]
                open_marks, body = [], 0
            depth = max(depth - 1, 0)
        previous = sign or token["word"] or "a literal"
    return tuple(marks)


def _line_and_column(starts: list[int], offset: int) -> LineAndColumn:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
