"""Footprints of operations that may run at the same time: what launches, copies and fills read and write.

The order of whole operations is known only to the program that runs them. It compares those that nothing orders.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.races.release_sequences import RELEASE_ORDERS
from gpu.simulator.checkers.races.shadow import EVENT, Shadow, high_records
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import AccessSite, FlatMemory
from gpu.simulator.executor.state.observer import Access, Observer
from gpu.simulator.ir.value_uses import ValueUse

Array = npt.NDArray[Any]

_CONFLICTS = {
    "read": ("write", "strong write", "atomic"),
    "strong read": ("write",),
    "write": ("read", "strong read", "write", "strong write", "atomic"),
    "strong write": ("read", "write"),
    "atomic": ("read", "write"),
}
"""For each kind of access, those with which it conflicts: one of the two writes, and they are not both strong."""
_FLAG = "flag"
"""Strong reads and atomic operations whose values decide whether a loop ends."""
_RELEASED = "released"
"""Strong writes and atomic operations of system scope that are releases, or follow a fence of system scope."""


@dataclass(frozen=True)
class OverlapSide:
    """One of two operations that race: its access, None for a copy or fill, and its description.

    `key` is equal for the same line of a kernel that the same line of the program launches.
    """

    site: AccessSite | None
    thread: str
    text: str
    key: str


@dataclass(frozen=True)
class HostFlag:
    """A location that a launch writes by a strong access of system scope, which the host may read.

    Parameters
    ----------
    site : AccessSite
        The write.
    is_released : bool
        Whether a release of system scope orders what the launch wrote before.
    """

    site: AccessSite
    is_released: bool


@dataclass(frozen=True)
class Span:
    """Consecutive bytes that a copy or fill reads or writes.

    Parameters
    ----------
    address : int
        The address of the first byte in this process.
    size : int
        Bytes.
    writes : bool
    routine : str
        Its function in messages, such as "cudaMemset".
    data : array
        The bytes; this reference keeps their addresses from being reused.
    """

    address: int
    size: int
    writes: bool
    routine: str
    data: Array


@dataclass(frozen=True)
class _Cells:
    """The accesses of one kind to an array: the numbers of the accessed cells, ascending, and a record for each."""

    cell_size: int
    numbers: Array
    records: Array

    def find(self, offset: int, size: int) -> int | None:
        """Return the index of the first cell with one of `size` bytes at an offset in the array; None without one."""
        index = int(np.searchsorted(self.numbers, offset // self.cell_size))
        is_found = index < self.numbers.size and self.numbers[index] * self.cell_size < offset + size
        return index if is_found else None

    def split(self, size: int) -> _Cells:
        """Return the same accesses with smaller cells."""
        count = self.cell_size // size
        if count == 1:
            return self
        numbers = (self.numbers[:, None] * count + np.arange(count)).ravel()
        return _Cells(size, numbers, np.repeat(self.records, count))


@dataclass
class _TouchedArray:
    memory: FlatMemory
    data: Array
    kinds: dict[str, _Cells] = field(default_factory=dict)


class LaunchFootprint(Observer):
    """Observer of a launch: for each array in global and constant memory, the cells that it reads and writes.

    Of the accesses of one kind to a cell, the last one is kept.

    Parameters
    ----------
    call_site : str
        The line that launches it: "program.cu:12".
    addresses : container of int or None
        The addresses of the arrays to observe; None for all.
    """

    def __init__(self, call_site: str, addresses: Container[int] | None = None) -> None:
        self._call_site = call_site
        self._addresses = addresses
        self._kernel = ""
        self._sites: list[tuple[AccessSite, int, BlockBatch]] = []
        self._events: dict[tuple[int, int, int], int] = {}
        self._shadows: dict[tuple[int, int], tuple[FlatMemory, Shadow]] = {}
        self._arrays: dict[tuple[int, int], _TouchedArray] = {}
        self._first_batch: BlockBatch | None = None
        self._fenced_blocks: set[int] = set()

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self._kernel = self._kernel or kernel
        self._first_batch = None

    def batch_begins(self, batch: BlockBatch) -> None:
        self._first_batch = self._first_batch or batch

    def launch_resumes(self, batch: BlockBatch) -> None:
        self._first_batch = batch

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory, site = access.memory, access.site
        if memory.space not in ("global", "constant") or not isinstance(memory, FlatMemory):
            return
        address = memory.data.ctypes.data
        if self._addresses is not None and address not in self._addresses:
            return
        _, shadow = self._shadows.setdefault((address, memory.data.size), (memory, Shadow(memory, 1, access.size)))
        lanes, cells = shadow.cells(batch.geometry, access)
        threads = batch.first * batch.geometry.lanes_per_block + lanes
        records = high_records(threads) + self._register(site, access.size)
        kind = site.action if site.action == "atomic" or not site.is_strong else f"strong {site.action}"
        shadow.get_or_create(kind)[cells] = records
        if site.is_strong and site.action != "write" and access.used and site.use >= ValueUse.WAIT:
            shadow.get_or_create(_FLAG)[cells] = records
        if site.is_strong and site.action != "read" and site.scope == "system":
            blocks = (threads // batch.geometry.lanes_per_block).tolist()
            is_released = site.order in RELEASE_ORDERS or [block in self._fenced_blocks for block in blocks]
            shadow.get_or_create(_RELEASED)[cells] = np.where(is_released, records, 0)

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        # A barrier may pass the fence of one thread on to the others of its block, so blocks are enough.
        if name.startswith("__threadfence_system") and not name.endswith("acquire"):
            self._fenced_blocks.update((batch.first + mask.lanes // batch.geometry.lanes_per_block).tolist())

    def async_copy(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        if begins:
            self.access(batch, access)

    def async_read_ends(self, batch: BlockBatch, access: Access) -> None:
        self.access(batch, access)

    def _register(self, site: AccessSite, size: int) -> int:
        batch = self._first_batch
        assert batch is not None
        key = id(site), size, id(batch)
        if key not in self._events:
            self._events[key] = len(self._sites)
            self._sites.append((site, size, batch))
        return self._events[key]

    def finish(self) -> None:
        """Keep only the cells that were accessed."""
        for key, (memory, shadow) in self._shadows.items():
            touched = self._arrays[key] = _TouchedArray(memory, memory.data)
            for kind, records in shadow.slots():
                numbers = np.flatnonzero(records)
                if numbers.size:
                    touched.kinds[kind] = _Cells(shadow.cell_size, numbers, records[numbers])
        self._shadows.clear()

    @property
    def size(self) -> int:
        """Bytes that the footprint takes."""
        kinds = (cells for touched in self._arrays.values() for cells in touched.kinds.values())
        return sum(cells.numbers.nbytes + cells.records.nbytes for cells in kinds)

    def find_spans(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the address and the size in bytes of what the launch reads, and of what it writes, in each array."""
        for (address, _), touched in self._arrays.items():
            for kind, cells in touched.kinds.items():
                first, end = int(cells.numbers[0]) * cells.cell_size, (int(cells.numbers[-1]) + 1) * cells.cell_size
                if kind not in (_FLAG, _RELEASED):
                    yield address + first, end - first, not kind.endswith("read")

    def find_races(self, earlier: LaunchFootprint) -> Iterator[tuple[OverlapSide, OverlapSide, str]]:
        """Yield races with another launch, earlier in the program: both sides, and the element.

        Launches of which one waits for a flag that the other one sets may order their accesses in this way. They are
        not compared.
        """
        shared = [(touched, earlier._arrays[key]) for key, touched in self._arrays.items() if key in earlier._arrays]
        if any(_waits_for_flag(*pair) or _waits_for_flag(*pair[::-1]) for pair in shared):
            return
        for mine, theirs in shared:
            for kind, cells in mine.kinds.items():
                for other in _CONFLICTS.get(kind, ()):
                    if other not in theirs.kinds:
                        continue
                    their_cells = theirs.kinds[other]
                    size = min(cells.cell_size, their_cells.cell_size)
                    now, before = cells.split(size), their_cells.split(size)
                    _, here, there = np.intersect1d(
                        now.numbers, before.numbers, assume_unique=True, return_indices=True
                    )
                    if here.size:
                        first, second = int(before.records[there[0]]), int(now.records[here[0]])
                        element = self._describe_element(mine.memory, second, int(now.numbers[here[0]]) * size)
                        yield earlier._describe(first), self._describe(second), element

    def find_races_with_span(self, span: Span) -> Iterator[tuple[OverlapSide, str]]:
        """Yield races with a copy or fill: this side, and the element."""
        for (address, _), touched in self._arrays.items():
            for kind, cells in touched.kinds.items():
                if kind not in _CONFLICTS or (kind.endswith("read") and not span.writes):
                    continue
                index = cells.find(span.address - address, span.size)
                if index is not None:
                    record, offset = int(cells.records[index]), int(cells.numbers[index]) * cells.cell_size
                    yield self._describe(record), self._describe_element(touched.memory, record, offset)

    def find_host_flag(self, address: int) -> HostFlag | None:
        """Return the flag for the host to which a byte belongs: written by a strong access of system scope."""
        for (begin, _), touched in self._arrays.items():
            found = {kind: cells.find(address - begin, 1) for kind, cells in touched.kinds.items()}
            for kind in ("strong write", "atomic"):
                index = found.get(kind)
                if index is not None:
                    site, _, _ = self._sites[int(touched.kinds[kind].records[index]) & EVENT]
                    if site.scope == "system":
                        return HostFlag(site, found.get(_RELEASED) is not None)
        return None

    def find_host_wait(self, addresses: Container[int]) -> str:
        """Return a place in some arrays that strong reads test and that the launch does not write; "" if none."""
        for (address, _), touched in self._arrays.items():
            flags = touched.kinds.get("strong read")
            if flags is None or address not in addresses:
                continue
            writes = [touched.kinds[kind] for kind in ("write", "strong write", "atomic") if kind in touched.kinds]
            for number, record in zip(flags.numbers.tolist(), flags.records.tolist(), strict=True):
                offset = number * flags.cell_size
                if all(cells.find(offset, flags.cell_size) is None for cells in writes):
                    return self._describe_element(touched.memory, record, offset)
        return ""

    def _describe(self, record: int) -> OverlapSide:
        thread, event = (record >> 32) - 1, record & EVENT
        site, _, batch = self._sites[event]
        name = batch.describe(thread - batch.first * batch.geometry.lanes_per_block)
        access = f"{site.action.capitalize()} access at {site.position.short_text}"
        text = f"{access} by {name} of {self._kernel}, launched at {self._call_site},"
        return OverlapSide(site, name, text, f"{site.position.short_text} {self._call_site}")

    def _describe_element(self, memory: FlatMemory, record: int, offset: int) -> str:
        _, size, _ = self._sites[record & EVENT]
        return f"{memory.describe_location(offset // size, size)} ({memory.space} memory)"


def find_span_races(earlier: Sequence[Span], now: Sequence[Span]) -> Iterator[tuple[OverlapSide, OverlapSide, str]]:
    """Yield races between copies and fills: both sides, and the place."""
    for first in earlier:
        for second in now:
            begin = max(first.address, second.address)
            if (first.writes or second.writes) and begin < min(
                first.address + first.size, second.address + second.size
            ):
                yield describe_span(first), describe_span(second), f"byte {begin - first.address} of its range"


def describe_span(span: Span) -> OverlapSide:
    """Return the side of a race that is a copy or fill."""
    text = f"{'write' if span.writes else 'read'} by {span.routine}"
    return OverlapSide(None, "", text, f"{text} {span.address}")


def build_overlap_finding(first: OverlapSide, second: OverlapSide, element: str, *, in_graph: bool) -> Finding:
    """Return the finding of two operations that may run at the same time.

    Parameters
    ----------
    first, second : OverlapSide
        The operation that was issued first, and the other one.
    element : str
        The place in memory.
    in_graph : bool
        Whether both are nodes of one graph.
    """
    where = "in two nodes of a graph" if in_graph else "in two streams"
    reason = (
        "No dependency orders the two nodes: add one, directly or through other nodes"
        if in_graph
        else "Nothing orders the two operations: record an event after the first one and let the other stream wait for "
        "it with cudaStreamWaitEvent(), use one stream, or synchronize before the second one"
    )
    ends = [end for end in (first, second) if end.site is not None]
    return Finding(
        "race",
        f"Race reported between {first.text} and {second.text} on {element}, {where} that may run at the same time. "
        f"{reason}.",
        tuple(end.site.position for end in ends if end.site is not None),
        tuple(end.thread for end in ends),
    )


def build_host_finding(
    operation: OverlapSide, element: str, position: SourcePosition | None, *, writes: bool, flag: HostFlag | None = None
) -> Finding:
    """Return the finding of an operation, and an access by the host that does not wait for it.

    Parameters
    ----------
    operation : OverlapSide
        The operation.
    element : str
        The place in memory.
    position : SourcePosition or None
        The line of the host's access, if it is known.
    writes : bool
        Whether the host writes.
    flag : HostFlag or None
        A flag of the operation that the host has read, although no release orders what the operation wrote before.
    """
    if flag is None:
        advice = (
            "The host has not waited for the end of this operation: synchronize before the access, such as by "
            "cudaDeviceSynchronize(), or with its stream or an event after it."
        )
    else:
        advice = (
            f"The host has read the flag that is written at {flag.site.position.short_text}, but no fence of system "
            "scope precedes this write: add a __threadfence_system() between the write of the data and that of the "
            "flag."
        )
    where = f" at {position.short_text}" if position is not None else ""
    sites = [each for each in (operation.site.position if operation.site is not None else None, position) if each]
    return Finding(
        "race",
        f"Race reported between {operation.text} and {'write' if writes else 'read'} by the host{where} on {element}. "
        + advice,
        tuple(sites),
        (operation.thread, "the host")[: len(sites)] if operation.site is not None else ("the host",)[: len(sites)],
    )


def _waits_for_flag(reader: _TouchedArray, writer: _TouchedArray) -> bool:
    """Return whether a launch waits for a value that another one sets by strong accesses."""
    if _FLAG not in reader.kinds:
        return False
    flags = reader.kinds[_FLAG]
    for kind in ("strong write", "atomic"):
        if kind in writer.kinds:
            size = min(flags.cell_size, writer.kinds[kind].cell_size)
            if np.intersect1d(flags.split(size).numbers, writer.kinds[kind].split(size).numbers).size:
                return True
    return False
