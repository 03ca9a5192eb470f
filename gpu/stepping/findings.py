"""The locations of a recording's findings: the event, the thread, and the elements that the error is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from gpu.base.findings import Finding
from gpu.base.thread_names import parse_sanitizer_name
from gpu.recording.data import FailedAccess, TraceFinding
from gpu.recording.recording import LaunchSpan, Recording
from gpu.recording.trace import Trace
from gpu.stepping.moment.array_accesses import find_array_accesses


@dataclass(frozen=True)
class FaultyElements:
    """Elements of an array that a finding is about.

    Parameters
    ----------
    array : int
        The array's number in the launch's trace.
    name : str
        The array's name.
    block : int
        The block of a shared array; 0 for any other array.
    elements : tuple of int
        The elements; negative, or at least the array's size, if they are out of bounds.
    threads : tuple of (int, int)
        The block and the thread that accesses each element.
    is_input : bool
        Whether the access shows that the host has set the array: it reads global memory that no thread has written.
    """

    array: int
    name: str
    block: int
    elements: tuple[int, ...]
    threads: tuple[tuple[int, int], ...]
    is_input: bool

    def find_outside(self, count: int) -> tuple[int, ...]:
        """Return the elements out of the bounds of the array, which has `count` elements."""
        return tuple(element for element in self.elements if not 0 <= element < count)


@dataclass(frozen=True)
class LocatedFinding:
    """A finding with its location in a recording.

    Parameters
    ----------
    moment : int
        The event over all launches; the number of events if the recording had ended.
    thread : (int, int) or None
        The block and the thread that the finding names last, which executes the event; None if it names none.
    faulty : FaultyElements or None
        For an access out of bounds, a misaligned access and an uninitialized read: its elements. Races are in
        `gpu.stepping.races`; local memory is omitted.
    """

    launch: int
    moment: int
    finding: Finding
    thread: tuple[int, int] | None
    faulty: FaultyElements | None


def locate_findings(recording: Recording) -> tuple[LocatedFinding, ...]:
    """Return the findings of a recording with their locations, by event."""
    return tuple(_locate(recording, launch, found) for launch in recording.launches for found in launch.trace.findings)


def _locate(recording: Recording, launch: LaunchSpan, found: TraceFinding) -> LocatedFinding:
    trace, finding, thread, faulty = launch.trace, found.finding, None, None
    if found.event < len(trace.events):
        thread = parse_thread(trace, found.event, finding.threads[-1]) if finding.threads else None
        if found.access is not None:
            faulty = _find_failed_elements(trace, found, found.access, thread)
        elif finding.kind == "uninitialized":
            faulty = _find_unwritten_elements(trace, found.event, finding, thread)
    finding = recording.rename_threads(launch.number, finding)
    return LocatedFinding(launch.number, launch.first + found.event, finding, thread, faulty)


def _find_failed_elements(
    trace: Trace, found: TraceFinding, access: FailedAccess, thread: tuple[int, int] | None
) -> FaultyElements | None:
    """Return the elements of a failed access that are out of bounds or, if that is the error, misaligned.

    In shared memory, these are only the elements of one block's array.
    """
    block = thread[0] if thread is not None else access.blocks[0]
    array = next((each for each in trace.arrays if each.memory == access.memory and each.block in (None, block)), None)
    if array is None or array.space == "local":
        return None
    width, is_misaligned = array.dtype.itemsize, found.finding.kind == "misaligned"
    pairs = sorted(
        {
            (element, (own_block, own_thread))
            for offset, own_block, own_thread in zip(access.offsets, access.blocks, access.threads, strict=True)
            if array.block in (None, own_block) and (offset % access.size != 0) == is_misaligned
            for element in range(offset // width, (offset + access.size - 1) // width + 1)
            if (0 <= element < array.count) == is_misaligned
        }
    )
    elements, threads = tuple(element for element, _ in pairs), tuple(lane for _, lane in pairs)
    reads_global = access.action != "write" and array.space == "global"
    is_input = reads_global and not trace.memory.find_written(array, found.event).any()
    return FaultyElements(array.number, array.name, array.block or 0, elements, threads, is_input)


def _find_unwritten_elements(
    trace: Trace, event: int, finding: Finding, thread: tuple[int, int] | None
) -> FaultyElements | None:
    """Return the elements that an event reads before any write, of the array that the finding names."""
    for access in find_array_accesses(trace, event):
        array = trace.arrays[access.array_number]
        is_own = thread is None or array.block in (None, thread[0])
        # Other arrays that the event reads may have got their values from the host.
        if access.is_write or not is_own or not _names_array(finding, array.name):
            continue
        is_unwritten = ~trace.memory.find_written(array, event)[access.elements]
        lanes = zip(access.blocks[is_unwritten].tolist(), access.threads[is_unwritten].tolist(), strict=True)
        elements = tuple(access.elements[is_unwritten].tolist())
        return FaultyElements(array.number, array.name, array.block or 0, elements, tuple(lanes), is_input=False)
    return None


def _names_array(finding: Finding, name: str) -> bool:
    return re.search(rf"element \d+ of {re.escape(name)}(?!\w)", finding.message) is not None


def parse_thread(trace: Trace, event: int, text: str) -> tuple[int, int] | None:
    """Return the block and thread numbers of a thread's description, in the launch of an event; None if invalid."""
    indices = parse_sanitizer_name(text)
    if indices is None:
        return None
    launch = trace.lanes.launch(int(trace.data.events["batch"][event]))
    (x, y, z), (column, row, layer) = indices
    (wide, high, _), (columns, rows, _) = launch.block, launch.grid
    block, thread = column + columns * (row + rows * layer), x + wide * (y + high * z)
    return (block, thread) if block < prod(launch.grid) and thread < prod(launch.block) else None
