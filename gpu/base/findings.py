"""Findings: the checkers' reports, in the wording of compute-sanitizer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu.base.errors import LaunchError, SourcePosition


@dataclass(frozen=True)
class Finding:
    """An error in a kernel.

    Parameters
    ----------
    kind : str
        "out-of-bounds", "null-pointer", "misaligned", "uninitialized", "barrier", "race", "use-after-free",
        "double-free", "invalid-free", "warp-mask", "use-after-scope", "stack-overflow", "endless", "assertion",
        "residency", "read-only-load", "undefined-operation", "invalid-pointer" (to host memory or to none),
        "never-written", "constant-never-set", "unfinished" (ended by a limit), or "other".
    message : str
        The error, in the wording of compute-sanitizer where it reports this kind of error.
    positions : tuple of SourcePosition
        The source line of the access, followed by related lines. A race has the lines of both accesses; a use of heap
        memory also has the line where it was freed or allocated; a use after scope also has the declaration.
    threads : tuple of str
        The thread at each position, such as "thread (3,0,0) in block (0,0,0)".
    count : int
        The number of times that the error occurred at these lines.
    """

    kind: str
    message: str
    positions: tuple[SourcePosition, ...]
    threads: tuple[str, ...] = ()
    count: int = 1


_ORDER = ("race", "uninitialized", "use-after-free", "double-free", "invalid-free", "warp-mask", "use-after-scope")


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by kind for a report, and findings of one kind by detection."""
    return sorted(findings, key=lambda each: _ORDER.index(each.kind) if each.kind in _ORDER else len(_ORDER))


def build_error_finding(error: LaunchError) -> Finding:
    """Convert an error that ended a launch to a finding."""
    return Finding(
        error.kind,
        f"{error.message} {error.advice}".strip().removeprefix(f"{error.position}: "),
        (error.position,) if error.position is not None else (),
        (error.thread,) if error.thread else (),
    )
