"""Finds wrong uses of memory that kernels allocate: after it was freed, past its end, and what free must not get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.memory import DeviceMemory, FlatMemory
from gpu.simulator.executor.observe import Access, HeapCall

Array = npt.NDArray[Any]

HEAP = "device_heap"
"""The name of the array that malloc hands out, in the simulator's headers."""

# Every piece begins at a multiple of it.
_UNIT = 16


@dataclass(frozen=True)
class _Freed:
    """Where a piece was freed, and by whom."""

    position: SourcePosition
    thread: str


class _Pieces:
    """The pieces of a heap that were given out, in the order in which they were; number 0 is none."""

    def __init__(self, heap: FlatMemory) -> None:
        self._of_unit = np.zeros(-(-heap.data.size // _UNIT), np.int32)
        self._count = 1
        self._starts = np.zeros(64, np.int64)
        self._sizes = np.zeros(64, np.int64)
        self.is_freed = np.zeros(64, bool)
        self.allocated: list[SourcePosition] = [SourcePosition("", 0)]
        self.freed: dict[int, _Freed] = {}
        # What lies before the first piece may have been given out while nobody looked.
        self._first = heap.data.size

    def add(self, starts: Array, sizes: Array, position: SourcePosition) -> None:
        """Add a piece for each lane."""
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
            # With the gap behind it, for what runs over.
            self._of_unit[start // _UNIT : (start + size + 2 * _UNIT - 1) // _UNIT] = number
        self.allocated += [position] * starts.size
        self._count = count
        self._first = min(self._first, int(starts.min()))

    def at(self, offsets: Array) -> Array:
        """Return the pieces that places of the heap belong to; 0 for none, and -1 where nobody knows."""
        inside = (offsets >= 0) & (offsets < self._of_unit.size * _UNIT)
        found = np.where(inside, self._of_unit.take(np.where(inside, offsets // _UNIT, 0)), 0)
        numbers: Array = np.where((found == 0) & (offsets < self._first) & (offsets >= 0), -1, found)
        return numbers

    def within(self, pieces: Array, offsets: Array) -> Array:
        """Return how far places are from the beginning of their pieces."""
        distances: Array = offsets - self._starts[pieces]
        return distances

    def sizes(self, pieces: Array) -> Array:
        """Return how many bytes were asked for."""
        found: Array = self._sizes[pieces]
        return found


class HeapRecords:
    """What is known of the heaps of modules, from one launch to the next."""

    def __init__(self) -> None:
        self._pieces: WeakKeyDictionary[DeviceMemory, _Pieces] = WeakKeyDictionary()

    def get(self, memory: DeviceMemory) -> _Pieces | None:
        """Return the pieces of a memory that is a heap."""
        return self._pieces.get(memory)

    def of(self, heap: FlatMemory) -> _Pieces:
        """Return the pieces of a heap."""
        if heap not in self._pieces:
            self._pieces[heap] = _Pieces(heap)
        return self._pieces[heap]


class HeapChecker(Checker):
    """Finds accesses to memory from malloc or new that was freed, or past its end, and pointers that free must not get.

    Memory that is freed is never given out again, so that no later piece hides an access to an earlier one.

    Parameters
    ----------
    records : HeapRecords or None
        What is known from earlier launches; None where there are none.
    """

    def __init__(self, records: HeapRecords | None = None) -> None:
        self._records = records or HeapRecords()
        self._findings: dict[tuple[object, ...], Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """One finding for each kind and lines, in the order in which they were found."""
        return list(self._findings.values())

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        lanes = call.mask.lanes
        offsets = _of_lanes(call.offset, lanes)
        if call.size is not None:
            assert isinstance(call.memory, FlatMemory)
            self._records.of(call.memory).add(offsets, _of_lanes(call.size, lanes), call.position)
            return
        pieces = self._records.get(call.memory) if call.memory is not None else None
        if pieces is not None:
            self._free(batch, call.position, pieces, lanes, offsets)
            return
        wrong = lanes if call.memory is not None else lanes[offsets != 0]
        if not _is_heap(call.memory):
            what = f"{call.memory.name}, which" if call.memory is not None else "a pointer that"
            for lane in wrong.tolist():
                who = batch.describe(lane)
                self._report_call("invalid-free", call.position, who, f"frees {what} malloc did not return")

    def access(self, batch: BlockBatch, access: Access) -> None:
        pieces = self._records.get(access.memory) if access.memory.space == "global" else None
        if pieces is None:
            return
        offsets = access.elements * access.size
        numbers = pieces.at(offsets)
        distances = pieces.within(np.maximum(numbers, 0), offsets)
        outside = (numbers >= 0) & (distances + access.size > pieces.sizes(np.maximum(numbers, 0)))
        used = (numbers > 0) & pieces.is_freed[np.maximum(numbers, 0)] & ~outside
        if used.any():
            self._report_uses(batch, access, pieces, np.flatnonzero(used), numbers, distances)
        if outside.any():
            self._report_outside(batch, access, pieces, np.flatnonzero(outside), numbers, distances)

    def _free(self, batch: BlockBatch, position: SourcePosition, pieces: _Pieces, lanes: Array, offsets: Array) -> None:
        numbers = pieces.at(offsets)
        distances = pieces.within(np.maximum(numbers, 0), offsets)
        for lane, number, distance in zip(lanes.tolist(), numbers.tolist(), distances.tolist(), strict=True):
            if number < 0:
                continue
            who, allocated = batch.describe(lane), pieces.allocated[number]
            if number == 0:
                self._report_call("invalid-free", position, who, "frees what malloc did not return")
            elif distance != 0:
                what = f"frees a pointer {distance} bytes into what was allocated at {_place(allocated)}"
                self._report_call("invalid-free", position, who, what, other=allocated)
            elif pieces.is_freed[number]:
                before = pieces.freed[number]
                what = f"frees what {before.thread} freed at {_place(before.position)}"
                self._report_call("double-free", position, who, what, other=before.position, thread=before.thread)
            else:
                pieces.is_freed[number] = True
                pieces.freed[number] = _Freed(position, who)

    def _report_call(
        self,
        kind: str,
        position: SourcePosition,
        who: str,
        what: str,
        *,
        other: SourcePosition | None = None,
        thread: str | None = None,
    ) -> None:
        said = "Double free" if kind == "double-free" else "Invalid pointer to free"
        self._add(
            Finding(
                kind,
                f"Malloc/Free error encountered: {said}: {who} at {_place(position)} {what}",
                (position,) if other is None else (position, other),
                (who,) if thread is None else (who, thread),
            )
        )

    def _report_uses(
        self, batch: BlockBatch, access: Access, pieces: _Pieces, hits: Array, numbers: Array, distances: Array
    ) -> None:
        position = access.site.position
        for number in np.unique(numbers[hits]).tolist():
            own = hits[numbers[hits] == number]
            freed, size = pieces.freed[number], int(pieces.sizes(np.array([number]))[0])
            who = batch.describe(int(access.mask.lanes[own[0]]))
            self._add(
                Finding(
                    "use-after-free",
                    f"Invalid __global__ {access.site.action} of size {access.size} bytes by {who} at "
                    f"{_place(position)}: byte {int(distances[own[0]])} of {size} that were allocated at "
                    f"{_place(pieces.allocated[number])} and freed by {freed.thread} at {_place(freed.position)}",
                    (position, freed.position),
                    (who, freed.thread),
                    own.size,
                )
            )

    def _report_outside(
        self, batch: BlockBatch, access: Access, pieces: _Pieces, hits: Array, numbers: Array, distances: Array
    ) -> None:
        position = access.site.position
        for number in np.unique(numbers[hits]).tolist():
            own = hits[numbers[hits] == number]
            who = batch.describe(int(access.mask.lanes[own[0]]))
            where = "in the heap, where nothing is allocated"
            if number:
                size, distance = int(pieces.sizes(np.array([number]))[0]), int(distances[own[0]])
                where = f"at byte {distance} of {size} that were allocated at {_place(pieces.allocated[number])}"
            self._add(
                Finding(
                    "out-of-bounds",
                    f"Invalid __global__ {access.site.action} of size {access.size} bytes by {who} at "
                    f"{_place(position)}: {where}",
                    (position, pieces.allocated[number]) if number else (position,),
                    (who,),
                    own.size,
                )
            )

    def _add(self, finding: Finding) -> None:
        """Keep a finding, or count it with those of the same lines."""
        key = (finding.kind, *((each.file, each.line) for each in finding.positions))
        known = self._findings.get(key)
        self._findings[key] = finding if known is None else replace(known, count=known.count + finding.count)


def _of_lanes(value: Any, lanes: Array) -> Array:
    found = value[lanes] if isinstance(value, np.ndarray) else np.full(lanes.size, value)
    return found.astype(np.int64)


def _is_heap(memory: DeviceMemory | None) -> bool:
    return memory is not None and memory.name == HEAP


def _place(position: SourcePosition) -> str:
    return f"{PurePath(position.file).name}:{position.line}"
