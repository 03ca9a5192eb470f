"""Exact counters per source line: memory traffic, bank conflicts, divergence, contention and operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.counting.traffic import (
    SECTOR_BYTES,
    Warps,
    Wavefronts,
    count_atomic_wavefronts,
    count_queued_sectors,
    count_sectors,
    count_shared_wavefronts,
    find_longest_queues,
    narrow_indices,
)
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access, IssuedStep, Observer

Array = npt.NDArray[Any]
Number = int | float
Line = tuple[str, int]


@dataclass(frozen=True)
class _GlobalNames:
    """The names of the counters of one kind of access to global memory."""

    requests: str
    sectors: str
    transferred_bytes: str
    requested_bytes: str
    distinct_bytes: str
    ideal_sectors: str
    per_request: str
    efficiency: str

    @classmethod
    def from_operation(cls, op: str) -> _GlobalNames:
        return cls(
            f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum",
            f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum",
            f"l1tex__t_bytes_pipe_lsu_mem_global_op_{op}.sum",
            f"global_bytes_asked_op_{op}",
            f"global_bytes_used_op_{op}",
            f"global_ideal_sectors_op_{op}",
            f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio",
            f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct",
        )

    def describe(self, subject: str) -> dict[str, str]:
        return {
            self.requests: f"{subject}: accesses by a warp with at least one active lane",
            self.sectors: f"{subject}: distinct 32-byte sectors, summed over the requests",
            self.transferred_bytes: f"{subject}: bytes of these sectors",
            self.requested_bytes: f"{subject}: bytes accessed by the active lanes",
            self.distinct_bytes: f"{subject}: distinct bytes among them, summed over the requests",
            self.ideal_sectors: f"{subject}: sectors if the bytes used by a request were consecutive",
            self.per_request: f"{subject}: sectors per request",
            self.efficiency: f"{subject}: bytes used in percent of bytes moved",
        }

    def describe_atomics(self, subject: str) -> dict[str, str]:
        return {
            self.requests: f"{subject}: by a warp with at least one active lane",
            self.sectors: f"{subject}: 32-byte sectors; one for each lane in a queue at an address",
            self.transferred_bytes: f"{subject}: bytes of these sectors",
            self.requested_bytes: f"{subject}: bytes accessed by the active lanes",
            self.ideal_sectors: f"{subject}: sectors if the lanes accessed distinct, consecutive addresses",
        }


@dataclass(frozen=True)
class _SharedNames:
    """The names of the counters of one kind of access to shared memory."""

    requests: str
    wavefronts: str
    conflicts: str

    @classmethod
    def from_operation(cls, op: str) -> _SharedNames:
        return cls(
            f"smsp__inst_executed_op_shared_{op}.sum",
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
        )

    def describe(self, subject: str, sharing: str) -> dict[str, str]:
        return {
            self.requests: f"{subject}: accesses by a warp with at least one active lane",
            self.wavefronts: f"{subject}: passes over the 32 banks; {sharing}",
            self.conflicts: f"{subject}: passes beyond the minimum",
        }


_GLOBAL = {"read": _GlobalNames.from_operation("ld"), "write": _GlobalNames.from_operation("st")}
_REDUCTION, _ATOMIC = _GlobalNames.from_operation("red"), _GlobalNames.from_operation("atom")
_SHARED = {
    "read": _SharedNames.from_operation("ld"),
    "write": _SharedNames.from_operation("st"),
    "atomic": _SharedNames.from_operation("atom"),
}

#: The meaning of every counter, by name. Names with two underscores after the first word are those of Nsight Compute,
#: with the same meaning, for the source code as written; a compiler may optimize accesses away.
METRICS: dict[str, str] = {
    "warp_statements": "statements and conditions executed, each once for every warp with an active lane",
    "lane_statements": "statements and conditions executed, each once for every active lane",
    "lanes_per_warp_statement": "active lanes when a warp executes a statement, on average, of 32",
    "operations": "operations on data by all lanes, without the computation of indices and conditions",
    "branches": "conditions of if and of loops tested by a warp",
    "divergent_branches": "branches at which the lanes of the warp diverged",
    **_GLOBAL["read"].describe("global loads"),
    **_GLOBAL["write"].describe("global stores"),
    **_REDUCTION.describe_atomics("global atomics whose result is not used"),
    **_ATOMIC.describe_atomics("global atomics whose result is used"),
    **_SHARED["read"].describe("shared loads", "lanes share a word"),
    **_SHARED["write"].describe("shared stores", "lanes share a word"),
    **_SHARED["atomic"].describe("shared atomics", "lanes queue at a word"),
    "worst_bank_conflict": "the most passes over the banks for lanes that are served together; 1 means no conflict",
    "longest_atomic_queue_global": "the most lanes of a warp that accessed one global address in an atomic",
    "atomic_queues_global": "the longest queue of each global atomic request, summed",
    "longest_atomic_queue_shared": "the most lanes of a warp that accessed one shared address in an atomic",
    "atomic_queues_shared": "the longest queue of each shared atomic request, summed",
    "hottest_atomics_global": "atomics of one launch on the global address with the most",
    "hottest_atomics_shared": "atomics of one block on the shared address with the most",
    "block_barriers": "barriers passed, each once for every block",
    "warp_barriers": "barriers passed, each once for every warp",
    "warp_syncs": "__syncwarp executed by a warp",
    "fences": "__threadfence and its relatives executed by a warp",
}

_MAXIMA = frozenset({"worst_bank_conflict", "longest_atomic_queue_global", "longest_atomic_queue_shared"})
_RATIOS = {"lanes_per_warp_statement": ("lane_statements", "warp_statements", 1)}
for _names in _GLOBAL.values():
    _RATIOS[_names.per_request] = (_names.sectors, _names.requests, 1)
    _RATIOS[_names.efficiency] = (_names.distinct_bytes, _names.transferred_bytes, 100)

# The size of the cache of `Warps` by mask: loops reuse masks.
_CACHED_MASKS = 64


@dataclass(frozen=True)
class HotAddress:
    """The element with the most atomic operations, and their count; in shared memory, within one block."""

    memory: str
    element: int
    count: int


class Counters(Observer):
    """Observer that counts over all launches."""

    def __init__(self) -> None:
        self._lines: defaultdict[Line, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._current: defaultdict[str, int] = defaultdict(int)
        self._warps: dict[int, Warps] = {}
        self._atomics: dict[tuple[FlatMemory, int], Array] = {}
        self._hottest: dict[str, HotAddress] = {}

    def total(self) -> dict[str, Number]:
        """Return all counters of METRICS; ratios with a denominator of 0 are left out."""
        summed: defaultdict[str, int] = defaultdict(int)
        for counts in self._lines.values():
            for name, count in counts.items():
                summed[name] = max(summed[name], count) if name in _MAXIMA else summed[name] + count
        for space, hot in self.hottest().items():
            summed[f"hottest_atomics_{space}"] = hot.count
        return {name: count for name, count in _add_ratios(summed).items() if count is not None}

    def per_line(self) -> dict[Line, dict[str, Number]]:
        """Return the counters of each source line, by file and line number; zeros are left out."""
        return {
            line: {name: count for name, count in _add_ratios(counts).items() if count}
            for line, counts in sorted(self._lines.items())
        }

    def hottest(self) -> dict[str, HotAddress]:
        """Return the address with the most atomic operations in "global" and "shared" memory, if there are any."""
        hottest = dict(self._hottest)
        for (memory, _), counts in self._atomics.items():
            _keep_hotter(hottest, memory, counts)
        return hottest

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self._find_hottest(self._atomics)  # those of a failed launch

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        self._current = line = self._line(step.position)
        line["warp_statements"] += self._get_warps(mask).count
        line["lane_statements"] += mask.count
        line["operations"] += step.operations * mask.count

    def conditional_operand(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        self._line(position)["operations"] += operations * mask.count

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, true_mask: LaneMask | None) -> None:
        line, warps = self._line(position), self._get_warps(mask)
        line["branches"] += warps.count
        if true_mask is not None and true_mask.count < mask.count:
            words = self._get_warps(true_mask).words
            line["divergent_branches"] += int(np.count_nonzero((words != 0) & (words != warps.words)))

    def choose_case(
        self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, entering: Sequence[LaneMask | None]
    ) -> None:
        line, warps = self._line(position), self._get_warps(mask)
        line["branches"] += warps.count
        # A warp diverges if a section, or the statement after the `switch`, gets some of its lanes but not all.
        entered = [self._get_warps(section).words for section in entering if section is not None]
        differs = [(words != 0) & (words != warps.words) for words in entered]
        line["divergent_branches"] += int(np.count_nonzero(np.any(differs, axis=0))) if differs else 0

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        line, warps = self._line(position), self._get_warps(mask)
        line["warp_barriers"] += warps.count
        line["block_barriers"] += int(np.count_nonzero(warps.words.reshape(batch.geometry.blocks, -1).any(axis=1)))

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        # A fence has no position: it belongs to the last statement.
        if name == "__syncwarp":
            self._current["warp_syncs"] += self._get_warps(mask).count
        elif name.startswith("__threadfence"):
            self._current["fences"] += self._get_warps(mask).count

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if not isinstance(memory, FlatMemory) or memory.space not in ("global", "shared"):
            return
        elements = access.element
        if isinstance(elements, np.ndarray):
            elements = narrow_indices(elements, memory.data.size)
        if access.site.action == "atomic":
            self._atomic(batch, access, memory, elements)
        elif memory.space == "global":
            self._global(access, elements)
        else:
            self._shared(access, elements)

    def batch_ends(self, batch: BlockBatch) -> None:
        shared = set(batch.shared.values())
        self._find_hottest([key for key in self._atomics if key[0] in shared])

    def launch_ends(self) -> None:
        self._find_hottest(self._atomics)
        self._warps.clear()

    def _line(self, position: SourcePosition) -> defaultdict[str, int]:
        return self._lines[position.file, position.line]

    def _get_warps(self, mask: LaneMask) -> Warps:
        warps = self._warps.get(id(mask))
        if warps is None:
            if len(self._warps) >= _CACHED_MASKS:
                self._warps.clear()
            warps = self._warps[id(mask)] = Warps(mask)  # keeps the mask alive, so that its id stays unique
        return warps

    def _global(self, access: Access, elements: Any) -> None:
        line, warps, size = self._line(access.site.position), self._get_warps(access.mask), access.size
        names = _GLOBAL[access.site.action]
        moved, distinct, ideal = (int(each.sum()) for each in count_sectors(warps, elements, size))
        line[names.requests] += warps.count
        line[names.sectors] += moved
        line[names.transferred_bytes] += moved * SECTOR_BYTES
        line[names.requested_bytes] += access.mask.count * size
        line[names.distinct_bytes] += distinct * size
        line[names.ideal_sectors] += ideal

    def _shared(self, access: Access, elements: Any) -> None:
        line, warps = self._line(access.site.position), self._get_warps(access.mask)
        passes = count_shared_wavefronts(warps, elements, access.size, reads=access.site.action == "read")
        _add_passes(line, _SHARED[access.site.action], warps, passes)

    def _atomic(self, batch: BlockBatch, access: Access, memory: FlatMemory, elements: Any) -> None:
        line, mask, space, size = self._line(access.site.position), access.mask, memory.space, access.size
        warps = self._get_warps(mask)
        if not isinstance(elements, np.ndarray):
            elements = narrow_indices(np.full(mask.bits.size, elements), memory.data.size)
        rows = warps.rows().gather_marked(elements)
        if space == "global":
            names = _ATOMIC if access.used else _REDUCTION
            queue, warp_sectors = count_queued_sectors(rows, size)
            moved = int(warp_sectors.sum())
            line[names.requests] += warps.count
            line[names.sectors] += moved
            line[names.transferred_bytes] += moved * SECTOR_BYTES
            line[names.requested_bytes] += mask.count * size
            line[names.ideal_sectors] += int(warps.ideal_sectors(size).sum())
        else:
            queue = find_longest_queues(rows)
            _add_passes(line, _SHARED["atomic"], warps, count_atomic_wavefronts(warps, elements, size))
        name = f"longest_atomic_queue_{space}"
        line[name] = max(line[name], int(queue.max()))
        line[f"atomic_queues_{space}"] += int(queue.sum())
        self._count_addresses(batch, access, memory, elements)

    def _count_addresses(self, batch: BlockBatch, access: Access, memory: FlatMemory, elements: Array) -> None:
        """Count the atomic operations on each address."""
        mask = access.mask
        blocks = batch.geometry.blocks if memory.space == "shared" else 1
        per_block = memory.data.size // blocks // access.size
        key = (memory, access.size)
        if key not in self._atomics:
            self._atomics[key] = np.zeros((blocks, per_block), np.int64)
        if blocks > 1:
            elements = elements + batch.geometry.block_of_lane * per_block
        np.add.at(self._atomics[key].ravel(), elements if mask.full else elements.take(mask.lanes), 1)

    def _find_hottest(self, keys: Iterable[tuple[FlatMemory, int]]) -> None:
        """Replace the counts of some memories by the address with the most atomic operations."""
        for key in list(keys):
            _keep_hotter(self._hottest, key[0], self._atomics.pop(key))


def _keep_hotter(hottest: dict[str, HotAddress], memory: FlatMemory, counts: Array) -> None:
    """Update `hottest` with the address of a memory that has the most atomic operations."""
    index = int(counts.argmax())
    hot = HotAddress(memory.name, index % counts.shape[1], int(counts.flat[index]))
    previous = hottest.get(memory.space)
    if previous is None or hot.count > previous.count:
        hottest[memory.space] = hot


def _add_passes(line: defaultdict[str, int], names: _SharedNames, warps: Warps, passes: Wavefronts) -> None:
    line[names.requests] += warps.count
    total = int(passes.total.sum())
    line[names.wavefronts] += total
    line[names.conflicts] += total - int(passes.minimum.sum())
    line["worst_bank_conflict"] = max(line["worst_bank_conflict"], int(passes.maximum.max()))


def _add_ratios(counts: defaultdict[str, int]) -> dict[str, Number | None]:
    """Return a value for each name of METRICS in order; None for a ratio with a denominator of 0."""
    values: dict[str, Number | None] = {}
    for name in METRICS:
        if name in _RATIOS:
            numerator, denominator, scale = _RATIOS[name]
            values[name] = scale * counts.get(numerator, 0) / counts[denominator] if counts.get(denominator) else None
        else:
            values[name] = counts.get(name, 0)
    return values
