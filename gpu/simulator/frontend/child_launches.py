"""Kernel launches in device code, which clang does not parse: rewrite the text and map positions back.

`child<<<grid, block>>>(arguments)` becomes `child(arguments), __lockstep_launch(grid, block)`. Both are plain calls, so
clang checks and converts the arguments and deduces template arguments.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

CONFIGURE_FUNCTION = "__lockstep_launch"

# The shim's __global__ adds this annotation to kernels if kernels launch kernels; otherwise it is clang's attribute.
KERNEL_MARK = "lockstep kernel"

_NOT_CODE = re.compile(
    rb"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)
_LAUNCH_ERROR = re.compile(
    r"reference to (__global__ function '.*'|__host__ function '(cudaConfigureCall|__cudaPushCallConfiguration)')"
    r" in (__global__|__device__|__host__ __device__) function"
)
_OPENING_CHEVRONS, _CLOSING_CHEVRONS = re.compile(rb"<<\s*<"), re.compile(rb">>\s*>")
_ARGUMENTS_START = re.compile(rb"\s*\(")
_BRACKETS = re.compile(rb"[()\[\]{}]")
_CLOSING_BRACKETS = {b"(": b")", b"[": b"]", b"{": b"}"}


def is_child_launch(message: str) -> bool:
    """Return whether an error of clang reports that device code launches a kernel."""
    return _LAUNCH_ERROR.fullmatch(message) is not None


@dataclass(frozen=True)
class SourceMap:
    """Source map of a rewritten text: where each piece was before, as byte offsets.

    Parameters
    ----------
    text : bytes
        The original text.
    starts, origins : tuple of int
        Where each piece starts in the rewritten text, and where it started in the original.
    is_copied : tuple of bool
        Whether a piece was copied from the original; an inserted piece maps to its origin as a whole.
    """

    text: bytes
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    is_copied: tuple[bool, ...]

    def find_original_position(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both from 1, that an offset in the rewritten text had in the original."""
        piece = bisect_right(self.starts, offset) - 1
        original = self.origins[piece] + (offset - self.starts[piece]) * self.is_copied[piece]
        return self.text.count(b"\n", 0, original) + 1, original - self.text.rfind(b"\n", 0, original)


def rewrite_launches(text: str) -> tuple[str, SourceMap]:
    """Return the text with every launch rewritten as two calls, and the source map back to `text`."""
    original = text.encode()
    code = _NOT_CODE.sub(lambda match: re.sub(rb"[^\n]", b" ", match[0]), original)
    pieces: list[tuple[bytes, int, bool]] = []
    copied = 0
    for launch in find_launches(code):
        first, last = launch.configuration
        pieces += [
            (original[copied : launch.start], copied, True),
            (original[launch.end : launch.closing + 1], launch.end, True),
            (b", " + CONFIGURE_FUNCTION.encode() + b"(", launch.start, False),
            (original[first:last], first, True),
            (b")", last, False),
        ]
        copied = launch.closing + 1
    pieces.append((original[copied:], copied, True))
    texts, origins, kept = zip(*pieces, strict=True)
    starts = (0, *accumulate(map(len, texts[:-1])))
    return b"".join(texts).decode(), SourceMap(original, starts, origins, kept)


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
