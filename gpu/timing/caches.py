"""Cache behavior of sampled blocks: a simulated L1 cache, and L2 traffic from the data that all blocks share."""

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
from gpu.timing.ptx.path import PERIOD, MemoryRequest, RepeatedIterations, SampledPath, Step, Visit
from gpu.timing.ptx.requests import CONSTANT_LINE_WORDS

Array = npt.NDArray[Any]

_LINE, _LINE_SECTORS = 128, 4
_SETS = 64
_WINDOW_SHIFT = WINDOW_BITS - 5
_LOAD, _STORE, _UNCACHED = 0, 1, 2
_CONSTANT_LINES, _DENSE_WORDS = 32, 4
"""Lines of a multiprocessor's constant cache: 2 KiB (Jia et al. 2018, arXiv:1804.06826); and the words per line from
which a loop reads all words of its lines."""
_CONSTANT_WINDOW_SHIFT = WINDOW_BITS - 6
CACHED_SPACES = ("global", "local")
"""The state spaces whose requests L1 and L2 cache."""
_NO_LINES = np.zeros(0, np.int64)
_SKIPPED_WINDOW, _MAXIMUM_SKIPPED_LINES = 3, 1 << 21
"""The window of lines that skipped iterations load, and the most of them to simulate."""


@dataclass(frozen=True, eq=False)
class CachedRequest:
    """A request with its misses in the L1 cache, one number for each of its warps.

    Parameters
    ----------
    request : MemoryRequest
    misses : array
        Sectors that miss.
    unpaired_misses : array
        Missing sectors without a request for the other half of their 64-byte pair.
    far_misses : array
        Missing sectors that also miss the multiprocessor's share of L2, if no others use the same data.
    """

    request: MemoryRequest
    misses: Array
    unpaired_misses: Array
    far_misses: Array


@dataclass
class ArrayTraffic:
    """The traffic of one array in a launch, in sectors, for all blocks of the grid together.

    Parameters
    ----------
    loaded : float
        Loaded from L2.
    dram_loads : float
        Of those, loaded from DRAM.
    stored : float
        Stored to L2.
    dram_stores : float
        Written to DRAM before the launch ends.
    evicted : float
        Stored to L2 by an earlier equal launch, and written to DRAM because this launch evicts them.
    atomic_sectors : float
        Accessed by atomic operations, which L2 executes.
    mean_readers : float
        The mean number of multiprocessors that load a sector.
    is_uniform : bool
        As in `DistinctSectors`.
    scatter_factor : float
        The time that DRAM needs for these sectors, relative to the same number of contiguous sectors.
    unpaired_share : float
        The share of loaded sectors without a request for the other half of their 64-byte pair.
    pair_factor : float
        The sectors loaded from DRAM, relative to those requested: DRAM transfers pairs.
    """

    loaded: float = 0.0
    dram_loads: float = 0.0
    stored: float = 0.0
    dram_stores: float = 0.0
    evicted: float = 0.0
    scatter_factor: float = 1.0
    atomic_sectors: float = 0.0
    mean_readers: float = 1.0
    is_uniform: bool = False
    unpaired_share: float = 0.0
    pair_factor: float = 1.0

    @property
    def dram_writes(self) -> float:
        """The sectors written to DRAM during the launch."""
        return self.dram_stores + self.evicted


@dataclass
class LaunchTraffic:
    """The traffic of a launch, by array: the number of its window."""

    arrays: dict[int, ArrayTraffic] = field(default_factory=dict)

    @property
    def mixture(self) -> float:
        """How mixed DRAM's reads and writes are: 0 for reads or writes alone, 1 for as many reads as writes."""
        read = sum(each.dram_loads for each in self.arrays.values())
        written = sum(each.dram_writes for each in self.arrays.values())
        return 4 * read * written / max(read + written, 1.0) ** 2


def compute_l1_bytes(gpu: GpuDescription, shared_bytes: int) -> int:
    """Return the size of the L1 cache, which shares its memory with the given bytes of shared memory."""
    shared_kib = next((size for size in gpu.shared_sizes if size << 10 >= shared_bytes), gpu.shared_sizes[-1])
    used_bytes = shared_kib << 10 if shared_bytes else 0
    return max(gpu.first_cache_bytes - used_bytes, 16 << 10)


def iterate_visits(steps: Sequence[Step], times: float = 1.0) -> Iterator[tuple[Visit, float]]:
    """Yield each visit with its number of executions; skipped iterations count with the last executed ones."""
    for step in steps:
        if isinstance(step, Visit):
            yield step, times
        else:
            yield from iterate_visits(step.steps, times * step.times)


def flatten_steps(steps: Sequence[Step], copies: Callable[[RepeatedIterations], int]) -> Iterator[Visit]:
    """Yield visits in order, with skipped iterations repeated as often as `copies` returns."""
    for step in steps:
        if isinstance(step, Visit):
            yield step
        else:
            for _ in range(copies(step)):
                yield from flatten_steps(step.steps, copies)


def simulate_l1_cache(
    steps: Sequence[Step], warps: int, size: int, far_size: int, load_depths: Callable[[int], Sequence[int]]
) -> dict[int, CachedRequest]:
    """Simulate one multiprocessor's L1 cache, and its share of L2, on the requests of some warps.

    In a basic block, a warp issues the loads that do not depend on each other before another warp's turn. The lines of
    skipped iterations evict others if all together exceed a cache; those that fit in it remain, as caches do not always
    evict the least recently used lines.

    Parameters
    ----------
    steps : sequence of Operation
    warps : int
        The number of the sample's first warps that are on this multiprocessor.
    size, far_size : int
        The sizes of the cache and of the share of L2, in bytes.
    load_depths : callable
        Returns for a basic block the depth of each instruction in its chain of dependent loads.

    Returns
    -------
    dict of int to CachedRequest
        Each request's misses, by the request's id.
    """
    new_lines, total = _count_skipped_lines(steps, warps)
    cached_requests = _simulate_caches(steps, warps, size, far_size, load_depths, {})
    if new_lines and total * _LINE > min(size, far_size):
        share, far_share = (min(1.0, each / (total * _LINE)) for each in (size, far_size))
        evicted = _simulate_caches(steps, warps, size, far_size, load_depths, new_lines)
        cached_requests = {
            key: _mix_misses(each, evicted[key], share, far_share) for key, each in cached_requests.items()
        }
    _limit_misses_after_skips(steps, cached_requests)
    return cached_requests


def _simulate_caches(
    steps: Sequence[Step],
    warps: int,
    size: int,
    far_size: int,
    load_depths: Callable[[int], Sequence[int]],
    new_lines: Mapping[int, int],
) -> dict[int, CachedRequest]:
    """Simulate the caches of `simulate_l1_cache`; skipped iterations load the given numbers of lines."""
    requests: list[tuple[MemoryRequest | None, int]] = []
    pieces: list[Array] = []
    kinds: list[Array] = []
    turns: list[Array] = []
    turn = 0
    skipped_lines = 0
    for step in steps:
        if not isinstance(step, Visit):
            most = min(max(size, far_size) // _LINE, _MAXIMUM_SKIPPED_LINES - skipped_lines)
            if count := min(new_lines.get(id(step), 0), most):
                requests.append((None, count))
                pieces.append((_SKIPPED_WINDOW << _WINDOW_SHIFT) + _LINE_SECTORS * (skipped_lines + np.arange(count)))
                kinds.append(np.full(count, _LOAD, np.uint8))
                turns.append(np.full(count, turn))
                skipped_lines += count
                turn += 1
            continue
        levels = load_depths(step.block)
        for index, request in zip(step.instruction_indices, step.requests, strict=True):
            if request.space not in CACHED_SPACES:
                continue
            warp_count = int(np.searchsorted(request.warps, warps))
            sectors = request.sectors[: request.starts[warp_count]]
            requests.append((request, warp_count))
            pieces.append(sectors)
            is_uncached = request.kind in ("atom", "red") or request.volatile
            kind = _UNCACHED if is_uncached else _STORE if request.kind == "st" else _LOAD
            kinds.append(np.full(sectors.size, kind, np.uint8))
            turns.append(
                np.repeat(turn + levels[index] * warps + request.warps[:warp_count], request.counts[:warp_count])
            )
        turn += (max(levels, default=0) + 1) * warps
    if not pieces:
        return {}
    all_sectors, all_kinds, all_turns = np.concatenate(pieces), np.concatenate(kinds), np.concatenate(turns)
    hits = _find_hits(all_sectors, all_kinds, all_turns, size)
    far_hits = hits.copy()  # what L2 processes: its sectors have the same lines
    reaches_far = ~hits & (all_kinds != _UNCACHED)
    far_hits[reaches_far] = _find_hits(
        all_sectors[reaches_far],
        np.full(np.count_nonzero(reaches_far), _LOAD, np.uint8),
        all_turns[reaches_far],
        far_size,
    )
    cached_requests: dict[int, CachedRequest] = {}
    index = 0
    for recorded, count in requests:
        if recorded is None:
            index += count
            continue
        starts = recorded.starts[: count + 1]
        sectors, request_hits = recorded.sectors[: starts[-1]], hits[index : index + int(starts[-1])]
        far_misses = _sum_intervals(~far_hits[index : index + int(starts[-1])], starts)
        index += request_hits.size
        misses = _sum_intervals(~request_hits, starts)
        cached_requests[id(recorded)] = CachedRequest(
            recorded, misses, _sum_intervals(_find_unpaired(sectors, ~request_hits, starts), starts), far_misses
        )
    return cached_requests


def _mix_misses(kept: CachedRequest, evicted: CachedRequest, share: float, far_share: float) -> CachedRequest:
    """Return the misses if the caches keep a share of the lines that skipped iterations would evict."""

    def mix(first: Array, second: Array, weight: float) -> Array:
        mixed: Array = weight * first + (1 - weight) * second
        return mixed

    misses = mix(kept.misses, evicted.misses, share)
    far_misses = np.minimum(mix(kept.far_misses, evicted.far_misses, far_share), misses)
    return CachedRequest(kept.request, misses, mix(kept.unpaired_misses, evicted.unpaired_misses, share), far_misses)


def _count_skipped_lines(steps: Sequence[Step], warps: int) -> tuple[dict[int, int], int]:
    """Return by the id of skipped iterations how many new lines their first warps load, and the lines of all steps."""

    def find_lines(visits: Sequence[Visit]) -> list[Array]:
        return [
            np.unique(np.concatenate([
                request.sectors[: request.starts[int(np.searchsorted(request.warps, warps))]] // _LINE_SECTORS
                for request in visit.requests if request.space in CACHED_SPACES and request.kind == "ld"
            ] or [_NO_LINES]))
            for visit in visits
        ]  # fmt: skip

    def count_lines(skipped: RepeatedIterations, visits: int) -> int:
        inside = [each for each in skipped.steps if isinstance(each, Visit)]
        own = np.unique(np.concatenate([_NO_LINES, *find_lines(inside)]))
        places = np.minimum(np.searchsorted(lines, own), max(lines.size - 1, 0))
        is_new = (lines[places] != own) | (first_visits[places] >= visits - len(inside)) if lines.size else own >= 0
        deeper = sum(count_lines(each, visits) for each in skipped.steps if not isinstance(each, Visit))
        return skipped.times * (int(is_new.sum()) + deeper)

    if all(isinstance(step, Visit) for step in steps):
        return {}, 0
    pieces = find_lines([step for step in steps if isinstance(step, Visit)])
    numbers = np.repeat(np.arange(len(pieces)), [piece.size for piece in pieces])
    lines, places = np.unique(np.concatenate([_NO_LINES, *pieces]), return_index=True)
    first_visits = numbers[places]
    counts: dict[int, int] = {}
    visits = 0
    for step in steps:
        if isinstance(step, Visit):
            visits += 1
        elif new := count_lines(step, visits):
            counts[id(step)] = new
    return counts, lines.size + sum(counts.values())


def _find_hits(sectors: Array, kinds: Array, turns: Array, size: int) -> Array:
    """Return which sectors hit the L1 cache, in the order of turns."""
    ways = max(1, size // _LINE // _SETS)
    flags = np.zeros(max(sectors.size, 1), np.uint8)
    order = np.argsort(turns, kind="stable")
    if sectors.size:
        entries = _SETS * ways
        native.run_kernel(
            "first_cache", sectors[order], kinds[order], np.int64(sectors.size), np.int64(_SETS), np.int64(ways),
            np.empty(entries, np.int64), np.empty(entries, np.int64), np.empty(entries, np.uint8), flags,
        )  # fmt: skip
    hits = np.zeros(sectors.size, np.bool_)
    hits[order] = flags[: sectors.size] != 0
    return hits


def _sum_intervals(selection: Array, starts: Array) -> Array:
    """Return the sum of each interval between two starts."""
    sums = np.concatenate(([0], np.cumsum(selection, dtype=np.int64)))
    return np.diff(sums[starts])


def _find_unpaired(sectors: Array, selection: Array, starts: Array) -> Array:
    """Return the selected sectors (ascending) without a request by the same warp for the other half of 64 bytes."""
    unpaired = selection.copy()
    if sectors.size > 1:
        is_paired = selection[1:] & selection[:-1] & (sectors[1:] == sectors[:-1] + 1) & (sectors[1:] % 2 == 1)
        is_paired[starts[(starts > 0) & (starts < sectors.size)] - 1] = False
        unpaired[1:] &= ~is_paired
        unpaired[:-1] &= ~is_paired
    return unpaired


def _limit_misses_after_skips(steps: Sequence[Step], cached_requests: dict[int, CachedRequest]) -> None:
    """Limit the misses of the first iteration after skipped ones to those of the last iteration before them.

    Skipped iterations put nothing into the simulated cache, which would cause misses that do not happen.
    """
    previous: dict[tuple[int, int], list[CachedRequest]] = {}
    remaining = 0
    for step in steps:
        if isinstance(step, RepeatedIterations):
            if remaining <= 0:  # an inner loop of the iteration has been skipped, too
                previous = defaultdict(list)
                inside = [visit for visit, _ in iterate_visits(step.steps)]
                for visit in inside:
                    for instruction_index, request in zip(visit.instruction_indices, visit.requests, strict=True):
                        if id(request) in cached_requests:
                            previous[visit.block, instruction_index].append(cached_requests[id(request)])
                remaining = -(-len(inside) // PERIOD)
            continue
        if remaining <= 0:
            continue
        remaining -= 1
        for instruction_index, request in zip(step.instruction_indices, step.requests, strict=True):
            current, earlier = cached_requests.get(id(request)), previous.get((step.block, instruction_index), [])
            alike = [each for each in earlier if current is not None and each.misses.size == current.misses.size]
            if current is not None and alike:
                misses = np.minimum(current.misses, np.mean([each.misses for each in alike], axis=0))
                far_misses = np.minimum(current.far_misses, np.mean([each.far_misses for each in alike], axis=0))
                cached_requests[id(request)] = CachedRequest(
                    request, misses, np.minimum(current.unpaired_misses, misses), far_misses
                )


def count_constant_misses(steps: Sequence[Step], warps: int, has_index: Callable[[int, int], bool]) -> float:
    """Return the mean misses of a sample's first warps in the constant cache, skipped iterations included.

    A launch whose constants fit in the cache has none: each line is loaded once.

    Parameters
    ----------
    steps : sequence of Step
    warps : int
    has_index : callable
        Returns for a basic block and the index of an instruction whether it loads a constant at an index. Other
        constants are operands of instructions.
    """

    def find_requests(visit: Visit) -> list[MemoryRequest]:
        return [
            request
            for index, request in zip(visit.instruction_indices, visit.requests, strict=True)
            if request.space == "const" and has_index(visit.block, index)
        ]

    counts = np.zeros(warps)
    for visit, times in iterate_visits(steps):
        for request in find_requests(visit):
            counts[request.warps[: np.searchsorted(request.warps, warps)]] += times
    if not counts.any():
        return 0.0
    busiest = int(counts.argmax())
    accesses: list[list[int]] = []
    for request in (each for step in steps if isinstance(step, Visit) for each in find_requests(step)):
        place = int(np.searchsorted(request.warps, busiest))
        if place < request.warps.size and request.warps[place] == busiest:
            accesses.append(request.sectors[request.starts[place] : request.starts[place + 1]].tolist())
    words = {word for access in accesses for word in access}
    lines = {word // CONSTANT_LINE_WORDS for word in words}
    spans: dict[int, list[int]] = defaultdict(list)
    for line in lines:
        spans[line >> _CONSTANT_WINDOW_SHIFT].append(line)
    if sum(max(span) - min(span) + 1 for span in spans.values()) <= _CONSTANT_LINES:
        return 0.0
    cached: dict[int, None] = {}  # from the least to the most recently used line
    misses = 0.0
    for access in accesses:
        for line in dict.fromkeys(word // CONSTANT_LINE_WORDS for word in access):
            misses += line not in cached
            cached.pop(line, None)
            cached[line] = None
            if len(cached) > _CONSTANT_LINES:
                del cached[next(iter(cached))]
    if all(len(access) == 1 for access in accesses) and len(words) >= _DENSE_WORDS * len(lines):
        misses = min(misses, len(words) / CONSTANT_LINE_WORDS)  # the first and the last line are only partly read
    return misses * float(counts.mean()) / len(accesses)


def count_requested_sectors(path: SampledPath, warps: int) -> dict[tuple[int, str], float]:
    """Return the sectors in L2 that a path's first warps request, by array and kind of request."""
    sectors: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in iterate_visits(path.steps):
        for request in visit.requests:
            if request.space in CACHED_SPACES and request.sectors.size:
                warp_count = int(np.searchsorted(request.warps, warps))
                sectors[window_of(request), request.kind] += times * float(request.starts[warp_count])
    return dict(sectors)


def count_missed_sectors(
    path: SampledPath, cached: Mapping[int, CachedRequest], count_misses: Callable[[CachedRequest], Array]
) -> dict[tuple[int, str], float]:
    """Return the requested sectors that miss a cache, by array and kind of request."""
    sectors: dict[tuple[int, str], float] = defaultdict(float)
    for visit, times in iterate_visits(path.steps):
        for request in visit.requests:
            cached_request = cached.get(id(request))
            if cached_request is not None and request.sectors.size:
                sectors[window_of(request), request.kind] += times * float(count_misses(cached_request).sum())
    return dict(sectors)


def window_of(request: MemoryRequest) -> int:
    """Return the number of the array that a request accesses."""
    return int(request.sectors[0] >> _WINDOW_SHIFT)


def count_local_sectors(steps: Sequence[Step], warps: int) -> int:
    """Return the distinct sectors of local memory that a sample's first warps access."""
    pieces = [
        request.sectors[: request.starts[int(np.searchsorted(request.warps, warps))]]
        for step in steps
        if isinstance(step, Visit)
        for request in step.requests
        if request.space == "local"
    ]
    return np.unique(np.concatenate(pieces)).size if pieces else 0


def find_sectors(steps: Sequence[Step], first: int, end: int, *, stores: bool) -> dict[int, Array]:
    """Return the distinct sectors that some warps access, ascending, by array: the number of its window.

    Parameters
    ----------
    steps : sequence of Operation
    first, end : int
        The range of the sample's warps.
    stores : bool
        Whether to return stored sectors instead of those that are loaded or updated atomically.
    """
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
    """The sampled blocks that show how much data blocks share: a block, its neighbor, and the block in the next row.

    Parameters
    ----------
    grid : tuple of int
        The number of blocks along x, and the number of rows.
    concurrent_blocks : int
        The number of blocks that run concurrently.
    base_block : int
        The index of the block in the sample.
    x_neighbors : tuple of int
        The indices of its neighbors along x, in order; several if blocks are narrower than a sector.
    y_neighbor : int
        The index of the block in the next row; -1 if there is none.
    distant_blocks : tuple of (int, int)
        The indices of other blocks of the same row, each with its distance from the block in steps to the neighbor.
    """

    grid: tuple[int, int]
    concurrent_blocks: int
    base_block: int
    x_neighbors: tuple[int, ...]
    y_neighbor: int
    distant_blocks: tuple[tuple[int, int], ...] = ()


class DistinctSectors(NamedTuple):
    """The distinct sectors of an array that a wave and the grid access.

    Parameters
    ----------
    wave, grid : float
    pair_factor : float
        1 if sectors are contiguous, 2 if every sector is without its pair.
    is_uniform : bool
        Whether all blocks of a row or of a column of the grid access the same sectors.
    """

    wave: float
    grid: float
    pair_factor: float
    is_uniform: bool


def count_distinct_sectors(
    steps: Sequence[Step], warps_per_block: int, sharing: GridSharing, *, stores: bool
) -> dict[int, DistinctSectors]:
    """Return for each array the distinct sectors that are loaded, or stored to.

    If a block's neighbor along x and more distant blocks access the same sectors, shifted, so does each block: a block
    may share them with distant ones, as the rows of a stencil. Otherwise each further block along an axis is assumed to
    add as many new sectors as the sampled neighbors along that axis.

    Parameters
    ----------
    steps : sequence of Operation
    warps_per_block : int
    sharing : GridSharing
    stores : bool
        Whether to count stored sectors instead of those that are loaded or updated atomically.
    """

    def find_block_sectors(block: int) -> dict[int, Array]:
        first, end = block * warps_per_block, (block + 1) * warps_per_block
        return find_sectors(steps, first, end, stores=stores) if block >= 0 else {}

    own_sectors, row_neighbor = find_block_sectors(sharing.base_block), find_block_sectors(sharing.y_neighbor)
    run = [find_block_sectors(block) for block in sharing.x_neighbors]
    columns, rows = sharing.grid
    result = {}
    for window, sectors in own_sectors.items():
        neighbors = [each[window] for each in run if window in each]
        union = np.unique(np.concatenate((sectors, *neighbors)))
        x = (union.size / sectors.size - 1) / len(run) if run else 1.0
        y = _compute_new_share(sectors, row_neighbor.get(window)) if sharing.y_neighbor >= 0 else 1.0
        wave_columns, wave_rows = min(columns, sharing.concurrent_blocks), max(1.0, sharing.concurrent_blocks / columns)
        shift = _find_shift(sectors, neighbors[0]) if len(run) == 1 and neighbors else 0
        distant = [(find_block_sectors(block).get(window, _NO_LINES), steps) for block, steps in sharing.distant_blocks]
        if distant and np.mean([np.array_equal(sectors + shift * steps, other) for other, steps in distant]) <= 0.5:
            shift = 0
        row_of_wave, row_of_grid = (
            _count_shifted_sectors(sectors, abs(shift), blocks) if shift else sectors.size * (1 + x * (blocks - 1))
            for blocks in (wave_columns, columns)
        )
        wave, grid = row_of_wave * (1 + y * (wave_rows - 1)), row_of_grid * (1 + y * (rows - 1))
        pairs = 2.0 * np.unique(union >> 1).size / union.size if len(run) > 1 else _count_pairs(sectors, neighbors)
        alike = any(np.array_equal(sectors, neighbor.get(window, ())) for neighbor in (*run[-1:], row_neighbor))
        result[window] = DistinctSectors(wave, grid, pairs, alike)
    return result


def _find_shift(sectors: Array, others: Array) -> int:
    """Return by how much a neighbor's sectors are shifted; 0 if they are not shifted all alike."""
    if others.size != sectors.size:
        return 0
    shifts = others - sectors
    return int(shifts[0]) if (shifts == shifts[0]).all() else 0


def _count_shifted_sectors(sectors: Array, shift: int, blocks: int) -> float:
    """Return the distinct sectors of some consecutive blocks, each of which shifts the sectors of the one before."""
    order = np.lexsort((sectors, sectors % shift))
    places, residues = (sectors // shift)[order], (sectors % shift)[order]
    # Two sectors of a block that are a number of shifts apart are also accessed by two blocks that far apart.
    new_blocks = np.where(np.diff(residues) == 0, np.minimum(np.diff(places), blocks), blocks)
    return float(blocks + new_blocks.sum())


def _count_pairs(sectors: Array, neighbors: Sequence[Array]) -> float:
    """Return the pairs of a block's sectors, relative to half of the sectors; the neighbors complete those at its ends.

    The neighbor before the block completes as many as the block completes of the neighbor after it.
    """
    unpaired = _find_single_sectors(sectors)
    completed = sum(
        np.isin(unpaired ^ 1, each).sum() + np.isin(_find_single_sectors(each) ^ 1, sectors).sum() for each in neighbors
    )
    return 1.0 + max(float(unpaired.size - completed), 0.0) / sectors.size


def _find_single_sectors(sectors: Array) -> Array:
    """Return the sectors without the other half of their pair."""
    single: Array = sectors[~np.isin(sectors ^ 1, sectors)]
    return single


def _compute_new_share(sectors: Array, others: Array | None) -> float:
    """Return the share of a neighbor's sectors that the block does not access."""
    if others is None or not others.size:
        return 0.0
    return float(1 - np.isin(others, sectors, assume_unique=True).mean()) * others.size / sectors.size
