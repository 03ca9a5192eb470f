"""The stretches of a recording from barrier to barrier, as its time line shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu.simulator.trace.trace import Trace
    from gpu.stepping.recording import Recording


@dataclass(frozen=True)
class Segment:
    """A stretch of moments between two barriers, `first` to `last` (not included)."""

    first: int
    last: int
    label: str
    launch: int


def segments_of(recording: Recording, labels: Sequence[tuple[int, str]]) -> tuple[Segment, ...]:
    """Return a recording from barrier to barrier.

    Parameters
    ----------
    labels : sequence of (int, str)
        The statements that make data: the moment at which each begins, and how it is called.
    """
    made = []
    for first, last in pairwise(_borders(recording)):
        here = dict.fromkeys(label for moment, label in labels if first <= moment < last)
        launch = recording.at(first)[0]
        label = next(iter(here)) if here else _copied(launch.trace, first - launch.first, last - launch.first)
        if len(here) > 1:
            label = f"{label} …"
        made.append(Segment(first, last, label, launch.number))
    return tuple(made)


def _borders(recording: Recording) -> list[int]:
    """Return the moments just after the last of several barriers in a row, and those where launches begin."""
    _, kinds = recording.statements
    borders = {launch.first for launch in recording.launches}
    for number, kind in enumerate(kinds):
        if kind == "barrier" and (number + 1 == len(kinds) or kinds[number + 1] != "barrier"):
            borders.add(number + 1)
    return sorted(borders | {0, len(kinds)})


def _copied(trace: Trace, first: int, last: int) -> str:
    """Return what a stretch does that makes no values: "load", "store", or nothing to speak of."""
    for number in range(first, last):
        for access in trace.events[number].accesses:
            if access.action != "read" and access.arrays.size:
                space = trace.arrays[int(access.arrays[0])].space
                if space in ("shared", "global"):
                    return "load" if space == "shared" else "store"
    return ""
