"""A pattern over data that no memory holds: workers read and write files by themselves, a chunk after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.distributed import PART_BYTES, OnWorker, Parts, Streaming
from gpu.declaration.pattern import Array, Params, Pattern, Variant
from gpu.distributed.chunks import Chunk, ChunkInParts
from gpu.distributed.cluster import Cluster
from gpu.distributed.files import (
    RawRows,
    Streamed,
    Target,
    check_streamed_target,
    is_image,
    seen,
    writing,
    written_together,
)
from gpu.distributed.in_parts import LevelsTarget, run_in_parts
from gpu.distributed.run import lengths_of, program_of, workers_for
from gpu.distributed.sources import Excerpt
from gpu.distributed.tasks import Named, RunTasks
from gpu.distributed.zarr_arrays import ZARR
from gpu.engines.base import Buffer
from gpu.errors import InputError
from gpu.messages.distributed import DistributedRun
from gpu.run.drive import Tell

CHUNK_BYTES = 2**26
"""Of a chunk that is read at once, where nobody says how many there are."""
LONG_CHUNK_BYTES = 2**28
"""Of one that is read a part at a time: all stand still where a chunk ends and the next one begins."""
MOST_CHUNKS = 100_000
"""A description of some bytes can name any length: no list is made of that."""


@dataclass(frozen=True)
class StreamedRun:
    """What came of it: small results by name, what was done, bytes that were read and written."""

    outputs: Mapping[str, Array]
    done: DistributedRun
    read_bytes: int
    written_bytes: int


def stream(
    cluster: Cluster,
    pattern: Pattern,
    variant: Variant,
    given: Streamed,
    params: Params,
    tell: Tell,
    *,
    target: str = "",
    chunks: Sequence[int] = (),
) -> StreamedRun:
    """Run a variant over files; a worker has a chunk of the input in memory, or parts of it, and what it makes of them.

    Parameters
    ----------
    cluster : Cluster
        All its workers see the files.
    pattern, variant
    given : Streamed
    params : mapping
    tell : callable
    target : str
        Where a result goes that is as large as the input; one that is small is in the outputs.
    chunks : sequence of int
        As `run_distributed` takes them; none means chunks of 64 MB, or of 256 MB that are read a part at a time.

    Raises
    ------
    InputError
        Where the pattern does not take the file, or its result cannot be written so.
    """
    program = program_of(pattern, variant)
    if program.streaming is None:
        raise InputError(f"{pattern.title} needs all of its input at once.", advice="Leave out --stream.")
    workers = workers_for(cluster, variant)
    _refuse_unseen(cluster, given.path)
    name = "image" if pattern.takes(params) == "image" else "values"
    _refuse_other(pattern, params, given, name)
    total = given.shape[0]
    together = program.together(params)
    if total % together:
        file = Path(given.path).name
        raise InputError(f"{file} has {total} rows, no multiple of the {together} that belong together.")
    if len(chunks) > 1:
        lengths = lengths_of(total, chunks, 1, together)
    else:
        most = chunk_bytes(given, alone=program.streaming.plan is None)
        lengths = _equal(given, len(workers), chunks, together * written_together(target), most)
    dtype = _checked_target(program.streaming, given, params, target, lengths)
    if not dtype:
        target = ""
    halo, whole = program.halo(params), _beside(given, name)
    cut: list[Chunk] = []
    start = 0
    for place, length in enumerate(lengths):
        stop = start + length
        around = min(halo, start), min(halo, total - stop)
        excerpt = Excerpt(given.source, start - around[0], stop + around[1])
        cut.append(Chunk({name: excerpt}, whole, place, start, stop, *around))
        start = stop
    as_read = cut if program.streaming.plan is not None else in_parts(cut, given, together, written_together(target))
    tasks = RunTasks(cluster, pattern.name, variant.name, params, {}, as_read, {}, accept=True)
    try:
        begun = time.perf_counter()
        with writing(target, given.shape, dtype, lengths[0], given.maxval) if target else nullcontext() as to:
            planned = dict(program.streaming.plan(tasks)) if program.streaming.plan is not None else {}
            if to is None:
                puts = []
            elif program.streaming.plan is None:
                levels = LevelsTarget(to.target, pattern.name, params, dtype, given.maxval)
                where = levels if is_image(target) else to.target
                how = pattern.result, halo, where, dtype, _at_a_time(target, lengths)
                puts = [tasks.make(run_in_parts, chunk, *how, place=at) for at, chunk in enumerate(tasks.chunks)]
            else:
                puts = _puts(tasks, planned.pop(pattern.result), to.target, lengths)
            # What is not written is small.
            found = tasks.wait([*puts, *(_named(each.parts[0]) for each in planned.values())], tell)
            sizes = np.array(found[: len(puts)], np.int64).reshape(-1, 2).sum(axis=0).tolist()
            outputs = dict(zip(planned, found[len(puts) :], strict=True))
            if to is not None:
                to.rows = sizes[0]
        wall_s = time.perf_counter() - begun
    finally:
        tasks.close()
    if tasks.news.lost:
        cluster.look()
    everyone = tuple({each.address: each for each in (*workers, *cluster.workers)}.values())
    gathered = sum(each.nbytes for each in outputs.values())
    done = DistributedRun(everyone, tuple(tasks.news.records), tuple(tasks.news.lost), wall_s, gathered)
    row_bytes = given.nbytes // max(total, 1)
    read = sum((record.elements[1] - record.elements[0]) * row_bytes for record in done.tasks if record.elements)
    return StreamedRun(outputs, done, read, sizes[1])


def put_part(worker: OnWorker, part: Array | Buffer, target: Target, start: int | Array, place: int) -> Array:
    """Write a part of a result; return how many rows and bytes it has."""
    rows = part if isinstance(part, np.ndarray) else worker.engine.download(part)
    target.write(int(start[place]) if isinstance(start, np.ndarray) else start, rows)
    return np.array([len(rows), rows.nbytes], np.int64)


def _puts(tasks: RunTasks, parts: Parts, target: Target, lengths: Sequence[int]) -> list[Named]:
    starts = np.cumsum([0, *lengths])
    return [
        _named(part).followed(put_part, target, int(starts[place]) if parts.starts is None else parts.starts, place)
        for place, part in enumerate(parts.parts)
    ]


def in_parts(cut: Sequence[Chunk], given: Streamed, together: int = 1, written: int = 1) -> list[ChunkInParts]:
    """Return chunks as they are read a part at a time: so many rows that belong together, or are written at a time."""
    row_bytes = max(1, given.nbytes // max(1, given.shape[0]))
    least = math.lcm(together, written)
    rows = -(-max(1, PART_BYTES // row_bytes) // least) * least
    return [ChunkInParts(each, rows, row_bytes, at_once=not _goes_in_parts(given)) for each in cut]


def _at_a_time(target: str, lengths: Sequence[int]) -> int:
    """Return how many rows are written at a time: of a Zarr array a chunk, which is a file."""
    return lengths[0] if Path(target).suffix.lower() == ZARR else written_together(target)


def _checked_target(streaming: Streaming, given: Streamed, params: Params, target: str, lengths: Sequence[int]) -> str:
    """Return the type in which a result is written; "" where it is not. InputError where it cannot be."""
    if streaming.dtype is None:
        return ""
    if not target:
        raise InputError("The result is as large as the input.", advice="Say by --output where it goes.")
    check_streamed_target(target, dtype=given.dtype.name, maxval=given.maxval, sized=streaming.sized(params))
    tiles = written_together(target)
    if any(each % tiles for each in lengths[:-1]):
        raise InputError(f"A TIFF image is written by rows of tiles: --chunks with it are multiples of {tiles}.")
    if Path(target).suffix.lower() == ZARR and len({*lengths[:-1]}) > 1:
        raise InputError("A Zarr array's chunks are equally long, and so are those of --chunks with it.")
    return given.dtype.name if is_image(target) else streaming.dtype(params)


def chunk_bytes(given: Streamed, *, alone: bool) -> int:
    """Return how large chunks are, where nobody says how many there are; `alone` if they need nothing of each other."""
    return LONG_CHUNK_BYTES if alone and _goes_in_parts(given) else CHUNK_BYTES


def _goes_in_parts(given: Streamed) -> bool:
    """Whether to read parts takes no more than to read all at once: those of what is compressed overlap."""
    return isinstance(given.source, RawRows)


def _equal(given: Streamed, workers: int, chunks: Sequence[int], together: int, most: int) -> tuple[int, ...]:
    """Return chunks of equal lengths but for the last one: as many as asked for, or one for each worker at least."""
    total = given.shape[0]
    fitting = max(1, most * total // max(given.nbytes, 1))
    rows = max(1, -(-total // chunks[0])) if chunks else max(1, min(fitting, -(-total // workers)))
    rows = -(-rows // together) * together
    whole, rest = divmod(total, rows)
    if whole > MOST_CHUNKS:
        raise InputError(f"{Path(given.path).name} comes to more than {MOST_CHUNKS} chunks.", advice="See --chunks.")
    return (*[rows] * whole, rest) if rest or not whole else (rows,) * whole


def _beside(given: Streamed, name: str) -> dict[str, Array]:
    return {"maxval": np.array(given.maxval, given.dtype)} if name == "image" else {}


def _refuse_other(pattern: Pattern, params: Params, given: Streamed, name: str) -> None:
    wanted = pattern.takes(params)
    if wanted == "text" or (wanted == "image") != bool(given.maxval):
        what = {"image": "an image, .pgm, .ppm or .tif", "text": "a text, which is not streamed"}.get(wanted, "numbers")
        raise InputError(f"{Path(given.path).name} is not what {pattern.title} takes here: {what}.")
    if name == "values" and len(given.shape) != max(pattern.dimensions, 1):
        shape = " x ".join(map(str, given.shape))
        raise InputError(f"{Path(given.path).name} holds {shape}; {max(pattern.dimensions, 1)} dimensions are wanted.")


def _refuse_unseen(cluster: Cluster, path: str) -> None:
    sizes: Mapping[str, Any] = cluster.client.run(seen, path)
    for address, size in sizes.items():
        if size != seen(path):
            raise InputError(
                f"The worker {address} does not see {path} as it is here.",
                advice="Put it in a folder that all machines share.",
            )


def _named(made: Any) -> Named:
    assert isinstance(made, Named)
    return made
