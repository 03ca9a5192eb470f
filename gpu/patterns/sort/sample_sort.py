"""Sort over several devices: splitters out of samples of all chunks, buckets exchanged, and each sorted by itself."""

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

# Samples of a chunk, where it has as many keys: for each bucket at least, and in all at most. Of so many samples of all
# chunks for each bucket, a bucket has more than its share by hardly more than one over the root of their number.
_FEWEST_SAMPLES = 256
_MOST_SAMPLES = 2**14
_SAMPLED_OF = 64
"""One key of so many is a sample, between those bounds."""

_OUTPUT_NAMES = {"keys": "keys", "result": "places"}
_MOST_BLOCKS = 2**16

# As in the kernels: keys of a warp, and buckets that are written at a time.
_SECTION = 16 * WARP
_AT_ONCE = 4


def plan(tasks: Tasks) -> dict[str, Parts]:
    """Name the tasks: a bucket for each chunk, and a share of each bucket from each chunk."""
    buckets, pairs = len(tasks.chunks), _pairs(tasks.params)
    chunks = [tasks.make(sort_sample, chunk, buckets, place=place) for place, chunk in enumerate(tasks.chunks)]
    splitters = tasks.make(sort_splitters, [each["samples"] for each in chunks], buckets)
    shares = [
        tasks.make(sort_share, each["keys"], each["start"], splitters, buckets, place, place=place)
        for place, each in enumerate(chunks)
    ]
    starts = tasks.make(sort_starts, [each["bounds"] for each in shares])
    made = []
    for bucket in range(buckets):
        keys = [each[f"keys {bucket}"] for each in shares]
        places = [each[f"places {bucket}"] for each in shares] if pairs else None
        made.append(tasks.make(sort_bucket, keys, places, place=bucket))
    if not pairs:
        result = Parts(tuple(made), starts)
        return {"keys": result, "result": result}
    return {name: Parts(tuple(each[part] for each in made), starts) for name, part in _OUTPUT_NAMES.items()}


def sort_sample(worker: OnWorker, piece: Piece, buckets: int) -> dict[str, Any]:
    """Bring a chunk's keys to the device, where they stay, and take samples of them.

    A sample is any key of as many stretches as there are samples, whatever their order: by numbers that look random.
    """
    engine, keys = worker.engine, typed(piece.inputs, worker.params)
    n = keys.size
    count = min(n, max(_FEWEST_SAMPLES * buckets, min(n // _SAMPLED_OF, _MOST_SAMPLES)))
    samples, on_device = np.zeros(count, _sample_type(keys.dtype)), engine.upload(keys)
    if count:
        bounds = np.arange(count + 1, dtype=np.int64) * n // count
        places = np.random.default_rng(piece.place).integers(bounds[:-1], bounds[1:]).astype(np.int32)
        job = _job(worker, n)
        taken, sampled = engine.upload(places), engine.allocate((count,), keys.dtype)
        job.launch(
            job.build(CHUNKS_FILE),
            "sort_chunk_sample",
            -(-count // job.block),
            on_device,
            taken,
            sampled,
            np.int32(count),
        )
        samples["key"] = engine.download(sampled, count)
        for buffer in (taken, sampled):
            engine.free(buffer)
        samples["chunk"], samples["place"], samples["stands_for"] = piece.place, places, np.diff(bounds)
    return {"keys": on_device, "start": np.array(piece.start), "samples": samples}


def sort_splitters(worker: OnWorker, samples: list[Array], buckets: int) -> Array:
    """Sort what was sampled, which is stable, and return the samples at which each bucket but the first begins.

    A sample stands for the keys from it to the next one of its chunk: longer chunks have no more samples than others.
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
    wanted = np.arange(1, buckets) * int(in_order["stands_for"].sum()) // buckets
    return in_order[np.minimum(np.searchsorted(before, wanted), keys.size - 1)]


def sort_share(
    worker: OnWorker, keys: Buffer, start: Array, splitters: Array, buckets: int, chunk: int
) -> dict[str, Array | Buffer]:
    """Share a chunk's keys out; each bucket's share, in their order, stays on the device until somebody takes it."""
    engine, n = worker.engine, keys.shape[0]
    job = _job(worker, n)
    module, sections = job.build(CHUNKS_FILE), -(-n // _SECTION)
    blocks = -(-sections * WARP // job.block)
    # In the splitter's own chunk its place divides equal keys; in others they all go the same way.
    froms = np.where(splitters["chunk"] == chunk, splitters["place"], np.where(splitters["chunk"] < chunk, 0, n))
    taken = [engine.upload(np.ascontiguousarray(splitters["key"])), engine.upload(froms.astype(np.int32))]
    at_splitters = keys, np.int32(n), *taken, np.int32(buckets)
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
    shares = [_allocated(job, length, keys) for length in np.diff(bounds).tolist()]
    for first in range(0, buckets if n else 0, _AT_ONCE):
        to = shares[first : first + _AT_ONCE]
        to += to[-1:] * (_AT_ONCE - len(to))
        numbers = np.int32(sections), np.int32(start), np.int32(first)
        memory = *(each.keys for each in to), *(each.places for each in to)
        job.launch(module, "sort_chunk_share", blocks, *at_splitters, starts, *numbers, *memory)
    for buffer in (*taken, starts):
        engine.free(buffer)
    made: dict[str, Array | Buffer] = {"bounds": bounds}
    for bucket, share in enumerate(shares):
        made[f"keys {bucket}"] = share.keys
        if _pairs(worker.params):
            made[f"places {bucket}"] = share.places
        else:
            engine.free(share.places)
    return made


def sort_starts(worker: OnWorker, bounds: list[Array]) -> Array:
    """Return where each bucket begins among all keys."""
    starts: Array = np.sum(bounds, axis=0)[:-1]
    return starts


def sort_bucket(worker: OnWorker, keys: list[Buffer], places: list[Buffer] | None) -> Array | dict[str, Array]:
    """Sort a bucket by the rung: its shares side by side, so that equal keys stay in the order of their chunks."""
    engine, n = worker.engine, sum(each.shape[0] for each in keys)
    job = _job(worker, n)
    data, first = _allocated(job, n, keys[0]), 0
    for number, each in enumerate(keys):
        if count := each.shape[0]:
            blocks, numbers = min(-(-count // job.block), _MOST_BLOCKS), (np.int32(first), np.int32(count))
            taken = each, places[number] if places is not None else data.places
            job.launch(job.build(CHUNKS_FILE), "sort_chunk_join", blocks, *taken, data.keys, data.places, *numbers)
        first += count
    if n:
        data = sorted_on_device(worker.variant, engine, data, worker.params)
    result = engine.download(data.keys)
    result_places = engine.download(data.places)
    job.free(data)
    return result if places is None else {"keys": result, "places": result_places}


def _job(worker: OnWorker, n: int) -> Job:
    """Return what launches of the kernels here have in common, of which a warp does what it does together."""
    job = job_of(worker.variant, worker.engine, worker.params, n)
    return replace(job, defines={**job.defines, "BLOCK_SIZE": whole_warps(worker.params)})


def _allocated(job: Job, count: int, keys: Buffer) -> Data:
    places = job.engine.allocate((count if job.defines["PAIRS"] else 1,), np.int32)
    return Data(job.engine.allocate((count,), keys.dtype), places)


def _sample_type(keys: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("key", keys), ("chunk", np.int32), ("place", np.int32), ("stands_for", np.int64)])


def _pairs(params: Params) -> bool:
    return bool(params["result"] == "places")
