"""Simulate one multiprocessor on sampled blocks: the end of each block, and the states of its warps."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.timing import native
from gpu.timing.caches import CachedRequest
from gpu.timing.costs import ALIAS, COMPUTE, INTEGER, MEMORY, PIPES, CostTable, OperationCost, schedule_block
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.path import Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel
from gpu.timing.timeline import SPAN, WarpState, compute_rotation_period

Array = npt.NDArray[Any]

GLOBAL, _SHARED, _ATOMIC, _SHARED_LOOP = 0, 1, 2, 3
_QUEUE_CYCLES = 24.0
"""Capacity of the queue of requests before the L1 cache, in cycles of work; beyond it, warps cannot issue."""
_JUMP_CYCLES = 8.0
_CYCLES_PER_WAVEFRONT = 2.0
"""Cycles per wavefront of shared memory for the warps of one scheduler; all schedulers together get one per cycle.
Measured on an H200 and an H100."""
_MAXIMUM_OPEN_SPANS = 8 * 64
"""The most open spans when the recording limit is reached."""
_BARRIER_WARP_CYCLES = 1.75
"""Additional cycles of a barrier per further warp of a block. Between two barriers, two cycles are measured, of which a
part is the issue of the barrier warp by warp. Measured on an H200 and an H100."""
_BLOCK_START_CYCLES = 350.0
"""Cycles from a block's end, with its stores sent, to the first instruction of the block that replaces it. Measured on
an H200: the gap between both blocks' clocks is 350 to 410 cycles, for blocks of 256 and 1,024 threads."""
_MEAN_LATENCY = 1.115
"""DRAM's mean latency relative to that of a chain of loads, which `GpuDescription` has. Measured on an H200: single
loads of 67 MB take 735 cycles on average at low load, and 600 to 900 by place."""


@dataclass(frozen=True)
class MachineCode:
    """A kernel's operations in issue order, as flat arrays for `multiprocessor.cu`.

    Parameters
    ----------
    kinds, pipes, slots, busy, latencies, blocked : arrays
        The cost of each operation, as in `OperationCost`.
    written_registers : int32 array
        The register that each operation writes; -1 for none.
    first_read, read_registers : int32 arrays
        Operation `i` reads the registers `reads[first_read[i]:first_read[i + 1]]`.
    request_of : int32 array
        For a memory operation, the index of its request in its basic block.
    spaces : uint8 array
        For a memory operation: `GLOBAL`, shared memory, an atomic operation in global memory, or one in shared memory
        that is a loop.
    first_operation : int32 array
        Basic block `b` has the operations `first_operation[b]` to `first_operation[b + 1]`.
    registers : int
        The number of registers.
    requests : tuple of dict of int to int
        For each basic block, the index of a request by the index of its instruction.
    slots_of_block : array
        The issue slots of each basic block.
    uses_of_block : array, shape (blocks, pipes)
        The cycles for which each basic block occupies each pipe.
    integer_slots_of_block : array
        Of its issue slots, those of instructions on the integer pipe.
    instructions : tuple of PtxInstruction
        The instruction of each operation.
    """

    kinds: Array
    pipes: Array
    slots: Array
    busy: Array
    latencies: Array
    blocked: Array
    written_registers: Array
    first_read: Array
    read_registers: Array
    request_of: Array
    spaces: Array
    first_operation: Array
    registers: int
    requests: tuple[dict[int, int], ...]
    slots_of_block: Array
    uses_of_block: Array
    integer_slots_of_block: Array
    instructions: tuple[PtxInstruction, ...]

    def scale_integers(self, factor: float) -> MachineCode:
        """Return the code with another number of instructions on the integer pipe."""
        is_integer = (self.kinds == COMPUTE) & (self.pipes == INTEGER)
        scale = np.where(is_integer, factor, 1.0)
        uses = self.uses_of_block.copy()
        uses[:, INTEGER] *= factor
        return replace(
            self, slots=self.slots * scale, busy=self.busy * scale, uses_of_block=uses,
            slots_of_block=self.slots_of_block + (factor - 1) * self.integer_slots_of_block,
            integer_slots_of_block=factor * self.integer_slots_of_block,
        )  # fmt: skip


def build_machine_code(
    kernel: PtxKernel, gpu: GpuDescription, indexed_lines: Container[int] | None = None
) -> MachineCode:
    """Convert a kernel's instructions to a multiprocessor's operations; `indexed_lines` as of `CostTable`."""
    table = CostTable(kernel, gpu, indexed_lines)
    numbers: dict[str, int] = {}
    rows: list[tuple[OperationCost, int, int, int]] = []  # cost, written register, request, space
    first_read, reads, first = [0], [], [0]
    requests: list[dict[int, int]] = []
    instructions: list[PtxInstruction] = []
    slots_of_block, uses_of_block, integer_slots = [], [], []
    for block in kernel.blocks:
        request_rows: dict[int, int] = {}
        uses = np.zeros(len(PIPES))
        total = integers = 0.0
        for scheduled in schedule_block(block, table):
            index, each, cost = scheduled.index, scheduled.instruction, scheduled.cost
            instructions += [each] * max(len(scheduled.written_registers), 1)
            total += cost.slots
            integers += cost.slots if cost.kind == COMPUTE and cost.pipe == INTEGER else 0.0
            uses[cost.pipe] += cost.busy
            results = [numbers.setdefault(name, len(numbers)) for name in scheduled.written_registers]
            reads += [numbers.setdefault(name, len(numbers)) for name in scheduled.read_registers]
            first_read.append(len(reads))
            if cost.kind == MEMORY:
                request_rows[index] = len(request_rows)
            space = _find_space(each) if cost.kind == MEMORY else GLOBAL
            rows.append((cost, results[0] if results else -1, request_rows.get(index, 0), space))
            for result in results[1:]:  # its other results are available with the first
                rows.append((OperationCost(ALIAS, 0, 0.0, 0.0, 0.0), result, 0, GLOBAL))
                reads.append(results[0])
                first_read.append(len(reads))
        first.append(len(rows))
        requests.append(request_rows)
        slots_of_block.append(total)
        integer_slots.append(integers)
        uses_of_block.append(uses)
    costs = [cost for cost, *_ in rows]
    written, request_of, spaces = np.array([row[1:] for row in rows], np.int32).reshape(-1, 3).T.copy()
    return MachineCode(
        np.array([cost.kind for cost in costs], np.int32), np.array([cost.pipe for cost in costs], np.int32),
        np.array([cost.slots for cost in costs]), np.array([cost.busy for cost in costs]),
        np.array([cost.latency for cost in costs]), np.array([cost.blocked for cost in costs]), written,
        np.array(first_read, np.int32), np.array(reads or [0], np.int32), request_of, spaces.astype(np.uint8),
        np.array(first, np.int32), max(len(numbers), 1), tuple(requests), np.array(slots_of_block),
        np.array(uses_of_block).reshape(-1, len(PIPES)), np.array(integer_slots), tuple(instructions),
    )  # fmt: skip


def _find_space(instruction: PtxInstruction) -> int:
    """Return the space of a memory operation, as in `MachineCode.spaces`."""
    if instruction.is_shared_loop:
        return _SHARED_LOOP
    if "shared" in instruction.modifiers or "const" in instruction.modifiers:
        return _SHARED
    return _ATOMIC if instruction.opcode in ("atom", "red") else GLOBAL


@dataclass(frozen=True)
class SharedRates:
    """One multiprocessor's share of common resources, in cycles.

    Parameters
    ----------
    l2_sector_cycles, dram_sector_cycles : float
        Per 32-byte sector from L2 and from DRAM.
    store_line_cycles : float
        Per stored line, or part of one.
    block_start_cycles : float
        Between the starts of two blocks.
    unpaired_cost : float
        The additional share of a sector's time in L2 if the other half of its 64-byte pair is not requested.
    link_sector_cycles : float
        Per sector from DRAM, if the other multiprocessors load none.
    crowding_cycles : float
        By how much DRAM's latency grows with its load.
    """

    l2_sector_cycles: float
    dram_sector_cycles: float
    store_line_cycles: float
    block_start_cycles: float
    unpaired_cost: float
    link_sector_cycles: float
    crowding_cycles: float


@dataclass(frozen=True)
class MachineRun:
    """The results of a simulated run.

    Parameters
    ----------
    block_ends : array
        The cycle at which each block ended, in order of completion.
    state_cycles : array
        By WarpState, the cycles of all warps together.
    issued : int
        The number of operations that warps issued.
    spans : array of SPAN
        The states of warps over time, sorted by warp and time, as far as they were recorded.
    recorded_until : float
        The cycle up to which states were recorded.
    """

    block_ends: Array
    state_cycles: Array
    issued: int
    spans: Array
    recorded_until: float


@dataclass(frozen=True)
class MemoryBehavior:
    """How a launch's requests to memory behave on one multiprocessor.

    Parameters
    ----------
    cached_requests : mapping
        The L1 misses of each request, by its id.
    memory_shares : mapping
        By basic block and index of an instruction, the share of its L1 misses that comes from DRAM.
    atomic_cycles : mapping
        By a request's id, the cost of its atomic operations in global memory for each of its warps.
    rates : SharedRates
    """

    cached_requests: Mapping[int, CachedRequest]
    memory_shares: Mapping[tuple[int, int], float]
    atomic_cycles: Mapping[int, Array]
    rates: SharedRates


@dataclass(frozen=True)
class BlockCounts:
    """Numbers of blocks of a simulated run.

    Parameters
    ----------
    resident, sampled, total : int
        The number of resident blocks, of sampled blocks, which are used in turn, and of blocks to run.
    warps_per_block : int
    """

    resident: int
    sampled: int
    total: int
    warps_per_block: int


@dataclass(frozen=True)
class _VisitTables:
    """The visits of a path, and their requests, as arrays for `multiprocessor.cu`.

    Parameters
    ----------
    steps : int32 array
        The visit of each step of the path.
    blocks : int32 array
        The basic block of each visit.
    first_request : int64 array
        The first row of each visit's requests.
    active : uint8 array, shape (visits, warps)
        Whether each warp takes part: 2 for a part of its lanes, 1 for all.
    passes, from_last : float32 arrays, shape (requests, warps)
        The cycles of each request in L1, and the sectors that it requests from L2. For atomics in global memory the
        latter is their cost in cycles, for those in shared memory that are loops the number of the warp's own rounds.
    """

    steps: Array
    blocks: Array
    first_request: Array
    active: Array
    passes: Array
    from_last: Array


def simulate_multiprocessor(
    code: MachineCode,
    path: Sequence[Visit],
    memory: MemoryBehavior,
    gpu: GpuDescription,
    counts: BlockCounts,
    max_spans: int = 0,
) -> MachineRun:
    """Simulate blocks on one multiprocessor.

    Parameters
    ----------
    code : MachineCode
    path : sequence of Visit
        The path of the sampled blocks.
    memory : MemoryBehavior
    gpu : GpuDescription
    counts : BlockCounts
    max_spans : int
        The most spans to record; 0 for none.
    """
    tables = _build_visit_tables(code, path, memory, counts.warps_per_block * counts.sampled, minimum_passes(gpu))
    shares = _spread_memory_shares(code, memory.memory_shares)
    barrier = gpu.barrier_cycles + _BARRIER_WARP_CYCLES * (counts.warps_per_block - 1)
    numbers = np.array(
        [
            gpu.schedulers, counts.resident, counts.warps_per_block, counts.total, counts.sampled, len(path),
            code.registers, counts.warps_per_block * counts.sampled, max_spans,
            compute_rotation_period(counts.warps_per_block, gpu.schedulers), code.kinds.size,
        ],
        np.int64,
    )  # fmt: skip
    rates = memory.rates
    rate_values = np.array(
        [
            gpu.first_cache_cycles, gpu.last_cache_cycles, _MEAN_LATENCY * gpu.memory_cycles, gpu.shared_cycles,
            rates.l2_sector_cycles, rates.dram_sector_cycles, barrier, _BLOCK_START_CYCLES, _QUEUE_CYCLES,
            _JUMP_CYCLES, rates.store_line_cycles, gpu.atomic_cycles, rates.block_start_cycles, _CYCLES_PER_WAVEFRONT,
            minimum_passes(gpu), rates.crowding_cycles, rates.link_sector_cycles,
        ]
    )  # fmt: skip
    ready = np.zeros(counts.resident * counts.warps_per_block * code.registers)
    late = np.zeros(ready.size, np.uint8)
    ended, cycles_in, written = np.zeros(counts.total), np.zeros(len(WarpState)), np.zeros(2, np.int64)
    capacity = max_spans + _MAXIMUM_OPEN_SPANS if max_spans else 1
    cut = np.full(1, np.inf if max_spans else -1.0)
    times, marks = np.zeros((capacity, 2)), np.zeros((capacity, 4), np.int32)
    native.run_kernel(
        "multiprocessor", numbers, rate_values, code.kinds, code.pipes, code.slots, code.busy, code.latencies,
        code.blocked, code.written_registers, code.first_read, code.read_registers, code.request_of, shares,
        code.first_operation, tables.steps, tables.blocks, tables.first_request, tables.active, tables.passes,
        tables.from_last, code.spaces, ready, late, np.zeros(shares.size),
        np.zeros(counts.resident * code.kinds.size), ended, cycles_in, written, cut, times, marks,
    )  # fmt: skip
    until = min(float(cut[0]), float(ended.max(initial=0.0)))
    spans = _collect_spans(times[: written[1]], marks[: written[1]], until)
    return MachineRun(ended, cycles_in, int(written[0]), spans, until)


def minimum_passes(gpu: GpuDescription) -> int:
    """Return the least cycles of a warp's load or store in the L1 cache and shared memory."""
    return -(-WARP // gpu.load_store_lanes)


def _build_visit_tables(
    code: MachineCode, path: Sequence[Visit], memory: MemoryBehavior, warps: int, least: int
) -> _VisitTables:
    # Equal iterations of a loop are one visit object, referenced repeatedly.
    visits = list({id(visit): visit for visit in path}.values())
    visit_numbers = {id(visit): number for number, visit in enumerate(visits)}
    first_request = np.concatenate(([0], np.cumsum([len(code.requests[visit.block]) for visit in visits])))
    rows = max(int(first_request[-1]), 1)
    passes = np.ones((rows, warps), np.float32)  # also without active lanes
    from_last = np.zeros((rows, warps), np.float32)
    active = np.zeros((max(len(visits), 1), warps), np.uint8)
    all_lanes = np.max([visit.lanes[:warps] for visit in visits] or [np.zeros(warps)], axis=0)
    for number, visit in enumerate(visits):
        lanes = visit.lanes[:warps]
        active[number] = np.where(lanes < all_lanes, 2, 1) * (lanes > 0)
        request_rows = code.requests[visit.block]
        for index, request in zip(visit.instruction_indices, visit.requests, strict=True):
            if index not in request_rows:
                continue
            row = int(first_request[number]) + request_rows[index]
            warp_count = int(np.searchsorted(request.warps, warps))
            warp_numbers = request.warps[:warp_count]
            cached_request = memory.cached_requests.get(id(request))
            if request.space not in ("global", "local") or cached_request is None:
                passes[row, warp_numbers] = np.maximum(
                    least if request.space in ("shared", "const") else 1, request.passes[:warp_count]
                )
                if request.rounds is not None:
                    from_last[row, warp_numbers] = request.rounds[:warp_count]
            elif request.kind in ("atom", "red"):
                from_last[row, warp_numbers] = memory.atomic_cycles[id(request)][:warp_count]
            else:
                # The L1 cache processes a request line by line, with four sectors each.
                passes[row, warp_numbers] = np.maximum(least, count_lines(request, warp_count))
                requested_sectors = (
                    cached_request.misses + memory.rates.unpaired_cost * cached_request.unpaired_misses
                    if request.kind == "ld"
                    else request.counts[:warp_count]
                )
                from_last[row, warp_numbers] = requested_sectors
    steps = np.array([visit_numbers[id(visit)] for visit in path] or [0], np.int32)
    blocks = np.array([visit.block for visit in visits] or [0], np.int32)
    return _VisitTables(steps, blocks, first_request.astype(np.int64), active, passes, from_last)


def _spread_memory_shares(code: MachineCode, memory_shares: Mapping[tuple[int, int], float]) -> Array:
    """Return the share of each operation's L1 misses that comes from DRAM."""
    shares = np.zeros(len(code.kinds))
    for (block, index), share in memory_shares.items():
        request_row = code.requests[block].get(index)
        if request_row is not None:
            first, end = code.first_operation[block : block + 2]
            is_request = (code.request_of[first:end] == request_row) & (code.kinds[first:end] == MEMORY)
            shares[first:end][is_request] = share
    return shares


def _collect_spans(times: Array, marks: Array, until: float) -> Array:
    """Return the recorded data as spans up to a cycle, in order."""
    spans = np.empty(len(times), SPAN)
    spans["begin"], spans["end"] = times[:, 0], np.minimum(times[:, 1], until)
    spans["warp"], spans["state"], spans["operation"], spans["block"] = marks.T
    sorted_spans: Array = spans[np.lexsort((times[:, 0], marks[:, 0]))]
    return sorted_spans[sorted_spans["begin"] < sorted_spans["end"]]


def count_lines(request: Any, warp_count: int) -> Array:
    """Return the number of 128-byte lines that contain each warp's sectors."""
    sectors = request.sectors[: request.starts[warp_count]]
    new = np.ones(sectors.size, np.int64)
    new[1:] = (sectors[1:] >> 2) != (sectors[:-1] >> 2)
    starts = request.starts[: warp_count + 1]
    new[starts[:-1][np.diff(starts) > 0]] = 1
    sums = np.concatenate(([0], np.cumsum(new)))
    counts: Array = np.diff(sums[starts])
    return counts
