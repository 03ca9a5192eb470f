"""Patterns over four simulator workers: equal to NumPy, and bit for bit to a run on one engine."""

from __future__ import annotations

import gc
import os
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import InputError
from gpu.declaration.distributed_program import split_evenly
from gpu.distributed import distributed_run
from gpu.distributed.cluster.run_events import RunEventListener
from gpu.distributed.data.sources import write_source
from gpu.distributed.distributed_run import (
    compute_chunk_lengths,
    describe_devices,
    find_distributed_program,
    run_distributed,
)
from gpu.distributed.streaming import run_streamed
from gpu.engines.base import Device
from gpu.messages.runs.distributed_run import WorkerStatus
from gpu.patterns import find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from tests.gpu.distributed.lockstep_engines import count_copies, count_shares


def ignore_progress(progress):
    pass


def prepare_run(name, inputs, **params):
    pattern = find_pattern(name)
    if inputs is not None and pattern.source is not None and "values" in inputs:
        params = {pattern.source.name: "file", **params}
    checked = pattern.check(params)
    return pattern, pattern.variant(pattern.default_variant), pattern.prepare_inputs(inputs or {}, checked, 7), checked


def run_on_cluster(cluster, name, inputs=None, chunks=(), variant=None, **params):
    pattern, default, inputs, checked = prepare_run(name, inputs, **params)
    return run_distributed(
        cluster,
        Workload(pattern, pattern.variant(variant) if variant else default, inputs, checked),
        ignore_progress,
        chunks=chunks,
    )


def run_on_one_device(name, inputs=None, **params):
    pattern, variant, inputs, checked = prepare_run(name, inputs, **params)
    with closing(engines.create_engine("simulator", "lockstep")) as engine:
        return run_pattern(engine, Workload(pattern, variant, inputs, checked), ignore_progress).outputs[pattern.result]


def random(n, dtype=np.int32):
    rng = np.random.default_rng(n)
    return rng.integers(-(2**31), 2**31, n, np.int32) if dtype == np.int32 else rng.random(n, np.float32)


@pytest.mark.parametrize(("n", "chunks"), [(0, ()), (1, ()), (3, ()), (1000, ()), (1000, (1, 700, 2, 290, 7))])
@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
def test_a_scan_is_that_of_one_device(cluster, n, chunks, kind):
    values = random(n)
    outcome, _ = run_on_cluster(cluster, "scan", {"values": values}, chunks, kind=kind, dtype="int32")
    result = outcome.outputs["result"]
    assert outcome.report.verified
    assert result.dtype == np.int32
    expected = np.cumsum(values, dtype=np.int32)
    if kind == "exclusive":
        expected = np.concatenate([[0], expected[:-1]]).astype(np.int32)[:n]
    assert np.array_equal(result, expected)
    if n == 1000 and not chunks:
        assert np.array_equal(result, run_on_one_device("scan", {"values": values}, kind=kind, dtype="int32"))


@pytest.mark.parametrize(("variant", "operator"), [("look-back", "sum"), ("brent-kung", "max")])
def test_every_rung_is_what_a_scans_chunks_are_scanned_by(cluster, variant, operator):
    values = random(700, np.float32)
    outcome, done = run_on_cluster(
        cluster, "scan", {"values": values}, (6,), variant, operator=operator, dtype="float32", kind="exclusive"
    )
    assert outcome.report.verified
    steps = [record.step for record in done.tasks]
    assert (steps.count("reduce chunk"), steps.count("scan chunk")) == (5, 6), "nobody waits for the last's"


def test_one_device_scans_a_chunk_from_where_the_one_before_ends(cluster):
    for kind in ("inclusive", "exclusive"):
        values = random(900)
        outcome, done = run_on_cluster(
            cluster.limit_workers(1), "scan", {"values": values}, (5, 700, 195), "look-back", dtype="int32", kind=kind
        )
        assert outcome.report.verified
        assert outcome.outputs["result"][-1] == np.sum(values[: 900 - (kind == "exclusive")], dtype=np.int32)
        assert [record.step for record in done.tasks] == ["scan chunk"] * 3, "nothing is reduced first"
        assert done.exchanged_bytes == 0


@pytest.mark.parametrize(("n", "chunks"), [(0, ()), (1, ()), (2000, (20,)), (2000, (1999, 1))])
def test_a_reduction_is_that_of_one_device(cluster, n, chunks):
    values = random(n)
    outcome, done = run_on_cluster(cluster, "reduction", {"values": values}, chunks, dtype="int32")
    assert outcome.report.verified
    assert outcome.outputs["result"].tolist() == [int(values.sum(dtype=np.int32))]
    if chunks == (20,):
        assert [record.step for record in done.tasks].count("reduce totals") == 4, "three of eight, one of three"


def test_a_float_reduction_is_within_its_own_bound(cluster):
    outcome, _ = run_on_cluster(cluster, "reduction", {"values": random(5000, np.float32)}, (7,), dtype="float32")
    assert outcome.report.verified


@pytest.mark.parametrize(("n", "chunks"), [(0, ()), (3, ()), (1500, (500, 1, 999))])
@pytest.mark.parametrize("result", ["pack", "split"])
def test_a_compaction_keeps_the_order(cluster, n, chunks, result):
    values = random(n, np.float32)
    outcome, _ = run_on_cluster(
        cluster, "compaction", {"values": values}, chunks, dtype="float32", result=result, threshold=0.7
    )
    kept = values > np.float32(0.7)
    assert outcome.report.verified
    assert np.array_equal(outcome.outputs["result"], values[kept] if result == "pack" else np.where(kept, values, 0))
    assert outcome.outputs["count"] == kept.sum()


def test_histograms_of_images_texts_and_numbers_are_added(cluster):
    image = np.random.default_rng(1).integers(0, 256, (37, 20, 3), np.uint8)
    inputs = {"image": image, "maxval": np.array(255, np.uint8)}
    outcome, _ = run_on_cluster(cluster, "histogram", inputs, (30, 1, 6), bins=256)
    assert outcome.report.verified
    assert outcome.outputs["counts"][1].tolist() == np.bincount(image[..., 1].ravel(), minlength=256).tolist()
    text, _ = run_on_cluster(cluster, "histogram", of="letters", text="massively parallel")
    assert text.report.verified
    assert text.outputs["counts"].sum() == len("massively parallel")
    numbers, _ = run_on_cluster(cluster, "histogram", of="ranges", n=0)
    assert numbers.report.verified


@pytest.mark.parametrize(("chunks", "border"), [((), "clamp"), ((1, 1, 20, 3, 12), "zero")])
def test_a_convolution_sees_its_neighbors_rows(cluster, chunks, border):
    image = np.random.default_rng(2).integers(0, 256, (37, 20, 3), np.uint8)
    inputs = {"image": image, "maxval": np.array(255, np.uint8)}
    outcome, done = run_on_cluster(cluster, "convolution", inputs, chunks, size=5, border=border)
    assert outcome.report.verified
    assert np.array_equal(outcome.outputs["result"], run_on_one_device("convolution", inputs, size=5, border=border))
    assert {record.step for record in done.tasks} == {"run independent chunk"}


def test_a_softmax_has_rows_to_itself(cluster):
    values = np.random.default_rng(3).normal(size=(9, 40)).astype(np.float32)
    outcome, done = run_on_cluster(cluster, "softmax", {"values": values}, (2, 7))
    assert outcome.report.verified
    assert np.array_equal(outcome.outputs["result"], run_on_one_device("softmax", {"values": values}))
    assert done.exchanged_bytes == 0


@pytest.mark.parametrize(("m", "k", "chunks", "beta"), [(20, 33, (), 0.5), (7, 2, (3,), 0.0), (1, 5, (), 0.0)])
def test_a_product_takes_the_rows_of_b_from_all(cluster, m, k, chunks, beta):
    rng = np.random.default_rng(m)
    inputs = {
        name: rng.integers(-9, 9, shape).astype(np.float32)
        for name, shape in (("values", (m, k)), ("b", (k, 11)), ("c", (m, 11)))
    }
    before = cluster.client.run(count_copies)
    outcome, done = run_on_cluster(cluster, "matmul", inputs, chunks, alpha=2.0, beta=beta)
    after = cluster.client.run(count_copies)
    assert outcome.report.verified
    assert np.array_equal(outcome.outputs["result"], 2 * inputs["values"] @ inputs["b"] + beta * inputs["c"])
    held = [record for record in done.tasks if record.step == "upload rows"]
    assert sum(dict(record.result_parts)[""] for record in held) == inputs["b"].nbytes
    if m == 20:
        assert done.exchanged_bytes == 3 * inputs["b"].nbytes, "to each worker three quarters of B"
        assert [after[worker] - before[worker] for worker in after] == [3, 3, 3, 3], "from device to device"


@pytest.mark.parametrize(("rows", "columns", "chunks"), [(33, 50, ()), (9, 3, (2, 1, 5, 1)), (1, 40, ())])
def test_a_transposition_sends_everybody_its_columns(cluster, rows, columns, chunks):
    values = random(rows * columns, np.float32).reshape(rows, columns)
    outcome, done = run_on_cluster(cluster, "transpose", {"values": values}, chunks)
    assert outcome.report.verified
    assert outcome.outputs["result"].tobytes() == np.ascontiguousarray(values.T).tobytes()
    if rows == 33:
        assert outcome.outputs["result"].tobytes() == run_on_one_device("transpose", {"values": values}).tobytes()
        own = sum(dict(each.result_parts)[str(each.chunk_index)] for each in done.tasks if each.step == "cut columns")
        assert done.exchanged_bytes == values.nbytes - own, "all but what each has already"


@pytest.mark.parametrize(("chunks", "ends"), [((), [4, 12, 20, 28]), ((4, 20, 4), [4, 24, 28]), ((1,), [28])])
def test_a_stencil_sees_its_neighbors_planes(cluster, chunks, ends):
    values, params = random(28 * 9, np.float32).reshape(28, 9), {"rows": 4, "tile": "4"}
    outcome, done = run_on_cluster(cluster, "stencil", {"values": values}, chunks, **params)
    assert outcome.report.verified
    assert outcome.outputs["result"].tobytes() == run_on_one_device("stencil", {"values": values}, **params).tobytes()
    assert sorted(each.elements[1] for each in done.tasks) == ends, "whole planes"


@pytest.mark.parametrize("variant", [each.name for each in find_pattern("spmv").variants])
@pytest.mark.parametrize(("n", "chunks", "matrix"), [(60, (), "power-law"), (41, (1, 30, 10), "poisson")])
def test_a_sparse_product_takes_x_from_all(cluster, variant, n, chunks, matrix):
    params = {"n": n, "matrix": matrix, "input": "ramp", "block": "32", "entries": 5}
    outcome, done = run_on_cluster(cluster, "spmv", chunks=chunks, variant=variant, **params)
    _, _, inputs, checked = prepare_run("spmv", None, **params)
    exact = find_pattern("spmv").reference(inputs, checked)
    assert outcome.report.verified
    assert outcome.outputs["result"].dtype == np.float32
    assert np.array_equal(outcome.outputs["result"], exact), "sums of whole numbers, in any order"
    if not chunks:
        assert done.exchanged_bytes == 3 * 4 * n, "to each worker three quarters of x"


def test_a_sparse_product_of_floats_is_that_of_one_device(cluster):
    params = {"n": 50, "matrix": "random", "input": "random"}
    outcome, _ = run_on_cluster(cluster, "spmv", **params)
    assert outcome.outputs["result"].tobytes() == run_on_one_device("spmv", **params).tobytes(), (
        "a row's sum in its own order"
    )
    assert run_on_cluster(cluster, "spmv", n=0)[0].report.verified


def test_it_says_which_worker_made_what_of_what(cluster):
    _, done = run_on_cluster(cluster, "scan", {"values": random(64)}, (10, 20, 30, 4), dtype="int32")
    tasks = {record.task: record for record in done.tasks}
    assert len(tasks) == 7
    assert {record.worker for record in done.tasks} <= {worker.address for worker in done.workers}
    read = [record for record in done.tasks if record.elements]
    assert sorted(record.elements for record in read) == [(0, 10), (10, 30), (30, 60), (60, 64)]
    assert dict(next(each for each in read if each.chunk_index == 2).result_parts) == {"data": 120, "total": 4}
    scan = next(record for record in done.tasks if record.step == "scan chunk" and record.chunk_index == 2)
    assert [(tasks[taken.task].chunk_index, taken.part) for taken in scan.dependencies] == [
        (2, "data"), (0, "total"), (1, "total"), (2, "total")
    ]  # fmt: skip
    assert all(record.begin <= record.end for record in done.tasks)
    assert done.exchanged_bytes == (1 + 2 + 3) * 4, "of each total 4 bytes to all that come after"
    assert done.data()["scaling"]["ideal"] == 4


def test_a_small_result_comes_with_what_is_told_and_a_large_one_is_fetched(cluster, monkeypatch):
    fetched, gather = [], cluster.client.gather
    monkeypatch.setattr(
        cluster.client, "gather", lambda futures, **how: fetched.append(len(futures)) or gather(futures, **how)
    )
    for n in (5000, 0):
        values = random(n)
        outcome, _ = run_on_cluster(cluster, "reduction", {"values": values}, (3,), dtype="int32")
        assert outcome.outputs["result"].tolist() == [int(values.sum(dtype=np.int32))]
        assert (outcome.outputs["result"].dtype, fetched) == (np.int32, [])
    outcome, _ = run_on_cluster(cluster, "scan", {"values": random(40_000)}, dtype="int32")
    assert outcome.report.verified
    assert fetched == [4]


def test_nothing_stays_with_the_workers(cluster):
    run_on_cluster(cluster, "scan", {"values": random(2000)}, (16,), dtype="int32")
    end = time.monotonic() + 10
    while any(kept := cluster.client.run(keys).values()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(kept)


def test_the_scheduler_has_one_topic_for_all_runs(cluster):
    run_on_cluster(cluster, "reduction", {"values": random(8)}, (1,), dtype="int32")
    before = cluster.client.run_on_scheduler(list_topics)
    run_on_cluster(cluster, "reduction", {"values": random(8)}, (1,), dtype="int32")
    assert cluster.client.run_on_scheduler(list_topics) == before
    assert [each for each in before if each.startswith("lockstep")] == ["lockstep"]


def list_topics(dask_scheduler):
    return sorted(dask_scheduler.get_events())


def test_who_leaves_is_told_nothing_more(cluster):
    from distributed import Client

    def is_listening(other):
        return other.id in cluster.client.run_on_scheduler(list_listeners)

    with Client(cluster.client.scheduler.address, set_as_default=False) as other:
        told = RunEventListener(other)
        end = time.monotonic() + 5
        while not is_listening(other) and time.monotonic() < end:
            time.sleep(0.01)
        assert is_listening(other)
        told.close()
        while is_listening(other) and time.monotonic() < end:
            time.sleep(0.01)
        assert not is_listening(other)


def list_listeners(dask_scheduler):
    topics = dask_scheduler._broker._topics
    return {each for name in ("lockstep", "all") for each in topics[name].subscribers}


def test_a_run_hears_of_lost_workers_when_another_has_ended(cluster):
    heard = []
    cluster.run_event_listener.add_listeners("mine", heard.append, heard.append)
    try:
        run_on_cluster(cluster, "reduction", {"values": random(8)}, (1,), dtype="int32")
        cluster.client.run_on_scheduler(log_event_to_all)
        end = time.monotonic() + 5
        while {"action": "a test"} not in heard and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        cluster.run_event_listener.remove_listeners("mine")
    assert {"action": "a test"} in heard


def log_event_to_all(dask_scheduler):
    dask_scheduler.log_event("all", {"action": "a test"})


@pytest.mark.parametrize("room", [0, 2**60], ids=["room", "no room"])
def test_inputs_lie_in_memory_where_there_is_room_until_the_run_is_over(cluster, monkeypatch, tmp_path, room):
    found = []
    monkeypatch.setattr(distributed_run, "MEMORY_FOLDER", str(tmp_path))
    monkeypatch.setattr(distributed_run, "_FREE_BYTES", room)
    pattern, variant, inputs, params = prepare_run("reduction", {"values": random(50)}, dtype="int32")
    run_distributed(
        cluster, Workload(pattern, variant, inputs, params), lambda told: found.extend(tmp_path.glob("*/*.npy"))
    )
    assert {each.name for each in found} == (set() if room else {"values.npy"})
    assert not [*tmp_path.iterdir()]


def test_a_worker_of_this_machine_copies_nothing_that_it_only_reads(tmp_path):
    part = write_source(np.arange(100), tmp_path, "values").read(10, 20)
    assert part.tolist() == [*range(10, 20)]
    assert isinstance(part.base, np.memmap) == (os.name != "nt")


def test_messages_are_sent_soon_on_a_cluster_of_this_machine(cluster):
    intervals = {*cluster.client.run(interval).values(), *cluster.client.run_on_scheduler(intervals_of_scheduler)}
    assert {*intervals, cluster.client.scheduler_comm.interval} == {0.0}


def test_tasks_are_handed_over_at_once_and_to_pick_is_one_only_where_it_goes_elsewhere(cluster, monkeypatch):
    two, graphs, get = cluster.limit_workers(2), [], cluster.client.get
    monkeypatch.setattr(
        cluster.client, "get", lambda graph, *more, **how: graphs.append(graph) or get(graph, *more, **how)
    )
    run_on_cluster(two, "scan", {"values": random(64)}, (4,), dtype="int32")
    (graph,) = graphs
    picked = [key.rpartition("-")[2] for key in graph if key.endswith(("-total", "-scanned"))]
    steps = [key.rpartition("-")[0].rpartition("-")[2] for key in graph if key.rpartition("-")[2].isdigit()]
    assert sorted(steps) == ["reduce_chunk"] * 2 + ["scan_chunk"] * 4
    assert sorted(picked) == ["scanned"] * 2 + ["total"] * 2, "what is brought here, and what the other worker takes"
    assert len(graph) == 6 + 4


def test_only_what_others_take_is_shared(cluster):
    two = cluster.limit_workers(2)
    before = sum(cluster.client.run(count_shares).values())
    run_on_cluster(two, "scan", {"values": random(64)}, (4,), dtype="int32")
    assert sum(cluster.client.run(count_shares).values()) == before, "scans stay, and totals are no buffers"
    run_on_cluster(two, "sort", {"values": random(64)}, (4,), dtype="int32")
    assert sum(cluster.client.run(count_shares).values()) == before + 8, "of four chunks two buckets each"


def test_what_one_worker_takes_of_another_comes_in_one_message(cluster):
    assert {*cluster.client.run(max_message_bytes).values()} == {10**15}


def max_message_bytes(dask_worker):
    return dask_worker.state.transfer_message_bytes_limit


def test_python_looks_for_no_garbage_among_what_stays(cluster):
    assert gc.get_freeze_count() > 10_000
    assert min(cluster.client.run(gc.get_freeze_count).values()) > 10_000


def interval(dask_worker):
    return dask_worker.batched_stream.interval


def intervals_of_scheduler(dask_scheduler):
    comms = (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values())
    return [each.interval for each in comms]


def keys(dask_worker):
    return [key for key in dask_worker.data if "scan" in key]


def test_what_a_step_raises_arrives_as_it_is(cluster):
    with pytest.raises(InputError, match="Element 2 of the input, nan, is not a finite number"):
        run_on_cluster(cluster, "reduction", {"values": np.array([1, 2, np.nan])}, dtype="float32")
    pattern, variant, inputs, params = prepare_run("scan", {"values": random(8)})
    broken = {"scan.cu": "extern C nonsense"}
    with pytest.raises(Exception, match=r"scan\.cu") as caught:
        run_distributed(cluster, Workload(pattern, variant, inputs, params, sources=broken), ignore_progress)
    assert type(caught.value).__name__ == "CompileError"
    assert run_on_cluster(cluster, "scan", {"values": random(8)})[0].report.verified, "it goes on with its own texts"


@pytest.mark.parametrize(
    ("total", "chunks", "workers", "expected"),
    [(10, (), 4, (2, 3, 2, 3)), (2, (), 4, (1, 1)), (0, (), 4, (0,)), (7, (3,), 4, (2, 2, 3)), (7, (5, 2), 4, (5, 2))],
)
def test_what_is_divided_is_divided_whole(total, chunks, workers, expected):
    assert compute_chunk_lengths(total, chunks, workers) == expected
    assert sum(split_evenly(total, workers)) == total


def test_chunks_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="--chunks add up to 9, not 10"):
        compute_chunk_lengths(10, (4, 5), 4)
    with pytest.raises(InputError, match="--chunks must be multiples of 4; 3 is not"):
        compute_chunk_lengths(11, (8, 3), 4, 4)


@pytest.mark.parametrize(("total", "chunks"), [(11, ()), (11, (2,)), (3, ()), (9, (3,))])
def test_an_input_that_is_not_a_multiple_of_the_granularity_is_refused(total, chunks):
    with pytest.raises(InputError, match=f"The input has {total} elements or rows, which is not a multiple of 4"):
        compute_chunk_lengths(total, chunks, 2, 4)


def test_a_pattern_without_a_program_is_refused():
    pattern = replace(find_pattern("scan"), distributed=None)
    with pytest.raises(InputError, match="Scan runs on one device only"):
        pattern.require_distributed()


@pytest.mark.parametrize("over", [
    lambda workload: find_distributed_program(workload.pattern, workload.variant),
    lambda workload: run_streamed(None, workload, None, ignore_progress)], ids=["a run", "files"])  # fmt: skip
def test_a_library_is_refused(over):
    pattern = find_pattern("matmul")
    with pytest.raises(InputError, match="cuBLAS runs on one device only"):
        over(Workload(pattern, pattern.variant("cublas"), {}, {}))


@pytest.mark.parametrize(("over", "files"), [(run_distributed, ()), (run_streamed, (None,))], ids=["a run", "files"])
def test_what_a_workers_device_lacks_is_said_before_anything_runs(cluster, over, files):
    pattern, variant, inputs, params = prepare_run("reduction", {"values": random(8)})
    variant, two = replace(variant, warpgroups=True), cluster.limit_workers(2)
    lacking = replace(two.workers[1].device, no_warpgroups="It has no warpgroups.")
    two.workers = (two.workers[0], replace(two.workers[1], device=lacking))
    with pytest.raises(InputError, match=r"cannot run on the worker 1\. It has no warpgroups\."):
        over(two, Workload(pattern, variant, inputs, params), *files, ignore_progress)


def test_workers_that_take_turns_on_a_gpu_are_not_called_several():
    device = Device("cuda", "NVIDIA H200", "gpu", 1024, 49152, 132, place="0000:01:00.0")
    one = WorkerStatus("0", "tcp://127.0.0.1:1", "127.0.0.1", device)
    same = WorkerStatus("1", "tcp://127.0.0.1:2", "127.0.0.1", device)
    other = WorkerStatus("1", "tcp://127.0.0.1:3", "127.0.0.1", replace(device, place="0000:02:00.0"))
    elsewhere = WorkerStatus("1", "tcp://10.0.0.2:1", "10.0.0.2", device)
    assert describe_devices(SimpleNamespace(workers=(one, same))) == "2 workers on 1 x NVIDIA H200"
    assert describe_devices(SimpleNamespace(workers=(one, other))) == "2 x NVIDIA H200"
    assert describe_devices(SimpleNamespace(workers=(one, elsewhere))) == "2 x NVIDIA H200"
