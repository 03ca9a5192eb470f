"""The intervals of a recording between barriers, as its time line shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpu.recording.recording import Recording
    from gpu.recording.trace import Trace
    from gpu.stepping.dataflow.dataflow import Dataflow
    from gpu.stepping.dataflow.provenance import Provenance

_MINIMUM_ITERATIONS = 2


@dataclass(frozen=True)
class Segment:
    """An interval of moments between two barriers, or one iteration of a loop; `last` is exclusive."""

    first: int
    last: int
    label: str
    launch: int


def find_segments(dataflow: Dataflow) -> tuple[Segment, ...]:
    """Split a recording at its barriers; a loop that fills shared memory is split into iterations."""
    recording = dataflow.recording
    labels = [(row.first, row.label) for row in dataflow.rows if row.computed.any()]
    segments = []
    for first, last in pairwise(_find_borders(recording)):
        labels_here = dict.fromkeys(label for moment, label in labels if first <= moment < last)
        launch = recording.locate_moment(first)[0]
        label = (
            next(iter(labels_here))
            if labels_here
            else _find_copy_label(launch.trace, first - launch.first, last - launch.first)
        )
        if len(labels_here) > 1:
            label = f"{label} …"
        iterations = _find_iterations(dataflow.provenance, first, last) if label == "load" and not labels_here else []
        borders = [first, *iterations[:-1], last]
        for number, (begin, end) in enumerate(pairwise(borders), 1):
            position = f" {number} of {len(iterations)}" if iterations else ""
            segments.append(Segment(begin, end, f"{label}{position}", launch.number))
    return tuple(segments)


def _find_iterations(provenance: Provenance, first: int, last: int) -> list[int]:
    """Return the moments after each iteration in which one statement filled shared memory."""
    writes, recording = provenance.writes, provenance.recording
    shared = np.array([storage.space == "shared" for storage in provenance.storages.entries] or [False])
    rows = np.flatnonzero((writes.moment >= first) & (writes.moment < last) & shared[writes.storage])
    steps, step_numbers = np.unique(writes.step[rows], return_inverse=True)
    begins, ends = np.full(steps.size, last), np.full(steps.size, first)
    np.minimum.at(begins, step_numbers, writes.moment[rows])
    np.maximum.at(ends, step_numbers, writes.moment[rows])
    statements = {recording.position(moment) for moment in begins.tolist()}
    if steps.size < _MINIMUM_ITERATIONS or len(statements) > 1 or (begins[1:] <= ends[:-1]).any():
        return []
    moments: list[int] = (ends + 1).tolist()
    return moments


def _find_borders(recording: Recording) -> list[int]:
    """Return the moments after barriers (the last of several in a row), and those where launches begin."""
    _, kinds = recording.statements
    borders = {launch.first for launch in recording.launches}
    for number, kind in enumerate(kinds):
        if kind == "barrier" and (number + 1 == len(kinds) or kinds[number + 1] != "barrier"):
            borders.add(number + 1)
    return sorted(borders | {0, len(kinds)})


def _find_copy_label(trace: Trace, first: int, last: int) -> str:
    """Return a label for an interval that computes no values: "load", "store" or ""."""
    for number in range(first, last):
        for access in trace.events[number].accesses:
            if access.action != "read" and access.arrays.size:
                space = trace.arrays[int(access.arrays[0])].space
                if space in ("shared", "global"):
                    return "load" if space == "shared" else "store"
    return ""
