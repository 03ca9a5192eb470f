"""The locations of a recording's races: the elements, and the two unordered accesses to each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.base.findings import Finding
from gpu.base.warp import WARP
from gpu.recording.recording import LaunchSpan, Recording
from gpu.recording.trace import Trace
from gpu.stepping.findings import parse_thread
from gpu.stepping.moment.array_accesses import ArrayAccess, find_array_accesses

_MAXIMUM_EVENTS = 1000
"""The most events to search for the earlier access."""


@dataclass(frozen=True)
class RaceAccess:
    """One of the two accesses of a race: its thread, its event over all launches, and whether it writes."""

    block: int
    thread: int
    moment: int
    is_write: bool


@dataclass(frozen=True)
class Race:
    """Two unordered accesses by different threads to one element, at least one of which writes.

    Parameters
    ----------
    array : int
        The number of the array in the launch's trace.
    name : str
        The array's name.
    element, block : int
        The array's element, and the block of a shared array; `block` is 0 for any other array.
    first, second : RaceAccess
        The accesses in the order in which they were executed.
    """

    launch: int
    array: int
    name: str
    element: int
    block: int
    first: RaceAccess
    second: RaceAccess


def find_races(recording: Recording) -> tuple[Race, ...]:
    """Return the first occurrence of each race that was found, and all other races between the same two events.

    All accesses of the same two events are equally unordered, because a barrier between them would order all of a
    block. If the reported threads are of different warps, a `__syncwarp` may still order accesses of one warp.
    """
    return tuple(
        race
        for launch in recording.launches
        for found in launch.trace.findings
        if found.finding.kind == "race"
        for race in _find_finding_races(launch, found.event, found.finding)
    )


def _find_finding_races(launch: LaunchSpan, event: int, finding: Finding) -> Iterator[Race]:
    trace = launch.trace
    if len(finding.threads) != 2 or len(finding.positions) != 2 or not 0 <= event < len(trace.events):
        return
    first, second = (parse_thread(trace, event, text) for text in finding.threads)
    if first is None or second is None:
        return
    later_accesses = find_array_accesses(trace, event)
    targets = {
        (later_access.array_number, element)
        for later_access in later_accesses
        for element in _find_thread_elements(later_access, second)
    }
    for earlier in _find_events_at(trace, event, finding.positions[0].line):
        earlier_accesses = find_array_accesses(trace, earlier)
        if any(
            (earlier_access.array_number, at) in targets
            for earlier_access in earlier_accesses
            for at in _find_thread_elements(earlier_access, first)
        ):
            same_warp = first[0] == second[0] and first[1] // WARP == second[1] // WARP
            yield from _find_races_between(
                launch, (earlier, earlier_accesses), (event, later_accesses), within_warps=same_warp
            )
            return


def _find_races_between(
    launch: LaunchSpan,
    first: tuple[int, list[ArrayAccess]],
    second: tuple[int, list[ArrayAccess]],
    *,
    within_warps: bool,
) -> Iterator[Race]:
    """Yield a race for each element that different threads access in two events, at least one of which writes."""
    seen = set()
    for one in first[1]:
        for other in (
            each for each in second[1] if each.array_number == one.array_number and (each.is_write or one.is_write)
        ):
            common = np.intersect1d(one.elements, other.elements)
            for element in common.tolist():
                pair = next(_find_thread_pairs(one, other, element, within_warps=within_warps), None)
                if pair is None or (one.array_number, element) in seen:
                    continue
                seen.add((one.array_number, element))
                array = launch.trace.arrays[one.array_number]
                racers = [
                    RaceAccess(*thread, launch.first + event, each.is_write)
                    for thread, event, each in zip(pair, (first[0], second[0]), (one, other), strict=True)
                ]
                yield Race(launch.number, one.array_number, array.name, element, array.block or 0, racers[0], racers[1])


def _find_thread_pairs(
    one: ArrayAccess, other: ArrayAccess, element: int, *, within_warps: bool
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for at in np.flatnonzero(one.elements == element).tolist():
        for index in np.flatnonzero(other.elements == element).tolist():
            first = (int(one.blocks[at]), int(one.threads[at]))
            second = (int(other.blocks[index]), int(other.threads[index]))
            same_warp = first[0] == second[0] and first[1] // WARP == second[1] // WARP
            if first != second and (within_warps or not same_warp):
                yield first, second


def _find_events_at(trace: Trace, event: int, line: int) -> Iterator[int]:
    """Yield the events at a source line, backwards from an event, within the search limit."""
    positions = np.array([position.line == line for position in trace.data.positions], bool)
    yield from np.flatnonzero(positions[trace.data.events["position"][: event + 1]])[
        : -_MAXIMUM_EVENTS - 1 : -1
    ].tolist()


def _find_thread_elements(touched_elements: ArrayAccess, thread: tuple[int, int]) -> list[int]:
    """Return the elements that a thread accesses."""
    is_thread = (touched_elements.blocks == thread[0]) & (touched_elements.threads == thread[1])
    elements: list[int] = touched_elements.elements[is_thread].tolist()
    return elements
