"""Where the races of a recording happen: the elements, and the two accesses to each that nothing orders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.simulator.checkers.findings import Finding
from gpu.simulator.trace.trace import Trace
from gpu.stepping.moment.touched import Touched, touched
from gpu.stepping.recording import LaunchSpan, Recording
from gpu.warp import WARP

_FARTHEST = 1000
"""Events that are looked through for the earlier access."""
_WHO = re.compile(r"thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")


@dataclass(frozen=True)
class Racer:
    """One of the two accesses: by which thread, in which event over all launches, and whether it writes."""

    block: int
    thread: int
    moment: int
    writes: bool


@dataclass(frozen=True)
class Race:
    """Two threads that touch one element, at least one of them to write, and nothing orders the two.

    Parameters
    ----------
    launch : int
        The launch's number.
    array : int
        The number of the array in the launch's trace.
    name : str
        The array's name.
    element, block : int
        `block` is that which a shared array belongs to; 0 for any other.
    first, second : Racer
        As they happened in this order.
    """

    launch: int
    array: int
    name: str
    element: int
    block: int
    first: Racer
    second: Racer


def races_of(recording: Recording) -> tuple[Race, ...]:
    """Return where each race that was found happens first, and what else races between the same two events.

    Whoever is in the same two events is ordered as little: a barrier between them would be for all of a block. Where
    the threads that were named are of different warps, a `__syncwarp` may order those of one.
    """
    return tuple(
        race
        for launch in recording.launches
        for found in launch.trace.findings
        if found.finding.kind == "race"
        for race in _of(launch, found.event, found.finding)
    )


def _of(launch: LaunchSpan, event: int, finding: Finding) -> Iterator[Race]:
    trace = launch.trace
    if len(finding.threads) != 2 or len(finding.positions) != 2 or not 0 <= event < len(trace.events):
        return
    first, second = (_thread(trace, event, text) for text in finding.threads)
    if first is None or second is None:
        return
    later = touched(trace, event)
    wanted = {(each.number, element) for each in later for element in _elements_of(each, second)}
    for earlier in _events_at(trace, event, finding.positions[0].line):
        before = touched(trace, earlier)
        if any((each.number, at) in wanted for each in before for at in _elements_of(each, first)):
            same_warp = first[0] == second[0] and first[1] // WARP == second[1] // WARP
            yield from _between(launch, (earlier, before), (event, later), within_warps=same_warp)
            return


def _between(
    launch: LaunchSpan, first: tuple[int, list[Touched]], second: tuple[int, list[Touched]], *, within_warps: bool
) -> Iterator[Race]:
    """Yield one race for each element that different threads touch in two events, at least one of them to write."""
    seen = set()
    for one in first[1]:
        for other in (each for each in second[1] if each.number == one.number and (each.writes or one.writes)):
            common = np.intersect1d(one.elements, other.elements)
            for element in common.tolist():
                pair = next(_pairs(one, other, element, within_warps=within_warps), None)
                if pair is None or (one.number, element) in seen:
                    continue
                seen.add((one.number, element))
                array = launch.trace.arrays[one.number]
                racers = [
                    Racer(*who, launch.first + event, each.writes)
                    for who, event, each in zip(pair, (first[0], second[0]), (one, other), strict=True)
                ]
                yield Race(launch.number, one.number, array.name, element, array.block or 0, racers[0], racers[1])


def _pairs(
    one: Touched, other: Touched, element: int, *, within_warps: bool
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for at in np.flatnonzero(one.elements == element).tolist():
        for place in np.flatnonzero(other.elements == element).tolist():
            first = (int(one.blocks[at]), int(one.threads[at]))
            second = (int(other.blocks[place]), int(other.threads[place]))
            same_warp = first[0] == second[0] and first[1] // WARP == second[1] // WARP
            if first != second and (within_warps or not same_warp):
                yield first, second


def _events_at(trace: Trace, event: int, line: int) -> Iterator[int]:
    """Yield the events at a line, from one backwards, as many as can be looked at in no time."""
    positions = np.array([position.line == line for position in trace.data.positions], bool)
    yield from np.flatnonzero(positions[trace.data.events["position"][: event + 1]])[: -_FARTHEST - 1 : -1].tolist()


def _elements_of(each: Touched, who: tuple[int, int]) -> list[int]:
    """Return the elements that a thread touches."""
    mine = (each.blocks == who[0]) & (each.threads == who[1])
    found: list[int] = each.elements[mine].tolist()
    return found


def _thread(trace: Trace, event: int, text: str) -> tuple[int, int] | None:
    """Return the numbers of a block and a thread that are named in words, in the launch of an event."""
    named = _WHO.fullmatch(text)
    if named is None:
        return None
    launch = trace.lanes.launch(int(trace.data.events["batch"][event]))
    x, y, z, column, row, layer = map(int, named.groups())
    (wide, high, _), (columns, rows, _) = launch.block, launch.grid
    return column + columns * (row + rows * layer), x + wide * (y + high * z)
