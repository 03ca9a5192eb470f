"""What the checkers report, in compute-sanitizer's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu.errors import LaunchError, SourcePosition


@dataclass(frozen=True)
class Finding:
    """A mistake of a kernel.

    Parameters
    ----------
    kind : str
        "out-of-bounds", "null-pointer", "misaligned", "uninitialized", "barrier", "race", "use-after-free",
        "double-free", "invalid-free", "warp-mask", "use-after-scope", "stack-overflow", "endless",
        "assertion" or "other".
    message : str
        What happened, in compute-sanitizer's words where it has some.
    positions : tuple of SourcePosition
        The source line; of a race both, of memory that was freed also where, and of a piece of the heap also where it
        was allocated; of a variable that is gone also where it was declared.
    threads : tuple of str
        Such as "thread (3,0,0) in block (0,0,0)", one for each position.
    count : int
        How often this pair of lines was found.
    """

    kind: str
    message: str
    positions: tuple[SourcePosition, ...]
    threads: tuple[str, ...] = ()
    count: int = 1


_ORDER = ("race", "uninitialized", "use-after-free", "double-free", "invalid-free", "warp-mask", "use-after-scope")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order in which they are reported: by kind, and of a kind as they were found."""
    return sorted(findings, key=lambda each: _ORDER.index(each.kind) if each.kind in _ORDER else len(_ORDER))


def finding_of(error: LaunchError) -> Finding:
    """Return what ended a launch as a finding."""
    return Finding(
        error.kind,
        f"{error.message} {error.advice}".strip().removeprefix(f"{error.position}: "),
        (error.position,) if error.position is not None else (),
        (error.thread,) if error.thread else (),
    )
