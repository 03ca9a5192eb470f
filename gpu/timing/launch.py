"""Predict the time of a launch: sample its blocks, simulate one multiprocessor, and scale to the whole grid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.timing import caches, multiprocessor, unrolling
from gpu.timing.caches import CachedRequest, GridSharing
from gpu.timing.costs import BARRIER, PIPES
from gpu.timing.gpus import GpuDescription
from gpu.timing.loads_in_flight import NO_LOADS, LoadsInFlight, count_loads_in_flight
from gpu.timing.occupancy import Occupancy, compute_occupancy
from gpu.timing.ptx.analysis.load_chains import compute_load_depths
from gpu.timing.ptx.census import GridCensus
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import RepeatedIterations, SampledPath, Visit
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.ptx.thread_operations import count_thread_operations
from gpu.timing.sass import issued_instructions as sass
from gpu.timing.sass.cubin import MachineInstruction
from gpu.timing.sass.instructions import INSTRUCTION_BYTES
from gpu.timing.timeline import SPAN, LaunchTimelines, TimedOperation, WarpTimeline

Array = npt.NDArray[Any]

_SECTOR = 32
_MAXIMUM_OPERATIONS = 2_500_000
"""The most warp operations to simulate; longer launches are extrapolated from a part."""
_MAXIMUM_TIMELINE_OPERATIONS, _TIMELINE_FACTOR = 120_000, 4
"""The most warp operations of a timeline. Longer blocks are shown without equal loop iterations, and if they are still
longer by the second factor, only their beginning is shown."""
_MAXIMUM_SPANS, _MAXIMUM_ALL_SPANS = 300_000, 3_000_000
"""The most recorded spans of one timeline, and of all timelines of a launch."""
_MAXIMUM_LANES = 4096
_REGION_SHIFT = 4  # in sectors: atomic operations on the same 512 bytes are serialized
_FLOAT_SUM = 2.4
"""The time of an atomic float sum relative to an integer sum. Measured on an H200 and an H100."""
_WAVES = 3
_CENSUS_LIMITS, _DIFFERENCE_RATIO = ((1 << 16, 1.2, 600), (1 << 19, 2.0, 600), (1 << 24, 2.0, 40)), 2.0
"""Limits of the census, tried in turn: lanes (a part of the grid), the ratio of the longest warp's work to the mean of
the blocks' longest warps above which the next, larger part is counted, and visits of basic blocks, without predicted
iterations. Last: the ratio from which blocks count as different."""
_SPREAD_LIMITS, _EVEN_TOLERANCE = ((10, 2560), (80, 20480)), 0.05
"""The most blocks, and lanes, that are sampled all over the grid to detect differences: few at first, then more if they
differ. Last: the relative difference that counts as none."""
_STORE_LINE = 4.0
"""Cycles in which a multiprocessor sends a line, or a part of one, to L2."""
_CODE_FETCHES, _BASE_SECTORS, _BASE_BYTES = 10.7, 818, 2580
"""L2 requests per sector of a kernel's code, and the L2 sectors and DRAM bytes that any launch needs besides. Measured
on an H200. Its groups of multiprocessors fetch code even without a block."""
_MERGED_SHARE_WITH_BARRIERS, _MERGED_SHARE_WITHOUT_BARRIERS = 0.4, 0.1
"""The share of equal requests by many multiprocessors that are merged before they reach L2: with barriers that keep
blocks in step, and without. Measured on an H200."""
_MEMORY_OPCODES = ("ld", "ldu", "st", "atom", "red")
_COLD_START_CYCLES, _CODE_CYCLES, _MAXIMUM_CODE = 600.0, 6.0, 600.0
"""Cycles to load a launch's code and constants into cold caches: initially, and per instruction."""


@dataclass(frozen=True)
class LaunchEstimate:
    """The predicted time of a launch, and its counts.

    Parameters
    ----------
    time_us : float
    occupancy : Occupancy
    registers : int
    instructions : float
        Warp instructions, all warps together.
    requests : float
        Requests of warps to global memory.
    l2_sectors, dram_bytes : float
        The L2 sectors of 32 bytes, as `lts__t_sectors` counts them, and the traffic between L2 and DRAM.
    shared_passes, bank_conflicts : float
        Wavefronts of shared memory, and those caused by bank conflicts.
    sampled_blocks, total_blocks : int
    breakdown : mapping of str to float
        By limiting resource: the time of the launch in microseconds if it were the only limit.
    loads_in_flight : LoadsInFlight
    shared_bytes : int
        Shared memory per block, static and dynamic.
    float32_operations, float64_operations : float
        Operations of all threads together, of which a multiply-add is two.
    """

    time_us: float
    occupancy: Occupancy
    registers: int
    instructions: float
    requests: float
    l2_sectors: float
    dram_bytes: float
    shared_passes: float
    bank_conflicts: float
    sampled_blocks: int
    total_blocks: int
    breakdown: Mapping[str, float] = field(default_factory=dict)
    loads_in_flight: LoadsInFlight = NO_LOADS
    shared_bytes: int = 0
    float32_operations: float = 0.0
    float64_operations: float = 0.0

    @property
    def limiting_resource(self) -> str:
        return max(self.breakdown, key=lambda name: self.breakdown[name])


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
class _LongestBlock:
    """The block that may still run after all others, and the share of the grid that starts before it."""

    path: SampledPath
    start_share: float


@dataclass(frozen=True, eq=False)
class _Sample:
    """The sampled blocks of one multiprocessor, with their cache behavior.

    Parameters
    ----------
    shape : GridShape
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
    longest : _LongestBlock or None
        The block with the longest warp, if blocks differ and the census could count them.
    edge_paths : sequence of SampledPath
        The grid's first block, its last block, and the longest of the blocks all over the grid, if all run at once and
        these differ from the sample: the launch waits for them.
    last_block_paths : tuple of SampledPath
        The path of the first block if it were the last to finish, as it would learn from a ticket counter, and its
        usual path; empty if both are the same.
    cached : mapping of int to CachedRequest
        The L1 misses of each request, by its id.
    traffic : LaunchTraffic
    memory_shares : mapping
        As for `multiprocessor.run`, like `rates` and `atomic_cycles`.
    rates : SharedRates
    atomic_cycles : mapping of int to array
    busiest_address_us, atomic_us : float
        The time of atomic operations at the busiest address, and of all of them.
    """

    shape: GridShape
    occupancy: Occupancy
    resident_blocks: int
    blocks_per_multiprocessor: int
    path: SampledPath
    grid_path: SampledPath | None
    blocks_per_sample: float
    work_ratio: float
    longest: _LongestBlock | None
    edge_paths: Sequence[SampledPath]
    last_block_paths: Sequence[SampledPath]
    cached: Mapping[int, CachedRequest]
    traffic: caches.LaunchTraffic
    memory_shares: Mapping[tuple[int, int], float]
    rates: multiprocessor.SharedRates
    atomic_cycles: Mapping[int, Array]
    busiest_address_us: float
    atomic_us: float


class LaunchModel:
    """The timing model of a kernel on a GPU.

    Parameters
    ----------
    machine : PtxMachine
    gpu : GpuDescription
    registers : int
        Registers per thread.
    instructions : sequence of MachineInstruction
        The kernel's machine code; empty if unknown.
    """

    def __init__(
        self,
        machine: PtxMachine,
        gpu: GpuDescription,
        registers: int,
        instructions: Sequence[MachineInstruction] = (),
    ) -> None:
        self._machine = machine
        self._gpu = gpu
        self._registers = registers
        self._unrolled_kernel, self._unrolled_blocks = unrolling.unroll_loops(machine.kernel)
        self._code = multiprocessor.build_machine_code(self._unrolled_kernel, gpu)
        blocks = machine.kernel.blocks
        self._instructions = instructions
        estimated = float(self._code.slots_of_block[: len(blocks)].sum())
        self._code_bytes = INSTRUCTION_BYTES * (float(len(instructions)) or estimated)
        self._has_barrier = [
            any(cost == BARRIER for cost in self._code.kinds[first:end])
            for first, end in pairwise(self._code.first_operation)
        ]
        self._load_depths = [compute_load_depths(block) for block in self._unrolled_kernel.blocks]
        self._operations = np.array(
            [count_thread_operations(block.instructions) for block in self._unrolled_kernel.blocks]
        ).reshape(-1, 2)
        self._census = GridCensus(machine.kernel, machine.addresses, self._code.slots_of_block[: len(blocks)])
        self._depends_on_data = any(
            instruction.opcode == "bra" and instruction.guard for block in blocks for instruction in block.instructions
        )

    def estimate_launch(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> LaunchEstimate:
        """Predict a launch; the memory is unchanged afterwards."""
        return self._build_estimate(self._take_sample(shape, parameters, memory))

    def build_timelines(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, time_us: float | None = None
    ) -> LaunchTimelines:
        """Return the timelines of a launch's warps on one multiprocessor; `source` is empty.

        The same blocks are simulated with one resident block, with two, and so on. Cache hits, and the multiprocessor's
        share of common resources, are those of the actual launch.

        Parameters
        ----------
        shape : GridShape
        parameters : array
            The kernel's parameter buffer: uint8.
        memory : SampledMemory
            The memory of its pointers, which is unchanged afterwards.
        time_us : float or None
            The time of the whole launch; None to estimate it.
        """
        sample = self._take_sample(shape, parameters, memory)
        if time_us is None:
            time_us = self._build_estimate(sample).time_us
        maximum_resident = max(1, min(sample.occupancy.blocks, _MAXIMUM_LANES // (shape.warps * WARP) or 1))
        steps, left_out = self._select_timeline_visits(sample, maximum_resident)
        per_block = self._count_operations(steps, sample.resident_blocks * shape.warps) / sample.resident_blocks
        blocks = (
            maximum_resident
            if 2 * maximum_resident * per_block > _MAXIMUM_TIMELINE_OPERATIONS
            or sample.blocks_per_multiprocessor <= maximum_resident
            else 2 * maximum_resident
        )
        operations = tuple(
            TimedOperation(instruction.line, instruction.text) for instruction in self._code.instructions
        )
        pieces: list[Array] = []
        timelines: list[WarpTimeline] = []
        first = 0
        for resident in range(1, maximum_resident + 1):
            run = self._simulate_blocks(
                sample, steps, resident, blocks, max_spans=min(_MAXIMUM_SPANS, _MAXIMUM_ALL_SPANS // maximum_resident)
            )
            timelines.append(
                WarpTimeline(
                    resident, float(run.block_ends[-1]), tuple(run.state_cycles.tolist()), run.issued, first,
                    first + run.spans.size, run.recorded_until,
                )
            )  # fmt: skip
            first += run.spans.size
            pieces.append(run.spans)
        return LaunchTimelines(
            self._gpu.name, self._machine.kernel.name, shape.grid, shape.block, time_us, "",
            self._gpu.schedulers, shape.warps, blocks, sample.blocks_per_multiprocessor, sample.resident_blocks,
            sample.occupancy.limiting_resource, left_out, operations, tuple(timelines),
            np.concatenate(pieces) if pieces else np.empty(0, SPAN),
        )  # fmt: skip

    def _select_timeline_visits(self, sample: _Sample, maximum_resident: int) -> tuple[list[Visit], str]:
        """Return the visits of a timeline, and a description of the omitted ones."""
        warps, path = sample.resident_blocks * sample.shape.warps, sample.path
        lengths = np.diff(self._code.first_operation)
        total = sum(
            float(lengths[each.block] * np.count_nonzero(each.lanes[:warps])) * times
            for each, times in caches.iterate_visits(path.steps)
        )
        limit = _MAXIMUM_TIMELINE_OPERATIONS * sample.resident_blocks / maximum_resident
        if total <= limit:
            return list(caches.flatten_steps(path.steps, lambda step: step.times)), ""
        steps = list(caches.flatten_steps(path.steps, lambda step: 0))
        cumulative = np.cumsum([lengths[each.block] * np.count_nonzero(each.lanes[:warps]) for each in steps])
        if cumulative[-1] > _TIMELINE_FACTOR * limit:
            return steps[
                : int(np.searchsorted(cumulative, _TIMELINE_FACTOR * limit)) + 1
            ], "all but the beginning of each block"
        return steps, "equal loop iterations" if len(steps) < len(path.steps) else ""

    def _take_sample(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> _Sample:
        """Sample the blocks of one multiprocessor and simulate their caches; the memory is unchanged afterwards."""
        gpu = self._gpu
        shared_bytes = self._machine.kernel.shared_bytes + shape.shared_bytes
        launch_occupancy = compute_occupancy(gpu, shape.threads, self._registers, shared_bytes)
        per_machine = -(-shape.blocks // gpu.multiprocessors)
        slots = max(1, min(launch_occupancy.blocks, per_machine, _MAXIMUM_LANES // (shape.warps * WARP) or 1))
        sampled_blocks, sharing = _choose_sample_blocks(shape, gpu, slots, max(launch_occupancy.blocks, 1))
        path = self._sample_path(shape, parameters, sampled_blocks, memory)
        grid_path, uneven, longest, blocks_per_sample = (
            self._sample_grid(shape, parameters, memory, path, slots),
            1.0,
            None,
            1.0,
        )
        counted_grid = (
            self._count_grid_work(shape, parameters, memory) if self._blocks_may_differ(shape, slots) else None
        )
        if grid_path is None and counted_grid is not None:
            grid_path = self._sample_path(shape, parameters, _choose_spread_blocks(shape, *_SPREAD_LIMITS[-1]), memory)
        if grid_path is not None:
            blocks_per_sample = shape.blocks / len(grid_path.blocks)
            blocks, work = np.asarray(grid_path.blocks), self._count_issue_slots(grid_path, len(grid_path.blocks))
            if counted_grid is not None:
                blocks, work = counted_grid.blocks, counted_grid.work
                sample_work = self._census.count_issue_slots(shape, parameters, grid_path.blocks, memory)
                assert sample_work is not None
                blocks_per_sample *= float(work.mean() / sample_work.sum(axis=1).mean())
                longest_path = self._sample_path(shape, parameters, [counted_grid.longest], memory)
                longest = _LongestBlock(longest_path, counted_grid.longest / shape.blocks)
            indices = _select_by_work(work, slots)
            sampled_blocks, sharing = _add_neighbors(blocks[indices].tolist(), shape, sharing.concurrent_blocks)
            path = self._sample_path(shape, parameters, sampled_blocks, memory)
            uneven = float(work.mean()) / max(float(work[indices].mean()), 1.0)
        warps, scale = slots * shape.warps, shape.blocks / slots
        cached = self._simulate_l1_cache(path, shape, slots, slots)
        traffic = self._compute_traffic(path, grid_path, blocks_per_sample, shape, cached, sharing, warps, memory)
        active = min(shape.blocks, gpu.multiprocessors)
        rates = self._compute_rates(active)
        share = self._compute_memory_shares(path, traffic, rates.unpaired_cost)
        atomics, hot_us, atomic_us = self._compute_atomic_costs(path, slots, shape.warps, scale, active)
        edge_paths = []
        if slots < shape.blocks and per_machine <= launch_occupancy.blocks and self._depends_on_data:
            usual_work = self._count_issue_slots(path, slots)
            candidates = [0, shape.blocks - 1]
            if grid_path is not None:
                candidates.append(
                    grid_path.blocks[int(self._count_issue_slots(grid_path, len(grid_path.blocks)).argmax())]
                )
            candidate_paths = (
                self._sample_path(shape, parameters, [block], memory) for block in dict.fromkeys(candidates)
            )
            edge_paths = [
                candidate_path
                for candidate_path in candidate_paths
                if self._count_issue_slots(candidate_path, 1)[0] not in usual_work
            ]
        last = self._sample_last_block(shape, parameters, path, memory)
        return _Sample(
            shape, launch_occupancy, slots, per_machine, path, grid_path, blocks_per_sample, uneven, longest,
            edge_paths, last, cached, traffic, share, rates, atomics, uneven * hot_us, uneven * atomic_us,
        )  # fmt: skip

    def _sample_last_block(
        self, shape: GridShape, parameters: Array, path: SampledPath, memory: SampledMemory
    ) -> Sequence[SampledPath]:
        """Return the first block's path with the last ticket, and its usual path; empty if they are the same."""
        if not path.tickets or self._machine.has_spin_loops:  # the last block of such a kernel has little work left
            return ()
        for address, (dtype, increment) in path.tickets.items():
            word = np.array([address])
            memory.store(word, memory.load(word, dtype) + dtype.type((shape.blocks - 1) * int(increment)), dtype)
        last = self._sample_path(shape, parameters, path.blocks[:1], memory)
        visited_blocks = (
            {visit.block for visit, _ in caches.iterate_visits(increment.steps)} for increment in (last, path)
        )
        return (
            (last, self._sample_path(shape, parameters, path.blocks[:1], memory))
            if next(visited_blocks) - next(visited_blocks)
            else ()
        )

    def _simulate_l1_cache(
        self, path: SampledPath, shape: GridShape, blocks: int, slots: int
    ) -> dict[int, CachedRequest]:
        """Simulate the L1 cache of a multiprocessor with a number of resident blocks."""
        gpu, shared_bytes = self._gpu, self._machine.kernel.shared_bytes + shape.shared_bytes
        size = caches.compute_l1_bytes(gpu, slots * (shared_bytes + gpu.shared_reserved_bytes) if shared_bytes else 0)
        return caches.simulate_l1_cache(path.steps, blocks * shape.warps, size, self._load_depths.__getitem__)

    def _compute_rates(self, active: int) -> multiprocessor.SharedRates:
        """Return one multiprocessor's share of common resources if `active` multiprocessors are busy."""
        gpu, clock = self._gpu, self._gpu.clock_ghz
        l2_rate = min(gpu.last_cache_gb_s / active, gpu.last_cache_mp_gb_s)
        return multiprocessor.SharedRates(
            _SECTOR * clock / l2_rate,
            _SECTOR * clock / min(gpu.memory_gb_s / active, gpu.memory_mp_gb_s),
            _STORE_LINE,
            gpu.block_ns * clock * gpu.multiprocessors,
            l2_rate / min(gpu.last_cache_random_gb_s / active, l2_rate) - 1,
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
            path = self._machine.run(shape, parameters, blocks, memory)
        finally:
            memory.restore()
        return unrolling.merge_unrolled_visits(path, self._machine.kernel, self._unrolled_blocks)

    def _blocks_may_differ(self, shape: GridShape, slots: int) -> bool:
        """Return whether blocks may differ from those of one multiprocessor."""
        return shape.blocks > 2 * slots and self._depends_on_data

    def _sample_grid(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, path: SampledPath, slots: int
    ) -> SampledPath | None:
        """Return the path of blocks all over the grid; None if they do the same as those of one multiprocessor."""
        if not self._blocks_may_differ(shape, slots):
            return None
        usual_work = float(self._count_issue_slots(path, slots).mean())
        grid_path = None
        for maximum_blocks, lanes in _SPREAD_LIMITS:
            blocks = _choose_spread_blocks(shape, maximum_blocks, lanes)
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
            slots += times * float(self._code.slots_of_block[visit.block]) * np.count_nonzero(active_lanes, axis=1)
        return slots

    def _build_estimate(self, sample: _Sample) -> LaunchEstimate:
        gpu, shape, path, traffic = self._gpu, sample.shape, sample.path, sample.traffic
        total, hot_us = shape.blocks, sample.busiest_address_us
        counted_path, blocks, scale = path, sample.resident_blocks, total / sample.resident_blocks
        if sample.grid_path is not None:
            counted_path, blocks, scale = sample.grid_path, len(sample.grid_path.blocks), sample.blocks_per_sample
        counts = self._count_path(counted_path, blocks * shape.warps, scale)
        lines = self._count_executed_lines(counted_path, blocks * shape.warps, scale)
        issued = sass.estimate_issued_instructions(self._instructions, lines, float(total * shape.warps))
        instructions = counts["slots"] if issued is None else issued
        active = min(total, gpu.multiprocessors)
        clock = gpu.clock_ghz
        # If all blocks run at once, the launch also waits for those with more work than others.
        is_single_wave = sample.blocks_per_multiprocessor <= sample.occupancy.blocks
        cycles = (max(1.0, sample.work_ratio) if is_single_wave else sample.work_ratio) * self._compute_cycles(sample)
        if sample.longest is not None:
            cycles = max(
                cycles,
                sample.longest.start_share * cycles + self._compute_single_block_cycles(sample, sample.longest.path, 1),
            )
        for path_of_end in sample.edge_paths:
            cycles = max(cycles, self._compute_single_block_cycles(sample, path_of_end, active))
        if sample.last_block_paths:
            last, usual = (
                self._compute_single_block_cycles(sample, last_block_path, 1)
                for last_block_path in sample.last_block_paths
            )
            cycles += max(0.0, last - usual)
        loaded = sum(array.loaded for array in traffic.arrays.values())
        unpaired = sum(
            sample.rates.unpaired_cost * array.unpaired_share * array.loaded for array in traffic.arrays.values()
        )
        stored = sum(array.stored for array in traffic.arrays.values())
        memory_sectors = sum(array.dram_loads + array.dram_stores for array in traffic.arrays.values())
        dram_sectors = sum(
            (array.dram_loads + array.dram_stores) * array.scatter_factor for array in traffic.arrays.values()
        )
        dram_us = dram_sectors * _SECTOR / gpu.memory_gb_s / 1e3
        issue = counts["slots"] / gpu.schedulers / gpu.multiprocessors / clock / 1e3
        breakdown = {
            "memory": dram_us,
            "last cache": (loaded + unpaired + stored) * _SECTOR / gpu.last_cache_gb_s / 1e3,
            "first cache and shared memory": (counts["passes"] + counts["lines"]) / active / clock / 1e3,
            "issue": issue,
            "arithmetic": counts["busiest"] / gpu.schedulers / active / clock / 1e3,
            "atomics": max(hot_us, sample.atomic_us),
            "launch": gpu.launch_us,
        }
        visited = {visit.block for visit, _ in caches.iterate_visits(path.steps)}
        code_slots = sum(float(self._code.slots_of_block[block]) for block in visited)
        cycles += _COLD_START_CYCLES + _CODE_CYCLES * min(code_slots, _MAXIMUM_CODE)
        execution_us = max(cycles / clock / 1e3, hot_us, dram_us)
        time = gpu.launch_us + execution_us
        breakdown["latency"] = max(
            0.0, execution_us - max(each for name, each in breakdown.items() if name != "launch")
        )
        l2_sectors = self._count_l2_sectors(path, traffic, counts["atomics"])
        return LaunchEstimate(
            time, sample.occupancy, self._registers, instructions, counts["requests"], l2_sectors,
            memory_sectors * _SECTOR + _BASE_BYTES + self._code_bytes, counts["passes"], counts["conflicts"],
            len(path.blocks), total, breakdown,
            count_loads_in_flight(self._unrolled_kernel, self._code, path.steps, sample.resident_blocks * shape.warps),
            self._machine.kernel.shared_bytes + shape.shared_bytes, counts["float32"], counts["float64"],
        )  # fmt: skip

    def _count_l2_sectors(self, path: SampledPath, traffic: caches.LaunchTraffic, atomics: float) -> float:
        """Return the sectors that L2 processes, including transfers between its partitions."""
        arrays, parts = traffic.arrays.values(), self._gpu.last_cache_parts
        # With two partitions, half of a multiprocessor's data is in the other; data of many is remote for some of them.
        crossing = sum(
            array.stored * (1 - 1 / parts) + array.dram_loads * (1 - math.pow(parts, -array.mean_readers))
            for array in arrays
        )
        has_barriers = any(self._has_barrier[visit.block] for visit, _ in caches.iterate_visits(path.steps))
        merged = _MERGED_SHARE_WITH_BARRIERS if has_barriers else _MERGED_SHARE_WITHOUT_BARRIERS
        loaded = sum(array.loaded * (1 - array.is_uniform * merged * (1 - 1 / array.mean_readers)) for array in arrays)
        stored = sum(array.stored for array in arrays)
        code_sectors = _BASE_SECTORS + _CODE_FETCHES * self._code_bytes / _SECTOR
        return loaded + stored + crossing + atomics * (2 - 1 / parts) + code_sectors

    def _compute_traffic(
        self,
        path: SampledPath,
        grid_path: SampledPath | None,
        blocks_per_sample: float,
        shape: GridShape,
        cached: Mapping[int, CachedRequest],
        sharing: GridSharing,
        warps: int,
        memory: SampledMemory,
    ) -> caches.LaunchTraffic:
        gpu, traffic = self._gpu, caches.LaunchTraffic()
        sizes, width = memory.sizes, shape.warps
        scale = shape.blocks * width / warps
        grid_amounts: dict[tuple[int, str], float] = {}
        if grid_path is not None:
            grid_amounts = {
                key: amount * blocks_per_sample
                for key, amount in caches.count_requested_sectors(grid_path, len(grid_path.blocks) * width).items()
            }
        amounts = {key: amount * scale for key, amount in caches.count_requested_sectors(path, warps).items()}
        misses = {key: amount * scale for key, amount in caches.count_missed_sectors(path, cached).items()}
        unpaired = {
            key: amount * scale for key, amount in caches.count_missed_sectors(path, cached, unpaired=True).items()
        }
        grid_factors = {key: grid_amounts[key] / amounts[key] for key in grid_amounts if amounts.get(key)}
        for window, kind in dict.fromkeys((*amounts, *grid_amounts)):
            array = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            key = (window, kind)
            amount = grid_amounts.get(key, amounts.get(key, 0.0))
            if kind == "ld":
                array.loaded = misses.get(key, 0.0) * grid_factors.get(key, 1.0) if key in amounts else amount
                array.unpaired_share = unpaired[key] / misses[key] if misses.get(key) else 0.0
            elif kind == "st":
                array.stored = amount
            else:
                array.atomic_sectors += amount
        weights = self._compute_repetition_factors(path)
        loads = caches.count_distinct_sectors(path.steps, width, sharing, stores=False)
        block_sectors = caches.find_sectors(path.steps, 0, warps, stores=False)
        stores = caches.count_distinct_sectors(path.steps, width, sharing, stores=True)
        cache = 0.5 * gpu.last_cache_bytes / _SECTOR
        wave_of_all = sum(
            min(load.wave * weights.get(window, 1.0), sizes.get(window, 1 << 60) / _SECTOR)
            for window, load in loads.items()
        )
        waves = max(1.0, sharing.grid[0] * sharing.grid[1] / sharing.concurrent_blocks)
        for window, (wave, grid, pairs, is_uniform) in loads.items():
            array = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            array_sectors = sizes.get(window, 1 << 60) / _SECTOR
            factor = weights.get(window, 1.0) * grid_factors.get((window, "ld"), 1.0)
            if window in block_sectors:
                array.mean_readers = min(
                    max(1.0, block_sectors[window].size * scale / grid), shape.blocks, gpu.multiprocessors
                )
            array.is_uniform = is_uniform
            grid, wave = grid * factor, wave * factor
            dram_sectors = grid if 2 * wave_of_all <= cache else max(grid, min(wave, array_sectors) * waves)
            if dram_sectors > array_sectors:
                dram_sectors = array_sectors + (dram_sectors - array_sectors) * (1 - min(1.0, cache / array_sectors))
            # A sector is loaded from DRAM together with the other half of its pair, which is in the same array.
            array.dram_loads = min(
                dram_sectors * pairs, max(dram_sectors, array_sectors), (array.loaded + array.atomic_sectors) * pairs
            )
            array.scatter_factor = self._compute_scatter_factor(pairs)
        for window, array in traffic.arrays.items():
            if window not in loads and array.loaded:  # the block whose neighbors were sampled does not load from it
                array.dram_loads = min(array.loaded, sizes.get(window, 1 << 60) / _SECTOR)
        stored_arrays = []
        for window, (_, grid, pairs, _) in stores.items():
            array = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            array_sectors = sizes.get(window, 1 << 60) / _SECTOR
            dram_sectors = min(grid * weights.get(window, 1.0) * grid_factors.get((window, "st"), 1.0), array.stored)
            if dram_sectors > array_sectors:
                dram_sectors = array_sectors + (dram_sectors - array_sectors) * (1 - min(1.0, cache / array_sectors))
            stored_arrays.append((array, dram_sectors, pairs))
        total_sectors = sum(each.dram_loads for each in traffic.arrays.values()) + sum(
            dram_sectors for _, dram_sectors, _ in stored_arrays
        )
        retained = min(1.0, gpu.last_cache_written_share * gpu.last_cache_bytes / _SECTOR / max(total_sectors, 1.0))
        for array, dram_sectors, pairs in stored_arrays:
            # A partly written sector is read before it is written.
            array.dram_stores = (1 - retained) * dram_sectors * pairs
            array.scatter_factor = max(array.scatter_factor, self._compute_scatter_factor(pairs) * pairs)
        return traffic

    def _compute_scatter_factor(self, pairs: float) -> float:
        """Return the relative DRAM time of sectors with a degree of scatter: 1 contiguous, 2 all without their pair."""
        slowdown = self._gpu.memory_gb_s / self._gpu.random_gb_s
        return (1 + (slowdown - 1) * (pairs - 1)) / pairs

    @staticmethod
    def _compute_repetition_factors(path: SampledPath) -> dict[int, float]:
        """Return by array the ratio of all requests to those of executed iterations."""
        executed: dict[int, float] = {}
        total: dict[int, float] = {}
        for visit, times in caches.iterate_visits(path.steps):
            for request in visit.requests:
                if request.space == "global" and request.sectors.size:
                    window = caches.window_of(request)
                    total[window] = total.get(window, 0.0) + times * request.sectors.size
        for step in path.steps:
            for request in step.requests if isinstance(step, Visit) else ():
                if request.space == "global" and request.sectors.size:
                    window = caches.window_of(request)
                    executed[window] = executed.get(window, 0.0) + request.sectors.size
        return {window: amount / executed[window] for window, amount in total.items() if executed.get(window)}

    def _compute_memory_shares(
        self, path: SampledPath, traffic: caches.LaunchTraffic, unpaired_cost: float
    ) -> dict[tuple[int, int], float]:
        shares: dict[tuple[int, int], float] = {}
        for step, _ in caches.iterate_visits(path.steps):
            for instruction_index, request in zip(step.instruction_indices, step.requests, strict=True):
                key = (step.block, instruction_index)
                if request.space != "global" or key in shares or not request.sectors.size:
                    continue
                array = traffic.arrays.get(caches.window_of(request))
                if array is None:
                    continue
                if request.kind == "ld":
                    all_loaded = array.loaded * (1 + unpaired_cost * array.unpaired_share) + array.atomic_sectors
                    shares[key] = array.dram_loads * array.scatter_factor / all_loaded if all_loaded else 0.0
                elif request.kind == "st":
                    shares[key] = array.dram_stores * array.scatter_factor / array.stored if array.stored else 0.0
        return shares

    def _compute_atomic_costs(
        self, path: SampledPath, slots: int, width: int, scale: float, active: int
    ) -> tuple[dict[int, Array], float, float]:
        """Return each request's atomic cost per warp, the time of the busiest address, and the time of all together."""
        gpu = self._gpu
        costs: dict[int, Array] = {}
        regions: list[Array] = []
        loads: list[Array] = []
        blocks: list[Array] = []
        atomic_ns = 0.0
        for visit, times in caches.iterate_visits(path.steps):
            for instruction_index, request in zip(visit.instruction_indices, visit.requests, strict=True):
                if request.kind not in ("atom", "red") or request.space != "global":
                    continue
                counts = request.counts
                slowdown = _FLOAT_SUM if self._is_float(visit.block, instruction_index) else 1.0
                # Lanes on one word are serialized; the words of a line are processed at once.
                lines = multiprocessor.count_lines(request, request.warps.size)
                turns = np.minimum(request.lanes, request.passes * lines)
                nanoseconds = np.maximum(counts * gpu.atomic_ns, turns * gpu.atomic_lane_ns * slowdown)
                costs[id(request)] = np.maximum(nanoseconds * gpu.clock_ghz * active, 1.0)
                atomic_ns += times * float(nanoseconds[request.warps < slots * width].sum())
                sector_warps = np.repeat(request.warps, counts)
                # Lanes on one word are serialized; other words of a sector are processed together.
                queue = np.maximum(1.0, np.repeat(request.passes / np.maximum(counts, 1), counts))
                regions.append(request.sectors >> _REGION_SHIFT)
                loads.append(queue * times * slowdown)
                blocks.append(sector_warps // width)
        if not regions:
            return costs, 0.0, 0.0
        all_regions, region_blocks, amounts = np.concatenate(regions), np.concatenate(blocks), np.concatenate(loads)
        # Neighbors may share an address that other blocks do not use; distant blocks show what all blocks share.
        sampled = slots if slots > 1 else len(path.blocks)
        is_sampled = region_blocks < sampled
        all_regions, region_blocks, amounts = all_regions[is_sampled], region_blocks[is_sampled], amounts[is_sampled]
        unique_regions, region_index = np.unique(all_regions, return_inverse=True)
        sums = np.bincount(region_index, amounts)
        pairs = np.unique(np.stack([region_index, region_blocks], axis=1), axis=0)
        block_counts = np.bincount(pairs[:, 0], minlength=unique_regions.size)
        common = block_counts >= max(2 if sampled > 1 else 1, sampled / 2)
        hottest = float(sums[common].max()) if common.any() else 0.0
        total_blocks = scale * slots
        hot_us = hottest / sampled * total_blocks * gpu.atomic_same_ns / 1e3
        return costs, hot_us, atomic_ns * scale / 1e3

    def _is_float(self, block: int, instruction: int) -> bool:
        return self._unrolled_kernel.blocks[block].instructions[instruction].type.startswith("f")

    def _count_path(self, path: SampledPath, warps: int, scale: float) -> dict[str, float]:
        counts = {"slots": 0.0, "requests": 0.0, "passes": 0.0, "conflicts": 0.0, "lines": 0.0, "atomics": 0.0}
        operations = np.zeros(2)
        pipes = np.zeros(len(PIPES))
        for visit, times in caches.iterate_visits(path.steps):
            executions = int(np.count_nonzero(visit.lanes[:warps])) * times * scale
            counts["slots"] += executions * float(self._code.slots_of_block[visit.block])
            operations += self._operations[visit.block] * float(visit.lanes[:warps].sum(dtype=np.int64)) * times * scale
            pipes += executions * self._code.uses_of_block[visit.block]
            for request in visit.requests:
                end = int(np.searchsorted(request.warps, warps))
                if request.space == "shared":
                    counts["passes"] += times * scale * float(request.passes[:end].sum())
                    counts["conflicts"] += times * scale * float(request.conflicts[:end].sum())
                elif request.space == "global":
                    counts["requests"] += times * scale * end
                    if request.kind in ("atom", "red"):
                        counts["atomics"] += times * scale * float(request.starts[end])
                    else:
                        counts["lines"] += times * scale * float(multiprocessor.count_lines(request, end).sum())
        counts["busiest"] = float(pipes.max())
        counts["float32"], counts["float64"] = map(float, operations)
        return counts

    def _count_operations(self, steps: Sequence[Visit], warps: int) -> float:
        """Return the number of operations of a sample's first warps in some visits."""
        lengths = np.diff(self._code.first_operation)
        return float(sum(lengths[step.block] * np.count_nonzero(step.lanes[:warps]) for step in steps))

    def _simulate_blocks(
        self, sample: _Sample, steps: Sequence[Visit], slots: int, blocks: int, *, max_spans: int = 0
    ) -> multiprocessor.MachineRun:
        """Simulate blocks, in turn those of a sample, on one multiprocessor with `resident_blocks` resident blocks."""
        return multiprocessor.simulate_multiprocessor(
            self._code, steps, sample.cached, sample.memory_shares, self._gpu, sample.rates, slots=slots,
            warps_per_block=sample.shape.warps, sampled_blocks=sample.resident_blocks, blocks=blocks,
            atomic_cycles=sample.atomic_cycles, max_spans=max_spans,
        )  # fmt: skip

    def _count_executed_lines(self, path: SampledPath, warps: int, scale: float) -> dict[int, sass.ExecutedLine]:
        """Return how often warps execute each PTX line; a guarded line counts only if it accesses memory."""
        times_of: dict[int, float] = defaultdict(float)
        opcodes: dict[int, str] = {}
        for visit, times in caches.iterate_visits(path.steps) if self._instructions else ():
            executions = float(np.count_nonzero(visit.lanes[:warps]))
            executions_by_request = {
                index: float(np.searchsorted(request.warps, warps))
                for index, request in zip(visit.instruction_indices, visit.requests, strict=True)
            }
            for index, instruction in enumerate(self._unrolled_kernel.blocks[visit.block].instructions):
                if instruction.opcode == "pragma" or (instruction.guard and instruction.opcode not in _MEMORY_OPCODES):
                    continue
                times_of[instruction.text_line] += (
                    times * scale * (executions_by_request.get(index, 0.0) if instruction.guard else executions)
                )
                opcodes[instruction.text_line] = instruction.opcode
        return {line: sass.ExecutedLine(amount, opcodes[line]) for line, amount in times_of.items()}

    def _compute_cycles(self, sample: _Sample) -> float:
        """Return the cycles from the start of the first block to the end of the last."""
        lengths = np.diff(self._code.first_operation)
        path, slots, per_machine = sample.path, sample.resident_blocks, sample.blocks_per_multiprocessor
        warps = slots * sample.shape.warps

        def expand_steps(copies: int) -> list[Visit]:
            return list(caches.flatten_steps(path.steps, lambda step: min(step.times, copies)))

        def count_waves(operations: float) -> int:
            """Return the number of waves to simulate, at most three, for a wave with a number of operations."""
            return max(1, min(_WAVES, int(_MAXIMUM_OPERATIONS / max(operations, 1.0))))

        def simulate_end(chosen: Sequence[Visit], blocks: int) -> float:
            return self._extrapolate_end(
                self._simulate_blocks(sample, chosen, slots, blocks).block_ends, slots, per_machine
            )

        total = float(
            sum(
                lengths[visit.block] * np.count_nonzero(visit.lanes[:warps]) * times
                for visit, times in caches.iterate_visits(path.steps)
            )
        )
        has_rest = any(isinstance(step, RepeatedIterations) for step in path.steps)
        if total <= _MAXIMUM_OPERATIONS or not has_rest:
            return simulate_end(expand_steps(1 << 30), min(per_machine, count_waves(total) * slots))
        short_steps, long_steps = expand_steps(0), expand_steps(1)
        short_operations, long_operations = (
            self._count_operations(short_steps, warps),
            self._count_operations(long_steps, warps),
        )
        blocks = min(per_machine, count_waves(long_operations) * slots)
        short_cycles, long_cycles = simulate_end(short_steps, blocks), simulate_end(long_steps, blocks)
        return long_cycles + (total - long_operations) * max(long_cycles - short_cycles, 0.0) / max(
            long_operations - short_operations, 1.0
        )

    def _compute_single_block_cycles(self, sample: _Sample, path: SampledPath, active: int) -> float:
        """Return the cycles of a block that is alone on a multiprocessor, while `active` multiprocessors are busy."""
        cached, rates = (
            self._simulate_l1_cache(path, sample.shape, 1, sample.resident_blocks),
            self._compute_rates(active),
        )
        atomics, _, _ = self._compute_atomic_costs(path, 1, sample.shape.warps, 1.0, active)
        return self._compute_cycles(
            replace(
                sample,
                resident_blocks=1,
                blocks_per_multiprocessor=1,
                path=path,
                cached=cached,
                rates=rates,
                atomic_cycles=atomics,
            )
        )

    @staticmethod
    def _extrapolate_end(ended: Array, slots: int, per_machine: int) -> float:
        """Extrapolate the end of a multiprocessor's last block from the cycles at which the first ones ended."""
        simulated = ended.size
        if per_machine <= simulated:
            return float(ended[per_machine - 1])
        if simulated <= slots:
            return float(ended[-1]) * per_machine / simulated
        rate = (
            float(ended[-1] - ended[simulated - slots - 1]) / slots
            if simulated > slots
            else float(ended[-1]) / simulated
        )
        if simulated >= 2 * slots:
            rate = float(ended[simulated - slots // 2 - 1] - ended[slots - slots // 2 - 1]) / (simulated - slots)
        return float(ended[-1]) + (per_machine - simulated) * rate


def _choose_sample_blocks(
    shape: GridShape, gpu: GpuDescription, slots: int, resident: int
) -> tuple[list[int], GridSharing]:
    """Return the blocks to sample: those of one multiprocessor in the middle of the grid, and one block's neighbors."""
    total, stride = shape.blocks, gpu.multiprocessors
    waves = total // (stride * slots)
    base = waves // 2 * stride * slots + min(stride, total) // 2
    offsets = [stride * number for number in range(slots)]
    base = max(0, min(base, total - 1 - max(offsets)))
    blocks = [min(base + offset, total - 1) for offset in offsets]
    return _add_neighbors(blocks, shape, min(total, stride * resident))


def _add_neighbors(blocks: list[int], shape: GridShape, at_once: int) -> tuple[list[int], GridSharing]:
    """Add the neighbors of the first block, which show how much data blocks share."""
    blocks, base, total = list(blocks), blocks[0], shape.blocks
    columns = shape.grid[0]
    rows = total // columns
    row_neighbor = -1
    run: list[int] = []
    if columns > 1:
        column = base % columns
        # Blocks narrower than a sector share it with several neighbors.
        length = min(max(1, _SECTOR // shape.block[0]), columns - 1, max(1, _MAXIMUM_LANES // (2 * shape.warps * WARP)))
        first = base + 1 if column + length < columns else base - length
        run = (
            [first + number for number in range(length)]
            if column + length < columns or length <= column
            else [base + 1 if column + 1 < columns else base - 1]
        )
        blocks += [neighbor for neighbor in run if neighbor not in blocks]
    if rows > 1:
        neighbor = base + columns if base + columns < total else base - columns
        if neighbor not in blocks:
            blocks.append(neighbor)
        row_neighbor = blocks.index(neighbor)
    return blocks, GridSharing((columns, rows), at_once, 0, tuple(map(blocks.index, run)), row_neighbor)


def _choose_spread_blocks(shape: GridShape, maximum_blocks: int, lanes: int) -> list[int]:
    """Return a random block from each of some parts of the grid."""
    count = min(maximum_blocks, max(2, lanes // (shape.warps * WARP)), shape.blocks)
    parts = np.linspace(0, shape.blocks, count + 1).astype(np.int64)
    blocks: list[int] = np.random.default_rng(0).integers(parts[:-1], parts[1:]).tolist()
    blocks[0] = 0  # if the grid is larger than its work, the first blocks have the work
    return blocks


def _select_by_work(work: Array, count: int) -> list[int]:
    """Return `count` indices into some blocks' work, each of which represents an equal part of the total."""
    ends = np.cumsum(np.maximum(work, 1e-9))
    targets = (np.arange(count) + 0.5) / count * ends[-1]
    indices = list(dict.fromkeys(np.searchsorted(ends, targets).tolist()))
    if len(indices) < count:
        chosen = set(indices)
        indices += [index for index in np.argsort(-work, kind="stable").tolist() if index not in chosen]
    return indices[:count]
