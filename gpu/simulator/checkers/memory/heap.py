"""Checker for heap errors in kernels: use after free, accesses past an allocation, and invalid or double frees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import DeviceMemory, FlatMemory
from gpu.simulator.executor.state.observer import Access, HeapCall

Array = npt.NDArray[Any]

HEAP = "device_heap"
"""The name of the array from which malloc allocates, in the simulator's headers."""

# The alignment of allocations in bytes.
_ALIGNMENT = 16


@dataclass(frozen=True)
class _Free:
    """The position and the thread that freed an allocation."""

    position: SourcePosition
    thread: str


class _Allocations:
    """The allocations of a heap, numbered from 1 in order of allocation; number 0 means none."""

    def __init__(self, heap: FlatMemory) -> None:
        self._number_of_unit = np.zeros(-(-heap.data.size // _ALIGNMENT), np.int32)
        self._count = 1
        self._starts = np.zeros(64, np.int64)
        self._sizes = np.zeros(64, np.int64)
        self.is_freed = np.zeros(64, bool)
        self.positions: list[SourcePosition] = [SourcePosition("", 0)]
        self.frees: dict[int, _Free] = {}
        # Memory before the first known allocation may have been allocated by an unobserved launch.
        self._first_known_offset = heap.data.size

    def add(self, starts: Array, sizes: Array, position: SourcePosition) -> None:
        """Add an allocation for each lane."""
        count = self._count + starts.size
        if count > self._starts.size:
            more = max(count, 2 * self._starts.size) - self._starts.size
            self._starts, self._sizes, self.is_freed = (
                np.concatenate([each, np.zeros(more, each.dtype)])
                for each in (self._starts, self._sizes, self.is_freed)
            )
        self._starts[self._count : count] = starts
        self._sizes[self._count : count] = sizes
        for number, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True), self._count):
            # The gap after the allocation belongs to it, so that overruns are attributed to it.
            self._number_of_unit[start // _ALIGNMENT : (start + size + 2 * _ALIGNMENT - 1) // _ALIGNMENT] = number
        self.positions += [position] * starts.size
        self._count = count
        self._first_known_offset = min(self._first_known_offset, int(starts.min()))

    def find_numbers(self, offsets: Array) -> Array:
        """Return the numbers of the allocations at heap offsets; 0 for none, -1 for unknown."""
        inside = (offsets >= 0) & (offsets < self._number_of_unit.size * _ALIGNMENT)
        owners = np.where(inside, self._number_of_unit.take(np.where(inside, offsets // _ALIGNMENT, 0)), 0)
        numbers: Array = np.where((owners == 0) & (offsets < self._first_known_offset) & (offsets >= 0), -1, owners)
        return numbers

    def distances(self, numbers: Array, offsets: Array) -> Array:
        """Return the distances in bytes of heap offsets from the beginning of their allocations."""
        distances: Array = offsets - self._starts[numbers]
        return distances

    def sizes(self, numbers: Array) -> Array:
        """Return the sizes of allocations in bytes."""
        sizes: Array = self._sizes[numbers]
        return sizes


class HeapRecords:
    """The known allocations in the heaps of modules, kept from launch to launch."""

    def __init__(self) -> None:
        self._allocations: WeakKeyDictionary[DeviceMemory, _Allocations] = WeakKeyDictionary()

    def get(self, memory: DeviceMemory) -> _Allocations | None:
        """Return the allocations of a memory, or None if it is not a known heap."""
        return self._allocations.get(memory)

    def get_or_add(self, heap: FlatMemory) -> _Allocations:
        """Return the allocations of a heap; add the heap if it is new."""
        if heap not in self._allocations:
            self._allocations[heap] = _Allocations(heap)
        return self._allocations[heap]


class HeapChecker(Checker):
    """Find accesses to freed memory or past the end of an allocation, and invalid arguments of free.

    Freed memory is never allocated again, so that no later allocation hides an access to an earlier one.

    Parameters
    ----------
    records : HeapRecords or None
        The allocations of earlier launches; None if there were none.
    """

    def __init__(self, records: HeapRecords | None = None) -> None:
        super().__init__()
        self._records = records or HeapRecords()

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        lanes = call.mask.lanes
        offsets = _lane_values(call.offset, lanes)
        if call.size is not None:
            assert isinstance(call.memory, FlatMemory)
            self._records.get_or_add(call.memory).add(offsets, _lane_values(call.size, lanes), call.position)
            return
        allocations = self._records.get(call.memory) if call.memory is not None else None
        if allocations is not None:
            self._free(batch, call.position, allocations, lanes, offsets)
            return
        wrong = lanes if call.memory is not None else lanes[offsets != 0]
        if not _is_heap(call.memory):
            target = f"{call.memory.name}, which" if call.memory is not None else "a pointer that"
            for lane in wrong.tolist():
                thread = batch.describe(lane)
                self._report_call("invalid-free", call.position, thread, f"frees {target} malloc did not return")

    def access(self, batch: BlockBatch, access: Access) -> None:
        allocations = self._records.get(access.memory) if access.memory.space == "global" else None
        if allocations is None:
            return
        offsets = access.elements * access.size
        numbers = allocations.find_numbers(offsets)
        distances = allocations.distances(np.maximum(numbers, 0), offsets)
        outside = (numbers >= 0) & (distances + access.size > allocations.sizes(np.maximum(numbers, 0)))
        after_free = (numbers > 0) & allocations.is_freed[np.maximum(numbers, 0)] & ~outside
        for hits, build_finding in (
            (np.flatnonzero(after_free), _build_use_after_free),
            (np.flatnonzero(outside), _build_out_of_bounds),
        ):
            for number in np.unique(numbers[hits]).tolist():
                own = hits[numbers[hits] == number]
                thread = batch.describe(int(access.mask.lanes[own[0]]))
                self._add(
                    replace(build_finding(access, allocations, number, int(distances[own[0]]), thread), count=own.size)
                )

    def _free(
        self, batch: BlockBatch, position: SourcePosition, allocations: _Allocations, lanes: Array, offsets: Array
    ) -> None:
        numbers = allocations.find_numbers(offsets)
        distances = allocations.distances(np.maximum(numbers, 0), offsets)
        for lane, number, distance in zip(lanes.tolist(), numbers.tolist(), distances.tolist(), strict=True):
            if number < 0:
                continue
            thread, allocated = batch.describe(lane), allocations.positions[number]
            if number == 0:
                self._report_call("invalid-free", position, thread, "frees a pointer that malloc did not return")
            elif distance != 0:
                cause = f"frees a pointer {distance} bytes into memory allocated at {allocated.short_text}"
                self._report_call("invalid-free", position, thread, cause, other=allocated)
            elif allocations.is_freed[number]:
                first = allocations.frees[number]
                cause = f"frees memory that {first.thread} freed at {first.position.short_text}"
                self._report_call(
                    "double-free", position, thread, cause, other=first.position, other_thread=first.thread
                )
            else:
                allocations.is_freed[number] = True
                allocations.frees[number] = _Free(position, thread)

    def _report_call(
        self,
        kind: str,
        position: SourcePosition,
        thread: str,
        cause: str,
        *,
        other: SourcePosition | None = None,
        other_thread: str | None = None,
    ) -> None:
        error = "Double free" if kind == "double-free" else "Invalid pointer to free"
        self._add(
            Finding(
                kind,
                f"Malloc/Free error encountered: {error}: {thread} at {position.short_text} {cause}",
                (position,) if other is None else (position, other),
                (thread,) if other_thread is None else (thread, other_thread),
            )
        )

    def _add(self, finding: Finding) -> None:
        """Add a finding, or add its count to an existing finding with equal kind and lines."""
        key = (finding.kind, *(position.line_key for position in finding.positions))
        if not self._count_again(key, finding.count):
            self._findings[key] = finding


def _build_use_after_free(
    access: Access, allocations: _Allocations, number: int, distance: int, thread: str
) -> Finding:
    position, freed, size = (
        access.site.position,
        allocations.frees[number],
        int(allocations.sizes(np.array([number]))[0]),
    )
    return Finding(
        "use-after-free",
        f"Invalid __global__ {access.site.action} of size {access.size} bytes by {thread} at "
        f"{position.short_text}: byte {distance} of {size} that were allocated at "
        f"{allocations.positions[number].short_text} and freed by {freed.thread} at {freed.position.short_text}",
        (position, freed.position),
        (thread, freed.thread),
    )


def _build_out_of_bounds(access: Access, allocations: _Allocations, number: int, distance: int, thread: str) -> Finding:
    position = access.site.position
    where = "in the heap, outside all allocations"
    if number:
        size = int(allocations.sizes(np.array([number]))[0])
        where = f"at byte {distance} of {size} that were allocated at {allocations.positions[number].short_text}"
    return Finding(
        "out-of-bounds",
        f"Invalid __global__ {access.site.action} of size {access.size} bytes by {thread} at "
        f"{position.short_text}: {where}",
        (position, allocations.positions[number]) if number else (position,),
        (thread,),
    )


def _lane_values(value: Any, lanes: Array) -> Array:
    values = value[lanes] if isinstance(value, np.ndarray) else np.full(lanes.size, value)
    return values.astype(np.int64)


def _is_heap(memory: DeviceMemory | None) -> bool:
    return memory is not None and memory.name == HEAP
