"""Chunks of the input, as Dask tasks read them: all at once, or in parts while others are computed and written."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from gpu.declaration.distributed_program import Arrays, ChunkInput
from gpu.distributed.data.sources import Excerpt

_READ_AHEAD = 1
"""Number of parts that are read before the consumer requests them."""


@dataclass(frozen=True)
class Chunk:
    """One chunk of the input: its sources and its position; see `ChunkInput` for its numbers.

    Parameters
    ----------
    excerpts : mapping of str to Excerpt
        Sources of the chunk's elements, including its halo.
    common_inputs : mapping of str to array
        Inputs that every chunk receives complete.
    """

    excerpts: Mapping[str, Excerpt]
    common_inputs: Arrays
    index: int
    start: int
    stop: int
    before: int = 0
    after: int = 0

    def read(self) -> ChunkInput:
        """Read the chunk, in the worker."""
        inputs = {name: excerpt.read() for name, excerpt in self.excerpts.items()}
        return ChunkInput({**inputs, **self.common_inputs}, self.index, self.start, self.stop, self.before, self.after)

    def slice_rows(self, first: int, last: int, halo: int) -> Chunk:
        """Return rows [first, last) as a chunk, with up to `halo` rows of its neighbors on each side."""
        begin, end = max(first - halo, self.start - self.before), min(last + halo, self.stop + self.after)
        divided = {name: Excerpt(excerpt.source, begin, end) for name, excerpt in self.excerpts.items()}
        return replace(self, excerpts=divided, start=first, stop=last, before=first - begin, after=end - last)


@dataclass(frozen=True)
class ChunkInParts:
    """A chunk that is read in parts.

    Parameters
    ----------
    rows : int
        Rows per part, except for the last one.
    read_at_once : bool
        Whether reading the whole chunk at once is faster than reading parts, as for compressed data, where
        parts overlap.
    """

    chunk: Chunk
    rows: int
    row_bytes: int
    read_at_once: bool


class MemoryUsage:
    """Count the bytes in memory and their peak; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = 0
        self.peak = 0

    def add(self, nbytes: int) -> None:
        """Add bytes that were allocated, or a negative number of bytes that were freed."""
        with self._lock:
            self._current += nbytes
            self.peak = max(self.peak, self._current)


class ChunkPartReader:
    """Reader of a chunk's parts in the worker; its own thread reads one part ahead.

    Parameters
    ----------
    check_part : callable
        Called in that thread with each part that was read; raises InputError for input that the pattern refuses.

    Attributes
    ----------
    memory_usage : MemoryUsage
        Memory of the parts and of the results computed from them.
    """

    def __init__(self, chunk_in_parts: ChunkInParts, check_part: Callable[[ChunkInput], None]) -> None:
        self._chunk_in_parts = chunk_in_parts
        self._check_part = check_part
        self.start, self.stop = chunk_in_parts.chunk.start, chunk_in_parts.chunk.stop
        self.memory_usage = MemoryUsage()

    @property
    def nbytes(self) -> int:
        """Peak memory in bytes."""
        return self.memory_usage.peak

    def read(self, halo: int) -> Generator[ChunkInput, None, None]:
        """Yield the parts in order; the consumer calls `release_part` after using each."""
        given, chunk = self._chunk_in_parts, self._chunk_in_parts.chunk
        bounds = pairwise([*range(self.start, self.stop, given.rows), self.stop])
        parts = [chunk.slice_rows(first, last, halo) for first, last in bounds]
        if given.read_at_once:
            whole = self._read_piece(chunk)
            begin = self.start - chunk.before
            for part in parts:
                ((name, excerpt),) = part.excerpts.items()
                rows = whole.inputs[name][excerpt.first - begin : excerpt.last - begin]
                yield ChunkInput(
                    {**whole.inputs, name: rows}, part.index, part.start, part.stop, part.before, part.after
                )
            return
        # No variable may refer to the next part: an exception would keep it and all objects of its frames alive.
        pending: deque[Future[ChunkInput]] = deque()
        with ThreadPoolExecutor(1, "reading") as thread:
            for part in parts:
                pending.append(thread.submit(self._read_piece, part))
                if len(pending) > _READ_AHEAD:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def release_part(self, piece: ChunkInput) -> None:
        """Subtract a part's memory."""
        if not self._chunk_in_parts.read_at_once:
            self.memory_usage.add(-self._count_part_bytes(piece))

    def _read_piece(self, part: Chunk) -> ChunkInput:
        self.memory_usage.add(self._count_part_bytes(part))
        piece = part.read()
        self._check_part(piece)
        return piece

    def _count_part_bytes(self, part: Chunk | ChunkInput) -> int:
        return (part.before + part.stop - part.start + part.after) * self._chunk_in_parts.row_bytes
