"""Runs of programs and scripts without an end, with limits of time that suffice for what they do first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LIMITS_S = ("2", "8", "32")
"""Values of --max-seconds. A busy machine may not even have compiled a program in the first."""


def run_with_limits(run: Callable[[str], Any], output: str) -> tuple[Any, str]:
    """Run with one limit after the other until the output begins as expected.

    Parameters
    ----------
    run : callable
        Takes the limit and returns the finished run, with its `stdout`.
    output : str
        The beginning of its output.

    Returns
    -------
    finished
        The last run.
    limit : str
        Its limit.
    """
    for limit in LIMITS_S:
        finished = run(limit)
        if finished.stdout.startswith(output):
            break
    return finished, limit
