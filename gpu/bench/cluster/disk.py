"""A large image on a disk: what the disk reads, and the image filtered and counted a chunk at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gpu.declaration.pattern import Progress
from gpu.distributed.cluster import Cluster
from gpu.distributed.files import Streamed, open_streamed
from gpu.distributed.sources import Source
from gpu.distributed.streamed import CHUNK_BYTES, stream
from gpu.engines.base import Array
from gpu.patterns import find_pattern

READ = "what the disk reads"

_ROW = 32768
_MADE_ROWS = 512
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

    Before each of them the system is asked to keep nothing of the file in memory.
    """
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        path, target = Path(own) / "image.pgm", Path(own) / "filtered.pgm"
        begun = time.perf_counter()
        counts = _write(path, size)
        yield DiskRow("written, to begin with", 0, path.stat().st_size, time.perf_counter() - begun, True)
        image = open_streamed(str(path))
        for _ in range(2):  # what it reads the first time may come from where the file was just written
            yield _read(cluster, image)
        for name, variant, to in (("histogram", "peak", ""), ("convolution", "peak", str(target))):
            _forget(path)
            pattern = find_pattern(name)
            params = pattern.check({"size": 5, "filter": "gaussian"} if to else {"bins": 256})
            begun = time.perf_counter()
            done = stream(cluster, pattern, pattern.variant(variant), image, params, _quiet, target=to)
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
    """Have all workers read the image, in chunks as they are read while it is filtered."""
    _forget(Path(image.path))
    rows = max(1, min(CHUNK_BYTES * image.shape[0] // image.nbytes, -(-image.shape[0] // len(cluster.workers))))
    begun = time.perf_counter()
    read = [
        cluster.client.submit(
            read_rows, image.source, first, min(first + rows, image.shape[0]),
            workers=[cluster.workers[first // rows % len(cluster.workers)].address], pure=False,
        )
        for first in range(0, image.shape[0], rows)
    ]  # fmt: skip
    size = sum(cluster.client.gather(read))
    return DiskRow(READ, size, 0, time.perf_counter() - begun, size == image.nbytes)


def read_rows(source: Source, first: int, last: int) -> int:
    """Read some rows; return how many bytes they have."""
    return source.read(first, last).nbytes


def _filtered(image: Streamed, target: str) -> bool:
    """Compare some rows of a filtered image with the reference."""
    pattern = find_pattern("convolution")
    params = pattern.check({"size": 5, "filter": "gaussian"})
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
