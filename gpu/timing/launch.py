"""How long one launch would take: its blocks sampled, run on one multiprocessor, and put together to the whole grid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing import caches, multiprocessor, unrolling
from gpu.timing.caches import CachedRequest, GridSharing
from gpu.timing.costs import BARRIER, PIPES
from gpu.timing.gpus import GpuDescription
from gpu.timing.occupancy import Occupancy, occupancy
from gpu.timing.ptx.census import GridCensus
from gpu.timing.ptx.chains import loads_before
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import Repeated, SampledPath, Visit
from gpu.timing.ptx.running import GridShape
from gpu.timing.sass import executed as sass
from gpu.timing.sass.cubin import MachineInstruction
from gpu.timing.sass.instructions import SIZE
from gpu.timing.timeline import SPAN, LaunchTimelines, TimedOperation, WarpTimeline
from gpu.timing.under_way import NO_LOADS, LoadsUnderWay, loads_under_way
from gpu.warp import WARP

Array = npt.NDArray[Any]

_SECTOR = 32
_MOST_OPERATIONS = 2_500_000
"""Operations of warps that the multiprocessor is run for; of what is longer, parts are, and the rest is reckoned."""
_MOST_TIMED, _LONGER = 120_000, 4
"""Operations of warps that a timeline is of; rounds of loops that are alike are left out of what is longer, and where
that is still so many times as long, what follows."""
_MOST_SPANS, _SPANS_OF_ALL = 300_000, 3_000_000
"""Spans that are written down of one timeline, and of all those of a launch."""
_MOST_LANES = 4096
_REGION_SHIFT = 4  # of sectors: atomics on 512 bytes queue at one place
_FLOAT_SUM = 2.4
"""How much longer than a sum of integers one of floats takes at its word: of an H200 and an H100."""
_WAVES = 3
_COUNTED, _LONG = ((1 << 16, 1.2, 600), (1 << 19, 2.0, 600), (1 << 24, 2.0, 40)), 2.0
"""Lanes of which it is counted what each warp has to do: a part of the grid, and where some block's longest warp has
more than so many times the mean of them, a larger one, if none comes to more basic blocks than so many: rounds that are
foreseen are none. From which multiple on they count as different."""
_SPREAD, _EVEN = ((10, 2560), (80, 20480)), 0.05
"""Blocks all over the grid, and lanes of them, that are sampled to see whether all do as much: few, and where these
differ, many; what counts as the same."""
_STORE_LINE = 4.0
"""Cycles in which a multiprocessor gives a line, or a part of one, to the last cache."""
_CODE_FETCHES, _FETCHED_SECTORS, _FETCHED_BYTES = 10.7, 818, 2580
"""How often each sector of a kernel's code is asked of the last cache, and what is asked of it and of memory besides,
whatever is launched: an H200's. The groups of its multiprocessors fetch code whether a block runs there or not."""
_MERGED, _MERGED_LOOSELY = 0.4, 0.1
"""Which share of what very many multiprocessors want together never comes to the last cache, as what stands before it
makes one request of several that are alike: where barriers keep blocks in step, and where none do. An H200's."""
_ASKING = ("ld", "ldu", "st", "atom", "red")
_KEPT = 0.64
"""Which share of the last cache is what was asked for last; what was stored of that has not gone to memory yet."""
_FIRST_CYCLES, _CODE_CYCLES, _MOST_CODE = 600.0, 6.0, 600.0
"""What a launch waits for its code and constants, which no cache has yet: at first, and for each instruction."""


@dataclass(frozen=True)
class LaunchEstimate:
    """What a launch would take.

    Parameters
    ----------
    time_us : float
    occupancy : Occupancy
    registers : int
    instructions : float
        Of warps, all of them together.
    requests : float
        To global memory, of warps.
    l2_sectors, dram_bytes : float
        What the last cache sees, in sectors of 32 bytes as `lts__t_sectors` counts them, and what goes between it and
        memory.
    shared_passes, bank_conflicts : float
        Wavefronts of shared memory, and how many of them are there because lanes want different words of one bank.
    sampled_blocks, of_blocks : int
    breakdown : mapping of str to float
        By what could have been the limit: microseconds that the launch would take if it were the only one.
    under_way : LoadsUnderWay
    shared_bytes : int
        Of a block, static and dynamic.
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
    of_blocks: int
    breakdown: Mapping[str, float] = field(default_factory=dict)
    under_way: LoadsUnderWay = NO_LOADS
    shared_bytes: int = 0

    @property
    def bound_by(self) -> str:
        return max(self.breakdown, key=lambda name: self.breakdown[name])


@dataclass(frozen=True, eq=False)
class _CountedGrid:
    """What blocks have to do that do not do the same.

    Parameters
    ----------
    blocks : array
        Those that were counted.
    work : array
        What each issues.
    longest : int
        The one with the longest warp.
    """

    blocks: Array
    work: Array
    longest: int


@dataclass(frozen=True, eq=False)
class _LongestBlock:
    """The block that may still run when all others have ended, and which share of the grid starts before it."""

    path: SampledPath
    before: float


@dataclass(frozen=True, eq=False)
class _Sample:
    """What blocks of one multiprocessor do, and what they find.

    Parameters
    ----------
    shape : GridShape
    held : Occupancy
    slots, per_machine : int
        Blocks that it has at once of this launch, and in all.
    path : SampledPath
    wide : SampledPath or None
        That of blocks all over the grid, where they do not do the same.
    of_wide : float
        How many blocks of the grid each of those stands for.
    uneven : float
        What those do, as a share of what the others do.
    longest : _LongestBlock or None
        The block with the longest warp, where they do not do the same and all could be counted.
    ends : sequence of SampledPath
        The grid's first block, its last one and that which does most of those all over it, where all run at once and
        these do something else: all wait for them.
    last : tuple of SampledPath
        What the first of these blocks would do if it were the last one to end and knew it by a number that it draws,
        and what it does as it is; nothing where that is the same way.
    cached : mapping of int to CachedRequest
        What each request misses in the first cache, by its id.
    traffic : LaunchTraffic
    share : mapping
        As of `multiprocessor.run`, like `rates` and `atomics`.
    rates : SharedRates
    atomics : mapping of int to array
    hot_us, atomic_us : float
        What atomics take on the busiest place, and all of them together.
    """

    shape: GridShape
    held: Occupancy
    slots: int
    per_machine: int
    path: SampledPath
    wide: SampledPath | None
    of_wide: float
    uneven: float
    longest: _LongestBlock | None
    ends: Sequence[SampledPath]
    last: Sequence[SampledPath]
    cached: Mapping[int, CachedRequest]
    traffic: caches.LaunchTraffic
    share: Mapping[tuple[int, int], float]
    rates: multiprocessor.SharedRates
    atomics: Mapping[int, Array]
    hot_us: float
    atomic_us: float


class LaunchModel:
    """A kernel on a GPU.

    Parameters
    ----------
    machine : PtxMachine
    gpu : GpuDescription
    registers : int
        Of a thread.
    instructions : sequence of MachineInstruction
        Its machine code; empty where that is not known.
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
        self._unrolled, self._several = unrolling.unrolled(machine.kernel)
        self._code = multiprocessor.machine_code(self._unrolled, gpu)
        blocks = machine.kernel.blocks
        self._instructions = instructions
        estimated = float(self._code.slots_of_block[: len(blocks)].sum())
        self._code_bytes = SIZE * (float(len(instructions)) or estimated)
        self._waits = [
            any(cost == BARRIER for cost in self._code.kinds[first:end])
            for first, end in pairwise(self._code.first_operation)
        ]
        self._waits_for = [loads_before(block) for block in self._unrolled.blocks]
        self._census = GridCensus(machine.kernel, machine.addresses, self._code.slots_of_block[: len(blocks)])
        self._depends_on_data = any(
            each.opcode == "bra" and each.guard for block in blocks for each in block.instructions
        )

    def estimate(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> LaunchEstimate:
        """Return what a launch would take; the memory is left as it was."""
        return self._put_together(self._sampled(shape, parameters, memory))

    def timelines(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, time_us: float | None = None
    ) -> LaunchTimelines:
        """Return when a launch's warps issue on one multiprocessor; `source` is left empty.

        The same blocks are run with one of them resident, with two, and so on. What they find in the caches, and each
        multiprocessor's share of what all have, is that of the launch as it is. What it would take is estimated where
        `time_us` does not say it.
        """
        sample = self._sampled(shape, parameters, memory)
        if time_us is None:
            time_us = self._put_together(sample).time_us
        most = max(1, min(sample.held.blocks, _MOST_LANES // (shape.warps * WARP) or 1))
        steps, left_out = self._timed_steps(sample, most)
        per_block = self._operations(steps, sample.slots * shape.warps) / sample.slots
        blocks = most if 2 * most * per_block > _MOST_TIMED or sample.per_machine <= most else 2 * most
        operations = tuple(TimedOperation(each.line, each.text) for each in self._code.instructions)
        pieces: list[Array] = []
        found: list[WarpTimeline] = []
        first = 0
        for resident in range(1, most + 1):
            run = self._run(sample, steps, resident, blocks, most_spans=min(_MOST_SPANS, _SPANS_OF_ALL // most))
            found.append(
                WarpTimeline(
                    resident, float(run.ended[-1]), tuple(run.cycles_in.tolist()), run.issued, first,
                    first + run.spans.size, run.until,
                )
            )  # fmt: skip
            first += run.spans.size
            pieces.append(run.spans)
        return LaunchTimelines(
            self._gpu.name, self._machine.kernel.name, shape.grid, shape.block, time_us, "",
            self._gpu.schedulers, shape.warps, blocks, sample.per_machine, sample.slots, sample.held.limited_by,
            left_out, operations, tuple(found), np.concatenate(pieces) if pieces else np.empty(0, SPAN),
        )  # fmt: skip

    def _timed_steps(self, sample: _Sample, most: int) -> tuple[list[Visit], str]:
        """Return the visits that a timeline is of, and what is left out of them."""
        warps, path = sample.slots * sample.shape.warps, sample.path
        lengths = np.diff(self._code.first_operation)
        whole = sum(
            float(lengths[each.block] * np.count_nonzero(each.lanes[:warps])) * times
            for each, times in caches.visits(path.steps)
        )
        room = _MOST_TIMED * sample.slots / most
        if whole <= room:
            return list(caches.flat(path.steps, lambda step: step.times)), ""
        steps = list(caches.flat(path.steps, lambda step: 0))
        done = np.cumsum([lengths[each.block] * np.count_nonzero(each.lanes[:warps]) for each in steps])
        if done[-1] > _LONGER * room:
            return steps[: int(np.searchsorted(done, _LONGER * room)) + 1], "all but the beginning of each block"
        return steps, "rounds of loops that are alike" if len(steps) < len(path.steps) else ""

    def _sampled(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> _Sample:
        """Run the blocks of one multiprocessor, and say what they find in the caches; the memory is as it was."""
        gpu = self._gpu
        shared_bytes = self._machine.kernel.shared_bytes + shape.shared_bytes
        held = occupancy(gpu, shape.threads, self._registers, shared_bytes)
        per_machine = -(-shape.blocks // gpu.multiprocessors)
        slots = max(1, min(held.blocks, per_machine, _MOST_LANES // (shape.warps * WARP) or 1))
        chosen, sharing = _chosen(shape, gpu, slots, max(held.blocks, 1))
        path = self._path_of(shape, parameters, chosen, memory)
        wide, uneven, longest, of_wide = self._everywhere(shape, parameters, memory, path, slots), 1.0, None, 1.0
        counted = self._count(shape, parameters, memory) if self._may_differ(shape, slots) else None
        if wide is None and counted is not None:
            wide = self._path_of(shape, parameters, _spread(shape, *_SPREAD[-1]), memory)
        if wide is not None:
            of_wide = shape.blocks / len(wide.blocks)
            blocks, work = np.asarray(wide.blocks), self._slots(wide, len(wide.blocks))
            if counted is not None:
                blocks, work = counted.blocks, counted.work
                of_sample = self._census.count(shape, parameters, wide.blocks, memory)
                assert of_sample is not None
                of_wide *= float(work.mean() / of_sample.sum(axis=1).mean())
                alone = self._path_of(shape, parameters, [counted.longest], memory)
                longest = _LongestBlock(alone, counted.longest / shape.blocks)
            places = _by_work(work, slots)
            chosen, sharing = _with_neighbors(blocks[places].tolist(), shape, sharing.at_once)
            path = self._path_of(shape, parameters, chosen, memory)
            uneven = float(work.mean()) / max(float(work[places].mean()), 1.0)
        warps, scale = slots * shape.warps, shape.blocks / slots
        cached = self._through_first_cache(path, shape, slots, slots)
        traffic = self._traffic(path, wide, of_wide, shape, cached, sharing, warps, memory)
        active = min(shape.blocks, gpu.multiprocessors)
        rates = self._rates(active)
        share = self._memory_shares(path, traffic, rates.alone)
        atomics, hot_us, atomic_us = self._atomics(path, slots, shape.warps, scale, active)
        ends = []
        if slots < shape.blocks and per_machine <= held.blocks and self._depends_on_data:
            alike = self._slots(path, slots)
            others = [0, shape.blocks - 1]
            if wide is not None:
                others.append(wide.blocks[int(self._slots(wide, len(wide.blocks)).argmax())])
            apart = (self._path_of(shape, parameters, [block], memory) for block in dict.fromkeys(others))
            ends = [each for each in apart if self._slots(each, 1)[0] not in alike]
        last = self._last_to_end(shape, parameters, path, memory)
        return _Sample(
            shape, held, slots, per_machine, path, wide, of_wide, uneven, longest, ends, last, cached, traffic, share,
            rates, atomics, uneven * hot_us, uneven * atomic_us,
        )  # fmt: skip

    def _last_to_end(
        self, shape: GridShape, parameters: Array, path: SampledPath, memory: SampledMemory
    ) -> Sequence[SampledPath]:
        """Return what the first block does if it draws the last numbers, and as it is; nothing if that is the same."""
        if not path.tickets or self._machine.waits_for_others:  # who waits for others has little left to do behind them
            return ()
        for address, (dtype, each) in path.tickets.items():
            place = np.array([address])
            memory.store(place, memory.load(place, dtype) + dtype.type((shape.blocks - 1) * int(each)), dtype)
        last = self._path_of(shape, parameters, path.blocks[:1], memory)
        ways = ({visit.block for visit, _ in caches.visits(each.steps)} for each in (last, path))
        return (last, self._path_of(shape, parameters, path.blocks[:1], memory)) if next(ways) - next(ways) else ()

    def _through_first_cache(
        self, path: SampledPath, shape: GridShape, blocks: int, slots: int
    ) -> dict[int, CachedRequest]:
        """Run what some blocks ask for through the first cache of a multiprocessor that has room for so many."""
        gpu, shared_bytes = self._gpu, self._machine.kernel.shared_bytes + shape.shared_bytes
        size = caches.first_cache_bytes(gpu, slots * (shared_bytes + gpu.shared_reserved_bytes) if shared_bytes else 0)
        return caches.through_first_cache(path.steps, blocks * shape.warps, size, self._waits_for.__getitem__)

    def _rates(self, active: int) -> multiprocessor.SharedRates:
        """Return what one multiprocessor has of what so many share."""
        gpu, clock = self._gpu, self._gpu.clock_ghz
        together = min(gpu.last_cache_gb_s / active, gpu.last_cache_mp_gb_s)
        return multiprocessor.SharedRates(
            _SECTOR * clock / together,
            _SECTOR * clock / min(gpu.memory_gb_s / active, gpu.memory_mp_gb_s),
            _STORE_LINE,
            gpu.block_ns * clock * gpu.multiprocessors,
            together / min(gpu.last_cache_random_gb_s / active, together) - 1,
        )

    def _count(self, shape: GridShape, parameters: Array, memory: SampledMemory) -> _CountedGrid | None:
        """Return what blocks have to do; None where all warps do about as much, or where it cannot be foreseen."""
        found = None
        for most, same, visits in _COUNTED:
            apart = max(1, -(-shape.blocks * shape.warps * WARP // most))
            blocks = np.arange(0, shape.blocks, apart)
            issued = self._census.count(shape, parameters, blocks.tolist(), memory, visits)
            if issued is None:
                break
            longest = issued.max(axis=1)
            times = float(longest.max() / longest.mean())
            found = _CountedGrid(blocks, issued.sum(axis=1), int(blocks[longest.argmax()])) if times > _LONG else None
            if apart == 1 or times <= same:
                break
        return found

    def _path_of(
        self, shape: GridShape, parameters: Array, blocks: Sequence[int], memory: SampledMemory
    ) -> SampledPath:
        try:
            path = self._machine.run(shape, parameters, blocks, memory)
        finally:
            memory.restore()
        return unrolling.in_rounds(path, self._machine.kernel, self._several)

    def _may_differ(self, shape: GridShape, slots: int) -> bool:
        """Whether there may be blocks that do something else than those of one multiprocessor."""
        return shape.blocks > 2 * slots and self._depends_on_data

    def _everywhere(
        self, shape: GridShape, parameters: Array, memory: SampledMemory, path: SampledPath, slots: int
    ) -> SampledPath | None:
        """Return what blocks all over the grid do; None where that is what those of one multiprocessor do, too."""
        if not self._may_differ(shape, slots):
            return None
        here = float(self._slots(path, slots).mean())
        wide = None
        for most, lanes in _SPREAD:
            chosen = _spread(shape, most, lanes)
            wide = self._path_of(shape, parameters, chosen, memory)
            work = self._slots(wide, len(chosen))
            if abs(float(work.mean()) - here) <= _EVEN * here and abs(float(work[0]) - here) <= here:
                return None
        return wide

    def _slots(self, path: SampledPath, blocks: int) -> Array:
        """Return the instructions of each of the first blocks of a path."""
        found = np.zeros(blocks)
        for visit, times in caches.visits(path.steps):
            ran = visit.lanes[: blocks * path.warps_per_block].reshape(blocks, -1)
            found += times * float(self._code.slots_of_block[visit.block]) * np.count_nonzero(ran, axis=1)
        return found

    def _put_together(self, sample: _Sample) -> LaunchEstimate:
        gpu, shape, path, traffic = self._gpu, sample.shape, sample.path, sample.traffic
        total, hot_us = shape.blocks, sample.hot_us
        seen_in, blocks, scale = path, sample.slots, total / sample.slots
        if sample.wide is not None:
            seen_in, blocks, scale = sample.wide, len(sample.wide.blocks), sample.of_wide
        counted = self._counted(seen_in, blocks * shape.warps, scale)
        lines = self._lines_run(seen_in, blocks * shape.warps, scale)
        executed = sass.executed(self._instructions, lines, float(total * shape.warps))
        instructions = counted["slots"] if executed is None else executed
        active = min(total, gpu.multiprocessors)
        clock = gpu.clock_ghz
        # Blocks that all run at once are waited for, also for those that do more than the others.
        at_once = sample.per_machine <= sample.held.blocks
        cycles = (max(1.0, sample.uneven) if at_once else sample.uneven) * self._cycles(sample)
        if sample.longest is not None:
            cycles = max(cycles, sample.longest.before * cycles + self._cycles_alone(sample, sample.longest.path, 1))
        for path_of_end in sample.ends:
            cycles = max(cycles, self._cycles_alone(sample, path_of_end, active))
        if sample.last:
            last, usual = (self._cycles_alone(sample, each, 1) for each in sample.last)
            cycles += max(0.0, last - usual)
        loaded = sum(each.loaded for each in traffic.arrays.values())
        slower = sum(sample.rates.alone * each.alone * each.loaded for each in traffic.arrays.values())
        stored = sum(each.stored for each in traffic.arrays.values())
        memory_sectors = sum(each.from_memory + each.to_memory for each in traffic.arrays.values())
        slowed = sum((each.from_memory + each.to_memory) * each.scattered for each in traffic.arrays.values())
        dram_us = slowed * _SECTOR / gpu.memory_gb_s / 1e3
        issue = counted["slots"] / gpu.schedulers / gpu.multiprocessors / clock / 1e3
        breakdown = {
            "memory": dram_us,
            "last cache": (loaded + slower + stored) * _SECTOR / gpu.last_cache_gb_s / 1e3,
            "first cache and shared memory": (counted["passes"] + counted["lines"]) / active / clock / 1e3,
            "issue": issue,
            "arithmetic": counted["busiest"] / gpu.schedulers / active / clock / 1e3,
            "atomics": max(hot_us, sample.atomic_us),
            "launch": gpu.launch_us,
        }
        visited = {visit.block for visit, _ in caches.visits(path.steps)}
        code = sum(float(self._code.slots_of_block[block]) for block in visited)
        cycles += _FIRST_CYCLES + _CODE_CYCLES * min(code, _MOST_CODE)
        body = max(cycles / clock / 1e3, hot_us, dram_us)
        time = gpu.launch_us + body
        breakdown["latency"] = max(0.0, body - max(each for name, each in breakdown.items() if name != "launch"))
        seen = self._last_cache_sectors(path, traffic, counted["atomics"])
        return LaunchEstimate(
            time, sample.held, self._registers, instructions, counted["requests"], seen,
            memory_sectors * _SECTOR + _FETCHED_BYTES + self._code_bytes, counted["passes"], counted["conflicts"],
            len(path.blocks), total, breakdown,
            loads_under_way(self._unrolled, self._code, path.steps, sample.slots * shape.warps),
            self._machine.kernel.shared_bytes + shape.shared_bytes,
        )  # fmt: skip

    def _last_cache_sectors(self, path: SampledPath, traffic: caches.LaunchTraffic, atomics: float) -> float:
        """Return what the last cache sees: what comes to it, and what one part of it wants of another."""
        arrays, parts = traffic.arrays.values(), self._gpu.last_cache_parts
        # Half of what one multiprocessor wants is in the other part of two; of what many want, all is for some of them.
        crossing = sum(
            each.stored * (1 - 1 / parts) + each.from_memory * (1 - math.pow(parts, -each.wanted_by)) for each in arrays
        )
        waits = any(self._waits[visit.block] for visit, _ in caches.visits(path.steps))
        merged = _MERGED if waits else _MERGED_LOOSELY
        loaded = sum(each.loaded * (1 - each.alike * merged * (1 - 1 / each.wanted_by)) for each in arrays)
        stored = sum(each.stored for each in arrays)
        fetched = _FETCHED_SECTORS + _CODE_FETCHES * self._code_bytes / _SECTOR
        return loaded + stored + crossing + atomics * (2 - 1 / parts) + fetched

    def _traffic(
        self,
        path: SampledPath,
        wide: SampledPath | None,
        of_wide: float,
        shape: GridShape,
        cached: Mapping[int, CachedRequest],
        sharing: GridSharing,
        warps: int,
        memory: SampledMemory,
    ) -> caches.LaunchTraffic:
        gpu, traffic = self._gpu, caches.LaunchTraffic()
        sizes, width = memory.sizes, shape.warps
        scale = shape.blocks * width / warps
        everywhere: dict[tuple[int, str], float] = {}
        if wide is not None:
            everywhere = {key: amount * of_wide for key, amount in caches.asked(wide, len(wide.blocks) * width).items()}
        amounts = {key: amount * scale for key, amount in caches.asked(path, warps).items()}
        missed = {key: amount * scale for key, amount in caches.missed(path, cached).items()}
        alone = {key: amount * scale for key, amount in caches.missed(path, cached, alone=True).items()}
        more = {key: everywhere[key] / amounts[key] for key in everywhere if amounts.get(key)}
        for window, kind in dict.fromkeys((*amounts, *everywhere)):
            own = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            key = (window, kind)
            amount = everywhere.get(key, amounts.get(key, 0.0))
            if kind == "ld":
                own.loaded = missed.get(key, 0.0) * more.get(key, 1.0) if key in amounts else amount
                own.alone = alone[key] / missed[key] if missed.get(key) else 0.0
            elif kind == "st":
                own.stored = amount
            else:
                own.added += amount
        weights = self._left_out(path)
        loads = caches.distinct(path.steps, width, sharing, stores=False)
        of_one = caches.sectors_of(path.steps, 0, warps, stores=False)
        stores = caches.distinct(path.steps, width, sharing, stores=True)
        cache = 0.5 * gpu.last_cache_bytes / _SECTOR
        wave_of_all = sum(
            min(each.wave * weights.get(window, 1.0), sizes.get(window, 1 << 60) / _SECTOR)
            for window, each in loads.items()
        )
        waves = max(1.0, sharing.grid[0] * sharing.grid[1] / sharing.at_once)
        for window, (wave, grid, pairs, alike) in loads.items():
            own = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            most = sizes.get(window, 1 << 60) / _SECTOR
            further = weights.get(window, 1.0) * more.get((window, "ld"), 1.0)
            if window in of_one:
                own.wanted_by = min(max(1.0, of_one[window].size * scale / grid), shape.blocks, gpu.multiprocessors)
            own.alike = alike
            grid, wave = grid * further, wave * further
            new = grid if 2 * wave_of_all <= cache else max(grid, min(wave, most) * waves)
            if new > most:
                new = most + (new - most) * (1 - min(1.0, cache / most))
            # What lies alone comes with the other half of its pair, which is of the same array.
            own.from_memory = min(new * pairs, max(new, most), (own.loaded + own.added) * pairs)
            own.scattered = self._scattered(pairs)
        written = []
        for window, (_, grid, pairs, _) in stores.items():
            own = traffic.arrays.setdefault(window, caches.ArrayTraffic())
            most = sizes.get(window, 1 << 60) / _SECTOR
            new = min(grid * weights.get(window, 1.0) * more.get((window, "st"), 1.0), own.stored)
            if new > most:
                new = most + (new - most) * (1 - min(1.0, cache / most))
            written.append((own, new, pairs))
        through = sum(each.from_memory for each in traffic.arrays.values()) + sum(new for _, new, _ in written)
        kept = min(1.0, _KEPT * gpu.last_cache_bytes / _SECTOR / max(through, 1.0))
        for own, new, pairs in written:
            # What fills no sector is read before it is written.
            own.to_memory = (1 - kept) * new * pairs
            own.scattered = max(own.scattered, self._scattered(pairs) * pairs)
        return traffic

    def _scattered(self, pairs: float) -> float:
        """Return how much longer memory takes for sectors of which so many lie alone: 1 none, 2 all."""
        alone = self._gpu.memory_gb_s / self._gpu.random_gb_s
        return (1 + (alone - 1) * (pairs - 1)) / pairs

    @staticmethod
    def _left_out(path: SampledPath) -> dict[int, float]:
        """Return by array how much more is asked of it than in the rounds that were run."""
        run: dict[int, float] = {}
        whole: dict[int, float] = {}
        for visit, times in caches.visits(path.steps):
            for request in visit.requests:
                if request.space == "global" and request.sectors.size:
                    window = caches.window_of(request)
                    whole[window] = whole.get(window, 0.0) + times * request.sectors.size
        for step in path.steps:
            for request in step.requests if isinstance(step, Visit) else ():
                if request.space == "global" and request.sectors.size:
                    window = caches.window_of(request)
                    run[window] = run.get(window, 0.0) + request.sectors.size
        return {window: amount / run[window] for window, amount in whole.items() if run.get(window)}

    def _memory_shares(
        self, path: SampledPath, traffic: caches.LaunchTraffic, alone: float
    ) -> dict[tuple[int, int], float]:
        shares: dict[tuple[int, int], float] = {}
        for step, _ in caches.visits(path.steps):
            for place, request in zip(step.places, step.requests, strict=True):
                key = (step.block, place)
                if request.space != "global" or key in shares or not request.sectors.size:
                    continue
                own = traffic.arrays.get(caches.window_of(request))
                if own is None:
                    continue
                if request.kind == "ld":
                    all_loaded = own.loaded * (1 + alone * own.alone) + own.added
                    shares[key] = own.from_memory * own.scattered / all_loaded if all_loaded else 0.0
                elif request.kind == "st":
                    shares[key] = own.to_memory * own.scattered / own.stored if own.stored else 0.0
        return shares

    def _atomics(
        self, path: SampledPath, slots: int, width: int, scale: float, active: int
    ) -> tuple[dict[int, Array], float, float]:
        """Return what each request's atomics cost each warp, the time of the busiest place, and of all together."""
        gpu = self._gpu
        costs: dict[int, Array] = {}
        regions: list[Array] = []
        loads: list[Array] = []
        blocks: list[Array] = []
        atomic_ns = 0.0
        for visit, times in caches.visits(path.steps):
            for place, request in zip(visit.places, visit.requests, strict=True):
                if request.kind not in ("atom", "red") or request.space != "global":
                    continue
                counts = request.counts
                slower = _FLOAT_SUM if self._is_float(visit.block, place) else 1.0
                # Lanes that want one word are added one by one, and the words of a line at once.
                lines = multiprocessor.lines(request, request.warps.size)
                turns = np.minimum(request.lanes, request.passes * lines)
                taken = np.maximum(counts * gpu.atomic_ns, turns * gpu.atomic_lane_ns * slower)
                costs[id(request)] = np.maximum(taken * gpu.clock_ghz * active, 1.0)
                atomic_ns += times * float(taken[request.warps < slots * width].sum())
                of_warp = np.repeat(request.warps, counts)
                # Lanes that want one word go one after the other; other words of a sector go together.
                queue = np.maximum(1.0, np.repeat(request.passes / np.maximum(counts, 1), counts))
                regions.append(request.sectors >> _REGION_SHIFT)
                loads.append(queue * times * slower)
                blocks.append(of_warp // width)
        if not regions:
            return costs, 0.0, 0.0
        everything, of_blocks, amounts = np.concatenate(regions), np.concatenate(blocks), np.concatenate(loads)
        # Neighbors may have a place in common that no other has: blocks that lie apart say what all have in common.
        sampled = slots if slots > 1 else len(path.blocks)
        apart = of_blocks < sampled
        everything, of_blocks, amounts = everything[apart], of_blocks[apart], amounts[apart]
        places, which = np.unique(everything, return_inverse=True)
        sums = np.bincount(which, amounts)
        pairs = np.unique(np.stack([which, of_blocks], axis=1), axis=0)
        seen_in = np.bincount(pairs[:, 0], minlength=places.size)
        common = seen_in >= max(2 if sampled > 1 else 1, sampled / 2)
        hottest = float(sums[common].max()) if common.any() else 0.0
        total_blocks = scale * slots
        hot_us = hottest / sampled * total_blocks * gpu.atomic_same_ns / 1e3
        return costs, hot_us, atomic_ns * scale / 1e3

    def _is_float(self, block: int, instruction: int) -> bool:
        return self._unrolled.blocks[block].instructions[instruction].type.startswith("f")

    def _counted(self, path: SampledPath, warps: int, scale: float) -> dict[str, float]:
        found = {"slots": 0.0, "requests": 0.0, "passes": 0.0, "conflicts": 0.0, "lines": 0.0, "atomics": 0.0}
        pipes = np.zeros(len(PIPES))
        for visit, times in caches.visits(path.steps):
            here = int(np.count_nonzero(visit.lanes[:warps])) * times * scale
            found["slots"] += here * float(self._code.slots_of_block[visit.block])
            pipes += here * self._code.uses_of_block[visit.block]
            for request in visit.requests:
                end = int(np.searchsorted(request.warps, warps))
                if request.space == "shared":
                    found["passes"] += times * scale * float(request.passes[:end].sum())
                    found["conflicts"] += times * scale * float(request.conflicts[:end].sum())
                elif request.space == "global":
                    found["requests"] += times * scale * end
                    if request.kind in ("atom", "red"):
                        found["atomics"] += times * scale * float(request.starts[end])
                    else:
                        found["lines"] += times * scale * float(multiprocessor.lines(request, end).sum())
        found["busiest"] = float(pipes.max())
        return found

    def _operations(self, steps: Sequence[Visit], warps: int) -> float:
        """Return how many operations the first so many warps of a sample do on some visits."""
        lengths = np.diff(self._code.first_operation)
        return float(sum(lengths[each.block] * np.count_nonzero(each.lanes[:warps]) for each in steps))

    def _run(
        self, sample: _Sample, steps: Sequence[Visit], slots: int, blocks: int, *, most_spans: int = 0
    ) -> multiprocessor.MachineRun:
        """Run so many blocks, in turn those of a sample, on one multiprocessor that holds `slots` of them at once."""
        return multiprocessor.run(
            self._code, steps, sample.cached, sample.share, self._gpu, sample.rates, slots=slots,
            warps_per_block=sample.shape.warps, sampled_blocks=sample.slots, blocks=blocks,
            atomic_cycles=sample.atomics, most_spans=most_spans,
        )  # fmt: skip

    def _lines_run(self, path: SampledPath, warps: int, scale: float) -> dict[int, sass.ExecutedLine]:
        """Return how often the launch's warps run each line of the PTX; what a predicate guards only where it asks."""
        times_of: dict[int, float] = defaultdict(float)
        opcodes: dict[int, str] = {}
        for visit, times in caches.visits(path.steps) if self._instructions else ():
            here = float(np.count_nonzero(visit.lanes[:warps]))
            asking = {
                place: float(np.searchsorted(request.warps, warps))
                for place, request in zip(visit.places, visit.requests, strict=True)
            }
            for place, each in enumerate(self._unrolled.blocks[visit.block].instructions):
                if each.opcode == "pragma" or (each.guard and each.opcode not in _ASKING):
                    continue
                times_of[each.text_line] += times * scale * (asking.get(place, 0.0) if each.guard else here)
                opcodes[each.text_line] = each.opcode
        return {line: sass.ExecutedLine(amount, opcodes[line]) for line, amount in times_of.items()}

    def _cycles(self, sample: _Sample) -> float:
        """Return the cycles from the first block's start to the last one's end."""
        lengths = np.diff(self._code.first_operation)
        path, slots, per_machine = sample.path, sample.slots, sample.per_machine
        warps = slots * sample.shape.warps

        def steps(copies: int) -> list[Visit]:
            return list(caches.flat(path.steps, lambda step: min(step.times, copies)))

        def waves(own: float) -> int:
            """Return how many waves of blocks are run where one takes so many operations: at most three."""
            return max(1, min(_WAVES, int(_MOST_OPERATIONS / max(own, 1.0))))

        def simulated(chosen: Sequence[Visit], blocks: int) -> float:
            return self._whole_grid(self._run(sample, chosen, slots, blocks).ended, slots, per_machine)

        whole = float(
            sum(
                lengths[visit.block] * np.count_nonzero(visit.lanes[:warps]) * times
                for visit, times in caches.visits(path.steps)
            )
        )
        has_rest = any(isinstance(step, Repeated) for step in path.steps)
        if whole <= _MOST_OPERATIONS or not has_rest:
            return simulated(steps(1 << 30), min(per_machine, waves(whole) * slots))
        less, more = steps(0), steps(1)
        few, many = self._operations(less, warps), self._operations(more, warps)
        blocks = min(per_machine, waves(many) * slots)
        one, two = simulated(less, blocks), simulated(more, blocks)
        return two + (whole - many) * max(two - one, 0.0) / max(many - few, 1.0)

    def _cycles_alone(self, sample: _Sample, path: SampledPath, active: int) -> float:
        """Return the cycles of a block that has a multiprocessor for itself, while so many have work."""
        cached, rates = self._through_first_cache(path, sample.shape, 1, sample.slots), self._rates(active)
        atomics, _, _ = self._atomics(path, 1, sample.shape.warps, 1.0, active)
        return self._cycles(
            replace(sample, slots=1, per_machine=1, path=path, cached=cached, rates=rates, atomics=atomics)
        )

    @staticmethod
    def _whole_grid(ended: Array, slots: int, per_machine: int) -> float:
        """Return when so many blocks would end, where the first ones ended at these cycles."""
        run = ended.size
        if per_machine <= run:
            return float(ended[per_machine - 1])
        if run <= slots:
            return float(ended[-1]) * per_machine / run
        rate = float(ended[-1] - ended[run - slots - 1]) / slots if run > slots else float(ended[-1]) / run
        if run >= 2 * slots:
            rate = float(ended[run - slots // 2 - 1] - ended[slots - slots // 2 - 1]) / (run - slots)
        return float(ended[-1]) + (per_machine - run) * rate


def _chosen(shape: GridShape, gpu: GpuDescription, slots: int, held: int) -> tuple[list[int], GridSharing]:
    """Return the blocks to sample: those of one multiprocessor in the middle of the grid, and neighbors of one."""
    total, apart = shape.blocks, gpu.multiprocessors
    waves = total // (apart * slots)
    base = waves // 2 * apart * slots + min(apart, total) // 2
    places = [apart * number for number in range(slots)]
    base = max(0, min(base, total - 1 - max(places)))
    chosen = [min(base + place, total - 1) for place in places]
    return _with_neighbors(chosen, shape, min(total, apart * held))


def _with_neighbors(chosen: list[int], shape: GridShape, at_once: int) -> tuple[list[int], GridSharing]:
    """Add the neighbors of the first block, by which it is seen what blocks share."""
    chosen, base, total = list(chosen), chosen[0], shape.blocks
    across = shape.grid[0]
    rows = total // across
    beside = below = -1
    if across > 1:
        neighbor = base + 1 if base % across + 1 < across else base - 1
        if neighbor not in chosen:
            chosen.append(neighbor)
        beside = chosen.index(neighbor)
    if rows > 1:
        neighbor = base + across if base + across < total else base - across
        if neighbor not in chosen:
            chosen.append(neighbor)
        below = chosen.index(neighbor)
    return chosen, GridSharing((across, rows), at_once, 0, beside, below)


def _spread(shape: GridShape, most: int, lanes: int) -> list[int]:
    """Return one block of each of some parts of the grid."""
    count = min(most, max(2, lanes // (shape.warps * WARP)), shape.blocks)
    parts = np.linspace(0, shape.blocks, count + 1).astype(np.int64)
    chosen: list[int] = np.random.default_rng(0).integers(parts[:-1], parts[1:]).tolist()
    chosen[0] = 0  # where a grid is too large for its work, the first blocks have it
    return chosen


def _by_work(work: Array, count: int) -> list[int]:
    """Return so many places of some blocks' work that each stands for as much of what all of them do."""
    ends = np.cumsum(np.maximum(work, 1e-9))
    wanted = (np.arange(count) + 0.5) / count * ends[-1]
    found = list(dict.fromkeys(np.searchsorted(ends, wanted).tolist()))
    if len(found) < count:
        known = set(found)
        found += [place for place in np.argsort(-work, kind="stable").tolist() if place not in known]
    return found[:count]
