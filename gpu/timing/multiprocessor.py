"""One multiprocessor made to run sampled blocks: when each ends, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing import native
from gpu.timing.caches import CachedRequest
from gpu.timing.costs import ALIAS, MEMORY, PIPES, CostTable, scheduled
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.path import Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel
from gpu.timing.timeline import SPAN, WarpState, warps_of_round

Array = npt.NDArray[Any]

GLOBAL, _SHARED, _ATOMIC = 0, 1, 2
_QUEUE = 24.0
"""Cycles of requests that wait before the first cache; who comes then cannot issue."""
_JUMP = 8.0
_OWN_PASS = 2.0
"""Cycles in which the warps of one scheduler get a pass over shared memory, where all together get one in each: of an
H200 and an H100."""
_MOST_OPEN = 8 * 64
"""Spans that are under way when enough are written down."""
_BARRIER_WARP = 1.75
"""Cycles that a barrier takes longer with each further warp of a block: from one barrier to the next two are measured,
of which a part is that schedulers issue it warp by warp. Of an H200 and an H100."""
_BLOCK_START = 250.0
"""Cycles from a block's end to the first instruction of the one that takes its place."""


@dataclass(frozen=True)
class MachineCode:
    """A kernel's operations in the order in which they issue, as flat arrays for `multiprocessor.cu`."""

    kinds: Array
    pipes: Array
    slots: Array
    busy: Array
    latencies: Array
    written: Array
    first_read: Array
    reads: Array
    request_of: Array
    spaces: Array
    first_operation: Array
    registers: int
    requests: tuple[dict[int, int], ...]
    slots_of_block: Array
    uses_of_block: Array
    instructions: tuple[PtxInstruction, ...]


def machine_code(kernel: PtxKernel, gpu: GpuDescription) -> MachineCode:
    """Return what a kernel's instructions are on a multiprocessor."""
    table = CostTable(kernel, gpu)
    numbers: dict[str, int] = {}
    kinds, pipes, slots, busy, latencies, written = [], [], [], [], [], []
    first_read, reads, request_of, spaces, first = [0], [], [], [], [0]
    requests: list[dict[int, int]] = []
    instructions: list[PtxInstruction] = []
    slots_of_block, uses_of_block = [], []
    for block in kernel.blocks:
        asked: dict[int, int] = {}
        uses = np.zeros(len(PIPES))
        total = 0.0
        for turn in scheduled(block, table):
            place, each, cost = turn.place, turn.instruction, turn.cost
            instructions += [each] * max(len(turn.written), 1)
            kinds.append(cost.kind)
            pipes.append(cost.pipe)
            slots.append(cost.slots)
            busy.append(cost.busy)
            latencies.append(cost.latency)
            total += cost.slots
            uses[cost.pipe] += cost.busy
            results = [numbers.setdefault(name, len(numbers)) for name in turn.written]
            written.append(results[0] if results else -1)
            reads += [numbers.setdefault(name, len(numbers)) for name in turn.read]
            first_read.append(len(reads))
            space = GLOBAL
            if cost.kind == MEMORY:
                asked[place] = len(asked)
                if "shared" in each.words or "const" in each.words:
                    space = _SHARED
                elif each.opcode in ("atom", "red"):
                    space = _ATOMIC
            request_of.append(asked.get(place, 0))
            spaces.append(space)
            for more in results[1:]:  # what else it writes is there with the first
                kinds.append(ALIAS)
                pipes.append(0)
                slots.append(0.0)
                busy.append(0.0)
                latencies.append(0.0)
                written.append(more)
                reads.append(results[0])
                first_read.append(len(reads))
                request_of.append(0)
                spaces.append(0)
        first.append(len(kinds))
        requests.append(asked)
        slots_of_block.append(total)
        uses_of_block.append(uses)
    return MachineCode(
        np.array(kinds, np.int32), np.array(pipes, np.int32), np.array(slots), np.array(busy), np.array(latencies),
        np.array(written, np.int32), np.array(first_read, np.int32), np.array(reads or [0], np.int32),
        np.array(request_of, np.int32), np.array(spaces, np.uint8), np.array(first, np.int32), max(len(numbers), 1),
        tuple(requests), np.array(slots_of_block), np.array(uses_of_block), tuple(instructions),
    )  # fmt: skip


@dataclass(frozen=True)
class SharedRates:
    """What one multiprocessor has of what all share: cycles a 32-byte sector, a line stored, and between blocks.

    `alone` is which share of its time a sector takes in the last cache besides, where the other half of 64 bytes is not
    wanted.
    """

    per_last_sector: float
    per_memory_sector: float
    per_store_line: float
    between_blocks: float
    alone: float


@dataclass(frozen=True)
class MachineRun:
    """What came of it.

    Parameters
    ----------
    ended : array
        The cycle at which each block ended, in order.
    cycles_in : array
        By WarpState: cycles of all warps together.
    issued : int
        Operations of warps.
    spans : array of SPAN
        What warps did when, sorted by warp and time, as far as that was asked for.
    until : float
        The cycle up to which it was written down.
    """

    ended: Array
    cycles_in: Array
    issued: int
    spans: Array
    until: float


def run(
    code: MachineCode,
    path: Sequence[Visit],
    cached: Mapping[int, CachedRequest],
    memory_share: Mapping[tuple[int, int], float],
    gpu: GpuDescription,
    rates: SharedRates,
    *,
    slots: int,
    warps_per_block: int,
    sampled_blocks: int,
    blocks: int,
    atomic_cycles: Mapping[int, Array],
    most_spans: int = 0,
) -> MachineRun:
    """Run blocks on one multiprocessor.

    Parameters
    ----------
    code : MachineCode
    path : sequence of Visit
        What the sampled blocks did.
    cached : mapping
        What each request misses in the first cache, by its id.
    memory_share : mapping
        By basic block and place of an instruction: which share of what it misses comes from memory.
    gpu : GpuDescription
    rates : SharedRates
    slots : int
        Blocks that it holds at once.
    warps_per_block, sampled_blocks, blocks : int
        How many of the sample are taken in turn, and how many are run.
    atomic_cycles : mapping
        By request's id, what atomics in global memory cost each of its warps.
    most_spans : int
        How much of what each warp does when is written down; 0 for nothing.
    """
    warps = warps_per_block * sampled_blocks
    # Rounds of a loop that are alike are one visit, many times.
    visits = list({id(visit): visit for visit in path}.values())
    numbered = {id(visit): number for number, visit in enumerate(visits)}
    first_request = np.concatenate(([0], np.cumsum([len(code.requests[visit.block]) for visit in visits])))
    rows = max(int(first_request[-1]), 1)
    passes = np.ones((rows, warps), np.float32)  # also where no lane asks for anything
    from_last = np.zeros((rows, warps), np.float32)
    active = np.zeros((max(len(visits), 1), warps), np.uint8)
    everyone = np.max([visit.lanes[:warps] for visit in visits] or [np.zeros(warps)], axis=0)
    for number, visit in enumerate(visits):
        lanes = visit.lanes[:warps]
        active[number] = np.where(lanes < everyone, 2, 1) * (lanes > 0)
        places = code.requests[visit.block]
        for place, request in zip(visit.places, visit.requests, strict=True):
            if place not in places:
                continue
            row = int(first_request[number]) + places[place]
            here = int(np.searchsorted(request.warps, warps))
            which = request.warps[:here]
            found = cached.get(id(request))
            if request.space not in ("global", "local") or found is None:
                passes[row, which] = request.passes[:here]
            elif request.kind in ("atom", "red"):
                from_last[row, which] = atomic_cycles[id(request)][:here]
            else:
                # A request goes through the first cache a line at a time, four sectors each.
                passes[row, which] = np.maximum(1, lines(request, here))
                wanted = found.missed + rates.alone * found.alone if request.kind == "ld" else request.counts[:here]
                from_last[row, which] = wanted
    shares = np.zeros(len(code.kinds))
    for (block, place), share in memory_share.items():
        asked = code.requests[block].get(place)
        if asked is not None:
            first, end = code.first_operation[block : block + 2]
            own = (code.request_of[first:end] == asked) & (code.kinds[first:end] == MEMORY)
            shares[first:end][own] = share
    barrier = gpu.barrier_cycles + _BARRIER_WARP * (warps_per_block - 1)
    numbers = np.array(
        [
            gpu.schedulers, slots, warps_per_block, blocks, sampled_blocks, len(path), code.registers, warps,
            most_spans, warps_of_round(warps_per_block, gpu.schedulers),
        ],
        np.int64,
    )  # fmt: skip
    given = np.array(
        [
            gpu.first_cache_cycles, gpu.last_cache_cycles, gpu.memory_cycles, gpu.shared_cycles,
            rates.per_last_sector, rates.per_memory_sector, barrier, _BLOCK_START, _QUEUE, _JUMP, rates.per_store_line,
            gpu.atomic_cycles, rates.between_blocks, _OWN_PASS,
        ]
    )  # fmt: skip
    steps = np.array([numbered[id(visit)] for visit in path] or [0], np.int32)
    blocks_of_visits = np.array([visit.block for visit in visits] or [0], np.int32)
    ready = np.zeros(slots * warps_per_block * code.registers)
    late = np.zeros(ready.size, np.uint8)
    ended, cycles_in, written = np.zeros(blocks), np.zeros(len(WarpState)), np.zeros(2, np.int64)
    room = most_spans + _MOST_OPEN if most_spans else 1
    cut, times, marks = np.full(1, np.inf if most_spans else -1.0), np.zeros((room, 2)), np.zeros((room, 4), np.int32)
    native.run(
        "multiprocessor", numbers, given, code.kinds, code.pipes, code.slots, code.busy, code.latencies, code.written,
        code.first_read, code.reads, code.request_of, shares, code.first_operation, steps, blocks_of_visits,
        first_request.astype(np.int64), active, passes, from_last, code.spaces, ready, late, np.zeros(shares.size),
        ended, cycles_in, written, cut, times, marks,
    )  # fmt: skip
    until = min(float(cut[0]), float(ended.max(initial=0.0)))
    spans = _spans(times[: written[1]], marks[: written[1]], until)
    return MachineRun(ended, cycles_in, int(written[0]), spans, until)


def _spans(times: Array, marks: Array, until: float) -> Array:
    """Return what was written down as spans up to a cycle, in order."""
    spans = np.empty(len(times), SPAN)
    spans["begin"], spans["end"] = times[:, 0], np.minimum(times[:, 1], until)
    spans["warp"], spans["state"], spans["operation"], spans["block"] = marks.T
    found: Array = spans[np.lexsort((times[:, 0], marks[:, 0]))]
    return found[found["begin"] < found["end"]]


def lines(request: Any, here: int) -> Array:
    """Return how many 128-byte lines each warp's sectors lie in."""
    sectors = request.sectors[: request.starts[here]]
    new = np.ones(sectors.size, np.int64)
    new[1:] = (sectors[1:] >> 2) != (sectors[:-1] >> 2)
    starts = request.starts[: here + 1]
    new[starts[:-1][np.diff(starts) > 0]] = 1
    sums = np.concatenate(([0], np.cumsum(new)))
    found: Array = np.diff(sums[starts])
    return found
