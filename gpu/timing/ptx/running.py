"""Some blocks of a grid while they run: their registers and shared memory, and what they have asked for so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.counting import traffic
from gpu.simulator.executor.masks import LaneMask
from gpu.timing.ptx.flow import NaturalLoop
from gpu.timing.ptx.lanes import SampleLanes
from gpu.timing.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, SampledMemory
from gpu.timing.ptx.path import Request, SampledPath
from gpu.timing.ptx.requests import bank_passes, different_places, distinct_sectors, longest_queues
from gpu.warp import WARP

Array = npt.NDArray[Any]
Value = Any

_NOWHERE = np.zeros(0, np.int64)
_SECTOR = 32

SPECIALS = (
    "tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge",
    "lanemask_eq", "clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "smid", "nsmid",
    "dynamic_smem_size",
)  # fmt: skip


@dataclass(frozen=True)
class GridShape:
    """The extents of a launch: blocks, threads of a block, and dynamic shared memory in bytes."""

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
    """What is known of a loop that lanes are in: its rounds so far, and what registers held at the last ones' ends."""

    mask: SampleLanes
    rounds: int = 0
    starts: list[int] = field(default_factory=list)
    registers: list[dict[str, Value]] = field(default_factory=list)


@dataclass(frozen=True)
class BlockMemory:
    """The bytes of a block's arrays in shared memory, and of a thread's in local memory."""

    shared_bytes: int
    local_bytes: int


class SampledBlocks:
    """The registers, shared memory and path of some blocks that run."""

    def __init__(
        self, needs: BlockMemory, shape: GridShape, parameters: Array, blocks: Sequence[int], memory: SampledMemory
    ) -> None:
        self._shape = shape
        self.parameters = parameters
        self._memory = memory
        self.path = SampledPath(tuple(blocks), shape.warps)
        each = shape.warps * WARP
        self.lanes = each * len(blocks)
        self.registers: dict[str, Value] = {}
        self.loops: dict[NaturalLoop, LoopState] = {}
        self.requests: list[tuple[int, Request]] = []
        thread = np.tile(np.arange(each), len(blocks))
        self._thread = thread
        self._block = np.repeat(np.asarray(blocks, np.int64), each)
        self.everyone = SampleLanes(thread < shape.threads)
        self._alive = self.everyone.count
        self._shared_bytes = -(-(needs.shared_bytes + shape.shared_bytes + 64) // 128) * 128
        self._shared = np.zeros(self._shared_bytes * len(blocks), np.uint8)
        self._shared_base = np.repeat(np.arange(len(blocks), dtype=np.int64) * self._shared_bytes, each)
        self._local_bytes = -(-(needs.local_bytes + 16) // 16) * 16
        self._local: Array | None = None
        self._lane_numbers = np.arange(self.lanes, dtype=np.int64)
        self._specials: dict[str, Value] = {}
        self._masks: dict[SampleLanes, traffic.Warps] = {}

    def _warps_of(self, mask: SampleLanes) -> traffic.Warps:
        if mask not in self._masks:
            self._masks[mask] = traffic.Warps(LaneMask(mask.bits, mask.count))
        return self._masks[mask]

    def _wavefronts(self, places: Array, size: int, mask: SampleLanes, *, reads: bool) -> traffic.Passes:
        """Return the passes over shared memory that each warp's access takes."""
        return traffic.shared_passes(self._warps_of(mask), places // size, size, reads=reads)

    def covers(self, mask: SampleLanes) -> bool:
        """Whether all lanes that are still running are in a mask."""
        return mask.count == self._alive

    def leave(self, mask: SampleLanes | None) -> None:
        """Take note of lanes that have ended."""
        if mask is not None:
            self._alive -= mask.count

    def special(self, name: str) -> Value:
        """Return a special register."""
        if name not in self._specials:
            self._specials[name] = self._special(name)
        return self._specials[name]

    def _special(self, name: str) -> Value:
        word, _, axis = name.partition(".")
        number = "xyz".find(axis) if axis else 0
        lane = (self._thread % WARP).astype(np.uint32)
        bit = np.uint32(1) << lane
        match word:
            case "tid" | "ctaid":
                extents = self._shape.block if word == "tid" else self._shape.grid
                of = self._thread if word == "tid" else self._block
                below, further = int(np.prod(extents[:number])), int(np.prod(extents[number + 1 :]))
                of = of // below if below > 1 else of
                # In a block's last warp lanes may stand behind its last thread.
                found = (of % extents[number] if further > 1 or word == "tid" else of).astype(np.uint32)
                return found[0] if (found == found[0]).all() else found
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

    def resolve(self, space: str, addresses: Value, mask: SampleLanes) -> tuple[str, Value]:
        """Return which state space addresses are in, and the places in it."""
        if space != "generic":
            return ("global" if space == "global" else space), addresses
        sample = addresses if not addresses.ndim else addresses[mask.numbers[0]]
        window = int(sample) >> WINDOW_BITS
        if window in (SHARED_WINDOW, LOCAL_WINDOW):
            inside = addresses & np.int64((1 << WINDOW_BITS) - 1)
            return ("shared" if window == SHARED_WINDOW else "local"), inside
        return "global", addresses

    def _flat(self, kind: str, places: Value, mask: SampleLanes) -> Array:
        """Return the places of the lanes of a mask in the one array that holds all their memory of a kind."""
        own = places[mask.numbers] if places.ndim else np.full(mask.count, places, np.int64)
        if kind == "shared":
            return own + self._shared_base[mask.numbers]
        if kind == "local":
            return own + self._lane_numbers[mask.numbers] * self._local_bytes
        return own

    def _bytes(self, kind: str) -> Array:
        if kind == "shared":
            return self._shared
        if self._local is None:
            self._local = np.zeros(self._local_bytes * self.lanes, np.uint8)
        return self._local

    def load(self, kind: str, places: Value, dtype: np.dtype[Any], count: int, mask: SampleLanes) -> list[Value]:
        """Return what lanes load, a value for each element of a vector."""
        if not places.ndim and kind in ("global", "const"):
            one = np.asarray([places])
            return [self._memory.load(one + number * dtype.itemsize, dtype)[0] for number in range(count)]
        flat = self._flat(kind, places, mask)
        found = []
        for number in range(count):
            at = flat + number * dtype.itemsize if number else flat
            if kind in ("global", "const"):
                values = self._memory.load(at, dtype)
            else:
                view = self._bytes(kind).view(dtype)
                values = view.take(at // dtype.itemsize, mode="clip")
            if mask.is_all:
                found.append(values)
            else:
                spread = np.zeros(self.lanes, dtype)
                spread[mask.numbers] = values
                found.append(spread)
        return found

    def store(self, kind: str, places: Value, values: list[Value], dtype: np.dtype[Any], mask: SampleLanes) -> None:
        flat = self._flat(kind, places, mask)
        for number, value in enumerate(values):
            at = flat + number * dtype.itemsize if number else flat
            own = value[mask.numbers] if value.ndim else value
            if kind in ("global", "const"):
                self._memory.store(at, own, dtype)
            else:
                view = self._bytes(kind).view(dtype)
                index = at // dtype.itemsize
                inside = (index >= 0) & (index < view.size)
                if inside.all():
                    view[index] = own
                else:
                    view[index[inside]] = own[inside] if isinstance(own, np.ndarray) and own.ndim else own

    def atomic(
        self, kind: str, mode: str, places: Value, values: list[Value], dtype: np.dtype[Any], mask: SampleLanes
    ) -> Value:
        """Do an atomic of each lane, one after the other where they want the same place; return what each found."""
        flat = self._flat(kind, places, mask)
        own = [value[mask.numbers] if value.ndim else np.full(mask.count, value, dtype) for value in values]
        old = np.zeros(mask.count, dtype)
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        first = np.ones(ordered.size, np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(first)
        if mode == "add":
            held = self._held(kind, ordered[starts], dtype)
            added = own[0][order]
            sums = np.cumsum(added, dtype=np.float64 if dtype.kind == "f" else dtype)
            group = np.cumsum(first) - 1
            before = sums - added
            base = before[starts]
            found = (before - base[group]).astype(dtype) + held[group]
            old[order] = found
            ends = np.append(starts[1:], ordered.size) - 1
            self._hold(kind, ordered[starts], (found[ends] + added[ends]).astype(dtype), dtype)
        else:
            rank = np.arange(ordered.size) - starts[np.cumsum(first) - 1]
            for turn in range(int(rank.max()) + 1 if rank.size else 0):
                which = order[rank == turn]
                held = self._held(kind, flat[which], dtype)
                old[which] = held
                new = _changed(mode, held, [value[which] for value in own])
                self._hold(kind, flat[which], new.astype(dtype), dtype)
        if mask.is_all:
            return old
        spread = np.zeros(self.lanes, dtype)
        spread[mask.numbers] = old
        return spread

    def draw(self, mode: str, places: Value, value: Value, dtype: np.dtype[Any], mask: SampleLanes) -> None:
        """Take note of a word in global memory that a thread of each block adds the same to, and reads."""
        flat = self._flat("global", places, mask)
        added = np.unique(value[mask.numbers] if mode == "add" and value.ndim else value if mode == "add" else 1)
        of_blocks = np.unique(self._block[mask.numbers])
        if added.size == 1 and of_blocks.size == mask.count == len(self.path.blocks) and (flat == flat[0]).all():
            self.path.tickets[int(flat[0])] = dtype, added[0]

    def _held(self, kind: str, flat: Array, dtype: np.dtype[Any]) -> Array:
        if kind in ("global", "const"):
            return self._memory.load(flat, dtype)
        return self._bytes(kind).view(dtype).take(flat // dtype.itemsize, mode="clip")

    def _hold(self, kind: str, flat: Array, values: Array, dtype: np.dtype[Any]) -> None:
        if kind in ("global", "const"):
            self._memory.store(flat, values, dtype)
        else:
            view = self._bytes(kind).view(dtype)
            index = flat // dtype.itemsize
            inside = index < view.size
            view[index[inside]] = values[inside]

    def ask(
        self,
        place: int,
        kind: str,
        how: str,
        places: Value,
        size: int,
        mask: SampleLanes,
        *,
        volatile: bool = False,
        counts_up: bool = False,
        uniform_sum: bool = False,
    ) -> None:
        """Write down what the warps of a mask ask of memory."""
        warps, lanes = mask.warps, mask.of_warp[mask.warps]
        passes = np.ones(warps.size, np.int64)
        least = passes
        starts, sectors = np.zeros(warps.size + 1, np.int64), _NOWHERE
        atomic = how in ("atom", "red")
        rows = places.reshape(-1, WARP)[warps] if places.ndim else np.broadcast_to(places, (warps.size, WARP))
        if atomic and kind == "shared":
            spread = places if places.ndim else np.full(self.lanes, places, np.int64)
            if counts_up:  # the machine counts lanes that want one word, rather than to add for each
                passes = bank_passes(rows >> 2, mask.rows)
            else:
                passes, least, _ = traffic.atomic_passes(self._warps_of(mask), spread // size, size)
        elif atomic:
            passes = longest_queues(rows, mask.rows)
            if uniform_sum:
                passes = np.ones(warps.size, np.int64)  # the lanes of a warp are summed up before
        elif kind == "shared" and places.ndim:
            passes, least, _ = self._wavefronts(places, size, mask, reads=how == "ld")
        elif kind == "const" and places.ndim:
            passes = different_places(rows, mask.rows)
        elif kind == "shared":
            passes = np.full(warps.size, 1, np.int64)
        if kind == "global" or kind == "local":
            if kind == "local":
                rows = (np.int64(LOCAL_WINDOW) << WINDOW_BITS) + (
                    (rows // 4 * self.lanes + self._lane_numbers.reshape(-1, WARP)[warps]) * 4
                )
            starts, sectors = distinct_sectors(rows, mask.rows, size, scalar=not places.ndim and kind == "global")
        conflicts = passes - least if kind == "shared" else np.zeros(warps.size, np.int64)
        self.requests.append((place, Request(kind, how, warps, lanes, passes, starts, sectors, conflicts, volatile)))

    def ask_in_bulk(self, place: int, places: Value, sizes: Value, mask: SampleLanes) -> None:
        """Write down what lanes copy from global memory, each so many bytes that follow each other."""
        warps, each = mask.warps, np.ones(mask.warps.size, np.int64)
        begins, sizes = (np.broadcast_to(given, self.lanes).reshape(-1, WARP)[warps] for given in (places, sizes))
        of_warp = [
            np.concatenate([np.arange(at, at + size, _SECTOR) // _SECTOR for at, size in zip(*lanes, strict=True)])
            for lanes in ((begins[row, own], sizes[row, own].astype(np.int64)) for row, own in enumerate(mask.rows))
        ]
        starts = np.concatenate([[0], np.cumsum([sectors.size for sectors in of_warp])]).astype(np.int64)
        sectors = np.concatenate([_NOWHERE, *of_warp])
        request = Request("global", "ld", warps, mask.of_warp[warps], each, starts, sectors, each - 1, True)
        self.requests.append((place, request))


def _changed(mode: str, held: Array, values: list[Array]) -> Array:
    new = values[0]
    match mode:
        case "min":
            return np.minimum(held, new)
        case "max":
            return np.maximum(held, new)
        case "and":
            return np.bitwise_and(held, new)
        case "or":
            return np.bitwise_or(held, new)
        case "xor":
            return np.bitwise_xor(held, new)
        case "exch":
            return new
        case "cas":
            swapped: Array = np.where(held == values[0], values[1], held)
            return swapped
        case "inc":
            raised: Array = np.where(held >= new, held.dtype.type(0), held + held.dtype.type(1))
            return raised
    lowered: Array = np.where((held == 0) | (held > new), new, held - held.dtype.type(1))
    return lowered
