"""Which grid launched which: the host's launches, and those by kernels, as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace
from gpu.stepping.recording import LaunchSpan, Recording
from gpu.stepping.thread_event import ThreadEvent, as_text


@dataclass(frozen=True)
class Grid:
    """A grid that ran.

    Parameters
    ----------
    kernel : str
    blocks, threads : int
        How many blocks it has, and threads each.
    parent : int
        The place of the grid that launched it; -1 for the host.
    depth : int
        How many launches it is away from the host's.
    by_block, by_thread : int
        Which thread launched it; -1 for the host.
    arguments : tuple of (str, str)
        Its parameters that are numbers, and their values.
    launched : int
        The moment from which on it has been launched.
    first, last : int
        The moments of its first event, and just after its last one.
    whole : int
        The moment at which all grids that it launched have ended, and theirs.
    """

    kernel: str
    blocks: int
    threads: int
    parent: int
    depth: int
    by_block: int
    by_thread: int
    arguments: tuple[tuple[str, str], ...]
    launched: int
    first: int
    last: int
    whole: int


def launch_tree(recording: Recording) -> tuple[Grid, ...]:
    """Return all grids of a recording, in the order in which they ran; a parent comes before its children."""
    grids: list[Grid] = []
    for launch in recording.launches:
        grids += _of_launch(launch, len(grids))
    return tuple(grids)


def _of_launch(launch: LaunchSpan, before: int) -> list[Grid]:
    trace = launch.trace
    owners = trace.data.batches["launch"][trace.data.events["batch"]]
    spans = [_span(owners, each.number, launch.count) for each in trace.launches]
    whole = [last for _, last in spans]
    depths = [0] * len(spans)
    for each in trace.launches:
        if each.parent >= 0:
            depths[each.number] = depths[each.parent] + 1
    for each in reversed(trace.launches):
        if each.parent >= 0:
            whole[each.parent] = max(whole[each.parent], whole[each.number])
    return [
        Grid(
            each.kernel,
            int(np.prod(each.grid)),
            int(np.prod(each.block)),
            each.parent + before if each.parent >= 0 else -1,
            depths[each.number],
            each.by_block,
            each.by_thread,
            _arguments(trace, first) if last > first else (),
            launch.first + (each.event + 1 if each.event >= 0 else 0),
            launch.first + first,
            launch.first + last,
            launch.first + whole[each.number],
        )
        for each, (first, last) in zip(trace.launches, spans, strict=True)
    ]


def _span(owners: Array, number: int, end: int) -> tuple[int, int]:
    """Return a grid's first event, and the one after its last; the end for one of which nothing was recorded."""
    own = np.flatnonzero(owners == number)
    return (int(own[0]), int(own[-1]) + 1) if own.size else (end, end)


def _arguments(trace: Trace, first: int) -> tuple[tuple[str, str], ...]:
    """Return what variables hold before a grid's first event, which are its parameters."""
    event = trace.events[first]
    seen = ThreadEvent.of(trace, first, int(event.blocks[0]), int(event.threads[0]))
    return tuple((name, as_text(value)) for name, value in seen.before.items()) if seen is not None else ()
