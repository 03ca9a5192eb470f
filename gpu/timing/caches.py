"""What sampled blocks find in the caches: in the first, run through; in the last, by what all blocks share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing import native
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.memory import WINDOW_BITS
from gpu.timing.ptx.path import Repeated, Request, SampledPath, Step, Visit

Array = npt.NDArray[Any]

_SECTOR = 32
_LINE = 128
_SETS = 64
_WINDOW_SHIFT = WINDOW_BITS - 5
_LOAD, _STORE, _PAST = 0, 1, 2


@dataclass(frozen=True, eq=False)
class CachedRequest:
    """A request, and what of it misses the first cache: sectors, one number for each of its warps."""

    request: Request
    missed: Array


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
    scattered : float
        How much longer memory takes for these sectors than for as many side by side.
    """

    loaded: float = 0.0
    from_memory: float = 0.0
    stored: float = 0.0
    to_memory: float = 0.0
    scattered: float = 1.0
    added: float = 0.0


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


def through_first_cache(steps: Sequence[Step], warps: int, size: int) -> dict[int, CachedRequest]:
    """Run what some warps ask for through one multiprocessor's first cache.

    Parameters
    ----------
    steps : sequence of Step
    warps : int
        The first so many of the sample are on that multiprocessor.
    size : int
        Of the cache, in bytes.

    Returns
    -------
    dict of int to CachedRequest
        By the request's id.
    """
    asked: list[tuple[Request, int]] = []
    pieces: list[Array] = []
    kinds: list[Array] = []
    for step in steps:
        if not isinstance(step, Visit):
            continue
        for request in step.requests:
            if request.space not in ("global", "local"):
                continue
            here = int(np.searchsorted(request.warps, warps))
            sectors = request.sectors[: request.starts[here]]
            asked.append((request, here))
            pieces.append(sectors)
            past = request.kind in ("atom", "red") or request.volatile
            kind = _PAST if past else _STORE if request.kind == "st" else _LOAD
            kinds.append(np.full(sectors.size, kind, np.uint8))
    if not pieces:
        return {}
    all_sectors, all_kinds = np.concatenate(pieces), np.concatenate(kinds)
    ways = max(1, size // _LINE // _SETS)
    hits = np.zeros(max(all_sectors.size, 1), np.uint8)
    if all_sectors.size:
        room = _SETS * ways
        native.run(
            "first_cache", all_sectors, all_kinds, np.int64(all_sectors.size), np.int64(_SETS), np.int64(ways),
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8), hits,
        )  # fmt: skip
    found: dict[int, CachedRequest] = {}
    place = 0
    for request, here in asked:
        counts = request.counts[:here]
        own = hits[place : place + int(request.starts[here])]
        place += own.size
        sums = np.concatenate(([0], np.cumsum(own, dtype=np.int64)))
        missed = counts - np.diff(sums[request.starts[: here + 1]])
        found[id(request)] = CachedRequest(request, missed)
    return found


def asked(path: SampledPath, warps: int) -> dict[tuple[int, str], float]:
    """Return the sectors of global memory that the first warps of a path ask for, by array and kind of request."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in visits(path.steps):
        for request in visit.requests:
            if request.space == "global" and request.sectors.size:
                here = int(np.searchsorted(request.warps, warps))
                found[window_of(request), request.kind] += times * float(request.starts[here])
    return dict(found)


def missed(path: SampledPath, cached: Mapping[int, CachedRequest]) -> dict[tuple[int, str], float]:
    """Return those of them that are not in the first cache, of requests that were run through it."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in visits(path.steps):
        for request in visit.requests:
            through = cached.get(id(request))
            if through is not None and request.space == "global" and request.sectors.size:
                found[window_of(request), request.kind] += times * float(through.missed.sum())
    return dict(found)


def window_of(request: Request) -> int:
    """Return the number of the array that a request wants."""
    return int(request.sectors[0] >> _WINDOW_SHIFT)


def _of_block(steps: Sequence[Step], block: int, warps_per_block: int, *, stores: bool) -> dict[int, Array]:
    """Return the sectors that one block of the sample stores to, or else loads or adds to, by array."""
    first, end = block * warps_per_block, (block + 1) * warps_per_block
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


def distinct(
    steps: Sequence[Step], warps_per_block: int, sharing: GridSharing, *, stores: bool
) -> dict[int, tuple[float, float, float, float]]:
    """Return for each array the distinct sectors of a block, of a wave and of the grid, and how they lie in pairs.

    What a block has that its neighbor has not is taken to be what every further block along that axis adds.
    """
    own = _of_block(steps, sharing.one, warps_per_block, stores=stores)
    beside = _of_block(steps, sharing.beside, warps_per_block, stores=stores) if sharing.beside >= 0 else {}
    below = _of_block(steps, sharing.below, warps_per_block, stores=stores) if sharing.below >= 0 else {}
    across, rows = sharing.grid
    found = {}
    for window, sectors in own.items():
        x = _new(sectors, beside.get(window)) if sharing.beside >= 0 else 1.0
        y = _new(sectors, below.get(window)) if sharing.below >= 0 else 1.0
        wide, tall = min(across, sharing.at_once), max(1.0, sharing.at_once / across)
        wave = sectors.size * (1 + x * (wide - 1)) * (1 + y * (tall - 1))
        grid = sectors.size * (1 + x * (across - 1)) * (1 + y * (rows - 1))
        pairs = 2.0 * np.unique(sectors >> 1).size / sectors.size
        found[window] = float(sectors.size), wave, grid, pairs
    return found


def _new(sectors: Array, others: Array | None) -> float:
    """Return which share of a neighbor's sectors are not a block's own."""
    if others is None or not others.size:
        return 0.0
    return float(1 - np.isin(others, sectors, assume_unique=True).mean()) * others.size / sectors.size
