"""The traffic of a launch between L1, L2 and DRAM, by array, from the requests of sampled blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from gpu.timing import caches
from gpu.timing.caches import ArrayTraffic, CachedRequest, GridSharing, LaunchTraffic
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.memory import LOCAL_WINDOW
from gpu.timing.ptx.path import SampledPath, Visit
from gpu.timing.ptx.sampled_blocks import GridShape

_SECTOR = 32
_PRIVATE_READERS = 1.2
"""The mean number of multiprocessors that use a sector, up to which an array's data counts as that of one."""


@dataclass(frozen=True, eq=False)
class TrafficModel:
    """The requests of sampled blocks, extrapolated to the grid.

    Parameters
    ----------
    gpu : GpuDescription
    shape : GridShape
    path : SampledPath
        The path of the blocks of one multiprocessor.
    warps : int
        The warps of these blocks, without those of neighbors.
    cached : mapping of int to CachedRequest
        The L1 misses of each request, by its id.
    sharing : GridSharing
        Which sampled blocks are neighbors, and the blocks that run at once.
    grid_path : SampledPath or None
        The path of blocks all over the grid, if blocks differ.
    blocks_per_sample : float
        The number of the grid's blocks that each of those represents.
    find_size : callable
        Returns the bytes of the array of a window, of local memory those of a warp; None if they are not known.
    """

    gpu: GpuDescription
    shape: GridShape
    path: SampledPath
    warps: int
    cached: Mapping[int, CachedRequest]
    sharing: GridSharing
    grid_path: SampledPath | None
    blocks_per_sample: float
    find_size: Callable[[int], int | None]

    def compute_traffic(self) -> LaunchTraffic:
        """Return the sectors of each array that L2 and DRAM transfer."""
        traffic = LaunchTraffic()
        self._add_l2_sectors(traffic)
        self._add_dram_loads(traffic)
        local_sectors = self._add_local_loads(traffic)
        self._add_dram_stores(traffic, local_sectors)
        return traffic

    @property
    def _scale(self) -> float:
        return self.shape.blocks * self.shape.warps / self.warps

    @cached_property
    def _amounts(self) -> dict[tuple[int, str], float]:
        """The sectors that the whole grid requests if all blocks are like those of the path, by array and kind."""
        counts = caches.count_requested_sectors(self.path, self.warps)
        return {key: amount * self._scale for key, amount in counts.items()}

    @cached_property
    def _grid_amounts(self) -> dict[tuple[int, str], float]:
        """The same from the blocks all over the grid; empty if blocks do not differ."""
        if self.grid_path is None:
            return {}
        counts = caches.count_requested_sectors(self.grid_path, len(self.grid_path.blocks) * self.shape.warps)
        return {key: amount * self.blocks_per_sample for key, amount in counts.items()}

    @cached_property
    def _grid_factors(self) -> dict[tuple[int, str], float]:
        return {
            key: amount / self._amounts[key] for key, amount in self._grid_amounts.items() if self._amounts.get(key)
        }

    @cached_property
    def _repetition_factors(self) -> dict[int, float]:
        """By array, the ratio of all requests to those of executed iterations."""
        executed: dict[int, float] = {}
        total: dict[int, float] = {}
        for visit, times in caches.iterate_visits(self.path.steps):
            for request in visit.requests:
                if request.space in caches.CACHED_SPACES and request.sectors.size:
                    window = caches.window_of(request)
                    total[window] = total.get(window, 0.0) + times * request.sectors.size
        for step in self.path.steps:
            for request in step.requests if isinstance(step, Visit) else ():
                if request.space in caches.CACHED_SPACES and request.sectors.size:
                    window = caches.window_of(request)
                    executed[window] = executed.get(window, 0.0) + request.sectors.size
        return {window: amount / executed[window] for window, amount in total.items() if executed.get(window)}

    @cached_property
    def _far_amounts(self) -> dict[tuple[int, str], float]:
        """The sectors that miss L2 if no multiprocessors share data, by array and kind of request."""
        missed = caches.count_missed_sectors(self.path, self.cached, lambda each: each.far_misses)
        return {key: amount * self._scale * self._grid_factors.get(key, 1.0) for key, amount in missed.items()}

    def _array_sectors(self, window: int) -> float:
        size = self.find_size(window)
        return (1 << 60 if size is None else size) / _SECTOR

    @property
    def _cache_sectors(self) -> float:
        return 0.5 * self.gpu.last_cache_bytes / _SECTOR

    def _add_l2_sectors(self, traffic: LaunchTraffic) -> None:
        amounts, grid_amounts, scale = self._amounts, self._grid_amounts, self._scale
        missed = caches.count_missed_sectors(self.path, self.cached, lambda each: each.misses)
        misses = {key: amount * scale for key, amount in missed.items()}
        missed_alone = caches.count_missed_sectors(self.path, self.cached, lambda each: each.unpaired_misses)
        unpaired = {key: amount * scale for key, amount in missed_alone.items()}
        for key in dict.fromkeys((*amounts, *grid_amounts)):
            window, kind = key
            array = traffic.arrays.setdefault(window, ArrayTraffic())
            amount = grid_amounts.get(key, amounts.get(key, 0.0))
            if kind == "ld":
                factor = self._grid_factors.get(key, 1.0)
                array.loaded = misses.get(key, 0.0) * factor if key in amounts else amount
                array.unpaired_share = unpaired[key] / misses[key] if misses.get(key) else 0.0
            elif kind == "st":
                array.stored = amount
            else:
                array.atomic_sectors += amount

    def _add_dram_loads(self, traffic: LaunchTraffic) -> None:
        sharing, cache = self.sharing, self._cache_sectors
        loads = caches.count_distinct_sectors(self.path.steps, self.shape.warps, sharing, stores=False)
        block_sectors = caches.find_sectors(self.path.steps, 0, self.warps, stores=False)
        wave_of_all = sum(
            min(load.wave * self._repetition_factors.get(window, 1.0), self._array_sectors(window))
            for window, load in loads.items()
        )
        waves = max(1.0, sharing.grid[0] * sharing.grid[1] / sharing.concurrent_blocks)
        for window, (wave, grid, pairs, is_uniform) in loads.items():
            array = traffic.arrays.setdefault(window, ArrayTraffic())
            array_sectors = self._array_sectors(window)
            if window in block_sectors:
                array.mean_readers = min(
                    max(1.0, block_sectors[window].size * self._scale / grid),
                    self.shape.blocks,
                    self.gpu.multiprocessors,
                )
            array.is_uniform = is_uniform
            factor = self._repetition_factors.get(window, 1.0) * self._grid_factors.get((window, "ld"), 1.0)
            grid, wave = grid * factor, wave * factor
            dram_sectors = self._limit_by_cache(
                grid if 2 * wave_of_all <= cache else max(grid, min(wave, array_sectors) * waves), array_sectors
            )
            # A sector is loaded from DRAM together with the other half of its pair, which is in the same array.
            array.dram_loads = min(
                dram_sectors * pairs,
                array_sectors + max(0.0, dram_sectors - array_sectors) * pairs,  # again, what L2 lost
                (array.loaded + array.atomic_sectors) * pairs,
            )
            array.scatter_factor, array.pair_factor = self._compute_scatter_factor(pairs), pairs
            array.dram_loads, lost = self._add_lost_sectors(array.dram_loads, (window, "ld"), array.mean_readers)
            single = 1 + (self._slowdown - 1) * array.unpaired_share
            array.scatter_factor += max(single - array.scatter_factor, 0.0) * lost
        for window, array in traffic.arrays.items():
            # The block whose neighbors were sampled does not load from such an array.
            if window not in (*loads, LOCAL_WINDOW) and array.loaded:
                array.dram_loads = min(array.loaded, self._array_sectors(window))

    def _add_local_loads(self, traffic: LaunchTraffic) -> float:
        """Add the loads of local memory from DRAM; return its sectors that are stored to DRAM.

        L1 and L2 hold a share of what all resident threads use. No other multiprocessor needs the data in an L1.
        """
        array, gpu = traffic.arrays.get(LOCAL_WINDOW), self.gpu
        if array is None:
            return 0.0
        factor = self._repetition_factors.get(LOCAL_WINDOW, 1.0)
        own_sectors = caches.count_local_sectors(self.path.steps, self.warps) * factor
        blocks = min(self.shape.blocks, self.sharing.concurrent_blocks)
        resident = min(own_sectors / self.warps, self._array_sectors(LOCAL_WINDOW)) * blocks * self.shape.warps
        held = gpu.last_cache_bytes + min(self.shape.blocks, gpu.multiprocessors) * gpu.first_cache_bytes
        missing_share = 1 - min(1.0, held / _SECTOR / max(resident, 1.0))
        array.dram_loads = missing_share * array.loaded
        return missing_share * array.stored

    def _add_dram_stores(self, traffic: LaunchTraffic, local_sectors: float) -> None:
        """Add the stores to DRAM; L2 retains a share of what the launch transfers, and evicts earlier stores."""
        gpu = self.gpu
        stores = caches.count_distinct_sectors(self.path.steps, self.shape.warps, self.sharing, stores=True)
        block_sectors = caches.find_sectors(self.path.steps, 0, self.warps, stores=True)
        alone: list[tuple[ArrayTraffic, float]] = []
        stored_arrays = [(traffic.arrays[LOCAL_WINDOW], local_sectors, 1.0)] if local_sectors else []
        for window, (_, grid, pairs, _) in stores.items():
            array = traffic.arrays.setdefault(window, ArrayTraffic())
            factor = self._repetition_factors.get(window, 1.0) * self._grid_factors.get((window, "st"), 1.0)
            dram_sectors = self._limit_by_cache(min(grid * factor, array.stored), self._array_sectors(window))
            own_sectors = block_sectors[window].size * self._scale if window in block_sectors else 0.0
            writers = max(1.0, own_sectors / grid)
            dram_sectors, lost = self._add_lost_sectors(dram_sectors, (window, "st"), writers)
            if lost:
                array.scatter_factor = max(array.scatter_factor, 1 + (self._slowdown - 1) * lost)
                pairs = 1.0
            elif array.dram_loads >= pairs * dram_sectors:  # L2 has the rest of the sectors
                alone.append((array, pairs))
                pairs = 1.0
            stored_arrays.append((array, dram_sectors, pairs))
        for array in traffic.arrays.values():
            if array.atomic_sectors:  # what they change is loaded from DRAM, and written back
                share = array.atomic_sectors / (array.atomic_sectors + array.loaded)
                stored_arrays.append((array, share * array.dram_loads / array.pair_factor, 1.0))
                alone.append((array, array.pair_factor))
        total_sectors = sum(each.dram_loads for each in traffic.arrays.values()) + sum(
            dram_sectors for _, dram_sectors, _ in stored_arrays
        )
        cache_sectors = gpu.last_cache_bytes / _SECTOR
        retained_sectors = gpu.last_cache_written_share * cache_sectors
        retained = min(1.0, retained_sectors / max(total_sectors, 1.0))
        # The equal launch before retained as much, which this one evicts as far as its own data fill the cache.
        filled = (total_sectors - retained_sectors) / max(cache_sectors - retained_sectors, 1.0)
        evicted = retained * min(1.0, max(0.0, filled))
        for array, dram_sectors, pairs in stored_arrays:
            # A partly written sector is read before it is written.
            array.dram_stores += (1 - retained) * dram_sectors * pairs
            array.evicted += evicted * dram_sectors * pairs
            array.scatter_factor = max(array.scatter_factor, self._compute_scatter_factor(pairs) * pairs)
        for array, pairs in alone:  # DRAM reads a pair of sectors at once, of which one is written back alone
            reads, writes = array.dram_loads, array.dram_writes
            array.scatter_factor *= (reads + writes * pairs) / max(reads + writes, 1.0)
        turnaround = self._compute_turnaround_factor(traffic)
        for array in traffic.arrays.values():
            array.scatter_factor *= turnaround

    def _compute_turnaround_factor(self, traffic: LaunchTraffic) -> float:
        """Return the relative DRAM time of reads and writes together: it does not transfer while it turns around.

        A copy, of which one half is written, turns around most often.
        """
        return 1 + traffic.mixture * (self.gpu.memory_gb_s / self.gpu.copy_gb_s - 1)

    def _limit_by_cache(self, dram_sectors: float, array_sectors: float) -> float:
        """Reduce repeated transfers of an array by the share that L2 holds."""
        if dram_sectors <= array_sectors:
            return dram_sectors
        missing_share = 1 - min(1.0, self._cache_sectors / array_sectors)
        return array_sectors + (dram_sectors - array_sectors) * missing_share

    def _add_lost_sectors(self, dram_sectors: float, key: tuple[int, str], users: float) -> tuple[float, float]:
        """Return the transfers of an array by a kind of request, and the share of its sectors that L2 loses.

        L2 loses a thread's sectors before the thread has used all of their words, and DRAM transfers each again, alone.
        Of `users` multiprocessors with the same sectors, the others use what one of them transfers.
        """
        far = self._limit_by_cache(self._far_amounts.get(key, 0.0) / users, self._array_sectors(key[0]))
        if users >= _PRIVATE_READERS or far <= dram_sectors:
            return dram_sectors, 0.0
        return far, min(1.0, far / max(dram_sectors, 1.0) - 1)

    def _compute_scatter_factor(self, pairs: float) -> float:
        """Return the relative DRAM time of sectors with a degree of scatter: 1 contiguous, 2 all without their pair."""
        return (1 + (self._slowdown - 1) * (pairs - 1)) / pairs

    @property
    def _slowdown(self) -> float:
        """The relative DRAM time of single sectors."""
        return self.gpu.memory_gb_s / self.gpu.random_gb_s


def compute_memory_shares(
    path: SampledPath, traffic: LaunchTraffic, unpaired_cost: float
) -> dict[tuple[int, int], float]:
    """Return the share of L1 misses that comes from DRAM, by basic block and index of an instruction."""
    shares: dict[tuple[int, int], float] = {}
    for step, _ in caches.iterate_visits(path.steps):
        for instruction_index, request in zip(step.instruction_indices, step.requests, strict=True):
            key = (step.block, instruction_index)
            if request.space not in caches.CACHED_SPACES or key in shares or not request.sectors.size:
                continue
            array = traffic.arrays.get(caches.window_of(request))
            if array is None:
                continue
            if request.kind == "ld":
                all_loaded = array.loaded * (1 + unpaired_cost * array.unpaired_share) + array.atomic_sectors
                shares[key] = array.dram_loads * array.scatter_factor / all_loaded if all_loaded else 0.0
            elif request.kind == "st":
                shares[key] = array.dram_writes * array.scatter_factor / array.stored if array.stored else 0.0
    return shares
