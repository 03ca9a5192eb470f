"""`x::f<n>()` where `x` depends on a template's parameters: nvcc takes it without `template`, which clang misses."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import accumulate

from gpu.simulator.frontend.child_launches import Edits

_MISSING = re.compile("missing 'template' keyword prior to dependent template name '(.*)'")


def missing_word(message: str) -> str | None:
    """Return the name before which clang misses the word; None where it says something else."""
    found = _MISSING.fullmatch(message)
    return found[1] if found is not None else None


def place_of_word(text: str, start: int, name: str) -> int | None:
    """Return where the word goes in what begins at a place, both in bytes: `A<T>::name<...>`."""
    found = re.compile(rb"::\s*(?=%s\s*<)" % re.escape(name.encode())).search(text.encode(), start)
    return found.end() if found is not None else None


def with_words(text: str, places: Collection[int]) -> tuple[str, Edits]:
    """Return a text with the word at some places, and how to get from places there to those in `text`."""
    before = text.encode()
    pieces: list[tuple[bytes, int, bool]] = []
    done = 0
    for place in sorted(places):
        pieces += [(before[done:place], done, True), (b"template ", place, False)]
        done = place
    pieces.append((before[done:], done, True))
    texts, origins, kept = zip(*pieces, strict=True)
    return b"".join(texts).decode(), Edits(before, (0, *accumulate(map(len, texts[:-1]))), origins, kept)
