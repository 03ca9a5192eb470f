"""The step of a chunk that is read, computed and written a part at a time: one after the other, and all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.declaration.distributed import Arrays, OnWorker, Piece
from gpu.distributed.chunks import Held, PartsOfChunk
from gpu.distributed.files import Target
from gpu.engines.base import Array
from gpu.patterns import find_pattern

_WAITING = 2
"""Parts of a result that wait to be written: who makes more waits for the disk."""


@dataclass(frozen=True)
class LevelsTarget:
    """Where rows of a result go as levels of an image: those of the input's type, below its white.

    Parameters
    ----------
    target : Target
    pattern : str
    params : mapping
    dtype : str
    maxval : int
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
    worker: OnWorker, chunk: PartsOfChunk, name: str, halo: int, target: Target, dtype: str, together: int
) -> Array:
    """Run the rung on a chunk's parts and write what it makes of them; return how many rows and bytes that is.

    Parameters
    ----------
    worker : OnWorker
    chunk : PartsOfChunk
    name : str
        Of the output that is written.
    halo : int
        How many rows of its neighbors a part sees.
    target : Target
    dtype : str
        As it is written.
    together : int
        How many rows are written at a time, or a multiple of them.
    """
    under_way: deque[Piece] = deque()

    def inputs() -> Generator[Arrays, None, None]:
        with closing(chunk.read(halo)) as pieces:
            for piece in pieces:
                under_way.append(piece)
                yield piece.inputs

    size = 0
    with (
        writing_behind(target, chunk.start, together, chunk.held) as put,
        closing(inputs()) as parts,
        closing(worker.run_by_turns(parts)) as made,
    ):
        for outputs in made:
            piece = under_way.popleft()
            rows = outputs[name][piece.before : piece.before + piece.stop - piece.start]
            chunk.done(piece)
            put(rows)
            size += rows.size * np.dtype(dtype).itemsize
    return np.array([chunk.stop - chunk.start, size], np.int64)


@contextmanager
def writing_behind(target: Target, start: int, together: int, held: Held) -> Iterator[Callable[[Array], None]]:
    """Have a function that takes rows, one after the other from `start` on; a thread writes them.

    All are written when the block ends well; so many `together`, or a multiple of them, but for the last ones.
    """
    kept: list[Array] = []
    waiting: deque[Future[None]] = deque()
    place, count = start, 0

    def write(first: int, parts: list[Array]) -> None:
        target.write(first, parts[0] if len(parts) == 1 else np.concatenate(parts))
        held.add(-sum(each.nbytes for each in parts))

    def hand_over() -> None:
        nonlocal kept, place, count
        waiting.append(thread.submit(write, place, kept))
        kept, place, count = [], place + count, 0
        while len(waiting) > _WAITING:
            waiting.popleft().result()

    def put(rows: Array) -> None:
        nonlocal count
        held.add(rows.nbytes)
        kept.append(rows)
        count += len(rows)
        if count % together == 0:
            hand_over()

    with ThreadPoolExecutor(1, "writing") as thread:
        try:
            yield put
            if kept:
                hand_over()
            while waiting:
                waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
