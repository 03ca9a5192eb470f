"""Dask task that reads, computes and writes a chunk in parts, with the three stages overlapped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.declaration.distributed_program import Arrays, ChunkInput, WorkerContext
from gpu.distributed.data.chunks import ChunkPartReader, MemoryUsage
from gpu.distributed.data.files import Target
from gpu.engines.base import Array
from gpu.patterns import find_pattern

_QUEUED_WRITES = 2
"""Batches of rows that may wait for the disk before the computation waits too."""


@dataclass(frozen=True)
class LevelsTarget:
    """Target that converts rows of a result to image levels, from 0 to `maxval` in the type `dtype`, and writes them.

    Parameters
    ----------
    params : mapping
    """

    target: Target
    pattern: str
    params: Mapping[str, Any]
    dtype: str
    maxval: int

    def write(self, start: int, rows: Array) -> None:
        pixels = {"image": np.empty(rows.shape, self.dtype), "maxval": np.array(self.maxval, self.dtype)}
        shown = find_pattern(self.pattern).present(pixels, self.params, {"result": rows})
        self.target.write(start, shown["image"])


def run_in_parts(
    worker: WorkerContext, chunk: ChunkPartReader, name: str, halo: int, target: Target, dtype: str, granularity: int
) -> Array:
    """Run the variant on a chunk's parts and write its output `name`; return the number of rows and of bytes.

    Parameters
    ----------
    name : str
        Name of the output that is written.
    halo : int
        Rows of its neighbors that a part reads on each side.
    dtype : str
        Type in which it is written.
    granularity : int
        Each write has a multiple of this many rows, except for the last one.
    """
    in_progress: deque[ChunkInput] = deque()

    def read_inputs() -> Generator[Arrays, None, None]:
        with closing(chunk.read(halo)) as pieces:
            for piece in pieces:
                in_progress.append(piece)
                yield piece.inputs

    size = 0
    with (
        background_writer(target, chunk.start, granularity, chunk.memory_usage) as write_rows,
        closing(read_inputs()) as parts,
        closing(worker.run_overlapped(parts)) as results,
    ):
        for outputs in results:
            piece = in_progress.popleft()
            rows = outputs[name][piece.before : piece.before + piece.stop - piece.start]
            chunk.release_part(piece)
            write_rows(rows)
            size += rows.size * np.dtype(dtype).itemsize
    return np.array([chunk.stop - chunk.start, size], np.int64)


@contextmanager
def background_writer(
    target: Target, start: int, granularity: int, memory_usage: MemoryUsage
) -> Iterator[Callable[[Array], None]]:
    """Provide a function that appends rows to a target; a thread writes them.

    All rows are written when the block ends without an exception.

    Parameters
    ----------
    target : Target
        The file that is written.
    start : int
        The row of the target at which the first rows are written.
    granularity : int
        Each write has a multiple of this many rows, except for the last one.
    memory_usage : MemoryUsage
        Counts the bytes of rows that wait to be written.

    Yields
    ------
    callable
        `add_rows(rows)` takes the next rows. It blocks while too many rows wait for the disk, and raises write errors.
    """
    batch: list[Array] = []
    waiting: deque[Future[None]] = deque()
    position, count = start, 0

    def write_batch(first: int, parts: list[Array]) -> None:
        target.write(first, parts[0] if len(parts) == 1 else np.concatenate(parts))
        memory_usage.add(-sum(part.nbytes for part in parts))

    def submit_batch() -> None:
        nonlocal batch, position, count
        waiting.append(thread.submit(write_batch, position, batch))
        batch, position, count = [], position + count, 0
        while len(waiting) > _QUEUED_WRITES:
            waiting.popleft().result()

    def add_rows(rows: Array) -> None:
        nonlocal count
        memory_usage.add(rows.nbytes)
        batch.append(rows)
        count += len(rows)
        if count % granularity == 0:
            submit_batch()

    with ThreadPoolExecutor(1, "writing") as thread:
        try:
            yield add_rows
            if batch:
                submit_batch()
            while waiting:
                waiting.popleft().result()
        finally:
            for write_result in waiting:
                write_result.cancel()
