"""What a Zarr array's folder may not do to who reads it: run code, wait for ever, take all memory."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.distributed.data.files import open_streamed_input
from gpu.distributed.data.zarr_arrays import open_zarr, read_rows
from tests import needs

needs.module("zarr", needs.DASK)


class HarmfulPickle:
    """Makes a folder when it is read by pickle."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def folder(tmp_path):
    """An array of twenty numbers in chunks of five."""
    import zarr

    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), shape=(20,), chunks=(5,), dtype="float32")[:] = np.arange(20)
    return path


def read_description(folder, **changes):
    path = folder / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def refusal(folder):
    with pytest.raises(InputError) as caught:
        read_rows(str(folder), 4, 11)
    return caught.value.message


def test_rows_are_read_across_chunks(folder):
    assert read_rows(str(folder), 4, 11).tolist() == list(range(4, 11))
    (folder / "c" / "1").unlink()
    assert read_rows(str(folder), 4, 11).tolist() == [4, 0, 0, 0, 0, 0, 10], "what was never written is the fill value"


@pytest.mark.parametrize("sharded", [False, True])
def test_a_codec_that_runs_code_is_refused(folder, tmp_path, sharded):
    codecs = [{"name": "numcodecs.pickle", "configuration": {"protocol": 5}}]
    if sharded:
        codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [5], "codecs": codecs}}]
    read_description(folder, codecs=codecs)
    for chunk in (folder / "c").iterdir():
        chunk.write_bytes(pickle.dumps(HarmfulPickle(tmp_path / "ran")))
    assert refusal(folder) == "x.zarr uses the codec 'numcodecs.pickle', which is not supported."
    old = tmp_path / "old.zarr"
    old.mkdir()
    about = {"zarr_format": 2, "shape": [20], "chunks": [20], "dtype": "|O", "fill_value": 0, "order": "C"}
    filters = [{"id": "pickle", "protocol": 5}]
    (old / ".zarray").write_text(json.dumps({**about, "compressor": None, "filters": filters}), "utf-8")
    (old / "0").write_bytes(pickle.dumps(HarmfulPickle(tmp_path / "ran")))
    assert refusal(old) == "old.zarr uses the codec 'pickle', which is not supported."
    assert not (tmp_path / "ran").exists()


def test_a_chunk_that_is_a_pipe_a_device_or_damaged_is_refused(folder):
    chunk = folder / "c" / "1"
    chunk.write_bytes(b"no compressed bytes")
    assert refusal(folder) == "x.zarr is not a readable Zarr array."
    chunk.unlink()
    chunk.symlink_to("/dev/zero")
    assert refusal(folder) == "x.zarr has an invalid chunk: 1."
    chunk.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(chunk)
        assert refusal(folder) == "x.zarr has an invalid chunk: 1."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [10**19]}, "x.zarr declares more elements than any disk can hold."),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**9]}}},
         "x.zarr has chunks of more than 256 MB; each is read as a whole."),
        ({"data_type": "complex64", "fill_value": [0, 0]}, "x.zarr contains complex64, not numbers."),
        ({"codecs": [{}]}, "x.zarr is not a readable Zarr array."),
        ({"shape": "x"}, "x.zarr is not a readable Zarr array."),
    ],
)  # fmt: skip
def test_what_a_description_says_is_not_believed(folder, changes, message):
    read_description(folder, **changes)
    assert refusal(folder) == message


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_length_that_is_declared_but_not_stored_is_refused(tmp_path, zarr_format):
    import zarr

    path = tmp_path / "x.zarr"
    array = zarr.create_array(str(path), shape=(10**11,), chunks=(10**6,), dtype="float32", zarr_format=zarr_format)
    array[10**6 : 2 * 10**6] = 1
    with pytest.raises(InputError, match=r"x\.zarr declares 400 GB, but stores 1 of 100,000 chunks\."):
        open_streamed_input(str(path))


def test_an_array_that_stores_one_chunk_of_sixteen_or_is_small_is_read(tmp_path):
    import zarr

    path = tmp_path / "x.zarr"
    array = zarr.create_array(str(path), shape=(2**14, 2**16), chunks=(2**9, 2**16), dtype="uint8")
    assert open_streamed_input(str(path)).nbytes == 2**30
    array.resize((2**14 + 1, 2**16))
    for chunk in (1, 30, 32):
        with pytest.raises(InputError, match=f"stores {(1, 30, 32).index(chunk)} of 33 chunks"):
            open_streamed_input(str(path))
        array[chunk * 2**9] = 1
    assert open_streamed_input(str(path)).shape == (2**14 + 1, 2**16)


def test_a_chunk_that_expands_to_more_than_its_array_declares_is_an_error(tmp_path):
    import zarr

    path, other = tmp_path / "x.zarr", tmp_path / "y.zarr"
    for where, size in ((path, 5), (other, 500_000)):
        zarr.create_array(str(where), shape=(size,), chunks=(size,), dtype="float32")[:] = 1
    (path / "c" / "0").write_bytes((other / "c" / "0").read_bytes())
    with pytest.raises(InputError, match=r"x\.zarr is not a readable Zarr array\."):
        read_rows(str(path), 0, 5)


def test_a_folder_without_a_description_is_none(tmp_path):
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(InputError, match=r"x\.zarr is not a readable Zarr array"):
        open_zarr(str(tmp_path / "x.zarr"))
    with pytest.raises(InputError):
        open_zarr(str(Path(tmp_path, "y" * 300 + ".zarr")))
