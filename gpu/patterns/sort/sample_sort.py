"""Sort over several devices: chunks sorted, splitters out of samples of them, buckets exchanged and merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.arrays import typed
from gpu.declaration.distributed import OnWorker, Parts, Piece, Tasks
from gpu.declaration.pattern import Array, Params
from gpu.engines.base import Buffer
from gpu.patterns.sort.job import Data, Job
from gpu.patterns.sort.programs import job_of, sorted_on_device

CHUNKS_FILE = "sort_chunks.cu"

_SAMPLES_EACH = 16
"""Samples of a chunk for each bucket: no bucket has more than its share and two sixteenths of it."""

_OUTPUT_NAMES = {"keys": "keys", "result": "places"}
_OUTPUTS = 8
_MOST_BLOCKS = 2**16


def plan(tasks: Tasks) -> dict[str, Parts]:
    """Name the tasks: a bucket for each chunk, and a share of each bucket from each chunk."""
    buckets, pairs = len(tasks.chunks), _pairs(tasks.params)
    chunks = [tasks.make(sort_chunk, chunk, buckets, place=place) for place, chunk in enumerate(tasks.chunks)]
    splitters = tasks.make(sort_splitters, [each["samples"] for each in chunks], buckets)
    shares = [
        tasks.make(sort_share, each["keys"], each["places"] if pairs else None, splitters, place, place=place)
        for place, each in enumerate(chunks)
    ]
    starts = tasks.make(sort_starts, [each["bounds"] for each in shares])
    merged = []
    for bucket in range(buckets):
        keys = [each[f"keys {bucket}"] for each in shares]
        places = [each[f"places {bucket}"] for each in shares] if pairs else None
        merged.append(tasks.make(sort_merge, keys, places, place=bucket))
    if not pairs:
        result = Parts(tuple(merged), starts)
        return {"keys": result, "result": result}
    return {name: Parts(tuple(each[made] for each in merged), starts) for name, made in _OUTPUT_NAMES.items()}


def sort_chunk(worker: OnWorker, piece: Piece, buckets: int) -> dict[str, Any]:
    """Sort a chunk by the rung; keys, and the places where they were among all, stay on the device."""
    engine, params = worker.engine, worker.params
    keys = typed(piece.inputs, params)
    places = np.arange(piece.start, piece.stop, dtype=np.int32) if _pairs(params) else np.zeros(1, np.int32)
    data = Data(engine.upload(keys), engine.upload(places))
    count = min(_SAMPLES_EACH * buckets, keys.size)
    samples = np.zeros(count, _sample_type(keys.dtype))
    if count:
        data = sorted_on_device(worker.variant, engine, data, keys, params)
        job = job_of(worker.variant, engine, params, keys.size)
        sampled = engine.allocate((count,), keys.dtype)
        numbers = np.int32(keys.size), np.int32(count)
        job.launch(job.build(CHUNKS_FILE), "sort_chunk_sample", -(-count // job.block), data.keys, sampled, *numbers)
        samples["key"] = engine.download(sampled)
        engine.free(sampled)
        bounds = np.arange(count + 1, dtype=np.int64) * keys.size // count
        samples["chunk"], samples["place"], samples["stands_for"] = piece.place, bounds[:-1], np.diff(bounds)
    made: dict[str, Any] = {"keys": data.keys, "samples": samples}
    if _pairs(params):
        return {**made, "places": data.places}
    engine.free(data.places)
    return made


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
    data = sorted_on_device(worker.variant, engine, data, keys, params)
    in_order = together[engine.download(data.places)]
    for buffer in (data.keys, data.places):
        engine.free(buffer)
    before = in_order["stands_for"].cumsum() - in_order["stands_for"]
    wanted = np.arange(1, buckets) * int(in_order["stands_for"].sum()) // buckets
    return in_order[np.minimum(np.searchsorted(before, wanted), keys.size - 1)]


def sort_share(
    worker: OnWorker, keys: Buffer, places: Buffer | None, splitters: Array, chunk: int
) -> dict[str, Array | Buffer]:
    """Cut a sorted chunk at the splitters; each bucket's share stays on the device until somebody takes it."""
    engine, n = worker.engine, keys.shape[0]
    job = job_of(worker.variant, engine, worker.params, n)
    bounds = np.array([0, *_bounds(job, keys, splitters, chunk), n], np.int64)
    made: dict[str, Array | Buffer] = {"bounds": bounds}
    carried = places if places is not None else engine.allocate((1,), np.int32)
    for bucket, (first, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        count = end - first
        share = _allocated(job, count, keys)
        if count:
            blocks = min(-(-count // job.block), _MOST_BLOCKS)
            numbers = np.int32(first), np.int32(count)
            to = share.keys, share.places
            job.launch(job.build(CHUNKS_FILE), "sort_chunk_share", blocks, keys, carried, *to, *numbers)
        made[f"keys {bucket}"] = share.keys
        if places is None:
            engine.free(share.places)
        else:
            made[f"places {bucket}"] = share.places
    if places is None:
        engine.free(carried)
    return made


def _bounds(job: Job, keys: Buffer, splitters: Array, chunk: int) -> list[int]:
    count = len(splitters)
    if not count:
        return []
    engine = job.engine
    found = engine.allocate((count,), np.int32)
    taken = [engine.upload(np.ascontiguousarray(splitters[name])) for name in ("key", "chunk", "place")]
    numbers = np.int32(job.n), np.int32(chunk)
    blocks = -(-count // job.block)
    job.launch(job.build(CHUNKS_FILE), "sort_chunk_bounds", blocks, keys, *numbers, *taken, np.int32(count), found)
    bounds: list[int] = engine.download(found).tolist()
    for buffer in (*taken, found):
        engine.free(buffer)
    return bounds


def sort_starts(worker: OnWorker, bounds: list[Array]) -> Array:
    """Return where each bucket begins among all keys."""
    starts: Array = np.sum(bounds, axis=0)[:-1]
    return starts


def sort_merge(worker: OnWorker, keys: list[Buffer], places: list[Buffer] | None) -> Array | dict[str, Array]:
    """Merge a bucket's shares two by two, neighbors first: equal keys stay in the order of their chunks."""
    engine = worker.engine
    job = job_of(worker.variant, engine, worker.params, sum(each.shape[0] for each in keys))
    none = engine.allocate((1,), np.int32)
    given = [Data(each, places[number] if places is not None else none) for number, each in enumerate(keys)]
    level = given
    while len(level) > 1:
        merged = [_merged(job, *level[first : first + 2]) for first in range(0, len(level) - 1, 2)]
        rest = level[len(merged) * 2 :]
        _free_made(job, level[: len(merged) * 2], given)
        level = merged + rest
    result = engine.download(level[0].keys)
    result_places = engine.download(level[0].places)
    _free_made(job, level, given)
    engine.free(none)
    return result if places is None else {"keys": result, "places": result_places}


def _merged(job: Job, left: Data, right: Data) -> Data:
    counts = left.keys.shape[0], right.keys.shape[0]
    to = _allocated(job, sum(counts), left.keys)
    if sum(counts):
        taken = left.keys, left.places, np.int32(counts[0]), right.keys, right.places, np.int32(counts[1])
        blocks = -(-sum(counts) // (_OUTPUTS * job.block))
        job.launch(job.build(CHUNKS_FILE), "sort_chunk_merge", blocks, *taken, to.keys, to.places)
    return to


def _free_made(job: Job, level: list[Data], given: list[Data]) -> None:
    """Free what was made on the way, and nothing of what was given."""
    for each in level:
        if all(each is not one for one in given):
            job.free(each)


def _allocated(job: Job, count: int, keys: Buffer) -> Data:
    places = job.engine.allocate((count if job.defines["PAIRS"] else 1,), np.int32)
    return Data(job.engine.allocate((count,), keys.dtype), places)


def _sample_type(keys: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("key", keys), ("chunk", np.int32), ("place", np.int32), ("stands_for", np.int64)])


def _pairs(params: Params) -> bool:
    return bool(params["result"] == "places")
