"""What sampled blocks find in the caches: in the first, run through; in the last, by what all blocks share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.timing import native
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.memory import WINDOW_BITS
from gpu.timing.ptx.path import PERIOD, Repeated, Request, SampledPath, Step, Visit

Array = npt.NDArray[Any]

_SECTOR = 32
_LINE = 128
_SETS = 64
_WINDOW_SHIFT = WINDOW_BITS - 5
_LOAD, _STORE, _PAST = 0, 1, 2


@dataclass(frozen=True, eq=False)
class CachedRequest:
    """A request, and what of it misses the first cache: one number for each of its warps.

    Parameters
    ----------
    request : Request
    missed : array
        Sectors.
    alone : array
        Those of them whose pair of 64 bytes is otherwise not wanted.
    """

    request: Request
    missed: Array
    alone: Array


@dataclass
class ArrayTraffic:
    """What is asked of one array in a launch, in sectors; all of the grid's blocks together.

    Parameters
    ----------
    loaded : float
        That loads ask of the last cache.
    from_memory : float
        Of those, what comes from memory.
    stored : float
        That stores give to the last cache.
    to_memory : float
        What goes on to memory before the launch ends.
    added : float
        That atomics ask of the last cache, where they are done.
    wanted_by : float
        How many multiprocessors load a sector, the mean.
    alike : bool
        As of DistinctSectors.
    scattered : float
        How much longer memory takes for these sectors than for as many side by side.
    alone : float
        Which share of what loads ask of the last cache are sectors whose pair of 64 bytes is otherwise not wanted.
    """

    loaded: float = 0.0
    from_memory: float = 0.0
    stored: float = 0.0
    to_memory: float = 0.0
    scattered: float = 1.0
    added: float = 0.0
    wanted_by: float = 1.0
    alike: bool = False
    alone: float = 0.0


@dataclass
class LaunchTraffic:
    """What a launch moves: by array, the number of its window."""

    arrays: dict[int, ArrayTraffic] = field(default_factory=dict)


def first_cache_bytes(gpu: GpuDescription, shared_bytes: int) -> int:
    """Return what is left of a multiprocessor's memory as a cache where blocks take so much of it."""
    wanted = next((size for size in gpu.shared_sizes if size << 10 >= shared_bytes), gpu.shared_sizes[-1])
    taken = wanted << 10 if shared_bytes else 0
    return max(gpu.first_cache_bytes - taken, 16 << 10)


def visits(steps: Sequence[Step], times: float = 1.0) -> Iterator[tuple[Visit, float]]:
    """Yield each visit and how often it happens, those of rounds that were left out with their last rounds."""
    for step in steps:
        if isinstance(step, Visit):
            yield step, times
        else:
            yield from visits(step.round, times * step.times)


def flat(steps: Sequence[Step], copies: Callable[[Repeated], int]) -> Iterator[Visit]:
    """Yield visits in order, rounds that were left out so many times."""
    for step in steps:
        if isinstance(step, Visit):
            yield step
        else:
            for _ in range(copies(step)):
                yield from flat(step.round, copies)


def through_first_cache(
    steps: Sequence[Step], warps: int, size: int, waits: Callable[[int], Sequence[int]]
) -> dict[int, CachedRequest]:
    """Run what some warps ask for through one multiprocessor's first cache.

    Of the loads of a basic block a warp makes those that do not wait for each other before another warp has its turn.

    Parameters
    ----------
    steps : sequence of Step
    warps : int
        The first so many of the sample are on that multiprocessor.
    size : int
        Of the cache, in bytes.
    waits : callable
        A basic block -> of each instruction how many loads it waits for, one behind the other.

    Returns
    -------
    dict of int to CachedRequest
        By the request's id.
    """
    asked: list[tuple[Request, int]] = []
    pieces: list[Array] = []
    kinds: list[Array] = []
    turns: list[Array] = []
    turn = 0
    for step in steps:
        if not isinstance(step, Visit):
            continue
        levels = waits(step.block)
        for place, request in zip(step.places, step.requests, strict=True):
            if request.space not in ("global", "local"):
                continue
            here = int(np.searchsorted(request.warps, warps))
            sectors = request.sectors[: request.starts[here]]
            asked.append((request, here))
            pieces.append(sectors)
            past = request.kind in ("atom", "red") or request.volatile
            kind = _PAST if past else _STORE if request.kind == "st" else _LOAD
            kinds.append(np.full(sectors.size, kind, np.uint8))
            turns.append(np.repeat(turn + levels[place] * warps + request.warps[:here], request.counts[:here]))
        turn += (max(levels, default=0) + 1) * warps
    if not pieces:
        return {}
    hits = _hits(np.concatenate(pieces), np.concatenate(kinds), np.concatenate(turns), size)
    found: dict[int, CachedRequest] = {}
    place = 0
    for request, here in asked:
        starts = request.starts[: here + 1]
        sectors, own = request.sectors[: starts[-1]], hits[place : place + int(starts[-1])]
        place += own.size
        missed = _in_each(~own, starts)
        found[id(request)] = CachedRequest(request, missed, _in_each(_without_neighbor(sectors, ~own, starts), starts))
    _forget_jumps(steps, found)
    return found


def _hits(sectors: Array, kinds: Array, turns: Array, size: int) -> Array:
    """Return which sectors are in the first cache when it is their turn."""
    ways = max(1, size // _LINE // _SETS)
    found = np.zeros(max(sectors.size, 1), np.uint8)
    order = np.argsort(turns, kind="stable")
    if sectors.size:
        room = _SETS * ways
        native.run(
            "first_cache", sectors[order], kinds[order], np.int64(sectors.size), np.int64(_SETS), np.int64(ways),
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8), found,
        )  # fmt: skip
    hits = np.zeros(sectors.size, np.bool_)
    hits[order] = found[: sectors.size] != 0
    return hits


def _in_each(which: Array, starts: Array) -> Array:
    """Return how many there are between each start and the next."""
    sums = np.concatenate(([0], np.cumsum(which, dtype=np.int64)))
    return np.diff(sums[starts])


def _without_neighbor(sectors: Array, which: Array, starts: Array) -> Array:
    """Return those of some ascending sectors whose other half of 64 bytes the same warp does not want."""
    alone = which.copy()
    if sectors.size > 1:
        beside = which[1:] & which[:-1] & (sectors[1:] == sectors[:-1] + 1) & (sectors[1:] % 2 == 1)
        beside[starts[(starts > 0) & (starts < sectors.size)] - 1] = False
        alone[1:] &= ~beside
        alone[:-1] &= ~beside
    return alone


def _forget_jumps(steps: Sequence[Step], found: dict[int, CachedRequest]) -> None:
    """Let the first round behind those that were left out miss what the last one before them did.

    Rounds that are left out put nothing into the cache. What they would have left there is not missed behind them.
    """
    usual: dict[tuple[int, int], list[CachedRequest]] = {}
    behind = 0
    for step in steps:
        if isinstance(step, Repeated):
            if behind <= 0:  # a loop within the round has been left out, too
                usual = defaultdict(list)
                inside = [visit for visit, _ in visits(step.round)]
                for visit in inside:
                    for place, request in zip(visit.places, visit.requests, strict=True):
                        if id(request) in found:
                            usual[visit.block, place].append(found[id(request)])
                behind = -(-len(inside) // PERIOD)
            continue
        if behind <= 0:
            continue
        behind -= 1
        for place, request in zip(step.places, step.requests, strict=True):
            own, before = found.get(id(request)), usual.get((step.block, place), [])
            alike = [each.missed for each in before if own is not None and each.missed.size == own.missed.size]
            if own is not None and alike:
                missed = np.minimum(own.missed, np.mean(alike, axis=0))
                found[id(request)] = CachedRequest(request, missed, np.minimum(own.alone, missed))


def asked(path: SampledPath, warps: int) -> dict[tuple[int, str], float]:
    """Return the sectors of global memory that the first warps of a path ask for, by array and kind of request."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in visits(path.steps):
        for request in visit.requests:
            if request.space == "global" and request.sectors.size:
                here = int(np.searchsorted(request.warps, warps))
                found[window_of(request), request.kind] += times * float(request.starts[here])
    return dict(found)


def missed(
    path: SampledPath, cached: Mapping[int, CachedRequest], *, alone: bool = False
) -> dict[tuple[int, str], float]:
    """Return those of them that are not in the first cache, or that are alone there, of what was run through it."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in visits(path.steps):
        for request in visit.requests:
            through = cached.get(id(request))
            if through is not None and request.space == "global" and request.sectors.size:
                counted = through.alone if alone else through.missed
                found[window_of(request), request.kind] += times * float(counted.sum())
    return dict(found)


def window_of(request: Request) -> int:
    """Return the number of the array that a request wants."""
    return int(request.sectors[0] >> _WINDOW_SHIFT)


def sectors_of(steps: Sequence[Step], first: int, end: int, *, stores: bool) -> dict[int, Array]:
    """Return the sectors that some warps of the sample store to, or else load or add to, by array."""
    pieces: list[Array] = []
    for step in steps:
        if not isinstance(step, Visit):
            continue
        for request in step.requests:
            if request.space != "global" or (request.kind == "st") != stores:
                continue
            low, high = np.searchsorted(request.warps, (first, end))
            pieces.append(request.sectors[request.starts[low] : request.starts[high]])
    if not pieces:
        return {}
    sectors = np.unique(np.concatenate(pieces))
    windows = sectors >> _WINDOW_SHIFT
    return {int(window): sectors[windows == window] for window in np.unique(windows)}


@dataclass(frozen=True)
class GridSharing:
    """The blocks of the sample by which it is seen what blocks share: one, its neighbor, and the one a row further.

    Parameters
    ----------
    grid : tuple of int
        Blocks along x, and all rows of them.
    at_once : int
        Blocks that run at the same time.
    one, beside, below : int
        Their places in the sample; -1 where there is no such block.
    """

    grid: tuple[int, int]
    at_once: int
    one: int
    beside: int
    below: int


class DistinctSectors(NamedTuple):
    """Of an array the different sectors that a wave and the grid want.

    Parameters
    ----------
    wave, grid : float
    pairs : float
        1 where they lie side by side, 2 where each lies alone.
    alike : bool
        Whether all blocks of a row of the grid, or of a column, want the same.
    """

    wave: float
    grid: float
    pairs: float
    alike: bool


def distinct(
    steps: Sequence[Step], warps_per_block: int, sharing: GridSharing, *, stores: bool
) -> dict[int, DistinctSectors]:
    """Return for each array the distinct sectors that are loaded, or stored to.

    What a block has that its neighbor has not is taken to be what every further block along that axis adds.
    """

    def of_block(block: int) -> dict[int, Array]:
        first, end = block * warps_per_block, (block + 1) * warps_per_block
        return sectors_of(steps, first, end, stores=stores) if block >= 0 else {}

    own, beside, below = of_block(sharing.one), of_block(sharing.beside), of_block(sharing.below)
    across, rows = sharing.grid
    found = {}
    for window, sectors in own.items():
        x = _new(sectors, beside.get(window)) if sharing.beside >= 0 else 1.0
        y = _new(sectors, below.get(window)) if sharing.below >= 0 else 1.0
        wide, tall = min(across, sharing.at_once), max(1.0, sharing.at_once / across)
        wave = sectors.size * (1 + x * (wide - 1)) * (1 + y * (tall - 1))
        grid = sectors.size * (1 + x * (across - 1)) * (1 + y * (rows - 1))
        pairs = 2.0 * np.unique(sectors >> 1).size / sectors.size
        alike = any(np.array_equal(sectors, neighbor.get(window, ())) for neighbor in (beside, below))
        found[window] = DistinctSectors(wave, grid, pairs, alike)
    return found


def _new(sectors: Array, others: Array | None) -> float:
    """Return which share of a neighbor's sectors are not a block's own."""
    if others is None or not others.size:
        return 0.0
    return float(1 - np.isin(others, sectors, assume_unique=True).mean()) * others.size / sectors.size
