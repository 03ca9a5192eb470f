"""Insert the keyword `template` in `x::f<n>()` with a dependent `x`: nvcc allows its omission, clang does not."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import accumulate

from gpu.simulator.frontend.clang.child_launches import SourceMap

_MISSING = re.compile("missing 'template' keyword prior to dependent template name '(.*)'")


def parse_missing_keyword(message: str) -> str | None:
    """Return the name before which clang misses the keyword `template`; None for any other message."""
    match = _MISSING.fullmatch(message)
    return match[1] if match is not None else None


def find_keyword_offset(text: str, start: int, name: str) -> int | None:
    """Return the byte offset for the keyword in the text after `start`: before the name in `A<T>::name<...>`."""
    match = re.compile(rb"::\s*(?=%s\s*<)" % re.escape(name.encode())).search(text.encode(), start)
    return match.end() if match is not None else None


def insert_keywords(text: str, offsets: Collection[int]) -> tuple[str, SourceMap]:
    """Return the text with the keyword inserted at some offsets, and the source map back to `text`."""
    original = text.encode()
    pieces: list[tuple[bytes, int, bool]] = []
    copied = 0
    for offset in sorted(offsets):
        pieces += [(original[copied:offset], copied, True), (b"template ", offset, False)]
        copied = offset
    pieces.append((original[copied:], copied, True))
    texts, origins, kept = zip(*pieces, strict=True)
    return b"".join(texts).decode(), SourceMap(original, (0, *accumulate(map(len, texts[:-1]))), origins, kept)
