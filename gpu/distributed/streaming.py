"""Run of a pattern on data larger than memory: workers read and write files directly, chunk by chunk."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.distributed_program import OVERLAP_PART_BYTES, Parts, Streaming, WorkerContext
from gpu.declaration.pattern import Array, Params, Pattern
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.data.chunk_pipeline import LevelsTarget, run_in_parts
from gpu.distributed.data.chunks import Chunk, ChunkInParts
from gpu.distributed.data.files import (
    Output,
    RawRows,
    StreamedInput,
    Target,
    check_streamed_target,
    create_output,
    find_write_granularity,
    is_image,
    read_file_size,
)
from gpu.distributed.data.sources import Excerpt
from gpu.distributed.data.zarr_arrays import ZARR
from gpu.distributed.distributed_run import (
    build_distributed_run,
    compute_chunk_lengths,
    find_capable_workers,
    find_distributed_program,
)
from gpu.distributed.tasks import NamedResult, RunTasks, to_named_result
from gpu.engines.base import Buffer
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.run.host_program import ProgressCallback
from gpu.run.workload import Workload

CHUNK_BYTES = 2**26
"""Size of a chunk that is read at once, unless the number of chunks is given."""
LONG_CHUNK_BYTES = 2**28
"""Size of a chunk that is read in parts; longer than `CHUNK_BYTES`, since no stages overlap between two chunks."""
MAX_CHUNKS = 100_000
"""Limit for input headers that declare an enormous length."""


@dataclass(frozen=True)
class StreamedRun:
    """Results of streaming: small outputs by name, the record of the run, and the bytes read and written."""

    outputs: Mapping[str, Array]
    distributed_run: DistributedRun
    read_bytes: int
    written_bytes: int


def run_streamed(
    cluster: Cluster,
    workload: Workload,
    streamed_input: StreamedInput,
    report_progress: ProgressCallback,
    *,
    target: str = "",
    chunks: Sequence[int] = (),
) -> StreamedRun:
    """Run a variant over files; each worker keeps one chunk of the input, or parts of it, and its results in memory.

    Parameters
    ----------
    cluster : Cluster
        All its workers must have access to the files.
    workload : Workload
        With all parameters and without inputs, which are read from the file.
    target : str
        Output file for a result as large as the input; small results are returned in the outputs.
    chunks : sequence of int
        As for `run_distributed`; empty means chunks of 64 MB, or of 256 MB if they are read in parts.

    Raises
    ------
    InputError
        If the pattern does not accept the file, or its result cannot be written chunk by chunk.
    """
    pattern, variant, params = workload.pattern, workload.variant, workload.params
    program = find_distributed_program(pattern, variant)
    streaming = program.streaming
    if streaming is None:
        raise InputError(f"{pattern.title} needs its whole input at once.", advice="Omit --stream.")
    workers = find_capable_workers(cluster, variant)
    _check_access(cluster, streamed_input.path)
    name = "image" if pattern.input_kind(params) == "image" else "values"
    _check_input(pattern, params, streamed_input, name)
    together, halo = program.granularity(params), program.halo(params)
    lengths = _choose_lengths(streamed_input, streaming, len(workers), chunks, together, target)
    dtype = _check_target(streaming, streamed_input, params, target, lengths)
    stream = _Stream(workload, streaming, streamed_input, target if dtype else "", dtype, lengths, halo)
    cut = _cut_chunks(streamed_input, name, lengths, halo)
    as_read: Sequence[Chunk | ChunkInParts] = cut
    if streaming.plan is None:
        as_read = read_chunks_in_parts(cut, streamed_input, together, find_write_granularity(stream.target))
    with closing(RunTasks(cluster, workload, as_read, {}, check_input=True)) as tasks:
        begun = time.perf_counter()
        outputs, written_bytes = stream.run(tasks, report_progress)
        wall_s = time.perf_counter() - begun
    done = build_distributed_run(cluster, workers, tasks, wall_s, outputs)
    row_bytes = streamed_input.nbytes // max(streamed_input.shape[0], 1)
    read = sum((record.elements[1] - record.elements[0]) * row_bytes for record in done.tasks if record.elements)
    return StreamedRun(outputs, done, read, written_bytes)


@dataclass(frozen=True)
class _Stream:
    """A variant to run over a file, the lengths of its chunks, and the file that it writes.

    `target` is "" if all results are small, else a file with elements of type `dtype`. Each chunk has up to `halo` rows
    before and after it.
    """

    workload: Workload
    streaming: Streaming
    input: StreamedInput
    target: str
    dtype: str
    lengths: Sequence[int]
    halo: int

    def run(self, tasks: RunTasks, report_progress: ProgressCallback) -> tuple[dict[str, Array], int]:
        """Run all tasks and write the result; return the small outputs by name, and the number of bytes written."""
        with self._create_output() as file:
            planned = dict(self.streaming.plan(tasks)) if self.streaming.plan is not None else {}
            if file is None:
                puts = []
            elif self.streaming.plan is None:
                puts = self._run_tasks_in_parts(tasks, file.target)
            else:
                puts = _write_tasks(planned.pop(self.workload.pattern.result), file.target, self.lengths)
            # All outputs that are not written to the file are small.
            arrays = tasks.wait_for_results(
                [*puts, *(to_named_result(each.parts[0]) for each in planned.values())], report_progress
            )
            rows, written_bytes = np.array(arrays[: len(puts)], np.int64).reshape(-1, 2).sum(axis=0).tolist()
            if file is not None:
                file.rows = rows
        return dict(zip(planned, arrays[len(puts) :], strict=True)), written_bytes

    def _create_output(self) -> AbstractContextManager[Output | None]:
        if not self.target:
            return nullcontext()
        return create_output(self.target, self.input.shape, self.dtype, self.lengths[0], self.input.maxval)

    def _run_tasks_in_parts(self, tasks: RunTasks, target: Target) -> list[NamedResult]:
        """Add a task per chunk that runs and writes it part by part."""
        result, params = self.workload.pattern.result, self.workload.params
        if is_image(self.target):
            target = LevelsTarget(target, self.workload.pattern.name, params, self.dtype, self.input.maxval)
        # Each chunk of a Zarr array is a file.
        rows = self.lengths[0] if Path(self.target).suffix.lower() == ZARR else find_write_granularity(self.target)
        return [
            tasks.add_task(run_in_parts, chunk, result, self.halo, target, self.dtype, rows, chunk_index=index)
            for index, chunk in enumerate(tasks.chunks)
        ]


def _choose_lengths(
    streamed_input: StreamedInput,
    streaming: Streaming,
    workers: int,
    chunks: Sequence[int],
    granularity: int,
    target: str,
) -> tuple[int, ...]:
    """Return the lengths of the chunks; raise InputError if the input is not a multiple of `granularity` rows."""
    total = streamed_input.shape[0]
    if total % granularity:
        file = Path(streamed_input.path).name
        raise InputError(f"{file} has {total} rows, which is not a multiple of {granularity}.")
    if len(chunks) > 1:
        return compute_chunk_lengths(total, chunks, 1, granularity)
    max_bytes = choose_chunk_bytes(streamed_input, independent=streaming.plan is None)
    return _compute_equal_lengths(
        streamed_input, workers, chunks, granularity * find_write_granularity(target), max_bytes
    )


def _cut_chunks(streamed_input: StreamedInput, name: str, lengths: Sequence[int], halo: int) -> list[Chunk]:
    """Return chunks of the given lengths, each with up to `halo` rows before and after it."""
    common = {"maxval": np.array(streamed_input.maxval, streamed_input.dtype)} if name == "image" else {}
    chunks: list[Chunk] = []
    start = 0
    for index, length in enumerate(lengths):
        stop = start + length
        around = min(halo, start), min(halo, streamed_input.shape[0] - stop)
        excerpt = Excerpt(streamed_input.source, start - around[0], stop + around[1])
        chunks.append(Chunk({name: excerpt}, common, index, start, stop, *around))
        start = stop
    return chunks


def write_part(
    worker: WorkerContext, part: Array | Buffer, target: Target, start: int | Array, chunk_index: int
) -> Array:
    """Write a part of a result to a file.

    Parameters
    ----------
    worker : WorkerContext
        The worker's engine.
    part : array or Buffer
        The rows to write, on the host or on the device.
    target : Target
        The file that is written.
    start : int or int64 array
        The row of the target for the part; as an array, the rows for the parts of all chunks.
    chunk_index : int
        The index of the part's chunk.

    Returns
    -------
    int64 array of shape (2,)
        The number of rows and of bytes.
    """
    rows = part if isinstance(part, np.ndarray) else worker.engine.download(part)
    target.write(int(start[chunk_index]) if isinstance(start, np.ndarray) else start, rows)
    return np.array([len(rows), rows.nbytes], np.int64)


def _write_tasks(parts: Parts, target: Target, lengths: Sequence[int]) -> list[NamedResult]:
    starts = np.cumsum([0, *lengths])
    return [
        to_named_result(part).apply_step(
            write_part, target, int(starts[index]) if parts.starts is None else parts.starts, index
        )
        for index, part in enumerate(parts.parts)
    ]


def read_chunks_in_parts(
    input_chunks: Sequence[Chunk], streamed_input: StreamedInput, granularity: int = 1, write_granularity: int = 1
) -> list[ChunkInParts]:
    """Return chunks that are read in parts of about `OVERLAP_PART_BYTES`.

    Parameters
    ----------
    streamed_input : StreamedInput
        The input that they divide.
    granularity, write_granularity : int
        A part has a multiple of both numbers of rows.
    """
    row_bytes = max(1, streamed_input.nbytes // max(1, streamed_input.shape[0]))
    multiple = math.lcm(granularity, write_granularity)
    rows = -(-max(1, OVERLAP_PART_BYTES // row_bytes) // multiple) * multiple
    return [
        ChunkInParts(input_chunk, rows, row_bytes, read_at_once=not _reads_parts_efficiently(streamed_input))
        for input_chunk in input_chunks
    ]


def _check_target(
    streaming: Streaming, streamed_input: StreamedInput, params: Params, target: str, lengths: Sequence[int]
) -> str:
    """Return the type of the written result, "" if it is not written; raise InputError if it cannot be."""
    if streaming.dtype is None:
        return ""
    if not target:
        raise InputError("The result is as large as the input.", advice="Set its file with --output.")
    check_streamed_target(
        target,
        dtype=streamed_input.dtype.name,
        maxval=streamed_input.maxval,
        is_input_sized=streaming.is_input_sized(params),
    )
    tiles = find_write_granularity(target)
    if any(length % tiles for length in lengths[:-1]):
        raise InputError(f"A TIFF image is written in rows of tiles: --chunks must be multiples of {tiles}.")
    if Path(target).suffix.lower() == ZARR and len({*lengths[:-1]}) > 1:
        raise InputError("A Zarr array's chunks have equal lengths, so --chunks must be equal too.")
    return streamed_input.dtype.name if is_image(target) else streaming.dtype(params)


def choose_chunk_bytes(streamed_input: StreamedInput, *, independent: bool) -> int:
    """Return the default chunk size in bytes; `independent` if chunks need no results of other chunks."""
    return LONG_CHUNK_BYTES if independent and _reads_parts_efficiently(streamed_input) else CHUNK_BYTES


def _reads_parts_efficiently(streamed_input: StreamedInput) -> bool:
    """Return whether reading parts costs no more than reading all at once: in compressed data, parts overlap."""
    return isinstance(streamed_input.source, RawRows)


def _compute_equal_lengths(
    streamed_input: StreamedInput, workers: int, chunks: Sequence[int], granularity: int, max_bytes: int
) -> tuple[int, ...]:
    """Return the lengths of the requested number of chunks, or at least one per worker; all but the last are equal."""
    total = streamed_input.shape[0]
    fitting = max(1, max_bytes * total // max(streamed_input.nbytes, 1))
    rows = max(1, -(-total // chunks[0])) if chunks else max(1, min(fitting, -(-total // workers)))
    rows = -(-rows // granularity) * granularity
    full_chunks, rest = divmod(total, rows)
    if full_chunks > MAX_CHUNKS:
        name = Path(streamed_input.path).name
        raise InputError(f"{name} would have more than {MAX_CHUNKS} chunks.", advice="Set --chunks.")
    return (*[rows] * full_chunks, rest) if rest or not full_chunks else (rows,) * full_chunks


def _check_input(pattern: Pattern, params: Params, streamed_input: StreamedInput, name: str) -> None:
    kind = pattern.input_kind(params)
    if kind == "text" or (kind == "image") != bool(streamed_input.maxval):
        expected = {"image": "an image (.pgm, .ppm, .tif)", "text": "a text, which cannot be streamed"}
        what = expected.get(kind, "numbers")
        raise InputError(f"{Path(streamed_input.path).name} is not what {pattern.title} needs here: {what}.")
    if name == "values" and len(streamed_input.shape) != max(pattern.dimensions, 1):
        shape = " x ".join(map(str, streamed_input.shape))
        dimensions = max(pattern.dimensions, 1)
        raise InputError(
            f"{Path(streamed_input.path).name} has the shape {shape}, but {dimensions} dimensions are needed."
        )


def _check_access(cluster: Cluster, path: str) -> None:
    sizes: Mapping[str, Any] = cluster.client.run(read_file_size, path)
    for address, size in sizes.items():
        if size != read_file_size(path):
            raise InputError(
                f"The worker {address} cannot access {path}, or its copy differs.",
                advice="Move it to a folder that all machines share.",
            )
