"""Files that workers read and write by themselves, some rows at a time."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.declaration.distributed_program import ChunkInput
from gpu.distributed.data.files import RawTarget, open_streamed_input
from gpu.distributed.streaming import run_streamed
from gpu.files import images, netpbm
from gpu.patterns import find_pattern
from gpu.run.workload import Workload
from tests import needs


def stream_pattern(cluster, name, source, target="", chunks=(), raw="", rung="", **params):
    pattern = find_pattern(name)
    made = {pattern.source.name: "file"} if pattern.source is not None and "of" not in params else {}
    checked = pattern.check({**made, **params})
    variant = pattern.variant(rung or pattern.default_variant)
    given = open_streamed_input(str(source), raw)
    workload = Workload(pattern, variant, {}, checked)
    return run_streamed(cluster, workload, given, lambda progress: None, target=str(target), chunks=chunks)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A thousand whole numbers: as .npy, as bare bytes, as a Zarr array whose chunks are not ours."""
    import zarr

    folder = tmp_path_factory.mktemp("numbers")
    values = np.random.default_rng(5).integers(-(2**31), 2**31, 1000, np.int32)
    np.save(folder / "in.npy", values)
    values.tofile(folder / "in.raw")
    zarr.create_array(str(folder / "in.zarr"), shape=(1000,), chunks=(130,), dtype="int32")[:] = values
    return folder, values


@pytest.mark.parametrize(
    ("source", "target", "raw"),
    [("in.npy", "out.npy", ""), ("in.raw", "out.raw", "int32:1000"), ("in.zarr", "out.zarr", "")],
)
def test_a_scan_goes_from_file_to_file(cluster, numbers, tmp_path, source, target, raw):
    folder, values = numbers
    run = stream_pattern(cluster, "scan", folder / source, tmp_path / target, (9,) if target[-1] == "w" else (7,), raw)
    match target:
        case "out.npy":
            found = np.load(tmp_path / target)
        case "out.raw":
            found = np.fromfile(tmp_path / target, np.int32)
        case _:
            import zarr

            found = zarr.open_array(str(tmp_path / target), mode="r")[:]
    assert np.array_equal(found, np.cumsum(values, dtype=np.int32))
    twice = sum(
        each.elements[1] - each.elements[0]
        for each in run.distributed_run.tasks
        if each.step == "reduce and free chunk"
    )
    assert 600 < twice < 900, "for the totals of all but the last worker's, and again for the scan"
    assert (run.read_bytes, run.written_bytes) == (4000 + 4 * twice, 4000)
    assert [each.name for each in tmp_path.iterdir()] == [target]
    assert run.distributed_run.gathered_bytes == 0


def test_one_worker_reads_what_it_scans_once(cluster, numbers, tmp_path):
    folder, values = numbers
    run = stream_pattern(cluster.limit_workers(1), "scan", folder / "in.npy", tmp_path / "out.npy", (5,))
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.cumsum(values, dtype=np.int32))
    assert (run.read_bytes, run.written_bytes) == (4000, 4000)


def test_no_worker_has_more_than_two_chunks(cluster, tmp_path):
    values = np.arange(2**14, dtype=np.int32)
    np.save(tmp_path / "in.npy", values)
    end = time.monotonic() + 20
    while (left := max(cluster.client.run(count_stored_bytes).values())) > 2000 and time.monotonic() < end:
        time.sleep(0.05)  # what other tests have made goes a little later than they
    assert left <= 2000
    run = stream_pattern(cluster, "scan", tmp_path / "in.npy", tmp_path / "out.npy", (8,))
    chunk = values.nbytes // 8
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.cumsum(values, dtype=np.int32))
    small = chunk // 2  # totals, with what Python adds to each
    assert max(record.memory_bytes for record in run.distributed_run.tasks) <= 2 * chunk + small


def test_what_a_task_read_goes_with_it(cluster, numbers, tmp_path):
    folder, _ = numbers
    cluster.client.run(gc.collect)  # what other runs have left is not looked for here
    assert {*cluster.client.run(gc.disable).values()} == {None}
    try:
        stream_pattern(cluster, "scan", folder / "in.npy", tmp_path / "out.npy", (16,))
        found = cluster.client.run(count_pieces)
    finally:
        cluster.client.run(gc.enable)
    assert {*found.values()} == {0}, "nobody waits for Python to find circles"


def count_pieces():
    return sum(isinstance(each, ChunkInput) for each in gc.get_objects())


def count_stored_bytes(dask_worker):
    return dask_worker.state.nbytes


@pytest.mark.parametrize("result", ["pack", "split"])
def test_what_is_kept_is_counted_before_it_is_written(cluster, numbers, tmp_path, result):
    folder, values = numbers
    settings = {"dtype": "int32", "predicate": "odd", "result": result}
    run = stream_pattern(cluster, "compaction", folder / "in.npy", tmp_path / "out.npy", (6,), **settings)
    odd = values % 2 == 1
    assert np.array_equal(np.load(tmp_path / "out.npy"), values[odd] if result == "pack" else np.where(odd, values, 0))
    assert run.outputs["count"] == odd.sum()


def test_a_grid_is_streamed_by_whole_planes(cluster, tmp_path):
    values = np.random.default_rng(8).random((5 * 6, 7), np.float32)
    np.save(tmp_path / "in.npy", values)
    run = stream_pattern(cluster, "stencil", tmp_path / "in.npy", tmp_path / "out.npy", (3,), rows=6)
    expected = find_pattern("stencil").reference({"values": values}, find_pattern("stencil").check({"rows": 6}))
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=0, atol=1e-5)
    assert sorted(record.elements for record in run.distributed_run.tasks) == [(0, 12), (12, 24), (24, 30)]
    with pytest.raises(InputError, match=r"in\.npy has 30 rows, which is not a multiple of 4"):
        stream_pattern(cluster, "stencil", tmp_path / "in.npy", tmp_path / "out.npy", rows=4)


def test_a_sum_needs_no_file(cluster, numbers):
    folder, values = numbers
    run = stream_pattern(cluster, "reduction", folder / "in.zarr", dtype="int32", chunks=(5,))
    assert run.outputs["result"].tolist() == [int(values.sum(dtype=np.int32))]


@pytest.mark.parametrize("maxval", [255, 1000])
def test_an_image_is_filtered_and_counted_by_rows(cluster, tmp_path, maxval):
    kind = np.uint8 if maxval == 255 else np.uint16
    pixels = np.random.default_rng(6).integers(0, maxval + 1, (50, 31)).astype(kind)
    images.write_image(str(tmp_path / "in.pgm"), pixels, maxval)
    counted = stream_pattern(cluster, "histogram", tmp_path / "in.pgm", chunks=(4,), bins=maxval + 1, of="levels")
    assert counted.outputs["counts"][0].tolist() == np.bincount(pixels.ravel(), minlength=maxval + 1).tolist()
    stream_pattern(cluster, "convolution", tmp_path / "in.pgm", tmp_path / "out.pgm", (5,), size=3)
    found, white = netpbm.read(tmp_path / "out.pgm", "out.pgm", 2**20)
    pattern = find_pattern("convolution")
    params = pattern.check({"size": 3})
    inputs = {"image": pixels, "maxval": np.array(maxval, kind)}
    expected = np.rint(pattern.reference(inputs, params))
    assert white == maxval
    assert found.dtype == kind
    assert np.abs(found - expected).max() <= (np.abs(expected % 1 - 0.5).min() < 1e-3)


def test_a_tiled_image_is_filtered_by_rows_of_tiles(cluster, tmp_path):
    tifffile = needs.module("tifffile", needs.DASK)
    pixels = np.random.default_rng(6).integers(0, 256, (300, 12, 3)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "in.tif", pixels, tile=(64, 16), photometric="rgb", compression=8)
    run = stream_pattern(cluster, "convolution", tmp_path / "in.tif", tmp_path / "out.tif", (5,), size=3)
    pattern = find_pattern("convolution")
    inputs = {"image": pixels, "maxval": np.array(255, np.uint8)}
    expected = np.rint(pattern.reference(inputs, pattern.check({"size": 3})))
    assert np.abs(tifffile.imread(tmp_path / "out.tif") - expected).max() <= 1
    given = cluster, "convolution", tmp_path / "in.tif", tmp_path / "bytes.tif", (5,)
    stream_pattern(*given, rung="peak", size=3, pixels="uint8")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "bytes.tif"), tifffile.imread(tmp_path / "out.tif"))
    with pytest.raises(InputError, match="choose Register-tiled or Peak for 8-bit pixels"):
        stream_pattern(*given, rung="tiled", size=3, pixels="uint8")
    with pytest.raises(InputError, match="is not separable into a row and a column"):
        stream_pattern(*given, rung="separable", size=3, filter="laplacian")
    assert sorted(record.elements for record in run.distributed_run.tasks) == [(0, 256), (256, 300)], (
        "no two write one tile"
    )
    with pytest.raises(InputError, match="--chunks must be multiples of 256"):
        stream_pattern(cluster, "convolution", tmp_path / "in.tif", tmp_path / "out.tif", (100, 200), size=3)


def test_nothing_is_there_of_a_result_that_was_not_finished(cluster, tmp_path):
    values = np.zeros(100)
    values[77] = np.nan
    np.save(tmp_path / "in.npy", values)
    (tmp_path / "out.npy").write_text("what was there")
    with pytest.raises(InputError, match=r"In the chunk at element 75: Element 2 of the input, nan, is not a finite"):
        stream_pattern(cluster, "scan", tmp_path / "in.npy", tmp_path / "out.npy", (4,), dtype="float32")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.npy", "out.npy"]
    assert (tmp_path / "out.npy").read_text() == "what was there"


def test_a_disk_that_takes_no_more_is_one_sentence():
    target = RawTarget("/dev/full", 0, "<i4")
    if not Path("/dev/full").exists():
        needs.skip("/dev/full: run the tests on Linux too")
    with pytest.raises(InputError, match=r"Cannot write .*full: no space left on device"):
        target.write(0, np.arange(4))


def test_what_cannot_be_streamed_is_one_sentence(cluster, numbers, tmp_path):
    folder, values = numbers
    np.save(tmp_path / "matrix.npy", values.reshape(10, 100))
    np.save(tmp_path / "columns.npy", np.asfortranarray(values.reshape(10, 100)))
    np.save(tmp_path / "single.npy", np.array(3))
    (tmp_path / "short.raw").write_bytes(b"123")
    (tmp_path / "no.zarr").mkdir()
    import zarr

    zarr.create_array(str(tmp_path / "long.zarr"), shape=(10**14,), chunks=(10**6,), dtype="int32")
    zarr.create_array(str(tmp_path / "many.zarr"), shape=(10**7,), chunks=(10,), dtype="int32")
    images.write_image(str(tmp_path / "in.pgm"), np.zeros((4, 4), np.uint8), 255)
    for source, target, raw, sentence in (
        (folder / "in.npy", "", "", "The result is as large as the input"),
        (folder / "in.npy", "out.csv", "", "Cannot write .* chunk by chunk"),
        (folder / "in.npy", "out.pgm", "", "Cannot write .* chunk by chunk"),
        (tmp_path / "matrix.npy", "out.npy", "", "has the shape 10 x 100, but 1 dimensions are needed"),
        (tmp_path / "columns.npy", "out.npy", "", "is in Fortran order"),
        (tmp_path / "single.npy", "out.npy", "", "a single number"),
        (tmp_path / "short.raw", "out.npy", "int32:1", "has 3 bytes, but int32:1 needs 4"),
        (tmp_path / "short.raw", "out.npy", "float16:1", "--raw is TYPE:SHAPE"),
        (tmp_path / "short.raw", "out.npy", "", "Cannot read .* chunk by chunk"),
        (tmp_path / "no.zarr", "out.npy", "", "is not a readable Zarr array"),
        (tmp_path / "long.zarr", "out.npy", "", "declares 400,000 GB, but stores 0 of 100,000,000 chunks"),
        (tmp_path / "many.zarr", "out.npy", "", "one read spans more than 100000 chunks"),
        (tmp_path / "in.pgm", "out.npy", "", "is not what Scan needs here: numbers"),
    ):
        with pytest.raises(InputError, match=sentence):
            stream_pattern(cluster, "scan", source, target and tmp_path / target, raw=raw)
    np.save(tmp_path / "long.npy", np.zeros(100_001, np.int32))
    with pytest.raises(InputError, match="would have more than 100000 chunks"):
        stream_pattern(cluster, "scan", tmp_path / "long.npy", tmp_path / "out.npy", chunks=(100_001,))
    with pytest.raises(InputError, match="the number of rows is known only at the end"):
        stream_pattern(cluster, "compaction", folder / "in.npy", tmp_path / "out.zarr", dtype="int32")
    with pytest.raises(InputError, match="needs its whole input at once"):
        stream_pattern(cluster, "matmul", tmp_path / "matrix.npy", tmp_path / "out.npy")
