"""Recursion limits for the parser and the IR walkers: how deep a kernel's code may be nested."""

from __future__ import annotations

import sys

MAX_STATEMENT_DEPTH = 1000
"""Statements nested in each other, such as an else-if in the one before."""

MAX_EXPRESSION_DEPTH = 400
"""Expressions nested in each other, including conversions; each term of a sum nests one level deeper."""

_MAX_CALL_DEPTH = 14_000
"""Nested Python calls: up to eight per level, and a kernel's functions may call each other."""


def raise_recursion_limit() -> None:
    """Raise Python's recursion limit for this process as far as the deepest allowed code requires."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _MAX_CALL_DEPTH))
