"""Benchmark of a large image on a disk: read and copy rates, and filtering and counting the image chunk by chunk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.data.chunk_pipeline import background_writer
from gpu.distributed.data.chunks import Chunk, ChunkPartReader
from gpu.distributed.data.files import StreamedInput, Target, create_output, open_streamed_input
from gpu.distributed.data.sources import Excerpt, Source
from gpu.distributed.streaming import choose_chunk_bytes, read_chunks_in_parts, run_streamed
from gpu.engines.base import Array
from gpu.patterns import find_pattern
from gpu.run.workload import Workload

READ = "read only"
COPY = "copy only"

_ROW_PIXELS = 32768
_RANDOM_ROWS = 512
_FILTER_PARAMS = {"size": 5, "filter": "gaussian", "pixels": "uint8"}
_SMALL_IMAGE_BYTES = 2**12
_COMPARED_ROWS = 4
"""Rows compared with the reference result at each place, and number of places."""


@dataclass(frozen=True)
class DiskRow:
    """An operation on an image on a disk: bytes read and written, seconds, and whether the result is correct."""

    operation: str
    read_bytes: int
    written_bytes: int
    seconds: float
    correct: bool
    peak_bytes: int = 0

    @property
    def rate(self) -> float:
        """Gigabytes of the image per second."""
        return self.read_bytes / self.seconds / 1e9


def measure(cluster: Cluster, size: int, folder: Path) -> Iterator[DiskRow]:
    """Write an image of about `size` bytes; then read, copy, count and filter it with all workers; yield their rows.

    Before each operation the system is asked to drop the file from its cache. A write is complete when the data is on
    the disk, not in the system's memory.
    """
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as work_folder:
        path, target, small = (Path(work_folder) / f"{name}.pgm" for name in ("image", "filtered", "small"))
        _write_image(small, _SMALL_IMAGE_BYTES)
        start = time.perf_counter()
        counts = _write_image(path, size)
        yield DiskRow("write the image", 0, path.stat().st_size, time.perf_counter() - start, True)
        image = open_streamed_input(str(path))
        for _ in range(2):  # the first read may come from a cache, as the file was just written
            yield _measure_read(cluster, image)
        yield _measure_copy(cluster, image, target)
        target.unlink()
        for name, variant, to in (("histogram", "peak", ""), ("convolution", "peak", str(target))):
            pattern = find_pattern(name)
            params = pattern.check(_FILTER_PARAMS if to else {"bins": 256})
            workload = Workload(pattern, pattern.variant(variant), {}, params)
            run = partial(run_streamed, cluster, workload, report_progress=lambda progress: None, target=to)
            run(streamed_input=open_streamed_input(str(small)), chunks=(len(cluster.workers),))  # compiles the kernels
            _drop_from_cache(path)
            start = time.perf_counter()
            result = run(streamed_input=image)
            seconds = time.perf_counter() - start
            correct = _is_filtered(image, to) if to else np.array_equal(result.outputs["counts"].ravel(), counts)
            peak_bytes = max(record.memory_bytes for record in result.distributed_run.tasks)
            yield DiskRow(pattern.title, result.read_bytes, result.written_bytes, seconds, correct, peak_bytes)


def _write_image(path: Path, size: int) -> Array:
    """Write an image to the disk; return its histogram of 256 levels."""
    rng = np.random.default_rng(size)
    width = min(_ROW_PIXELS, max(16, int(size**0.5)))
    height = max(1, size // width)
    counts, levels = np.zeros(256, np.int64), np.arange(256)
    with path.open("wb") as file:
        file.write(f"P5\n{width} {height}\n255\n".encode())
        # All blocks of rows derive from the same random ones; neighboring blocks differ by an XOR with their number.
        block = rng.integers(0, 256, (min(_RANDOM_ROWS, height), width), np.uint8)
        block_counts = np.bincount(block.ravel(), minlength=256)
        for first in range(0, height, len(block)):
            rows, mask = block[: height - first], first // len(block) % 256
            row_counts = block_counts if len(rows) == len(block) else np.bincount(rows.ravel(), minlength=256)
            counts += row_counts[levels ^ mask]
            file.write((rows ^ np.uint8(mask)).data)
        file.flush()
        os.fsync(file.fileno())
    return counts


def _measure_read(cluster: Cluster, image: StreamedInput) -> DiskRow:
    """Read the image with all workers, in the same chunks as for counting."""
    _drop_from_cache(Path(image.path))
    start = time.perf_counter()
    size = _run_on_all_workers(
        cluster, image, read_rows, image.source, chunk=choose_chunk_bytes(image, independent=False)
    )
    return DiskRow(READ, size, 0, time.perf_counter() - start, size == image.nbytes)


def _measure_copy(cluster: Cluster, image: StreamedInput, target: Path) -> DiskRow:
    """Copy the image with all workers in the same chunks as for filtering: an upper bound on the filter's rate."""
    _drop_from_cache(Path(image.path))
    start = time.perf_counter()
    with create_output(str(target), image.shape, image.dtype.name, 0, image.maxval) as to:
        size = _run_on_all_workers(
            cluster, image, copy_rows, image, to.target, chunk=choose_chunk_bytes(image, independent=True)
        )
    seconds = time.perf_counter() - start
    copy, height = open_streamed_input(str(target)), image.shape[0]
    ends = {(0, min(_COMPARED_ROWS, height)), (max(height - _COMPARED_ROWS, 0), height)}
    correct = all(np.array_equal(image.source.read(*each), copy.source.read(*each)) for each in ends)
    return DiskRow(COPY, size, size, seconds, correct and copy.shape == image.shape)


def _run_on_all_workers(
    cluster: Cluster, image: StreamedInput, action: Callable[..., int], *arguments: Any, chunk: int
) -> int:
    """Run an action on each worker's chunks of at most `chunk` bytes; return the sum of its results."""
    rows = max(1, min(chunk * image.shape[0] // image.nbytes, -(-image.shape[0] // len(cluster.workers))))
    futures = [
        cluster.client.submit(
            action, *arguments, first, min(first + rows, image.shape[0]),
            workers=[cluster.workers[first // rows % len(cluster.workers)].address], pure=False,
        )
        for first in range(0, image.shape[0], rows)
    ]  # fmt: skip
    return int(sum(cluster.client.gather(futures)))


def read_rows(source: Source, first: int, last: int) -> int:
    """Read rows; return their size in bytes."""
    return source.read(first, last).nbytes


def copy_rows(image: StreamedInput, target: Target, first: int, last: int) -> int:
    """Read rows and write them to a target, at the same time; return their size in bytes.

    Parameters
    ----------
    image : StreamedInput
        The image that is read.
    target : Target
        The file that is written, at the same rows.
    first, last : int
        The range of rows; `last` is excluded.
    """
    (chunk,) = read_chunks_in_parts([Chunk({"image": Excerpt(image.source, first, last)}, {}, 0, first, last)], image)
    parts, size = ChunkPartReader(chunk, lambda piece: None), 0
    with background_writer(target, first, 1, parts.memory_usage) as put, closing(parts.read(0)) as pieces:
        for piece in pieces:
            put(piece.inputs["image"])
            parts.release_part(piece)
            size += piece.nbytes
    return size


def _is_filtered(image: StreamedInput, target: str) -> bool:
    """Return whether some rows of a filtered image equal the reference result."""
    pattern = find_pattern("convolution")
    params = pattern.check(_FILTER_PARAMS)
    result, height = open_streamed_input(target), image.shape[0]
    reach = 2
    for index in range(_COMPARED_ROWS):
        first = index * max(height - _COMPARED_ROWS, 0) // (_COMPARED_ROWS - 1)
        last = min(first + _COMPARED_ROWS, height)
        above, below = max(first - reach, 0), min(last + reach, height)
        inputs = {"image": image.source.read(above, below), "maxval": np.array(255, np.uint8)}
        reference = pattern.reference(inputs, params)[first - above : last - above]
        # A value halfway between two levels may be rounded either way.
        if np.abs(result.source.read(first, last) - reference).max() > 0.5 + 1e-3:
            return False
    return result.shape == image.shape


def _drop_from_cache(path: Path) -> None:
    """Ask the system to drop a file from its cache."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
