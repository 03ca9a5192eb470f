"""The sampled blocks of a launch, with their cache behavior."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.timing import caches, multiprocessor, unrolling
from gpu.timing.caches import CachedRequest, GridSharing
from gpu.timing.gpus import GpuDescription
from gpu.timing.occupancy import Occupancy, compute_occupancy
from gpu.timing.ptx.analysis.load_chains import compute_load_depths
from gpu.timing.ptx.analysis.sunk_loops import find_sunk_loops, move_to_readers
from gpu.timing.ptx.census import GridCensus
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import LOCAL_WINDOW, SampledMemory
from gpu.timing.ptx.path import MemoryRequest, SampledPath
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.ptx.values import multiply_wrapped
from gpu.timing.sampling.blocks import (
    MAXIMUM_LANES,
    add_neighbors,
    choose_sample_blocks,
    choose_spread_blocks,
    select_by_work,
)
from gpu.timing.sampling.traffic import TrafficModel, compute_memory_shares

Array = npt.NDArray[Any]

_SECTOR = 32
_REGION_SHIFT = 4  # in sectors: atomic operations on the same 512 bytes are serialized
_FLOAT_SUM = 2.4
"""The time of an atomic float sum relative to an integer sum, both of one word. Measured on an H200 and an H100; sums
of different words of a line take as long for both."""
_DOUBLE_SUM = 1.5
"""The time of sums of float64 at several words of a sector relative to other sums. Measured on an H200."""
_DEPENDENT_SUM = 1.5
"""The time of lanes' atomic sums of one word if the sum before, by another warp, was of the same sector, relative to
other sums; for floats `_FLOAT_SUM` times that. From the sums of one word, and of words at random, on an H200."""
_CENSUS_LIMITS, _DIFFERENCE_RATIO = ((1 << 16, 1.2, 600), (1 << 19, 2.0, 600), (1 << 24, 2.0, 40)), 2.0
"""Limits of the census, tried in turn: lanes (a part of the grid), the ratio of the longest warp's work to the mean of
the blocks' longest warps above which the next, larger part is counted, and visits of basic blocks, without predicted
iterations. Last: the ratio from which blocks count as different."""
_SPREAD_LIMITS, _EVEN_TOLERANCE = ((10, 2560), (80, 20480)), 0.05
"""The most blocks, and lanes, that are sampled all over the grid to detect differences: few at first, then more if they
differ. Last: the relative difference that counts as none."""
_MAXIMUM_COMPANION_LANES = 1 << 23
"""The most lanes of blocks that execute beside sampled ones for what they store."""
_STORE_LINE = 4.0
"""Cycles in which a multiprocessor sends a line, or a part of one, to L2."""
_CROWDING_NS, _TURNAROUND_NS = 55.0, 850.0
"""The latency that DRAM's load adds; and what reads and writes add, in proportion to the time that a copy loses by
turning around. Measured on an H200: at 60% of the rate, loads take 85 cycles longer, those of copies 250."""


@dataclass(frozen=True, eq=False)
class _GridWork:
    """The work of blocks that differ.

    Parameters
    ----------
    blocks : array
        The counted blocks.
    work : array
        The issue slots of each block.
    longest : int
        The block with the longest warp.
    """

    blocks: Array
    work: Array
    longest: int


@dataclass(frozen=True, eq=False)
class LongestBlock:
    """The block that may still run after all others, and the share of the grid that starts before it."""

    path: SampledPath
    start_share: float


@dataclass(frozen=True, eq=False)
class LaunchSample:
    """The sampled blocks of one multiprocessor, with their cache behavior.

    Parameters
    ----------
    shape : GridShape
    code : MachineCode
        The kernel's operations.
    occupancy : Occupancy
    resident_blocks, blocks_per_multiprocessor : int
        The resident blocks of this launch, and its blocks per multiprocessor in total.
    path : SampledPath
    grid_path : SampledPath or None
        The path of blocks all over the grid, if blocks differ.
    blocks_per_sample : float
        The number of the grid's blocks that each of those represents.
    work_ratio : float
        The mean work of all blocks relative to that of the sample.
    longest : LongestBlock or None
        The block with the longest warp, if blocks differ and the census could count them.
    edge_paths : sequence of SampledPath
        The grid's first block, its last block, and the longest of the blocks all over the grid, if all run at once and
        these differ from the sample: the launch waits for them.
    last_block_paths : tuple of SampledPath
        The path of the first block if it were the last to finish, as it would learn from a ticket counter, and its
        usual path; empty if both are the same.
    traffic : LaunchTraffic
    memory : MemoryBehavior
    busiest_address_us, atomic_us : float
        The time of atomic operations at the busiest address, and of all of them.
    """

    shape: GridShape
    code: multiprocessor.MachineCode
    occupancy: Occupancy
    resident_blocks: int
    blocks_per_multiprocessor: int
    path: SampledPath
    grid_path: SampledPath | None
    blocks_per_sample: float
    work_ratio: float
    longest: LongestBlock | None
    edge_paths: Sequence[SampledPath]
    last_block_paths: Sequence[SampledPath]
    traffic: caches.LaunchTraffic
    memory: multiprocessor.MemoryBehavior
    busiest_address_us: float
    atomic_us: float


@dataclass(frozen=True, eq=False)
class _SampledBlocks:
    """The sampled blocks; fields as of `LaunchSample`."""

    path: SampledPath
    sharing: GridSharing
    grid_path: SampledPath | None = None
    blocks_per_sample: float = 1.0
    work_ratio: float = 1.0
    longest: LongestBlock | None = None


class LaunchSampler:
    """Samples launches of a kernel on a GPU.

    Parameters
    ----------
    machine : PtxMachine
    gpu : GpuDescription
    registers : int
        Registers per thread.
    indexed_lines : collection of int, optional
        As of `CostTable`.

    Attributes
    ----------
    kernel : PtxKernel
        The kernel with unrolled loops.
    code : MachineCode
        Its operations.
    """

    def __init__(
        self, machine: PtxMachine, gpu: GpuDescription, registers: int, indexed_lines: Container[int] | None = None
    ) -> None:
        self._machine, self._gpu, self._registers = machine, gpu, registers
        self.kernel, self._unrolled_blocks = unrolling.unroll_loops(machine.kernel)
        self.code = multiprocessor.build_machine_code(self.kernel, gpu, indexed_lines)
        blocks = machine.kernel.blocks
        self._sunk_loops = find_sunk_loops(machine.kernel)
        self._load_depths = [compute_load_depths(block) for block in self.kernel.blocks]
        self._census = GridCensus(machine.kernel, machine.addresses, self.code.slots_of_block[: len(blocks)])
        # Blocks that follow each other's links share the work.
        self._depends_on_data = not machine.has_link_loops and any(
            instruction.opcode == "bra" and instruction.guard for block in blocks for instruction in block.instructions
        )

    def take_sample(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> LaunchSample:
        """Sample the blocks of one multiprocessor and simulate their caches; the memory is unchanged afterwards.

        Parameters
        ----------
        shape : GridShape
        parameters : array
            The kernel's parameter buffer: uint8.
        memory : SampledMemory
            The memory of its pointers.
        """

        def find_size(window: int) -> int | None:
            return WARP * self._machine.kernel.local_bytes if window == LOCAL_WINDOW else memory.find_size(window)

        gpu = self._gpu
        shared_bytes = self._machine.kernel.shared_bytes + shape.shared_bytes
        occupancy = compute_occupancy(gpu, shape.threads, self._registers, shared_bytes)
        per_machine = -(-shape.blocks // gpu.multiprocessors)
        slots = max(1, min(occupancy.blocks, per_machine, MAXIMUM_LANES // (shape.warps * WARP) or 1))
        first = self._choose_blocks(shape, parameters, memory, slots, occupancy)
        chosen = self._choose_later_blocks(first, shape, parameters, memory, slots, occupancy)
        path, grid_path = chosen.path, chosen.grid_path
        cached = self.simulate_l1_cache(path, shape, slots, slots)
        traffic = TrafficModel(
            gpu, shape, path, slots * shape.warps, cached, chosen.sharing, grid_path, chosen.blocks_per_sample,
            find_size,
        ).compute_traffic()  # fmt: skip
        # A multiprocessor with more blocks than others gets a larger share of common resources.
        active = shape.blocks / per_machine
        rates = self.compute_rates(active, traffic.mixture)
        shares = compute_memory_shares(path, traffic, rates.unpaired_cost)
        atomic_cycles, hot_us, atomic_us = self.compute_atomic_costs(
            path, slots, shape.warps, shape.blocks / slots, active
        )
        if chosen is not first:  # the blocks that start first find the words as they are before the launch
            _, *first_us = self.compute_atomic_costs(first.path, slots, shape.warps, shape.blocks / slots, active)
            share = first.sharing.concurrent_blocks / shape.blocks
            hot_us, atomic_us = (
                (1 - share) * us + share * more for us, more in zip((hot_us, atomic_us), first_us, strict=True)
            )
        edge_paths: list[SampledPath] = []
        if slots < shape.blocks and per_machine <= occupancy.blocks and self._depends_on_data:
            edge_paths = self._sample_edge_blocks(shape, parameters, memory, chosen, slots)
        last = self._sample_last_block(shape, parameters, path, memory)
        return LaunchSample(
            shape, self.code, occupancy, slots, per_machine, path, grid_path, chosen.blocks_per_sample,
            chosen.work_ratio, chosen.longest, edge_paths, last, traffic,
            multiprocessor.MemoryBehavior(cached, shares, atomic_cycles, rates), chosen.work_ratio * hot_us,
            chosen.work_ratio * atomic_us,
        )  # fmt: skip

    def _choose_blocks(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, slots: int, occupancy: Occupancy
    ) -> _SampledBlocks:
        """Sample the blocks of a multiprocessor; if blocks differ, choose them so that they represent all blocks."""
        sampled_blocks, sharing = choose_sample_blocks(shape, self._gpu, slots, max(occupancy.blocks, 1))
        path = self._sample_path(shape, parameters, sampled_blocks, memory)
        if not (shape.blocks > 2 * slots and self._depends_on_data):
            return _SampledBlocks(path, sharing)
        grid_path = self._sample_grid(shape, parameters, memory, float(self._count_issue_slots(path, slots).mean()))
        counted_grid = self._count_grid_work(shape, parameters, memory)
        if grid_path is None and counted_grid is not None:
            grid_path = self._sample_path(shape, parameters, choose_spread_blocks(shape, *_SPREAD_LIMITS[-1]), memory)
        if grid_path is None:
            return _SampledBlocks(path, sharing)
        longest, blocks_per_sample = None, shape.blocks / len(grid_path.blocks)
        blocks, work = np.asarray(grid_path.blocks), self._count_issue_slots(grid_path, len(grid_path.blocks))
        if counted_grid is not None:
            blocks, work = counted_grid.blocks, counted_grid.work
            sample_work = self._census.count_issue_slots(shape, parameters, grid_path.blocks, memory)
            assert sample_work is not None
            blocks_per_sample *= float(work.mean() / sample_work.sum(axis=1).mean())
            longest_path = self._sample_path(shape, parameters, [counted_grid.longest], memory)
            longest = LongestBlock(longest_path, counted_grid.longest / shape.blocks)
        indices = select_by_work(work, slots)
        sampled_blocks, sharing = add_neighbors(blocks[indices].tolist(), shape, sharing.concurrent_blocks)
        path = self._sample_path(shape, parameters, sampled_blocks, memory)
        work_ratio = float(work.mean()) / max(float(work[indices].mean()), 1.0)
        return _SampledBlocks(path, sharing, grid_path, blocks_per_sample, work_ratio, longest)

    def _choose_later_blocks(
        self,
        first: _SampledBlocks,
        shape: GridShape,
        parameters: Array,
        memory: SampledMemory,
        slots: int,
        occupancy: Occupancy,
    ) -> _SampledBlocks:
        """Sample blocks that start after others have replaced words of global memory, such as a running minimum.

        Return `first`, the blocks that find the words as they are before the launch, if later ones would execute as
        many atomic operations.
        """
        if not first.path.replaced_words or shape.blocks <= first.sharing.concurrent_blocks:
            return first
        words = [(np.array([address]), dtype) for address, dtype in first.path.replaced_words.items()]
        try:
            self._machine.run(shape, parameters, choose_spread_blocks(shape, *_SPREAD_LIMITS[-1]), memory)
            values = [memory.load(word, dtype) for word, dtype in words]
        finally:
            memory.restore()
        try:
            for (word, dtype), value in zip(words, values, strict=True):
                memory.preset(word, value, dtype)
            later = self._choose_blocks(shape, parameters, memory, slots, occupancy)
        finally:
            memory.remove_presets()
        return later if _count_atomic_lanes(later.path) < _count_atomic_lanes(first.path) else first

    def _sample_edge_blocks(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, chosen: _SampledBlocks, slots: int
    ) -> list[SampledPath]:
        """Return the paths of the grid's first, last and longest block that differ from the sample."""
        usual_work = self._count_issue_slots(chosen.path, slots)
        candidates = [0, shape.blocks - 1]
        if (grid_path := chosen.grid_path) is not None:
            candidates.append(grid_path.blocks[int(self._count_issue_slots(grid_path, len(grid_path.blocks)).argmax())])
        paths = [self._sample_path(shape, parameters, [block], memory) for block in dict.fromkeys(candidates)]
        return [path for path in paths if self._count_issue_slots(path, 1)[0] not in usual_work]

    def _sample_last_block(
        self, shape: GridShape, parameters: Array, path: SampledPath, memory: SampledMemory
    ) -> Sequence[SampledPath]:
        """Return the first block's path with the last ticket, and its usual path; empty if they are the same."""
        if not path.tickets or self._machine.has_spin_loops:  # the last block of such a kernel has little work left
            return ()
        for address, (dtype, increment) in path.tickets.items():
            word = np.array([address])
            memory.store(word, memory.load(word, dtype) + multiply_wrapped(shape.blocks - 1, increment, dtype), dtype)
        last = self._sample_path(shape, parameters, path.blocks[:1], memory)
        visited_blocks = (
            {visit.block for visit, _ in caches.iterate_visits(increment.steps)} for increment in (last, path)
        )
        return (
            (last, self._sample_path(shape, parameters, path.blocks[:1], memory))
            if next(visited_blocks) - next(visited_blocks)
            else ()
        )

    def simulate_l1_cache(
        self, path: SampledPath, shape: GridShape, blocks: int, slots: int
    ) -> dict[int, CachedRequest]:
        """Simulate the L1 cache of a multiprocessor with a number of resident blocks, and its share of L2."""
        gpu, shared_bytes = self._gpu, self._machine.kernel.shared_bytes + shape.shared_bytes
        size = caches.compute_l1_bytes(gpu, slots * (shared_bytes + gpu.shared_reserved_bytes) if shared_bytes else 0)
        far_size = gpu.last_cache_bytes // min(shape.blocks, gpu.multiprocessors)
        depths = self._load_depths.__getitem__
        return caches.simulate_l1_cache(path.steps, blocks * shape.warps, size, far_size, depths)

    def compute_rates(self, active: float, mixture: float) -> multiprocessor.SharedRates:
        """Return one multiprocessor's share of common resources.

        Parameters
        ----------
        active : float
            The number of multiprocessors, equally busy.
        mixture : float
            How mixed DRAM's reads and writes are, as `LaunchTraffic.mixture`.
        """
        gpu, clock = self._gpu, self._gpu.clock_ghz
        l2_rate = min(gpu.last_cache_gb_s / active, gpu.last_cache_mp_gb_s)
        return multiprocessor.SharedRates(
            _SECTOR * clock / l2_rate,
            _SECTOR * clock / min(gpu.memory_gb_s / active, gpu.memory_mp_gb_s),
            _STORE_LINE,
            gpu.block_ns * clock * gpu.multiprocessors,
            l2_rate / min(gpu.last_cache_random_gb_s / active, l2_rate) - 1,
            _SECTOR * clock / gpu.memory_mp_gb_s,
            clock * (_CROWDING_NS + _TURNAROUND_NS * (gpu.memory_gb_s / gpu.copy_gb_s - 1) * mixture),
        )

    def _count_grid_work(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> _GridWork | None:
        """Count the blocks' work; return None if all warps have similar work, or if it cannot be predicted."""
        counted_grid = None
        for maximum_lanes, ratio_limit, visits in _CENSUS_LIMITS:
            stride = max(1, -(-shape.blocks * shape.warps * WARP // maximum_lanes))
            blocks = np.arange(0, shape.blocks, stride)
            work = self._census.count_issue_slots(shape, parameters, blocks.tolist(), memory, visits)
            if work is None:
                break
            longest = work.max(axis=1)
            ratio = float(longest.max() / longest.mean())
            counted_grid = (
                _GridWork(blocks, work.sum(axis=1), int(blocks[longest.argmax()]))
                if ratio > _DIFFERENCE_RATIO
                else None
            )
            if stride == 1 or ratio <= ratio_limit:
                break
        return counted_grid

    def _sample_path(
        self, shape: GridShape, parameters: Array, blocks: Sequence[int], memory: SampledMemory
    ) -> SampledPath:
        try:
            path = self._machine.run(shape, parameters, blocks, memory, self._choose_companions(shape, blocks))
        finally:
            memory.restore()
        move_to_readers(path, self._machine.kernel, self._sunk_loops)
        return unrolling.merge_unrolled_visits(path, self._machine.kernel, self._unrolled_blocks)

    def _choose_companions(self, shape: GridShape, blocks: Sequence[int]) -> Sequence[int]:
        """Return the other blocks of the grid if sampled blocks follow links that these store."""
        if not self._machine.has_link_loops:
            return ()
        sampled, maximum_blocks = set(blocks), max(1, _MAXIMUM_COMPANION_LANES // (shape.warps * WARP))
        return [block for block in choose_spread_blocks(shape, maximum_blocks, 1 << 62) if block not in sampled]

    def _sample_grid(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, usual_work: float
    ) -> SampledPath | None:
        """Return the path of blocks all over the grid; None if they issue as much as `usual_work`."""
        grid_path = None
        for maximum_blocks, lanes in _SPREAD_LIMITS:
            blocks = choose_spread_blocks(shape, maximum_blocks, lanes)
            grid_path = self._sample_path(shape, parameters, blocks, memory)
            work = self._count_issue_slots(grid_path, len(blocks))
            if (
                abs(float(work.mean()) - usual_work) <= _EVEN_TOLERANCE * usual_work
                and abs(float(work[0]) - usual_work) <= usual_work
            ):
                return None
        return grid_path

    def _count_issue_slots(self, path: SampledPath, blocks: int) -> Array:
        """Return the number of instructions of each of a path's first blocks."""
        slots = np.zeros(blocks)
        for visit, times in caches.iterate_visits(path.steps):
            active_lanes = visit.lanes[: blocks * path.warps_per_block].reshape(blocks, -1)
            slots += times * float(self.code.slots_of_block[visit.block]) * np.count_nonzero(active_lanes, axis=1)
        return slots

    def compute_atomic_costs(
        self, path: SampledPath, slots: int, width: int, scale: float, active: float
    ) -> tuple[dict[int, Array], float, float]:
        """Return each request's atomic cost per warp, the time of the busiest address, and the time of all together."""
        gpu = self._gpu
        costs: dict[int, Array] = {}
        sectors: list[Array] = []
        loads: list[Array] = []
        float_loads: list[Array] = []
        blocks: list[Array] = []
        atomic_ns = 0.0
        for visit, times in caches.iterate_visits(path.steps):
            for instruction_index, request in zip(visit.instruction_indices, visit.requests, strict=True):
                if request.kind not in ("atom", "red") or request.space != "global":
                    continue
                counts, passes = request.counts, request.passes
                # Lanes on one word are serialized; the words of a line are processed at once.
                lines = multiprocessor.count_lines(request, request.warps.size)
                turns = np.where(passes > 1, np.minimum(request.lanes, passes * lines), 0.0)
                float_sum = _FLOAT_SUM if self._is_float(visit.block, instruction_index) else 1.0
                turns[_share_sectors_with_next(request)] *= _DEPENDENT_SUM * float_sum
                is_double = self.kernel.blocks[visit.block].instructions[instruction_index].type == "f64"
                shared = np.where((request.lanes > counts) & is_double, _DOUBLE_SUM, 1.0)
                nanoseconds = np.maximum(counts * shared * gpu.atomic_ns, turns * gpu.atomic_lane_ns)
                costs[id(request)] = np.maximum(nanoseconds * gpu.clock_ghz * active, 1.0)
                atomic_ns += times * float(nanoseconds[request.warps < slots * width].sum())
                # Lanes on one word are serialized; other words of a sector are processed together.
                assert request.contention is not None
                queue = request.contention * np.repeat(shared, counts) * float(times)
                sectors.append(request.sectors)
                loads.append(queue)
                float_loads.append(queue * float_sum)
                blocks.append(np.repeat(request.warps, counts) // width)
        if not sectors:
            return costs, 0.0, 0.0
        all_sectors, sector_blocks = np.concatenate(sectors), np.concatenate(blocks)
        # Neighbors may share an address that other blocks do not use; distant blocks show what all blocks share.
        sampled = slots if slots > 1 else len(path.blocks)
        is_sampled = sector_blocks < sampled

        def find_hottest(places: Array, amounts: list[Array]) -> float:
            """Return the greatest sum of a place that at least half of the blocks use; 0 if there is none."""
            unique, index = np.unique(places[is_sampled], return_inverse=True)
            sums = np.bincount(index, np.concatenate(amounts)[is_sampled], minlength=unique.size)
            pairs = np.unique(np.stack([index, sector_blocks[is_sampled]], axis=1), axis=0)
            block_counts = np.bincount(pairs[:, 0], minlength=unique.size)
            common = block_counts >= max(2 if sampled > 1 else 1, sampled / 2)
            if not common.any():
                return 0.0
            # The greatest of equal places exceeds their mean, as there are few samples.
            events = np.bincount(index, minlength=unique.size)
            excess = sums.sum() / events.sum() * math.sqrt(2 * events.mean() * math.log(unique.size))
            return float(max(min(sums.mean(), sums[common].max()), sums[common].max() - excess))

        # Float sums take longer only one after the other on a word.
        hottest = max(find_hottest(all_sectors >> _REGION_SHIFT, loads), find_hottest(all_sectors, float_loads))
        hot_us = hottest / sampled * scale * slots * gpu.atomic_same_ns / 1e3
        return costs, hot_us, atomic_ns * scale / 1e3

    def _is_float(self, block: int, instruction: int) -> bool:
        return self.kernel.blocks[block].instructions[instruction].type.startswith("f")


def _share_sectors_with_next(request: MemoryRequest) -> Array:
    """Return for each warp of a request whether it uses a sector that the next or the previous warp uses, too."""
    first, last = request.sectors[request.starts[:-1]], request.sectors[request.starts[1:] - 1]
    meets_next = np.append(last[:-1] == first[1:], False)
    shares: Array = meets_next | np.append(False, meets_next[:-1])
    return shares


def _count_atomic_lanes(path: SampledPath) -> float:
    """Return how many lanes execute atomic operations in global memory."""
    return sum(
        times * float(request.lanes.sum(dtype=np.int64))
        for visit, times in caches.iterate_visits(path.steps)
        for request in visit.requests
        if request.kind in ("atom", "red") and request.space == "global"
    )
