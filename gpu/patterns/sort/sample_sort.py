"""Sample sort on several devices: splitters from samples, an exchange of buckets, and a local sort of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpu.base.warp import WARP
from gpu.declaration.arrays import cast_values, warp_aligned_block_size
from gpu.declaration.distributed_program import ChunkInput, Parts, TaskCollector, WorkerContext
from gpu.declaration.pattern import Array, Params
from gpu.engines.base import Buffer
from gpu.patterns import scan
from gpu.patterns.sort.job import SortData, SortJob
from gpu.patterns.sort.programs import create_job, sort_on_device

CHUNKS_FILE = "sort_chunks.cu"

# Samples per chunk, if it has as many keys: the fewest per bucket, and the most in total. With s samples per bucket, a
# bucket exceeds its share by a factor of about 1 + 1 / sqrt(s).
_MIN_SAMPLES_PER_BUCKET = 256
_MAX_SAMPLES = 2**14
_KEYS_PER_SAMPLE = 64
"""Keys per sample, within those bounds."""

_OUTPUT_NAMES = {"keys": "keys", "result": "places"}
_MAX_BLOCKS = 2**16

# As in the kernels: keys per warp, and buckets written per launch.
_SECTION = 16 * WARP
_BUCKETS_PER_LAUNCH = 4


def plan(tasks: TaskCollector) -> dict[str, Parts]:
    """Add the Dask tasks: one bucket per chunk, and a share of each bucket from each chunk."""
    buckets, pairs = len(tasks.chunks), _sorts_positions(tasks.params)
    chunks = [
        tasks.add_task(sample_chunk, chunk, buckets, chunk_index=index) for index, chunk in enumerate(tasks.chunks)
    ]
    splitters = tasks.add_task(choose_splitters, [results["samples"] for results in chunks], buckets)
    shares = [
        tasks.add_task(
            distribute_chunk, results["keys"], results["start"], splitters, buckets, index, chunk_index=index
        )
        for index, results in enumerate(chunks)
    ]
    starts = tasks.add_task(compute_bucket_starts, [share["bounds"] for share in shares])
    sorted_buckets = []
    for bucket in range(buckets):
        keys = [share[f"keys {bucket}"] for share in shares]
        positions = [share[f"places {bucket}"] for share in shares] if pairs else None
        sorted_buckets.append(tasks.add_task(sort_bucket, keys, positions, chunk_index=bucket))
    if not pairs:
        result = Parts(tuple(sorted_buckets), starts)
        return {"keys": result, "result": result}
    return {
        name: Parts(tuple(sorted_bucket[part] for sorted_bucket in sorted_buckets), starts)
        for name, part in _OUTPUT_NAMES.items()
    }


def sample_chunk(worker: WorkerContext, piece: ChunkInput, buckets: int) -> dict[str, Any]:
    """Upload a chunk's keys, which stay on the device, and sample them.

    The samples are stratified: a random key of each of equal ranges of positions.
    """
    engine, keys = worker.engine, cast_values(piece.inputs, worker.params)
    n = keys.size
    count = min(n, max(_MIN_SAMPLES_PER_BUCKET * buckets, min(n // _KEYS_PER_SAMPLE, _MAX_SAMPLES)))
    samples, on_device = np.zeros(count, _sample_type(keys.dtype)), engine.upload(keys)
    if count:
        bounds = np.arange(count + 1, dtype=np.int64) * n // count
        positions = np.random.default_rng(piece.index).integers(bounds[:-1], bounds[1:]).astype(np.int32)
        job = _create_job(worker, n)
        indices, sampled = engine.upload(positions), engine.allocate((count,), keys.dtype)
        job.launch(
            job.build(CHUNKS_FILE),
            "sort_chunk_sample",
            -(-count // job.block),
            on_device,
            indices,
            sampled,
            np.int32(count),
        )
        samples["key"] = engine.download(sampled, count)
        engine.free(indices, sampled)
        samples["chunk"], samples["position"], samples["weight"] = piece.index, positions, np.diff(bounds)
    return {"keys": on_device, "start": np.array(piece.start), "samples": samples}


def choose_splitters(worker: WorkerContext, samples: list[Array], buckets: int) -> Array:
    """Sort the samples by a stable sort, and return those at which each bucket except the first begins.

    A sample has the weight of its range of keys, since longer chunks may not have more samples than others.
    """
    all_samples = np.concatenate(samples)
    if not all_samples.size:
        return all_samples
    engine, params = worker.engine, {**worker.params, "result": "places"}
    keys = np.ascontiguousarray(all_samples["key"])
    data = SortData(engine.upload(keys), engine.upload(np.arange(keys.size, dtype=np.int32)))
    data = sort_on_device(worker.variant, engine, data, params)
    sorted_samples = all_samples[engine.download(data.positions, keys.size)]
    engine.free(data.keys, data.positions)
    before = sorted_samples["weight"].cumsum() - sorted_samples["weight"]
    bounds = np.arange(1, buckets) * int(sorted_samples["weight"].sum()) // buckets
    return sorted_samples[np.minimum(np.searchsorted(before, bounds), keys.size - 1)]


def distribute_chunk(
    worker: WorkerContext, keys: Buffer, start: Array, splitters: Array, buckets: int, chunk: int
) -> dict[str, Array | Buffer]:
    """Distribute a chunk's keys to buckets, in stable order; the shares stay on the device until they are fetched.

    Parameters
    ----------
    keys : Buffer
        The chunk's keys, shape (n,).
    start : array of int
        The index of the chunk's first key in the complete input; shape ().
    splitters : array
        The samples at which buckets begin, from `choose_splitters`.
    chunk : int
        The chunk's index.

    Returns
    -------
    mapping
        `bounds`, int64 of shape (buckets + 1,): the start of each share in the distributed keys, and the end.
        For each bucket b `keys b`, and `places b` if original positions are requested.
    """
    engine, n = worker.engine, keys.shape[0]
    job = _create_job(worker, n)
    module, sections = job.build(CHUNKS_FILE), -(-n // _SECTION)
    blocks = -(-sections * WARP // job.block)
    # In the splitter's chunk its position divides equal keys; in other chunks they all belong to one bucket.
    first_equal = np.where(
        splitters["chunk"] == chunk, splitters["position"], np.where(splitters["chunk"] < chunk, 0, n)
    )
    splitter_arrays = np.ascontiguousarray(splitters["key"]), first_equal.astype(np.int32)
    splitter_buffers = [engine.upload(each) for each in splitter_arrays]
    at_splitters = keys, np.int32(n), *splitter_buffers, np.int32(buckets)
    starts = engine.allocate((buckets * sections,), np.int32)
    bounds = np.full(buckets + 1, n, np.int64)
    if n:
        job.launch(module, "sort_chunk_counts", blocks, *at_splitters, starts, np.int32(sections))
        starts, bounds[:-1] = _scan_counts(job, starts, buckets)
    shares = [_allocate_data(job, length, keys) for length in np.diff(bounds).tolist()]
    for first in range(0, buckets if n else 0, _BUCKETS_PER_LAUNCH):
        targets = shares[first : first + _BUCKETS_PER_LAUNCH]
        targets += targets[-1:] * (_BUCKETS_PER_LAUNCH - len(targets))
        numbers = np.int32(sections), np.int32(start), np.int32(first)
        memory = *(target.keys for target in targets), *(target.positions for target in targets)
        job.launch(module, "sort_chunk_share", blocks, *at_splitters, starts, *numbers, *memory)
    engine.free(*splitter_buffers, starts)
    results: dict[str, Array | Buffer] = {"bounds": bounds}
    for bucket, share in enumerate(shares):
        results[f"keys {bucket}"] = share.keys
        if _sorts_positions(worker.params):
            results[f"places {bucket}"] = share.positions
        else:
            engine.free(share.positions)
    return results


def _scan_counts(job: SortJob, counts: Buffer, buckets: int) -> tuple[Buffer, Array]:
    """Replace the counts of each bucket's sections by their prefix sums; return these, and those of the buckets."""
    engine, sizes = job.engine, (np.int32(counts.shape[0] // buckets), np.int32(buckets))
    scan_module = scan.build_scan_module(engine, "int32", "sum", job.block)
    starts = scan.scan_sections(engine, scan_module, "scan_sections", counts, job.block, 4, exclusive=True)
    bucket_starts = engine.allocate((buckets,), np.int32)
    job.launch(job.build(CHUNKS_FILE), "sort_chunk_bounds", -(-buckets // job.block), starts, *sizes, bucket_starts)
    downloaded = engine.download(bucket_starts)
    engine.free(counts, bucket_starts)
    return starts, downloaded


def compute_bucket_starts(worker: WorkerContext, bounds: list[Array]) -> Array:
    """Return the start of each bucket in the sorted keys."""
    starts: Array = np.sum(bounds, axis=0)[:-1]
    return starts


def sort_bucket(worker: WorkerContext, keys: list[Buffer], positions: list[Buffer] | None) -> Array | dict[str, Array]:
    """Concatenate a bucket's shares in the order of their chunks, so that the sort is stable, and sort it."""
    engine, n = worker.engine, sum(share_keys.shape[0] for share_keys in keys)
    job = _create_job(worker, n)
    data, first = _allocate_data(job, n, keys[0]), 0
    for number, share_keys in enumerate(keys):
        if count := share_keys.shape[0]:
            blocks, numbers = min(-(-count // job.block), _MAX_BLOCKS), (np.int32(first), np.int32(count))
            share = share_keys, positions[number] if positions is not None else data.positions
            job.launch(job.build(CHUNKS_FILE), "sort_chunk_join", blocks, *share, data.keys, data.positions, *numbers)
        first += count
    if n:
        data = sort_on_device(worker.variant, engine, data, worker.params)
    result = engine.download(data.keys)
    result_positions = engine.download(data.positions)
    job.free(data)
    return result if positions is None else {"keys": result, "places": result_positions}


def _create_job(worker: WorkerContext, n: int) -> SortJob:
    """Return the context of this module's launches: their kernels need whole warps."""
    job = create_job(worker.variant, worker.engine, worker.params, n)
    return replace(job, defines={**job.defines, "BLOCK_SIZE": warp_aligned_block_size(worker.params)})


def _allocate_data(job: SortJob, count: int, keys: Buffer) -> SortData:
    positions = job.engine.allocate((count if job.defines["PAIRS"] else 1,), np.int32)
    return SortData(job.engine.allocate((count,), keys.dtype), positions)


def _sample_type(keys: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("key", keys), ("chunk", np.int32), ("position", np.int32), ("weight", np.int64)])


def _sorts_positions(params: Params) -> bool:
    return bool(params["result"] == "places")
