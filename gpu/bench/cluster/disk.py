"""A large image on a disk: what the disk reads and copies, and the image filtered and counted a chunk at a time."""

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

from gpu.declaration.pattern import Progress
from gpu.distributed.chunks import Chunk, PartsOfChunk
from gpu.distributed.cluster import Cluster
from gpu.distributed.files import Streamed, Target, open_streamed, writing
from gpu.distributed.in_parts import writing_behind
from gpu.distributed.sources import Excerpt, Source
from gpu.distributed.streamed import chunk_bytes, in_parts, stream
from gpu.engines.base import Array
from gpu.patterns import find_pattern

READ = "what the disk reads"
COPY = "what the disk copies"

_ROW = 32768
_MADE_ROWS = 512
_FILTERED = {"size": 5, "filter": "gaussian", "pixels": "uint8"}
_SMALL = 2**12
_LOOKED_AT = 4
"""How many rows of a result are compared with the reference, and at how many places."""


@dataclass(frozen=True)
class DiskRow:
    """What was done with an image on a disk: bytes read and written, and in how many seconds."""

    what: str
    read_bytes: int
    written_bytes: int
    seconds: float
    right: bool
    held_bytes: int = 0

    @property
    def rate(self) -> float:
        """Gigabytes of the image in a second."""
        return self.read_bytes / self.seconds / 1e9


def measure(cluster: Cluster, size: int, folder: Path) -> Iterator[DiskRow]:
    """Write an image of about `size` bytes, and read, filter and count it by all workers; yield a row for each.

    Before each of them the system is asked to keep nothing of the file in memory. What is written counts when the disk
    has it, not the system's memory.
    """
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        path, target, small = (Path(own) / f"{name}.pgm" for name in ("image", "filtered", "small"))
        _write(small, _SMALL)
        begun = time.perf_counter()
        counts = _write(path, size)
        yield DiskRow("written, to begin with", 0, path.stat().st_size, time.perf_counter() - begun, True)
        image = open_streamed(str(path))
        for _ in range(2):  # what it reads the first time may come from where the file was just written
            yield _read(cluster, image)
        yield _copy(cluster, image, target)
        target.unlink()
        for name, variant, to in (("histogram", "peak", ""), ("convolution", "peak", str(target))):
            pattern = find_pattern(name)
            params = pattern.check(_FILTERED if to else {"bins": 256})
            run = partial(stream, cluster, pattern, pattern.variant(variant), params=params, tell=_quiet, target=to)
            run(given=open_streamed(str(small)), chunks=(len(cluster.workers),))  # compiles what there is to compile
            _forget(path)
            begun = time.perf_counter()
            done = run(given=image)
            seconds = time.perf_counter() - begun
            right = _filtered(image, to) if to else np.array_equal(done.outputs["counts"].ravel(), counts)
            held = max(record.held_bytes for record in done.done.tasks)
            yield DiskRow(pattern.title, done.read_bytes, done.written_bytes, seconds, right, held)


def _write(path: Path, size: int) -> Array:
    """Write an image, and have the disk take it; return how often it has each level."""
    rng = np.random.default_rng(size)
    width = min(_ROW, max(16, int(size**0.5)))
    height = max(1, size // width)
    counts, levels = np.zeros(256, np.int64), np.arange(256)
    with path.open("wb") as file:
        file.write(f"P5\n{width} {height}\n255\n".encode())
        # Rows that follow each other differ, and all are made of the same random ones.
        made = rng.integers(0, 256, (min(_MADE_ROWS, height), width), np.uint8)
        whole = np.bincount(made.ravel(), minlength=256)
        for first in range(0, height, len(made)):
            rows, turned = made[: height - first], first // len(made) % 256
            own = whole if len(rows) == len(made) else np.bincount(rows.ravel(), minlength=256)
            counts += own[levels ^ turned]
            file.write((rows ^ np.uint8(turned)).data)
        file.flush()
        os.fsync(file.fileno())
    return counts


def _read(cluster: Cluster, image: Streamed) -> DiskRow:
    """Have all workers read the image, in chunks as they are read while it is counted."""
    _forget(Path(image.path))
    begun = time.perf_counter()
    size = _by_all(cluster, image, read_rows, image.source, chunk=chunk_bytes(image, alone=False))
    return DiskRow(READ, size, 0, time.perf_counter() - begun, size == image.nbytes)


def _copy(cluster: Cluster, image: Streamed, target: Path) -> DiskRow:
    """Have all workers copy the image as they filter it, with nothing between: what no filter can be faster than."""
    _forget(Path(image.path))
    begun = time.perf_counter()
    with writing(str(target), image.shape, image.dtype.name, 0, image.maxval) as to:
        size = _by_all(cluster, image, copy_rows, image, to.target, chunk=chunk_bytes(image, alone=True))
    seconds = time.perf_counter() - begun
    copy, height = open_streamed(str(target)), image.shape[0]
    ends = {(0, min(_LOOKED_AT, height)), (max(height - _LOOKED_AT, 0), height)}
    right = all(np.array_equal(image.source.read(*each), copy.source.read(*each)) for each in ends)
    return DiskRow(COPY, size, size, seconds, right and copy.shape == image.shape)


def _by_all(cluster: Cluster, image: Streamed, action: Callable[..., int], *taken: Any, chunk: int) -> int:
    """Have each worker do something with its chunks, of so many bytes; return the sum of what they return."""
    rows = max(1, min(chunk * image.shape[0] // image.nbytes, -(-image.shape[0] // len(cluster.workers))))
    done = [
        cluster.client.submit(
            action, *taken, first, min(first + rows, image.shape[0]),
            workers=[cluster.workers[first // rows % len(cluster.workers)].address], pure=False,
        )
        for first in range(0, image.shape[0], rows)
    ]  # fmt: skip
    return int(sum(cluster.client.gather(done)))


def read_rows(source: Source, first: int, last: int) -> int:
    """Read some rows; return how many bytes they have."""
    return source.read(first, last).nbytes


def copy_rows(image: Streamed, target: Target, first: int, last: int) -> int:
    """Read some rows and write them elsewhere, both at once; return how many bytes they have."""
    (chunk,) = in_parts([Chunk({"image": Excerpt(image.source, first, last)}, {}, 0, first, last)], image)
    parts, size = PartsOfChunk(chunk, lambda piece: None), 0
    with writing_behind(target, first, 1, parts.held) as put, closing(parts.read(0)) as pieces:
        for piece in pieces:
            put(piece.inputs["image"])
            parts.done(piece)
            size += piece.nbytes
    return size


def _filtered(image: Streamed, target: str) -> bool:
    """Compare some rows of a filtered image with the reference."""
    pattern = find_pattern("convolution")
    params = pattern.check(_FILTERED)
    result, height = open_streamed(target), image.shape[0]
    reach = 2
    for place in range(_LOOKED_AT):
        first = place * max(height - _LOOKED_AT, 0) // (_LOOKED_AT - 1)
        last = min(first + _LOOKED_AT, height)
        above, below = max(first - reach, 0), min(last + reach, height)
        inputs = {"image": image.source.read(above, below), "maxval": np.array(255, np.uint8)}
        exact = pattern.reference(inputs, params)[first - above : last - above]
        # A pixel halfway between two levels may become either.
        if np.abs(result.source.read(first, last) - exact).max() > 0.5 + 1e-3:
            return False
    return result.shape == image.shape


def _forget(path: Path) -> None:
    """Ask the system to keep nothing of a file in memory."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _quiet(progress: Progress) -> None:
    pass
