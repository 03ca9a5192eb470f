"""Counts what a launch does: memory traffic, bank conflicts, divergence, contention and work, exact, by source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.counting.traffic import (
    SECTOR_BYTES,
    Passes,
    Warps,
    atomic_passes,
    narrow,
    queued_sectors,
    queues,
    sectors,
    shared_passes,
)
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.observe import Access, IssuedStep, Observer

Array = npt.NDArray[Any]
Number = int | float
Line = tuple[str, int]


@dataclass(frozen=True)
class _GlobalNames:
    """What is counted of one kind of access to global memory."""

    requests: str
    sectors: str
    moved: str
    asked: str
    used: str
    ideal: str
    per_request: str
    efficiency: str

    @classmethod
    def of(cls, op: str) -> _GlobalNames:
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

    def meanings(self, who: str) -> dict[str, str]:
        return {
            self.requests: f"{who}: accesses by a warp with at least one active lane",
            self.sectors: f"{who}: different 32-byte sectors, summed over the requests",
            self.moved: f"{who}: bytes of these sectors",
            self.asked: f"{who}: bytes that the active lanes want",
            self.used: f"{who}: different bytes among them, summed over the requests",
            self.ideal: f"{who}: sectors if the bytes used by a request lay side by side",
            self.per_request: f"{who}: sectors a request",
            self.efficiency: f"{who}: bytes used in percent of bytes moved",
        }

    def meanings_of_atomics(self, who: str) -> dict[str, str]:
        return {
            self.requests: f"{who}: by a warp with at least one active lane",
            self.sectors: f"{who}: 32-byte sectors; one for each lane of a queue at an address",
            self.moved: f"{who}: bytes of these sectors",
            self.asked: f"{who}: bytes that the active lanes want",
            self.ideal: f"{who}: sectors if each lane had an address of its own, side by side",
        }


@dataclass(frozen=True)
class _SharedNames:
    """What is counted of one kind of access to shared memory."""

    requests: str
    wavefronts: str
    conflicts: str

    @classmethod
    def of(cls, op: str) -> _SharedNames:
        return cls(
            f"smsp__inst_executed_op_shared_{op}.sum",
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
        )

    def meanings(self, who: str, shared: str) -> dict[str, str]:
        return {
            self.requests: f"{who}: accesses by a warp with at least one active lane",
            self.wavefronts: f"{who}: passes over the 32 banks; {shared}",
            self.conflicts: f"{who}: passes beyond the least possible",
        }


_GLOBAL = {"read": _GlobalNames.of("ld"), "write": _GlobalNames.of("st")}
_REDUCTION, _ATOMIC = _GlobalNames.of("red"), _GlobalNames.of("atom")
_SHARED = {"read": _SharedNames.of("ld"), "write": _SharedNames.of("st"), "atomic": _SharedNames.of("atom")}

#: Every name that `Counters` gives, and what it means. A name with two underscores after its first word is Nsight
#: Compute's and means what it means there, for the code as it is written; a compiler may do with fewer accesses.
METRICS: dict[str, str] = {
    "warp_statements": "statements and conditions executed, each once for every warp with an active lane",
    "lane_statements": "statements and conditions executed, each once for every active lane",
    "lanes_per_warp_statement": "active lanes when a warp executes a statement, on average, of 32",
    "operations": "operations on data by all lanes; what leads to indices or conditions only is left out",
    "branches": "conditions of if and of loops tested by a warp",
    "divergent_branches": "those where some lanes of the warp went one way and some the other",
    **_GLOBAL["read"].meanings("global loads"),
    **_GLOBAL["write"].meanings("global stores"),
    **_REDUCTION.meanings_of_atomics("global atomics whose result is not used"),
    **_ATOMIC.meanings_of_atomics("global atomics whose result is used"),
    **_SHARED["read"].meanings("shared loads", "lanes share a word"),
    **_SHARED["write"].meanings("shared stores", "lanes share a word"),
    **_SHARED["atomic"].meanings("shared atomics", "lanes queue at a word"),
    "worst_bank_conflict": "the most passes over the banks for lanes that are served together; 1 is no conflict",
    "longest_atomic_queue_global": "the most lanes of a warp that wanted one global address in an atomic",
    "atomic_queues_global": "the longest queue of each global atomic request, summed",
    "longest_atomic_queue_shared": "the most lanes of a warp that wanted one shared address in an atomic",
    "atomic_queues_shared": "the longest queue of each shared atomic request, summed",
    "hottest_atomics_global": "atomics of one launch on the global address that had the most",
    "hottest_atomics_shared": "atomics of one block on the shared address that had the most",
    "block_barriers": "barriers passed, each once for every block",
    "warp_barriers": "barriers passed, each once for every warp",
    "warp_syncs": "__syncwarp executed by a warp",
    "fences": "__threadfence and its relatives executed by a warp",
}

_MAXIMA = frozenset({"worst_bank_conflict", "longest_atomic_queue_global", "longest_atomic_queue_shared"})
_RATIOS = {"lanes_per_warp_statement": ("lane_statements", "warp_statements", 1)}
for _names in _GLOBAL.values():
    _RATIOS[_names.per_request] = (_names.sectors, _names.requests, 1)
    _RATIOS[_names.efficiency] = (_names.used, _names.moved, 100)

# Masks live on in loops; so many are remembered before all are worked out anew.
_REMEMBERED_MASKS = 64


@dataclass(frozen=True)
class HotAddress:
    """The element of a memory that had the most atomics, `count` of them; in shared memory, those of one block."""

    memory: str
    element: int
    count: int


class Counters(Observer):
    """Counts over all launches that it observes."""

    def __init__(self) -> None:
        self._lines: defaultdict[Line, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._current: defaultdict[str, int] = defaultdict(int)
        self._warps: dict[int, Warps] = {}
        self._atomics: dict[tuple[FlatMemory, int], Array] = {}
        self._hottest: dict[str, HotAddress] = {}

    def total(self) -> dict[str, Number]:
        """Return every count of METRICS, 0 where nothing of the kind happened; ratios of nothing are left out."""
        summed: defaultdict[str, int] = defaultdict(int)
        for counts in self._lines.values():
            for name, count in counts.items():
                summed[name] = max(summed[name], count) if name in _MAXIMA else summed[name] + count
        for space, hot in self.hottest().items():
            summed[f"hottest_atomics_{space}"] = hot.count
        return {name: count for name, count in _with_ratios(summed).items() if count is not None}

    def per_line(self) -> dict[Line, dict[str, Number]]:
        """Return the counts of each source line, by its file and number; what is 0 is left out."""
        return {
            line: {name: count for name, count in _with_ratios(counts).items() if count}
            for line, counts in sorted(self._lines.items())
        }

    def hottest(self) -> dict[str, HotAddress]:
        """Return which address had the most atomics, of "global" and of "shared" memory, where there were any."""
        hottest = dict(self._hottest)
        for (memory, _), counts in self._atomics.items():
            _keep_hotter(hottest, memory, counts)
        return hottest

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self._settle(self._atomics)  # of a launch that failed

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        self._current = line = self._line(step.position)
        line["warp_statements"] += self._of(mask).count
        line["lane_statements"] += mask.count
        line["operations"] += step.operations * mask.count

    def side(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        self._line(position)["operations"] += operations * mask.count

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, taken: LaneMask | None) -> None:
        line, warps = self._line(position), self._of(mask)
        line["branches"] += warps.count
        if taken is not None and taken.count < mask.count:
            words = self._of(taken).words
            line["divergent_branches"] += int(np.count_nonzero((words != 0) & (words != warps.words)))

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        line, warps = self._line(position), self._of(mask)
        line["warp_barriers"] += warps.count
        line["block_barriers"] += int(np.count_nonzero(warps.words.reshape(batch.geometry.blocks, -1).any(axis=1)))

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, named: Any = None) -> None:
        # A fence is told without its place: it is part of the statement that was told last.
        if name == "__syncwarp":
            self._current["warp_syncs"] += self._of(mask).count
        elif name.startswith("__threadfence"):
            self._current["fences"] += self._of(mask).count

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if not isinstance(memory, FlatMemory) or memory.space not in ("global", "shared"):
            return
        elements = access.element
        if isinstance(elements, np.ndarray):
            elements = narrow(elements, memory.data.size)
        if access.site.action == "atomic":
            self._atomic(batch, access, memory, elements)
        elif memory.space == "global":
            self._global(access, elements)
        else:
            self._shared(access, elements)

    def batch_ends(self, batch: BlockBatch) -> None:
        ours = set(batch.shared.values())
        self._settle([key for key in self._atomics if key[0] in ours])

    def launch_ends(self) -> None:
        self._settle(self._atomics)
        self._warps.clear()

    def _line(self, position: SourcePosition) -> defaultdict[str, int]:
        return self._lines[position.file, position.line]

    def _of(self, mask: LaneMask) -> Warps:
        known = self._warps.get(id(mask))
        if known is None:
            if len(self._warps) >= _REMEMBERED_MASKS:
                self._warps.clear()
            known = self._warps[id(mask)] = Warps(mask)  # which keeps the mask, and so its id, alive
        return known

    def _global(self, access: Access, elements: Any) -> None:
        line, warps, size = self._line(access.site.position), self._of(access.mask), access.size
        names = _GLOBAL[access.site.action]
        moved, different, ideal = (int(each.sum()) for each in sectors(warps, elements, size))
        line[names.requests] += warps.count
        line[names.sectors] += moved
        line[names.moved] += moved * SECTOR_BYTES
        line[names.asked] += access.mask.count * size
        line[names.used] += different * size
        line[names.ideal] += ideal

    def _shared(self, access: Access, elements: Any) -> None:
        line, warps = self._line(access.site.position), self._of(access.mask)
        passes = shared_passes(warps, elements, access.size, reads=access.site.action == "read")
        _add_passes(line, _SHARED[access.site.action], warps, passes)

    def _atomic(self, batch: BlockBatch, access: Access, memory: FlatMemory, elements: Any) -> None:
        line, mask, space, size = self._line(access.site.position), access.mask, memory.space, access.size
        warps = self._of(mask)
        if not isinstance(elements, np.ndarray):
            elements = narrow(np.full(mask.bits.size, elements), memory.data.size)
        rows = warps.rows().marked(elements)
        if space == "global":
            names = _ATOMIC if access.used else _REDUCTION
            queue, sectors_of = queued_sectors(rows, size)
            moved = int(sectors_of.sum())
            line[names.requests] += warps.count
            line[names.sectors] += moved
            line[names.moved] += moved * SECTOR_BYTES
            line[names.asked] += mask.count * size
            line[names.ideal] += int(warps.ideal_sectors(size).sum())
        else:
            queue = queues(rows)
            _add_passes(line, _SHARED["atomic"], warps, atomic_passes(warps, elements, size))
        name = f"longest_atomic_queue_{space}"
        line[name] = max(line[name], int(queue.max()))
        line[f"atomic_queues_{space}"] += int(queue.sum())
        self._heat(batch, access, memory, elements)

    def _heat(self, batch: BlockBatch, access: Access, memory: FlatMemory, elements: Array) -> None:
        """Count the atomics of each address."""
        mask = access.mask
        blocks = batch.geometry.blocks if memory.space == "shared" else 1
        per_block = memory.data.size // blocks // access.size
        key = (memory, access.size)
        if key not in self._atomics:
            self._atomics[key] = np.zeros((blocks, per_block), np.int64)
        if blocks > 1:
            elements = elements + batch.geometry.block_of_lane * per_block
        _count(self._atomics[key].ravel(), elements if mask.full else elements.take(mask.lanes))

    def _settle(self, keys: Iterable[tuple[FlatMemory, int]]) -> None:
        """Keep of some memories' atomics no more than which address had the most."""
        for key in list(keys):
            _keep_hotter(self._hottest, key[0], self._atomics.pop(key))


def _keep_hotter(hottest: dict[str, HotAddress], memory: FlatMemory, counts: Array) -> None:
    """Let a memory's address with the most atomics take the place of a lesser one."""
    place = int(counts.argmax())
    hot = HotAddress(memory.name, place % counts.shape[1], int(counts.flat[place]))
    before = hottest.get(memory.space)
    if before is None or hot.count > before.count:
        hottest[memory.space] = hot


def _add_passes(line: defaultdict[str, int], names: _SharedNames, warps: Warps, passes: Passes) -> None:
    line[names.requests] += warps.count
    total = int(passes.total.sum())
    line[names.wavefronts] += total
    line[names.conflicts] += total - int(passes.least.sum())
    line["worst_bank_conflict"] = max(line["worst_bank_conflict"], int(passes.worst.max()))


def _count(counts: Array, places: Array) -> None:
    """Add one at each of the places, some of which may be the same."""
    if counts.size <= 4 * places.size:
        counts += np.bincount(places, minlength=counts.size)
    else:
        np.add.at(counts, places, 1)


def _with_ratios(counts: defaultdict[str, int]) -> dict[str, Number | None]:
    """Return a value for each name of METRICS, in their order; None for a ratio of nothing."""
    values: dict[str, Number | None] = {}
    for name in METRICS:
        if name in _RATIOS:
            above, below, scale = _RATIOS[name]
            values[name] = scale * counts.get(above, 0) / counts[below] if counts.get(below) else None
        else:
            values[name] = counts.get(name, 0)
    return values
