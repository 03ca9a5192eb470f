"""Memory traffic of the statement at a moment: sectors, bank conflicts, and contention for one address.

The rules are those of the counters (`gpu.simulator.counting.traffic`), applied to recorded accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.recording.recording import Recording
from gpu.recording.tables import ACTIONS, AccessRow
from gpu.recording.trace import Trace
from gpu.simulator.counting.traffic import (
    BANK_BYTES,
    BANKS,
    Warps,
    count_atomic_wavefronts,
    count_queued_sectors,
    count_sectors,
    count_shared_wavefronts,
    find_bank_words,
)


@dataclass(frozen=True, eq=False)
class Address:
    """An element that atomic operations of one statement target, from any warps; they are serialized.

    Parameters
    ----------
    block : int
        The block of the shared memory; -1 for global memory.
    blocks, threads : int arrays
        The threads that target it: the block in the grid, and the thread in the block.
    """

    array: str
    element: int
    block: int
    blocks: Array
    threads: Array

    @property
    def longest_queue(self) -> int:
        """The most threads of one warp that target the element."""
        warps = np.stack((self.blocks, self.threads // WARP))
        return int(np.unique(warps, axis=1, return_counts=True)[1].max())


class AccessCounts(NamedTuple):
    """The counts of one access, summed over all warps; the parts of a vector are one access.

    `lanes` are active, and `requests` are the warps that contain them. Of global memory, `sectors` are the 32-byte
    sectors that are transferred, and `ideal_sectors` the fewest that would suffice. Of shared memory, `wavefronts` are
    those over the banks, `conflicts` those beyond the minimum, and `degree` the most wavefronts of lanes served
    together, 1 without conflicts. Counts of other memory are 0.
    """

    lanes: int
    requests: int
    sectors: int
    ideal_sectors: int
    wavefronts: int
    conflicts: int
    degree: int


_COUNTS = np.dtype([(name, np.int64) for name in ("row", "parts", *AccessCounts._fields)])


@dataclass(frozen=True, eq=False)
class AccessTraffic:
    """The traffic of one access of the statement, summed over all warps.

    Parameters
    ----------
    action : str
        "read", "write" or "atomic".
    space : str
        "global", "shared", "constant" or "local"; for the last two, only the active lanes are known.
    size : int
        Bytes per lane.
    bank, word : int arrays, shape (warps, 32)
        For shared memory: the bank and the word of each lane of a warp, -1 for inactive lanes. Lanes that access one
        word of a bank share it, except in atomic operations. An element of 8 or 16 bytes uses 2 or 4 banks.
    addresses : tuple of Address
        For an atomic operation, ascending.
    """

    action: str
    space: str
    array: str
    size: int
    counts: AccessCounts
    bank: Array
    word: Array
    addresses: tuple[Address, ...]

    def count_bank_words(self) -> Array:
        """Return the number of distinct words per bank, shape (32,), for the warp with the worst conflict.

        For atomic operations, the number of lanes per bank.
        """
        if not len(self.bank):
            return np.zeros(BANKS, np.int64)
        rows, lanes = np.nonzero(self.bank >= 0)
        banks, words = self.bank[rows, lanes], self.word[rows, lanes]
        if self.action != "atomic":
            _, first = np.unique(rows * (words.max(initial=0) + 1) + words, return_index=True)
            rows, banks = rows[first], banks[first]
        offsets = np.arange(max(1, self.size // BANK_BYTES))
        bank_slots = (rows * BANKS + banks)[:, np.newaxis] + offsets
        counts = np.bincount(bank_slots.reshape(-1), minlength=len(self.bank) * BANKS).reshape(-1, BANKS)
        worst: Array = counts[np.argmax(counts.max(axis=1))]
        return worst


@dataclass(frozen=True, eq=False)
class Traffic:
    """The memory traffic of an event, access by access in execution order.

    `failed` is whether an access of the event ended the launch, which is not among `accesses`.
    """

    accesses: tuple[AccessTraffic, ...]
    failed: bool = False

    @property
    def sectors(self) -> int:
        """The sectors of global memory that are transferred."""
        return sum(access.counts.sectors for access in self.accesses)

    @property
    def ideal_sectors(self) -> int:
        """The fewest sectors of global memory that would suffice."""
        return sum(access.counts.ideal_sectors for access in self.accesses)

    @property
    def conflicts(self) -> int:
        """The number of bank conflicts."""
        return sum(access.counts.conflicts for access in self.accesses)

    @cached_property
    def banks(self) -> Array | None:
        """`AccessTraffic.count_bank_words` of the shared memory access with the worst conflict; None without any."""
        shared = [access for access in self.accesses if access.space == "shared"]
        return max(shared, key=lambda access: access.counts.degree).count_bank_words() if shared else None

    def addresses(self, block: int) -> tuple[Address, ...]:
        """Return the targets of atomic operations in global memory and a block's shared memory, most lanes first."""
        addresses = [
            address for access in self.accesses for address in access.addresses if address.block in (-1, block)
        ]
        return tuple(sorted(addresses, key=lambda each: -each.threads.size))

    @property
    def summary(self) -> str:
        """A text such as "shared: 2 reads, 1 write, bank conflicts 0"."""
        parts = [self._space_summary(space) for space in ("global", "shared", "local", "constant")]
        return " · ".join(filter(None, [*parts, "invalid access" if self.failed else ""]))

    def _space_summary(self, space: str) -> str:
        accesses = [access for access in self.accesses if access.space == space]
        words = []
        for action in ACTIONS:
            count = sum(access.counts.lanes for access in accesses if access.action == action)
            if count:
                words.append(f"{count} {action}{'s' if count > 1 else ''}")
        if not words:
            return ""
        if space == "global":
            moved, ideal = self.sectors, self.ideal_sectors
            words.append(
                f"{moved} sector{'s' if moved > 1 else ''}" + (f", {ideal} would suffice" if ideal < moved else "")
            )
        if space == "shared":
            words.append(f"bank conflicts {self.conflicts}")
        longest = max((address.longest_queue for access in accesses for address in access.addresses), default=0)
        if longest > 1:
            words.append(f"{longest} atomics on one address")
        return f"{space}: " + ", ".join(words)


def traffic_at(recording: Recording, moment: int) -> Traffic:
    """Return the memory traffic of the event at a moment; empty at the end of a recording.

    Raises
    ------
    InputError
        The recording has no such moment.
    """
    launch, event = recording.locate_moment(moment)
    first, last = np.searchsorted(launch.trace.data.accesses["event"], [event, event + 1])
    measured = count_traffic(launch.trace, int(first), int(last))
    accesses = tuple(_build_access_traffic(launch.trace, *counts) for counts in measured.tolist())
    failed = any(found.event == event and found.access is not None for found in launch.trace.findings)
    return Traffic(accesses, failed)


def find_max_address_count(recording: Recording) -> int:
    """Return the most distinct addresses that atomic operations of one access target; 0 without atomic operations."""
    maximum, atomic = 0, ACTIONS.index("atomic")
    for launch in recording.launches:
        accesses = launch.trace.data.accesses
        for row in accesses[accesses["action"] == atomic].tolist():
            maximum = max(maximum, np.unique(launch.trace.memory.elements(AccessRow(*row))[1]).size)
    return maximum


def count_traffic(trace: Trace, first: int, last: int) -> Array:
    """Count the traffic of the accesses in rows `first` to `last` of a trace's table.

    Returns
    -------
    structured array
        One row per access: the number of its first `row` in the trace's table, of its rows (`parts`), and the columns
        of `AccessCounts`.
    """
    accesses = trace.data.accesses[first:last]
    starts = np.flatnonzero(accesses["part"] == 0)
    counts = np.zeros(starts.size, _COUNTS)
    counts["row"] = starts + first
    counts["parts"] = parts = np.diff(starts, append=len(accesses))
    groups: dict[tuple[str, str, int], list[int]] = {}
    rows = [AccessRow(*row) for row in accesses[starts].tolist()]
    for number, (access, count) in enumerate(zip(rows, parts.tolist(), strict=True)):
        groups.setdefault(_classify_access(trace, access, count), []).append(number)
    batches = trace.data.events["batch"][accesses["event"][starts]].tolist()
    for (action, space, size), numbers in groups.items():
        bits, elements, owner = [], [], []
        for number in numbers:
            lanes, elements_accessed = trace.memory.elements(rows[number])
            counts["lanes"][number] = lanes.size
            bits.append(np.zeros(trace.lanes.count(batches[number]), bool))
            elements.append(np.zeros(bits[-1].size, np.int64))
            bits[-1][lanes], elements[-1][lanes] = True, elements_accessed // int(parts[number])
            owner.append(np.full(bits[-1].size // WARP, number))
        warps, elements_accessed = Warps(LaneMask(np.concatenate(bits))), np.concatenate(elements)
        access_number = np.concatenate(owner)[warps.active]
        np.add.at(counts["requests"], access_number, 1)
        if space == "global":
            moved, ideal = _count_sectors(warps, elements_accessed, size, action)
            np.add.at(counts["sectors"], access_number, moved)
            np.add.at(counts["ideal_sectors"], access_number, ideal)
        elif space == "shared":
            atomic = action == "atomic"
            passes = (
                count_atomic_wavefronts(warps, elements_accessed, size)
                if atomic
                else count_shared_wavefronts(warps, elements_accessed, size, reads=action == "read")
            )
            np.add.at(counts["wavefronts"], access_number, passes.total)
            np.add.at(counts["conflicts"], access_number, passes.total - passes.minimum)
            np.maximum.at(counts["degree"], access_number, passes.maximum)
    return counts


def _count_sectors(warps: Warps, elements: Array, size: int, action: str) -> tuple[Array, Array]:
    if action == "atomic":
        return count_queued_sectors(warps.rows().gather_marked(elements), size)[1], warps.ideal_sectors(size)
    counts = count_sectors(warps, elements, size)
    return counts.transferred, counts.ideal


def _classify_access(trace: Trace, access: AccessRow, parts: int) -> tuple[str, str, int]:
    """Return an access's action, its space, and its bytes per lane."""
    size = trace.data.values.dtypes[access.dtype].itemsize
    return ACTIONS[access.action], trace.data.memories[access.memory].space, size * parts


def _build_access_traffic(trace: Trace, row: int, parts: int, *counts: int) -> AccessTraffic:
    access = AccessRow(*trace.data.accesses[row].tolist())
    action, space, size = _classify_access(trace, access, parts)
    batch, name = int(trace.data.events["batch"][access.event]), trace.data.memories[access.memory].name
    lanes, elements = trace.memory.elements(access)
    elements = elements // parts
    warps = np.unique(lanes // WARP)
    bank, word = np.full((2, warps.size, WARP), -1)
    if space == "shared":
        at = (np.searchsorted(warps, lanes // WARP), lanes % WARP)
        word[at], wide = find_bank_words(elements, size)
        bank[at] = (word[at] & (wide - 1)) * (BANKS // wide)
    queued = action == "atomic" and space in ("global", "shared")
    return AccessTraffic(
        action,
        space,
        name,
        size,
        AccessCounts(*counts),
        bank,
        word,
        _find_addresses(trace, batch, name, lanes, elements, shared=space == "shared") if queued else (),
    )


def _find_addresses(
    trace: Trace, batch: int, name: str, lanes: Array, elements: Array, *, shared: bool
) -> tuple[Address, ...]:
    blocks, threads = np.asarray(trace.lanes.block(batch, lanes)), lanes % trace.lanes.per_block(batch)
    owners = blocks if shared else np.full(lanes.size, -1)
    order = np.lexsort((threads, blocks, elements, owners))
    owners, sorted_elements = owners[order], elements[order]
    borders = np.flatnonzero((np.diff(owners) != 0) | (np.diff(sorted_elements) != 0)) + 1
    return tuple(
        Address(name, int(elements[indices[0]]), int(owner), blocks[indices], threads[indices])
        for indices, owner in zip(np.split(order, borders), owners[[0, *borders]] if order.size else (), strict=False)
    )
