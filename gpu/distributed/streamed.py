"""Run of a pattern on data larger than memory: workers read and write files directly, chunk by chunk."""

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
"""Size of a chunk that is read at once, unless the number of chunks is given."""
LONG_CHUNK_BYTES = 2**28
"""Size of a chunk that is read in parts; longer than `CHUNK_BYTES`, since no stages overlap between two chunks."""
MOST_CHUNKS = 100_000
"""Limit for input headers that declare an enormous length."""


@dataclass(frozen=True)
class StreamedRun:
    """Results of streaming: small outputs by name, the record of the run, and the bytes read and written."""

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
    """Run a variant over files; each worker keeps one chunk of the input, or parts of it, and its results in memory.

    Parameters
    ----------
    cluster : Cluster
        All its workers must have access to the files.
    pattern, variant
    given : Streamed
    params : mapping
    tell : callable
    target : str
        Output file for a result as large as the input; small results are returned in the outputs.
    chunks : sequence of int
        As for `run_distributed`; empty means chunks of 64 MB, or of 256 MB if they are read in parts.

    Raises
    ------
    InputError
        If the pattern does not accept the file, or its result cannot be written chunk by chunk.
    """
    program = program_of(pattern, variant)
    if program.streaming is None:
        raise InputError(f"{pattern.title} needs its whole input at once.", advice="Omit --stream.")
    workers = workers_for(cluster, variant)
    _check_access(cluster, given.path)
    name = "image" if pattern.takes(params) == "image" else "values"
    _check_input(pattern, params, given, name)
    total = given.shape[0]
    together = program.together(params)
    if total % together:
        file = Path(given.path).name
        raise InputError(f"{file} has {total} rows, which is not a multiple of {together}.")
    if len(chunks) > 1:
        lengths = lengths_of(total, chunks, 1, together)
    else:
        most = chunk_bytes(given, alone=program.streaming.plan is None)
        lengths = _equal(given, len(workers), chunks, together * written_together(target), most)
    dtype = _checked_target(program.streaming, given, params, target, lengths)
    if not dtype:
        target = ""
    halo, common = program.halo(params), _common_inputs(given, name)
    cut: list[Chunk] = []
    start = 0
    for place, length in enumerate(lengths):
        stop = start + length
        around = min(halo, start), min(halo, total - stop)
        excerpt = Excerpt(given.source, start - around[0], stop + around[1])
        cut.append(Chunk({name: excerpt}, common, place, start, stop, *around))
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
                arguments = pattern.result, halo, where, dtype, _rows_per_write(target, lengths)
                puts = [tasks.make(run_in_parts, chunk, *arguments, place=at) for at, chunk in enumerate(tasks.chunks)]
            else:
                puts = _write_tasks(tasks, planned.pop(pattern.result), to.target, lengths)
            # All outputs that are not written to the file are small.
            arrays = tasks.wait([*puts, *(_as_task_result(each.parts[0]) for each in planned.values())], tell)
            sizes = np.array(arrays[: len(puts)], np.int64).reshape(-1, 2).sum(axis=0).tolist()
            outputs = dict(zip(planned, arrays[len(puts) :], strict=True))
            if to is not None:
                to.rows = sizes[0]
        wall_s = time.perf_counter() - begun
    finally:
        tasks.close()
    if tasks.news.lost:
        cluster.look()
    all_workers = tuple({each.address: each for each in (*workers, *cluster.workers)}.values())
    gathered = sum(each.nbytes for each in outputs.values())
    done = DistributedRun(all_workers, tuple(tasks.news.records), tuple(tasks.news.lost), wall_s, gathered)
    row_bytes = given.nbytes // max(total, 1)
    read = sum((record.elements[1] - record.elements[0]) * row_bytes for record in done.tasks if record.elements)
    return StreamedRun(outputs, done, read, sizes[1])


def put_part(worker: OnWorker, part: Array | Buffer, target: Target, start: int | Array, place: int) -> Array:
    """Write a part of a result; return its rows and bytes."""
    rows = part if isinstance(part, np.ndarray) else worker.engine.download(part)
    target.write(int(start[place]) if isinstance(start, np.ndarray) else start, rows)
    return np.array([len(rows), rows.nbytes], np.int64)


def _write_tasks(tasks: RunTasks, parts: Parts, target: Target, lengths: Sequence[int]) -> list[Named]:
    starts = np.cumsum([0, *lengths])
    return [
        _as_task_result(part).followed(
            put_part, target, int(starts[place]) if parts.starts is None else parts.starts, place
        )
        for place, part in enumerate(parts.parts)
    ]


def in_parts(cut: Sequence[Chunk], given: Streamed, together: int = 1, written: int = 1) -> list[ChunkInParts]:
    """Return chunks that are read in parts; a part has a multiple of both `together` and `written` rows."""
    row_bytes = max(1, given.nbytes // max(1, given.shape[0]))
    multiple = math.lcm(together, written)
    rows = -(-max(1, PART_BYTES // row_bytes) // multiple) * multiple
    return [ChunkInParts(each, rows, row_bytes, at_once=not _reads_parts_efficiently(given)) for each in cut]


def _rows_per_write(target: str, lengths: Sequence[int]) -> int:
    """Return the rows per write: for a Zarr array, a chunk, which is a file."""
    return lengths[0] if Path(target).suffix.lower() == ZARR else written_together(target)


def _checked_target(streaming: Streaming, given: Streamed, params: Params, target: str, lengths: Sequence[int]) -> str:
    """Return the type of the written result, "" if it is not written; raise InputError if it cannot be."""
    if streaming.dtype is None:
        return ""
    if not target:
        raise InputError("The result is as large as the input.", advice="Set its file with --output.")
    check_streamed_target(target, dtype=given.dtype.name, maxval=given.maxval, sized=streaming.sized(params))
    tiles = written_together(target)
    if any(each % tiles for each in lengths[:-1]):
        raise InputError(f"A TIFF image is written in rows of tiles: --chunks must be multiples of {tiles}.")
    if Path(target).suffix.lower() == ZARR and len({*lengths[:-1]}) > 1:
        raise InputError("A Zarr array's chunks have equal lengths, so --chunks must be equal too.")
    return given.dtype.name if is_image(target) else streaming.dtype(params)


def chunk_bytes(given: Streamed, *, alone: bool) -> int:
    """Return the default chunk size in bytes; `alone` if chunks need no results of other chunks."""
    return LONG_CHUNK_BYTES if alone and _reads_parts_efficiently(given) else CHUNK_BYTES


def _reads_parts_efficiently(given: Streamed) -> bool:
    """Return whether reading parts costs no more than reading all at once: in compressed data, parts overlap."""
    return isinstance(given.source, RawRows)


def _equal(given: Streamed, workers: int, chunks: Sequence[int], together: int, most: int) -> tuple[int, ...]:
    """Return equal lengths of chunks, except for the last: as many as requested, or at least one per worker."""
    total = given.shape[0]
    fitting = max(1, most * total // max(given.nbytes, 1))
    rows = max(1, -(-total // chunks[0])) if chunks else max(1, min(fitting, -(-total // workers)))
    rows = -(-rows // together) * together
    full_chunks, rest = divmod(total, rows)
    if full_chunks > MOST_CHUNKS:
        name = Path(given.path).name
        raise InputError(f"{name} would have more than {MOST_CHUNKS} chunks.", advice="Set --chunks.")
    return (*[rows] * full_chunks, rest) if rest or not full_chunks else (rows,) * full_chunks


def _common_inputs(given: Streamed, name: str) -> dict[str, Array]:
    return {"maxval": np.array(given.maxval, given.dtype)} if name == "image" else {}


def _check_input(pattern: Pattern, params: Params, given: Streamed, name: str) -> None:
    kind = pattern.takes(params)
    if kind == "text" or (kind == "image") != bool(given.maxval):
        expected = {"image": "an image (.pgm, .ppm, .tif)", "text": "a text, which cannot be streamed"}
        what = expected.get(kind, "numbers")
        raise InputError(f"{Path(given.path).name} is not what {pattern.title} needs here: {what}.")
    if name == "values" and len(given.shape) != max(pattern.dimensions, 1):
        shape = " x ".join(map(str, given.shape))
        dimensions = max(pattern.dimensions, 1)
        raise InputError(f"{Path(given.path).name} has the shape {shape}, but {dimensions} dimensions are needed.")


def _check_access(cluster: Cluster, path: str) -> None:
    sizes: Mapping[str, Any] = cluster.client.run(seen, path)
    for address, size in sizes.items():
        if size != seen(path):
            raise InputError(
                f"The worker {address} cannot access {path}, or its copy differs.",
                advice="Move it to a folder that all machines share.",
            )


def _as_task_result(made: Any) -> Named:
    assert isinstance(made, Named)
    return made
