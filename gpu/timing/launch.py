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
from gpu.timing import caches, multiprocessor
from gpu.timing.costs import BARRIER, PIPES, has_constant_index
from gpu.timing.gpus import GpuDescription
from gpu.timing.loads_in_flight import NO_LOADS, LoadsInFlight, count_loads_in_flight
from gpu.timing.occupancy import Occupancy
from gpu.timing.ptx.analysis.sunk_loops import find_sunk_loops
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import RepeatedIterations, SampledPath, Visit
from gpu.timing.ptx.program import PtxKernel
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.ptx.thread_operations import count_shared_loop_operations, count_thread_operations
from gpu.timing.sampling.blocks import MAXIMUM_LANES
from gpu.timing.sampling.sampler import LaunchSample, LaunchSampler
from gpu.timing.sass import issued_instructions as sass
from gpu.timing.sass.cubin import MachineInstruction
from gpu.timing.sass.instructions import INSTRUCTION_BYTES
from gpu.timing.timeline import SPAN, LaunchTimelines, TimedOperation, WarpTimeline

Array = npt.NDArray[Any]

_SECTOR = 32
_CONSTANT_MISS_CYCLES = 78
"""Cycles of a multiprocessor for a line that its constant cache loads from the next level, one at a time: measured on
an RTX 3070 (github.com/mushihao/cuda, nv_study); Jia et al. 2018 measured 89 on a V100."""
_MAXIMUM_OPERATIONS = 2_500_000
"""The most warp operations to simulate; longer launches are extrapolated from a part."""
_MINIMUM_DIFFERENCE = 1e-3
"""The share of a part's operations that repeated iterations need at least to be timed by the difference."""
_MAXIMUM_TIMELINE_OPERATIONS, _TIMELINE_FACTOR = 120_000, 4
"""The most warp operations of a timeline. Longer blocks are shown without equal loop iterations, and if they are still
longer by the second factor, only their beginning is shown."""
_MAXIMUM_SPANS, _MAXIMUM_ALL_SPANS = 300_000, 3_000_000
"""The most recorded spans of one timeline, and of all timelines of a launch."""
_LEAST_ISSUED, _MOST_ISSUED, _LEAST_INTEGERS, _MOST_INTEGERS = 0.6, 1.6, 0.3, 3.0
"""Limits of the number of instructions in machine code relative to those expected: of all, and of those with integers.
Outside, the former was not determined."""
_WAVES = 3
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
    block_starts_us : float
        The time in microseconds that starting all blocks takes at least.
    is_complete : bool
        Whether the sampled blocks were followed to their end; otherwise the rest of their work is a guess at best.
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
    block_starts_us: float = 0.0
    is_complete: bool = True

    @property
    def limiting_resource(self) -> str:
        return max(self.breakdown, key=lambda name: self.breakdown[name])


def _find_indexed_lines(kernel: PtxKernel, instructions: Sequence[MachineInstruction]) -> set[int]:
    """Return the lines of PTX whose loads of constants keep their index in machine code."""
    if instructions:
        return {each.text_line for each in instructions if each.opcode == "LDC"}
    unrolled = frozenset[int]().union(*(loop.blocks for loop in find_sunk_loops(kernel)))
    return {each.text_line for block in kernel.blocks if block.number not in unrolled for each in block.instructions}


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
        self._indexed_lines = _find_indexed_lines(machine.kernel, instructions)
        self._sampler = LaunchSampler(machine, gpu, registers, self._indexed_lines)
        self._kernel, self._code = self._sampler.kernel, self._sampler.code
        self._instructions = instructions
        estimated = float(self._code.slots_of_block[: len(machine.kernel.blocks)].sum())
        self._code_bytes = INSTRUCTION_BYTES * (float(len(instructions)) or estimated)
        self._has_barrier = [
            any(cost == BARRIER for cost in self._code.kinds[first:end])
            for first, end in pairwise(self._code.first_operation)
        ]
        self._operations = np.array(
            [
                count_thread_operations([each for each in block.instructions if not each.guard])
                for block in self._kernel.blocks
            ]
        ).reshape(-1, 2)

    def estimate_launch(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> LaunchEstimate:
        """Predict a launch; the memory is unchanged afterwards."""
        return self._build_estimate(self._sampler.take_sample(shape, parameters, memory))

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
        sample = self._sampler.take_sample(shape, parameters, memory)
        if time_us is None:
            time_us = self._build_estimate(sample).time_us
        maximum_resident = max(1, min(sample.occupancy.blocks, MAXIMUM_LANES // (shape.warps * WARP) or 1))
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

    def _select_timeline_visits(self, sample: LaunchSample, maximum_resident: int) -> tuple[list[Visit], str]:
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

    def _build_estimate(self, sample: LaunchSample) -> LaunchEstimate:
        gpu, shape, path, traffic = self._gpu, sample.shape, sample.path, sample.traffic
        total = shape.blocks
        counted_path, blocks, scale = path, sample.resident_blocks, total / sample.resident_blocks
        if sample.grid_path is not None:
            counted_path, blocks, scale = sample.grid_path, len(sample.grid_path.blocks), sample.blocks_per_sample
        slots, integers = self._count_slots(counted_path, blocks * shape.warps, scale)
        lines = self._count_executed_lines(counted_path, blocks * shape.warps, scale)
        issued = sass.estimate_issued_instructions(self._instructions, lines, float(total * shape.warps))
        if issued is not None and not _LEAST_ISSUED <= issued / max(slots, 1.0) <= _MOST_ISSUED:
            issued = None  # no preserved instruction tells how often a loop is executed
        if issued is not None:
            # Float instructions and memory accesses are preserved; the assembler combines or adds integer instructions.
            surplus = (issued - slots) / max(integers, 1.0)
            factor = min(max(1 + surplus, _LEAST_INTEGERS), _MOST_INTEGERS)
            sample = replace(sample, code=sample.code.scale_integers(factor))
        counts = self._count_path(sample.code, counted_path, blocks * shape.warps, scale)
        breakdown = self._compute_breakdown(sample, counts)
        visited = {visit.block for visit, _ in caches.iterate_visits(path.steps)}
        code_slots = sum(float(self._code.slots_of_block[block]) for block in visited)
        cycles = self._compute_launch_cycles(sample)
        cycles += _COLD_START_CYCLES + _CODE_CYCLES * min(code_slots, _MAXIMUM_CODE)
        # The simulation of a part may miss the rates of the whole launch by a few percent.
        longest_us = max(each for name, each in breakdown.items() if name != "launch")
        execution_us = max(cycles / gpu.clock_ghz / 1e3, longest_us, self._compute_constants_us(sample))
        breakdown["latency"] = execution_us - longest_us
        memory_sectors = sum(array.dram_loads + array.dram_stores for array in traffic.arrays.values())
        return LaunchEstimate(
            gpu.launch_us + execution_us, sample.occupancy, self._registers,
            counts["slots"] if issued is None else issued, counts["requests"],
            self._count_l2_sectors(path, traffic, counts["atomics"]),
            memory_sectors * _SECTOR + _BASE_BYTES + self._code_bytes, counts["passes"], counts["conflicts"],
            len(path.blocks), total, breakdown,
            count_loads_in_flight(self._kernel, self._code, path.steps, sample.resident_blocks * shape.warps),
            self._machine.kernel.shared_bytes + shape.shared_bytes, counts["float32"], counts["float64"],
            total * sample.memory.rates.block_start_cycles / min(total, gpu.multiprocessors) / gpu.clock_ghz / 1e3,
            path.completed,
        )  # fmt: skip

    def _compute_constants_us(self, sample: LaunchSample) -> float:
        """Return the time in microseconds of loading the lines that the constant cache lacks, one after the other."""

        def has_index(block: int, index: int) -> bool:
            return has_constant_index(self._kernel.blocks[block].instructions[index], self._indexed_lines)

        misses = caches.count_constant_misses(sample.path.steps, sample.resident_blocks * sample.shape.warps, has_index)
        # The warps of a block share a line while barriers keep them together; others load it again.
        has_barrier = any(self._has_barrier[visit.block] for visit, _ in caches.iterate_visits(sample.path.steps))
        groups = sample.blocks_per_multiprocessor * (1 if has_barrier else sample.shape.warps)
        return _CONSTANT_MISS_CYCLES * misses * sample.work_ratio * groups / self._gpu.clock_ghz / 1e3

    def _compute_launch_cycles(self, sample: LaunchSample) -> float:
        """Return the cycles of the whole grid, with those of the blocks that end last."""
        # If all blocks run at once, the launch also waits for those with more work than others.
        is_single_wave = sample.blocks_per_multiprocessor <= sample.occupancy.blocks
        cycles = (max(1.0, sample.work_ratio) if is_single_wave else sample.work_ratio) * self._compute_cycles(sample)
        if sample.longest is not None:
            cycles = max(
                cycles,
                sample.longest.start_share * cycles + self._compute_single_block_cycles(sample, sample.longest.path, 1),
            )
        active = min(sample.shape.blocks, self._gpu.multiprocessors)
        for path_of_end in sample.edge_paths:
            cycles = max(cycles, self._compute_single_block_cycles(sample, path_of_end, active))
        if sample.last_block_paths:
            last, usual = (self._compute_single_block_cycles(sample, path, 1) for path in sample.last_block_paths)
            cycles += max(0.0, last - usual)
        return cycles

    def _compute_breakdown(self, sample: LaunchSample, counts: Mapping[str, float]) -> dict[str, float]:
        """Return the time in microseconds by limiting resource, without latency."""
        gpu, arrays = self._gpu, sample.traffic.arrays.values()
        active, clock = min(sample.shape.blocks, gpu.multiprocessors), gpu.clock_ghz
        loaded = sum(array.loaded for array in arrays)
        unpaired = sum(sample.memory.rates.unpaired_cost * array.unpaired_share * array.loaded for array in arrays)
        stored = sum(array.stored for array in arrays)
        dram_sectors = sum((array.dram_loads + array.dram_writes) * array.scatter_factor for array in arrays)
        return {
            "memory": dram_sectors * _SECTOR / gpu.memory_gb_s / 1e3,
            "last cache": (loaded + unpaired + stored) * _SECTOR / gpu.last_cache_gb_s / 1e3,
            "first cache and shared memory": counts["first cache"] / active / clock / 1e3,
            "issue": counts["slots"] / gpu.schedulers / gpu.multiprocessors / clock / 1e3,
            "arithmetic": counts["busiest"] / gpu.schedulers / active / clock / 1e3,
            "atomics": max(sample.busiest_address_us, sample.atomic_us),
            "launch": gpu.launch_us,
        }

    def _count_l2_sectors(self, path: SampledPath, traffic: caches.LaunchTraffic, atomics: float) -> float:
        """Return the sectors that L2 processes, including transfers between its partitions."""
        arrays, parts = traffic.arrays.values(), self._gpu.last_cache_parts
        # With two partitions, half of a multiprocessor's data is in the other; data of many is remote for some of them.
        crossing = sum(
            array.stored * (1 - 1 / parts) + array.dram_loads * (1 - math.pow(parts, -array.mean_readers))
            for array in arrays
        )
        merged = _MERGED_SHARE_WITH_BARRIERS if self._waits_after_loads(path) else _MERGED_SHARE_WITHOUT_BARRIERS
        loaded = sum(array.loaded * (1 - array.is_uniform * merged * (1 - 1 / array.mean_readers)) for array in arrays)
        stored = sum(array.stored for array in arrays)
        code_sectors = _BASE_SECTORS + _CODE_FETCHES * self._code_bytes / _SECTOR
        return loaded + stored + crossing + atomics * (2 - 1 / parts) + code_sectors

    def _waits_after_loads(self, path: SampledPath) -> bool:
        """Return whether warps wait for those of their block after they loaded, and not only before, as for a setup."""
        has_loaded = False
        for visit, _ in caches.iterate_visits(path.steps):
            has_loaded |= any(request.space == "global" and request.kind == "ld" for request in visit.requests)
            if has_loaded and self._has_barrier[visit.block]:
                return True
        return False

    def _count_slots(self, path: SampledPath, warps: int, scale: float) -> tuple[float, float]:
        """Return the issue slots of a path, and those of integer instructions."""
        slots = integers = 0.0
        for visit, times in caches.iterate_visits(path.steps):
            executions = int(np.count_nonzero(visit.lanes[:warps])) * times * scale
            slots += executions * float(self._code.slots_of_block[visit.block])
            integers += executions * float(self._code.integer_slots_of_block[visit.block])
        return slots, integers

    def _count_path(
        self, code: multiprocessor.MachineCode, path: SampledPath, warps: int, scale: float
    ) -> dict[str, float]:
        counts = dict.fromkeys(("slots", "requests", "passes", "conflicts", "first cache", "atomics"), 0.0)
        least = multiprocessor.minimum_passes(self._gpu)
        operations = np.zeros(2)
        pipes = np.zeros(len(PIPES))
        for visit, times in caches.iterate_visits(path.steps):
            executions = int(np.count_nonzero(visit.lanes[:warps])) * times * scale
            counts["slots"] += executions * float(code.slots_of_block[visit.block])
            operations += self._operations[visit.block] * float(visit.lanes[:warps].sum(dtype=np.int64)) * times * scale
            for index, lanes in visit.guarded_lanes:
                guarded = count_thread_operations([self._kernel.blocks[visit.block].instructions[index]])
                operations += np.array(guarded) * float(lanes[:warps].sum(dtype=np.int64)) * times * scale
            pipes += executions * code.uses_of_block[visit.block]
            for index, request in zip(visit.instruction_indices, visit.requests, strict=True):
                end = int(np.searchsorted(request.warps, warps))
                if request.space == "const":  # the lanes' own addresses; those of all lanes are broadcast
                    passes = request.passes[:end]
                    counts["first cache"] += times * scale * float(np.maximum(least, passes[passes > 1]).sum())
                elif request.space == "shared":
                    passes = request.passes[:end]
                    cycles = np.maximum(least, passes)
                    if request.rounds is not None:
                        type, rounds = self._kernel.blocks[visit.block].instructions[index].type, request.rounds[:end]
                        sums = count_shared_loop_operations(type, request.lanes[:end], rounds, passes // 2)
                        operations += np.array(sums) * times * scale
                        cycles = 2 * least * rounds  # without those in which other warps succeed
                    counts["passes"] += times * scale * float(passes.sum())
                    counts["first cache"] += times * scale * float(cycles.sum())
                    counts["conflicts"] += times * scale * float(request.conflicts[:end].sum())
                elif request.space == "global":
                    counts["requests"] += times * scale * end
                    if request.kind in ("atom", "red"):
                        counts["atomics"] += times * scale * float(request.starts[end])
                    else:
                        lines = np.maximum(least, multiprocessor.count_lines(request, end))
                        counts["first cache"] += times * scale * float(lines.sum())
        counts["busiest"] = float(pipes.max())
        counts["float32"], counts["float64"] = map(float, operations)
        return counts

    def _count_operations(self, steps: Sequence[Visit], warps: int) -> float:
        """Return the number of operations of a sample's first warps in some visits."""
        lengths = np.diff(self._code.first_operation)
        return float(sum(lengths[step.block] * np.count_nonzero(step.lanes[:warps]) for step in steps))

    def _simulate_blocks(
        self, sample: LaunchSample, steps: Sequence[Visit], slots: int, blocks: int, *, max_spans: int = 0
    ) -> multiprocessor.MachineRun:
        """Simulate blocks, in turn those of a sample, on one multiprocessor with `resident_blocks` resident blocks."""
        counts = multiprocessor.BlockCounts(slots, sample.resident_blocks, blocks, sample.shape.warps)
        return multiprocessor.simulate_multiprocessor(
            sample.code, steps, sample.memory, self._gpu, counts, max_spans=max_spans
        )

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
            for index, instruction in enumerate(self._kernel.blocks[visit.block].instructions):
                if instruction.opcode == "pragma" or (instruction.guard and instruction.opcode not in _MEMORY_OPCODES):
                    continue
                times_of[instruction.text_line] += (
                    times * scale * (executions_by_request.get(index, 0.0) if instruction.guard else executions)
                )
                opcodes[instruction.text_line] = instruction.opcode
        return {line: sass.ExecutedLine(amount, opcodes[line]) for line, amount in times_of.items()}

    def _compute_cycles(self, sample: LaunchSample) -> float:
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
        long_cycles = simulate_end(long_steps, blocks)
        if long_operations - short_operations < _MINIMUM_DIFFERENCE * long_operations:
            return long_cycles * total / long_operations
        short_cycles = simulate_end(short_steps, blocks)
        return long_cycles + (total - long_operations) * max(long_cycles - short_cycles, 0.0) / max(
            long_operations - short_operations, 1.0
        )

    def _compute_single_block_cycles(self, sample: LaunchSample, path: SampledPath, active: int) -> float:
        """Return the cycles of a block that is alone on a multiprocessor, while `active` multiprocessors are busy."""
        atomic_cycles, _, _ = self._sampler.compute_atomic_costs(path, 1, sample.shape.warps, 1.0, active)
        memory = replace(
            sample.memory,
            cached_requests=self._sampler.simulate_l1_cache(path, sample.shape, 1, sample.resident_blocks),
            atomic_cycles=atomic_cycles,
            rates=self._sampler.compute_rates(active, sample.traffic.mixture),
        )
        return self._compute_cycles(
            replace(sample, resident_blocks=1, blocks_per_multiprocessor=1, path=path, memory=memory)
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
