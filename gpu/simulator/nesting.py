"""How deep a kernel's text may be nested: all that walks through it, or through what is kept of it, calls itself."""

from __future__ import annotations

import sys

STATEMENTS = 1000
"""Statements within each other, such as an else-if in the one before."""

EXPRESSIONS = 400
"""Expressions within each other, conversions too; of a sum each term is in the one that follows it."""

_CALLS = 12_000
"""Python's calls within each other: up to seven for a level, and a kernel's functions may call each other."""


def make_room() -> None:
    """Let Python's calls nest as deep as that takes, in all of the process."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _CALLS))
