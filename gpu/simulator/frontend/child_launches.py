"""Kernel launches in device code, which clang does not parse: the text is rewritten, and positions are led back.

`child<<<grid, block>>>(arguments)` becomes `child(arguments), __lockstep_launch(grid, block)`, both of which are plain
calls, so that clang checks and converts the arguments and deduces those of templates.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

CONFIGURE = "__lockstep_launch"

# What the shim's __global__ leaves on a kernel where kernels launch kernels; else it is clang's own attribute.
KERNEL_MARK = "lockstep kernel"

_NOT_CODE = re.compile(
    rb"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)
_REFUSED = re.compile(
    r"reference to (__global__ function '.*'|__host__ function '(cudaConfigureCall|__cudaPushCallConfiguration)')"
    r" in (__global__|__device__|__host__ __device__) function"
)
_OPENS, _CLOSES = re.compile(rb"<<\s*<"), re.compile(rb">>\s*>")
_OPENS_ARGUMENTS = re.compile(rb"\s*\(")
_BRACKETS = re.compile(rb"[()\[\]{}]")
_CLOSING = {b"(": b")", b"[": b"]", b"{": b"}"}


def is_child_launch(message: str) -> bool:
    """Whether an error of clang's says that device code launches a kernel."""
    return _REFUSED.fullmatch(message) is not None


@dataclass(frozen=True)
class Edits:
    """Where each piece of a rewritten text was before: places are bytes from the beginning.

    Parameters
    ----------
    text : bytes
        The text as it was.
    starts, origins : tuple of int
        Where a piece starts now, and where it started before.
    kept : tuple of bool
        Whether a piece is the user's; all of one that is not is where it starts.
    """

    text: bytes
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    kept: tuple[bool, ...]

    def line_and_column(self, place: int) -> tuple[int, int]:
        """Return the line and the column, both from 1, that a place had before."""
        piece = bisect_right(self.starts, place) - 1
        before = self.origins[piece] + (place - self.starts[piece]) * self.kept[piece]
        return self.text.count(b"\n", 0, before) + 1, before - self.text.rfind(b"\n", 0, before)


def rewrite(text: str) -> tuple[str, Edits]:
    """Return a text in which every launch is two calls, and how to get from places there to those in `text`."""
    before = text.encode()
    code = _NOT_CODE.sub(lambda found: re.sub(rb"[^\n]", b" ", found[0]), before)
    pieces: list[tuple[bytes, int, bool]] = []
    done = 0
    for found in launches(code):
        first, last = found.configuration
        pieces += [
            (before[done : found.start], done, True),
            (before[found.end : found.closing + 1], found.end, True),
            (b", " + CONFIGURE.encode() + b"(", found.start, False),
            (before[first:last], first, True),
            (b")", last, False),
        ]
        done = found.closing + 1
    pieces.append((before[done:], done, True))
    texts, origins, kept = zip(*pieces, strict=True)
    starts = (0, *accumulate(map(len, texts[:-1])))
    return b"".join(texts).decode(), Edits(before, starts, origins, kept)


@dataclass(frozen=True)
class WrittenLaunch:
    """Where a launch's parts are in a text.

    Parameters
    ----------
    start, end : int
        Where `<<<` begins, and where `>>>` ends.
    configuration : tuple of int
        Where what is between them begins and ends.
    closing : int
        Where the arguments' closing bracket is.
    """

    start: int
    end: int
    configuration: tuple[int, int]
    closing: int


def launches(code: bytes) -> Iterator[WrittenLaunch]:
    """Yield the launches in a text without comments and strings; nvcc takes `<< <` too."""
    place = 0
    closings: Mapping[int, int] | None = None
    while (opens := _OPENS.search(code, place)) is not None:
        if closings is None:
            closings = closing_brackets(code)
        place = opens.end()
        closes = _end_of_configuration(code, opens.end(), closings)
        opening = _OPENS_ARGUMENTS.match(code, closes.end()) if closes is not None else None
        closing = closings.get(opening.end() - 1) if opening is not None else None
        if closes is not None and closing is not None:
            yield WrittenLaunch(opens.start(), closes.end(), (opens.end(), closes.start()), closing)
            place = closing + 1


def _end_of_configuration(code: bytes, start: int, closings: Mapping[int, int]) -> re.Match[bytes] | None:
    """Return where the `>>>` of a launch is that is in no bracket."""
    place = start
    while place < len(code):
        letter = code[place : place + 1]
        if letter in _CLOSING:
            closing = closings.get(place)
            if closing is None:
                return None
            place = closing + 1
        elif letter in b";)]}":
            return None
        elif (closes := _CLOSES.match(code, place)) is not None:
            return closes
        else:
            place += 1
    return None


def closing_brackets(code: bytes) -> dict[int, int]:
    """Return where each bracket of a text closes that does, by where it opens.

    One that closes another kind than was opened last closes none, and those that are open then are never closed.
    """
    closings: dict[int, int] = {}
    opened: list[tuple[bytes, int]] = []
    for found in _BRACKETS.finditer(code):
        letter, place = found[0], found.start()
        if letter in _CLOSING:
            opened.append((_CLOSING[letter], place))
        elif opened:
            closing, opening = opened.pop()
            if letter == closing:
                closings[opening] = place
            else:
                opened.clear()
    return closings
