"""The stretches of a recording from barrier to barrier, as its time line shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpu.simulator.trace.trace import Trace
    from gpu.stepping.dataflow.dataflow import Dataflow
    from gpu.stepping.provenance.provenance import Provenance
    from gpu.stepping.recording import Recording

_FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Segment:
    """A stretch of moments between two barriers, or of a round of a loop; `last` is not in it."""

    first: int
    last: int
    label: str
    launch: int


def segments_of(dataflow: Dataflow) -> tuple[Segment, ...]:
    """Return a recording from barrier to barrier; where a loop fills shared memory, round by round."""
    recording = dataflow.recording
    labels = [(row.first, row.label) for row in dataflow.rows if row.made.any()]
    made = []
    for first, last in pairwise(_borders(recording)):
        here = dict.fromkeys(label for moment, label in labels if first <= moment < last)
        launch = recording.at(first)[0]
        label = next(iter(here)) if here else _copied(launch.trace, first - launch.first, last - launch.first)
        if len(here) > 1:
            label = f"{label} …"
        rounds = _rounds(dataflow.provenance, first, last) if label == "load" and not here else []
        borders = [first, *rounds[:-1], last]
        for number, (begin, end) in enumerate(pairwise(borders), 1):
            of = f" {number} of {len(rounds)}" if rounds else ""
            made.append(Segment(begin, end, f"{label}{of}", launch.number))
    return tuple(made)


def _rounds(provenance: Provenance, first: int, last: int) -> list[int]:
    """Return the moments after the rounds in which one statement filled shared memory, one round after the other."""
    writes, recording = provenance.writes, provenance.recording
    shared = np.array([storage.space == "shared" for storage in provenance.storages.all] or [False])
    rows = np.flatnonzero((writes.moment >= first) & (writes.moment < last) & shared[writes.storage])
    steps, of = np.unique(writes.step[rows], return_inverse=True)
    begins, ends = np.full(steps.size, last), np.full(steps.size, first)
    np.minimum.at(begins, of, writes.moment[rows])
    np.maximum.at(ends, of, writes.moment[rows])
    statements = {recording.position(moment) for moment in begins.tolist()}
    if steps.size < _FEWEST_ROUNDS or len(statements) > 1 or (begins[1:] <= ends[:-1]).any():
        return []
    found: list[int] = (ends + 1).tolist()
    return found


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
