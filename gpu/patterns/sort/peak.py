"""The host program of the fastest sort: in one block, or in tiles of a shape that depends on the number of keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu.base.warp import WARP
from gpu.engines.base import OVERLAPPED, Argument, Module
from gpu.patterns.sort.job import SortData, Sorting, SortJob, move_arguments

PEAK_FILE = "sort_peak.cu"

MIN_THREADS = 256
"""The fewest threads per block: one for each value of a byte."""

# A digit is a byte. Bytes of shared memory in addition to keys and digits. For the kernel that counts digits: threads
# per block, blocks per multiprocessor, and the fewest bytes per thread.
_BYTE = 8
_BYTE_VALUES = 256
_SCAN_BYTES = 64
_COUNTING_THREADS = 1024
_COUNTING_BLOCKS = 2
_MIN_COUNTING_BYTES = 16


@dataclass(frozen=True)
class Tiling:
    """A tile shape: how keys are divided among blocks and threads.

    Parameters
    ----------
    threads : int
        Threads per block.
    keys : int
        Keys per thread.
    blocks : int
        Resident blocks per multiprocessor.
    overlapped : bool
        Whether a launch begins while the previous one ends. On an H100 this gains 15% for 2^16 keys and 6% for 2^18,
        but costs 4% for the larger tiles of 2^20, whose waiting blocks are probably distributed unevenly.
    """

    threads: int
    keys: int
    blocks: int = 1
    overlapped: bool = False

    @property
    def tile(self) -> int:
        """Keys per block."""
        return self.threads * self.keys

    def shared_bytes(self, key_bytes: int) -> int:
        """Return the most shared memory per block in bytes: a tile's keys or its counts, and the digits' tables."""
        return self.dynamic_shared_bytes(key_bytes) + 4 * _BYTE_VALUES + _SCAN_BYTES

    def dynamic_shared_bytes(self, key_bytes: int) -> int:
        """Return the bytes of dynamic shared memory among these, for the launch."""
        return max(self.tile * key_bytes, 2 * _BYTE_VALUES * self.threads // WARP)

    def build(self, job: SortJob) -> Module:
        """Build the kernels for this shape."""
        shape = {"BLOCK_SIZE": self.threads, "KEYS_A_THREAD": self.keys, "BLOCKS_AT_ONCE": self.blocks}
        if self.overlapped and job.engine.device.has_clusters:  # as old as programmatic dependent launch
            shape[OVERLAPPED] = 1
        return job.engine.build(PEAK_FILE, {**job.defines, **shape})

    def launch(self, job: SortJob, kernel: str, blocks: int, *arguments: Argument, shared_bytes: int = 0) -> None:
        """Launch a kernel on a number of blocks of this shape.

        Parameters
        ----------
        job : SortJob
            The sort; the kernel is built for its keys.
        blocks : int
            Blocks of the grid, which has one dimension.
        *arguments : Buffer or NumPy scalar
            As of `Engine.launch`.
        shared_bytes : int
            Dynamic shared memory per block.
        """
        function = self.build(job).kernel(kernel)
        job.engine.launch(function, (blocks, 1, 1), (self.threads, 1, 1), *arguments, shared_bytes=shared_bytes)


_CLUSTER = 8
"""Blocks of a cluster, as in the kernel file."""

_CLUSTER_TILINGS = (Tiling(MIN_THREADS, 4), Tiling(MIN_THREADS, 8))
"""Shapes for a cluster. With twice as many keys, tiles on all multiprocessors are faster."""

_MIN_CLUSTER_KEYS = 4097
"""Fewer keys are sorted faster by one block, if it has the memory."""

_SINGLE_BLOCK_TILINGS = (Tiling(MIN_THREADS, 4), Tiling(512, 4), Tiling(512, 8), Tiling(512, 16))

_FEW_TILES = Tiling(MIN_THREADS, 8, 4, overlapped=True)

_TILINGS: dict[tuple[int, bool], tuple[tuple[float, Tiling], ...]] = {
    (4, False): (
        (24, Tiling(256, 40, 3)),
        (1.4, Tiling(256, 44, 2)),
        (0.9, Tiling(512, 16, 2)),
        (0, _FEW_TILES),
    ),
    (4, True): ((1.4, Tiling(512, 22, 2)), (0.9, Tiling(512, 16, 2)), (0, _FEW_TILES)),
    (8, False): ((1.4, Tiling(256, 22, 3)), (0, _FEW_TILES)),
    (8, True): ((1.4, Tiling(512, 16, 2)), (1.4, Tiling(256, 22, 3)), (0, _FEW_TILES)),
}
"""By key size in bytes and whether positions are sorted too: the fewest tiles per multiprocessor, and their shape."""


def sort_by_peak(job: SortJob, data: SortData) -> Sorting:
    """Sort few keys in one block or cluster, and many in tiles of a shape that depends on their number."""
    pairs, key_bytes = bool(job.defines["PAIRS"]), int(data.keys.dtype.itemsize)
    passes, device = -(-job.bits // _BYTE), job.engine.device
    arguments = data.keys, data.positions, np.int32(job.n), np.int32(passes)
    for shape in _CLUSTER_TILINGS if device.has_clusters and job.n >= _MIN_CLUSTER_KEYS else ():
        if job.n <= _CLUSTER * shape.tile:
            dynamic_bytes = (1 + pairs) * shape.dynamic_shared_bytes(key_bytes)
            shape.launch(job, "sort_in_cluster", _CLUSTER, *arguments, shared_bytes=dynamic_bytes)
            yield job.progress(data, 1.0, f"sorted by a cluster of {_CLUSTER} blocks")
            return data
    for shape in _SINGLE_BLOCK_TILINGS:
        if job.n <= shape.tile and shape.shared_bytes(key_bytes) <= device.shared_bytes_per_block:
            dynamic_bytes = shape.dynamic_shared_bytes(key_bytes)
            shape.launch(job, "sort_in_block", 1, *arguments, shared_bytes=dynamic_bytes)
            yield job.progress(data, 1.0, "sorted by one block")
            return data
    shape = next(
        shape
        for min_tiles, shape in _TILINGS[key_bytes, pairs]
        if job.n >= min_tiles * device.multiprocessors * shape.tile
        and shape.shared_bytes(key_bytes) <= device.max_shared_bytes
    )
    return (yield from _sort_in_tiles(job, data, shape, passes))


def _sort_in_tiles(job: SortJob, data: SortData, shape: Tiling, passes: int) -> Sorting:
    """Count the digits of all passes; then run each pass in one launch, in tiles of a shape."""
    engine, n = job.engine, job.n
    tiles = -(-n // shape.tile)
    states = engine.allocate((2, tiles * _BYTE_VALUES), np.uint32)
    # Counts and tickets: zeroed once, as the passes restore the zeros for the next sort.
    counts = engine.upload(np.zeros((data.keys.dtype.itemsize + 1, _BYTE_VALUES), np.uint32))
    counting_blocks = -(-n * data.keys.dtype.itemsize // (_MIN_COUNTING_BYTES * _COUNTING_THREADS))
    counting_blocks = max(1, min(counting_blocks, _COUNTING_BLOCKS * engine.device.multiprocessors))
    sizes = np.int32(tiles * _BYTE_VALUES), np.int32(n)
    kernel = shape.build(job).kernel("sort_peak_counts")
    engine.launch(kernel, (counting_blocks, 1, 1), (_COUNTING_THREADS, 1, 1), data.keys, counts, states, *sizes)
    target, dynamic_bytes = job.empty_like(data), shape.dynamic_shared_bytes(data.keys.dtype.itemsize)
    for number in range(passes):
        numbers = np.int32(n), np.int32(number)
        arguments = *move_arguments(data, target), counts, states, *numbers
        shape.launch(job, "sort_peak_pass", tiles, *arguments, shared_bytes=dynamic_bytes)
        data, target = target, data
        yield job.progress(data, (number + 1) / passes, f"sorted by the lowest {number + 1} bytes")
    engine.free(counts, states)
    job.free(target)
    return data
