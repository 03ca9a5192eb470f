"""What the statement of a moment asks of memory: sectors, the banks that it hits, and who queues for one address.

The rules are those of the counters (`gpu.simulator.counting.traffic`); here they are applied to recorded accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.simulator.counting.traffic import (
    BANK_BYTES,
    BANKS,
    Warps,
    atomic_passes,
    bank_words,
    queued_sectors,
    sectors,
    shared_passes,
)
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.tables import ACTIONS, AccessRow
from gpu.simulator.trace.trace import Trace
from gpu.stepping.recording import Recording
from gpu.warp import WARP


@dataclass(frozen=True)
class Queue:
    """Threads of a warp whose atomics want one element, and so go one after the other.

    Parameters
    ----------
    array : str
        The array's name.
    element, block : int
    threads : tuple of int
        Their numbers in the block.
    """

    array: str
    element: int
    block: int
    threads: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Address:
    """An element that atomics of one statement want, whatever their warps: they come to it one after the other.

    Parameters
    ----------
    array : str
        The array's name.
    element : int
    block : int
        The block whose shared memory it is in; -1 for global memory.
    blocks, threads : int arrays
        Who wants it: the block in the grid, and the thread in the block.
    """

    array: str
    element: int
    block: int
    blocks: Array
    threads: Array


@dataclass(frozen=True, eq=False)
class AccessTraffic:
    """What one access of the statement asks, all warps together.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    space : str
        "global", "shared", "constant" or "local"; of the last two no more is known than who takes part.
    array : str
        The array's name.
    size : int
        Bytes that each lane wants.
    lanes, requests : int
        Active lanes, and the warps that they are in.
    sectors, ideal_sectors : int
        Of global memory: the 32-byte sectors that are moved, and as many as would do.
    wavefronts, conflicts : int
        Of shared memory: passes over the banks, and those beyond the least possible.
    degree : int
        Of shared memory: the most passes that lanes served together need; 1 is no conflict, 0 no shared memory.
    bank, word : int arrays, shape (warps, 32)
        Of shared memory: the bank and the word that each lane of a warp wants, -1 where it does not take part. Lanes
        that want one word of a bank share it, but for atomics. An element of 8 or 16 bytes takes so many banks more.
    blocks, warps : int arrays
        The block in the grid, and the warp in the block, of each row of `bank`.
    queues : tuple of Queue
        Of an atomic, longest first; those of a single thread are left out.
    addresses : tuple of Address
        Of an atomic, ascending.
    """

    action: str
    space: str
    array: str
    size: int
    lanes: int
    requests: int
    sectors: int
    ideal_sectors: int
    wavefronts: int
    conflicts: int
    degree: int
    bank: Array
    word: Array
    blocks: Array
    warps: Array
    queues: tuple[Queue, ...]
    addresses: tuple[Address, ...]

    @property
    def asked_bytes(self) -> int:
        """The bytes that the lanes want."""
        return self.lanes * self.size

    def banks(self) -> Array:
        """Return how many different words each of the 32 banks must deliver to the warp that asks most; of atomics
        how many lanes want it.
        """
        if not len(self.bank):
            return np.zeros(BANKS, np.int64)
        rows, lanes = np.nonzero(self.bank >= 0)
        banks, words = self.bank[rows, lanes], self.word[rows, lanes]
        if self.action != "atomic":
            _, first = np.unique(rows * (words.max(initial=0) + 1) + words, return_index=True)
            rows, banks = rows[first], banks[first]
        wide = np.arange(max(1, self.size // BANK_BYTES))
        places = (rows * BANKS + banks)[:, np.newaxis] + wide
        counts = np.bincount(places.reshape(-1), minlength=len(self.bank) * BANKS).reshape(-1, BANKS)
        most: Array = counts[np.argmax(counts.max(axis=1))]
        return most


@dataclass(frozen=True, eq=False)
class Traffic:
    """What an event asks of memory, access by access in the order in which they happen."""

    accesses: tuple[AccessTraffic, ...]

    @property
    def sectors(self) -> int:
        """The sectors of global memory that are moved."""
        return sum(access.sectors for access in self.accesses)

    @property
    def ideal_sectors(self) -> int:
        """As many as would do."""
        return sum(access.ideal_sectors for access in self.accesses)

    @property
    def conflicts(self) -> int:
        """The bank conflicts."""
        return sum(access.conflicts for access in self.accesses)

    @cached_property
    def banks(self) -> Array | None:
        """Of the access to shared memory with most conflicts: see `AccessTraffic.banks`; None where there is none."""
        shared = [access for access in self.accesses if access.space == "shared"]
        return max(shared, key=lambda access: access.degree).banks() if shared else None

    @property
    def queues(self) -> tuple[Queue, ...]:
        """Who queues for an address in atomics, longest first."""
        found = [queue for access in self.accesses for queue in access.queues]
        return tuple(sorted(found, key=lambda queue: -len(queue.threads)))

    def addresses(self, block: int) -> tuple[Address, ...]:
        """Return what atomics want in global memory and in the shared memory of a block, most wanted first."""
        found = [each for access in self.accesses for each in access.addresses if each.block in (-1, block)]
        return tuple(sorted(found, key=lambda each: -each.threads.size))

    @property
    def summary(self) -> str:
        """In words: "shared: 2 reads, 1 write, bank conflicts 0"."""
        return " · ".join(part for space in ("global", "shared", "local", "constant") if (part := self._of(space)))

    def _of(self, space: str) -> str:
        accesses = [access for access in self.accesses if access.space == space]
        words = []
        for action in ACTIONS:
            count = sum(access.lanes for access in accesses if access.action == action)
            if count:
                words.append(f"{count} {action}{'s' if count > 1 else ''}")
        if not words:
            return ""
        if space == "global":
            moved, ideal = self.sectors, self.ideal_sectors
            words.append(f"{moved} sector{'s' if moved > 1 else ''}" + (f", {ideal} would do" if ideal < moved else ""))
        if space == "shared":
            words.append(f"bank conflicts {self.conflicts}")
        longest = max((len(queue.threads) for access in accesses for queue in access.queues), default=0)
        if longest:
            words.append(f"{longest} atomics queue for one address")
        return f"{space}: " + ", ".join(words)


@dataclass(frozen=True, eq=False)
class Accesses:
    """Accesses of a trace, an element of each array for each; the parts of a vector are one access.

    Parameters
    ----------
    rows, parts : int arrays
        The first row in the trace's table, and how many there are.
    lanes, requests : int arrays
        The active lanes, and the warps that they are in.
    sectors, ideal_sectors, wavefronts, conflicts, degree : int arrays
        As of an AccessTraffic; 0 where they do not apply.
    """

    rows: Array
    parts: Array
    lanes: Array
    requests: Array
    sectors: Array
    ideal_sectors: Array
    wavefronts: Array
    conflicts: Array
    degree: Array


def traffic_at(recording: Recording, moment: int) -> Traffic:
    """Return what the event at a moment asks of memory; at the end of a recording nothing.

    Raises
    ------
    InputError
        There is no such moment.
    """
    launch, event = recording.at(moment)
    first, last = np.searchsorted(launch.trace.data.accesses["event"], [event, event + 1])
    measured = measure(launch.trace, int(first), int(last))
    return Traffic(tuple(_access(launch.trace, measured, number) for number in range(measured.rows.size)))


def most_addresses(recording: Recording) -> int:
    """Return the most addresses that the atomics of one access to global or shared memory want; 0 without atomics."""
    most, atomic = 0, ACTIONS.index("atomic")
    for launch in recording.launches:
        accesses = launch.trace.data.accesses
        for row in accesses[accesses["action"] == atomic].tolist():
            most = max(most, np.unique(launch.trace.memory.elements(AccessRow(*row))[1]).size)
    return most


def measure(trace: Trace, first: int, last: int) -> Accesses:
    """Count what the accesses in rows `first` to `last` of a trace's table ask of memory."""
    accesses = trace.data.accesses[first:last]
    starts = np.flatnonzero(accesses["part"] == 0)
    parts = np.diff(starts, append=len(accesses))
    counts = {
        name: np.zeros(starts.size, np.int64)
        for name in ("lanes", "requests", "sectors", "ideal_sectors", "wavefronts", "conflicts", "degree")
    }
    groups: dict[tuple[str, str, int], list[int]] = {}
    rows = [AccessRow(*row) for row in accesses[starts].tolist()]
    for number, (access, count) in enumerate(zip(rows, parts.tolist(), strict=True)):
        groups.setdefault(_kind(trace, access, count), []).append(number)
    batches = trace.data.events["batch"][accesses["event"][starts]].tolist()
    for (action, space, size), numbers in groups.items():
        bits, elements, owner = [], [], []
        for number in numbers:
            lanes, wanted = trace.memory.elements(rows[number])
            counts["lanes"][number] = lanes.size
            bits.append(np.zeros(trace.lanes.count(batches[number]), bool))
            elements.append(np.zeros(bits[-1].size, np.int64))
            bits[-1][lanes], elements[-1][lanes] = True, wanted // int(parts[number])
            owner.append(np.full(bits[-1].size // WARP, number))
        warps, wanted = Warps(LaneMask(np.concatenate(bits))), np.concatenate(elements)
        of = np.concatenate(owner)[warps.active]
        np.add.at(counts["requests"], of, 1)
        if space == "global":
            moved, ideal = _sectors(warps, wanted, size, action)
            np.add.at(counts["sectors"], of, moved)
            np.add.at(counts["ideal_sectors"], of, ideal)
        elif space == "shared":
            atomic = action == "atomic"
            passes = (
                atomic_passes(warps, wanted, size)
                if atomic
                else shared_passes(warps, wanted, size, reads=action == "read")
            )
            np.add.at(counts["wavefronts"], of, passes.total)
            np.add.at(counts["conflicts"], of, passes.total - passes.least)
            np.maximum.at(counts["degree"], of, passes.worst)
    return Accesses(starts + first, parts, **counts)


def _sectors(warps: Warps, elements: Array, size: int, action: str) -> tuple[Array, Array]:
    if action == "atomic":
        return queued_sectors(warps.rows().marked(elements), size)[1], warps.ideal_sectors(size)
    found = sectors(warps, elements, size)
    return found.moved, found.ideal


def _kind(trace: Trace, access: AccessRow, parts: int) -> tuple[str, str, int]:
    """Return an access's action, its space, and the bytes of each lane."""
    size = trace.data.values.dtypes[access.dtype].itemsize
    return ACTIONS[access.action], trace.data.memories[access.memory].space, size * parts


def _access(trace: Trace, measured: Accesses, number: int) -> AccessTraffic:
    access = AccessRow(*trace.data.accesses[measured.rows[number]].tolist())
    action, space, size = _kind(trace, access, int(measured.parts[number]))
    batch, name = int(trace.data.events["batch"][access.event]), trace.data.memories[access.memory].name
    lanes, elements = trace.memory.elements(access)
    elements = elements // int(measured.parts[number])
    warps = np.unique(lanes // WARP)
    bank, word = np.full((2, warps.size, WARP), -1)
    if space == "shared":
        at = (np.searchsorted(warps, lanes // WARP), lanes % WARP)
        word[at], wide = bank_words(elements, size)
        bank[at] = (word[at] & (wide - 1)) * (BANKS // wide)
    per_block = trace.lanes.per_block(batch)
    queued = action == "atomic" and space in ("global", "shared")
    return AccessTraffic(
        action,
        space,
        name,
        size,
        int(measured.lanes[number]),
        int(measured.requests[number]),
        int(measured.sectors[number]),
        int(measured.ideal_sectors[number]),
        int(measured.wavefronts[number]),
        int(measured.conflicts[number]),
        int(measured.degree[number]),
        bank,
        word,
        np.asarray(trace.lanes.block(batch, warps * WARP)),
        warps * WARP % per_block // WARP,
        _queues(trace, batch, name, lanes, elements) if queued else (),
        _addresses(trace, batch, name, lanes, elements, shared=space == "shared") if queued else (),
    )


def _queues(trace: Trace, batch: int, name: str, lanes: Array, elements: Array) -> tuple[Queue, ...]:
    per_block = trace.lanes.per_block(batch)
    waiting: dict[tuple[int, int], list[int]] = {}
    for lane, element in zip(lanes.tolist(), elements.tolist(), strict=True):
        waiting.setdefault((lane // WARP, element), []).append(lane)
    found = [
        Queue(name, element, int(trace.lanes.block(batch, own[0])), tuple(lane % per_block for lane in own))
        for (_, element), own in waiting.items()
        if len(own) > 1
    ]
    return tuple(sorted(found, key=lambda queue: -len(queue.threads)))


def _addresses(
    trace: Trace, batch: int, name: str, lanes: Array, elements: Array, *, shared: bool
) -> tuple[Address, ...]:
    blocks, threads = np.asarray(trace.lanes.block(batch, lanes)), lanes % trace.lanes.per_block(batch)
    owners = blocks if shared else np.full(lanes.size, -1)
    order = np.lexsort((threads, blocks, elements, owners))
    owners, wanted = owners[order], elements[order]
    borders = np.flatnonzero((np.diff(owners) != 0) | (np.diff(wanted) != 0)) + 1
    return tuple(
        Address(name, int(elements[own[0]]), int(owner), blocks[own], threads[own])
        for own, owner in zip(np.split(order, borders), owners[[0, *borders]] if order.size else (), strict=False)
    )
