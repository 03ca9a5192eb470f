"""Sample sort on several devices: splitters from samples, an exchange of buckets, and a local sort of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpu.declaration.arrays import typed, whole_warps
from gpu.declaration.distributed import OnWorker, Parts, Piece, Tasks
from gpu.declaration.pattern import Array, Params
from gpu.engines.base import Buffer
from gpu.patterns import scan
from gpu.patterns.sort.job import Data, Job
from gpu.patterns.sort.programs import job_of, sorted_on_device
from gpu.warp import WARP

CHUNKS_FILE = "sort_chunks.cu"

# Samples per chunk, if it has as many keys: the fewest per bucket, and the most in total. With s samples per bucket, a
# bucket exceeds its share by a factor of about 1 + 1 / sqrt(s).
_FEWEST_SAMPLES = 256
_MOST_SAMPLES = 2**14
_SAMPLED_OF = 64
"""Keys per sample, within those bounds."""

_OUTPUT_NAMES = {"keys": "keys", "result": "places"}
_MOST_BLOCKS = 2**16

# As in the kernels: keys per warp, and buckets written per launch.
_SECTION = 16 * WARP
_AT_ONCE = 4


def plan(tasks: Tasks) -> dict[str, Parts]:
    """Add the Dask tasks: one bucket per chunk, and a share of each bucket from each chunk."""
    buckets, pairs = len(tasks.chunks), _pairs(tasks.params)
    chunks = [tasks.make(sort_sample, chunk, buckets, place=place) for place, chunk in enumerate(tasks.chunks)]
    splitters = tasks.make(sort_splitters, [each["samples"] for each in chunks], buckets)
    shares = [
        tasks.make(sort_share, each["keys"], each["start"], splitters, buckets, place, place=place)
        for place, each in enumerate(chunks)
    ]
    starts = tasks.make(sort_starts, [each["bounds"] for each in shares])
    sorted_buckets = []
    for bucket in range(buckets):
        keys = [each[f"keys {bucket}"] for each in shares]
        places = [each[f"places {bucket}"] for each in shares] if pairs else None
        sorted_buckets.append(tasks.make(sort_bucket, keys, places, place=bucket))
    if not pairs:
        result = Parts(tuple(sorted_buckets), starts)
        return {"keys": result, "result": result}
    return {name: Parts(tuple(each[part] for each in sorted_buckets), starts) for name, part in _OUTPUT_NAMES.items()}


def sort_sample(worker: OnWorker, piece: Piece, buckets: int) -> dict[str, Any]:
    """Upload a chunk's keys, which stay on the device, and sample them.

    The samples are stratified: a random key of each of equal ranges of positions.
    """
    engine, keys = worker.engine, typed(piece.inputs, worker.params)
    n = keys.size
    count = min(n, max(_FEWEST_SAMPLES * buckets, min(n // _SAMPLED_OF, _MOST_SAMPLES)))
    samples, on_device = np.zeros(count, _sample_type(keys.dtype)), engine.upload(keys)
    if count:
        bounds = np.arange(count + 1, dtype=np.int64) * n // count
        places = np.random.default_rng(piece.place).integers(bounds[:-1], bounds[1:]).astype(np.int32)
        job = _job(worker, n)
        indices, sampled = engine.upload(places), engine.allocate((count,), keys.dtype)
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
        for buffer in (indices, sampled):
            engine.free(buffer)
        samples["chunk"], samples["place"], samples["stands_for"] = piece.place, places, np.diff(bounds)
    return {"keys": on_device, "start": np.array(piece.start), "samples": samples}


def sort_splitters(worker: OnWorker, samples: list[Array], buckets: int) -> Array:
    """Sort the samples by a stable sort, and return those at which each bucket except the first begins.

    A sample has the weight of its range of keys, since longer chunks may not have more samples than others.
    """
    together = np.concatenate(samples)
    if not together.size:
        return together
    engine, params = worker.engine, {**worker.params, "result": "places"}
    keys = np.ascontiguousarray(together["key"])
    data = Data(engine.upload(keys), engine.upload(np.arange(keys.size, dtype=np.int32)))
    data = sorted_on_device(worker.variant, engine, data, params)
    in_order = together[engine.download(data.places, keys.size)]
    for buffer in (data.keys, data.places):
        engine.free(buffer)
    before = in_order["stands_for"].cumsum() - in_order["stands_for"]
    bounds = np.arange(1, buckets) * int(in_order["stands_for"].sum()) // buckets
    return in_order[np.minimum(np.searchsorted(before, bounds), keys.size - 1)]


def sort_share(
    worker: OnWorker, keys: Buffer, start: Array, splitters: Array, buckets: int, chunk: int
) -> dict[str, Array | Buffer]:
    """Distribute a chunk's keys to buckets, in stable order; the shares stay on the device until they are fetched."""
    engine, n = worker.engine, keys.shape[0]
    job = _job(worker, n)
    module, sections = job.build(CHUNKS_FILE), -(-n // _SECTION)
    blocks = -(-sections * WARP // job.block)
    # In the splitter's chunk its position divides equal keys; in other chunks they all belong to one bucket.
    first_equal = np.where(splitters["chunk"] == chunk, splitters["place"], np.where(splitters["chunk"] < chunk, 0, n))
    splitter_buffers = [
        engine.upload(np.ascontiguousarray(splitters["key"])),
        engine.upload(first_equal.astype(np.int32)),
    ]
    at_splitters = keys, np.int32(n), *splitter_buffers, np.int32(buckets)
    counts = engine.allocate((buckets * sections,), np.int32)
    starts, bounds = counts, np.zeros(buckets + 1, np.int64)
    if n:
        job.launch(module, "sort_chunk_counts", blocks, *at_splitters, counts, np.int32(sections))
        scanning = scan.build(engine, "int32", "sum", job.block)
        starts = scan.scan_sections(engine, scanning, "scan_sections", counts, job.block, 4, exclusive=True)
        begin = engine.allocate((buckets,), np.int32)
        job.launch(
            module,
            "sort_chunk_bounds",
            -(-buckets // job.block),
            starts,
            np.int32(sections),
            np.int32(buckets),
            begin,
        )
        bounds[:-1], bounds[-1] = engine.download(begin), n
        for buffer in (counts, begin):
            engine.free(buffer)
    shares = [_allocate(job, length, keys) for length in np.diff(bounds).tolist()]
    for first in range(0, buckets if n else 0, _AT_ONCE):
        to = shares[first : first + _AT_ONCE]
        to += to[-1:] * (_AT_ONCE - len(to))
        numbers = np.int32(sections), np.int32(start), np.int32(first)
        memory = *(each.keys for each in to), *(each.places for each in to)
        job.launch(module, "sort_chunk_share", blocks, *at_splitters, starts, *numbers, *memory)
    for buffer in (*splitter_buffers, starts):
        engine.free(buffer)
    results: dict[str, Array | Buffer] = {"bounds": bounds}
    for bucket, share in enumerate(shares):
        results[f"keys {bucket}"] = share.keys
        if _pairs(worker.params):
            results[f"places {bucket}"] = share.places
        else:
            engine.free(share.places)
    return results


def sort_starts(worker: OnWorker, bounds: list[Array]) -> Array:
    """Return the start of each bucket in the sorted keys."""
    starts: Array = np.sum(bounds, axis=0)[:-1]
    return starts


def sort_bucket(worker: OnWorker, keys: list[Buffer], places: list[Buffer] | None) -> Array | dict[str, Array]:
    """Concatenate a bucket's shares in the order of their chunks, so that the sort is stable, and sort it."""
    engine, n = worker.engine, sum(each.shape[0] for each in keys)
    job = _job(worker, n)
    data, first = _allocate(job, n, keys[0]), 0
    for number, each in enumerate(keys):
        if count := each.shape[0]:
            blocks, numbers = min(-(-count // job.block), _MOST_BLOCKS), (np.int32(first), np.int32(count))
            share = each, places[number] if places is not None else data.places
            job.launch(job.build(CHUNKS_FILE), "sort_chunk_join", blocks, *share, data.keys, data.places, *numbers)
        first += count
    if n:
        data = sorted_on_device(worker.variant, engine, data, worker.params)
    result = engine.download(data.keys)
    result_places = engine.download(data.places)
    job.free(data)
    return result if places is None else {"keys": result, "places": result_places}


def _job(worker: OnWorker, n: int) -> Job:
    """Return the context of this module's launches: their kernels need whole warps."""
    job = job_of(worker.variant, worker.engine, worker.params, n)
    return replace(job, defines={**job.defines, "BLOCK_SIZE": whole_warps(worker.params)})


def _allocate(job: Job, count: int, keys: Buffer) -> Data:
    places = job.engine.allocate((count if job.defines["PAIRS"] else 1,), np.int32)
    return Data(job.engine.allocate((count,), keys.dtype), places)


def _sample_type(keys: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("key", keys), ("chunk", np.int32), ("place", np.int32), ("stands_for", np.int64)])


def _pairs(params: Params) -> bool:
    return bool(params["result"] == "places")
