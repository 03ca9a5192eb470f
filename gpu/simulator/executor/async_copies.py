"""Asynchronous copies to shared memory, performed as late as allowed: at the wait for them.

A read without a wait therefore returns the old bytes in every run. Asynchronous matrix products read shared memory when
they start; the race checker is notified of the same read again at the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.batch import Array
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.observer import Access
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.running_batch import Copies, RunningBatch
from gpu.simulator.executor.values import PlainValues
from gpu.simulator.ir import AsyncKind
from gpu.simulator.types import Scalar

_SIZES = (4, 8, 16)
_WORD, _BYTE = Scalar("uint32"), Scalar("uint8")
_LINE_BYTES = 128
"""Bytes of a row of a box."""


@dataclass(frozen=True)
class _CopyAccess:
    """A read or write of `size` bytes by a copy, in the lanes of `bits`; None for all."""

    pointer: PointerValue
    site: AccessSite
    size: int
    bits: Array | None = None


@dataclass(eq=False)
class _PendingCopy:
    """An asynchronous copy: the lanes that have not waited for it, each lane's group, and its accesses."""

    lanes: LaneMask | None
    group: Array
    accesses: Sequence[_CopyAccess]
    perform: Callable[[LaneMask], None]


class AsyncCopies:
    """The pending asynchronous copies of a batch. Each lane has groups of copies, which complete in order."""

    def __init__(self, batch: RunningBatch, kind: AsyncKind = "copy") -> None:
        self._batch = batch
        self._bulk = kind == "bulk"
        self._group = np.zeros(batch.geometry.lanes, np.int64)
        self._pending: list[_PendingCopy] = []

    def start_copy(
        self,
        to: PointerValue,
        source: PointerValue,
        size: int,
        mask: LaneMask,
        position: SourcePosition,
        perform: Callable[[LaneMask], None],
        read_bytes: Any = None,
    ) -> Callable[[LaneMask], None]:
        batch = self._batch
        if size % 16 if self._bulk else size not in _SIZES:
            allowed = "a multiple of 16" if self._bulk else "4, 8 or 16"
            sentence = f"{{thread}} starts a copy of {size} bytes; the size must be {allowed}."
            raise batch.thread_error(mask, position, sentence)
        targets = [address.memory for address, _ in to.split_by_memory(mask)]
        if not self._bulk and any(memory is None or memory.space != "shared" for memory in targets):
            perform(mask)
            return lambda due: None
        reads = np.broadcast_to(size if read_bytes is None else read_bytes, self._group.shape) > 0
        written = AccessSite(position, "write", bulk=self._bulk)
        ends = ((to, written, None), (source, AccessSite(position, "read"), reads))
        part = min(size, 16)
        accesses = [
            _CopyAccess(pointer.offset_by(offset, 1), site, part, bits)
            for pointer, site, bits in ends
            for offset in range(0, size, part)
        ]
        return self._begin(accesses, mask, perform)

    def start_box(self, box: TensorBoxCopy, mask: LaneMask) -> Callable[[LaneMask], None]:
        return self._begin(box.list_accesses(), mask, box.perform)

    def start_read(self, source: PointerValue, size: int, mask: LaneMask, position: SourcePosition) -> None:
        batch, site = self._batch, AccessSite(position, "read")

        def read(due: LaneMask) -> None:
            for address, lanes in source.split_by_memory(due):
                memory, element = address.find_element(batch, size, lanes, site)
                if batch.observer is not None:
                    batch.observer.async_read_ends(batch, Access(site, memory, element, size, lanes, None))

        self._begin(_split_access(source, site, size), mask, read)

    def start_write(self, to: PointerValue, size: int, mask: LaneMask, site: AccessSite) -> None:
        self._begin(_split_access(to, site, size), mask, lambda due: None)

    def _begin(
        self, accesses: Sequence[_CopyAccess], mask: LaneMask, perform: Callable[[LaneMask], None]
    ) -> Callable[[LaneMask], None]:
        """Start a copy, and return a function that completes it."""
        copy = _PendingCopy(mask, self._group.copy(), accesses, perform)
        self._notify(copy, mask, begins=True)
        self._pending.append(copy)
        return lambda due: self._complete_all([copy], due)

    def commit(self, mask: LaneMask) -> None:
        """End the current group of copies of each lane and begin the next."""
        self._group[mask.lanes] += 1

    def complete_groups(self, mask: LaneMask, pending_groups: Any) -> None:
        """Complete the copies of all but the last `pending_groups` groups of each lane; None completes all."""
        last = (
            self._group + 1
            if pending_groups is None
            else self._group - np.broadcast_to(pending_groups, self._group.shape)
        )
        for copy in self._pending:
            assert copy.lanes is not None
            due, _ = copy.lanes.split(mask.bits & (copy.group < last))
            if due is not None:
                self._complete(copy, due)
        self._pending = [copy for copy in self._pending if copy.lanes is not None]

    def bind_completion(self, mask: LaneMask) -> Callable[[LaneMask], None]:
        copies = list(self._pending)
        return lambda lanes: self._complete_all(copies, lanes)

    def _complete_all(self, copies: Sequence[_PendingCopy], lanes: LaneMask) -> None:
        for copy in copies:
            due = copy.lanes.split(lanes.bits)[0] if copy.lanes is not None else None
            if due is not None:
                self._complete(copy, due)
        self._pending = [copy for copy in self._pending if copy.lanes is not None]

    def _complete(self, copy: _PendingCopy, due: LaneMask) -> None:
        assert copy.lanes is not None
        copy.lanes = copy.lanes.without(due)
        self._notify(copy, due, begins=False)
        copy.perform(due)

    def _notify(self, copy: _PendingCopy, mask: LaneMask, *, begins: bool) -> None:
        observer = self._batch.observer
        if observer is None:
            return
        for each in copy.accesses:
            accessing = mask if each.bits is None else mask.split(each.bits)[0]
            if accessing is None:
                continue
            for address, lanes in each.pointer.split_by_memory(accessing):
                memory, element = address.find_element(self._batch, each.size, lanes, each.site)
                # What is out of bounds is an error when the copy is performed.
                inside, _ = lanes.split(memory.contains_elements(element, each.size))
                if inside is not None:
                    access = Access(each.site, memory, element, each.size, inside, None)
                    observer.async_copy(self._batch, access, begins=begins)


def _split_access(pointer: PointerValue, site: AccessSite, size: int) -> list[_CopyAccess]:
    part = min(size, 16)
    return [_CopyAccess(pointer.offset_by(offset, 1), site, part) for offset in range(0, size, part)]


def get_async_copies(batch: RunningBatch, kind: AsyncKind = "copy") -> Copies:
    """Return the asynchronous copies of a kind in a batch; create them at the first call."""
    if kind not in batch.async_copies:
        batch.async_copies[kind] = AsyncCopies(batch, kind)
    return batch.async_copies[kind]


def group_by_value(value: Any, mask: LaneMask) -> list[tuple[int, LaneMask]]:
    """Return each distinct value among the active lanes, with the lanes that have it."""
    if not isinstance(value, np.ndarray):
        return [(int(value), mask)]
    return [
        (int(each), lanes)
        for each in np.unique(value[mask.lanes])
        if (lanes := mask.split(value == each)[0]) is not None
    ]


@dataclass(frozen=True)
class ByteCopy:
    """One statement's copy, over an algebra of values; `read_bytes` is the number of bytes to read, None for all."""

    values: PlainValues
    batch: RunningBatch
    destination: PointerValue
    source: PointerValue
    read_bytes: Any
    position: SourcePosition
    bulk: bool = False

    def perform(self, size: int, mask: LaneMask) -> None:
        """Copy `size` bytes of each lane."""
        if size > 16:
            for offset in range(0, size, 16):
                self._move(offset, 16, mask)
            return
        given = size if self.read_bytes is None else self.read_bytes
        for count, lanes in group_by_value(given, mask):
            if count >= size:
                self._move(0, size, lanes)
                continue
            # Copy words if the count allows it, otherwise bytes, then zeros.
            unit = 1 if count % 4 else 4
            for offset in range(0, size, unit):
                self._move(offset, unit, lanes, zeros=offset >= count)

    def _move(self, offset: int, size: int, mask: LaneMask, *, zeros: bool = False) -> None:
        values, batch = self.values, self.batch
        vector = size if size > 4 else 0
        parts = [(at, _BYTE if size == 1 else _WORD) for at in range(0, size, min(size, 4))]
        to = self.destination.offset_by(offset, 1)
        if zeros:
            value = values.lift(parts[0][1].dtype.type(0))
        else:
            site = AccessSite(self.position, "read", vector=bool(vector))
            value = values.load(batch, self.source.offset_by(offset, 1), parts, vector, mask, site)
        site = AccessSite(self.position, "write", vector=bool(vector), bulk=self.bulk)
        values.store(batch, to, parts, vector, value, mask, site)


@dataclass(frozen=True)
class _RowPiece:
    """Consecutive bytes of a box's row: their index in the row, their offset in the matrix, and their number."""

    place: int
    offset: int
    size: int


@dataclass(frozen=True)
class TensorBoxCopy:
    """The copy of a box of a matrix by one lane; the numbers are those of `ir.TensorCopy`."""

    values: PlainValues
    batch: RunningBatch
    position: SourcePosition
    destination: PointerValue
    matrix: PointerValue
    rows: int
    row_bytes: int
    pitch: int
    x: int
    y: int
    box_rows: int
    line: int

    @property
    def size(self) -> int:
        """Bytes of the box."""
        return self.box_rows * _LINE_BYTES

    def list_accesses(self) -> list[_CopyAccess]:
        """Return the reads and writes of the copy."""
        reads, writes = AccessSite(self.position, "read"), AccessSite(self.position, "write", bulk=True)
        return [
            _CopyAccess(self.destination.offset_by(row, _LINE_BYTES), writes, _LINE_BYTES)
            for row in range(self.box_rows)
        ] + [
            _CopyAccess(self.matrix.offset_by(piece.offset, 1), reads, piece.size)
            for row in range(self.box_rows)
            for piece in self._split_row(row)
        ]

    def perform(self, mask: LaneMask) -> None:
        """Copy the box row by row, with zeros outside of the matrix."""
        values, batch = self.values, self.batch
        site = AccessSite(self.position, "write", vector=True, bulk=True)
        for row in range(self.box_rows):
            swizzle = (self.line + row) % 8 * 16
            leaves: list[tuple[int, Scalar]] = []
            parts: list[Any] = []
            end = 0
            for piece in self._split_row(row):
                leaf = _WORD if piece.size >= _WORD.size else _BYTE
                offsets = [(at, leaf) for at in range(0, piece.size, leaf.size)]
                vector = piece.size if len(offsets) > 1 else 0
                read_site = AccessSite(self.position, "read", vector=bool(vector))
                loaded = values.load(batch, self.matrix.offset_by(piece.offset, 1), offsets, vector, mask, read_site)
                self._append_zeros(leaves, parts, end, piece.place)
                leaves += [(piece.place + at, leaf) for at, leaf in offsets]
                parts += values.parts(loaded)
                end = piece.place + piece.size
            self._append_zeros(leaves, parts, end, _LINE_BYTES)
            moved = sorted(
                ((at ^ swizzle, leaf, part) for (at, leaf), part in zip(leaves, parts, strict=True)),
                key=lambda each: each[0],
            )
            value = values.compose([part for _, _, part in moved])
            to = self.destination.offset_by(row, _LINE_BYTES)
            values.store(batch, to, [(at, leaf) for at, leaf, _ in moved], _LINE_BYTES, value, mask, site)

    def _append_zeros(self, leaves: list[tuple[int, Scalar]], parts: list[Any], start: int, end: int) -> None:
        while start < end:
            leaf = _BYTE if start % 4 or end - start < 4 else _WORD
            leaves.append((start, leaf))
            parts.append(self.values.lift(leaf.dtype.type(0)))
            start += leaf.size

    def _split_row(self, row: int) -> Iterator[_RowPiece]:
        """Yield the bytes of a row that are in the matrix, in aligned pieces that are as large as possible."""
        if not 0 <= self.y + row < self.rows:
            return
        at, end = max(self.x, 0), min(self.row_bytes, self.x + _LINE_BYTES)
        start = (self.y + row) * self.pitch
        while at < end:
            size = _LINE_BYTES
            while (start + at) % size or size > end - at:
                size //= 2
            yield _RowPiece(at - self.x, start + at, size)
            at += size
