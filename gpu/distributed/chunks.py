"""Chunks of the input, as Dask tasks read them: all at once, or in parts while others are computed and written."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from gpu.declaration.distributed import Arrays, Piece
from gpu.distributed.sources import Excerpt

_READ_AHEAD = 1
"""Number of parts that are read before the consumer requests them."""


@dataclass(frozen=True)
class Chunk:
    """One chunk of the input: its sources and its position; see `Piece` for its numbers.

    Parameters
    ----------
    divided : mapping of str to Excerpt
        Sources of the chunk's elements, including its halo.
    whole : mapping of str to array
        Inputs that every chunk receives complete.
    """

    divided: Mapping[str, Excerpt]
    whole: Arrays
    place: int
    start: int
    stop: int
    before: int = 0
    after: int = 0

    def read(self) -> Piece:
        """Read the chunk, in the worker."""
        inputs = {name: excerpt.read() for name, excerpt in self.divided.items()}
        return Piece({**inputs, **self.whole}, self.place, self.start, self.stop, self.before, self.after)

    def part(self, first: int, last: int, halo: int) -> Chunk:
        """Return rows [first, last) as a chunk, with up to `halo` rows of its neighbors on each side."""
        begin, end = max(first - halo, self.start - self.before), min(last + halo, self.stop + self.after)
        divided = {name: Excerpt(excerpt.source, begin, end) for name, excerpt in self.divided.items()}
        return replace(self, divided=divided, start=first, stop=last, before=first - begin, after=end - last)


@dataclass(frozen=True)
class ChunkInParts:
    """A chunk that is read in parts.

    Parameters
    ----------
    chunk : Chunk
    rows : int
        Rows per part, except for the last one.
    row_bytes : int
    at_once : bool
        Whether reading the whole chunk at once is faster than reading parts, as for compressed data, where
        parts overlap.
    """

    chunk: Chunk
    rows: int
    row_bytes: int
    at_once: bool


class Held:
    """Count the bytes in memory and their peak; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def add(self, nbytes: int) -> None:
        """Add bytes that were allocated, or a negative number of bytes that were freed."""
        with self._lock:
            self._now += nbytes
            self.most = max(self.most, self._now)


class PartsOfChunk:
    """Reader of a chunk's parts in the worker; its own thread reads one part ahead.

    Parameters
    ----------
    given : ChunkInParts
    look_at : callable
        Called in that thread with each part that was read; raises InputError for input that the pattern refuses.

    Attributes
    ----------
    held : Held
        Memory of the parts and of the results computed from them.
    """

    def __init__(self, given: ChunkInParts, look_at: Callable[[Piece], None]) -> None:
        self._given = given
        self._look_at = look_at
        self.start, self.stop = given.chunk.start, given.chunk.stop
        self.held = Held()

    @property
    def nbytes(self) -> int:
        """Peak memory in bytes."""
        return self.held.most

    def read(self, halo: int) -> Generator[Piece, None, None]:
        """Yield the parts in order; the consumer calls `done` after using each."""
        given, chunk = self._given, self._given.chunk
        bounds = pairwise([*range(self.start, self.stop, given.rows), self.stop])
        parts = [chunk.part(first, last, halo) for first, last in bounds]
        if given.at_once:
            whole = self._piece(chunk)
            begin = self.start - chunk.before
            for part in parts:
                ((name, excerpt),) = part.divided.items()
                rows = whole.inputs[name][excerpt.first - begin : excerpt.last - begin]
                yield Piece({**whole.inputs, name: rows}, part.place, part.start, part.stop, part.before, part.after)
            return
        # No variable may refer to the next part: an exception would keep it and all objects of its frames alive.
        pending: deque[Future[Piece]] = deque()
        with ThreadPoolExecutor(1, "reading") as thread:
            for part in parts:
                pending.append(thread.submit(self._piece, part))
                if len(pending) > _READ_AHEAD:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def done(self, piece: Piece) -> None:
        """Subtract a part's memory."""
        if not self._given.at_once:
            self.held.add(-self._part_bytes(piece))

    def _piece(self, part: Chunk) -> Piece:
        self.held.add(self._part_bytes(part))
        piece = part.read()
        self._look_at(piece)
        return piece

    def _part_bytes(self, part: Chunk | Piece) -> int:
        return (part.before + part.stop - part.start + part.after) * self._given.row_bytes
