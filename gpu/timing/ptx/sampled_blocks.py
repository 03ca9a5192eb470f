"""The state of sampled blocks during execution: registers, shared memory, and the memory requests so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.simulator.counting import traffic
from gpu.simulator.executor.state.atomics import AtomicOperation, apply_atomics
from gpu.timing.ptx.analysis.control_flow import NaturalLoop
from gpu.timing.ptx.lanes import SampleLanes
from gpu.timing.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, SampledMemory
from gpu.timing.ptx.path import MemoryRequest, SampledPath
from gpu.timing.ptx.requests import (
    count_bank_passes,
    count_constant_lines,
    count_contending_lanes,
    count_sector_contention,
    find_distinct_sectors,
    find_distinct_words,
)
from gpu.timing.ptx.values import multiply_wrapped

Array = npt.NDArray[Any]
Value = Any

_NO_SECTORS = np.zeros(0, np.int64)
_SECTOR = 32
_SHARED_ADDRESS_MASK = np.int64((1 << 32) - 1)
_MAX_CACHED_WAVEFRONTS = 1024
"""Limit on the accesses to shared memory whose wavefronts are cached."""

SPECIAL_REGISTERS = (
    "tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge",
    "lanemask_eq", "clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "smid", "nsmid",
    "dynamic_smem_size",
)  # fmt: skip


@dataclass(frozen=True)
class GridShape:
    """The extents of a launch: blocks, threads per block, and dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        return -(-self.threads // WARP)


@dataclass
class LoopState:
    """The state of a loop being executed.

    Parameters
    ----------
    mask : SampleLanes
        The lanes in the loop.
    iterations : int
        The iterations executed so far; negative after skipping, so that the remaining iterations are executed.
    starts : list of int
        The indices in the path at which the latest iterations began.
    registers : list of dict of str to value
        The registers that the loop writes, at the ends of the latest iterations.
    snapshot : tuple of (int, dict of str to value) or None
        The number of changes of memory at the end of an earlier iteration, and the registers that the loop writes.
    lanes : dict of (int, int) to array
        The lanes of each warp that executed a part of the loop in the latest iteration: by basic block outside of inner
        loops, and index of a memory access with a predicate, or -1 for the block.
    resumed_parts : set of (int, int)
        The parts that more lanes of a warp executed than in the iteration before.
    latest_decline : int or None
        The latest iteration in which fewer lanes executed one of the other parts, which lanes leave for good.
    passed : int
        The iterations before these, executed or skipped.
    entered : int
        The lanes that repeated the loop at first.
    """

    mask: SampleLanes
    iterations: int = 0
    starts: list[int] = field(default_factory=list)
    registers: list[dict[str, Value]] = field(default_factory=list)
    snapshot: tuple[int, dict[str, Value]] | None = None
    lanes: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    resumed_parts: set[tuple[int, int]] = field(default_factory=set)
    latest_decline: int | None = None
    passed: int = 0
    entered: int = 0

    def note_lanes(self, lanes: Mapping[tuple[int, int], Any]) -> None:
        """Note how many lanes of each warp executed each part of the loop in this iteration."""
        for part in lanes.keys() | self.lanes.keys() if self.lanes else ():
            change = lanes.get(part, 0) - self.lanes.get(part, 0)
            if np.any(change > 0):
                self.resumed_parts.add(part)
            elif np.any(change < 0) and part not in self.resumed_parts:
                self.latest_decline = self.iterations
        self.lanes = lanes


@dataclass(frozen=True)
class BlockMemory:
    """The bytes of shared memory arrays per block, and of local memory per thread."""

    shared_bytes: int
    local_bytes: int


@dataclass(frozen=True)
class SampledAccess:
    """The places that lanes access.

    Parameters
    ----------
    kind : str
        The state space: "global", "const", "shared" or "local".
    places : integer or array
        The byte offsets in the state space, one for all lanes or one per lane.
    mask : SampleLanes
        The active lanes.
    """

    kind: str
    places: Value
    mask: SampleLanes


class SampledBlocks:
    """The registers, shared memory and path of blocks being executed, and of companions, which have no path."""

    def __init__(
        self,
        block_memory: BlockMemory,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        companions: Sequence[int] = (),
    ) -> None:
        self._shape = shape
        self.parameters = parameters
        self._memory = memory
        self.path = SampledPath(tuple(blocks), shape.warps)
        self._recorded_warps = shape.warps * len(blocks)
        blocks = (*blocks, *companions)
        lanes_per_block = shape.warps * WARP
        self.lanes = lanes_per_block * len(blocks)
        self.registers: dict[str, Value] = {}
        self._block_change_count = 0
        self.loops: dict[NaturalLoop, LoopState] = {}
        self.requests: list[tuple[int, MemoryRequest]] = []
        self.guarded_lanes: list[tuple[int, Array]] = []
        thread = np.tile(np.arange(lanes_per_block), len(blocks))
        self._thread = thread
        self._block = np.repeat(np.asarray(blocks, np.int64), lanes_per_block)
        self.all_lanes = SampleLanes(thread < shape.threads)
        self._running_count = self.all_lanes.count
        self._shared_bytes = -(-(block_memory.shared_bytes + shape.shared_bytes + 64) // 128) * 128
        self._shared = np.zeros(self._shared_bytes * len(blocks), np.uint8)
        self._shared_base = np.repeat(np.arange(len(blocks), dtype=np.int64) * self._shared_bytes, lanes_per_block)
        self._local_bytes = -(-(block_memory.local_bytes + 16) // 16) * 16
        self._local: Array | None = None
        self._lane_numbers = np.arange(self.lanes, dtype=np.int64)
        self._specials: dict[str, Value] = {}
        self._masks: dict[SampleLanes, traffic.Warps] = {}
        self._wavefronts: dict[tuple[bytes, int, bool, bytes], traffic.Wavefronts] = {}

    def _group_warps(self, mask: SampleLanes) -> traffic.Warps:
        if mask not in self._masks:
            self._masks[mask] = traffic.Warps(mask)
        return self._masks[mask]

    def _count_wavefronts(self, access: SampledAccess, size: int, *, reads: bool) -> traffic.Wavefronts:
        """Return the wavefronts of each warp's access to shared memory."""
        places, mask = access.places, access.mask
        # Loops repeat accesses, and counting takes longer than comparing.
        key = mask.bits.tobytes(), size, reads, places.tobytes()
        if key not in self._wavefronts:
            if len(self._wavefronts) == _MAX_CACHED_WAVEFRONTS:
                self._wavefronts.clear()
            self._wavefronts[key] = traffic.count_shared_wavefronts(
                self._group_warps(mask), places // size, size, reads=reads
            )
        return self._wavefronts[key]

    def count_recorded_lanes(self, mask: SampleLanes) -> Array:
        """Return the number of a mask's lanes in each warp of the path."""
        return mask.lanes_per_warp[: self._recorded_warps]

    def _select_recorded(self, mask: SampleLanes) -> SampleLanes | None:
        """Return the lanes of a mask that have a path."""
        if self._recorded_warps * WARP == self.lanes:
            return mask
        return mask.split(self._lane_numbers < self._recorded_warps * WARP)[0]

    def covers_running_lanes(self, mask: SampleLanes) -> bool:
        """Return whether a mask contains all lanes that are still running."""
        return mask.count == self._running_count

    def record_return(self, mask: SampleLanes | None) -> None:
        """Record lanes as returned."""
        if mask is not None:
            self._running_count -= mask.count

    def read_special_register(self, name: str) -> Value:
        """Return the value of a special register."""
        if name not in self._specials:
            self._specials[name] = self._compute_special_register(name)
        return self._specials[name]

    def _compute_special_register(self, name: str) -> Value:
        word, _, axis = name.partition(".")
        number = "xyz".find(axis) if axis else 0
        lane = (self._thread % WARP).astype(np.uint32)
        bit = np.uint32(1) << lane
        match word:
            case "tid" | "ctaid":
                extents = self._shape.block if word == "tid" else self._shape.grid
                linear = self._thread if word == "tid" else self._block
                lower, higher = int(np.prod(extents[:number])), int(np.prod(extents[number + 1 :]))
                linear = linear // lower if lower > 1 else linear
                # The last warp of a block may have lanes beyond its last thread.
                index = (linear % extents[number] if higher > 1 or word == "tid" else linear).astype(np.uint32)
                return index[0] if (index == index[0]).all() else index
            case "ntid":
                return np.uint32(self._shape.block[number])
            case "nctaid":
                return np.uint32(self._shape.grid[number])
            case "laneid":
                return lane
            case "warpid":
                return (self._thread // WARP).astype(np.uint32)
            case "lanemask_eq":
                return bit
            case "lanemask_lt":
                return bit - np.uint32(1)
            case "lanemask_le":
                return bit | (bit - np.uint32(1))
            case "lanemask_gt":
                return ~(bit | (bit - np.uint32(1)))
            case "lanemask_ge":
                return ~(bit - np.uint32(1))
            case "dynamic_smem_size":
                return np.uint32(self._shape.shared_bytes)
        return np.uint64(0) if word in ("clock64", "globaltimer") else np.uint32(0)

    # Memory.

    @property
    def change_count(self) -> int:
        """The number of stores so far that changed a value."""
        return self._memory.change_count + self._block_change_count

    def resolve(self, space: str, addresses: Value, mask: SampleLanes) -> SampledAccess:
        """Return the access of lanes to addresses in a state space, or to generic addresses."""
        if space == "shared":  # a multiprocessor uses the low 32 bits, whatever the width of the register
            return SampledAccess(space, addresses & _SHARED_ADDRESS_MASK, mask)
        if space != "generic":
            return SampledAccess(space, addresses, mask)
        sample = addresses if not addresses.ndim else addresses[mask.lanes[0]]
        window = int(sample) >> WINDOW_BITS
        if window in (SHARED_WINDOW, LOCAL_WINDOW):
            inside = addresses & np.int64((1 << WINDOW_BITS) - 1)
            return SampledAccess("shared" if window == SHARED_WINDOW else "local", inside, mask)
        return SampledAccess("global", addresses, mask)

    def _flatten_offsets(self, access: SampledAccess) -> Array:
        """Return the offsets of a mask's lanes in the array that holds all lanes' memory of a kind."""
        places, lanes = access.places, access.mask.lanes
        offsets = places[lanes] if places.ndim else np.full(lanes.size, places, np.int64)
        if access.kind == "shared":
            return offsets + self._shared_base[lanes]
        if access.kind == "local":
            return offsets + self._lane_numbers[lanes] * self._local_bytes
        return offsets

    def _memory_bytes(self, kind: str) -> Array:
        if kind == "shared":
            return self._shared
        if self._local is None:
            self._local = np.zeros(self._local_bytes * self.lanes, np.uint8)
        return self._local

    def load(self, access: SampledAccess, dtype: np.dtype[Any], count: int) -> list[Value]:
        """Return the values that lanes load, one for each of `count` elements of a vector."""
        if not access.places.ndim and access.kind in ("global", "const"):
            one = np.asarray([access.places])
            return [self._memory.load(one + number * dtype.itemsize, dtype)[0] for number in range(count)]
        flat = self._flatten_offsets(access)
        parts = (flat + number * dtype.itemsize if number else flat for number in range(count))
        return [self._spread(self._read_words(access.kind, offsets, dtype), access.mask) for offsets in parts]

    def store(self, access: SampledAccess, values: list[Value], dtype: np.dtype[Any]) -> None:
        """Store values; lanes with offsets outside of shared or local memory are skipped.

        Parameters
        ----------
        access : SampledAccess
        values : list of scalar or array
            The values for each element of a vector, each one for all lanes or one per lane.
        dtype : numpy.dtype
        """
        flat = self._flatten_offsets(access)
        for number, value in enumerate(values):
            offsets = flat + number * dtype.itemsize if number else flat
            self._write_words(access.kind, offsets, value[access.mask.lanes] if value.ndim else value, dtype)

    def atomic(
        self, access: SampledAccess, mode: str, values: list[Value], dtype: np.dtype[Any], *, used: bool
    ) -> Value:
        """Execute an atomic operation of each lane, serialized per address; return the previous values if `used`.

        Parameters
        ----------
        access : SampledAccess
        mode : str
            The operation, such as "add" or "cas".
        values : list of value
            Its operands.
        dtype : numpy.dtype
        used : bool
        """
        operands = [value[access.mask.lanes] if value.ndim else value for value in values]
        words, index = np.unique(self._flatten_offsets(access), return_inverse=True)
        view = self._read_words(access.kind, words, dtype)
        if mode == "cas":
            # Warps arrive in any order. In that of their numbers the smallest of the larger values would always be the
            # first, and a loop that looks for the maximum would take all values one by one.
            order = self._shuffle_warps(access.mask)
            swapped = AtomicOperation(mode, [value[order] if value.ndim else value for value in operands], used)
            old = apply_atomics(view, index[order], swapped)
            if old is not None:
                old[order] = old.copy()
        else:
            old = apply_atomics(view, index, AtomicOperation(mode, operands, used))
        self._write_words(access.kind, words, view, dtype)
        return None if old is None else self._spread(old, access.mask)

    def _shuffle_warps(self, mask: SampleLanes) -> Array:
        """Return the positions of a mask's lanes, by warps in an order that differs after each change of memory."""
        warps = np.arange(self.lanes)[mask.lanes] // WARP
        ranks = np.random.default_rng(self.change_count).permutation(self.lanes // WARP)
        return np.argsort(ranks[warps], kind="stable")

    def _spread(self, values: Array, mask: SampleLanes) -> Array:
        """Return the values of a mask's lanes as one per lane of the sample."""
        if mask.full:
            return values
        spread = np.zeros(self.lanes, values.dtype)
        spread[mask.lanes] = values
        return spread

    def record_ticket(self, access: SampledAccess, mode: str, value: Value, dtype: np.dtype[Any]) -> None:
        """Record a ticket counter: a word in global memory to which one thread of each block adds the same value.

        Nothing is recorded unless the lanes are one of each block.

        Parameters
        ----------
        access : SampledAccess
            Of global memory.
        mode : {"add", "inc"}
            The atomic operation.
        value : integer or array
            The operand of the operation, one for all lanes or one per lane.
        dtype : numpy.dtype
            The type of the word, an integer type.
        """
        mask, flat = access.mask, self._flatten_offsets(access)
        added = np.unique(value[mask.lanes] if mode == "add" and value.ndim else value if mode == "add" else 1)
        drawing_blocks = np.unique(self._block[mask.lanes])
        if added.size == 1 and drawing_blocks.size == mask.count == len(self.path.blocks) and (flat == flat[0]).all():
            self.path.tickets[int(flat[0])] = dtype, added[0]
            if mode == "add":
                # The blocks that are not sampled draw tickets, too.
                others = multiply_wrapped(self._shape.blocks - len(self.path.blocks), added[0], dtype)
                word = flat[:1]
                self._memory.store(word, self._memory.load(word, dtype) + others, dtype)

    def record_replaced_word(self, access: SampledAccess, dtype: np.dtype[Any]) -> None:
        """Record a word of global memory that lanes of several blocks compare and replace."""
        blocks, flat = self._block[access.mask.lanes], self._flatten_offsets(access)
        if (flat == flat[0]).all() and (blocks != blocks[0]).any():
            self.path.replaced_words[int(flat[0])] = dtype

    def _read_words(self, kind: str, flat: Array, dtype: np.dtype[Any]) -> Array:
        if kind in ("global", "const"):
            return self._memory.load(flat, dtype)
        return self._memory_bytes(kind).view(dtype).take(flat // dtype.itemsize, mode="clip")

    def _write_words(self, kind: str, flat: Array, values: Value, dtype: np.dtype[Any]) -> None:
        if kind in ("global", "const"):
            self._memory.store(flat, values, dtype)
            return
        view = self._memory_bytes(kind).view(dtype)
        index = flat // dtype.itemsize
        inside = (index >= 0) & (index < view.size)
        if not inside.all():
            index, values = index[inside], values[inside] if values.ndim else values
        self._change_words(view, index, values)

    def _change_words(self, view: Array, index: Array, values: Value) -> None:
        """Store values to a block's shared or local memory."""
        previous = view[index]
        view[index] = values
        self._block_change_count += not np.array_equal(view[index], previous)

    def record_request(
        self,
        place: int,
        access: SampledAccess,
        operation: str,
        size: int,
        *,
        combined: bool = False,
        is_loop: bool = False,
    ) -> None:
        """Record the memory requests of a mask's warps.

        Parameters
        ----------
        place : int
            The index of the instruction in its basic block.
        access : SampledAccess
        operation : {"ld", "ld.volatile", "st", "atom", "red"}
            A volatile load bypasses the L1 cache.
        size : int
            Bytes per lane.
        combined : bool
            Whether the lanes of an atomic operation are combined.
        is_loop : bool
            Whether an atomic operation is a loop that repeats it until no other thread has changed the word.
        """
        recorded = self._select_recorded(access.mask)
        if recorded is None:
            return
        access = replace(access, mask=recorded)
        kind, places, mask = access.kind, access.places, access.mask
        operation, _, volatile = operation.partition(".")
        warps, lanes = mask.warps, mask.lanes_per_warp[mask.warps]
        passes = np.ones(warps.size, np.int64)
        minimum = passes
        starts, sectors = np.zeros(warps.size + 1, np.int64), _NO_SECTORS
        rows = places.reshape(-1, WARP)[warps] if places.ndim else np.broadcast_to(places, (warps.size, WARP))
        if operation in ("atom", "red"):
            if combined and kind == "shared":  # the hardware counts the lanes on one word
                passes = count_bank_passes(rows >> 2, mask.rows) if places.ndim else passes
            elif combined:  # the assembler combines the lanes of warps that have one address
                contending = count_contending_lanes(rows, mask.rows)
                passes = np.where(contending == lanes, 1, contending)
            elif kind == "shared":
                spread = places if places.ndim else np.full(self.lanes, places, np.int64)
                passes, minimum, _ = traffic.count_atomic_wavefronts(self._group_warps(mask), spread // size, size)
            else:
                passes = count_contending_lanes(rows, mask.rows)
        elif kind == "shared" and places.ndim:
            passes, minimum, _ = self._count_wavefronts(access, size, reads=operation == "ld")
        elif kind == "const":
            starts, sectors = find_distinct_words(rows, mask.rows, scalar=not places.ndim)
            passes = count_constant_lines(starts, sectors)
        if kind == "global" or kind == "local":
            active = mask.rows
            if kind == "local":
                rows, active = self._locate_local_words(rows, warps, size), np.tile(active, max(1, size // 4))
            starts, sectors = find_distinct_sectors(rows, active, scalar=not places.ndim and kind == "global")
        conflicts = passes - minimum if kind == "shared" else np.zeros(warps.size, np.int64)
        rounds = count_contending_lanes(rows, mask.rows) if is_loop else None
        if is_loop:
            passes = 2 * self._count_block_rounds(access)  # each round loads and stores
        contention = None
        if operation in ("atom", "red") and kind == "global":
            contention = np.minimum(count_sector_contention(rows, mask.rows), np.repeat(passes, np.diff(starts)))
        request = MemoryRequest(
            kind, operation, warps, lanes, passes, starts, sectors, conflicts, bool(volatile), rounds, contention
        )
        self.requests.append((place, request))

    def _locate_local_words(self, rows: Array, warps: Array, size: int) -> Array:
        """Return the addresses of all words of an access to local memory, where a word of all lanes is in one place."""
        lanes = self._lane_numbers.reshape(-1, WARP)[warps]
        words = [((rows // 4 + word) * self.lanes + lanes) * 4 for word in range(max(1, size // 4))]
        return (np.int64(LOCAL_WINDOW) << WINDOW_BITS) + np.concatenate(words, axis=1)

    def _count_block_rounds(self, access: SampledAccess) -> Array:
        """Return for each of a mask's warps how many threads of its block access one of its words of shared memory."""
        mask = access.mask
        _, words, threads = np.unique(self._flatten_offsets(access), return_inverse=True, return_counts=True)
        rounds = np.zeros(mask.lanes_per_warp.size, np.int64)
        np.maximum.at(rounds, mask.lanes // WARP, threads[words])
        return rounds[mask.warps]

    def record_bulk_copy(self, place: int, places: Value, sizes: Value, mask: SampleLanes) -> None:
        """Record bulk copies from global memory as requests for their sectors.

        Parameters
        ----------
        place : int
            The index of the instruction in the kernel.
        places : integer or array
            The address of each copy's first byte, one for all lanes or one per lane; for copies of several rows, with
            another axis of one address per row.
        sizes : integer or array
            Bytes per copy, or per row of a copy, in the same form.
        mask : SampleLanes
            The lanes that start a copy.
        """
        recorded = self._select_recorded(mask)
        if recorded is None:
            return
        mask = recorded
        warps, ones = mask.warps, np.ones(mask.warps.size, np.int64)
        rows = max(np.shape(values)[1] if np.ndim(values) > 1 else 1 for values in (places, sizes))
        first_bytes, sizes = (
            np.broadcast_to(values if np.ndim(values) > 1 else np.reshape(values, (-1, 1)), (self.lanes, rows)).reshape(
                -1, WARP, rows
            )[warps]
            for values in (places, sizes)
        )
        sectors_by_warp = [
            np.concatenate([np.arange(at, at + size, _SECTOR) // _SECTOR for at, size in zip(*lanes, strict=True)])
            for lanes in (
                (first_bytes[row, active].ravel(), sizes[row, active].astype(np.int64).ravel())
                for row, active in enumerate(mask.rows)
            )
        ]
        starts = np.concatenate([[0], np.cumsum([sectors.size for sectors in sectors_by_warp])]).astype(np.int64)
        sectors = np.concatenate([_NO_SECTORS, *sectors_by_warp])
        request = MemoryRequest(
            "global", "ld", warps, mask.lanes_per_warp[warps], ones, starts, sectors, ones - 1, True
        )
        self.requests.append((place, request))
