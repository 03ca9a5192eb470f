"""The tree of recorded grids: launches by the host, and child launches by kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.recording import LaunchSpan, Recording
from gpu.recording.trace import Trace
from gpu.stepping.explanation.thread_event import ThreadEvent, format_value


@dataclass(frozen=True)
class Grid:
    """A grid that ran.

    Parameters
    ----------
    blocks, threads : int
        The numbers of blocks, and of threads per block.
    parent : int
        The index of the grid that launched this one; -1 for the host.
    depth : int
        The number of launches between the host's launch and this one.
    parent_block, parent_thread : int
        The block and thread that launched the grid; -1 for the host.
    arguments : tuple of (str, str)
        The scalar parameters and their values.
    launch_moment : int
        The moment just after the grid was launched.
    first, last : int
        The moments of its first event, and just after its last.
    subtree_end : int
        The moment at which the grid and all its descendants have ended.
    """

    kernel: str
    blocks: int
    threads: int
    parent: int
    depth: int
    parent_block: int
    parent_thread: int
    arguments: tuple[tuple[str, str], ...]
    launch_moment: int
    first: int
    last: int
    subtree_end: int


def build_launch_tree(recording: Recording) -> tuple[Grid, ...]:
    """Return all grids of a recording, in the order in which they ran; parents precede their children."""
    grids: list[Grid] = []
    for launch in recording.launches:
        grids += _build_grids(launch, len(grids))
    return tuple(grids)


def _build_grids(launch: LaunchSpan, offset: int) -> list[Grid]:
    trace = launch.trace
    owners = trace.data.batches["launch"][trace.data.events["batch"]]
    spans = [_find_span(owners, each.number, launch.count) for each in trace.launches]
    subtree_ends = [last for _, last in spans]
    depths = [0] * len(spans)
    for each in trace.launches:
        if each.parent >= 0:
            depths[each.number] = depths[each.parent] + 1
    for each in reversed(trace.launches):
        if each.parent >= 0:
            subtree_ends[each.parent] = max(subtree_ends[each.parent], subtree_ends[each.number])
    return [
        Grid(
            each.kernel,
            int(np.prod(each.grid)),
            int(np.prod(each.block)),
            each.parent + offset if each.parent >= 0 else -1,
            depths[each.number],
            each.by_block,
            each.by_thread,
            _format_arguments(trace, first) if last > first else (),
            launch.first + (each.event + 1 if each.event >= 0 else 0),
            launch.first + first,
            launch.first + last,
            launch.first + subtree_ends[each.number],
        )
        for each, (first, last) in zip(trace.launches, spans, strict=True)
    ]


def _find_span(owners: Array, number: int, end: int) -> tuple[int, int]:
    """Return a grid's first event and the one after its last; `end` twice for a grid without recorded events."""
    events = np.flatnonzero(owners == number)
    return (int(events[0]), int(events[-1]) + 1) if events.size else (end, end)


def _format_arguments(trace: Trace, first: int) -> tuple[tuple[str, str], ...]:
    """Return the values of a grid's parameters, which are the variables before its first event."""
    event = trace.events[first]
    seen = ThreadEvent.from_trace(trace, first, int(event.blocks[0]), int(event.threads[0]))
    return tuple((name, format_value(value)) for name, value in seen.before.items()) if seen is not None else ()
