"""Sample sort over four simulator workers: stable, balanced, and bit for bit what one engine makes of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gpu.declaration.distributed_program import ChunkInput, WorkerContext
from gpu.patterns import find_pattern
from gpu.patterns.sort import sample_sort
from tests.gpu.distributed.lockstep_engines import PlainEngine
from tests.gpu.distributed.test_distributed_run import run_on_cluster, run_on_one_device

RNG = np.random.default_rng(5)
SPECIAL = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 1.5, -2.0], np.float32)


def stable_order(keys, *, descending=False):
    """Return the places of the keys in their order, equal ones as they came, -0 before 0 and NaN last."""
    if keys.dtype.kind == "f":
        sign = -1 if descending else 1
        nan = np.isnan(keys)
        negative = np.signbit(keys) & ~nan
        return np.lexsort((-sign * negative, sign * np.where(nan, 0, keys), nan))
    return np.argsort(-keys.astype(np.int64) if descending else keys, kind="stable")


@pytest.mark.parametrize(
    ("keys", "chunks", "options"),
    [
        (np.empty(0, np.int32), (), {"result": "places"}),
        (np.array([7], np.int32), (), {}),
        (np.array([3, -5, 3], np.int32), (), {"result": "places"}),
        (RNG.integers(-(2**31), 2**31, 700, np.int32), (1, 450, 2, 240, 7), {"result": "places"}),
        (RNG.integers(0, 2**32, 700, np.uint32), (), {"order": "descending"}),
        (np.full(300, 9, np.int32), (), {"result": "places"}),
        (RNG.choice(np.array([4, 2**32 - 1, 0], np.uint32), 400), (5,), {"result": "places", "order": "descending"}),
        (RNG.choice(SPECIAL, 300), (3,), {"result": "places"}),
        (RNG.choice(SPECIAL, 300), (4,), {"order": "descending"}),
    ],
)
def test_a_sort_is_that_of_one_device(cluster, keys, chunks, options):
    given = {**options, "dtype": str(keys.dtype)}
    outcome, _ = run_on_cluster(cluster, "sort", {"values": keys}, chunks, **given)
    places = stable_order(keys, descending=options.get("order") == "descending")
    assert outcome.report.verified
    result = outcome.outputs["result"]
    assert outcome.outputs["keys"].tobytes() == keys[places].tobytes(), "to NaN's last bit"
    assert result.tobytes() == (places.astype(np.int32) if "result" in options else keys[places]).tobytes()
    if chunks == (3,):  # to compile for one engine takes longer than all else
        assert result.tobytes() == run_on_one_device("sort", {"values": keys}, **given).tobytes()


@pytest.mark.parametrize("variant", [each.name for each in find_pattern("sort").variants if not each.library])
def test_every_rung_sorts_chunks(cluster, variant):
    keys = RNG.choice(np.arange(9, dtype=np.int32), 40)
    options = {"dtype": "int32", "result": "places", "block": "32"}
    outcome, done = run_on_cluster(cluster, "sort", {"values": keys}, (15, 25), variant, **options)
    assert np.array_equal(outcome.outputs["result"], stable_order(keys))
    assert [record.step for record in done.tasks].count("sort bucket") == 2


@pytest.mark.parametrize("kind", ["random", "equal", "sorted"])
def test_buckets_are_shared_evenly_whatever_the_keys(cluster, kind):
    outcome, done = run_on_cluster(cluster, "sort", n=2000, chunks=(800, 100, 300, 800), input=kind)
    assert outcome.report.verified
    sizes = [dict(record.result_parts)[""] // 4 for record in done.tasks if record.step == "sort bucket"]
    assert sum(sizes) == 2000
    assert max(sizes) <= 2000 / 4 * 18 / 16 + 4
    assert done.gathered_bytes == 4 * 2000, "the keys once, which are the result too"


@pytest.mark.parametrize("made", [np.sort, lambda keys: keys % 3, lambda keys: keys], ids=["sorted", "few", "random"])
def test_some_of_the_keys_say_where_buckets_begin(monkeypatch, made):
    """Six buckets of one chunk, each with its keys as they came, and nearly as many as any other."""
    monkeypatch.setattr(sample_sort, "_MIN_SAMPLES_PER_BUCKET", 64)
    integers = np.random.default_rng(29).integers(-(2**31), 2**31, 4000, np.int32)  # the same in each order of tests
    pattern, keys, buckets = find_pattern("sort"), made(integers), 6
    params = pattern.check({"dtype": "int32", "input": "file", "result": "places"})
    worker = WorkerContext(PlainEngine(), params, "peak", pattern.variant("peak").run)
    taken = sample_sort.sample_chunk(worker, ChunkInput({"values": keys}, 2, 100, 4100), buckets)
    assert taken["samples"].size == 6 * 64
    assert (keys[taken["samples"]["position"]] == taken["samples"]["key"]).all()
    splitters = sample_sort.choose_splitters(worker, [taken["samples"]], buckets)
    shares = sample_sort.distribute_chunk(worker, taken["keys"], taken["start"], splitters, buckets, 2)
    found = [
        [worker.engine.download(shares[f"{name} {bucket}"]) for bucket in range(buckets)] for name in ("keys", "places")
    ]
    # Of 64 samples, a bucket's share has a standard deviation of an eighth.
    assert max(map(len, found[0])) < (1 + 4 / 8) * 4000 / buckets
    assert np.diff(shares["bounds"]).tolist() == [*map(len, found[0])]
    for own, places in zip(*found, strict=True):
        assert (keys[places - 100] == own).all()
        assert (np.diff(places) > 0).all()
    assert all(before.max() <= after.min() for before, after in pairwise(found[0]))
    assert sorted(np.concatenate(found[1]).tolist()) == [*range(100, 4100)]
