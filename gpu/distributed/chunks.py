"""A chunk's input, as a task takes it: read at once, or a part at a time while others are computed and written."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from gpu.declaration.distributed import Arrays, Piece
from gpu.distributed.sources import Excerpt

_AHEAD = 1
"""Parts that are read before they are asked for."""


@dataclass(frozen=True)
class Chunk:
    """Where a chunk's input comes from, and which part of all it is; `Piece` says what its numbers are.

    Parameters
    ----------
    divided : mapping of str to Excerpt
        What the chunk's elements are read from, with those that it sees of its neighbors.
    whole : mapping of str to array
        What every chunk has.
    """

    divided: Mapping[str, Excerpt]
    whole: Arrays
    place: int
    start: int
    stop: int
    before: int = 0
    after: int = 0

    def read(self) -> Piece:
        """Read it, in the worker."""
        inputs = {name: excerpt.read() for name, excerpt in self.divided.items()}
        return Piece({**inputs, **self.whole}, self.place, self.start, self.stop, self.before, self.after)

    def part(self, first: int, last: int, halo: int) -> Chunk:
        """Return what stands from `first` until before `last`, with so many rows of its neighbors as are there."""
        seen = max(first - halo, self.start - self.before), min(last + halo, self.stop + self.after)
        divided = {name: Excerpt(each.source, *seen) for name, each in self.divided.items()}
        return replace(self, divided=divided, start=first, stop=last, before=first - seen[0], after=seen[1] - last)


@dataclass(frozen=True)
class ChunkInParts:
    """A chunk that its step reads a part at a time.

    Parameters
    ----------
    chunk : Chunk
    rows : int
        Of a part, but for the last one.
    row_bytes : int
    at_once : bool
        Whether to read all of it at once takes less than to read its parts: those of what is compressed overlap.
    """

    chunk: Chunk
    rows: int
    row_bytes: int
    at_once: bool


class Held:
    """Bytes that are held, and the most that were; threads that read and write count here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def add(self, nbytes: int) -> None:
        """Count what is held from now on, or, with a minus, no longer."""
        with self._lock:
            self._now += nbytes
            self.most = max(self.most, self._now)


class PartsOfChunk:
    """A chunk's parts in the worker, read by a thread of their own, one ahead.

    Parameters
    ----------
    given : ChunkInParts
    look_at : callable
        Told of each that is read, in that thread; raises InputError for what the pattern does not take.

    Attributes
    ----------
    held : Held
        What of the parts, and of what is made of them, is in memory.
    """

    def __init__(self, given: ChunkInParts, look_at: Callable[[Piece], None]) -> None:
        self._given = given
        self._look_at = look_at
        self.start, self.stop = given.chunk.start, given.chunk.stop
        self.held = Held()

    @property
    def nbytes(self) -> int:
        """The most bytes that were held at a time."""
        return self.held.most

    def read(self, halo: int) -> Generator[Piece, None, None]:
        """Yield the parts in their order; who has made something of one says so by `done`."""
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
        # What is read next has no name here: an error of it would keep itself, and all that its frames have.
        coming: deque[Future[Piece]] = deque()
        with ThreadPoolExecutor(1, "reading") as thread:
            for part in parts:
                coming.append(thread.submit(self._piece, part))
                if len(coming) > _AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def done(self, piece: Piece) -> None:
        """Count a part as held no longer."""
        if not self._given.at_once:
            self.held.add(-self._bytes_of(piece))

    def _piece(self, part: Chunk) -> Piece:
        self.held.add(self._bytes_of(part))
        piece = part.read()
        self._look_at(piece)
        return piece

    def _bytes_of(self, part: Chunk | Piece) -> int:
        return (part.before + part.stop - part.start + part.after) * self._given.row_bytes
